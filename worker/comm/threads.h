/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are threads of one process, for dp and for tests. */
#ifndef WK_COMM_THREADS_H
#define WK_COMM_THREADS_H

#include "comm/comm.h"

extern const struct wk_comm_kind wk_comm_threads;

/* Where they meet. Each thread joins as its own rank,
 * and closes its wk_comm before the hub goes. INPUT: too many. */
#define WK_HUB_MAX 64
struct wk_hub *wk_hub_create(int world, struct hg_err *err);
void wk_hub_free(struct wk_hub *hub);
struct wk_comm *wk_hub_join(struct wk_hub *hub, int rank);
/* A rank ends early: what the others wait for fails, now and from now on. */
void wk_hub_break(struct wk_hub *hub, int rank);

#endif
