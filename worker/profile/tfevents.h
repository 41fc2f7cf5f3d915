/* SPDX-License-Identifier: Apache-2.0 */
/* TensorBoard's event files: scalars of a training, and its settings for the HParams page. */
#ifndef WK_PROFILE_TFEVENTS_H
#define WK_PROFILE_TFEVENTS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

struct wk_tfevents;

/* Begin a file events.out.tfevents.<time>.<host>.<pid>.0 in the folder, which exists. NULL with err set (ENV). */
struct wk_tfevents *wk_tfevents_open(const char *folder, double wall_s, struct hg_err *err);
/* Returns -1 with err set if anything could not be written since it was opened. NULL is fine. */
int wk_tfevents_close(struct wk_tfevents *t, struct hg_err *err);

/* One point of a curve. Failures show in close. */
void wk_tfevents_scalar(struct wk_tfevents *t, const char *tag, long step, double wall_s,
                        double value);

/* The settings: strings, numbers and booleans of an object, others as JSON text; null and absent ones are left out.
 * metrics: tags of scalars that judge the training, ends with NULL. group: runs of one group are repeats. */
void wk_tfevents_settings(struct wk_tfevents *t, const json_t *settings, const char *const *metrics,
                          const char *group, double wall_s);
/* How it ended. */
void wk_tfevents_end(struct wk_tfevents *t, bool success, double wall_s);

/* Hand everything to the kernel, so that a TensorBoard that is open shows it. */
void wk_tfevents_flush(struct wk_tfevents *t);

#endif
