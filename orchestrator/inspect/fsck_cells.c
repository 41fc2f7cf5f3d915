/* SPDX-License-Identifier: Apache-2.0 */
/* cells/: every attempt by its own files, then against the journal. */
#include "inspect/fsck_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/ranges.h"
#include "base/text.h"
#include "base/vec.h"
#include "plan/batch.h"
#include "plan/cells.h"
#include "rundir/attempt.h"
#include "rundir/collect.h"

#define RESTORE_PACK \
    "restore it from a backup; results that were lost can be run again: hpcgrid retry"

/* One planned cell while it is looked at. */
struct look {
    struct hg_check *c;
    int batch;
    size_t line;
    const char *id;
    const json_t *cell;
    size_t
        good; /* submissions with a good result: Slurm may requeue a job whose end it noticed late */
    unsigned last; /* ... the newest of them */
};

/* ---- One attempt ---- */

/* Has this claim number carried this cell, by the journal? */
static int is_known(const struct look *l, unsigned submission)
{
    const struct hg_run_state *state = l->c->state;
    struct hg_ranges tasks = HG_RANGES_INIT;
    const struct hg_submission *sub;
    bool known = false;

    if (!l->c->complete || !state || !submission) /* 0: by hand */
        return 1;
    if (submission > state->submissions.n)
        return 0;
    sub = &state->submissions.items[submission - 1];
    if (sub->batch != l->batch || l->line < sub->offset)
        return 0;
    if (hg_ranges_parse(sub->tasks, UINT32_MAX - 1, &tasks, l->c->err) < 0)
        return -1;
    for (size_t i = 0; i < tasks.n && !known; i++)
        known = l->line - sub->offset >= tasks.items[i].first &&
                l->line - sub->offset <= tasks.items[i].last;
    hg_ranges_done(&tasks);
    return known;
}

static int check_result(struct look *l, struct hg_attempt_files *f, const char *file)
{
    struct hg_err why = HG_ERR_INIT;
    json_t *result = hg_collect_result(&l->c->group, f, l->c->run_key, l->cell, &why);
    const char *text = why.text, *prefix = l->c->rd->path;
    int rc = 0;

    if (!result) {
        if (strncmp(text, prefix, strlen(prefix)) == 0 && strstr(text, "result.json: "))
            text = strstr(text, "result.json: ") + strlen("result.json: ");
        rc = hg_fsck_find(l->c,
                          (struct hg_found){ HG_FSCK_ERROR, "result", file, (size_t)why.line,
                                             "it never counts; restore it, or run the cell again: "
                                             "hpcgrid retry" },
                          "the result does not count: %s", text);
    } else if (strcmp(json_string_value(json_object_get(result, "status")), "ok") == 0) {
        l->good += !l->good || f->submission != l->last;
        l->last = f->submission;
    }
    json_decref(result);
    return rc;
}

/* The name below the run of a file of an attempt; yours. */
static char *name_below(struct look *l, const struct hg_attempt_files *f, const char *file)
{
    char *path = hg_attempt_path(&l->c->group, f, file);
    char *name = hg_strdup(path + strlen(l->c->rd->path) + 1);

    free(path);
    return name;
}

