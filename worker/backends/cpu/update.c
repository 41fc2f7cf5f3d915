/* SPDX-License-Identifier: Apache-2.0 */
/* What updates in mixed precision need: rounding, and the control of scaled and clipped gradients. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/half.h"

static wk_real decode(enum wk_type type, const void *data, size_t i)
{
    if (type == WK_REAL)
        return ((const wk_real *)data)[i];
    return (wk_real)(type == WK_BF16 ? wk_bf16_decode : wk_f16_decode)(((const uint16_t *)data)[i]);
}

static void encode(enum wk_type type, void *data, size_t i, wk_real x)
{
    if (type == WK_REAL)
        ((wk_real *)data)[i] = x;
    else
        ((uint16_t *)data)[i] = (type == WK_BF16 ? wk_bf16_encode : wk_f16_encode)((float)x);
}

void wk_cpu_convert(struct wk_dev *dev, struct wk_span y, struct wk_span x)
{
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (size_t i = 0; i < y.n; i++)
        encode(y.type, y.data, i, decode(x.type, x.data, i));
}

static void adapt(wk_real *c, bool finite, int grow_after)
{
    wk_real scale = c[WK_CONTROL_LOSS_SCALE];

    c[WK_CONTROL_SKIP] = finite ? 0 : 1;
    c[WK_CONTROL_SKIPPED] += finite ? 0 : 1;
    c[WK_CONTROL_GOOD] = finite ? c[WK_CONTROL_GOOD] + 1 : 0;
    if (!finite) {
        c[WK_CONTROL_LOSS_SCALE] = scale > 2 ? scale / 2 : 1;
    } else if (c[WK_CONTROL_GOOD] >= (wk_real)grow_after) {
        c[WK_CONTROL_GOOD] = 0;
        if (scale < (wk_real)WK_LOSS_SCALE_MOST)
            c[WK_CONTROL_LOSS_SCALE] = 2 * scale;
    }
}

void wk_cpu_control(struct wk_dev *dev, struct wk_span control, struct wk_span square_sum,
                    const struct wk_control *how)
{
    wk_real *c = control.data, square = *(const wk_real *)square_sum.data;
    double unscale = 1 / (double)c[WK_CONTROL_LOSS_SCALE];
    double norm = sqrt((double)square) * unscale, clip = how->clip_norm / (norm + 1e-6);

    (void)dev;
    c[WK_CONTROL_SCALE] = (wk_real)(how->clip_norm > 0 && !(clip >= 1) ? clip * unscale : unscale);
    c[WK_CONTROL_SKIP] = 0;
    if (how->scaled)
        adapt(c, isfinite(square), how->grow_after);
}

bool wk_cpu_skips(struct wk_span control, double *scale)
{
    const wk_real *c = control.data;

    if (!c)
        return false;
    *scale = (double)c[WK_CONTROL_SCALE];
    return c[WK_CONTROL_SKIP] != 0;
}
