/* SPDX-License-Identifier: Apache-2.0 */
/* How a cell ended after its job has ended or left the queue: by its result, otherwise by Slurm's state of the job. */
#include "drive/ended.h"

#include <stdio.h>
#include <string.h>

#include "drive/news.h"
#include "drive/queue.h"

#define LOSSES_MAX 3
/* A process that a person cancelled and Slurm forgot runs for at most this long. */
#define CANCELLED_S 60.0

/* A cell whose job is gone. */
struct gone {
    struct hg_drive *d;
    const struct hg_submission *sub;
    uint32_t index; /* of the task */
    const struct hg_run_cell *cell;
    struct hg_drive_task *task;
    struct hg_attempt a;
    double gone_s;     /* seconds since then */
    const char *ended; /* Slurm's "WORD" or "WORD: detail" for its end; "": it was not shown */
};

static bool is_word(const char *ended, const char *word)
{
    size_t n = strcspn(ended, ":");

    return strlen(word) == n && memcmp(word, ended, n) == 0;
}

/* ---- Verdicts ---- */

static const struct {
    const char *word, *status, *text;
} verdicts[] = {
    { "COMPLETED", "failed", "the job completed but left no result" },
    { "TIMEOUT", "timeout", "killed at the time limit before it could write a result" },
    { "DEADLINE", "timeout", "killed at its deadline" },
    { "OUT_OF_MEMORY", "oom", "killed: out of memory" },
    { "NODE_FAIL", "node_fail", "its node failed" },
    { "BOOT_FAIL", "node_fail", "its node did not boot" },
    { "CANCELLED", "cancelled", "in Slurm, not by hpcgrid" },
    { "PREEMPTED", "cancelled", "preempted by another job" },
    { "REVOKED", "cancelled", "revoked" },
};

/* Was it taken back because its batch asks for something else now? The driver that did may have been killed before it could
 * say so. */
static bool was_recalled(const struct gone *g)
{
    return !g->cell->cancel && !g->cell->removed && hg_drive_is_outdated(g->d, g->sub);
}

/* Was the job ended because a person cancelled, or the matrix lost, another of the cells that shared it? */
static bool was_shared_cancel(const struct gone *g)
{
    uint32_t line, end;

    if (g->cell->cancel || g->cell->removed)
        return false;
    hg_drive_mates(g->d, g->sub, g->index, &line, &end);
    for (; line < end; line++) {
        const struct hg_run_cell *mate = hg_run_cell_find(g->d->state, g->sub->batch, line);

        if (mate->submission == g->sub->number && (mate->cancel || mate->removed))
            return true;
    }
    return false;
}

static void recall(const struct gone *g)
{
    hg_drive_tell(g->d, "recalled", g->sub, g->index, "", 0, NULL);
}

/* What a person has cancelled is cancelled, whatever Slurm calls its end. */
static void give_verdict(const struct gone *g, const char *ended)
{
    char text[256];

    if (is_word(ended, "CANCELLED") && (was_recalled(g) || was_shared_cancel(g))) {
        recall(g);
        return;
    }
    if (g->cell->cancel) {
        snprintf(text, sizeof text, "it was cancelled; Slurm says %s", ended);
        hg_drive_tell(g->d, "verdict", g->sub, g->index, "cancelled", 0,
                      strncmp(ended, "CANCELLED", 9) == 0 ? "" : text);
        return;
    }
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++)
        if (is_word(ended, verdicts[i].word)) {
            hg_drive_tell(g->d, "verdict", g->sub, g->index, verdicts[i].status, 0,
                          verdicts[i].text);
            return;
        }
    snprintf(text, sizeof text, "the job ended without a result (%s)", ended);
    hg_drive_tell(g->d, "verdict", g->sub, g->index, "failed", 0, text);
}

static bool may_send_again(const struct gone *g)
{
    return g->cell->losses < LOSSES_MAX;
}

/* Under its old claim number: a copy that still runs keeps the new one away. */
static void send_again(const struct gone *g, const char *why)
{
    hg_drive_tell(g->d, "lost", g->sub, g->index, "", 0, why);
}

/* Could it not start because the run's folder was elsewhere for a while? No driver ran then: a job that this driver has
 * submitted itself failed for another reason. */
static bool was_locked_out(const struct gone *g)
{
    double began = hg_drive_now(g->d) - (hg_drive_mono(g->d) - g->d->started_s);

    return hg_drive_never_opened(g->ended) && !g->cell->cancel && may_send_again(g) &&
           g->sub->t < began;
}

/* Slurm could not start this copy: "Killing non-startable batch job", because its node has just ended the one before
 * ("Job credential revoked"). exec does not exit with 1 without a result of its own. */
