/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over sequences: for each head, scores of a tile of queries with all keys of their sequence, softmax, dropout, weighted
 * sum of the values. Only a tile of scores exists at a time; backward computes it again from the logarithm of each row's sum.
 * Heads of sequences are shared out over threads, each wholly to one: no sum depends on the number of threads. */
#include "backends/cpu/attention.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "backends/cpu/device.h"

#ifdef WK_REAL_F64
#define gemm cblas_dgemm
#else
#define gemm cblas_sgemm
#endif

#define QUERIES 64 /* of a tile */

/* One head of one sequence. */
struct head {
    const struct wk_token_kernels *k;
    const struct wk_attention *a;
    int queries, keys; /* rows of the sequence; those that are tokens */
    int stride;        /* of rows: heads x size */
    size_t at;         /* of the first row's first element */
    size_t row;        /* first row */
    int index;         /* which head */
    uint32_t sample;
    wk_real scale;
    wk_real *scores, *d_scores, *mask; /* (QUERIES, keys) twice, (keys) */
};

static struct head head_of(struct cpu *c, const struct wk_attention *a, const struct wk_packing *p,
                           int task, wk_real *scratch)
{
    const int32_t *first = p->first.data;
    int s = task / a->heads, index = task % a->heads;
    struct head h = { .k = c->tokens,
                      .a = a,
                      .queries = first[s + 1] - first[s],
                      .keys = ((const int32_t *)p->tokens.data)[s],
                      .stride = a->heads * a->size,
                      .row = (size_t)first[s],
                      .index = index,
                      .sample = (uint32_t)((const int32_t *)p->sample.data)[s],
                      .scale = (wk_real)(1 / sqrt((double)a->size)) };

    h.at = h.row * (size_t)h.stride + (size_t)(index * a->size);
    h.scores = scratch;
    h.d_scores = scratch + (size_t)QUERIES * p->longest;
    h.mask = scratch + (size_t)2 * QUERIES * p->longest;
    return h;
}

size_t wk_cpu_attention_scratch(int longest)
{
    return ((size_t)(2 * QUERIES + 1) * longest + 15) / 16 * 16;
}

/* Dropout factors of one query's keys. The element counts a query's keys in blocks of eight, as many blocks as a sequence can ever
 * need, so that it does not depend on how long this one was padded. */
static void mask_query(const struct head *h, int query)
{
    struct wk_rng rng = h->a->rng;

    rng.site += (uint32_t)h->index;
    h->k->mask(h->mask, h->keys, (uint32_t)query << 16, h->sample, h->a->drop, rng);
}

static void scores_of(const struct head *h, const wk_real *q, const wk_real *k, int first, int n)
{
    gemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, h->keys, h->a->size, h->scale,
         q + h->at + (size_t)first * h->stride, h->stride, k + h->at, h->stride, 0, h->scores,
         h->keys);
}

static void head_forward(const struct head *h, const struct wk_qkv *in, wk_real *out, wk_real *lse)
{
    for (int first = 0; first < h->queries; first += QUERIES) {
        int n = h->queries - first < QUERIES ? h->queries - first : QUERIES;

        scores_of(h, in->q.data, in->k.data, first, n);
        for (int i = 0; i < n; i++) {
            wk_real *row = h->scores + (size_t)i * h->keys;
            wk_real sum = h->k->softmax(row, h->keys);

            if (lse)
                lse[(h->row + (size_t)(first + i)) * h->a->heads + h->index] = sum;
            if (h->a->drop > 0) {
                mask_query(h, first + i);
                h->k->multiply(row, row, h->mask, (size_t)h->keys);
            }
        }
        gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, h->a->size, h->keys, 1, h->scores,
             h->keys, (const wk_real *)in->v.data + h->at, h->stride, 0,
             out + h->at + (size_t)first * h->stride, h->stride);
    }
}

