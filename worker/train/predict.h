/* SPDX-License-Identifier: Apache-2.0 */
/* What a training would hold, before anything is opened: a function of the cell alone (and of the lengths of its sequences, when the
 * data set is read). A strategy's state follows from its definition; activations are counted by opening the model on a device
 * that only counts (backends/count.h). */
#ifndef WK_TRAIN_PREDICT_H
#define WK_TRAIN_PREDICT_H

#include "train/config.h"

struct wk_prediction {
    int world, rank;                  /* the rank that holds most */
    double mem_bytes[WK_MEM_CLASSES]; /* its peaks */
    double total_bytes;
    bool exact; /* else at most that: sequences are taken as long as they may be */
};

/* For the cell, or for the same cell under another strategy (NULL: its own). Fails with INPUT where that cannot be trained. */
int wk_predict(const struct wk_config *config, const char *strategy, bool read_data,
               struct wk_prediction *out, struct hg_err *err);

#endif
