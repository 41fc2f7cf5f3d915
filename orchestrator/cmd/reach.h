/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_REACH_H
#define HG_CMD_REACH_H

#include "cmd/scheduler.h"

/* A run whose jobs are cancelled, held or released without its lock: another process may drive it meanwhile. */
struct hg_reach {
    struct hg_rundir rd;
    struct hg_scheduler scheduler;
    struct hg_run_state *state; /* its journal */
};

/* Find the run and the way to its jobs. Fails if the folder was moved or copied, or the cluster is another one. Call
 * hg_reach_done either way. */
int hg_reach_open(struct hg_reach *r, const char *reports, const char *run, struct hg_err *err);
void hg_reach_done(struct hg_reach *r);

/* The hint if Slurm did not get the request. */
#define HG_REACH_NOTED                                                                            \
    "the request is noted in the run; the process that drives it, or the next `hpcgrid resume`, " \
    "carries it out"

#endif
