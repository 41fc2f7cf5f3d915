/* SPDX-License-Identifier: Apache-2.0 */
/* How it ended: results of jobs that are gone, and submissions that nobody has seen. */
#include "drive/drive_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/ranges.h"
#include "base/text.h"
#include "plan/batch.h"

#define LOSSES_MAX 3
#define CANCELLED_S 60.0 /* what a person has cancelled and Slurm forgot works on at most so long */
#define MARGIN_S 2.0     /* clocks of two machines */
#define LATE_S 20.0      /* Slurm has noticed the end of a job long before */
#define LATE_NEAR_S 5.0  /* ... a box that is ours alone */
#define LOOK_MAX_S 600.0 /* between two looks at one that Slurm says is at work */
#define LOOKS_MAX 64     /* folders read in one pass, of cells that Slurm says are at work */
#define BACK_S 60.0      /* between two looks for results of cells that have been given up */

/* claim 0: any. */
static int find_claimed(struct hg_drive *d, int batch, uint32_t line, uint32_t claim,
                        struct hg_attempt *a, struct hg_err *err)
{
    *a = (struct hg_attempt){ 0 };
    if (d->o.io.attempt)
        return d->o.io.attempt(d->o.io.context, batch, line, claim, a, err);
    if (line >= d->plan->items[batch - 1].n)
        return 0;
    return hg_attempt_find(&d->group, batch, line, d->plan->items[batch - 1].ids[line], claim,
                           d->plan->run_key, a, err);
}

static int find_attempt(struct hg_drive *d, const struct hg_submission *sub, uint32_t line,
                        struct hg_attempt *a, struct hg_err *err)
{
    return find_claimed(d, sub->batch, line, sub->claim, a, err);
}

/* ---- Verdicts ---- */

static const struct {
    const char *word, *status, *text;
} verdicts[] = {
    { "COMPLETED", "failed", "the job ended well but left no result" },
    { "TIMEOUT", "timeout", "killed at the time limit before it could write a result" },
    { "DEADLINE", "timeout", "killed at its deadline" },
    { "OUT_OF_MEMORY", "oom", "killed: out of memory" },
    { "NODE_FAIL", "node_fail", "its node failed" },
    { "BOOT_FAIL", "node_fail", "its node did not boot" },
    { "CANCELLED", "cancelled", "" },
    { "PREEMPTED", "cancelled", "preempted by another job" },
    { "REVOKED", "cancelled", "revoked" },
};

/* ended: "WORD" or "WORD: detail", the text of an ended cell. What a person has cancelled is cancelled,
 * whatever Slurm calls the way in which it ended. */
static int give_verdict(struct hg_drive *d, const struct hg_submission *sub, uint32_t index,
                        const char *ended, struct hg_err *err)
{
    const struct hg_run_cell *cell =
        hg_run_cell_find(hg_drive_state(d), sub->batch, sub->offset + index);
    size_t n = strcspn(ended, ":");
    char text[256];

    if (cell && cell->cancel) {
        snprintf(text, sizeof text, "it was cancelled; Slurm says %s", ended);
        return hg_drive_tell(d, "verdict", sub, index, "cancelled", 0,
                             strncmp(ended, "CANCELLED", 9) == 0 ? "" : text, err);
    }
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++)
        if (strlen(verdicts[i].word) == n && memcmp(verdicts[i].word, ended, n) == 0)
            return hg_drive_tell(d, "verdict", sub, index, verdicts[i].status, 0, verdicts[i].text,
                                 err);
    snprintf(text, sizeof text, "the job ended without a result (%s)", ended);
    return hg_drive_tell(d, "verdict", sub, index, "failed", 0, text, err);
}

/* Send it again, under its old claim number: whatever is still alive of it keeps the new one away. */
static int send_again(struct hg_drive *d, const struct hg_submission *sub, uint32_t index,
                      const char *why, struct hg_err *err)
{
    return hg_drive_tell(d, "lost", sub, index, "", 0, why, err);
}

/* Could it not start because the run's folder was somewhere else for a while? Nobody drove the run then: what the
 * driver that finds this out has submitted itself failed for another reason. */
static bool was_locked_out(const struct hg_drive *d, const struct hg_submission *sub,
                           const struct hg_run_cell *cell, const char *ended)
{
    double began = hg_drive_now(d) - (hg_drive_mono(d) - d->started_s);

    return hg_drive_never_opened(ended) && !cell->cancel && cell->losses < LOSSES_MAX &&
           sub->t < began;
}

