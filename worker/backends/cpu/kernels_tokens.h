/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of the ops over token sequences; compiled once per instruction set and chosen like those of kernels.h. Every
 * function works on whole rows, or on a range of columns, and gives an element the same bits whatever the part. */
#ifndef WK_BACKENDS_CPU_KERNELS_TOKENS_H
#define WK_BACKENDS_CPU_KERNELS_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "backends/real.h"
#include "backends/rng.h"

/* AdamW in one form: with m = beta1 m + (1 - beta1) g and v = beta2 v + (1 - beta2) g^2,
 *   value = (value before - rate m / (sqrt(v) root + eps)) after */
struct wk_adamw_job {
    wk_real beta1, beta2, eps, rate, root, before, after;
    /* 1 - beta1 and 1 - beta2 before they are rounded: 1 - 0.999f would be off by 1e-5. */
    wk_real rest1, rest2;
    wk_real scale; /* of the gradient, from clipping */
};

struct wk_token_kernels {
    const char *isa;

    /* mask (n) = 1 / (1 - p) where the number for counter (element first + i, site, sample, step) keeps it, else 0. first is a
     * multiple of 8. */
    void (*mask)(wk_real *mask, int n, uint32_t first, uint32_t sample, double p,
                 struct wk_rng rng);
    /* y = a b; y may be a or b */
    void (*multiply)(wk_real *y, const wk_real *a, const wk_real *b, size_t n);
    void (*add)(wk_real *y, const wk_real *x, size_t n);

    /* x (cols) = x mask + residual, then y = (x - mean) inverse weight + bias; mask and residual may be NULL. saved (2): mean and
     * inverse = 1 / sqrt(variance + eps). */
    void (*norm_forward)(wk_real *y, wk_real *saved, wk_real *x, const wk_real *residual,
                         const wk_real *mask, const wk_real *weight, const wk_real *bias, int cols,
                         double eps);
    void (*norm_backward)(wk_real *d_sum, const wk_real *d_y, const wk_real *sum,
                          const wk_real *saved, const wk_real *weight, int cols);
    /* Columns first to first + n of the weights' gradients, from all rows. */
    void (*norm_weights)(wk_real *d_weight, wk_real *d_bias, const wk_real *d_y, const wk_real *sum,
                         const wk_real *saved, int rows, int cols, int first, int n);

    void (*gelu_erf)(wk_real *y, const wk_real *x, size_t n);
    void (*gelu_erf_backward)(wk_real *d_x, const wk_real *d_y, const wk_real *x, size_t n);
    void (*gelu_tanh)(wk_real *y, const wk_real *x, size_t n);
    void (*gelu_tanh_backward)(wk_real *d_x, const wk_real *d_y, const wk_real *x, size_t n);

    /* x = softmax(x); returns the logarithm of the sum of exponentials, largest value included. */
    wk_real (*softmax)(wk_real *x, int n);
    /* x = exp(x - lse) */
    void (*softmax_again)(wk_real *x, int n, wk_real lse);
    /* Backward of softmax and dropout for one row: dp = p (dp mask - sum(p dp mask)) scale, and p = p mask. mask may be NULL. */
    void (*softmax_backward)(wk_real *dp, wk_real *p, const wk_real *mask, int n, wk_real scale);

    void (*adamw)(wk_real *value, const wk_real *gradient, wk_real *m, wk_real *v, size_t n,
                  const struct wk_adamw_job *job);
    double (*square_sum)(const wk_real *x, size_t n);
};

extern const struct wk_token_kernels wk_token_kernels_base;
#ifdef __x86_64__
extern const struct wk_token_kernels wk_token_kernels_avx2, wk_token_kernels_avx512;
#endif

#endif
