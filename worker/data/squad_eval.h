/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of predicted answers, as the official evaluation scripts of SQuAD compute them, and
 * predicted answers from a model's logits. */
#ifndef WK_DATA_SQUAD_EVAL_H
#define WK_DATA_SQUAD_EVAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "data/features.h"
#include "data/squad.h"

/* ---- Scores ---- */

/* EM and F1 in percent over n questions. */
struct wk_squad_figures {
    size_t n;
    double exact, f1;
};

struct wk_squad_score {
    /* v1.1: over all questions, a missing prediction counts 0. v2.0: over the questions that have a
     * prediction. */
    struct wk_squad_figures all;
    struct wk_squad_figures has_answer, no_answer; /* v2.0 only, else n 0 */
    size_t missing;                                /* questions without a prediction */
};

/* Score one prediction per question, in the order of the data set; NULL: none was made, "": the
 * text has no answer. Which rules hold, those of v1.1 or v2.0, the data set says (squad->v2). Fails
 * with ENV when memory is gone. */
int wk_squad_score(const struct wk_squad *squad, const char *const *predictions,
                   struct wk_squad_score *out, struct hg_err *err);

/* Append an answer as it is compared: lower case, without ASCII punctuation and articles, single
 * blanks. */
void wk_squad_normalize(const char *text, size_t len, struct hg_buf *out);

/* Predictions in a file: one JSON object, question id to text. */
struct wk_squad_predictions {
    const char **texts; /* per question of the data set, NULL where there is none */
    size_t foreign;     /* ids that the data set does not have */
    void *json;
};

/* Read a file, plain or gzip. Fails with INPUT: not JSON, not an object of strings.
 * wk_squad_predictions_done frees. */
int wk_squad_predictions_load(const char *path, const struct wk_squad *squad,
                              struct wk_squad_predictions *out, struct hg_errs *errs);

void wk_squad_predictions_done(struct wk_squad_predictions *p);

/* ---- From logits to answers ---- */

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

/* NULL with err set: INPUT for an option out of range or synthetic features, ENV when memory is
 * gone. */
struct wk_answers *wk_answers_create(const struct wk_squad *squad,
                                     const struct wk_features *features,
                                     const struct wk_answer_options *options, struct hg_err *err);

void wk_answers_free(struct wk_answers *a);

/* Take the logits of feature i: n values each, for the positions 0 to n - 1. n is at least the
 * feature's length; what lies behind it is padding that competes for the best places, as in the
 * reference, but is never an answer. Features may come in any order, each once. NaN is never
 * best. */
void wk_answers_add(struct wk_answers *a, size_t i, const float *starts, const float *ends,
                    size_t n);

/* The best answer of question q, lent: a part of its text, "" for no answer (v2.0), "empty" where
 * no window had any span, as the reference has it. NULL when memory is gone, or the question has no
 * window at all. */
const char *wk_answers_get(struct wk_answers *a, size_t q);

#endif