static bool was_refused(const struct gone *g)
{
    return strcmp(g->ended, "FAILED: exit code 1") == 0;
}

static bool was_completed(const struct gone *g)
{
    return strncmp(g->ended, "COMPLETED", 9) == 0;
}

/* Why a cell without a result is sent again: its job has ended in Slurm, but another copy of it may have been the cause.
 * NULL: there is no such sign. */
static const char *why_again(const struct gone *g)
{
    static const char twice[] = "Slurm started it twice, and ended both";
    const struct hg_attempt *a = &g->a;

    /* The copy that ended had found another one running, which has ended since; or two came at once and both left. */
    if (a->left || (a->claimed && !a->open && !a->done))
        return twice;
    /* The second copy was killed by a signal for the first; Slurm knows of one start less than there were. */
    if (a->open && a->restarts > g->cell->restarts &&
        strncmp(g->ended, "FAILED: signal 9 ", 17) == 0)
        return twice;
    if (was_refused(g))
        return "Slurm could not start it";
    if (was_completed(g) && (hg_drive_is_outdated(g->d, g->sub) || g->cell->removed))
        return "it left: the site or the matrix was corrected";
    /* exec does not exit with 0 then. A controller that forgot its jobs gives their numbers to new ones, and takes the end
     * of an old one for the end of a new one. */
    if (was_completed(g))
        return "Slurm took the end of another job for its own";
    return NULL;
}

/* May a process of the cell still be running, whatever Slurm shows for its job? If a person has cancelled the cell, its
 * process was signalled. */
static bool may_live(const struct gone *g)
{
    bool signalled =
        g->cell->cancel && (g->cell->state == HG_CELL_ENDED || g->gone_s >= CANCELLED_S);

    return g->a.open && !signalled &&
           hg_claim_life(&g->a.claim, &g->task->watch, hg_drive_mono(g->d),
                         hg_plan_heartbeat_s(g->d->plan->site)) != HG_OWNER_DEAD;
}

/* Has another cell of its task begun, so that the job ended before the turn of this one? *alive: its process may be at work. They
 * begin in the order of their lines: nothing behind one that waits has begun. */
static int look_at_mates(const struct gone *g, bool *began, bool *alive, struct hg_err *err)
{
    uint32_t line, end;

    *began = *alive = false;
    hg_drive_mates(g->d, g->sub, g->index, &line, &end);
    for (end = g->sub->offset + g->index; line < end; line++) {
        struct gone mate = { .d = g->d,
                             .sub = g->sub,
                             .cell = hg_run_cell_find(g->d->state, g->sub->batch, line),
                             .task = &g->d->tasks[g->sub->batch - 1][line],
                             .gone_s = g->gone_s };

        if (mate.cell->submission != g->sub->number)
            continue;
        if (!hg_cell_is_over(mate.cell) || mate.cell->guessed) {
            if (hg_drive_find_attempt(g->d, g->sub->batch, line, g->sub->claim, &mate.a, err) < 0)
                return -1;
            if (!mate.a.claimed)
                return 0;
            *alive = *alive || may_live(&mate);
        }
        *began = true;
    }
    return 0;
}

/* A cell that did not begin although its job did runs again, whatever became of the job: only what was at work has failed. Returns
 * whether that is so. */
static int judge_turn(const struct gone *g, struct hg_err *err)
{
    bool cancelled = strncmp(g->ended, "CANCELLED", 9) == 0, began, alive;

    if (g->sub->together == 1 || g->a.claimed || g->cell->cancel || g->cell->removed || cancelled)
        return 0;
    if (look_at_mates(g, &began, &alive, err) < 0)
        return -1;
    if (!began)
        return 0;
    if (alive || g->gone_s < g->d->o.visible_s ||
        (g->cell->state != HG_CELL_ENDED && (g->task->missed < 2 || !g->d->fresh)))
        g->d->awaited++;
    else
        recall(g);
    return 1;
}

/* The job has ended, no process of its cell is alive, and there is no result. */
static void judge_ended(const struct gone *g)
{
    const char *why = why_again(g);

    if (!g->a.claimed && strncmp(g->ended, "CANCELLED", 9) == 0)
        give_verdict(g, g->ended);
    else if (!g->a.claimed && was_locked_out(g))
        send_again(g, g->ended);
    else if (g->gone_s < g->d->o.visible_s)
        g->d->awaited++;
    else if (why && !g->cell->cancel && may_send_again(g))
        send_again(g, why);
    else
        give_verdict(g, *g->ended ? g->ended : "UNKNOWN");
}

