/* SPDX-License-Identifier: Apache-2.0 */
/* How cells ended whose jobs are gone or end late in Slurm, and what became of ambiguous submissions. */
#include "drive/settle.h"

#include <math.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/ranges.h"
#include "base/text.h"
#include "drive/ended.h"
#include "drive/history.h"
#include "drive/news.h"
#include "plan/batch.h"

#define MARGIN_S 2.0     /* clocks of two machines */
#define LATE_S 20.0      /* Slurm usually notices the end of a job much earlier */
#define LATE_NEAR_S 5.0  /* ... on a box */
#define LOOK_MAX_S 600.0 /* between two looks at a cell that Slurm shows as running */
#define LOOKS_MAX 64     /* folders read in one pass, of cells that Slurm shows as running */
#define BACK_S 60.0      /* between two looks for results of cells that have been given up */

/* ---- Results of jobs that Slurm still shows ---- */

/* May its job have ended unnoticed? If the controller does not answer, a job that was pending may have ended too. */
static bool may_have_ended(const struct hg_drive *d, const struct hg_run_cell *cell,
                           const struct hg_drive_task *task)
{
    if (task->gone_s) /* Slurm has noticed */
        return false;
    return cell->state == HG_CELL_RUNNING || (cell->state == HG_CELL_PENDING && d->away_since_s);
}

static double late_s(const struct hg_drive *d)
{
    return d->o.near ? LATE_NEAR_S : LATE_S;
}

/* A good result of the newest attempt is final: whatever its job does afterwards, the cell does not run again.
 * A bad one is not: Slurm may be about to requeue the job, and a job sent by the matrix's "retry" must not run
 * at the same time as the old one. Returns 1 if the result was taken, 0, or -1. */
static int trust_cell(struct hg_drive *d, int batch, uint32_t line, struct hg_err *err)
{
    const struct hg_run_cell *cell = hg_run_cell_find(d->state, batch, line);
    const struct hg_submission *sub = hg_drive_submission(d, cell->submission);
    struct hg_drive_task *task = &d->tasks[batch - 1][line];
    double mono = hg_drive_mono(d);
    struct hg_attempt a;
    int found;

    d->group.quick = true; /* it is looked at again */
    found = hg_drive_find_attempt(d, batch, line, sub->claim, &a, err);
    d->group.quick = false;
    if (found < 0)
        return -1;
    if (sub->together > 1) { /* its job goes on, and Slurm says nothing of its end */
        task->done = a.done && !a.open && !a.superseded;
        if (task->done && hg_drive_is_good(&a))
            hg_drive_tell(d, "result", sub, line - sub->offset, a.status, a.restarts, a.error);
        return 0;
    }
    if (!hg_drive_is_good(&a) || a.superseded || a.restarts < cell->restarts) {
        task->proven_s = 0;
        return 0;
    }
    if (!task->proven_s) {
        task->proven_s = mono;
        task->look_s = mono + late_s(d);
    }
    if (mono - task->proven_s < late_s(d))
        return 0;
    hg_drive_tell(d, "result", sub, line - sub->offset, a.status, a.restarts, a.error);
    return 1;
}

/* Is it the turn of a cell that shares its job: have those before it ended? */
static bool is_its_turn(const struct hg_drive *d, int batch, uint32_t line)
{
    const struct hg_run_cell *cells = d->state->batches.items[batch - 1].cells;
    const struct hg_submission *sub = hg_drive_submission(d, cells[line].submission);
    uint32_t before, end;

    hg_drive_mates(d, sub, line - sub->offset, &before, &end);
    for (; before < line; before++)
        if (cells[before].submission == sub->number && !hg_cell_is_over(&cells[before]) &&
            !d->tasks[batch - 1][before].done)
            return false;
    return true;
}

