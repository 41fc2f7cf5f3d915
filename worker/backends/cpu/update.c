/* SPDX-License-Identifier: Apache-2.0 */
/* What updates in mixed precision need: rounding, and the control of scaled and clipped gradients. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/half.h"

#define CONVERT_SHARE_MIN (1 << 16) /* elements that are worth a second thread */

/* y[i] = x[i] for all i, one loop for each pair of types. */
#define CONVERT(to, from, how)                                                                   \
    do {                                                                                         \
        to *p = y.data;                                                                          \
        const from *q = x.data;                                                                  \
        _Pragma("omp parallel for num_threads(threads)") for (size_t i = 0; i < y.n; i++) p[i] = \
            how(q[i]);                                                                           \
    } while (0)

void wk_cpu_convert(struct wk_dev *dev, struct wk_span y, struct wk_span x)
{
    int threads = y.n < CONVERT_SHARE_MIN ? 1 : dev->threads;

    if (y.type == x.type)
        memcpy(y.data, x.data, y.n * wk_type_size(y.type));
    else if (y.type == WK_BF16)
        CONVERT(uint16_t, wk_real, wk_bf16_encode);
    else if (y.type == WK_F16)
        CONVERT(uint16_t, wk_real, wk_f16_encode);
    else if (x.type == WK_BF16)
        CONVERT(wk_real, uint16_t, wk_bf16_decode);
    else
        CONVERT(wk_real, uint16_t, wk_f16_decode);
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
