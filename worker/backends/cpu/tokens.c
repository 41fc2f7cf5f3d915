/* SPDX-License-Identifier: Apache-2.0 */
/* Ops over token sequences except attention: rows are shared out over threads, gradients of parameters by columns, so that no sum
 * depends on the number of threads. */
#include <string.h>

#include "backends/cpu/device.h"

#define COLUMN_TILE 64
#define RANGE_TILE 4096 /* elements of long vectors that are treated as one */

/* Position of a row in its sequence, and the key of its randomness. */
static int position_of(const struct wk_packing *p, int row)
{
    return row - ((const int32_t *)p->first.data)[((const int32_t *)p->sequence.data)[row]];
}

static uint32_t sample_of(const struct wk_packing *p, int row)
{
    return (uint32_t)((const int32_t *)p->sample.data)[((const int32_t *)p->sequence.data)[row]];
}

/* The dropout factors of a row of so many columns. */
static void mask_row(const struct cpu *c, wk_real *mask, const struct wk_packing *p, int row,
                     int cols, double drop, struct wk_rng rng)
{
    uint32_t padded = ((uint32_t)cols + 7) / 8 * 8;

    c->tokens->mask(mask, cols, (uint32_t)position_of(p, row) * padded, sample_of(p, row), drop,
                    rng);
}

/* ---- Embeddings ---- */

static void cpu_embed_forward(struct wk_dev *dev, struct wk_span y_, struct wk_span ids,
                              struct wk_span types, const struct wk_packing *p,
                              struct wk_span word_, struct wk_span position_, struct wk_span type_,
                              int cols)
{
    const int32_t *id = ids.data, *type_of = types.data;
    const wk_real *word = word_.data, *position = position_.data, *type = type_.data;
    wk_real *y = y_.data;

#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int row = 0; row < p->rows; row++) {
        const wk_real *a = word + (size_t)id[row] * cols;
        const wk_real *b = position + (size_t)position_of(p, row) * cols;
        const wk_real *c = type + (size_t)type_of[row] * cols;
        wk_real *to = y + (size_t)row * cols;

        for (int k = 0; k < cols; k++)
            to[k] = a[k] + c[k] + b[k];
    }
}

static void cpu_embed_backward(struct wk_dev *dev, struct wk_span d_word_,
                               struct wk_span d_position_, struct wk_span d_type_,
                               struct wk_span d_y_, struct wk_span ids, struct wk_span types,
                               const struct wk_packing *p, int padding, int cols)
{
    const int32_t *id = ids.data, *type_of = types.data;
    const wk_real *d_y = d_y_.data;
    wk_real *d_word = d_word_.data, *d_position = d_position_.data, *d_type = d_type_.data;

#pragma omp parallel num_threads(dev->threads)
    {
        struct wk_cpu_range r = wk_cpu_my_share((size_t)cols, COLUMN_TILE);

        for (int row = 0; row < p->rows; row++) {
            const wk_real *d = d_y + (size_t)row * cols + r.first;
            wk_real *a = d_word + (size_t)id[row] * cols + r.first;
            wk_real *b = d_position + (size_t)position_of(p, row) * cols + r.first;
            wk_real *c = d_type + (size_t)type_of[row] * cols + r.first;

            for (long k = 0; k < r.n; k++) {
                b[k] += d[k];
                c[k] += d[k];
            }
            if (id[row] != padding)
                for (long k = 0; k < r.n; k++)
                    a[k] += d[k];
        }
    }
}

/* ---- Dropout, layer normalisation ---- */

static void cpu_token_dropout(struct wk_dev *dev, struct wk_span y, struct wk_span x,
                              const struct wk_packing *p, int cols, double drop, struct wk_rng rng)
{
    struct cpu *c = cpu_of(dev);
    wk_real *masks = wk_cpu_scratch(c, (size_t)cols * dev->threads);

#pragma omp parallel num_threads(dev->threads)
    {
        struct wk_cpu_range r = wk_cpu_my_share((size_t)p->rows, 1);

        wk_real *mask = masks + (size_t)cols * omp_get_thread_num();
        for (long row = r.first; row < r.first + r.n; row++) {
            mask_row(c, mask, p, (int)row, cols, drop, rng);
            c->tokens->multiply((wk_real *)y.data + row * cols,
                                (const wk_real *)x.data + row * cols, mask, (size_t)cols);
        }
    }
}

