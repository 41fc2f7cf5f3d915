/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_CLIENT_FAKE_H
#define HG_SLURM_CLIENT_FAKE_H

#include "slurm/client/executor.h"

/* Executor "fake": a scheduler that exists in memory only, keeps its own time and misbehaves as
 * told. Nothing sleeps: time stands still until hg_fake_advance moves it. Configuration:
 *
 *   max_array_size, max_jobs, ambiguous_s, min_job_age_s, accounting   as in struct hg_exec_limits
 *   submits   list, what happens to the first submissions; behind its end all are "ok":
 *             "ok", "again", "env", "refused", "absent" (ambiguous, not there), "created"
 * (ambiguous, there), "late:S" (ambiguous, there S seconds later), "lost:S" (accepted, forgotten S
 *             seconds later; its id is given out again)
 *   polls     list of "ok", "again", "env" for the first polls
 *   down      list of [from_s, to_s]: the controller does not answer
 *   default   action of every task; tasks: {"BATCH:LINE": [action of 1st run, of 2nd, ...]}
 *
 * Action: start_s (pending so long), run_s, state (how Slurm says it ended: "COMPLETED"), result
 * (status that the node writes: "ok"; null: none), result_delay_s (seen so much later), requeue
 * (pending again instead of ending), late_s (the table goes on showing it at work for so long after
 * its result), vanish (gone from the table at its end), reason and held (pending for ever; with the
 * reason "JobHeldAdmin" hold() may not release it), cancelled (what Slurm calls its end when it is cancelled at work: "CANCELLED";
 * "GONE": it leaves the table, too), twice_s (so long after its start the controller forgets that it is at work: it is pending again,
 * and started again beside itself), dies_s (the forgotten copy is killed so long after that, without a result; absent: it ends as usual),
 * requeued (it is not forgotten, but requeued: its restart count rises), refused (the copy that is started beside it never begins, and
 * Slurm says that it ended: "COMPLETED", or "FAILED" with exit code 1), signal (which ended the job, where its state is "FAILED").
 *
 * A started task does what a node does first: it claims its attempt; it leaves when another copy is at work, or when its attempt has
 * ended for good.
 */

/* A result as the run's folder would show it. */
struct hg_fake_attempt {
    bool claimed;
    uint32_t restarts;
    char status[16]; /* "": no result (yet) */
    bool alive;      /* a process is at work on it */
    bool left;       /* a copy left because of it */
};

double hg_fake_now(const struct hg_exec *x);
void hg_fake_advance(struct hg_exec *x, double seconds);

/* Newest attempt of a cell under a claim number, or one of any number with a good result. */
void hg_fake_attempt(const struct hg_exec *x, int batch, uint32_t line, uint32_t claim,
                     struct hg_fake_attempt *attempt);

/* How often the workload of a cell was started, by whatever job. */
unsigned hg_fake_runs(const struct hg_exec *x, int batch, uint32_t line);

/* Tasks accepted while the scheduler still had another unfinished one for the same cell. */
unsigned hg_fake_doubles(const struct hg_exec *x);

/* Most tasks that ever ran at one time. */
unsigned hg_fake_most_running(const struct hg_exec *x);

#endif
