/* SPDX-License-Identifier: Apache-2.0 */
/* hold and release: a sweep, or a part of it, starts nothing more for a while. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/ranges.h"
#include "base/text.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/picks.h"
#include "cmd/session.h"
#include "drive/overlay.h"
#include "drive/requests.h"
#include "rundir/reasons.h"

static const char *reports, *select_text;
static bool as_json;

static const struct hg_opt opts[] = {
    { HG_OPT_STRING, 's', "select", &select_text, "SELECTOR", "only these cells", 0, 0 },
    { HG_OPT_FLAG, 'j', "json", &as_json, NULL, "print JSON", 0, 0 },
    { HG_OPT_STRING, 0, "reports", &reports, "DIR", "where runs are kept (reports)", 0, 0 },
    { 0 },
};

/* What is done, and what came of it. */
struct deed {
    bool hold; /* else release */
    struct hg_session s;
    struct hg_run_state *state;
    struct hg_picks picks;
    size_t unsent; /* picked cells that wait for hpcgrid */
    size_t queued; /* ... that are, or may be, in Slurm's queue */
    size_t active; /* ... that are at work */
    size_t told;   /* tasks that Slurm was told about */
    size_t denied; /* tasks that only an administrator may let go */
};

static void count_picked(struct deed *d)
{
    for (size_t b = 0; b < d->state->batches.n; b++)
        for (size_t i = 0; i < d->state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &d->state->batches.items[b].cells[i];

            if (!hg_picks_has(&d->picks, (int)b + 1, (uint32_t)i))
                continue;
            d->unsent += cell->state == HG_CELL_WAITING && (d->hold || cell->held);
            d->queued += cell->state >= HG_CELL_INTENDED && cell->state <= HG_CELL_PENDING;
            d->active += cell->state == HG_CELL_RUNNING;
        }
}

/* Has this pending job to be told? Not what only an administrator may let go. */
static bool is_to_tell(const struct deed *d, const struct hg_exec_job *job)
{
    bool held = hg_reason_is_hold(job->reason);

    if (d->hold || !held)
        return d->hold && !held;
    return !hg_reason_is_admin_hold(job->reason);
}

/* A task that is to be told. Slurm shows tasks that were held apart one by one; they are told together. */
struct task {
    uint32_t job_id, index;
};

struct tasks {
    struct task *items;
    size_t n, cap;
};

/* Add the tasks of a job whose cells are picked. */
static int pick_tasks(struct deed *d, const struct hg_exec_job *job,
                      const struct hg_submission *sub, struct tasks *list, struct hg_err *err)
{
    const char *tasks = job->wide_tasks ? job->wide_tasks : job->tasks;
    struct hg_ranges set = HG_RANGES_INIT;
    bool tell = is_to_tell(d, job), denied = !d->hold && hg_reason_is_admin_hold(job->reason);
    int rc = hg_ranges_parse(tasks, UINT32_MAX - 1, &set, err);

    for (size_t i = 0; i < set.n && rc == 0; i++)
        for (uint32_t k = set.items[i].first; k <= set.items[i].last && rc == 0; k++) {
            struct task *slot;

            if (!hg_run_cell_find(d->state, sub->batch, sub->offset + k) ||
                !hg_picks_has(&d->picks, sub->batch, sub->offset + k))
                continue;
            d->denied += denied;
            slot = tell ? HG_VEC_PUSH(list) : NULL;
            if (slot)
                *slot = (struct task){ job->job_id, k };
            else if (tell)
                rc = hg_err_oom(err);
        }
    hg_ranges_done(&set);
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
static int tell_job(struct deed *d, const struct task *tasks, size_t n, struct hg_err *err)
{
    struct hg_ranges set = HG_RANGES_INIT;
    struct hg_buf text = HG_BUF_INIT;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = hg_ranges_add(&set, tasks[i].index);
    hg_ranges_format(&set, &text);
    if (rc < 0 || text.failed)
        rc = hg_err_oom(err);
    else
        rc = d->s.executor->hold(d->s.exec, tasks->job_id, hg_buf_str(&text), d->hold, err);
    d->told += rc == 0 ? n : 0;
    hg_ranges_done(&set);
    hg_buf_done(&text);
    return rc;
}

static int tell_jobs(struct deed *d, const struct hg_exec_jobs *jobs, struct hg_err *err)
{
    struct tasks list = { 0 };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < jobs->n; i++) {
        const struct hg_submission *sub = hg_run_submission_find(d->state, jobs->items[i].key);

        if (sub && strcmp(jobs->items[i].state, "PENDING") == 0)
            rc = pick_tasks(d, &jobs->items[i], sub, &list, err);
    }
    if (list.n)
        qsort(list.items, list.n, sizeof *list.items, compare_tasks);
    for (size_t i = 0, n; i < list.n && rc == 0; i += n) {
        for (n = 1; i + n < list.n && list.items[i + n].job_id == list.items[i].job_id;)
            n++;
        rc = tell_job(d, &list.items[i], n, err);
    }
    HG_VEC_DONE(&list);
    return rc;
}

