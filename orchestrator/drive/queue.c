/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler shows, compared with what the journal knows. */
#include "drive/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/ranges.h"
#include "base/text.h"
#include "drive/news.h"
#include "drive/orders.h"
#include "rundir/reasons.h"

enum hg_cell_state hg_drive_state_of(const struct hg_executor_job *job)
{
    if (strcmp(job->state, "PENDING") == 0)
        return HG_CELL_PENDING;
    if (strcmp(job->state, "RUNNING") == 0 || strcmp(job->state, "SUSPENDED") == 0 ||
        strstr(job->reason, "COMPLETING")) /* the job is not done on all its nodes */
        return HG_CELL_RUNNING;
    return HG_CELL_ENDED;
}

/* What slurmd reports ("0:53") where it cannot open a batch job's output. */
#define NOT_OPENED 53
#define NOT_OPENED_TEXT                                                          \
    "Slurm could not open the job's output or working directory (its exit code " \
    "53): was the run's folder moved?"

bool hg_drive_never_opened(const char *ended)
{
    return strstr(ended, NOT_OPENED_TEXT) != NULL;
}

void hg_drive_end_text(const struct hg_executor_job *job, char out[static 128])
{
    char status[sizeof NOT_OPENED_TEXT] = "";
    bool failed = job->exit_status && strcmp(job->state, "FAILED") == 0;

    if (failed && WIFSIGNALED(job->exit_status) && WTERMSIG(job->exit_status) == NOT_OPENED)
        snprintf(status, sizeof status, "%s", NOT_OPENED_TEXT);
    else if (failed)
        hg_proc_status_format(job->exit_status, status);
    else if (strcmp(job->reason, "None") != 0)
        snprintf(status, sizeof status, "%.63s", job->reason);
    snprintf(out, 128, "%.23s%s%s", job->state, *status ? ": " : "", status);
}

/* Ambiguous or absent submissions that exist after all. */
static int settle_found(struct hg_drive *d, const struct hg_executor_jobs *jobs, struct hg_err *err)
{
    const struct hg_run_state *state = d->state;
    uint32_t last = 0;

    for (size_t i = 0; i < jobs->n; i++) {
        const struct hg_submission *sub = hg_run_submission_find(state, jobs->items[i].key);

        if (!sub || sub->number == last ||
            (sub->state != HG_SUB_INTENDED && sub->state != HG_SUB_AMBIGUOUS &&
             sub->state != HG_SUB_ABSENT))
            continue;
        last = sub->number;
        hg_info("submission %u (%u cell%s) was accepted: job %u", sub->number, sub->n_tasks,
                hg_text_s(sub->n_tasks), jobs->items[i].job_id);
        if (hg_drive_record(d, "settled",
                            json_pack("{s:I,s:b,s:s,s:I}", "submission", (json_int_t)sub->number,
                                      "found", 1, "by", "table", "job",
                                      (json_int_t)jobs->items[i].job_id),
                            err) < 0)
            return -1;
    }
    return 0;
}

/* Only pending reasons that need a person are journalled: the others change all the time. */
static const char *text_of(const struct hg_executor_job *job, enum hg_cell_state next,
                           char ended[static 128])
{
    if (next == HG_CELL_PENDING)
        return hg_reason_find(job->reason)->class == HG_REASON_WAIT ? "" : job->reason;
    if (next == HG_CELL_RUNNING)
        return "";
    hg_drive_end_text(job, ended);
    return ended;
}

bool hg_drive_was_redone(const struct hg_drive *d, const struct hg_run_cell *cell)
{
    const char *last = hg_run_text(d->state, cell);

    return !cell->cancel && cell->losses < 3 && hg_reason_find(last)->class == HG_REASON_REDO;
}

