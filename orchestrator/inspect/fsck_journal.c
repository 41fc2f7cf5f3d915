/* SPDX-License-Identifier: Apache-2.0 */
/* events.jsonl: every line by its checksum, then all of them together, then against the plan. */
#include "inspect/fsck_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"

#define FILE_NAME "events.jsonl"
#define JOURNAL_MAX ((size_t)1 << 30)
#define RESTORE                                                                                     \
    "restore it from a backup; without it, results still count (`hpcgrid collect`), and a new run " \
    "(`hpcgrid run MATRIX --new`) goes on"

/* Lines that are not as they were written. */
static int check_lines(struct hg_check *c, const struct hg_buf *text, size_t *damaged)
{
    const char *p = hg_buf_str(text), *end = p + text->len;

    for (*damaged = 0; p < end; c->f->lines++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));

        if (!nl)
            break;
        if (!hg_run_line_is_whole(p, (size_t)(nl - p)) && ++*damaged &&
            hg_fsck_find(c,
                         (struct hg_found){ HG_FSCK_ERROR, "journal-line", FILE_NAME,
                                            c->f->lines + 1, RESTORE },
                         p[0] == '{' ? "the line is damaged: its checksum does not match"
                                     : "the line is not hpcgrid's") < 0)
            return -1;
        p = nl + 1;
    }
    return 0;
}

/* All of them together: a fold that stops says where. */
static int fold(struct hg_check *c, const struct hg_buf *text)
{
    struct hg_run_state *state = hg_run_state_create();
    struct hg_err why = HG_ERR_INIT;
    size_t used;

    if (hg_run_state_fold(state, FILE_NAME, hg_buf_str(text), text->len, &used, &why) == 0) {
        c->state = state;
        return 0;
    }
    hg_run_state_free(state);
    return hg_fsck_find(
        c, (struct hg_found){ HG_FSCK_ERROR, "journal", FILE_NAME, (size_t)why.line, RESTORE },
        "%s", why.text);
}

static int check_state(struct hg_check *c)
{
    const struct hg_run_state *state = c->state;

    if (state->torn &&
        hg_fsck_find(
            c,
            (struct hg_found){ HG_FSCK_NOTE, "journal-torn", FILE_NAME, c->f->lines + 1,
                               "the next command that drives the run cuts it off" },
            "the last line was cut short: whoever wrote it was stopped, and did not act on "
            "it") < 0)
        return -1;
    if (state->deposed)
        return hg_fsck_find(c,
                            (struct hg_found){ HG_FSCK_NOTE, "journal-deposed", FILE_NAME, 0,
                                               "nothing: they do not count" },
                            "lines of a process that had lost the lock: %zu", state->deposed);
    return 0;
}

/* The journal may know less than the plan, which has grown since, but not more. */
static int compare_plan(struct hg_check *c)
{
    const json_t *batches = json_object_get(c->plan, "batches");

    for (size_t b = 0; c->plan && b < c->state->batches.n; b++) {
        const json_t *batch = json_array_get(batches, b);
        json_int_t cells = json_integer_value(json_object_get(batch, "cells"));

        if ((json_int_t)c->state->batches.items[b].n <= cells)
            continue;
        return hg_fsck_find(c,
                            (struct hg_found){ HG_FSCK_ERROR, "journal-plan", FILE_NAME, 0,
                                               "restore plan.json and batches/ from a backup" },
                            "knows %zu cells of batch %zu, plan.json %lld",
                            c->state->batches.items[b].n, b + 1, (long long)cells);
    }
    return 0;
}

bool hg_fsck_reread(struct hg_check *c)
{
    char *path = hg_rundir_path(c->rd, FILE_NAME);
    struct hg_run_state *now = NULL;
    struct stat st;

    if (path && c->state && stat(path, &st) == 0 && st.st_size != c->journal_size)
        now = hg_run_state_load(c->rd->path, NULL);
    free(path);
    if (!now)
        return false;
    hg_run_state_free(c->state);
    c->state = now;
    c->journal_size = st.st_size;
    return true;
}

int hg_fsck_journal(struct hg_check *c)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err why = HG_ERR_INIT;
    char *path = hg_rundir_path(c->rd, FILE_NAME);
    size_t damaged = 0;
    int rc = path ? hg_fsck_is_plain(c, FILE_NAME) : hg_err_oom(c->err);

    c->has_journal = rc != 0;
    if (rc == 1) {
        if (hg_fs_read(path, JOURNAL_MAX, &text, &why) < 0)
            rc = hg_fsck_find(c,
                              (struct hg_found){ HG_FSCK_ERROR, "journal", FILE_NAME, 0, RESTORE },
                              "cannot be read: %s", why.text);
        else
            rc = check_lines(c, &text, &damaged);
        c->journal_size = (off_t)text.len;
        if (rc == 0 && !why.code && !damaged)
            rc = fold(c, &text);
        if (rc == 0 && c->state)
            rc = check_state(c) < 0 ? -1 : compare_plan(c);
    }
    hg_buf_done(&text);
    free(path);
    return rc == -1 ? -1 : 0;
}
