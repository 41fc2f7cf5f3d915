/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/ranges.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/picks.h"
#include "cmd/print.h"
#include "cmd/session.h"
#include "drive/requests.h"

#define SETTLE_S 20.0 /* how long to wait for Slurm to end what runs */

static const char *reports, *select_text;
static bool as_json;

static const struct hg_opt opts[] = {
    HG_OPTION_SELECT(&select_text),
    HG_OPTION_JSON(&as_json),
    HG_OPTION_REPORTS(&reports),
    { 0 },
};

static size_t count_picked(const struct hg_run_state *state, const struct hg_picks *picks,
                           size_t *waiting)
{
    size_t live = 0;

    *waiting = 0;
    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &state->batches.items[b].cells[i];

            if (hg_cell_is_over(cell) || !hg_picks_has(picks, (int)b + 1, (uint32_t)i))
                continue;
            if (cell->state == HG_CELL_WAITING)
                ++*waiting;
            else
                live++;
        }
    return live;
}

static int cancel_job(const struct hg_scheduler *s, const struct hg_run_state *state,
                      const struct hg_picks *picks, const struct hg_executor_job *job,
                      const struct hg_submission *sub, struct hg_err *err)
{
    struct hg_ranges hit = HG_RANGES_INIT;
    struct hg_buf text = HG_BUF_INIT;
    int rc = hg_picks_tasks(picks, state, sub, job, &hit, err);

    hg_ranges_format(&hit, &text);
    if (rc == 0 && text.len)
        rc = s->executor->cancel(s->session, job->job_id, hg_buf_str(&text), err);
    hg_ranges_done(&hit);
    hg_buf_done(&text);
    return rc;
}

/* Sent to Slurm at once, whether or not another process drives the run. */
static int cancel_jobs(const struct hg_scheduler *s, const struct hg_run_state *state,
                       const struct hg_picks *picks, struct hg_err *err)
{
    struct hg_executor_jobs jobs;
    int rc = s->executor->poll(s->session, &jobs, err);

    for (size_t i = 0; rc == 0 && i < jobs.n; i++) {
        const struct hg_executor_job *job = &jobs.items[i];
        const struct hg_submission *sub = hg_run_submission_find(state, job->key);

        if (sub && (strcmp(job->state, "PENDING") == 0 || strcmp(job->state, "RUNNING") == 0 ||
                    strcmp(job->state, "SUSPENDED") == 0))
            rc = cancel_job(s, state, picks, job, sub, err);
    }
    if (rc == 0 || jobs.n)
        hg_executor_jobs_done(&jobs);
    return rc;
}

static bool is_settled(const struct hg_run_state *state)
{
    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &state->batches.items[b].cells[i];

            if (cell->cancel && !hg_cell_is_over(cell))
                return false;
        }
    return true;
}

static int cancel(const struct hg_rundir *rd, const struct hg_scheduler *s,
                  const struct hg_run_state *state, struct hg_picks *picks, struct hg_err *err)
{
    size_t waiting, live = count_picked(state, picks, &waiting);

    if (as_json)
        hg_print_json(json_pack("{s:o, s:I, s:I}", "run", hg_json_text(rd->path), "waiting",
                                (json_int_t)waiting, "live", (json_int_t)live));
    if (!live && !waiting) {
        hg_info("nothing to cancel");
        return 0;
    }
    if (hg_drive_request(rd, HG_REQUEST_CANCEL, state, hg_picks_fits, picks, err) < 0)
        return -1;
    if (live && cancel_jobs(s, state, picks, err) < 0)
        return hg_err_hint(err, HG_REACH_NOTED);
    hg_info("not to be submitted any more: %zu; cancel requested: %zu", waiting, live);
    return 0;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_picks picks = { 0 };
    struct hg_reach r;
    int rc = -1;

    (void)argc;
    if (hg_reach_open(&r, reports, argv[0], &err) == 0 &&
        hg_picks_make(&picks, r.rd.path, r.state, select_text, &err) == 0)
        rc = cancel(&r.rd, &r.scheduler, r.state, &picks, &err);
    hg_picks_done(&picks);
    hg_reach_done(&r);
    if (rc < 0)
        return hg_errs_add(errs, &err);
    hg_reach_settle(reports, argv[0], "cancel", is_settled, SETTLE_S);
    return 0;
}

const struct hg_cmd hg_cmd_cancel = {
    .name = "cancel",
    .args = "RUN",
    .summary = "Cancel a run's jobs and submit no more of its cells.",
    .details = "Works whichever process drives the run. Cells that wait are no longer submitted;\n"
               "`retry` runs them.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
