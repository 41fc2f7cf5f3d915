/* SPDX-License-Identifier: Apache-2.0 */
/* What ZeRO's stages and FSDP share: optimizer state, gradients and values cut into parts (shards.h),
 * each rank holding its own. Gradients are divided by N and summed group by group as they become
 * complete, beside the rest of backward; where values are cut too, a group's are gathered before its
 * units need them and let go afterwards, the next one's coming meanwhile. */
#ifndef WK_STRATEGIES_SHARDED_H
#define WK_STRATEGIES_SHARDED_H

#include "strategies/shards.h"
#include "strategies/strategy.h"

/* How a kind shares out. */
struct wk_sharding {
    enum wk_cut cut;
    double cap;          /* elements of a bucket */
    bool values;         /* are cut; else every rank has all */
    bool gradients;      /* are cut */
    bool all_reduce;     /* gradients are all-reduced, else reduce-scattered */
    bool staged;         /* they travel in two buffers of `cap` elements */
    bool masters;        /* updates work on a copy of the values, whatever the precision */
    bool forward_ahead;  /* the next group's values come while this one computes */
    bool backward_ahead; /* the same in backward */
    double ahead_elems;  /* only groups of at most so many elements come early */
    double live_elems;   /* at most so many elements are kept from forward to backward */
    double reuse_elems;  /* groups stay whose backward is fewer elements away */
    double whole_elems;  /* pieces of at most so many elements are never let go */
    bool keep_all;       /* all groups stay until their backward */
    bool keep_scattered; /* those do whose units lie around others */
};

/* What a sharding comes to for a model: computed once, by the strategy and by its definition alike. */
struct wk_sharded_plan {
    struct wk_sharding how;
    struct wk_shards shards;
    bool *whole;                      /* (pieces) never let go */
    bool *kept;                       /* (groups) stay until their backward */
    bool *alone;                      /* (groups) have a gradient buffer of their own */
    size_t *coming;                   /* (groups) elements that a gather brings */
    size_t whole_n;                   /* elements of all pieces that are never let go */
    size_t kept_n;                    /* elements of values of groups that stay */
    size_t value_slot, gradient_slot; /* elements of a buffer that the other groups take in turn */
    int value_slots, gradient_slots;
    size_t alone_n; /* elements of gradients of groups that have buffers of their own */
};

/* End it with wk_sharded_plan_done. */
void wk_sharded_plan(struct wk_sharded_plan *p, const struct wk_strategy_shape *shape,
                     const struct wk_sharding *how);
void wk_sharded_plan_done(struct wk_sharded_plan *p);

/* Peaks and traffic by the definition, for wk_strategy_kind.state and .expect. */
void wk_sharded_state(const struct wk_strategy_shape *shape, const struct wk_sharding *how,
                      double mem_bytes[WK_MEM_CLASSES]);
void wk_sharded_expect(const struct wk_strategy_shape *shape, const struct wk_sharding *how,
                       const struct wk_work *work, struct wk_expected *out);

/* A strategy's hooks are these; open takes its sharding. */
int wk_sharded_open(struct wk_strategy *s, const struct wk_sharding *how, struct hg_err *err);
void wk_sharded_close(struct wk_strategy *s);
int wk_sharded_start(struct wk_strategy *s, struct hg_err *err);
int wk_sharded_round(struct wk_strategy *s, struct hg_err *err);
void wk_sharded_own(struct wk_strategy *s, int param, size_t *first, size_t *n);
int wk_sharded_store(struct wk_strategy *s, int state, int param, const wk_real *host,
                     struct hg_err *err);
int wk_sharded_fetch_own(struct wk_strategy *s, int state, int param, wk_real *host,
                         struct hg_err *err);
int wk_sharded_fetch(struct wk_strategy *s, int state, int param, wk_real *host,
                     struct hg_err *err);
int wk_sharded_before_step(struct wk_strategy *s, bool training, struct hg_err *err);
int wk_sharded_before_forward(struct wk_strategy *s, int unit, struct hg_err *err);
int wk_sharded_after_forward(struct wk_strategy *s, int unit, struct hg_err *err);
int wk_sharded_before_backward(struct wk_strategy *s, int unit, struct hg_err *err);
int wk_sharded_after_backward(struct wk_strategy *s, int unit, struct hg_err *err);
int wk_sharded_update(struct wk_strategy *s, double lr, struct hg_err *err);

#define WK_SHARDED_HOOKS                                                                        \
    .close = wk_sharded_close, .start = wk_sharded_start, .round = wk_sharded_round,            \
    .own = wk_sharded_own, .store = wk_sharded_store, .fetch_own = wk_sharded_fetch_own,        \
    .fetch = wk_sharded_fetch, .before_step = wk_sharded_before_step,                           \
    .before_forward = wk_sharded_before_forward, .after_forward = wk_sharded_after_forward,     \
    .before_backward = wk_sharded_before_backward, .after_backward = wk_sharded_after_backward, \
    .update = wk_sharded_update

#endif
