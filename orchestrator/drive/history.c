/* SPDX-License-Identifier: Apache-2.0 */
/* Accounting, for jobs that have left the queue. */
#include "drive/history.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/ranges.h"
#include "drive/news.h"
#include "drive/queue.h"

/* Keys of the submissions with cells that are missing. */
static size_t missing_keys(const struct hg_drive *d, const char **keys, double *since_s)
{
    const struct hg_run_state *state = d->state;
    size_t n = 0;

    for (size_t s = 0; s < state->submissions.n; s++) {
        const struct hg_submission *sub = &state->submissions.items[s];
        const struct hg_run_batch *batch = &state->batches.items[sub->batch - 1];

        for (size_t i = sub->offset; i < batch->n && sub->state == HG_SUB_SUBMITTED; i++) {
            const struct hg_drive_task *task = &d->tasks[sub->batch - 1][i];

            if (batch->cells[i].submission != sub->number ||
                batch->cells[i].state < HG_CELL_PENDING ||
                batch->cells[i].state > HG_CELL_RUNNING || task->missed < 2)
                continue;
            keys[n++] = sub->key;
            if (*since_s == 0 || sub->t < *since_s)
                *since_s = sub->t;
            break;
        }
    }
    return n;
}

/* How the tasks of one record ended. */
static void read_record(struct hg_drive *d, const struct hg_executor_job *job,
                        const struct hg_submission *sub, const struct hg_ranges *set)
{
    char ended[128];

    hg_drive_end_text(job, ended);
    for (size_t r = 0; r < set->n; r++)
        for (uint32_t k = set->items[r].first; k <= set->items[r].last; k++) {
            const struct hg_run_cell *cell =
                hg_run_cell_find(d->state, sub->batch, sub->offset + k);

            if (!cell || cell->submission != sub->number || cell->state < HG_CELL_PENDING ||
                cell->state > HG_CELL_RUNNING || !d->tasks[sub->batch - 1][sub->offset + k].missed)
                continue;
            d->tasks[sub->batch - 1][sub->offset + k].gone_s = hg_drive_mono(d);
            hg_drive_tell(d, "state", sub, k, job->state, job->restarts, ended);
        }
}

static int read_records(struct hg_drive *d, const struct hg_executor_jobs *jobs, struct hg_err *err)
{
    for (size_t i = 0; i < jobs->n; i++) {
        const struct hg_executor_job *job = &jobs->items[i];
        const struct hg_submission *sub = hg_run_submission_find(d->state, job->key);
        struct hg_ranges set = HG_RANGES_INIT;

        if (sub && hg_drive_state_of(job) == HG_CELL_ENDED &&
            hg_run_cells_of(sub, job->tasks, &set, NULL) == 0)
            read_record(d, job, sub, &set);
        hg_ranges_done(&set);
    }
    return hg_drive_flush(d, err);
}

static bool ask(struct hg_drive *d, const char *const *keys, size_t n, double since_s,
                struct hg_executor_jobs *jobs)
{
    struct hg_err why = HG_ERR_INIT;

    *jobs = (struct hg_executor_jobs){ 0 };
    if (d->o.executor->history(d->o.session, keys, n, since_s - 60, jobs, &why) == 0)
        return true;
    hg_debug("accounting does not answer: %s", why.text);
    return false;
}

int hg_drive_read_history(struct hg_drive *d, struct hg_err *err)
{
    struct hg_executor_jobs jobs = { 0 };
    double since_s = 0, mono = hg_drive_mono(d);
    const char **keys;
    size_t n;
    int rc = 0;

    if (!d->limits.accounting || mono < d->history_due_s)
        return 0;
    keys = hg_alloc_zeroed(d->state->submissions.n + 1, sizeof *keys);
    n = missing_keys(d, keys, &since_s);
    if (n) {
        d->history_due_s = mono + (d->o.near ? 2 : 20);
        if (ask(d, keys, n, since_s, &jobs))
            rc = read_records(d, &jobs, err);
    }
    hg_executor_jobs_done(&jobs);
    free(keys);
    return rc;
}

bool hg_drive_is_in_history(struct hg_drive *d, const struct hg_submission *sub, bool *answered)
{
    const char *key = sub->key;
    struct hg_executor_jobs jobs = { 0 };
    bool found;

    *answered = !d->limits.accounting || ask(d, &key, 1, sub->t, &jobs);
    found = jobs.n > 0;
    hg_executor_jobs_done(&jobs);
    return found;
}
