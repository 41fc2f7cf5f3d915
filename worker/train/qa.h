/* SPDX-License-Identifier: Apache-2.0 */
/* Question answering: from data files to batches, and from a model's logits to EM and F1. */
#ifndef WK_TRAIN_QA_H
#define WK_TRAIN_QA_H

#include "comm/comm.h"
#include "data/features.h"
#include "data/squad.h"
#include "data/tokens.h"
#include "strategies/strategy.h"
#include "train/config.h"

struct wk_qa {
    char name[64], hash[33]; /* what the data set is; XXH3-128 of the features that are trained */
    int pad_to;              /* 0: packed */
    struct wk_features train, test;
    struct wk_squad squad;   /* texts and answers of test */
    bool scored;             /* there are texts: synthetic data has none */
    const char *predictions; /* file for the answers; NULL: none */
    double null_threshold;   /* see struct wk_answer_options */
    struct wk_token_batch batch, test_batch;
    struct wk_token_source source; /* train on a device that keeps it; else absent */
};

struct wk_qa_score {
    double loss, exact, f1; /* mean over features; percent */
    int features, questions;
};

/* Is this one of the data sets? squad-v1.1, squad-v2.0, squad-slice, synthetic. */
bool wk_qa_known(const char *name);

/* Read or make what c requests; the model's vocabulary has vocab_size tokens and reads at most `positions` of them. Fails with
 * INPUT: no such file, a vocabulary of another size, sequences too long. End it with wk_qa_close either way. */
int wk_qa_open(struct wk_qa *qa, const struct wk_config *c, long long vocab_size,
               long long positions, struct hg_err *err);
/* Stand in for data that has not been read: unlimited sequences for batches, and room for as many as the set can have. */
void wk_qa_imagine(struct wk_qa *qa, const struct wk_config *c);
/* Batches on the device, and the training's sequences where they stay there. */
int wk_qa_batches(struct wk_qa *qa, int rows, int test_rows, struct wk_dev *dev,
                  struct hg_err *err);
void wk_qa_batches_close(struct wk_qa *qa, struct wk_dev *dev);
void wk_qa_close(struct wk_qa *qa);

/* Assemble a batch of the training, without waiting for the device. */
void wk_qa_gather(struct wk_qa *qa, const int32_t *ids, int rows, struct wk_dev *dev);
/* Most tokens in a batch of so many features. */
int wk_qa_tokens(const struct wk_qa *qa, const struct wk_features *f, int rows);

/* Make the folder of the file for answers: problems with it or the file show before the training, not after. Fails with ENV. */
int wk_qa_prepare_predictions(const char *path, struct hg_err *err);

/* Called before each pass of an evaluation, by all ranks before the same one: 0 to continue, -1 with err set to end it. */
typedef int wk_qa_go_on(void *context, struct hg_err *err);

/* Run the test set's features through the model, questions shared out over the ranks. */
int wk_qa_eval(struct wk_qa *qa, struct wk_model *model, const struct wk_pass *pass,
               struct wk_strategy *strategy, wk_qa_go_on *go_on, void *context,
               struct wk_qa_score *out, struct hg_err *err);

#endif