/* Slurm could not start this copy: "Killing non-startable batch job", because its node has just ended the one before ("Job credential
 * revoked"). exec does not exit with 1 without a result of its own. */
static bool was_refused(const char *ended)
{
    return strcmp(ended, "FAILED: exit code 1") == 0;
}

static bool was_completed(const struct hg_drive *d, const struct hg_run_cell *cell)
{
    return cell->state == HG_CELL_ENDED &&
           strncmp(hg_run_text(hg_journal_state(d->journal), cell), "COMPLETED", 9) == 0;
}

/* There is no result, and what Slurm calls the end of the job was not the end of the cell's only copy. NULL: it was. */
static const char *why_again(const struct hg_drive *d, const struct hg_run_cell *cell,
                             const struct hg_attempt *a, const char *ended)
{
    static const char twice[] = "Slurm started it twice, and ended both";

    /* What ended was a copy that found another one at work, which has ended since; or of two that came at a time both gave way. */
    if (a->left || (a->claimed && !a->open && !a->done))
        return twice;
    /* The second copy was killed by what was meant for the first; Slurm knows of one start less than there were. */
    if (a->open && a->restarts > cell->restarts && strncmp(ended, "FAILED: signal 9 ", 17) == 0)
        return twice;
    if (was_refused(ended))
        return "Slurm could not start it";
    /* exec does not exit with 0 then. A controller that forgot its jobs gives their numbers to new ones, and takes the end of an old
     * one for the end of a new one. */
    if (was_completed(d, cell))
        return "Slurm took the end of another job for its own";
    return NULL;
}

/* The job has ended, no process of its cell is alive, and there is no result. */
static int judge_ended(struct hg_drive *d, const struct hg_submission *sub, uint32_t index,
                       const struct hg_run_cell *cell, const struct hg_attempt *a, double gone_s,
                       struct hg_err *err)
{
    const char *ended = hg_run_text(hg_journal_state(d->journal), cell);
    const char *why = why_again(d, cell, a, ended);

    if (!a->claimed && strncmp(ended, "CANCELLED", 9) == 0)
        return give_verdict(d, sub, index, ended, err);
    if (!a->claimed && was_locked_out(d, sub, cell, ended))
        return send_again(d, sub, index, ended, err);
    if (gone_s < d->o.visible_s) {
        d->awaited++;
        return 0;
    }
    if (why && !cell->cancel && cell->losses < LOSSES_MAX)
        return send_again(d, sub, index, why, err);
    return give_verdict(d, sub, index, *ended ? ended : "UNKNOWN", err);
}

/* Is it gone from the table earlier than Slurm purges jobs that have ended? */
static bool was_forgotten(const struct hg_drive *d, const struct hg_submission *sub,
                          const struct hg_drive_task *task)
{
    double known_s = task->seen ? task->gone_s - task->seen_s : hg_drive_now(d) - sub->t;

    return known_s < d->limits.min_job_age_s;
}

/* The job is not in the table any more, was not seen to end, and no process of its cell is alive. */
static int judge_missing(struct hg_drive *d, const struct hg_submission *sub, uint32_t index,
                         const struct hg_run_cell *cell, const struct hg_drive_task *task,
                         const struct hg_attempt *a, double gone_s, struct hg_err *err)
{
    bool shown = sub->number <= d->n_shown && d->shown[sub->number - 1] == d->polls;

    if (d->fresh && !a->claimed && shown && task->missed >= 2 && hg_drive_was_redone(d, cell))
        return send_again(d, sub, index, "the node could not start it", err);
    /* A waiting part of an array leaves no trace when it is cancelled. A job that Slurm forgot is
     * gone as a whole. */
    if (d->fresh && !a->claimed && (cell->cancel || (shown && task->missed >= 2)))
        return give_verdict(d, sub, index, "CANCELLED", err);
    if (task->missed < 2 || gone_s < d->o.visible_s || !d->fresh) {
        d->awaited++;
        return 0;
    }
    if (!a->claimed && cell->losses < LOSSES_MAX)
        return send_again(d, sub, index, "accepted, then forgotten by Slurm", err);
    if (cell->cancel)
        return give_verdict(d, sub, index, "nothing of its end", err);
    if (a->left && cell->losses < LOSSES_MAX)
        return send_again(d, sub, index, "Slurm started it twice, and ended both", err);
    if (a->open && was_forgotten(d, sub, task) && cell->losses < LOSSES_MAX)
        return send_again(d, sub, index, "forgotten by Slurm while it was at work, and ended", err);
    return hg_drive_tell(d, "verdict", sub, index, "lost", 0,
                         a->claimed ? "it began; its job left the queue without a result"
                                    : "accepted and forgotten by Slurm several times",
                         err);
}

