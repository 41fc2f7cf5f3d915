/* SPDX-License-Identifier: Apache-2.0 */
#include "models/models.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "models/bert.h"

#define BERT(name_, layers_, hidden_)                                                              \
    {                                                                                              \
        .name = name_, .summary = "BERT for question answering, " #layers_ " layers of " #hidden_, \
        .make = wk_bert_make, .size = {                                                            \
            layers_,                                                                               \
            hidden_,                                                                               \
            hidden_ / 64,                                                                          \
            4 * hidden_,                                                                           \
            30522,                                                                                 \
            512,                                                                                   \
            WK_GELU_ERF                                                                            \
        }                                                                                          \
    }

const struct wk_model_entry wk_models[] = {
    { .name = "rnn",
      .summary = "LSTM over the 28 rows of an MNIST image, two dense layers",
      .fixed = &wk_model_rnn },
    BERT("bert-tiny", 2, 128),
    BERT("bert-mini", 4, 256),
    BERT("bert-small", 4, 512),
    BERT("bert-medium", 8, 512),
    BERT("bert-base", 12, 768),
    BERT("bert-large", 24, 1024),
    { 0 },
};

const struct wk_model_kind *wk_model_make(const char *name, const struct wk_model_size *size,
                                          struct hg_err *err)
{
    const char *names[sizeof wk_models / sizeof *wk_models];
    size_t n = 0;

    for (const struct wk_model_entry *m = wk_models; m->name; m++) {
        if (strcmp(m->name, name) == 0)
            return m->fixed ? m->fixed : m->make(m, size, err);
        names[n++] = m->name;
    }
    hg_err_set(err, HG_E_INPUT, "unknown model \"%s\"", name);
    hg_text_suggest(err, name, names, n);
    return NULL;
}

const struct wk_model_kind *wk_model_get(const char *name, struct hg_err *err)
{
    return wk_model_make(name, &(struct wk_model_size){ 0 }, err);
}

void wk_model_free(const struct wk_model_kind *kind)
{
    if (kind && kind->own)
        free((void *)(uintptr_t)kind->own); /* the kind is part of it */
}
