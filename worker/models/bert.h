/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WK_MODELS_BERT_H
#define WK_MODELS_BERT_H

#include "models/model.h"

/* wk_model_entry.make of BERT for question answering. */
struct wk_model_kind *wk_bert_make(const struct wk_model_entry *entry,
                                   const struct wk_model_size *size, struct hg_err *err);

#endif
