/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of token sequences: put together on the host, one sequence after the other, then sent to the device; or, where all sequences
 * lie on the device, gathered there. */
#ifndef WK_DATA_TOKENS_H
#define WK_DATA_TOKENS_H

#include "data/features.h"
#include "models/model.h"

struct wk_token_batch {
    struct wk_batch batch;    /* what a model reads */
    int rows_max, tokens_max; /* tokens as wk_dev_rows has them */
    int pad_to;               /* every sequence gets so many rows; 0: as many as it has tokens */
    int32_t *host;            /* staging memory of all of these */
    struct wk_span device;    /* the same on the device; the batch's spans are parts of it */
    int32_t *first, *tokens, *sample, *starts, *ends; /* per sequence */
    int32_t *sequence, *ids, *types;                  /* per row */
};

/* The sequences of features on the device, one after the other; wk_token_source_close ends it, half-open ones too. Of features that
 * have not been read (no items), room for n_questions sequences of n_context tokens in all. */
int wk_token_source_open(struct wk_token_source *s, const struct wk_features *f, struct wk_dev *dev,
                         struct hg_err *err);
void wk_token_source_close(struct wk_token_source *s, struct wk_dev *dev);

/* Room for so many sequences and rows of all of them together. wk_token_batch_close ends it, half-open ones too. */
int wk_token_batch_open(struct wk_token_batch *b, int rows, int tokens, struct wk_dev *dev,
                        struct hg_err *err);
void wk_token_batch_close(struct wk_token_batch *b, struct wk_dev *dev);

/* Begin a new batch. */
void wk_token_batch_begin(struct wk_token_batch *b, int pad_to);
/* Add a sequence of n tokens; the caller writes n values to *ids and *types. start and end are its labels, sample the key of its
 * randomness. */
void wk_token_batch_next(struct wk_token_batch *b, int n, int start, int end, int32_t sample,
                         int32_t **ids, int32_t **types);
/* Send it to the device. */
void wk_token_batch_end(struct wk_token_batch *b, struct wk_dev *dev);

/* The whole way for features: those with the numbers in ids; their number is the key of their randomness. from: they lie on the device;
 * NULL: tokens are written and sent. Nobody waits for the device. */
void wk_token_batch_gather(struct wk_token_batch *b, const struct wk_features *f,
                           const struct wk_token_source *from, const int32_t *ids, int rows,
                           int pad_to, struct wk_dev *dev);

/* Rows that a batch of `rows` features can have at most: those of the longest ones. */
long long wk_tokens_most(const struct wk_features *f, int rows, int pad_to);

#endif