/* ---- Results ---- */

/* exec was told to end, and cannot know what for. Slurm does. */
static const struct {
    const char *word, *status, *text;
} causes[] = {
    { "PREEMPTED", "cancelled", "preempted by another job" },
    { "NODE_FAIL", "node_fail", "its node failed" },
    { "BOOT_FAIL", "node_fail", "its node failed" },
    { "TIMEOUT", "timeout", "the time limit was reached" },
    { "DEADLINE", "timeout", "its deadline was reached" },
    { "OUT_OF_MEMORY", "oom", "out of memory" },
};

static int take_result(struct hg_drive *d, const struct hg_submission *sub, uint32_t index,
                       const struct hg_run_cell *cell, const struct hg_attempt *a,
                       struct hg_err *err)
{
    const char *ended = cell->state == HG_CELL_ENDED ? hg_run_text(hg_drive_state(d), cell) : "";
    bool cancelled = strcmp(a->status, "cancelled") == 0;
    size_t n = strcspn(ended, ":");

    for (size_t i = 0; (cancelled || strcmp(a->status, "timeout") == 0) && !cell->cancel &&
                       i < sizeof causes / sizeof *causes;
         i++)
        if (strlen(causes[i].word) == n && memcmp(causes[i].word, ended, n) == 0)
            return hg_drive_tell(d, "result", sub, index, causes[i].status, a->restarts,
                                 cancelled ? causes[i].text : a->error, err);
    /* Slurm had forgotten that it was at work, started a second copy, which left or did not come, and ended the first. */
    if (cancelled && !cell->cancel && cell->losses < LOSSES_MAX &&
        (was_completed(d, cell) || was_refused(ended) || (!*ended && a->left)))
        return send_again(d, sub, index, "Slurm ended it to start it again", err);
    return hg_drive_tell(d, "result", sub, index, a->status, a->restarts, a->error, err);
}

static bool is_good(const struct hg_attempt *a)
{
    return a->done && strcmp(a->status, "ok") == 0;
}

/* May a process of the cell still be at work, whatever Slurm says of its job? What a person has cancelled was told to end. */
static bool may_live(const struct hg_drive *d, const struct hg_run_cell *cell,
                     const struct hg_attempt *a, struct hg_drive_task *task)
{
    bool told = cell->cancel &&
                (cell->state == HG_CELL_ENDED || hg_drive_mono(d) - task->gone_s >= CANCELLED_S);

    return a->open && !told &&
           hg_claim_life(&a->claim, &task->watch, hg_drive_mono(d),
                         hg_plan_heartbeat_s(d->plan->site)) != HG_OWNER_DEAD;
}

static int settle_cell(struct hg_drive *d, int batch, uint32_t line, struct hg_err *err)
{
    const struct hg_run_state *state = hg_journal_state(d->journal);
    const struct hg_run_cell *cell = hg_run_cell_find(state, batch, line);
    struct hg_drive_task *task = &d->tasks[batch - 1][line];
    const struct hg_submission *sub = hg_drive_submission(d, cell->submission);
    double gone_s = hg_drive_mono(d) - task->gone_s;
    uint32_t index = line - sub->offset;
    bool second_left, own;
    struct hg_attempt a;

    if (find_attempt(d, sub, line, &a, err) < 0)
        return -1;
    if (!is_good(&a) && may_live(d, cell, &a, task)) {
        d->awaited++;
        return 0;
    }
    /* A failed first run says nothing of the second, unless that left because the first one was still at work; nor does one that was
     * ended before its cell was sent again. */
    second_left = was_completed(d, cell) && gone_s >= d->o.visible_s;
    own = a.restarts >= cell->restarts &&
          (cell->state == HG_CELL_ENDED || !cell->losses || task->missed >= 2);
    if (is_good(&a) || (a.done && (own || second_left)))
        return take_result(d, sub, index, cell, &a, err);
    if (cell->state == HG_CELL_ENDED)
        return judge_ended(d, sub, index, cell, &a, gone_s, err);
    return judge_missing(d, sub, index, cell, task, &a, gone_s, err);
}

