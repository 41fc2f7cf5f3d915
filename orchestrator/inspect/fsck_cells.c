/* SPDX-License-Identifier: Apache-2.0 */
/* What happened, by events.jsonl and by cells/: each by itself, then against each other. */
#include "inspect/fsck_cells.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bar.h"
#include "base/buf.h"
#include "base/fs.h"
#include "base/ranges.h"
#include "base/text.h"
#include "plan/batch.h"
#include "plan/cells.h"
#include "plan/files.h"
#include "rundir/attempt.h"
#include "rundir/events.h"
#include "rundir/resultfile.h"

#define RESTORE_PACK \
    "restore it from a backup; results that were lost can be run again: hpcgrid retry"

#define JOURNAL "events.jsonl"
#define JOURNAL_MAX ((size_t)1 << 30)
#define RESTORE_JOURNAL                                                                             \
    "restore it from a backup; without it, results still count (`hpcgrid collect`), and a new run " \
    "(`hpcgrid run MATRIX --new`) continues"

/* ---- The journal: lines, all of them together, then against the plan ---- */

/* Lines that are not as they were written. */
static void check_lines(struct hg_fsck_pass *c, const struct hg_buf *text, size_t *damaged)
{
    const char *p = hg_buf_str(text), *end = p + text->len;

    for (*damaged = 0; p < end; c->f->lines++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));

        if (!nl)
            break;
        if (!hg_run_line_is_whole(p, (size_t)(nl - p)) && ++*damaged)
            hg_fsck_found(c, HG_FSCK_ERROR, "journal-line", JOURNAL, c->f->lines + 1,
                          RESTORE_JOURNAL,
                          p[0] == '{' ? "the line is damaged: its checksum does not match"
                                      : "the line is not hpcgrid's");
        p = nl + 1;
    }
}

/* All of them together. */
static void fold(struct hg_fsck_pass *c, const struct hg_buf *text)
{
    struct hg_run_state *state = hg_run_state_create();
    struct hg_err why = HG_ERR_INIT;
    size_t used;

    if (hg_run_state_fold(state, JOURNAL, hg_buf_str(text), text->len, &used, &why) == 0) {
        c->state = state;
        return;
    }
    hg_run_state_free(state);
    hg_fsck_found(c, HG_FSCK_ERROR, "journal", JOURNAL, (size_t)why.line, RESTORE_JOURNAL, "%s",
                  why.text);
}

static void check_state(struct hg_fsck_pass *c)
{
    const struct hg_run_state *state = c->state;

    if (state->torn)
        hg_fsck_found(c, HG_FSCK_NOTE, "journal-torn", JOURNAL, c->f->lines + 1,
                      "the next command that drives the run cuts it off",
                      "the last line was cut short: its writer was killed before it acted on "
                      "it");
    if (state->deposed)
        hg_fsck_found(c, HG_FSCK_NOTE, "journal-deposed", JOURNAL, 0, "nothing: they do not count",
                      "lines of a process that had lost the lock: %zu", state->deposed);
}

/* The journal may know less than the plan, which has grown since, but not more. */
static void compare_plan(struct hg_fsck_pass *c)
{
    const json_t *batches = json_object_get(c->plan, "batches");

    for (size_t b = 0; c->plan && b < c->state->batches.n; b++) {
        const json_t *batch = json_array_get(batches, b);
        json_int_t cells = json_integer_value(json_object_get(batch, "cells"));
        size_t known = c->state->batches.items[b].n;

        if ((json_int_t)known > cells)
            hg_fsck_found(c, HG_FSCK_ERROR, "journal-plan", JOURNAL, 0,
                          "restore plan.json and batches/ from a backup",
                          "knows %zu cells of batch %zu, plan.json %lld", known, b + 1,
                          (long long)cells);
    }
}

/* Has the journal grown since it was read? Then state is read again. Whatever is in the run was in the journal before, so
 * only what the new state does not explain is odd. */
static bool reread(struct hg_fsck_pass *c)
{
    char *path = hg_rundir_path(c->rd, JOURNAL);
    struct hg_run_state *now = NULL;
    struct stat st;

    if (c->state && stat(path, &st) == 0 && st.st_size != c->journal_size)
        now = hg_run_state_load(c->rd->path, NULL);
    free(path);
    if (!now)
        return false;
    hg_run_state_free(c->state);
    c->state = now;
    c->journal_size = st.st_size;
    return true;
}

