/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_TESTS_UNIT_SCHEDULER_H
#define HG_TESTS_UNIT_SCHEDULER_H

#include "slurm/client/executor.h"

/* clang-format off */
/* A scheduler that exists in memory only, keeps its own time and misbehaves as configured. Time stands still until
 * mock_advance moves it. Its configuration, a JSON object:
 *
 *   max_array_size, max_jobs, ambiguous_s, min_job_age_s, accounting   as in struct hg_executor_limits
 *   submits   list, what happens to the first submissions; all later ones are "ok":
 *               "ok", "again", "env", "refused"
 *               "absent"    ambiguous, and the job does not exist
 *               "created"   ambiguous, and the job exists
 *               "late:S"    ambiguous, and the job appears S seconds later
 *               "lost:S"    accepted, and forgotten S seconds later; its id is used again
 *   polls     list of "ok", "again", "env" for the first polls
 *   down      list of [from_s, to_s]: the controller does not answer
 *   together  list, by batch: so many lines share a task (1, at most MOCK_TOGETHER_MAX); those in "--cells" run one after another
 *   default   action of every task
 *   tasks     {"BATCH:LINE": [action of the 1st run, of the 2nd, ...]}
 *
 * Members of an action:
 *
 *   start_s         pending for so long
 *   run_s           running for so long
 *   state           Slurm's word for its end ("COMPLETED")
 *   result          status that the node writes ("ok"); null: no result
 *   result_delay_s  the result becomes visible so much later
 *   requeue         it is pending again instead of ending
 *   late_s          the table shows it as running for so long after its result
 *   vanish          it leaves the table when it ends
 *   reason, held    it is pending for ever; with the reason "JobHeldAdmin" hold() cannot release it
 *   cancelled       Slurm's word when it is cancelled while it runs ("CANCELLED"); "GONE": it also leaves the table
 *   twice_s         so long after its start the controller forgets that it runs: it is pending and starts a second time
 *   dies_s          the forgotten copy is killed so long after that, without a result; absent: it ends as usual
 *   requeued        it is requeued instead of forgotten: its restart count rises
 *   refused         the second copy never starts; Slurm's word for its end: "COMPLETED", or "FAILED" with exit code 1
 *   signal          the signal that ended the job, where its state is "FAILED"
 *
 * A task that starts does what a node does first: it claims its attempt. It leaves if another copy is running, or if its
 * attempt has ended for good. Where lines share a task, an action that ends the job (another state than "FAILED", vanish, requeue) ends
 * it there, any other only its own line; late_s counts at the last one.
 */
/* clang-format on */
#define MOCK_TOGETHER_MAX 8
extern const struct hg_executor mock_executor;

/* A result as the run's folder would show it. */
struct mock_attempt {
    bool claimed;
    uint32_t restarts;
    char status[16]; /* "": no result (yet) */
    bool alive;      /* a process is at work on it */
    bool left;       /* a copy left because of it */
};

double mock_now(const struct hg_executor_session *x);
void mock_advance(struct hg_executor_session *x, double seconds);

/* Newest attempt of a cell under a claim number, or one of any number with a good result. */
void mock_attempt(const struct hg_executor_session *x, int batch, uint32_t line, uint32_t claim,
                  struct mock_attempt *attempt);

/* How often the workload of a cell was started, by whatever job. */
unsigned mock_runs(const struct hg_executor_session *x, int batch, uint32_t line);

/* Tasks accepted while the scheduler still had another unfinished one for the same cell. */
unsigned mock_doubles(const struct hg_executor_session *x);

/* Most tasks that ever ran at one time. */
unsigned mock_most_running(const struct hg_executor_session *x);

#endif