static void cpu_norm_forward(struct wk_dev *dev, struct wk_span y_, struct wk_span saved,
                             struct wk_span x_, struct wk_span residual_, struct wk_span weight,
                             struct wk_span bias, const struct wk_packing *p, int cols, double eps,
                             double drop, struct wk_rng rng)
{
    struct cpu *c = cpu_of(dev);
    wk_real *masks = wk_cpu_scratch(c, (size_t)cols * dev->threads);
    const wk_real *residual = residual_.data;
    wk_real *y = y_.data, *x = x_.data, *save = saved.data;

#pragma omp parallel num_threads(dev->threads)
    {
        struct wk_cpu_range r = wk_cpu_my_share((size_t)p->rows, 1);

        wk_real *mask = masks + (size_t)cols * omp_get_thread_num();
        for (long row = r.first; row < r.first + r.n; row++) {
            if (drop > 0)
                mask_row(c, mask, p, (int)row, cols, drop, rng);
            c->tokens->norm_forward(y + row * cols, save + 2 * row, x + row * cols,
                                    residual ? residual + row * cols : NULL, drop > 0 ? mask : NULL,
                                    weight.data, bias.data, cols, eps);
        }
    }
}

static void cpu_norm_backward(struct wk_dev *dev, struct wk_span d_sum_, struct wk_span d_x_,
                              struct wk_span d_weight, struct wk_span d_bias, struct wk_span d_y_,
                              struct wk_span sum_, struct wk_span weight, struct wk_span saved_,
                              const struct wk_packing *p, int cols, double drop, struct wk_rng rng)
{
    struct cpu *c = cpu_of(dev);
    wk_real *masks = wk_cpu_scratch(c, (size_t)cols * dev->threads);
    const wk_real *d_y = d_y_.data, *sum = sum_.data, *saved = saved_.data;
    wk_real *d_sum = d_sum_.data, *d_x = d_x_.data;

    /* the weights first: d_sum may take the place of d_y */
#pragma omp parallel num_threads(dev->threads)
    {
        struct wk_cpu_range r = wk_cpu_my_share((size_t)cols, COLUMN_TILE);

        c->tokens->norm_weights(d_weight.data, d_bias.data, d_y, sum, saved, p->rows, cols,
                                (int)r.first, (int)r.n);
    }
#pragma omp parallel num_threads(dev->threads)
    {
        struct wk_cpu_range r = wk_cpu_my_share((size_t)p->rows, 1);

        wk_real *mask = masks + (size_t)cols * omp_get_thread_num();
        for (long row = r.first; row < r.first + r.n; row++) {
            c->tokens->norm_backward(d_sum + row * cols, d_y + row * cols, sum + row * cols,
                                     saved + 2 * row, weight.data, cols);
            if (d_x && drop > 0) {
                mask_row(c, mask, p, (int)row, cols, drop, rng);
                c->tokens->multiply(d_x + row * cols, d_sum + row * cols, mask, (size_t)cols);
            } else if (d_x) {
                memcpy(d_x + row * cols, d_sum + row * cols, (size_t)cols * sizeof *d_x);
            }
        }
    }
}

/* ---- GELU ---- */

static void cpu_gelu_forward(struct wk_dev *dev, struct wk_span y, struct wk_span x,
                             enum wk_gelu form)
{
    const struct wk_token_kernels *k = cpu_of(dev)->tokens;

#pragma omp parallel num_threads(dev->threads)
    {
        struct wk_cpu_range r = wk_cpu_my_share(y.n, RANGE_TILE);

        (form == WK_GELU_ERF ? k->gelu_erf : k->gelu_tanh)(
            (wk_real *)y.data + r.first, (const wk_real *)x.data + r.first, (size_t)r.n);
    }
}

static void cpu_gelu_backward(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_y,
                              struct wk_span x, enum wk_gelu form)
{
    const struct wk_token_kernels *k = cpu_of(dev)->tokens;

#pragma omp parallel num_threads(dev->threads)
    {
        struct wk_cpu_range r = wk_cpu_my_share(d_x.n, RANGE_TILE);

        (form == WK_GELU_ERF ? k->gelu_erf_backward : k->gelu_tanh_backward)(
            (wk_real *)d_x.data + r.first, (const wk_real *)d_y.data + r.first,
            (const wk_real *)x.data + r.first, (size_t)r.n);
    }
}

const struct wk_backend wk_cpu_tokens_ops = {
    .embed_forward = cpu_embed_forward,
    .embed_backward = cpu_embed_backward,
    .token_dropout = cpu_token_dropout,
    .norm_forward = cpu_norm_forward,
    .norm_backward = cpu_norm_backward,
    .gelu_forward = cpu_gelu_forward,
    .gelu_backward = cpu_gelu_backward,
};