static void check_text(struct hg_fsck_pass *c, const struct hg_buf *text)
{
    size_t damaged;

    c->journal_size = (off_t)text->len;
    check_lines(c, text, &damaged);
    if (!damaged)
        fold(c, text);
    if (c->state) {
        check_state(c);
        compare_plan(c);
    }
}

void hg_fsck_journal(struct hg_fsck_pass *c)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err why = HG_ERR_INIT;
    char *path = hg_rundir_path(c->rd, JOURNAL);
    int plain = hg_fsck_is_plain(c, JOURNAL);

    c->has_journal = plain != 0;
    if (plain == 1 && hg_fs_read(path, JOURNAL_MAX, &text, &why) == 0)
        check_text(c, &text);
    else if (plain == 1)
        hg_fsck_found(c, HG_FSCK_ERROR, "journal", JOURNAL, 0, RESTORE_JOURNAL,
                      "cannot be read: %s", why.text);
    hg_buf_done(&text);
    free(path);
}

/* One planned cell while it is looked at. */
struct look {
    struct hg_fsck_pass *c;
    int batch;
    size_t line;
    const char *id;
    const json_t *cell;
    /* Submissions with a good result: Slurm may requeue a job whose end it noticed late. */
    size_t good;
    unsigned last; /* ... the newest of them */
};

/* ---- One attempt ---- */

/* Has this claim number carried this cell, by the journal? */
static bool is_known(const struct look *l, unsigned submission)
{
    const struct hg_run_state *state = l->c->state;
    struct hg_ranges tasks = HG_RANGES_INIT;
    const struct hg_submission *sub;
    bool known;

    if (!l->c->complete || !state || !submission) /* 0: by hand */
        return true;
    if (submission > state->submissions.n)
        return false;
    sub = &state->submissions.items[submission - 1];
    if (sub->batch != l->batch || l->line < sub->offset)
        return false;
    hg_ranges_parse(sub->tasks, UINT32_MAX - 1, &tasks, NULL); /* folding has done it before */
    known = hg_ranges_has(&tasks, (uint32_t)(l->line - sub->offset));
    hg_ranges_done(&tasks);
    return known;
}

static void check_result(struct look *l, struct hg_attempt_files *f, const char *file)
{
    struct hg_err why = HG_ERR_INIT;
    json_t *result = hg_resultfile_read(&l->c->group, f, l->c->run_key, l->cell, false, &why);
    const char *text = why.text, *prefix = l->c->rd->path;

    if (!result) {
        if (strncmp(text, prefix, strlen(prefix)) == 0 && strstr(text, "result.json: "))
            text = strstr(text, "result.json: ") + strlen("result.json: ");
        hg_fsck_found(l->c, HG_FSCK_ERROR, "result", file, (size_t)why.line,
                      "it never counts; restore it, or run the cell again: "
                      "hpcgrid retry",
                      "the result does not count: %s", text);
    } else if (strcmp(json_string_value(json_object_get(result, "status")), "ok") == 0) {
        l->good += !l->good || f->submission != l->last;
        l->last = f->submission;
    }
    json_decref(result);
}

/* The name below the run of a file of an attempt; yours. */
static char *name_below(struct look *l, const struct hg_attempt_files *f, const char *file)
{
    char *path = hg_attempt_path(&l->c->group, f, file);
    char *name = hg_strdup(path + strlen(l->c->rd->path) + 1);

    free(path);
    return name;
}

static void check_attempt(struct look *l, struct hg_attempt_files *f)
{
    char *dir = name_below(l, f, ""), *file = name_below(l, f, "result.json");
    bool known = is_known(l, f->submission);
    struct hg_err why = HG_ERR_INIT;

    if (!known && reread(l->c))
        known = is_known(l, f->submission);
    if (hg_attempt_look(&l->c->group, f, NULL, NULL, &why) < 0)
        hg_fsck_found(l->c, HG_FSCK_ERROR, "folder", dir, 0, "see its mode", "%s", why.text);
    l->c->f->attempts++;
    l->c->claims |= f->submission > 0;
    if (f->result)
        check_result(l, f, file);
    if (f->result && !f->claim)
        hg_fsck_found(l->c, HG_FSCK_WARNING, "claim", dir, 0,
                      "the result counts if it is valid; ask who removed it",
                      "a result without claim.json");
    if (f->claim && !f->result && (!f->submission || !l->c->state))
        hg_fsck_found(
            l->c, HG_FSCK_NOTE, "attempt-open", dir, 0,
            "claim.json names the process that began it; if it has ended, run "
            "the cell again",
            "begun, but without a result: still running, or killed together with its driver");
    if (!known && (f->claim || f->result))
        hg_fsck_found(l->c, HG_FSCK_WARNING, "attempt", dir, 0,
                      "was it copied here, or is the journal an old copy?",
                      "the journal has no submission %u with this cell", f->submission);
    free(dir);
    free(file);
}

