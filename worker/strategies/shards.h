/* SPDX-License-Identifier: Apache-2.0 */
/* How parameters are cut into equal parts for N ranks. A piece is what one collective moves: some
 * parameters one after the other, padded with zeros to a multiple of N; rank r has its r-th part.
 * Parameters and parts begin at multiples of the device's grain.
 * A group is what comes and goes together: one or more pieces. A rank's shard is its parts of all
 * pieces, in order. Within a group parameters are in the order in which their gradients become
 * ready. */
#ifndef WK_STRATEGIES_SHARDS_H
#define WK_STRATEGIES_SHARDS_H

#include "models/model.h"

enum wk_cut {
    WK_CUT_MODEL,   /* one group */
    WK_CUT_LAYERS,  /* a group for each layer of the model, one for what is outside of layers */
    WK_CUT_BUCKETS, /* parameters, as they become ready, until another would exceed `cap` elements */
    WK_CUT_PARAMS,  /* a group for each unit, a piece for each parameter */
};

struct wk_piece {
    int group;
    size_t n, padded;    /* elements, with zeros */
    size_t at, shard_at; /* first element in the group, in the shard */
};

struct wk_group {
    int first_piece, n_pieces;
    size_t padded;  /* elements of all its pieces */
    size_t at;      /* first element in the whole model */
    int low, high;  /* first and last unit that has parameters here */
    bool scattered; /* there are units in between that have none */
};

/* Where a parameter is. */
struct wk_param_place {
    int group, piece;
    size_t at; /* in the group */
};

struct wk_shards {
    struct wk_group *groups;
    struct wk_piece *pieces;
    struct wk_param_place *places; /* one per parameter */
    bool *touches;                 /* (groups, units): has the unit parameters in the group */
    int n_groups, n_pieces, n_units;
    size_t padded, shard; /* elements of all pieces; of a rank's parts */
};

/* End it with wk_shards_done. */
void wk_shards_make(struct wk_shards *s, const struct wk_model_kind *model, enum wk_cut cut,
                    double cap, int world, size_t grain);
void wk_shards_done(struct wk_shards *s);

bool wk_shards_touch(const struct wk_shards *s, int group, int unit);

#endif
