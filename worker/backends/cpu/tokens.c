/* SPDX-License-Identifier: Apache-2.0 */
/* Ops over token sequences but attention: rows are shared out over threads, gradients of parameters by columns, so that no sum
 * depends on the number of threads. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "backends/cpu/cpu.h"

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
    uint32_t padded = ((uint32_t)cols + 3) / 4 * 4;

    c->tokens->mask(mask, cols, (uint32_t)position_of(p, row) * padded, sample_of(p, row), drop,
                    rng);
}

struct range {
    long first, n;
};

/* What this thread of a parallel region does of so many. */
static struct range my_share(size_t n, long tile)
{
    struct range r;

    wk_cpu_share((long)n, tile, omp_get_thread_num(), omp_get_num_threads(), &r.first, &r.n);
    return r;
}

void wk_cpu_add(struct wk_dev *dev, struct wk_span y, struct wk_span x)
{
    const struct wk_token_kernels *k = cpu_of(dev)->tokens;

#pragma omp parallel num_threads(dev->threads)
    {
        struct range r = my_share(y.n, RANGE_TILE);

        k->add((wk_real *)y.data + r.first, (const wk_real *)x.data + r.first, (size_t)r.n);
    }
}

/* ---- Embeddings ---- */

void wk_cpu_embed_forward(struct wk_dev *dev, struct wk_span y_, struct wk_span ids,
                          struct wk_span types, const struct wk_packing *p, struct wk_span word_,
                          struct wk_span position_, struct wk_span type_, int cols)
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