/* ---- Results that are there although Slurm is late ---- */

/* Might its job have ended without our knowing? A controller that does not answer says nothing of those that
 * waited when it last did, either. */
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

/* A good result of the newest attempt is final: whatever its job still does, the cell does not run again for it.
 * A bad one is not: Slurm may be about to requeue the job, and what the matrix's "retry" sends must not
 * meet the old one at work. Returns 1 if the result was taken, 0, or -1. */
static int trust_cell(struct hg_drive *d, int batch, uint32_t line, struct hg_err *err)
{
    const struct hg_run_cell *cell = hg_run_cell_find(hg_journal_state(d->journal), batch, line);
    const struct hg_submission *sub = hg_drive_submission(d, cell->submission);
    struct hg_drive_task *task = &d->tasks[batch - 1][line];
    double mono = hg_drive_mono(d);
    struct hg_attempt a;
    int found;

    d->group.quick = true; /* it is looked at again */
    found = find_attempt(d, sub, line, &a, err);
    d->group.quick = false;
    if (found < 0)
        return -1;
    if (!is_good(&a) || a.superseded || a.restarts < cell->restarts) {
        task->proven_s = 0;
        return 0;
    }
    if (!task->proven_s) {
        task->proven_s = mono;
        task->look_s = mono + late_s(d);
    }
    if (mono - task->proven_s < late_s(d))
        return 0;
    return hg_drive_tell(d, "result", sub, line - sub->offset, a.status, a.restarts, a.error, err) <
                   0
               ? -1
               : 1;
}

/* Is it time to look for its result? Long ones are looked at seldom: each look is twice as far from the one before. */
static bool is_due(const struct hg_drive *d, struct hg_drive_task *task)
{
    double mono = hg_drive_mono(d);

    if (task->look_s && mono < task->look_s)
        return false;
    task->look_step_s = task->look_s ? fmin(2 * task->look_step_s, LOOK_MAX_S) : late_s(d);
    if (!task->look_s) {
        task->look_s = mono + task->look_step_s;
        return false;
    }
    task->look_s = mono + task->look_step_s;
    return true;
}

/* Slurm may take minutes to notice that a job has ended, when its controller or the node's daemon was killed at
 * that moment. */
static int trust_results(struct hg_drive *d, struct hg_err *err)
{
    const struct hg_run_state *state = hg_journal_state(d->journal);
    size_t looks = 0, taken = 0;

    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n && looks < LOOKS_MAX; i++) {
            int rc;

            if (!may_have_ended(d, &state->batches.items[b].cells[i], &d->tasks[b][i]) ||
                !is_due(d, &d->tasks[b][i]))
                continue;
            looks++;
            rc = trust_cell(d, (int)b + 1, (uint32_t)i, err);
            if (rc < 0)
                return -1;
            taken += (size_t)rc;
        }
    if (taken)
        hg_info("good results that Slurm has not noticed: %zu; nothing waits for it", taken);
    return hg_drive_flush(d, err);
}

/* ---- Accounting, for jobs that have left the table ---- */

