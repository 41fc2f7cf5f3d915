/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that overlap the rank's work: one thread takes them in the order in which they were
 * started. */
#ifndef WK_COMM_QUEUE_H
#define WK_COMM_QUEUE_H

#include "comm/comm.h"

/* A collective on its way. */
struct wk_request {
    struct wk_comm_op op;
    long step, asked;
    double start_s, end_s, exposed_s;
    uint64_t sent_bytes;
    bool apart; /* ran on the thread */
    struct hg_err error;
};

/* The function that runs one: sets start, end and error. */
typedef void wk_request_run(struct wk_comm *comm, struct wk_request *r, const _Atomic bool *waited);

/* NULL with err set (ENV) if no thread can be started. */
struct wk_comm_queue *wk_queue_open(struct wk_comm *comm, wk_request_run *run, struct hg_err *err);
/* Runs what is left, then ends. */
void wk_queue_close(struct wk_comm_queue *q);

/* Can another one be taken without waiting? Is nothing on its way? */
bool wk_queue_full(struct wk_comm_queue *q);
bool wk_queue_idle(struct wk_comm_queue *q);
void wk_queue_push(struct wk_comm_queue *q, const struct wk_request *r);
/* The oldest one that was pushed, when it is over; *out says how it went, with the seconds that were waited
 * here. */
void wk_queue_pop(struct wk_comm_queue *q, struct wk_request *out);

#endif
