/* SPDX-License-Identifier: Apache-2.0 */
/* What a sharding comes to for a model, before anything is placed. */
#ifndef WK_STRATEGIES_SHARDED_PLAN_H
#define WK_STRATEGIES_SHARDED_PLAN_H

#include "strategies/sharded.h"

/* What a sharding comes to for a model: computed once, by the strategy and by its definition alike. */
struct wk_sharded_plan {
    struct wk_sharding how;
    struct wk_shards shards;
    bool *whole;                      /* (pieces) never released */
    bool *kept;                       /* (groups) stay until their backward */
    bool *alone;                      /* (groups) have a gradient buffer of their own */
    size_t *coming;                   /* (groups) elements that a gather brings */
    size_t whole_n;                   /* elements of all pieces that are never released */
    size_t kept_n;                    /* elements of values of groups that stay */
    size_t value_slot, gradient_slot; /* elements of a buffer that the other groups take in turn */
    int value_slots, gradient_slots;
    size_t stage;   /* elements of each buffer that gradients travel in; 0: none */
    size_t alone_n; /* elements of gradients of groups that have buffers of their own */
};

/* End it with wk_sharded_plan_done. */
void wk_sharded_plan(struct wk_sharded_plan *p, const struct wk_strategy_shape *shape);
void wk_sharded_plan_done(struct wk_sharded_plan *p);

/* Peaks and traffic by the definition, for wk_strategy_ops.state and .expect. */
void wk_sharded_state(const struct wk_strategy_shape *shape, double mem_bytes[WK_MEM_CLASSES]);
void wk_sharded_expect(const struct wk_strategy_shape *shape, const struct wk_work *work,
                       struct wk_expected *out);

#endif
