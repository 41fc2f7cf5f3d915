/* SPDX-License-Identifier: Apache-2.0 */
/* From logits to answers. */
#ifndef WK_DATA_ANSWERS_H
#define WK_DATA_ANSWERS_H

#include "data/features.h"
#include "data/squad.h"

struct wk_answer_options {
    unsigned n_best;       /* best starts and best ends of a feature that are tried together */
    unsigned max_tokens;   /* of an answer */
    double null_threshold; /* v2.0: "no answer" must beat the best answer by more than this */
};
#define WK_ANSWER_OPTIONS_INIT                                \
    {                                                         \
        .n_best = 20, .max_tokens = 30, .null_threshold = 0.0 \
    }
#define WK_ANSWER_N_BEST_MAX 100

/* Collects the best spans of every question over its windows. It borrows squad and features; squad is
 * what the features were made of, read with the same options. */
struct wk_answers;

/* NULL with err set: INPUT for an option out of range or synthetic features. */
struct wk_answers *wk_answers_create(const struct wk_squad *squad,
                                     const struct wk_features *features,
                                     const struct wk_answer_options *options, struct hg_err *err);

void wk_answers_free(struct wk_answers *a);

/* Take the logits of feature i: n values each, for the positions 0 to n - 1. n is at least the
 * feature's length; what follows is padding that competes for the best places, as in the
 * reference, but is never an answer. Features may come in any order, each once. NaN is never
 * best. */
void wk_answers_add(struct wk_answers *a, size_t i, const float *starts, const float *ends,
                    size_t n);

/* The best answer of question q, lent: a part of its text, "" for no answer (v2.0), "empty" where
 * no window had any span, as the reference has it. NULL when the question has no window at all. */
const char *wk_answers_get(struct wk_answers *a, size_t q);

#endif
