/* SPDX-License-Identifier: Apache-2.0 */
/* What lengths features have. */
#ifndef WK_DATA_FEATURES_STATS_H
#define WK_DATA_FEATURES_STATS_H

#include "data/features.h"

struct wk_length_stats {
    size_t n;
    double mean, median, p90, p95, p99; /* between two values in proportion, as numpy's default */
    uint32_t min, max;
};

struct wk_feature_stats {
    struct wk_length_stats features; /* tokens of whole sequences */
    struct wk_length_stats windows;  /* tokens of the text in them */
    struct wk_length_stats questions;
    size_t labelled;                        /* features whose label is not position 0 */
    double below_128, below_192, below_256; /* part of features at most so long */
    double fill;                            /* real tokens among n * max_length */
    double square_fill;   /* mean of (length / max_length)^2: the part of attention that is real */
    double batch_fill[3]; /* real tokens in random batches of 8, 16, 32 padded to their longest */
};

void wk_features_stats(const struct wk_features *f, struct wk_feature_stats *out);

#endif
