/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers over flat buffers, and what controls them. Twins: backends/cpu/optim.c, kernels.c, kernels_tokens.c.
 *
 * Updates are bound by memory: AdamW reads and writes value, m and v, reads the gradient, and writes the copy for the passes, 30 bytes
 * a parameter with a 16-bit copy. */
#include "backends/control.h"
#include "backends/cuda/device.cuh"

#define THREADS 256

/* ---- Control: one thread ---- */

static __device__ __forceinline__ void adapt(float *c, bool finite, int grow_after)
{
    float scale = c[WK_CONTROL_LOSS_SCALE];

    c[WK_CONTROL_SKIP] = finite ? 0.0f : 1.0f;
    c[WK_CONTROL_SKIPPED] += finite ? 0.0f : 1.0f;
    c[WK_CONTROL_GOOD] = finite ? c[WK_CONTROL_GOOD] + 1 : 0.0f;
    if (!finite) {
        c[WK_CONTROL_LOSS_SCALE] = scale > 2 ? scale / 2 : 1.0f;
    } else if (c[WK_CONTROL_GOOD] >= (float)grow_after) {
        c[WK_CONTROL_GOOD] = 0;
        if (scale < (float)WK_LOSS_SCALE_MOST)
            c[WK_CONTROL_LOSS_SCALE] = 2 * scale;
    }
}

static __global__ void control_kernel(float *c, const float *square_sum, float clip_norm,
                                      int scaled, int grow_after)
{
    if (threadIdx.x > 0)
        return;
    double unscale = 1 / (double)c[WK_CONTROL_LOSS_SCALE];
    double norm = sqrt((double)*square_sum) * unscale, clip = (double)clip_norm / (norm + 1e-6);

    c[WK_CONTROL_SCALE] = (float)(clip_norm > 0 && !(clip >= 1) ? clip * unscale : unscale);
    c[WK_CONTROL_SKIP] = 0;
    if (scaled)
        adapt(c, *square_sum - *square_sum == 0, grow_after);
}

int wk_cuda_control(wk_stream s, float *control, const float *square_sum, float clip, int scaled,
                    int grow_after)
{
    return wk_launch(control_kernel, dim3(1), WK_WARP, 0, s, control, square_sum, clip, scaled,
                     grow_after);
}

/* Those that need no arithmetic: an update without others has no launch before it. */
struct plain_factors {
    const struct wk_cuda_step *step;
    const float *control; /* may be NULL */
    float scale;          /* without it */

    __device__ struct wk_cuda_factors operator()() const
    {
        struct wk_cuda_factors f = {};

        f.scale = control ? control[WK_CONTROL_SCALE] : scale;
        f.skip = control ? control[WK_CONTROL_SKIP] : 0.0f;
        f.lr = step->lr;
        return f;
    }
};

struct made_factors {
    const struct wk_cuda_factors *made;

    __device__ struct wk_cuda_factors operator()() const
    {
        return *made;
    }
};

static __global__ void factors_kernel(struct wk_cuda_factors *out, const struct wk_cuda_step *step,
                                      const float *control, float scale,
                                      enum wk_cuda_adamw_form form, double beta1, double beta2)
{
    if (threadIdx.x > 0)
        return;
    double t = (double)step->taken - (control ? (double)control[WK_CONTROL_SKIPPED] : 0);
    double lr = (double)step->lr, correct1 = 1 - pow(beta1, t), correct2 = 1 - pow(beta2, t);
    struct wk_cuda_factors f = plain_factors{ step, control, scale }();

    f.rate = f.lr;
    f.root = 1;
    f.before = form == WK_CUDA_ADAMW_HF ? 0.0f : step->lr;
    f.after = form == WK_CUDA_ADAMW_HF ? step->lr : 0.0f;
    if (form == WK_CUDA_ADAMW_TORCH) {
        f.rate = (float)(lr / correct1);
        f.root = (float)(1 / sqrt(correct2));
    } else if (form == WK_CUDA_ADAMW_HF) {
        f.rate = (float)(lr * sqrt(correct2) / correct1);
    }
    *out = f;
}

int wk_cuda_factors(wk_stream s, struct wk_cuda_factors *out, const struct wk_cuda_step *step,
                    const float *control, float scale, enum wk_cuda_adamw_form form, double beta1,
                    double beta2)
{
    return wk_launch(factors_kernel, dim3(1), WK_WARP, 0, s, out, step, control, scale, form, beta1,
                     beta2);
}