static void read_task(struct hg_drive *d, const struct hg_executor_job *job,
                      const struct hg_submission *sub, uint32_t index)
{
    const struct hg_run_state *state = d->state;
    uint32_t line = sub->offset + index;
    const struct hg_run_cell *cell = hg_run_cell_find(state, sub->batch, line);
    enum hg_cell_state next = hg_drive_state_of(job);
    struct hg_drive_task *task;
    char ended[128];
    const char *text;

    if (!cell)
        return;
    task = &d->tasks[sub->batch - 1][line];
    if (next != HG_CELL_ENDED)
        hg_drive_judge(d, job, sub, index, cell, task);
    if (cell->submission != sub->number || hg_cell_is_over(cell))
        return;
    if (cell->state == HG_CELL_WAITING && next == HG_CELL_ENDED) /* it is to be sent again */
        return;
    task->seen = d->polls;
    task->seen_s = d->poll_s;
    task->missed = 0;
    if (next != HG_CELL_ENDED)
        task->gone_s = 0;
    else if (!task->gone_s || cell->state != HG_CELL_ENDED) /* the wait for its result begins */
        task->gone_s = hg_drive_mono(d);
    text = text_of(job, next, ended);
    if (next == HG_CELL_ENDED && strcmp(job->state, "CANCELLED") == 0 &&
        hg_drive_was_redone(d, cell))
        hg_drive_tell(d, "lost", sub, index, "", 0, hg_run_text(d->state, cell));
    else if (cell->state != next || cell->restarts != job->restarts ||
             strcmp(hg_run_text(d->state, cell), text) != 0)
        hg_drive_tell(d, "state", sub, index, job->state, job->restarts, text);
}

/* For people who watch; not journalled. */
static void count_why(struct hg_drive *d, const struct hg_executor_job *job, uint64_t n)
{
    size_t k = 0;

    if (strcmp(job->state, "PENDING") != 0 || !*job->reason || strcmp(job->reason, "None") == 0)
        return;
    while (k < d->n_whys && strcmp(d->whys[k].reason, job->reason) != 0)
        k++;
    if (k == HG_DRIVE_WHYS)
        return;
    if (k == d->n_whys) {
        d->whys[d->n_whys++] = (struct hg_drive_why){ 0 };
        memcpy(d->whys[k].reason, job->reason, sizeof job->reason);
    }
    d->whys[k].n += n;
}

static int read_job(struct hg_drive *d, const struct hg_executor_job *job,
                    const struct hg_submission *sub, struct hg_err *err)
{
    struct hg_ranges set = HG_RANGES_INIT;

    if (hg_ranges_parse(job->tasks, UINT32_MAX - 1, &set, err) < 0)
        return hg_err_wrap(err, "job %u", job->job_id);
    d->table_tasks += hg_ranges_count(&set);
    count_why(d, job, hg_ranges_count(&set));
    for (size_t i = 0; i < set.n; i++)
        for (uint32_t k = set.items[i].first; k <= set.items[i].last; k++)
            read_task(d, job, sub, k);
    hg_ranges_done(&set);
    return 0;
}

/* Remember that a submission has jobs in the queue. */
static void mark_shown(struct hg_drive *d, const struct hg_submission *sub)
{
    if (sub->number > d->n_shown) {
        size_t n = sub->number * 2;

        d->shown = hg_realloc(d->shown, n * sizeof *d->shown);
        memset(d->shown + d->n_shown, 0, (n - d->n_shown) * sizeof *d->shown);
        d->n_shown = n;
    }
    d->shown[sub->number - 1] = d->polls;
}

/* Cells whose job should be in the table and is not. */
static void mark_missing(struct hg_drive *d)
{
    const struct hg_run_state *state = d->state;

    for (size_t b = 0; b < state->batches.n; b++) {
        for (size_t i = 0; i < state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &state->batches.items[b].cells[i];
            struct hg_drive_task *task = &d->tasks[b][i];

            if (cell->state < HG_CELL_PENDING || hg_cell_is_over(cell) || task->seen == d->polls)
                continue;
            task->missed++;
            if (!task->gone_s)
                task->gone_s = hg_drive_mono(d);
        }
    }
}

int hg_drive_read_queue(struct hg_drive *d, const struct hg_executor_jobs *jobs, struct hg_err *err)
{
    d->table_tasks = d->n_whys = 0;
    d->orders.n = 0;
    if (settle_found(d, jobs, err) < 0)
        return -1;
    for (size_t i = 0; i < jobs->n; i++) {
        const struct hg_submission *sub = hg_run_submission_find(d->state, jobs->items[i].key);

        if (!sub || sub->state == HG_SUB_REJECTED) /* a refused one may leave a failed record */
            continue;
        mark_shown(d, sub);
        if (read_job(d, &jobs->items[i], sub, err) < 0)
            return -1;
    }
    mark_missing(d);
    return hg_drive_flush(d, err);
}