/* Is it time to look for its result? The time between two looks doubles; but of cells that share a job one after another ends. */
static bool is_due(const struct hg_drive *d, int batch, uint32_t line)
{
    const struct hg_run_cell *cell = hg_run_cell_find(d->state, batch, line);
    struct hg_drive_task *task = &d->tasks[batch - 1][line];
    bool shares = hg_drive_submission(d, cell->submission)->together > 1, first = !task->look_s;
    double mono = hg_drive_mono(d);

    if (shares && (task->done || !is_its_turn(d, batch, line)))
        return false;
    if (task->look_s && mono < task->look_s)
        return false;
    task->look_step_s = first || shares ? late_s(d) : fmin(2 * task->look_step_s, LOOK_MAX_S);
    task->look_s = mono + task->look_step_s;
    return shares || !first;
}

/* Slurm may take minutes to notice that a job has ended, when its controller or the node's daemon was killed at
 * that moment. */
static int trust_results(struct hg_drive *d, struct hg_err *err)
{
    const struct hg_run_state *state = d->state;
    size_t looks = 0, taken = 0;

    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n && looks < LOOKS_MAX; i++) {
            int rc;

            if (!may_have_ended(d, &state->batches.items[b].cells[i], &d->tasks[b][i]) ||
                !is_due(d, (int)b + 1, (uint32_t)i))
                continue;
            looks++;
            rc = trust_cell(d, (int)b + 1, (uint32_t)i, err);
            if (rc < 0)
                return -1;
            taken += (size_t)rc;
        }
    if (taken)
        hg_info("good results of jobs that have not ended in Slurm yet: %zu; they count now",
                taken);
    return hg_drive_flush(d, err);
}

/* ---- Ambiguous submissions ---- */

/* Did any cell of it begin? */
static int find_claim(struct hg_drive *d, const struct hg_submission *sub, bool *found,
                      struct hg_err *err)
{
    struct hg_ranges set = HG_RANGES_INIT;
    int rc = 0;

    *found = false;
    if (sub->claim != sub->number) /* claims of an older copy say nothing about this one */
        return 0;
    if (hg_ranges_parse(sub->tasks, UINT32_MAX - 1, &set, err) < 0)
        return -1;
    for (size_t i = 0; i < set.n && rc == 0 && !*found; i++)
        for (uint32_t k = set.items[i].first; k <= set.items[i].last && rc == 0 && !*found; k++) {
            struct hg_attempt a;

            rc = hg_drive_find_attempt(d, sub->batch, sub->offset + k, sub->claim, &a, err);
            *found = rc == 0 && a.claimed;
        }
    hg_ranges_done(&set);
    return rc;
}

/* The controller has just answered and does not know the key, and a request in flight has expired: only traces of a job
 * that was accepted, ran and was purged can exist. */
static int settle_doubt(struct hg_drive *d, const struct hg_submission *sub, struct hg_err *err)
{
    bool claimed, recorded, answered = true;

    if (find_claim(d, sub, &claimed, err) < 0)
        return -1;
    recorded = !claimed && hg_drive_is_in_history(d, sub, &answered);
    if (!answered)
        return 0;
    hg_info("submission %u (%u cell%s) %s", sub->number, sub->n_tasks, hg_text_s(sub->n_tasks),
            claimed || recorded ? "was accepted" : "did not arrive; its cells are submitted again");
    return hg_drive_record(d, "settled",
                           json_pack("{s:I,s:b,s:s}", "submission", (json_int_t)sub->number,
                                     "found", claimed || recorded, "by",
                                     claimed    ? "claim"
                                     : recorded ? "history"
                                                : "time"),
                           err);
}

static int settle_doubts(struct hg_drive *d, struct hg_err *err)
{
    const struct hg_run_state *state = d->state;

    for (size_t i = 0; i < state->submissions.n; i++) {
        const struct hg_submission *sub = &state->submissions.items[i];

        if ((sub->state != HG_SUB_INTENDED && sub->state != HG_SUB_AMBIGUOUS) ||
            d->poll_wall_s < sub->until_s + MARGIN_S)
            continue;
        if (settle_doubt(d, sub, err) < 0)
            return -1;
    }
    return 0;
}

