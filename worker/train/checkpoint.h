/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a training on disk, from which it continues as if it had never stopped: values, optimizer state, loss scale, position in the
 * data and the schedule, times and losses so far. Randomness needs no state: it is a function of seed and step. The file is safetensors
 * with a checksum of every tensor; values have their own names, so it can be read as weights. With checkpoint_shards every rank writes
 * what it keeps of values and optimizer into a file of its own (train/parts.h), and the file says which belong to it. It is replaced as
 * a whole, after all others are on disk: the last good one is always there. */
#ifndef WK_TRAIN_CHECKPOINT_H
#define WK_TRAIN_CHECKPOINT_H

#include "train/training.h"

/* Find out which file t's configuration means and check it if it exists, before a device holds anything; every rank calls it and all
 * fail with the first rank's error: INPUT when it is damaged, parts are missing, or it belongs to another training. A file of a finished
 * training is not resumed: the training starts over. */
int wk_checkpoint_find(struct wk_train *t, struct hg_err *err);

/* Resume from what was found, if anything. Every rank calls it, after the strategy was opened. */
int wk_checkpoint_restore(struct wk_train *t, struct hg_err *err);

/* Write the state after t->steps_done steps; every rank calls it. Seconds trained so far, in all and in this epoch. Fails with ENV in
 * all ranks; the files of before are still there then. */
int wk_checkpoint_save(struct wk_train *t, double train_s, double epoch_s, struct hg_err *err);

/* The training is over: the file keeps its result and is not resumed. */
int wk_checkpoint_finish(struct wk_train *t, struct hg_err *err);

/* Release what t keeps of checkpoints. */
void wk_checkpoint_close(struct wk_train *t);

#endif
