/* SPDX-License-Identifier: Apache-2.0 */
/* Where the ranks of a job meet, as the environment tells. */
#ifndef WK_COMM_RENDEZVOUS_FIND_H
#define WK_COMM_RENDEZVOUS_FIND_H

#include "comm/rendezvous.h"

/* What the environment says, as set by hpcgrid (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT) or by Slurm alone (SLURM_PROCID,
 * SLURM_STEP_NUM_TASKS; rank 0 is on the first host of the step's node list; port 15000 + the last four digits of the
 * job's number). Fails with ENV when there are several ranks and nothing says where they meet. */
int wk_rendezvous_find(struct wk_rendezvous_place *place, struct hg_err *err);

#endif