/* ---- Updates: eight parameters a thread ---- */

template <typename C> struct update_tensors {
    float *value;
    C *copy; /* may be NULL */
    const float *gradient;
    float *first, *second;
    const uint8_t *spared; /* may be NULL */
    int grain;
};

/* m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
 * value = (value (1 - before decay) - rate m / (sqrt(v) root + eps)) (1 - after decay) */
struct adamw_rule {
    float beta1, beta2, rest1, rest2, eps, decay; /* rest: 1 - beta, made in double */

    __device__ void operator()(float &value, float g, float &m, float &v,
                               const struct wk_cuda_factors &f) const
    {
        m = beta1 * m + rest1 * g;
        v = beta2 * v + rest2 * g * g;
        value = (value * (1 - f.before * decay) - f.rate * m / (sqrtf(v) * f.root + eps)) *
                (1 - f.after * decay);
    }

    __device__ void spare()
    {
        decay = 0;
    }
};

/* square = rho square + (1 - rho) g^2, u = sqrt(delta + eps) / sqrt(square + eps) g, value -= lr u, delta = rho delta + (1 - rho) u^2 */
struct adadelta_rule {
    float rho, rest, eps;

    __device__ void operator()(float &value, float g, float &square, float &delta,
                               const struct wk_cuda_factors &f) const
    {
        float u;

        square = rho * square + rest * g * g;
        u = sqrtf(delta + eps) / sqrtf(square + eps) * g;
        delta = rho * delta + rest * u * u;
        value -= f.lr * u;
    }

    __device__ void spare()
    {
    }
};

template <typename C, typename F, typename R>
static __global__ void __launch_bounds__(THREADS)
    update_kernel(struct update_tensors<C> p, size_t n, F factors, R rule, bool wide)
{
    struct wk_cuda_factors f = factors();
    size_t at = ((size_t)blockIdx.x * THREADS + threadIdx.x) * 8;
    int here = n - at < 8 ? (int)(n - at) : 8;
    float value[8], g[8], first[8], second[8];

    if (at >= n || f.skip != 0)
        return;
    wk_load_part(g, p.gradient + at, here, wide);
    wk_load_part(value, p.value + at, here, wide);
    wk_load_part(first, p.first + at, here, wide);
    wk_load_part(second, p.second + at, here, wide);
    if (p.spared && p.spared[at / (unsigned)p.grain])
        rule.spare();
#pragma unroll
    for (int i = 0; i < 8; i++)
        rule(value[i], g[i] * f.scale, first[i], second[i], f);
    wk_store_part(p.value + at, value, here, wide);
    wk_store_part(p.first + at, first, here, wide);
    wk_store_part(p.second + at, second, here, wide);
    if (p.copy)
        wk_store_part(p.copy + at, value, here, wide);
}

template <typename F, typename R>
static int update(wk_stream s, float *value, enum wk_cuda_type c, void *copy, const float *gradient,
                  float *first, float *second, size_t n, F f, R rule, const uint8_t *spared,
                  int grain)
{
    return wk_with_type(c, [&](auto a) {
        typedef decltype(a) C;
        struct update_tensors<C> p = {
            value, (C *)copy, gradient, first, second, spared, grain
        };

        return wk_launch(update_kernel<C, F, R>, dim3(wk_blocks(n, 8 * THREADS)), THREADS, 0, s, p,
                         n, f, rule, wk_wide_flat(n, value, copy, gradient, first, second));
    });
}

int wk_cuda_adamw(wk_stream s, float *value, enum wk_cuda_type c, void *copy, const float *gradient,
                  float *m, float *v, size_t n, const struct wk_cuda_factors *f, double beta1,
                  double beta2, float eps, float decay, const uint8_t *spared, int grain)
{
    return update(s, value, c, copy, gradient, m, v, n, made_factors{ f },
                  adamw_rule{ (float)beta1, (float)beta2, (float)(1 - beta1), (float)(1 - beta2),
                              eps, decay },
                  spared, grain);
}

int wk_cuda_adadelta(wk_stream s, float *value, enum wk_cuda_type c, void *copy,
                     const float *gradient, float *square, float *delta, size_t n,
                     const struct wk_cuda_step *step, const float *control, float scale, double rho,
                     float eps)
{
    return update(s, value, c, copy, gradient, square, delta, n,
                  plain_factors{ step, control, scale },
                  adadelta_rule{ (float)rho, (float)(1 - rho), eps }, NULL, 1);
}