/* Keys of the submissions with cells that are missing. */
static size_t missing_keys(const struct hg_drive *d, const char **keys, double *since_s)
{
    const struct hg_run_state *state = hg_journal_state(d->journal);
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

static int read_history(struct hg_drive *d, const struct hg_exec_jobs *jobs, struct hg_err *err)
{
    const struct hg_run_state *state = hg_journal_state(d->journal);

    for (size_t i = 0; i < jobs->n; i++) {
        const struct hg_exec_job *job = &jobs->items[i];
        const struct hg_submission *sub = hg_run_submission_find(state, job->key);
        const char *tasks = job->wide_tasks ? job->wide_tasks : job->tasks;
        struct hg_ranges set = HG_RANGES_INIT;
        char ended[128];

        if (!sub || hg_drive_state_of(job) != HG_CELL_ENDED ||
            hg_ranges_parse(tasks, UINT32_MAX - 1, &set, NULL) < 0)
            continue;
        hg_drive_end_text(job, ended);
        for (size_t r = 0; r < set.n; r++)
            for (uint32_t k = set.items[r].first; k <= set.items[r].last; k++) {
                const struct hg_run_cell *cell =
                    hg_run_cell_find(state, sub->batch, sub->offset + k);

                if (!cell || cell->submission != sub->number || cell->state < HG_CELL_PENDING ||
                    cell->state > HG_CELL_RUNNING ||
                    !d->tasks[sub->batch - 1][sub->offset + k].missed)
                    continue;
                d->tasks[sub->batch - 1][sub->offset + k].gone_s = hg_drive_mono(d);
                if (hg_drive_tell(d, "state", sub, k, job->state, job->restarts, ended, err) < 0) {
                    hg_ranges_done(&set);
                    return -1;
                }
            }
        hg_ranges_done(&set);
    }
    return hg_drive_flush(d, err);
}

static int ask_history(struct hg_drive *d, struct hg_err *err)
{
    const struct hg_run_state *state = hg_journal_state(d->journal);
    const char **keys = NULL;
    struct hg_exec_jobs jobs = { 0 };
    struct hg_err why = HG_ERR_INIT;
    double since_s = 0, mono = hg_drive_mono(d);
    size_t n;
    int rc = 0;

    if (!d->limits.accounting || !d->o.executor->history || mono < d->history_due_s)
        return 0;
    keys = calloc(state->submissions.n + 1, sizeof *keys);
    if (!keys)
        return hg_err_oom(err);
    n = missing_keys(d, keys, &since_s);
    if (n) {
        d->history_due_s = mono + (d->o.near ? 2 : 20);
        if (d->o.executor->history(d->o.exec, keys, n, since_s - 60, &jobs, &why) == 0)
            rc = read_history(d, &jobs, err);
        else
            hg_debug("accounting does not answer: %s", why.text);
    }
    hg_exec_jobs_done(&jobs);
    free(keys);
    return rc;
}

/* ---- Submissions in doubt ---- */

/* Did any cell of it begin? */
static int find_claim(struct hg_drive *d, const struct hg_submission *sub, bool *found,
                      struct hg_err *err)
{
    struct hg_ranges set = HG_RANGES_INIT;
    int rc = 0;

    *found = false;
    if (sub->claim != sub->number) /* an older copy's claims say nothing of this one */
        return 0;
    if (hg_ranges_parse(sub->tasks, UINT32_MAX - 1, &set, err) < 0)
        return -1;
    for (size_t i = 0; i < set.n && rc == 0 && !*found; i++)
        for (uint32_t k = set.items[i].first; k <= set.items[i].last && rc == 0 && !*found; k++) {
            struct hg_attempt a;

            rc = find_attempt(d, sub, sub->offset + k, &a, err);
            *found = rc == 0 && a.claimed;
        }
    hg_ranges_done(&set);
    return rc;
}

static int find_history(struct hg_drive *d, const struct hg_submission *sub, bool *found,
                        bool *answered)
{
    const char *key = sub->key;
    struct hg_exec_jobs jobs = { 0 };
    struct hg_err why = HG_ERR_INIT;

    *found = false;
    *answered = true;
    if (!d->limits.accounting || !d->o.executor->history)
        return 0;
    *answered = d->o.executor->history(d->o.exec, &key, 1, sub->t - 60, &jobs, &why) == 0;
    if (!*answered)
        hg_debug("accounting does not answer: %s", why.text);
    *found = jobs.n > 0;
    hg_exec_jobs_done(&jobs);
    return 0;
}

/* The controller has just answered, does not know the key, and a request that was under way has
 * expired: what is left are traces of a job that came, worked and was purged. */
static int settle_doubt(struct hg_drive *d, const struct hg_submission *sub, struct hg_err *err)
{
    bool claimed, recorded = false, answered = true;

    if (find_claim(d, sub, &claimed, err) < 0)
        return -1;
    if (!claimed)
        find_history(d, sub, &recorded, &answered);
    if (!answered)
        return 0;
    if (claimed || recorded)
        hg_info("submission %u (%u cell%s) was accepted", sub->number, sub->n_tasks,
                hg_text_s(sub->n_tasks));
    else
        hg_info("submission %u (%u cell%s) did not arrive; its cells are submitted anew",
                sub->number, sub->n_tasks, hg_text_s(sub->n_tasks));
    return hg_drive_say(d, "settled",
                        json_pack("{s:I,s:b,s:s}", "submission", (json_int_t)sub->number, "found",
                                  claimed || recorded, "by",
                                  claimed    ? "claim"
                                  : recorded ? "history"
                                             : "time"),
                        err);
}

static int settle_doubts(struct hg_drive *d, struct hg_err *err)
{
    const struct hg_run_state *state = hg_journal_state(d->journal);

    for (size_t i = 0; i < state->submissions.n; i++) {
        const struct hg_submission *sub = &state->submissions.items[i];

        if ((sub->state != HG_SUB_INTENDED && sub->state != HG_SUB_AMBIGUOUS) ||
            d->poll_wall_s < sub->until_s + MARGIN_S)
            continue;
        if (settle_doubt(d, sub, err) < 0 || hg_drive_commit(d, err) < 0)
            return -1;
    }
    return 0;
}

/* Cells that were given up for want of a result may have one since. */
static int look_back(struct hg_drive *d, struct hg_err *err)
{
    const struct hg_run_state *state = hg_journal_state(d->journal);
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
            if (find_attempt(d, sub, (uint32_t)i, &a, err) < 0 ||
                (a.done && !a.open &&
                 hg_drive_tell(d, "result", sub, (uint32_t)i - sub->offset, a.status, a.restarts,
                               a.error, err) < 0))
                return -1;
        }
    return hg_drive_flush(d, err);
}

