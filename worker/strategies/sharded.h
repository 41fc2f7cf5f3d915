/* SPDX-License-Identifier: Apache-2.0 */
/* What ZeRO's stages and FSDP share: optimizer state, gradients and values cut into parts (shards.h),
 * each rank holding its own. Gradients are divided by N and summed group by group as they become
 * complete, overlapping the rest of backward; where values are cut too, a group's are gathered before its
 * units need them and released afterwards; the next one's gather overlaps. */
#ifndef WK_STRATEGIES_SHARDED_H
#define WK_STRATEGIES_SHARDED_H

#include "strategies/kind.h"
#include "strategies/shards.h"

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
    double whole_elems;  /* pieces of at most so many elements are never released */
    bool keep_all;       /* all groups stay until their backward */
    bool keep_scattered; /* groups do whose units enclose others */
};

/* What such a strategy does; its kind says by `sharding` how it cuts. */
extern const struct wk_strategy_ops wk_sharded_ops;

#endif