static void cpu_attention_forward(struct wk_dev *dev, const struct wk_attention *a,
                                  const struct wk_packing *p, struct wk_span out,
                                  struct wk_span lse, struct wk_span mask, const struct wk_qkv *in)
{
    struct cpu *c = cpu_of(dev);
    size_t each = wk_cpu_attention_scratch(p->longest);
    wk_real *scratch = wk_cpu_scratch(c, each * dev->threads);

    (void)mask;
#pragma omp parallel for num_threads(dev->threads) schedule(dynamic)
    for (int task = 0; task < p->sequences * a->heads; task++) {
        struct head h = head_of(c, a, p, task, scratch + each * omp_get_thread_num());

        head_forward(&h, in, out.data, lse.data);
    }
}

/* Rows of one tile: probabilities into scores (dropped out, as the values met them) and the gradient of the scores into d_scores. */
static void tile_backward(const struct head *h, const wk_real *lse, int first, int n)
{
    for (int i = 0; i < n; i++) {
        wk_real *p = h->scores + (size_t)i * h->keys, *dp = h->d_scores + (size_t)i * h->keys;

        h->k->softmax_again(p, h->keys,
                            lse[(h->row + (size_t)(first + i)) * h->a->heads + h->index]);
        if (h->a->drop > 0)
            mask_query(h, first + i);
        h->k->softmax_backward(dp, p, h->a->drop > 0 ? h->mask : NULL, h->keys, h->scale);
    }
}

static void clear_rows(const struct head *h, wk_real *d)
{
    for (int row = h->keys; row < h->queries; row++)
        memset(d + h->at + (size_t)row * h->stride, 0, (size_t)h->a->size * sizeof *d);
}

static void head_backward(const struct head *h, const struct wk_qkv *in, const struct wk_qkv *d_in,
                          const wk_real *d_out, const wk_real *lse)
{
    const wk_real *q = in->q.data, *k = in->k.data, *v = in->v.data;
    wk_real *d_q = d_in->q.data, *d_k = d_in->k.data, *d_v = d_in->v.data;
    int size = h->a->size, stride = h->stride, keys = h->keys;

    for (int first = 0; first < h->queries; first += QUERIES) {
        int n = h->queries - first < QUERIES ? h->queries - first : QUERIES;
        size_t tile = h->at + (size_t)first * stride;
        wk_real keep = first ? 1 : 0;

        scores_of(h, q, k, first, n);
        gemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, keys, size, 1, d_out + tile, stride,
             v + h->at, stride, 0, h->d_scores, keys);
        tile_backward(h, lse, first, n);
        gemm(CblasRowMajor, CblasTrans, CblasNoTrans, keys, size, n, 1, h->scores, keys,
             d_out + tile, stride, keep, d_v + h->at, stride);
        gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, size, keys, 1, h->d_scores, keys,
             k + h->at, stride, 0, d_q + tile, stride);
        gemm(CblasRowMajor, CblasTrans, CblasNoTrans, keys, size, n, 1, h->d_scores, keys, q + tile,
             stride, keep, d_k + h->at, stride);
    }
    clear_rows(h, d_k);
    clear_rows(h, d_v);
}

static void cpu_attention_backward(struct wk_dev *dev, const struct wk_attention *a,
                                   const struct wk_packing *p, const struct wk_qkv *d_in,
                                   struct wk_span d_out, struct wk_span out, struct wk_span lse,
                                   struct wk_span mask, const struct wk_qkv *in)
{
    struct cpu *c = cpu_of(dev);
    size_t each = wk_cpu_attention_scratch(p->longest);
    wk_real *scratch = wk_cpu_scratch(c, each * dev->threads);

    (void)mask;
    (void)out; /* its dot products with d_out are computed again with the probabilities */
#pragma omp parallel for num_threads(dev->threads) schedule(dynamic)
    for (int task = 0; task < p->sequences * a->heads; task++) {
        struct head h = head_of(c, a, p, task, scratch + each * omp_get_thread_num());

        head_backward(&h, in, d_in, d_out.data, lse.data);
    }
}

const struct wk_backend wk_cpu_attention_ops = {
    .attention_forward = cpu_attention_forward,
    .attention_backward = cpu_attention_backward,
};
