/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops, and batches out of a resident data set. */
#include "backends/cpu/elementwise.h"

#include <string.h>

#include "backends/cpu/device.h"
#include "backends/half.h"

#define SUM_TILE 4096               /* elements of a long vector that are summed as one */
#define CONVERT_SHARE_MIN (1 << 16) /* elements that are worth a second thread */

static void cpu_fill(struct wk_dev *dev, struct wk_span y, double value)
{
    wk_real *p = y.data;

#pragma omp parallel num_threads(wk_cpu_pass_threads(dev, y.n))
    {
        long first, n;

        wk_cpu_share((long)y.n, 64, omp_get_thread_num(), omp_get_num_threads(), &first, &n);
        if (value == 0) /* memset passes by the cache */
            memset(p + first, 0, (size_t)n * sizeof *p);
        for (long i = first; value != 0 && i < first + n; i++)
            p[i] = (wk_real)value;
    }
}

static void cpu_clear(struct wk_dev *dev, struct wk_span y, struct wk_span spared)
{
    const uint8_t *stays = spared.data;

    for (size_t grain = 0; grain < spared.n; grain++)
        if (!stays[grain])
            cpu_fill(dev, wk_span_part(y, grain * WK_GRAIN, WK_GRAIN), 0);
}

static void cpu_scale(struct wk_dev *dev, struct wk_span y, double a)
{
    wk_real *p = y.data;

#pragma omp parallel for num_threads(wk_cpu_pass_threads(dev, y.n)) schedule(static)
    for (size_t i = 0; i < y.n; i++)
        p[i] *= (wk_real)a;
}

static void cpu_copy(struct wk_dev *dev, struct wk_span y, struct wk_span x)
{
    size_t size = wk_type_size(x.type), block = WK_CPU_PASS_SHARE_MIN,
           blocks = (x.n + block - 1) / block;

#pragma omp parallel for num_threads(wk_cpu_pass_threads(dev, x.n)) schedule(static)
    for (size_t i = 0; i < blocks; i++) {
        size_t n = i + 1 < blocks ? block : x.n - i * block;

        memcpy((char *)y.data + i * block * size, (const char *)x.data + i * block * size,
               n * size);
    }
}

static void cpu_add(struct wk_dev *dev, struct wk_span y, struct wk_span x)
{
    const struct wk_token_kernels *k = cpu_of(dev)->tokens;

#pragma omp parallel num_threads(dev->threads)
    {
        struct wk_cpu_range r = wk_cpu_my_share(y.n, SUM_TILE);

        k->add((wk_real *)y.data + r.first, (const wk_real *)x.data + r.first, (size_t)r.n);
    }
}

/* y[i] = x[i] for all i, one loop for each pair of types. */
#define CONVERT(to, from, how)                                                                   \
    do {                                                                                         \
        to *p = y.data;                                                                          \
        const from *q = x.data;                                                                  \
        _Pragma("omp parallel for num_threads(threads)") for (size_t i = 0; i < y.n; i++) p[i] = \
            how(q[i]);                                                                           \
    } while (0)

static void cpu_convert(struct wk_dev *dev, struct wk_span y, struct wk_span x)
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

static size_t ranges_of(size_t n)
{
    return (n + SUM_TILE - 1) / SUM_TILE;
}

size_t wk_cpu_square_scratch(size_t n)
{
    return ranges_of(n) * 2 + 1;
}

static void cpu_square_sum(struct wk_dev *dev, struct wk_span sum, struct wk_span x)
{
    struct cpu *c = cpu_of(dev);
    long ranges = (long)ranges_of(x.n);
    double *parts = (double *)wk_cpu_scratch(c, wk_cpu_square_scratch(x.n)), total = 0;

#pragma omp parallel num_threads(dev->threads)
    {
        struct wk_cpu_range r = wk_cpu_my_share((size_t)ranges, 1);

        for (long i = r.first; i < r.first + r.n; i++) {
            size_t at = (size_t)i * SUM_TILE, left = x.n - at;

            parts[i] = c->tokens->square_sum((const wk_real *)x.data + at,
                                             left < SUM_TILE ? left : SUM_TILE);
        }
    }
    for (long i = 0; i < ranges; i++)
        total += parts[i];
    *(wk_real *)sum.data = (wk_real)total;
}

/* ---- Batches ---- */

static void cpu_gather_u8(struct wk_dev *dev, struct wk_span y, struct wk_span rows,
                          struct wk_span index, int n, int width, double mean, double std)
{
    const struct wk_kernels *k = cpu_of(dev)->k;
    const uint8_t *from = rows.data;
    const int32_t *at = index.data;
    wk_real *to = y.data;

#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int i = 0; i < n; i++)
        k->convert_u8(to + (size_t)i * width, from + (size_t)at[i] * width, (size_t)width,
                      (wk_real)(1 / (255 * std)), (wk_real)(-mean / std));
}

static void cpu_gather_i32(struct wk_dev *dev, struct wk_span y, struct wk_span values,
                           struct wk_span index, int n)
{
    const int32_t *from = values.data, *at = index.data;
    int32_t *to = y.data;

    (void)dev;
    for (int i = 0; i < n; i++)
        to[i] = from[at[i]];
}

static void cpu_gather_tokens(struct wk_dev *dev, struct wk_span ids, struct wk_span types,
                              const struct wk_packing *p, const struct wk_token_source *from)
{
    const int32_t *first = p->first.data, *tokens = p->tokens.data, *sample = p->sample.data;
    const int32_t *words = from->tokens.data, *at = from->at.data, *second = from->second.data;
    int32_t *id = ids.data, *type = types.data, *sequence = p->sequence.data;

    (void)dev;
    for (int s = 0; s < p->sequences; s++)
        for (int row = first[s]; row < first[s + 1]; row++) {
            int place = row - first[s];
            bool token = place < tokens[s];

            id[row] = token ? words[at[sample[s]] + place] : 0;
            type[row] = token && place >= second[sample[s]];
            sequence[row] = s;
        }
    for (int row = first[p->sequences]; row < p->rows; row++) {
        id[row] = type[row] = 0;
        sequence[row] = -1;
    }
}

const struct wk_backend wk_cpu_elementwise_ops = {
    .fill = cpu_fill,
    .clear = cpu_clear,
    .scale = cpu_scale,
    .copy = cpu_copy,
    .add = cpu_add,
    .square_sum = cpu_square_sum,
    .convert = cpu_convert,
    .gather_u8 = cpu_gather_u8,
    .gather_i32 = cpu_gather_i32,
    .gather_tokens = cpu_gather_tokens,
};
