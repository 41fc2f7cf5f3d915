/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients against central differences. */
#ifndef HG_TESTS_WORKER_SLOPES_H
#define HG_TESTS_WORKER_SLOPES_H

#include "worker.h"

#define STEP 1e-5
#define BOUND 1e-6

/* At so many elements of a tensor: the norm of the differences of value(context), and of what the gradient is off by. */
struct slopes {
    double norm, off;
};

static inline struct slopes slopes_try(double (*value)(void *), void *context, struct wk_span x,
                                       struct wk_span gradient, size_t samples)
{
    wk_real *at = x.data;
    const wk_real *g = gradient.data;
    size_t stride = x.n > samples ? x.n / samples : 1;
    struct slopes s = { 0, 0 };

    for (size_t i = 0; i < x.n; i += stride) {
        wk_real before = at[i];
        double high, low, slope;

        at[i] = before + (wk_real)STEP;
        high = value(context);
        at[i] = before - (wk_real)STEP;
        low = value(context);
        at[i] = before;
        slope = (high - low) / (2 * STEP);
        s.off += (slope - (double)g[i]) * (slope - (double)g[i]);
        s.norm += slope * slope;
    }
    return (struct slopes){ .norm = sqrt(s.norm), .off = sqrt(s.off) };
}

#endif
