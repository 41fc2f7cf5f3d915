/* SPDX-License-Identifier: Apache-2.0 */
/* A model's parameters in a safetensors file, under the names that Hugging Face gives them. */
#ifndef WK_TRAIN_WEIGHTS_H
#define WK_TRAIN_WEIGHTS_H

#include "models/model.h"
#include "train/safetensors.h"

struct wk_strategy;

/* The tensor of a file that is this parameter: by its name, without "bert." in front, or with a norm's old names gamma and beta. NULL if
 * there is none. */
const struct wk_st_tensor *wk_weights_find(const struct wk_st *st, const struct wk_param *p);

/* Has the tensor the parameter's shape? */
bool wk_weights_fits(const struct wk_st_tensor *t, const struct wk_param *p);

/* A head that a file of another task lacks: it starts from its initial values, as its init says. */
bool wk_weights_may_lack(const struct wk_param *p);

/* Tensors that the model does not use and that are not an error: heads of other tasks, the pooler, position numbers, a checkpoint's
 * own. */
bool wk_weights_may_ignore(const char *name);

/* Into how many files of ranks a checkpoint's values were cut; 0: none, they are in this one. */
int wk_weights_in_parts(const struct wk_st *st);

/* Could wk_weights_load start this model from the file? Looks at names and shapes, not at values. Fails with INPUT. */
int wk_weights_check(const char *path, const struct wk_model_kind *model, struct hg_err *err);

/* Set the values of all parameters from a file. Fails with INPUT: damaged, of another model, NaN. */
int wk_weights_load(const char *path, struct wk_strategy *s, struct hg_err *err);

#endif
