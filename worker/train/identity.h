/* SPDX-License-Identifier: Apache-2.0 */
/* Which training a checkpoint belongs to: what two trainings must have in common for one to resume the other. */
#ifndef WK_TRAIN_IDENTITY_H
#define WK_TRAIN_IDENTITY_H

#include "train/training.h"

/* What is learned, canonical: two trainings with the same have the same losses, but for rounding. A new reference. */
json_t *wk_identity_training(const struct wk_train *t);

/* The checkpoint's file, yours: the one that the cell names, or in a folder one for every training that uses it. */
char *wk_identity_file(const struct wk_train *t);

/* Name one member in which t and the training of its checkpoint differ, and what helps. Returns -1 with err set (INPUT). */
int wk_identity_differ(const struct wk_train *t, const json_t *theirs, const json_t *ours,
                       struct hg_err *err);

#endif