static int check_attempt(struct look *l, struct hg_attempt_files *f)
{
    char *dir = name_below(l, f, ""), *file = name_below(l, f, "result.json");
    int known = is_known(l, f->submission), rc;

    if (known == 0 && hg_fsck_reread(l->c))
        known = is_known(l, f->submission);
    rc = known < 0 ? -1 : 0;
    hg_attempt_look(&l->c->group, f, NULL, NULL);
    l->c->f->attempts++;
    l->c->claims |= f->submission > 0;
    if (rc == 0 && f->result)
        rc = check_result(l, f, file);
    if (rc == 0 && f->result && !f->claim)
        rc = hg_fsck_find(
            l->c,
            (struct hg_found){ HG_FSCK_WARNING, "claim", dir, 0,
                               "the result counts if it is valid; ask who removed it" },
            "a result without claim.json");
    if (rc == 0 && f->claim && !f->result && (!f->submission || !l->c->state))
        rc = hg_fsck_find(
            l->c,
            (struct hg_found){ HG_FSCK_NOTE, "attempt-open", dir, 0,
                               "claim.json says who began it; if that has ended, run "
                               "the cell again" },
            "begun, and without a result: at work, or killed with all that watched it");
    if (rc == 0 && !known && (f->claim || f->result))
        rc =
            hg_fsck_find(l->c,
                         (struct hg_found){ HG_FSCK_WARNING, "attempt", dir, 0,
                                            "was it copied here, or is the journal an older one?" },
                         "the journal knows of no submission %u with this cell", f->submission);
    free(dir);
    free(file);
    return rc;
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

static int compare_journal(struct look *l)
{
    const struct hg_run_cell *cell = planned(l);
    char file[40];

    snprintf(file, sizeof file, "batches/%d.cells.jsonl", l->batch);

    if (is_unread(l, cell) && hg_fsck_reread(l->c))
        cell = planned(l);
    if (l->good > 1 &&
        hg_fsck_find(l->c,
                     (struct hg_found){ HG_FSCK_WARNING, "good-twice", file, l->line + 1,
                                        "the newest counts; was it run by hand, too?" },
                     "cell %s has good results of %zu submissions", l->id, l->good) < 0)
        return -1;
    if (cell && cell->state == HG_CELL_OK && !l->good)
        return hg_fsck_find(
            l->c,
            (struct hg_found){ HG_FSCK_ERROR, "good-gone", file, l->line + 1,
                               "restore it from a backup; hpcgrid takes the cell for "
                               "done, so only a new run computes it again" },
            "the journal says ok of cell %s, and there is no good result", l->id);
    if (is_unread(l, cell))
        return hg_fsck_find(
            l->c,
            (struct hg_found){ HG_FSCK_WARNING, "good-unread", file, l->line + 1,
                               "tables count it; `hpcgrid retry` would run it again" },
            "cell %s has a good result, and the journal says %s", l->id,
            hg_cell_state_names[cell->state]);
    return 0;
}

static int check_cell(size_t line, const json_t *record, void *context)
{
    struct look l = { .c = context, .line = line };
    char group[HG_GROUP_NAME_MAX];
    struct hg_err why = HG_ERR_INIT;
    struct hg_attempt_list list;
    int rc = 0;

    l.batch = l.c->batch;
    l.id = json_string_value(json_object_get(record, "id"));
    l.cell = json_object_get(record, "cell");
    if (!l.id || !hg_attempt_is_file_name(l.id) || !json_is_object(l.cell))
        return 0; /* said already */
    hg_attempt_group_name(l.batch, line, group);
    if (hg_attempt_list(&l.c->group, l.batch, line, l.id, &list, &why) < 0)
        return hg_fsck_find(
            l.c,
            (struct hg_found){ HG_FSCK_ERROR, "folder", group, 0, "see who made it, and its mode" },
            "%s", why.text); /* nobody knows what is in it */
    for (size_t i = 0; i < list.n && rc == 0; i++)
        rc = check_attempt(&l, &list.items[i]);
    return rc == 0 ? compare_journal(&l) : rc;
}

/* ---- What lies there ---- */

/* Is the planned cell of this id in this group? */
static bool is_in_group(const struct hg_check *c, const char *id, size_t len)
{
    size_t place = hg_map_find(&c->ids, id, len);

    return !c->complete || (place != HG_MAP_NONE && place == hg_fsck_place(c->batch, c->line));
}

static int check_attempt_name(struct hg_check *c, const char *file, const char *name,
                              const struct stat *st)
{
    unsigned submission, restarts;
    size_t id_len;
    bool is = hg_attempt_name_parse(name, &id_len, &submission, &restarts) && S_ISDIR(st->st_mode);

    if (is && is_in_group(c, name, id_len))
        return hg_fsck_each(c, file, NULL);
    return hg_fsck_find(c,
                        (struct hg_found){ HG_FSCK_WARNING, "alien", file, 0,
                                           is ? "nothing reads it; was it copied from another run?"
                                              : "nothing reads it; move it away" },
                        is ? "is of no cell that is planned there" : "is no attempt's folder");
}

static int find_in_pack(struct hg_check *c, const char *file, const struct hg_attempt_files *f)
{
    int rc = 0;

    if (!is_in_group(c, f->id, strlen(f->id)))
        rc = hg_fsck_find(
            c,
            (struct hg_found){ HG_FSCK_WARNING, "alien", file, 0,
                               "nothing reads it; was the pack copied from another run?" },
            "has attempt %u.%u of %s, a cell that is not planned there", f->submission, f->restarts,
            f->id);
    if (rc == 0 && f->folder)
        rc = hg_fsck_find(c,
                          (struct hg_found){ HG_FSCK_NOTE, "half-packed", file, 0,
                                             "`hpcgrid collect RUN --compact` finishes it" },
                          "attempt %u.%u of %s has its folder, too: whoever packed it was stopped",
                          f->submission, f->restarts, f->id);
    return rc;
}

/* What a pack has, one finding of a kind. */
static int check_pack(struct hg_check *c, const char *file)
{
    const struct hg_attempt_group *g = &c->group;
    struct hg_err why = HG_ERR_INIT;
    int rc = hg_fsck_is_plain(c, file);

    if (rc != 1)
        return rc == -1 ? -1 : 0;
    if (hg_attempt_group_read(&c->group, file, &why) < 0)
        return hg_fsck_find(c, (struct hg_found){ HG_FSCK_ERROR, "pack", file, 0, RESTORE_PACK },
                            "%s", why.text);
    rc = 0;
    if (g->walk.damaged)
        rc = hg_fsck_find(c, (struct hg_found){ HG_FSCK_ERROR, "pack", file, 0, RESTORE_PACK },
                          "damaged in %llu place%s, first at byte %llu: what stood there is lost",
                          (unsigned long long)g->walk.damaged, hg_text_s(g->walk.damaged),
                          (unsigned long long)g->walk.where);
    if (rc == 0 && g->strange)
        rc = hg_fsck_find(c,
                          (struct hg_found){ HG_FSCK_WARNING, "alien", file, 0,
                                             "nothing reads them; who has put them there?" },
                          "has %zu file%s of no attempt", g->strange, hg_text_s(g->strange));
    for (size_t i = 0; i < g->n && rc == 0; i++)
        if (g->items[i].parts)
            rc = find_in_pack(c, file, &g->items[i]);
    return rc;
}

static int check_group_name(struct hg_check *c, const char *file, const char *name,
                            const struct stat *st)
{
    size_t number;
    bool pack;

    if (strstr(name, ".tar.tmp.")) /* being written, or a leftover */
        return 0;
    if (hg_attempt_group_parse(name, &c->batch, &number, &pack) && (pack || S_ISDIR(st->st_mode))) {
        c->line = number * HG_GROUP_LINES;
        return pack ? check_pack(c, file) : hg_fsck_each(c, file, check_attempt_name);
    }
    return hg_fsck_find(
        c, (struct hg_found){ HG_FSCK_WARNING, "alien", file, 0, "nothing reads it; move it away" },
        "is no folder or pack of attempts");
}

/* Attempts that a job made, and no journal: somebody has removed it. */
static int check_gone(struct hg_check *c)
{
    if (c->has_journal || !c->f->attempts || !c->claims)
        return 0;
    return hg_fsck_find(
        c,
        (struct hg_found){ HG_FSCK_ERROR, "missing", "events.jsonl", 0,
                           "restore it from a backup; results still count, but cells "
                           "without one would be submitted again" },
        "is not there, though jobs of submissions have run");
}

int hg_fsck_cells(struct hg_check *c)
{
    const json_t *list = json_object_get(c->plan, "batches"), *batch;
    size_t i;

    json_array_foreach(list, i, batch) {
        char file[40];

        c->batch = (int)i + 1;
        snprintf(file, sizeof file, "batches/%d.cells.jsonl", c->batch);
        if (hg_fsck_is_plain(c, file) == 1 &&
            hg_plan_each_cell(c->rd->path, c->batch, check_cell, c, NULL) < 0 && c->err->code)
            return -1;
    }
    return hg_fsck_each(c, "cells", check_group_name) < 0 ? -1 : check_gone(c);
}
