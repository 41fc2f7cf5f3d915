/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator whose ranks tell each other that they live. */
#ifndef WK_COMM_COMM_HEARTBEAT_H
#define WK_COMM_COMM_HEARTBEAT_H

#include "comm/comm.h"

/* Let the ranks watch each other from now on (comm/heartbeat.h); every rank calls it. Where they cannot reach each other
 * over TCP they go on without, with a warning. */
int wk_comm_heartbeat(struct wk_comm *comm, double limit_s, const struct wk_heartbeat_ends *ends,
                      struct hg_err *err);

#endif
