/* SPDX-License-Identifier: Apache-2.0 */
/* Dense layers, with OpenBLAS on one thread per call; dropout, ReLU. */
#include <cblas.h>
#include <string.h>

#include "backends/cpu/device.h"

static void cpu_dropout(struct wk_dev *dev, struct wk_span y, struct wk_span x,
                        struct wk_span sample, int rows, int cols, double p, struct wk_rng rng)
{
    const struct wk_kernels *k = cpu_of(dev)->k;
    const wk_real *from = x.data;
    const int32_t *samples = sample.data;
    wk_real *to = y.data;

#pragma omp parallel num_threads(dev->threads)
    {
        long first, n;

        wk_cpu_share(rows, 1, omp_get_thread_num(), omp_get_num_threads(), &first, &n);
        k->dropout(to + (size_t)first * cols, from + (size_t)first * cols, samples + first, (int)n,
                   cols, p, rng);
    }
}

#ifdef WK_REAL_F64
#define gemm cblas_dgemm
#else
#define gemm cblas_sgemm
#endif

/* Below so many multiplications a GEMM is not worth a second thread. */
#define GEMM_SHARE_MIN (1 << 20)

static int gemm_threads(const struct wk_dev *dev, int m, int n, int k)
{
    return (double)m * n * k < GEMM_SHARE_MIN ? 1 : dev->threads;
}

static void cpu_linear_forward(struct wk_dev *dev, struct wk_span y_, struct wk_span x_,
                               struct wk_span weight, struct wk_span bias, int rows, int in,
                               int out)
{
    const wk_real *x = x_.data, *b = bias.data;
    wk_real *y = y_.data;

#pragma omp parallel num_threads(gemm_threads(dev, rows, in, out))
    {
        long first, n;

        wk_cpu_share(rows, 16, omp_get_thread_num(), omp_get_num_threads(), &first, &n);
        for (long r = first; r < first + n; r++)
            memcpy(y + (size_t)r * out, b, (size_t)out * sizeof *y);
        if (n > 0)
            gemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, out, in, 1,
                 x + (size_t)first * in, in, weight.data, in, 1, y + (size_t)first * out, out);
    }
}

/* keep: the factor of the old d_x, 0 or 1. */
static void linear_backward(struct wk_dev *dev, wk_real keep, struct wk_span d_x_,
                            struct wk_span d_weight, struct wk_span d_bias, struct wk_span d_y_,
                            struct wk_span x_, struct wk_span weight, int rows, int in, int out)
{
    const wk_real *d_y = d_y_.data, *x = x_.data;
    wk_real *d_x = d_x_.data, *d_w = d_weight.data, *d_b = d_bias.data;
    wk_real keep_weight = dev->fresh ? 0 : 1;

#pragma omp parallel num_threads(gemm_threads(dev, rows, in, out))
    {
        long first, n;
        int part = omp_get_thread_num(), parts = omp_get_num_threads();

        wk_cpu_share(rows, 16, part, parts, &first, &n);
        if (d_x && n > 0)
            gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, in, out, 1,
                 d_y + (size_t)first * out, out, weight.data, in, keep, d_x + (size_t)first * in,
                 in);
        wk_cpu_share(out, 16, part, parts, &first, &n); /* now of the rows of the weight */
        if (n > 0)
            gemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)n, in, rows, 1, d_y + first, out, x,
                 in, keep_weight, d_w + (size_t)first * in, in);
        for (int r = 0; r < rows; r++)
            for (long k = first; k < first + n; k++)
                d_b[k] += d_y[(size_t)r * out + k];
    }
}

static void cpu_linear_backward(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_weight,
                                struct wk_span d_bias, struct wk_span d_y, struct wk_span x,
                                struct wk_span weight, int rows, int in, int out)
{
    linear_backward(dev, 0, d_x, d_weight, d_bias, d_y, x, weight, rows, in, out);
}

static void cpu_linear_backward_add(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_weight,
                                    struct wk_span d_bias, struct wk_span d_y, struct wk_span x,
                                    struct wk_span weight, int rows, int in, int out)
{
    linear_backward(dev, 1, d_x, d_weight, d_bias, d_y, x, weight, rows, in, out);
}

