/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks without MPI, for sites whose srun does not support PMIx: they meet through rank 0 (comm/rendezvous.h), then each is connected to
 * every other. On GPUs it carries only the bookkeeping and NCCL's id, on CPUs all. */
#ifndef WK_COMM_TCP_H
#define WK_COMM_TCP_H

#include "comm/comm.h"
#include "comm/rendezvous.h"

extern const struct wk_comm_kind wk_comm_tcp;

/* Open it after a rendezvous at `place`; `listener` as in wk_rendezvous_open. NULL with err set (ENV): some did not arrive within limit_s seconds. */
struct wk_comm *wk_tcp_open(const struct wk_rendezvous_place *place, int listener, double limit_s,
                            struct hg_err *err);

/* Descriptor of the connection to another rank; -1: there is none to oneself. Lent. */
int wk_tcp_fd(struct wk_comm *comm, int other);

#endif