/* ---- One cell ---- */

/* Has it ended otherwise, by the journal, although it has a good result? */
static bool is_unread(const struct look *l, const struct hg_run_cell *cell)
{
    return cell && hg_cell_is_over(cell) && cell->state != HG_CELL_OK && l->good;
}

static const struct hg_run_cell *planned(const struct look *l)
{
    return l->c->complete && l->c->state
               ? hg_run_cell_find(l->c->state, l->batch, (uint32_t)l->line)
               : NULL;
}

/* What people call it; lent until the next one. */
static const char *name_cell(const struct look *l)
{
    struct hg_fsck_pass *c = l->c;

    if (!c->names)
        c->names = hg_plan_names(c->rd->path, NULL);
    if (!c->names)
        return l->id;
    hg_buf_clear(&c->name);
    hg_names_append_cell(c->names, l->cell, &c->name);
    return hg_buf_str(&c->name);
}

static void compare_journal(struct look *l)
{
    const struct hg_run_cell *cell = planned(l);
    char file[40];

    snprintf(file, sizeof file, "batches/%d.cells.jsonl", l->batch);
    if (is_unread(l, cell) && reread(l->c))
        cell = planned(l);
    if (l->good > 1)
        hg_fsck_found(l->c, HG_FSCK_WARNING, "good-twice", file, l->line + 1,
                      "the newest counts; was it also run by hand?",
                      "cell %s has good results of %zu submissions", name_cell(l), l->good);
    if (cell && cell->state == HG_CELL_OK && !l->good)
        hg_fsck_found(l->c, HG_FSCK_ERROR, "good-gone", file, l->line + 1,
                      "restore it from a backup; hpcgrid takes the cell for "
                      "done, so only a new run computes it again",
                      "the journal says that cell %s is ok, but there is no good result",
                      name_cell(l));
    if (is_unread(l, cell))
        hg_fsck_found(l->c, HG_FSCK_WARNING, "good-unread", file, l->line + 1,
                      "tables count it; `hpcgrid retry` would run it again",
                      "cell %s has a good result, but the journal says %s", name_cell(l),
                      hg_cell_state_names[cell->state]);
}

static int check_cell(size_t line, const json_t *record, void *context)
{
    struct look l = { .c = context, .line = line };
    char group[HG_GROUP_NAME_MAX];
    struct hg_err why = HG_ERR_INIT;
    struct hg_attempt_list list;

    l.batch = l.c->batch;
    l.id = json_string_value(json_object_get(record, "id"));
    l.cell = json_object_get(record, "cell");
    if (!l.id || !hg_attempt_is_file_name(l.id) || !json_is_object(l.cell))
        return 0; /* a finding already */
    if (hg_attempt_list(&l.c->group, l.batch, line, l.id, &list, &why) < 0) {
        hg_attempt_group_name(l.batch, line, group);
        hg_fsck_found(l.c, HG_FSCK_ERROR, "folder", group, 0, "see who made it, and its mode", "%s",
                      why.text);
        return 0; /* its content is not known */
    }
    for (size_t i = 0; i < list.n; i++)
        check_attempt(&l, &list.items[i]);
    compare_journal(&l);
    return 0;
}

/* ---- What is there ---- */

/* Is the planned cell of this id in this group? */
static bool is_in_group(const struct hg_fsck_pass *c, const char *id, size_t len)
{
    size_t place = hg_map_find(&c->ids, id, len);

    return !c->complete || (place != HG_MAP_NONE && place == hg_fsck_place(c->batch, c->line));
}