void wk_cpu_embed_backward(struct wk_dev *dev, struct wk_span d_word_, struct wk_span d_position_,
                           struct wk_span d_type_, struct wk_span d_y_, struct wk_span ids,
                           struct wk_span types, const struct wk_packing *p, int padding, int cols)
{
    const int32_t *id = ids.data, *type_of = types.data;
    const wk_real *d_y = d_y_.data;
    wk_real *d_word = d_word_.data, *d_position = d_position_.data, *d_type = d_type_.data;

#pragma omp parallel num_threads(dev->threads)
    {
        struct range r = my_share((size_t)cols, COLUMN_TILE);

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

void wk_cpu_token_dropout(struct wk_dev *dev, struct wk_span y, struct wk_span x,
                          const struct wk_packing *p, int cols, double drop, struct wk_rng rng)
{
    struct cpu *c = cpu_of(dev);
    wk_real *masks = wk_cpu_scratch(c, (size_t)cols * dev->threads);

#pragma omp parallel num_threads(dev->threads)
    {
        struct range r = my_share((size_t)p->rows, 1);

        wk_real *mask = masks + (size_t)cols * omp_get_thread_num();
        for (long row = r.first; row < r.first + r.n; row++) {
            mask_row(c, mask, p, (int)row, cols, drop, rng);
            c->tokens->multiply((wk_real *)y.data + row * cols,
                                (const wk_real *)x.data + row * cols, mask, (size_t)cols);
        }
    }
}

void wk_cpu_norm_forward(struct wk_dev *dev, struct wk_span y_, struct wk_span saved,
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
        struct range r = my_share((size_t)p->rows, 1);

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

void wk_cpu_norm_backward(struct wk_dev *dev, struct wk_span d_sum_, struct wk_span d_x_,
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
        struct range r = my_share((size_t)cols, COLUMN_TILE);

        c->tokens->norm_weights(d_weight.data, d_bias.data, d_y, sum, saved, p->rows, cols,
                                (int)r.first, (int)r.n);
    }
#pragma omp parallel num_threads(dev->threads)
    {
        struct range r = my_share((size_t)p->rows, 1);

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

void wk_cpu_gelu_forward(struct wk_dev *dev, struct wk_span y, struct wk_span x, enum wk_gelu form)
{
    const struct wk_token_kernels *k = cpu_of(dev)->tokens;

#pragma omp parallel num_threads(dev->threads)
    {
        struct range r = my_share(y.n, RANGE_TILE);

        (form == WK_GELU_ERF ? k->gelu_erf : k->gelu_tanh)(
            (wk_real *)y.data + r.first, (const wk_real *)x.data + r.first, (size_t)r.n);
    }
}

void wk_cpu_gelu_backward(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_y,
                          struct wk_span x, enum wk_gelu form)
{
    const struct wk_token_kernels *k = cpu_of(dev)->tokens;

#pragma omp parallel num_threads(dev->threads)
    {
        struct range r = my_share(d_x.n, RANGE_TILE);

        (form == WK_GELU_ERF ? k->gelu_erf_backward : k->gelu_tanh_backward)(
            (wk_real *)d_x.data + r.first, (const wk_real *)d_y.data + r.first,
            (const wk_real *)x.data + r.first, (size_t)r.n);
    }
}

/* ---- Loss of a span ---- */

#ifdef WK_REAL_F64
#define wk_exp exp
#define wk_log log
#else
#define wk_exp expf
#define wk_log logf
#endif

/* Cross-entropy of one column of a sequence's n rows (stride 2); its gradient times weight into d unless that is NULL. */
static double column_loss(const wk_real *z, wk_real *d, int n, int label, wk_real weight)
{
    wk_real top = z[0], lse;
    double sum = 0;

    for (int i = 1; i < n; i++)
        top = z[2 * i] > top ? z[2 * i] : top;
    for (int i = 0; i < n; i++)
        sum += (double)wk_exp(z[2 * i] - top);
    lse = top + wk_log((wk_real)sum);
    for (int i = 0; d && i < n; i++)
        d[2 * i] = (wk_exp(z[2 * i] - lse) - (i == label)) * weight;
    return log(sum) + (double)(top - z[2 * label]);
}

void wk_cpu_span_loss(struct wk_dev *dev, struct wk_span loss, struct wk_span d_logits,
                      struct wk_span logits, const struct wk_packing *p, struct wk_span starts,
                      struct wk_span ends, double weight, struct wk_span scale)
{
    const int32_t *first = p->first.data, *start = starts.data, *end = ends.data;
    const wk_real *z = logits.data;
    wk_real *d = d_logits.data;
    wk_real share = (wk_real)(weight / 2 / p->sequences) * wk_cpu_factor(scale);
    double sum = 0;

    (void)dev;
    for (int s = 0; s < p->sequences; s++) {
        size_t at = 2 * (size_t)first[s];
        int n = first[s + 1] - first[s];

        sum += column_loss(z + at, d ? d + at : NULL, n, start[s], share) +
               column_loss(z + at + 1, d ? d + at + 1 : NULL, n, end[s], share);
    }
    *(wk_real *)loss.data = (wk_real)(sum / 2 / p->sequences);
}

/* ---- Optimizer ---- */

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

void wk_cpu_adamw(struct wk_dev *dev, struct wk_span value, struct wk_span gradient,
                  struct wk_span m, struct wk_span v, const struct wk_adamw *how)
{
    const struct wk_token_kernels *k = cpu_of(dev)->tokens;
    struct wk_adamw_job j;
    double scale = how->scale;

    if (wk_cpu_skips(how->control, &scale))
        return;
    j = adamw_job(how, scale);
#pragma omp parallel num_threads(dev->threads)
    {
        struct range r = my_share(value.n, RANGE_TILE);

        k->adamw((wk_real *)value.data + r.first, (const wk_real *)gradient.data + r.first,
                 (wk_real *)m.data + r.first, (wk_real *)v.data + r.first, (size_t)r.n, &j);
    }
    if (how->copy.data)
        wk_cpu_convert(dev, how->copy, value);
}

static size_t ranges_of(size_t n)
{
    return (n + RANGE_TILE - 1) / RANGE_TILE;
}

size_t wk_cpu_square_scratch(size_t n)
{
    return ranges_of(n) * 2 + 1;
}

void wk_cpu_square_sum(struct wk_dev *dev, struct wk_span sum, struct wk_span x)
{
    struct cpu *c = cpu_of(dev);
    long ranges = (long)ranges_of(x.n);
    double *parts = (double *)wk_cpu_scratch(c, wk_cpu_square_scratch(x.n)), total = 0;

#pragma omp parallel num_threads(dev->threads)
    {
        struct range r = my_share((size_t)ranges, 1);

        for (long i = r.first; i < r.first + r.n; i++) {
            size_t at = (size_t)i * RANGE_TILE, left = x.n - at;

            parts[i] = c->tokens->square_sum((const wk_real *)x.data + at,
                                             left < RANGE_TILE ? left : RANGE_TILE);
        }
    }
    for (long i = 0; i < ranges; i++)
        total += parts[i];
    *(wk_real *)sum.data = (wk_real)total;
}
