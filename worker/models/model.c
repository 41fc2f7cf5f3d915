/* SPDX-License-Identifier: Apache-2.0 */
#include "models/model.h"

#include <string.h>

#include "backends/draw.h"

int wk_before(const struct wk_hooks *hooks, enum wk_direction direction, int unit,
              struct hg_err *err)
{
    return hooks ? hooks->before(hooks->context, direction, unit, err) : 0;
}

int wk_after(const struct wk_hooks *hooks, enum wk_direction direction, int unit,
             struct hg_err *err)
{
    return hooks ? hooks->after(hooks->context, direction, unit, err) : 0;
}

int wk_model_ready(const struct wk_model_kind *kind, int k)
{
    return kind->ready ? kind->ready[k] : kind->n_params - 1 - k;
}

size_t wk_param_n(const struct wk_param *p)
{
    return (size_t)p->rows * (size_t)(p->cols ? p->cols : 1);
}

size_t wk_model_n(const struct wk_model_kind *kind)
{
    size_t n = 0;

    for (int i = 0; i < kind->n_params; i++)
        n += wk_param_n(&kind->params[i]);
    return n;
}

size_t wk_model_room(const struct wk_model_kind *kind, size_t grain)
{
    size_t n = 0;

    for (int i = 0; i < kind->n_params; i++)
        n += wk_grains(wk_param_n(&kind->params[i]), grain);
    return n;
}

size_t wk_model_buffers_n(const struct wk_model_kind *kind)
{
    size_t n = 0;

    for (int i = 0; i < kind->n_buffers; i++)
        n += (size_t)kind->buffers[i].n;
    return n;
}

#define CHUNK 4096 /* elements that are drawn at a time; a multiple of WK_DRAW_GROUP */

static void init_chunk(const struct wk_param *p, uint32_t site, uint64_t seed, size_t first,
                       size_t n, wk_real *to)
{
    double numbers[CHUNK];

    wk_draw(seed, site, first, p->init == WK_INIT_NORMAL ? WK_DRAW_NORMAL : WK_DRAW_UNIFORM,
            numbers, n);
    for (size_t i = 0; i < n; i++)
        to[i] = (wk_real)(p->init_value * numbers[i]);
}

void wk_param_init(const struct wk_param *p, int index, uint64_t seed, wk_real *host)
{
    size_t n = wk_param_n(p), zeros = p->zero_row ? (size_t)p->cols : 0;

    if (p->init == WK_INIT_CONSTANT) {
        for (size_t i = 0; i < n; i++)
            host[i] = (wk_real)p->init_value;
    } else {
#pragma omp parallel for schedule(static) if (n > 1 << 16)
        for (size_t at = 0; at < n; at += CHUNK)
            init_chunk(p, WK_SITE_INIT + (uint32_t)index, seed, at, n - at < CHUNK ? n - at : CHUNK,
                       host + at);
    }
    memset(host, 0, zeros * sizeof *host);
}
