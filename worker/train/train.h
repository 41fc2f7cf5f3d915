/* SPDX-License-Identifier: Apache-2.0 */
/* One training from configuration to result. */
#ifndef WK_TRAIN_TRAIN_H
#define WK_TRAIN_TRAIN_H

#include "train/training.h"

/* Read the data, open device, model and strategy. The others must outlive it. Returns 0, or -1 with
 * err set; end it with wk_train_close either way. */
int wk_train_open(struct wk_train *t, const struct wk_config *config, struct wk_comm *comm,
                  int threads, struct wk_result *result, struct hg_err *err);
void wk_train_close(struct wk_train *t);

/* What the ranks are and sent, into the result. Every rank calls it. */
int wk_train_account(struct wk_train *t, struct hg_err *err);

/* For predictions (train/predict.h): what a training would open, without a device. wk_train_plan reads the data set, or imagines
 * one as large as it may be; wk_train_count fills the bytes of activations, workspace and data that one rank would hold. End it
 * with wk_train_close. */
int wk_train_plan(struct wk_train *t, const struct wk_config *config, struct wk_comm *comm,
                  bool read_data, struct hg_err *err);
int wk_train_count(const struct wk_train *t, const char *backend, enum wk_precision precision,
                   int threads, double mem_bytes[WK_MEM_CLASSES], struct hg_err *err);

/* The whole way; a failure is in err and not yet in the result. */
int wk_train_all(const struct wk_config *config, struct wk_comm *comm, int threads,
                 struct wk_result *result, struct hg_err *err);

/* Whether the cell could train, as far as that shows without a device or other ranks: read and check its data set.
 * Returns 0, or -1 with err set as wk_train_all would. */
int wk_train_check(const struct wk_config *config, struct hg_err *err);

#endif
