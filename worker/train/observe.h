/* SPDX-License-Identifier: Apache-2.0 */
/* What a training shows of itself while it runs: TensorBoard's curves and settings, a trace of some steps. Both
 * are files in the config's folder; the result names them. */
#ifndef WK_TRAIN_OBSERVE_H
#define WK_TRAIN_OBSERVE_H

#include "base/err.h"

struct wk_train;

/* Warn of a trace whose schedule is longer than the training, when its steps are planned. */
void wk_observe_check(const struct wk_train *t);

/* Begin what the config requests. Returns -1 with err set when a file cannot be written. */
int wk_observe_open(struct wk_train *t, struct hg_err *err);

/* Before an optimizer step with learning rate lr. */
void wk_observe_step(struct wk_train *t, double lr);

/* The last n losses of the result are new: those of n steps up to step `last` (from 0). */
void wk_observe_losses(struct wk_train *t, int n, long last);

/* An epoch has ended. */
void wk_observe_epoch(struct wk_train *t);

/* Write the rest and close the files; the result gets their names and the table of ops. Does nothing when
 * nothing was begun. err may hold the training's own failure already, which stays. */
int wk_observe_close(struct wk_train *t, struct hg_err *err);

#endif
