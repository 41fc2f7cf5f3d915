/* SPDX-License-Identifier: Apache-2.0 */
/* hold and release: cells of a run start only when they are released. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/ranges.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/picks.h"
#include "cmd/print.h"
#include "cmd/session.h"
#include "cmd/state.h"
#include "drive/overlay.h"
#include "drive/requests.h"
#include "rundir/reasons.h"

static const char *reports, *select_text;
static bool as_json;

static const struct hg_opt opts[] = {
    HG_OPTION_SELECT(&select_text),
    HG_OPTION_JSON(&as_json),
    HG_OPTION_REPORTS(&reports),
    { 0 },
};

/* One call of hold or release, and its effect. */
struct change {
    bool hold; /* else release */
    struct hg_reach r;
    struct hg_picks picks;
    size_t unsent; /* picked cells that are not submitted */
    size_t queued; /* ... that are, or may be, in Slurm's queue */
    size_t active; /* ... that run */
    size_t told;   /* tasks that Slurm was requested to hold or release */
    size_t denied; /* tasks that only an administrator may release */
};

static void count_picked(struct change *d)
{
    for (size_t b = 0; b < d->r.state->batches.n; b++)
        for (size_t i = 0; i < d->r.state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &d->r.state->batches.items[b].cells[i];

            if (!hg_picks_has(&d->picks, (int)b + 1, (uint32_t)i))
                continue;
            d->unsent += cell->state == HG_CELL_WAITING && (d->hold || cell->held);
            d->queued += cell->state >= HG_CELL_INTENDED && cell->state <= HG_CELL_PENDING;
            d->active += cell->state == HG_CELL_RUNNING;
        }
}

/* Is a request needed for this pending job? Not for one that only an administrator may release. */
static bool needs_request(const struct change *d, const struct hg_executor_job *job)
{
    bool held = hg_reason_is_hold(job->reason);

    if (d->hold || !held)
        return d->hold && !held;
    return !hg_reason_is_admin_hold(job->reason);
}

/* A task to hold or release. Slurm lists tasks that were held singly one by one; the tasks of one job go into one request. */
struct task {
    uint32_t job_id, index;
};

struct tasks {
    struct task *items;
    size_t n, cap;
};

/* Add the tasks of a job whose cells are picked. */
static int pick_tasks(struct change *d, const struct hg_executor_job *job,
                      const struct hg_submission *sub, struct tasks *list, struct hg_err *err)
{
    bool add = needs_request(d, job), denied = !d->hold && hg_reason_is_admin_hold(job->reason);
    struct hg_ranges hit = HG_RANGES_INIT;
    int rc = hg_picks_tasks(&d->picks, d->r.state, sub, job, &hit, err);

    for (size_t i = 0; rc == 0 && i < hit.n; i++)
        for (uint32_t k = hit.items[i].first; k <= hit.items[i].last; k++) {
            d->denied += denied;
            if (add)
                *HG_VEC_PUSH(list) = (struct task){ job->job_id, k };
        }
    hg_ranges_done(&hit);
    return rc;
}

static int compare_tasks(const void *pa, const void *pb)
{
    const struct task *a = pa, *b = pb;

    if (a->job_id != b->job_id)
        return a->job_id < b->job_id ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* One request for the tasks of one job. */
static int request_job(struct change *d, const struct task *tasks, size_t n, struct hg_err *err)
{
    struct hg_ranges set = HG_RANGES_INIT;
    struct hg_buf text = HG_BUF_INIT;
    int rc;

    for (size_t i = 0; i < n; i++)
        hg_ranges_add(&set, tasks[i].index);
    hg_ranges_format(&set, &text);
    rc = d->r.scheduler.executor->hold(d->r.scheduler.session, tasks->job_id, hg_buf_str(&text),
                                       d->hold, err);
    d->told += rc == 0 ? n : 0;
    hg_ranges_done(&set);
    hg_buf_done(&text);
    return rc;
}

static int request_jobs(struct change *d, const struct hg_executor_jobs *jobs, struct hg_err *err)
{
    struct tasks list = { 0 };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < jobs->n; i++) {
        const struct hg_submission *sub = hg_run_submission_find(d->r.state, jobs->items[i].key);

        if (sub && strcmp(jobs->items[i].state, "PENDING") == 0)
            rc = pick_tasks(d, &jobs->items[i], sub, &list, err);
    }
    if (list.n)
        qsort(list.items, list.n, sizeof *list.items, compare_tasks);
    for (size_t i = 0, n; i < list.n && rc == 0; i += n) {
        for (n = 1; i + n < list.n && list.items[i + n].job_id == list.items[i].job_id;)
            n++;
        rc = request_job(d, &list.items[i], n, err);
    }
    HG_VEC_DONE(&list);
    return rc;
}

