/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_SCHEDULER_H
#define HG_CMD_SCHEDULER_H

#include "cmd/runbox.h"
#include "rundir/events.h"
#include "rundir/rundir.h"
#include "slurm/client/executor.h"

/* The way to the scheduler that a command takes, from its first request to its last. */
struct hg_scheduler {
    const struct hg_executor *executor;
    struct hg_executor_session *session;
    char cluster[64];             /* name of the cluster; "": not known */
    char box[HG_RUNBOX_NAME_MAX]; /* name of the run's own box; "": none */
    bool box_is_gone;             /* a rehearsal's, which ended with it */
};

#define HG_SCHEDULER_DEADLINE_S 60.0 /* of one request: far above what libslurm itself waits */

/* Start the agent of a site (as written; NULL: without one) and see whether the scheduler answers. box: the matrix is for a box
 * (for the hint). Close it also after a failure. */
int hg_scheduler_reach(struct hg_scheduler *s, const json_t *site, bool box, struct hg_err *err);

/* For a run that exists: its own copy of the site, so that all its commands go the same way, and its box. Nothing is requested
 * yet. Close it also after a failure. */
int hg_scheduler_open(struct hg_scheduler *s, const struct hg_rundir *rd, struct hg_err *err);

/* Request the limits and the name of the cluster, a few times if the agent dies. */
int hg_scheduler_ask(struct hg_scheduler *s, struct hg_err *err);

/* The same, and while the scheduler is away (jobs continue without it), wait for it. 1: a signal came. */
int hg_scheduler_wait(struct hg_scheduler *s, const struct hg_rundir *rd, struct hg_err *err);

/* Before a run's jobs are cancelled, held or released: is this the cluster that has them? If it does not answer, yes. */
int hg_scheduler_check_cluster(struct hg_scheduler *s, const struct hg_rundir *rd,
                               const struct hg_run_state *state, struct hg_err *err);

/* Is it a box, which nobody else uses? */
bool hg_scheduler_is_private(const struct hg_scheduler *s);

/* The names stay. */
void hg_scheduler_close(struct hg_scheduler *s);

#endif
