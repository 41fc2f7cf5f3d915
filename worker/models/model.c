/* SPDX-License-Identifier: Apache-2.0 */
#include "models/model.h"

#include <string.h>

#include "base/text.h"

extern const struct wk_model_kind wk_model_rnn;

const struct wk_model_kind *const wk_models[] = {
    &wk_model_rnn,
    NULL,
};

const struct wk_model_kind *wk_model_get(const char *name, struct hg_err *err)
{
    const char *names[16];
    size_t n = 0;

    for (const struct wk_model_kind *const *m = wk_models; *m; m++) {
        if (strcmp((*m)->name, name) == 0)
            return *m;
        names[n++] = (*m)->name;
    }
    hg_err_set(err, HG_E_INPUT, "unknown model \"%s\"", name);
    hg_text_suggest(err, name, names, n);
    return NULL;
}

size_t wk_param_n(const struct wk_param *p)
{
    return (size_t)p->rows * (size_t)p->cols;
}

size_t wk_model_n(const struct wk_model_kind *kind)
{
    size_t n = 0;

    for (int i = 0; i < kind->n_params; i++)
        n += wk_param_n(&kind->params[i]);
    return n;
}

size_t wk_model_buffers_n(const struct wk_model_kind *kind)
{
    size_t n = 0;

    for (int i = 0; i < kind->n_buffers; i++)
        n += (size_t)kind->buffers[i].n;
    return n;
}

void wk_param_init(const struct wk_param *p, int index, uint64_t seed, wk_real *host)
{
    size_t n = wk_param_n(p);

    for (size_t i = 0; i < n; i++) {
        uint32_t bits[4];

        if (p->init == WK_INIT_UNIFORM) {
            const uint32_t *pair = bits + 2 * (i % 2);

            wk_philox(seed, (uint32_t)(i / 2), WK_SITE_INIT + (uint32_t)index, 0, 0, bits);
            host[i] = (wk_real)(p->init_value * (2 * wk_rng_unit64(pair[0], pair[1]) - 1));
        } else {
            host[i] = (wk_real)p->init_value;
        }
    }
}