static void check_attempt_name(struct hg_fsck_pass *c, const char *file, const char *name,
                               const struct stat *st)
{
    unsigned submission, restarts;
    size_t id_len;
    bool is = hg_attempt_name_parse(name, &id_len, &submission, &restarts) && S_ISDIR(st->st_mode);

    if (is && is_in_group(c, name, id_len))
        hg_fsck_each(c, file, NULL);
    else
        hg_fsck_found(c, HG_FSCK_WARNING, "alien", file, 0,
                      is ? "nothing reads it; was it copied from another run?"
                         : "nothing reads it; move it away",
                      is ? "belongs to no cell that is planned there"
                         : "is not an attempt's folder");
}

static void find_in_pack(struct hg_fsck_pass *c, const char *file, const struct hg_attempt_files *f)
{
    if (!is_in_group(c, f->id, strlen(f->id)))
        hg_fsck_found(c, HG_FSCK_WARNING, "alien", file, 0,
                      "nothing reads it; was the pack copied from another run?",
                      "has attempt %u.%u of %s, a cell that is not planned there", f->submission,
                      f->restarts, f->id);
    if (f->folder)
        hg_fsck_found(c, HG_FSCK_NOTE, "half-packed", file, 0,
                      "`hpcgrid collect RUN --compact` finishes it",
                      "attempt %u.%u of %s also has its folder: packing was interrupted",
                      f->submission, f->restarts, f->id);
}

/* The content of a pack, one finding of a kind. */
static void check_pack(struct hg_fsck_pass *c, const char *file)
{
    const struct hg_attempt_group *g = &c->group;
    struct hg_err why = HG_ERR_INIT;

    if (hg_fsck_is_plain(c, file) != 1)
        return;
    if (hg_attempt_group_read(&c->group, file, &why) < 0) {
        hg_fsck_found(c, HG_FSCK_ERROR, "pack", file, 0, RESTORE_PACK, "%s", why.text);
        return;
    }
    if (g->walk.damaged)
        hg_fsck_found(c, HG_FSCK_ERROR, "pack", file, 0, RESTORE_PACK,
                      "damaged in %llu place%s, first at byte %llu: the files there are lost",
                      (unsigned long long)g->walk.damaged, hg_text_s(g->walk.damaged),
                      (unsigned long long)g->walk.where);
    if (g->strange)
        hg_fsck_found(c, HG_FSCK_WARNING, "alien", file, 0,
                      "nothing reads them; who put them there?", "has %zu file%s of no attempt",
                      g->strange, hg_text_s(g->strange));
    for (size_t i = 0; i < g->n; i++)
        if (g->items[i].parts)
            find_in_pack(c, file, &g->items[i]);
}

static void check_group_name(struct hg_fsck_pass *c, const char *file, const char *name,
                             const struct stat *st)
{
    size_t number;
    bool pack;

    if (strstr(name, ".tar.tmp.")) /* being written, or a leftover */
        return;
    if (!hg_attempt_group_parse(name, &c->batch, &number, &pack) ||
        (!pack && !S_ISDIR(st->st_mode))) {
        hg_fsck_found(c, HG_FSCK_WARNING, "alien", file, 0, "nothing reads it; move it away",
                      "is not a folder or pack of attempts");
        return;
    }
    c->line = number * HG_GROUP_LINES;
    if (pack)
        check_pack(c, file);
    else
        hg_fsck_each(c, file, check_attempt_name);
}

/* Attempts of a job, and no journal: somebody has removed it. */
static void check_gone(struct hg_fsck_pass *c)
{
    if (!c->has_journal && c->f->attempts && c->claims)
        hg_fsck_found(c, HG_FSCK_ERROR, "missing", "events.jsonl", 0,
                      "restore it from a backup; results still count, but cells "
                      "without one would be submitted again",
                      "is missing, although submitted jobs have run");
}

void hg_fsck_cells(struct hg_fsck_pass *c)
{
    const json_t *list = json_object_get(c->plan, "batches"), *batch;
    size_t i;

    hg_bar_begin("cells", hg_plan_count_cells(c->plan));
    json_array_foreach(list, i, batch) {
        char file[40];

        c->batch = (int)i + 1;
        snprintf(file, sizeof file, "batches/%d.cells.jsonl", c->batch);
        if (hg_fsck_is_plain(c, file) == 1)
            hg_plan_each_cell(c->rd->path, c->batch, check_cell, c, NULL);
    }
    hg_bar_end();
    hg_bar_begin("files", 0);
    hg_fsck_each(c, "cells", check_group_name);
    hg_bar_end();
    check_gone(c);
}
