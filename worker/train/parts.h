/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint in parts: what each rank keeps of values and optimizer state, in a separate file next to the checkpoint's,
 *
 *   NAME.SAVE.rankR    safetensors: of each parameter and slot the elements that rank R keeps, one after the other
 *
 * where SAVE counts the checkpoints of a training, so that new parts exist next to the old ones until NAME is replaced. NAME says what
 * belongs to it, in the member "parts" of its state:
 *
 *   { "world": 4, "files": [ { "name", "bytes", "sum" }, ... ],    sum: wk_st_sum, 16 hex digits
 *     "cuts": { parameter: [ elements that rank 0 keeps, rank 1, ... ], ... } }
 *
 * A rank's elements of a parameter follow those of the rank before it, so any other number of ranks can cut them again. */
#ifndef WK_TRAIN_PARTS_H
#define WK_TRAIN_PARTS_H

#include "train/training.h"

struct wk_parts;

/* Write this rank's part of checkpoint number `save`, and put together what all are; every rank calls it. *parts is new, for the
 * checkpoint's state. Fails with ENV, in this rank only: then *parts is NULL. */
int wk_parts_save(const struct wk_train *t, long save, json_t **parts, struct hg_err *err);

/* Remove the parts of all checkpoints but this one, and what killed writers left. Nobody may be writing there. */
void wk_parts_tidy(const char *path, long keep);

/* The parts that a checkpoint's state names. All ranks together check every byte, each rank a share of the files: INPUT when one is
 * missing, cut off, changed, or of another checkpoint. NULL with err set; t must outlive it. */
struct wk_parts *wk_parts_open(const struct wk_train *t, const json_t *state, struct hg_err *err);
void wk_parts_close(struct wk_parts *p);

/* n elements of a parameter's state, from the first. */
int wk_parts_read(struct wk_parts *p, int state, int param, size_t first, size_t n, wk_real *out,
                  struct hg_err *err);

/* The tensor's name in checkpoints, yours: the parameter's own, or optimizer.K.NAME. */
char *wk_state_name(const struct wk_model_kind *kind, int state, int param);

/* NaN and infinite values must not replace a good checkpoint if the training is to stop at them: INPUT. The loss shows them one step
 * later. */
int wk_state_check(const struct wk_train *t, int state, int param, const wk_real *host, size_t n,
                   struct hg_err *err);

#endif
