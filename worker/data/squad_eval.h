/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of predicted answers, as the official evaluation scripts of SQuAD compute them. */
#ifndef WK_DATA_SQUAD_EVAL_H
#define WK_DATA_SQUAD_EVAL_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
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
    const char **texts; /* per question of the data set, NULL if there is none */
    size_t foreign;     /* ids that the data set does not have */
    void *json;
};

/* Read a file, plain or gzip. Fails with INPUT: not JSON, not an object of strings.
 * wk_squad_predictions_done frees. */
int wk_squad_predictions_load(const char *path, const struct wk_squad *squad,
                              struct wk_squad_predictions *out, struct hg_errs *errs);

void wk_squad_predictions_done(struct wk_squad_predictions *p);

/* How likely a question has no answer: any numbers, a larger one is more likely. v2.0 only. */
struct wk_squad_na {
    double *values; /* per question of the data set; NaN if there is none */
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

#endif
