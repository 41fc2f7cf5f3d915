/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of parameters, and the control of scaled and clipped gradients. */
#include <math.h>

#include "backends/cpu/device.h"

#define RANGE_TILE 4096 /* elements that are treated as one */

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

static void cpu_control(struct wk_dev *dev, struct wk_span control, struct wk_span square_sum,
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

/* Whether an update with this control is skipped; else the gradient's scale goes to *scale if there is a control. */
static bool skips(struct wk_span control, double *scale)
{
    const wk_real *c = control.data;

    if (!c)
        return false;
    *scale = (double)c[WK_CONTROL_SCALE];
    return c[WK_CONTROL_SKIP] != 0;
}

static void cpu_adadelta(struct wk_dev *dev, struct wk_span value, struct wk_span gradient,
                         struct wk_span square, struct wk_span delta, const struct wk_adadelta *how)
{
    const struct wk_kernels *k = cpu_of(dev)->k;
    double scale = how->scale;

    if (skips(how->control, &scale))
        return;
    if (scale != 1)
        cpu_of(dev)->plain->scale(dev, gradient, scale);
#pragma omp parallel num_threads(dev->threads)
    {
        long first, n;

        wk_cpu_share((long)value.n, 64, omp_get_thread_num(), omp_get_num_threads(), &first, &n);
        if (n > 0)
            k->adadelta((wk_real *)value.data + first, (const wk_real *)gradient.data + first,
                        (wk_real *)square.data + first, (wk_real *)delta.data + first, (size_t)n,
                        how->lr, how->rho, how->eps);
    }
    if (how->copy.data)
        cpu_of(dev)->plain->convert(dev, how->copy, value);
}

/* The control's steps that were skipped are none. */
static double steps_of(const struct wk_adamw *h)
{
    const wk_real *control = h->control.data;

    return (double)h->step - (control ? (double)control[WK_CONTROL_SKIPPED] : 0);
}

static struct wk_adamw_job adamw_job(const struct wk_adamw *h, double scale)
{
    double correct1 = 1 - pow(h->beta1, steps_of(h)), correct2 = 1 - pow(h->beta2, steps_of(h));
    double keep = 1 - h->lr * h->decay;
    struct wk_adamw_job j = { .beta1 = (wk_real)h->beta1,
                              .beta2 = (wk_real)h->beta2,
                              .rest1 = (wk_real)(1 - h->beta1),
                              .rest2 = (wk_real)(1 - h->beta2),
                              .eps = (wk_real)h->eps,
                              .rate = (wk_real)h->lr,
                              .root = 1,
                              .before = (wk_real)keep,
                              .after = 1,
                              .scale = (wk_real)scale };

    if (h->form == WK_ADAMW_TORCH) {
        j.rate = (wk_real)(h->lr / correct1);
        j.root = (wk_real)(1 / sqrt(correct2));
    } else if (h->form == WK_ADAMW_HF) {
        j.rate = (wk_real)(h->lr * sqrt(correct2) / correct1);
        j.before = 1;
        j.after = (wk_real)keep;
    }
    return j;
}

/* Elements first to first + n, in ranges that decay alike. */
static void adamw_ranges(const struct wk_token_kernels *k, const struct wk_adamw_job jobs[2],
                         const uint8_t *spared, wk_real *const t[4], size_t first, size_t n)
{
    for (size_t at = first, end; at < first + n; at = end) {
        int job = spared ? spared[at / WK_GRAIN] : 0;

        end = first + n;
        if (spared)
            for (end = at; end < first + n && spared[end / WK_GRAIN] == job;)
                end = (end / WK_GRAIN + 1) * WK_GRAIN;
        end = end < first + n ? end : first + n;
        k->adamw(t[0] + at, t[1] + at, t[2] + at, t[3] + at, end - at, &jobs[job]);
    }
}

static void cpu_adamw(struct wk_dev *dev, struct wk_span value, struct wk_span gradient,
                      struct wk_span m, struct wk_span v, const struct wk_adamw *how)
{
    const struct wk_token_kernels *k = cpu_of(dev)->tokens;
    wk_real *const t[4] = { value.data, gradient.data, m.data, v.data };
    struct wk_adamw without = *how;
    struct wk_adamw_job jobs[2];
    double scale = how->scale;

    if (skips(how->control, &scale))
        return;
    without.decay = 0;
    jobs[0] = adamw_job(how, scale);
    jobs[1] = adamw_job(&without, scale);
#pragma omp parallel num_threads(dev->threads)
    {
        struct wk_cpu_range r = wk_cpu_my_share(value.n, RANGE_TILE);

        adamw_ranges(k, jobs, how->spared.data, t, (size_t)r.first, (size_t)r.n);
    }
    if (how->copy.data)
        cpu_of(dev)->plain->convert(dev, how->copy, value);
}

const struct wk_backend wk_cpu_optim_ops = {
    .adadelta = cpu_adadelta,
    .adamw = cpu_adamw,
    .control = cpu_control,
};
