/* SPDX-License-Identifier: Apache-2.0 */
/* The epochs of a training, and its evaluation. */
#ifndef WK_TRAIN_LOOP_H
#define WK_TRAIN_LOOP_H

#include "train/training.h"

/* All epochs; times and losses go to the result. Stops with an error after a signal (wk_train_signal). */
int wk_train_run(struct wk_train *t, struct hg_err *err);

/* Loss and accuracy on the test set, shared out over the ranks. A signal ends it between two passes, like the training: what is
 * trained must be in the checkpoint by then, where one is kept. */
int wk_train_eval(struct wk_train *t, struct hg_err *err);

/* From a signal handler: the number of the signal that ends the training after the current step; 0:
 * continue. */
void wk_train_signal(int number);
/* That number. */
int wk_train_stopped(void);

#endif
