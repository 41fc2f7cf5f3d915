/* SPDX-License-Identifier: Apache-2.0 */
/* events.jsonl: every line by its checksum, then all of them together, then against the plan. */
#include "inspect/fsck_journal.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "rundir/events.h"

#define FILE_NAME "events.jsonl"
#define JOURNAL_MAX ((size_t)1 << 30)
#define RESTORE                                                                                     \
    "restore it from a backup; without it, results still count (`hpcgrid collect`), and a new run " \
    "(`hpcgrid run MATRIX --new`) goes on"

/* Lines that are not as they were written. */
static void check_lines(struct hg_check *c, const struct hg_buf *text, size_t *damaged)
{
    const char *p = hg_buf_str(text), *end = p + text->len;

    for (*damaged = 0; p < end; c->f->lines++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));

        if (!nl)
            break;
        if (!hg_run_line_is_whole(p, (size_t)(nl - p)) && ++*damaged)
            hg_check_found(c, HG_FSCK_ERROR, "journal-line", FILE_NAME, c->f->lines + 1, RESTORE,
                           p[0] == '{' ? "the line is damaged: its checksum does not match"
                                       : "the line is not hpcgrid's");
        p = nl + 1;
    }
}

/* All of them together. */
static void fold(struct hg_check *c, const struct hg_buf *text)
{
    struct hg_run_state *state = hg_run_state_create();
    struct hg_err why = HG_ERR_INIT;
    size_t used;

    if (hg_run_state_fold(state, FILE_NAME, hg_buf_str(text), text->len, &used, &why) == 0) {
        c->state = state;
        return;
    }
    hg_run_state_free(state);
    hg_check_found(c, HG_FSCK_ERROR, "journal", FILE_NAME, (size_t)why.line, RESTORE, "%s",
                   why.text);
}

static void check_state(struct hg_check *c)
{
    const struct hg_run_state *state = c->state;

    if (state->torn)
        hg_check_found(c, HG_FSCK_NOTE, "journal-torn", FILE_NAME, c->f->lines + 1,
                       "the next command that drives the run cuts it off",
                       "the last line was cut short: its writer was killed before it acted on "
                       "it");
    if (state->deposed)
        hg_check_found(c, HG_FSCK_NOTE, "journal-deposed", FILE_NAME, 0,
                       "nothing: they do not count",
                       "lines of a process that had lost the lock: %zu", state->deposed);
}

/* The journal may know less than the plan, which has grown since, but not more. */
static void compare_plan(struct hg_check *c)
{
    const json_t *batches = json_object_get(c->plan, "batches");

    for (size_t b = 0; c->plan && b < c->state->batches.n; b++) {
        const json_t *batch = json_array_get(batches, b);
        json_int_t cells = json_integer_value(json_object_get(batch, "cells"));
        size_t known = c->state->batches.items[b].n;

        if ((json_int_t)known > cells)
            hg_check_found(c, HG_FSCK_ERROR, "journal-plan", FILE_NAME, 0,
                           "restore plan.json and batches/ from a backup",
                           "knows %zu cells of batch %zu, plan.json %lld", known, b + 1,
                           (long long)cells);
    }
}

bool hg_fsck_reread(struct hg_check *c)
{
    char *path = hg_rundir_path(c->rd, FILE_NAME);
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

static void check_text(struct hg_check *c, const struct hg_buf *text)
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

void hg_fsck_journal(struct hg_check *c)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err why = HG_ERR_INIT;
    char *path = hg_rundir_path(c->rd, FILE_NAME);
    int plain = hg_check_is_plain(c, FILE_NAME);

    c->has_journal = plain != 0;
    if (plain == 1 && hg_fs_read(path, JOURNAL_MAX, &text, &why) == 0)
        check_text(c, &text);
    else if (plain == 1)
        hg_check_found(c, HG_FSCK_ERROR, "journal", FILE_NAME, 0, RESTORE, "cannot be read: %s",
                       why.text);
    hg_buf_done(&text);
    free(path);
}
