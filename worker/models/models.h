/* SPDX-License-Identifier: Apache-2.0 */
/* The models of this build, by name. */
#ifndef WK_MODELS_MODELS_H
#define WK_MODELS_MODELS_H

#include "models/model.h"

extern const struct wk_model_entry wk_models[]; /* ends with a NULL name */
extern const struct wk_model_kind wk_model_rnn; /* an LSTM over the rows of an image */

/* The model of that name, in other sizes where size says so. NULL with err set: INPUT if the name is unknown, or the
 * sizes do not fit it. End it with wk_model_free. */
const struct wk_model_kind *wk_model_make(const char *name, const struct wk_model_size *size,
                                          struct hg_err *err);
/* The same in its own sizes. */
const struct wk_model_kind *wk_model_get(const char *name, struct hg_err *err);
void wk_model_free(const struct wk_model_kind *kind);

#endif