/* Ops made of others call those of the device: in 16 bits, what they pass on is rounded as between two calls. */
static void cpu_linear_gelu_forward(struct wk_dev *dev, struct wk_span y, struct wk_span pre,
                                    struct wk_span x, struct wk_span weight, struct wk_span bias,
                                    int rows, int in, int out, enum wk_gelu form)
{
    const struct wk_backend *ops = cpu_of(dev)->ops;
    size_t n = (size_t)rows * (size_t)out;

    ops->linear_forward(dev, pre, x, weight, bias, rows, in, out);
    ops->gelu_forward(dev, wk_span_part(y, 0, n), wk_span_part(pre, 0, n), form);
}

static void cpu_linear_gelu_backward(struct wk_dev *dev, struct wk_span d_pre,
                                     struct wk_span d_weight, struct wk_span d_bias,
                                     struct wk_span d_y, struct wk_span x, struct wk_span pre,
                                     struct wk_span weight, int rows, int in, int out,
                                     enum wk_gelu form)
{
    const struct wk_backend *ops = cpu_of(dev)->ops;
    size_t n = (size_t)rows * (size_t)in;

    ops->linear_backward(dev, d_pre, d_weight, d_bias, d_y, x, weight, rows, in, out);
    d_pre = wk_span_part(d_pre, 0, n);
    ops->gelu_backward(dev, d_pre, d_pre, wk_span_part(pre, 0, n), form);
}

static void cpu_linear3_forward(struct wk_dev *dev, const struct wk_qkv *y, struct wk_span x,
                                const struct wk_qkv *w, const struct wk_qkv *b, int rows, int in,
                                int out)
{
    const struct wk_backend *ops = cpu_of(dev)->ops;

    ops->linear_forward(dev, y->q, x, w->q, b->q, rows, in, out);
    ops->linear_forward(dev, y->k, x, w->k, b->k, rows, in, out);
    ops->linear_forward(dev, y->v, x, w->v, b->v, rows, in, out);
}

static void cpu_linear3_backward(struct wk_dev *dev, struct wk_span d_x, const struct wk_qkv *d_w,
                                 const struct wk_qkv *d_b, const struct wk_qkv *d_y,
                                 struct wk_span x, const struct wk_qkv *w, int rows, int in,
                                 int out)
{
    const struct wk_backend *ops = cpu_of(dev)->ops;

    ops->linear_backward_add(dev, d_x, d_w->q, d_b->q, d_y->q, x, w->q, rows, in, out);
    ops->linear_backward_add(dev, d_x, d_w->k, d_b->k, d_y->k, x, w->k, rows, in, out);
    ops->linear_backward_add(dev, d_x, d_w->v, d_b->v, d_y->v, x, w->v, rows, in, out);
}

static void cpu_relu_forward(struct wk_dev *dev, struct wk_span y_, struct wk_span x_)
{
    const wk_real *x = x_.data;
    wk_real *y = y_.data;

    (void)dev;
    for (size_t i = 0; i < y_.n; i++)
        y[i] = x[i] < 0 ? 0 : x[i]; /* NaN stays */
}

static void cpu_relu_backward(struct wk_dev *dev, struct wk_span d_x_, struct wk_span d_y_,
                              struct wk_span y_)
{
    const wk_real *d_y = d_y_.data, *y = y_.data;
    wk_real *d_x = d_x_.data;

    (void)dev;
    for (size_t i = 0; i < d_x_.n; i++)
        d_x[i] = y[i] > 0 ? d_y[i] : 0;
}

const struct wk_backend wk_cpu_dense_ops = {
    .dropout = cpu_dropout,
    .linear_forward = cpu_linear_forward,
    .linear_backward = cpu_linear_backward,
    .linear_backward_add = cpu_linear_backward_add,
    .linear_gelu_forward = cpu_linear_gelu_forward,
    .linear_gelu_backward = cpu_linear_gelu_backward,
    .linear3_forward = cpu_linear3_forward,
    .linear3_backward = cpu_linear3_backward,
    .relu_forward = cpu_relu_forward,
    .relu_backward = cpu_relu_backward,
};
