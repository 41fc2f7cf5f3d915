/* SPDX-License-Identifier: Apache-2.0 */
/* GEMMs of dense layers, y (rows, out) = x (rows, in) weight (out, in)' + bias (out), and what can be fused with them; by cuBLASLt. */
#ifndef WK_BACKENDS_CUDA_GEMM_H
#define WK_BACKENDS_CUDA_GEMM_H

#include "backends/cuda/device.h"

enum wk_gemm_kind {
    WK_GEMM_FORWARD, /* y = x weight' + bias; with gelu: pre = that, y = gelu(pre) */
    WK_GEMM_INPUT,   /* x = y weight, or x += it; with gelu: x = that times gelu'(pre) */
    WK_GEMM_WEIGHT   /* weight = y' x, or weight += it; bias += column sums of y */
};

/* One GEMM; y and x are gradients in INPUT and WEIGHT. Weights and bias are float in WEIGHT; in the other kinds they have
 * the type of x, except that y of FORWARD may be float. */
struct wk_gemm_call {
    enum wk_gemm_kind kind;
    int rows, in, out;
    enum wk_cuda_type t;   /* of x, and of y but for... */
    enum wk_cuda_type y_t; /* ... FORWARD's */
    void *x, *y, *weight, *bias;
    bool add;  /* INPUT: to x; WEIGHT: to weight */
    bool gelu; /* in its tanh form; `pre` (rows, out) of FORWARD, (rows, in) of INPUT */
    void *pre;
    /* A batch of so many (0 is 1): the operands of number k are so many elements after those of k - 1; x's step may be 0. No gelu. */
    int batch;
    ptrdiff_t x_step, y_step, weight_step, bias_step;
};

/* What the library may use while it runs, in bytes: taken from the device when it is opened. */
#define WK_GEMM_WORKSPACE ((size_t)32 << 20)

/* Opens the library. NULL with err set (ENV). */
struct wk_gemm *wk_gemm_open(struct wk_cuda *c, struct hg_err *err);
/* Saves the chosen algorithms. g may be NULL. */
void wk_gemm_close(struct wk_gemm *g);
/* Failures stay in the device. */
void wk_gemm_run(struct wk_cuda *c, const struct wk_gemm_call *p);
/* "13.1.0" */
void wk_gemm_version(char out[32]);

#endif
