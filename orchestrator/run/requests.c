/* SPDX-License-Identifier: Apache-2.0 */
/* What people ask of a run while somebody else may hold its lock, and what a reader makes of it. */
#include "run/drive_parts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/ranges.h"
#include "base/text.h"

/* A request is "cancel.<nonce>.json" in the run's folder: {"lines": {"<batch>": "0-9,12"}}. */
static bool is_request(const char *name)
{
    size_t n = strlen(name);

    return strncmp(name, "cancel.", 7) == 0 && n > 12 && strcmp(name + n - 5, ".json") == 0;
}

int hg_drive_request_cancel(const struct hg_rundir *rd, const struct hg_run_state *state,
                            bool (*picks)(void *context, int batch, uint32_t line), void *context,
                            struct hg_err *err)
{
    json_t *lines = json_object(), *request = json_pack("{s:o}", "lines", lines);
    char nonce[17], *path;
    int rc = -1;

    hg_text_random_hex(8, nonce);
    path = hg_rundir_path(rd, "cancel.%s.json", nonce);
    for (size_t b = 0; b < state->batches.n; b++) {
        struct hg_ranges set = HG_RANGES_INIT;
        struct hg_buf text = HG_BUF_INIT;
        char name[24];

        for (size_t i = 0; i < state->batches.items[b].n; i++)
            if (!picks || picks(context, (int)b + 1, (uint32_t)i))
                hg_ranges_add(&set, (uint32_t)i);
        hg_ranges_format(&set, &text);
        snprintf(name, sizeof name, "%zu", b + 1);
        if (text.len)
            json_object_set_new(lines, name, json_string(hg_buf_str(&text)));
        hg_ranges_done(&set);
        hg_buf_done(&text);
    }
    if (!path || !request)
        hg_err_oom(err);
    else
        rc = hg_json_save(path, request, err);
    json_decref(request);
    free(path);
    return rc;
}

/* Call each with the batch and lines of every request; name is the file's. */
static int each_request(const char *run_dir,
                        int (*each)(void *context, int batch, const char *lines,
                                    struct hg_err *err),
                        void *context, bool remove, struct hg_err *err)
{
    DIR *dir = opendir(run_dir);
    struct dirent *entry;
    int rc = 0;

    if (!dir)
        return hg_err_sys(err, "cannot read %s", run_dir);
    while (rc == 0 && (entry = readdir(dir))) {
        char *path = is_request(entry->d_name) ? hg_fs_join(run_dir, entry->d_name) : NULL;
        struct hg_json_doc doc = HG_JSON_DOC_INIT;
        struct hg_err why = HG_ERR_INIT;
        const char *batch;
        json_t *lines;

        if (!path)
            continue;
        if (hg_json_load(path, &doc, &why) < 0)
            hg_warn("%s: %s", path, why.text);
        json_object_foreach(json_object_get(doc.root, "lines"), batch, lines) {
            if (rc == 0 && json_is_string(lines))
                rc = each(context, atoi(batch), json_string_value(lines), err);
        }
        if (remove && rc == 0)
            unlink(path);
        hg_json_doc_done(&doc);
        free(path);
    }
    closedir(dir);
    return rc;
}

static json_t *cancel_members(int batch, const char *lines)
{
    return json_pack("{s:i,s:s}", "batch", batch, "lines", lines);
}

static int journal_cancel(void *context, int batch, const char *lines, struct hg_err *err)
{
    struct hg_drive *d = context;

    if (hg_drive_say(d, "cancel", cancel_members(batch, lines), err) < 0)
        return -1;
    return hg_drive_commit(d, err); /* before the request goes away */
}

int hg_drive_read_requests(struct hg_drive *d, struct hg_err *err)
{
    return each_request(d->rd.path, journal_cancel, d, true, err);
}

static int apply_cancel(void *context, int batch, const char *lines, struct hg_err *err)
{
    return hg_run_state_apply(context, "cancel", cancel_members(batch, lines), err);
}

int hg_drive_fold_requests(const char *run_dir, struct hg_run_state *state, struct hg_err *err)
{
    return each_request(run_dir, apply_cancel, state, false, err);
}

/* ---- A reader's look at the job table ---- */

static int overlay_job(struct hg_run_state *state, const struct hg_submission *sub,
                       const struct hg_exec_job *job, struct hg_err *err)
{
    const char *tasks = job->wide_tasks ? job->wide_tasks : job->tasks;
    bool running = hg_drive_state_of(job) == HG_CELL_RUNNING;
    char ended[128];

    hg_drive_end_text(job, ended);
    if (sub->state != HG_SUB_SUBMITTED &&
        hg_run_state_apply(
            state, "settled",
            json_pack("{s:I,s:b}", "submission", (json_int_t)sub->number, "found", 1), err) < 0)
        return -1;
    if (!*tasks)
        return 0;
    return hg_run_state_apply(
        state, "state",
        json_pack("{s:I,s:s,s:s,s:I,s:s}", "submission", (json_int_t)sub->number, "tasks", tasks,
                  "state", running ? "RUNNING" : job->state, "restarts", (json_int_t)job->restarts,
                  "text", hg_drive_state_of(job) == HG_CELL_ENDED ? ended : job->reason),
        err);
}

int hg_drive_overlay(struct hg_run_state *state, const struct hg_exec_jobs *jobs,
                     struct hg_err *err)
{
    /* What was queued or running and is not there has ended; what is there is put back below. */
    for (size_t s = 0; s < state->submissions.n; s++)
        if (state->submissions.items[s].state == HG_SUB_SUBMITTED &&
            hg_run_state_apply(
                state, "state",
                json_pack("{s:I,s:s}", "submission", (json_int_t)s + 1, "state", "GONE"), err) < 0)
            return -1;
    for (size_t i = 0; i < jobs->n; i++) {
        const struct hg_submission *sub = hg_run_submission_find(state, jobs->items[i].key);

        if (sub && sub->state != HG_SUB_REJECTED &&
            overlay_job(state, sub, &jobs->items[i], err) < 0)
            return -1;
    }
    return 0;
}

void hg_drive_verdict(void *context, int batch, size_t line, struct hg_verdict *verdict)
{
    const struct hg_run_state *state = context;
    const struct hg_run_cell *cell = hg_run_cell_find(state, batch, (uint32_t)line);
    const char *word = "pending";

    if (cell && hg_cell_is_over(cell) && cell->state != HG_CELL_REFUSED)
        word = hg_cell_state_names[cell->state];
    else if (cell && (cell->state == HG_CELL_RUNNING || cell->state == HG_CELL_ENDED))
        word = "running";
    snprintf(verdict->status, sizeof verdict->status, "%s", word);
    snprintf(verdict->reason, sizeof verdict->reason, "%s", cell ? hg_run_text(state, cell) : "");
}
