/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment says about the ranks of this job. */
#ifndef WK_COMM_ENVIRONMENT_H
#define WK_COMM_ENVIRONMENT_H

#include "comm/rendezvous.h"

/* Rank and number of ranks from the environment (RANK, WORLD_SIZE, SLURM_*, OMPI_*), before wk_comm_open. */
void wk_comm_environment(int *rank, int *world);
/* This rank's number on its machine; 0 if the environment does not set it. */
int wk_comm_local_rank(void);

/* Where the job's rendezvous is, as set by hpcgrid (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT) or by Slurm alone (SLURM_PROCID,
 * SLURM_STEP_NUM_TASKS; rank 0 is on the first host of the step's node list; port 15000 + the last four digits of the
 * job's number). Fails with ENV when there are several ranks and no address. */
int wk_rendezvous_find(struct wk_rendezvous_place *place, struct hg_err *err);

#endif