/* Sent to Slurm at once, whether or not another process drives the run. */
static int request_slurm(struct change *d, struct hg_err *err)
{
    struct hg_executor_jobs jobs;
    int rc;

    rc = d->r.scheduler.executor->poll(d->r.scheduler.session, &jobs, err);
    if (rc < 0)
        return -1;
    rc = hg_drive_overlay(d->r.state, &jobs, err);
    if (rc == 0)
        rc = request_jobs(d, &jobs, err);
    hg_executor_jobs_done(&jobs);
    return rc;
}

static void print_json(const struct change *d)
{
    json_t *answer =
        json_pack("{s:o,s:b,s:I,s:I,s:I,s:I}", "run", hg_json_text(d->r.rd.path), "held", d->hold,
                  "waiting", (json_int_t)d->unsent, "told", (json_int_t)d->told, "denied",
                  (json_int_t)d->denied, "running", (json_int_t)d->active);

    hg_print_json(answer);
}

static void print_text(const struct change *d)
{
    const char *path = d->r.rd.path;

    if (d->hold && !d->unsent && !d->queued && !d->active)
        hg_info("no cell is left to hold; %s are held", select_text
                                                            ? "these cells, if they run again,"
                                                            : "cells that are added or run again");
    else if (!d->hold && !d->unsent && !d->told && !d->denied)
        hg_info("nothing is held");
    else if (d->hold)
        hg_info(
            "not to be submitted: %zu; held in Slurm: %zu; `hpcgrid release %s` lets them start",
            d->unsent, d->told, path);
    else
        hg_info("released in Slurm: %zu; to be submitted: %zu", d->told, d->unsent);
    if (!d->hold && d->unsent)
        hg_info("the process that drives the run submits them within a minute; if there is none: "
                "`hpcgrid resume %s`",
                path);
    if (d->hold && d->active)
        hg_info("running: %zu; they continue (`hpcgrid cancel` ends them)", d->active);
    if (d->denied)
        hg_warn("held by an administrator, who alone may release them: %zu (squeue shows "
                "JobHeldAdmin)",
                d->denied);
}

static int do_it(struct change *d, struct hg_err *err)
{
    enum hg_request what = d->hold ? HG_REQUEST_HOLD : HG_REQUEST_RELEASE;

    if (hg_drive_fold_requests(d->r.rd.path, d->r.state, err) < 0 ||
        hg_picks_make(&d->picks, d->r.rd.path, d->r.state, select_text, err) < 0)
        return -1;
    if (hg_drive_request(&d->r.rd, what, d->r.state, select_text ? hg_picks_fits : NULL, &d->picks,
                         err) < 0)
        return -1;
    if (hg_state_live(d->r.state) && request_slurm(d, err) < 0)
        return hg_err_hint(err, HG_REACH_NOTED);
    count_picked(d);
    return 0;
}

static int run(bool hold, const char *word, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct change d = { .hold = hold };
    int rc = -1;

    if (hg_reach_open(&d.r, reports, word, &err) == 0 && do_it(&d, &err) == 0) {
        rc = d.denied > 0;
        hg_reach_settle(reports, d.r.rd.path, hold ? "hold" : "release", NULL, 0);
        (as_json ? print_json : print_text)(&d);
    }
    hg_picks_done(&d.picks);
    hg_reach_done(&d.r);
    return rc < 0 ? hg_errs_add(errs, &err) : rc;
}

static int run_hold(int argc, char **argv, struct hg_errs *errs)
{
    (void)argc;
    return run(true, argv[0], errs);
}

static int run_release(int argc, char **argv, struct hg_errs *errs)
{
    (void)argc;
    return run(false, argv[0], errs);
}

const struct hg_cmd hg_cmd_hold = {
    .name = "hold",
    .args = "RUN",
    .summary = "Keep cells of a run from starting until `release`.",
    .details = "Jobs in the queue are held in Slurm, cells that wait are not submitted, running\n"
               "jobs continue; without a selector this also holds cells added later. Works\n"
               "whichever process drives the run: `run`, `watch` and `resume` show what is held\n"
               "and wait for it, `submit` ends.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run_hold,
};

const struct hg_cmd hg_cmd_release = {
    .name = "release",
    .args = "RUN",
    .summary = "Let held cells of a run start again.",
    .details = "Releases whatever its user holds in Slurm; what an administrator holds stays\n"
               "held, with a warning and exit code 1. Cells not submitted yet are submitted by\n"
               "the process that drives the run, or by the next `resume`.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run_release,
};
