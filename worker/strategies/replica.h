/* SPDX-License-Identifier: Apache-2.0 */
/* A whole copy of the model on this rank: what single and ddp share. Values, gradients and
 * optimizer state are flat, in the order in which gradients become ready (the last parameter
 * first), so that a bucket is a range of them. Parameters begin at multiples of the device's grain. */
#ifndef WK_STRATEGIES_REPLICA_H
#define WK_STRATEGIES_REPLICA_H

#include "strategies/kind.h"

struct wk_replica {
    bool passive; /* set before open: another rank updates, there is no optimizer state here */
    struct wk_span values, gradients;
    /* Of the values, in the type that passes read; absent: they read the values. */
    struct wk_span copies;
    struct wk_span slots[WK_OPTIM_SLOTS_MAX];
    struct wk_span norm; /* (1) square of the gradient's, when there is a control */
    /* With a grain: uint8, one for each of the gradients', 1: a fresh pass overwrites it; absent: none is */
    struct wk_span products;
};

int wk_replica_open(struct wk_replica *r, struct wk_strategy *s, struct hg_err *err);
void wk_replica_close(struct wk_replica *r, struct wk_strategy *s);

/* Gradients to zero, but for those that the next pass overwrites. */
void wk_replica_clear(const struct wk_replica *r, struct wk_strategy *s);
/* wk_strategy_ops.round where s->own begins with a replica. */
int wk_replica_round(struct wk_strategy *s, struct hg_err *err);
void wk_replica_update(const struct wk_replica *r, struct wk_strategy *s, double lr);
/* A part of update number `step`, as soon as its gradients are there: the parameters that become ready as number `ready` up to `end`, which
 * begin at element `at`. Not where there is a control: that needs the norm of all gradients first. */
void wk_replica_update_some(const struct wk_replica *r, struct wk_strategy *s, double lr, long step,
                            int ready, int end, size_t at);
/* wk_strategy_ops.state of a whole copy. */
void wk_replica_state(const struct wk_strategy_shape *shape, double mem_bytes[WK_MEM_CLASSES]);

#endif