/* Cells that were given up without a result may have one now. */
static int look_back(struct hg_drive *d, struct hg_err *err)
{
    const struct hg_run_state *state = d->state;
    double mono = hg_drive_mono(d);

    if (mono < d->back_due_s)
        return 0;
    d->back_due_s = mono + BACK_S;
    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &state->batches.items[b].cells[i];
            const struct hg_submission *sub;
            struct hg_attempt a;

            if (!cell->guessed || (cell->state == HG_CELL_CANCELLED && !cell->text))
                continue; /* the latter never began */
            sub = hg_drive_submission(d, cell->submission);
            if (hg_drive_find_attempt(d, sub->batch, (uint32_t)i, sub->claim, &a, err) < 0)
                return -1;
            if (a.done && !a.open)
                hg_drive_tell(d, "result", sub, (uint32_t)i - sub->offset, a.status, a.restarts,
                              a.error);
        }
    return hg_drive_flush(d, err);
}

/* Waiting lines of a batch that have a good result: from `sbatch batches/1.sh` by hand, or from a
 * late end of a cell that was to run again. */
static int find_good(struct hg_drive *d, int batch, struct hg_ranges *good, struct hg_err *err)
{
    const struct hg_run_batch *b = &d->state->batches.items[batch - 1];

    for (size_t i = 0; i < b->n; i++) {
        struct hg_attempt a;

        if (b->cells[i].state != HG_CELL_WAITING)
            continue;
        if (hg_drive_find_attempt(d, batch, (uint32_t)i, 0, &a, err) < 0)
            return -1;
        if (hg_drive_is_good(&a))
            hg_ranges_add(good, (uint32_t)i);
    }
    return 0;
}

static int adopt_batch(struct hg_drive *d, int batch, struct hg_err *err)
{
    struct hg_ranges good = HG_RANGES_INIT;
    struct hg_buf lines = HG_BUF_INIT;
    int rc = find_good(d, batch, &good, err);

    hg_ranges_format(&good, &lines);
    if (rc == 0 && good.n) {
        hg_info("cells that already have a good result: %zu", hg_ranges_count(&good));
        hg_drive_say(d, "adopted",
                     json_pack("{s:i,s:s}", "batch", batch, "lines", hg_buf_str(&lines)));
    }
    hg_ranges_done(&good);
    hg_buf_done(&lines);
    return rc;
}

/* Once for each driver. */
static int adopt_results(struct hg_drive *d, struct hg_err *err)
{
    char *cells = hg_rundir_path(&d->rd, "cells");
    bool any = !d->adopted && (d->o.io.attempt || hg_fs_exists(cells));
    int rc = 0;

    free(cells);
    d->adopted = true;
    for (size_t b = 0; b < d->state->batches.n && rc == 0 && any; b++)
        rc = adopt_batch(d, (int)b + 1, err);
    return rc < 0 ? -1 : hg_drive_commit(d, err);
}

/* Cells whose job is gone. */
static int settle_gone(struct hg_drive *d, struct hg_err *err)
{
    double mono = hg_drive_mono(d);
    size_t before = d->awaited;

    if (!d->fresh && (!d->awaited || mono < d->look_due_s))
        return 0;
    d->awaited = 0;
    for (size_t b = 0; b < d->state->batches.n; b++)
        for (size_t i = 0; i < d->state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &d->state->batches.items[b].cells[i];

            if (cell->state >= HG_CELL_PENDING && !hg_cell_is_over(cell) && d->tasks[b][i].gone_s &&
                hg_drive_settle_cell(d, (int)b + 1, (uint32_t)i, err) < 0)
                return -1;
        }
    if (d->awaited != before || d->look_step_s <= 0)
        d->look_step_s = d->o.near ? 0.2 : 1;
    else if (d->look_step_s < 15)
        d->look_step_s *= 2;
    d->look_due_s = mono + d->look_step_s;
    return hg_drive_flush(d, err);
}

int hg_drive_settle(struct hg_drive *d, struct hg_err *err)
{
    hg_attempt_group_forget(&d->group); /* what was read in an earlier pass */
    if (look_back(d, err) < 0 || adopt_results(d, err) < 0)
        return -1;
    if (d->fresh && (settle_doubts(d, err) < 0 || hg_drive_read_history(d, err) < 0))
        return -1;
    if ((d->fresh || d->away_since_s) && trust_results(d, err) < 0)
        return -1;
    return settle_gone(d, err);
}
