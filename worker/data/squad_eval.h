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
 * text has no answer. The data set decides whether the rules of v1.1 or v2.0 hold (squad->v2). */
void wk_squad_score(const struct wk_squad *squad, const char *const *predictions,
                    struct wk_squad_score *out);

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

/* How sure somebody is that a question has no answer: any numbers, the greater the surer. v2.0 only. */
struct wk_squad_na {
    double *values; /* per question of the data set; NaN where there is none */
    size_t *places; /* in the file: of equal numbers the earlier one comes first */
    size_t foreign; /* ids that the data set does not have */
};

/* Read a file, one JSON object of question ids and numbers, plain or gzip. Fails with INPUT. wk_squad_na_done frees. */
int wk_squad_na_load(const char *path, const struct wk_squad *squad, struct wk_squad_na *out,
                     struct hg_errs *errs);
void wk_squad_na_done(struct wk_squad_na *na);

/* The best that a threshold could make of the predictions: in percent of the questions that have one. Above it, a question has no answer. */
struct wk_squad_best {
    double exact, exact_threshold, f1, f1_threshold;
};

/* Scores with a threshold: what is greater counts as "no answer". Fails with INPUT: a prediction without a number. */
int wk_squad_score_na(const struct wk_squad *squad, const char *const *predictions,
                      const struct wk_squad_na *na, double threshold, struct wk_squad_score *out,
                      struct wk_squad_best *best, struct hg_err *err);

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

/* NULL with err set: INPUT for an option out of range or synthetic features. */
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
 * no window had any span, as the reference has it. NULL when the question has no window at all. */
const char *wk_answers_get(struct wk_answers *a, size_t q);

#endif