/* Lines of a batch that wait and have a good result all the same: `sbatch batches/1.sh` by hand, or a
 * late end of what was to run again. */
static int find_good(struct hg_drive *d, int batch, struct hg_ranges *good, struct hg_err *err)
{
    const struct hg_run_batch *b = &hg_journal_state(d->journal)->batches.items[batch - 1];

    for (size_t i = 0; i < b->n; i++) {
        struct hg_attempt a;

        if (b->cells[i].state != HG_CELL_WAITING)
            continue;
        if (find_claimed(d, batch, (uint32_t)i, 0, &a, err) < 0)
            return -1;
        if (is_good(&a) && hg_ranges_add(good, (uint32_t)i) < 0)
            return hg_err_oom(err);
    }
    return 0;
}

static int adopt_results(struct hg_drive *d, struct hg_err *err)
{
    char *cells = hg_rundir_path(&d->rd, "cells");
    bool any = d->o.io.attempt || (cells && hg_fs_exists(cells));
    size_t n = hg_journal_state(d->journal)->batches.n;
    int rc = cells ? 0 : hg_err_oom(err);

    for (size_t b = 0; b < n && rc == 0 && any && !d->adopted; b++) {
        struct hg_ranges good = HG_RANGES_INIT;
        struct hg_buf lines = HG_BUF_INIT;

        rc = find_good(d, (int)b + 1, &good, err);
        hg_ranges_format(&good, &lines);
        if (rc == 0 && good.n) {
            hg_info("cells that have a good result already: %zu", hg_ranges_count(&good));
            rc = hg_drive_say(
                d, "adopted",
                json_pack("{s:i,s:s}", "batch", (int)b + 1, "lines", hg_buf_str(&lines)), err);
        }
        hg_ranges_done(&good);
        hg_buf_done(&lines);
    }
    d->adopted = true;
    free(cells);
    return rc < 0 ? -1 : hg_drive_commit(d, err);
}

int hg_drive_settle(struct hg_drive *d, struct hg_err *err)
{
    const struct hg_run_state *state = hg_journal_state(d->journal);
    double mono = hg_drive_mono(d);
    size_t before;

    hg_attempt_group_forget(&d->group); /* what was read in an earlier pass */
    if (look_back(d, err) < 0 || adopt_results(d, err) < 0)
        return -1;
    if (d->fresh && (settle_doubts(d, err) < 0 || ask_history(d, err) < 0))
        return -1;
    if ((d->fresh || d->away_since_s) && trust_results(d, err) < 0)
        return -1;
    if (!d->fresh && (!d->awaited || mono < d->look_due_s))
        return 0;
    before = d->awaited;
    d->awaited = 0;
    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &state->batches.items[b].cells[i];

            if (cell->state >= HG_CELL_PENDING && !hg_cell_is_over(cell) && d->tasks[b][i].gone_s &&
                settle_cell(d, (int)b + 1, (uint32_t)i, err) < 0)
                return -1;
        }
    if (d->awaited != before || d->look_step_s <= 0)
        d->look_step_s = d->o.near ? 0.2 : 1;
    else if (d->look_step_s < 15)
        d->look_step_s *= 2;
    d->look_due_s = mono + d->look_step_s;
    return hg_drive_flush(d, err);
}
