/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WK_MODELS_RNN_H
#define WK_MODELS_RNN_H

#include "models/model.h"

/* An LSTM over the rows of an image. */
extern const struct wk_model_kind wk_model_rnn;

#endif