/* Straight to Slurm, by key: whoever drives the run, and if nobody does. */
static int tell_slurm(struct deed *d, struct hg_err *err)
{
    struct hg_exec_jobs jobs;
    int rc;

    rc = d->s.executor->poll(d->s.exec, &jobs, err);
    if (rc < 0)
        return -1;
    rc = hg_drive_overlay(d->state, &jobs, err);
    if (rc == 0)
        rc = tell_jobs(d, &jobs, err);
    hg_exec_jobs_done(&jobs);
    return rc;
}

/* If nobody drives the run, write down what was asked for. Whoever does, does it himself. */
static void settle(const struct deed *d)
{
    struct hg_session_back back = { .reports = reports,
                                    .run = d->s.rd.path,
                                    .command = d->hold ? "hold" : "release",
                                    .send_nothing = true };
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_drive_pass pass;
    struct hg_session s;

    if (hg_session_resume(&s, &back, &errs) == 0) {
        if (hg_drive_pass(s.drive, &pass, &err) == 0)
            hg_drive_finish(s.drive, &err);
        hg_session_done(&s);
    }
    hg_errs_done(&errs);
}

static void print_json(const struct deed *d)
{
    json_t *answer =
        json_pack("{s:o,s:b,s:I,s:I,s:I,s:I}", "run", hg_json_text(d->s.rd.path), "held", d->hold,
                  "waiting", (json_int_t)d->unsent, "told", (json_int_t)d->told, "denied",
                  (json_int_t)d->denied, "running", (json_int_t)d->active);
    struct hg_buf text = HG_BUF_INIT;

    hg_json_dump(answer, HG_JSON_INDENT, &text);
    puts(hg_buf_str(&text));
    hg_buf_done(&text);
    json_decref(answer);
}

static void print_text(const struct deed *d)
{
    const char *path = d->s.rd.path;

    if (d->hold && !d->unsent && !d->queued && !d->active)
        hg_info("nothing is left that could be held; %s",
                select_text ? "these cells are, should they run again"
                            : "what is added, or runs again, is");
    else if (!d->hold && !d->unsent && !d->told && !d->denied)
        hg_info("nothing is held");
    else if (d->hold)
        hg_info(
            "not to be submitted: %zu; held in Slurm: %zu; `hpcgrid release %s` lets them start",
            d->unsent, d->told, path);
    else
        hg_info("let go in Slurm: %zu; to be submitted: %zu", d->told, d->unsent);
    if (!d->hold && d->unsent)
        hg_info("whoever drives the run sends them within a minute, else `hpcgrid resume %s`",
                path);
    if (d->hold && d->active)
        hg_info("at work: %zu; they go on (`hpcgrid cancel` ends them)", d->active);
    if (d->denied)
        hg_warn("held by an administrator, who alone may let them go: %zu (squeue shows "
                "JobHeldAdmin)",
                d->denied);
}

static bool is_live(const struct hg_run_state *state)
{
    for (int s = HG_CELL_INTENDED; s <= HG_CELL_ENDED; s++)
        if (state->counts[s])
            return true;
    return false;
}

static int do_it(struct deed *d, struct hg_err *err)
{
    enum hg_request what = d->hold ? HG_REQUEST_HOLD : HG_REQUEST_RELEASE;

    if (hg_drive_fold_requests(d->s.rd.path, d->state, err) < 0 ||
        hg_picks_make(&d->picks, d->s.rd.path, d->state, select_text, err) < 0)
        return -1;
    if (!hg_picks_any(&d->picks))
        return hg_err_set(err, HG_E_INPUT, "no cell of %s fits", d->s.rd.path);
    if (hg_drive_request(&d->s.rd, what, d->state, select_text ? hg_picks_fits : NULL, &d->picks,
                         err) < 0)
        return -1;
    if (is_live(d->state) && tell_slurm(d, err) < 0)
        return hg_err_hint(err, "the request is noted in the run; the next `hpcgrid resume` or the "
                                "one at work carries it out");
    count_picked(d);
    return 0;
}

static int run(bool hold, const char *word, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct deed d = { .hold = hold };
    int rc = -1;

    if (hg_session_reach(&d.s, reports, word, true, &err) < 0)
        return hg_errs_add(errs, &err);
    d.state = hg_run_state_load(d.s.rd.path, &err);
    if (d.state && hg_session_check_cluster(&d.s, d.state, &err) == 0 && do_it(&d, &err) == 0) {
        rc = d.denied > 0;
        settle(&d);
        (as_json ? print_json : print_text)(&d);
    }
    hg_picks_done(&d.picks);
    hg_run_state_free(d.state);
    hg_session_done(&d.s);
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
    .summary = "Let cells of a run start no more until `release`.",
    .details = "Jobs in the queue are held in Slurm, cells that wait are not submitted, jobs at\n"
               "work go on; without a selector this is true of cells added later, too. Works\n"
               "whoever drives the run: `run`, `watch` and `resume` say what is held and wait\n"
               "for it, `submit` ends. RUN is a run's folder, NAME, NAME/002 or a matrix file.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run_hold,
};

const struct hg_cmd hg_cmd_release = {
    .name = "release",
    .args = "RUN",
    .summary = "Let held cells of a run start again.",
    .details = "Whatever its user holds in Slurm is let go; what an administrator holds stays\n"
               "so, is said, and the exit code is 1. Cells that were not submitted yet are sent\n"
               "by whoever drives the run, else by the next `resume`. RUN is a run's folder,\n"
               "NAME, NAME/002 or a matrix file.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run_release,
};
