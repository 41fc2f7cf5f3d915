/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over GPU memory through NCCL. Ranks find each other over another transport first (MPI), which still carries what is in host
 * memory; NCCL carries what is on the devices, on its own stream. */
#ifndef WK_COMM_NCCL_H
#define WK_COMM_NCCL_H

#include "comm/comm.h"

/* NCCL carries what is in dev's memory from now on. Every rank calls it. wk_comm_close ends it, before the device is closed.
 * Fails with ENV: no NCCL on this machine, two ranks with one GPU, ranks that cannot reach each other. */
int wk_nccl_attach(struct wk_comm *comm, struct wk_dev *dev, struct hg_err *err);

/* wk_comm_give_up of all communicators. */
void wk_nccl_give_up(void);

/* "nccl 2.28.9\n", or why there is none. */
void wk_nccl_describe(struct hg_buf *out);

#endif
