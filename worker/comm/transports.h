/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which ranks can communicate, and the choice among them. */
#ifndef WK_COMM_TRANSPORTS_H
#define WK_COMM_TRANSPORTS_H

#include "comm/comm.h"

extern const struct wk_comm_kind wk_comm_self, wk_comm_mpi;

/* Join the ranks that this process was started with: alone (self), or through MPI when the
 * environment says that there are several; through TCP where HPCGRID_COMM is "tcp". Fails with ENV when the environment
 * and MPI disagree, as after an srun that started N processes which know nothing of each other:
 * every number would be wrong. NULL on failure; end it with wk_comm_close. */
struct wk_comm *wk_comm_open(struct hg_err *err);

/* Run collectives over dev's memory on the device itself, where its backend supports it (NCCL) and there is more than one rank;
 * every rank calls it. Before the device is closed comes wk_comm_leave. */
int wk_comm_join(struct wk_comm *comm, struct wk_dev *dev, struct hg_err *err);
/* End what devices run of collectives of this process, on any thread, before it ends or when one of its ranks has failed: whoever waits
 * for them gets an error. Takes a few seconds at most. */
void wk_comm_give_up(void);
/* Lines about the transports of this build and their libraries, "key value\n", for doctor. */
void wk_comm_describe(struct hg_buf *out);

#endif
