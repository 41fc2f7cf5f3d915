/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a training in one file, from which it goes on as if nothing had been: values, optimizer state, position in the data and
 * the schedule, times and losses so far. Randomness needs no state: it is a function of seed and step. The file is safetensors; values have
 * their own names, so it can be read as weights. It is replaced as a whole: the last good one is always there. */
#ifndef WK_TRAIN_CHECKPOINT_H
#define WK_TRAIN_CHECKPOINT_H

#include "train/train.h"

/* Find out which file t's configuration means and go on from it if it is there. Fails with INPUT when it is damaged or belongs to
 * another training. A file of a finished training is not gone on from: the training begins anew. */
int wk_checkpoint_open(struct wk_train *t, struct hg_err *err);

/* Write the state after t->steps_done steps; every rank calls it. Seconds trained so far, in all and in this epoch. Fails with ENV; the
 * file of before is still there then. */
int wk_checkpoint_save(struct wk_train *t, double train_s, double epoch_s, struct hg_err *err);

/* The training is over: the file keeps its result and is not gone on from. */
int wk_checkpoint_finish(struct wk_train *t, struct hg_err *err);

#endif
