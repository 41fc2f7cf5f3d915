/* SPDX-License-Identifier: Apache-2.0 */
/* The answers that an evaluation found, as a file that scoring programs read. */
#ifndef WK_TRAIN_PREDICTIONS_H
#define WK_TRAIN_PREDICTIONS_H

#include "comm/comm.h"
#include "data/squad.h"

/* Make the folder that the file will be in: problems with it or the file show before the training, not after. Fails with ENV. */
int wk_predictions_prepare(const char *path, struct hg_err *err);

/* Write {question id: text} in the order of the questions; the file is replaced as a whole, by rank 0. Question q is rank q % world's,
 * which has its text in texts[q] (NULL: no answer); all ranks call it and all hear how it went. */
int wk_predictions_save(const char *path, const struct wk_squad *squad, const char *const *texts,
                        struct wk_comm *comm, struct hg_err *err);

#endif