/* Is it gone from the queue earlier than Slurm purges jobs that have ended? */
static bool was_forgotten(const struct gone *g)
{
    double known_s =
        g->task->seen ? g->task->gone_s - g->task->seen_s : hg_drive_now(g->d) - g->sub->t;

    return known_s < g->d->limits.min_job_age_s;
}

/* The job is not in the queue any more, was not seen to end, and no process of its cell is alive. */
static void judge_missing(const struct gone *g)
{
    const struct hg_drive *d = g->d;
    bool shown = g->sub->number <= d->n_shown && d->shown[g->sub->number - 1] == d->polls;
    bool fresh = d->fresh && !g->a.claimed, missed = g->task->missed >= 2;

    if (fresh && shown && missed && hg_drive_was_redone(d, g->cell))
        send_again(g, "the node could not start it");
    /* A waiting part of an array leaves no trace when it is cancelled. A job that Slurm forgot is gone as a whole. */
    else if (fresh && (g->cell->cancel || (shown && missed)))
        give_verdict(g, "CANCELLED");
    else if (!missed || g->gone_s < d->o.visible_s || !d->fresh)
        g->d->awaited++;
    else if (!g->a.claimed && may_send_again(g))
        send_again(g, "accepted, then forgotten by Slurm");
    else if (g->cell->cancel)
        give_verdict(g, "nothing about its end");
    else if (g->a.left && may_send_again(g))
        send_again(g, "Slurm started it twice, and ended both");
    else if (g->a.open && was_forgotten(g) && may_send_again(g))
        send_again(g, "forgotten by Slurm while it was running, and ended");
    else if (was_recalled(g))
        recall(g);
    else
        hg_drive_tell(g->d, "verdict", g->sub, g->index, "lost", 0,
                      g->a.claimed ? "it began; its job left the queue without a result"
                                   : "accepted and forgotten by Slurm several times");
}

/* ---- Results ---- */

/* exec received a signal and does not know the reason. Slurm does. */
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

static void take_result(const struct gone *g)
{
    const struct hg_attempt *a = &g->a;
    bool cancelled = strcmp(a->status, "cancelled") == 0;
    bool open = (cancelled || strcmp(a->status, "timeout") == 0) && !g->cell->cancel;

    if (cancelled && was_shared_cancel(g)) {
        recall(g);
        return;
    }
    for (size_t i = 0; open && i < sizeof causes / sizeof *causes; i++)
        if (is_word(g->ended, causes[i].word)) {
            hg_drive_tell(g->d, "result", g->sub, g->index, causes[i].status, a->restarts,
                          cancelled ? causes[i].text : a->error);
            return;
        }
    /* Slurm had forgotten that it was running, started a second copy, which left or did not come, and ended the first. */
    if (cancelled && !g->cell->cancel && may_send_again(g) &&
        (was_completed(g) || was_refused(g) || (!*g->ended && a->left)))
        send_again(g, "Slurm ended it to start it again");
    else if (cancelled && was_recalled(g))
        recall(g);
    else
        hg_drive_tell(g->d, "result", g->sub, g->index, a->status, a->restarts, a->error);
}

int hg_drive_settle_cell(struct hg_drive *d, int batch, uint32_t line, struct hg_err *err)
{
    struct gone g = { .d = d,
                      .cell = hg_run_cell_find(d->state, batch, line),
                      .task = &d->tasks[batch - 1][line] };
    bool has_ended = g.cell->state == HG_CELL_ENDED, second_left, own;
    int rc;

    g.sub = hg_drive_submission(d, g.cell->submission);
    g.index = line - g.sub->offset;
    g.gone_s = hg_drive_mono(d) - g.task->gone_s;
    g.ended = has_ended ? hg_run_text(d->state, g.cell) : "";
    if (hg_drive_find_attempt(d, batch, line, g.sub->claim, &g.a, err) < 0)
        return -1;
    /* A failed first run says nothing about the second, unless that left because the first one was still running; nor does
     * one that was ended before its cell was sent again. */
    second_left = was_completed(&g) && g.gone_s >= d->o.visible_s;
    own = g.a.restarts >= g.cell->restarts && (has_ended || !g.cell->losses || g.task->missed >= 2);
    if (!hg_drive_is_good(&g.a) && may_live(&g))
        d->awaited++;
    else if (hg_drive_is_good(&g.a) || (g.a.done && (own || second_left)))
        take_result(&g);
    else if ((rc = judge_turn(&g, err)))
        return rc < 0 ? -1 : 0;
    else if (has_ended)
        judge_ended(&g);
    else
        judge_missing(&g);
    return 0;
}
