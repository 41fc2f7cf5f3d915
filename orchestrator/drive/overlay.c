/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/overlay.h"

#include <stdio.h>

#include "drive/queue.h"
#include "rundir/events.h"

static int overlay_job(struct hg_run_state *state, const struct hg_submission *sub,
                       const struct hg_executor_job *job, struct hg_err *err)
{
    bool running = hg_drive_state_of(job) == HG_CELL_RUNNING;
    char ended[128];

    hg_drive_end_text(job, ended);
    if (sub->state != HG_SUB_SUBMITTED &&
        hg_run_state_apply(
            state, "settled",
            json_pack("{s:I,s:b}", "submission", (json_int_t)sub->number, "found", 1), err) < 0)
        return -1;
    if (!*job->tasks)
        return 0;
    return hg_run_state_apply(
        state, "state",
        json_pack("{s:I,s:s,s:s,s:I,s:I,s:s}", "submission", (json_int_t)sub->number, "tasks",
                  job->tasks, "state", running ? "RUNNING" : job->state, "restarts",
                  (json_int_t)job->restarts, "start", (json_int_t)job->start_s, "text",
                  hg_drive_state_of(job) == HG_CELL_ENDED ? ended : job->reason),
        err);
}

int hg_drive_overlay(struct hg_run_state *state, const struct hg_executor_jobs *jobs,
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
    snprintf(verdict->reason, sizeof verdict->reason, "%s",
             cell && hg_cell_is_held(cell) ? "held"
             : cell                        ? hg_run_text(state, cell)
                                           : "");
}
