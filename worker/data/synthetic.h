/* SPDX-License-Identifier: Apache-2.0 */
/* Features without data: random tokens in sequences whose lengths follow a chosen distribution. For
 * throughput where no data may travel. Feature i depends on the seed and i only. */
#ifndef WK_DATA_SYNTHETIC_H
#define WK_DATA_SYNTHETIC_H

#include "data/features.h"

enum wk_lengths {
    WK_LENGTHS_FIXED,     /* all max_length long */
    WK_LENGTHS_UNIFORM,   /* from min_length to max_length */
    WK_LENGTHS_NORMAL,    /* mean and sd */
    WK_LENGTHS_LOGNORMAL, /* mean and sd of the lengths, not of their logarithms */
    WK_LENGTHS_SQUAD,     /* as the windows of SQuAD dev-v1.1 at 384 tokens, overlap 128 */
};

/* "fixed", "uniform", "normal", "lognormal", "squad"; NULL-terminated, in enum order. For
 * wk_feature_word. */
extern const char *const wk_lengths_names[];

#define WK_SYNTHETIC_MAX 50000000 /* features: they take 3 GiB while they are made */

struct wk_synthetic_options {
    size_t n; /* features, at most WK_SYNTHETIC_MAX */
    uint64_t seed;
    enum wk_lengths lengths;
    uint32_t min_length,
        max_length;  /* tokens of a sequence; other draws are moved to the nearest */
    double mean, sd; /* tokens */
    uint32_t vocab_size;
    struct wk_wordpiece_special special; /* ids that are around the texts and never in them */
    enum wk_labels labels;               /* TRUE: random spans of up to 30 tokens in the text */
};
#define WK_SYNTHETIC_OPTIONS_INIT                                                                \
    {                                                                                            \
        .n = 10000, .seed = 1, .lengths = WK_LENGTHS_SQUAD, .min_length = 16, .max_length = 384, \
        .mean = 176, .sd = 60, .vocab_size = 30522, .special = {                                 \
            .pad = 0,                                                                            \
            .unk = 100,                                                                          \
            .cls = 101,                                                                          \
            .sep = 102,                                                                          \
            .mask = 103                                                                          \
        }                                                                                        \
    }

/* Fails with INPUT when the options contradict each other. wk_features_done frees *out; its starts
 * and ends are NULL. */
int wk_synthetic_build(const struct wk_synthetic_options *options, struct wk_features *out,
                       struct hg_err *err);

#endif
