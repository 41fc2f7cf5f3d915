/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of ops.c: token sequences but attention. A shape is (lengths, columns, dropout in tenths, more). */
#include <stdlib.h>

#include "gpu/ops.h"

#define WORDS 40
#define TYPES 2
#define PADDING 3

static const struct wk_rng rng = { 0xfedcba987654321ULL, WK_SITE_DROPOUT + 9, 12 };

/* ids of rows that fill up are 0, as their types. `same`: most words are one. */
static void put_words(struct ops_run *r, const struct ops_packing *p, int words, bool same,
                      struct wk_span *ids, struct wk_span *types)
{
    int32_t id[1024] = { 0 }, type[1024] = { 0 };

    for (int i = 0; i < p->rows; i++) {
        id[i] = same && i % 9 ? 17 : (i * (words > WORDS ? 1021 : 31) + i / 5) % words;
        type[i] = i % 3 == 1;
    }
    *ids = ops_ints(r, id, (size_t)p->p.rows);
    *types = ops_ints(r, type, (size_t)p->p.rows);
}

/* The third number: more words, which are sorted by two digits. */
static const int embeds[] = { 0,  8, 0, 0, 1,   64, 0, 0, 1, 13,   0, 1, 2, 24,   0, 0, 3,
                              40, 0, 1, 4, 264, 0,  1, 5, 8, 5000, 0, 5, 8, 5000, 1, -1 };

static void run_embed(struct ops_run *r, const int *shape)
{
    struct ops_packing p = ops_pack(r, &ops_lengths[shape[0]]);
    size_t cols = (size_t)shape[1], longest = (size_t)p.p.longest;
    const struct wk_backend *ops = r->dev->backend;
    int words = shape[2] ? shape[2] : WORDS;
    struct wk_span word = ops_work(r, (size_t)words * cols, 1, 1, 0);
    struct wk_span position = ops_work(r, longest * cols, 2, 1, 0);
    struct wk_span type = ops_work(r, TYPES * cols, 3, 1, 0);
    struct wk_span y = ops_alloc(r, r->working, (size_t)p.p.rows * cols), ids, types;
    struct wk_span d_y = ops_rows(r, &p, cols, 4, 1);
    struct wk_span d_word = ops_real(r, word.n, 5, 1, 0);
    struct wk_span d_position = ops_real(r, position.n, 6, 1, 0);
    struct wk_span d_type = ops_real(r, type.n, 7, 1, 0);

    put_words(r, &p, words, shape[3], &ids, &types);
    ops->embed_forward(r->dev, y, ids, types, &p.p, word, position, type, shape[1]);
    ops->embed_backward(r->dev, d_word, d_position, d_type, d_y, ids, types, &p.p, PADDING,
                        shape[1]);
    ops_keep_rows(r, "y", &p, y);
    ops_keep(r, "d_word", d_word);
    ops_keep(r, "d_position", d_position);
    ops_keep(r, "d_type", d_type);
}

#define FEATURES (11 + 7 * OPS_SEQUENCES_MAX)

/* Feature k has as many tokens as the sequence that is it, others one; a third of them of the first type. */
static struct wk_token_source make_source(struct ops_run *r, const struct ops_lengths *l)
{
    int32_t at[FEATURES + 1] = { 0 }, second[FEATURES], tokens[1024];

    for (int f = 0; f < FEATURES; f++) {
        int s = f >= 11 && (f - 11) % 7 == 0 ? (f - 11) / 7 : -1;

        at[f + 1] = at[f] + (s >= 0 && s < l->sequences ? l->tokens[s] : 1);
        second[f] = (at[f + 1] - at[f]) / 3;
    }
    for (int i = 0; i < at[FEATURES]; i++)
        tokens[i] = 100 + i;
    return (struct wk_token_source){ ops_ints(r, tokens, (size_t)at[FEATURES]),
                                     ops_ints(r, at, FEATURES + 1), ops_ints(r, second, FEATURES) };
}

static const int gathered[] = { 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, -1 };

static void run_gather_tokens(struct ops_run *r, const int *shape)
{
    struct ops_packing p = ops_pack(r, &ops_lengths[shape[0]]);
    struct wk_token_source from = make_source(r, &ops_lengths[shape[0]]);
    int32_t nothing[1024];
    struct wk_span ids, types;

    for (int i = 0; i < p.p.rows; i++)
        nothing[i] = -7;
    ids = ops_ints(r, nothing, (size_t)p.p.rows);
    types = ops_ints(r, nothing, (size_t)p.p.rows);
    p.p.sequence = ops_ints(r, nothing, (size_t)p.p.rows);
    r->dev->backend->gather_tokens(r->dev, ids, types, &p.p, &from);
    ops_keep_clean(r, "ids", &p, ids);
    ops_keep_clean(r, "types", &p, types);
    ops_keep_rows(r, "sequence", &p, p.p.sequence);
}

static const int rows[] = { 0, 8, 1,   0,  1, 64, 1,   0,    1, 13, 1,    0,  2, 24, 1,
                            0, 3, 256, 1,  0, 3,  768, 1,    0, 0,  1024, 1,  0, 1,  264,
                            0, 0, 1,   21, 0, 0,  0,   1304, 1, 0,  4,    96, 1, 0,  -1 };

static void run_token_dropout(struct ops_run *r, const int *shape)
{
    struct ops_packing p = ops_pack(r, &ops_lengths[shape[0]]);
    struct wk_span x = ops_rows(r, &p, (size_t)shape[1], 1, 1);

    r->dev->backend->token_dropout(r->dev, x, x, &p.p, shape[1], shape[2] * 0.1, rng);
    ops_keep_rows(r, "y", &p, x);
}

static void run_norm(struct ops_run *r, const int *shape)
{
    struct ops_packing p = ops_pack(r, &ops_lengths[shape[0]]);
    size_t cols = (size_t)shape[1], n = (size_t)p.p.rows * cols;
    const struct wk_backend *ops = r->dev->backend;
    double drop = shape[2] * 0.1;
    struct wk_span x = ops_rows(r, &p, cols, 1, 2), residual = ops_rows(r, &p, cols, 2, 2);
    struct wk_span weight = ops_work(r, cols, 3, 0.5f, 1), bias = ops_work(r, cols, 4, 0.5f, 0);
    struct wk_span y = ops_alloc(r, r->working, n),
                   saved = ops_alloc(r, WK_REAL, 2 * (size_t)p.p.rows);
    struct wk_span d_y = ops_rows(r, &p, cols, 5, 1), d_x = ops_alloc(r, r->working, n);
    struct wk_span d_weight = ops_real(r, cols, 6, 1, 0), d_bias = ops_real(r, cols, 7, 1, 0);

    ops->norm_forward(r->dev, y, saved, x, drop > 0 ? residual : WK_NONE, weight, bias, &p.p,
                      shape[1], 1e-12, drop, rng);
    ops->norm_backward(r->dev, d_y, drop > 0 ? d_x : WK_NONE, d_weight, d_bias, d_y, x, weight,
                       saved, &p.p, shape[1], drop, rng);
    ops_keep_rows(r, "sum", &p, x);
    ops_keep_rows(r, "y", &p, y);
    ops_keep_rows(r, "d_sum", &p, d_y);
    ops_keep_rows(r, "d_x", &p, d_x);
    ops_keep(r, "d_weight", d_weight);
    ops_keep(r, "d_bias", d_bias);
}

static const int spans[] = { 0, 0, 0, 0, 1, 1, 0, 0, 3, 1, 0, 0, 4, 1, 0, 0, -1 };

static void run_span_loss(struct ops_run *r, const int *shape)
{
    struct ops_packing p = ops_pack(r, &ops_lengths[shape[0]]);
    int32_t start[OPS_SEQUENCES_MAX], end[OPS_SEQUENCES_MAX];
    struct wk_span z = ops_real(r, 2 * (size_t)p.p.rows, 1, 5, 0), starts, ends;
    struct wk_span loss = ops_alloc(r, WK_REAL, 1), scale = ops_real(r, 1, 2, 0, 16);
    struct wk_span d = shape[1] ? ops_work(r, z.n, 3, 1, 0) : WK_NONE;

    for (int s = 0; s < p.p.sequences; s++) {
        start[s] = ops_lengths[shape[0]].rows[s] / 3;
        end[s] = ops_lengths[shape[0]].rows[s] - 1;
    }
    starts = ops_ints(r, start, (size_t)p.p.sequences);
    ends = ops_ints(r, end, (size_t)p.p.sequences);
    r->dev->backend->span_loss(r->dev, loss, d, z, &p.p, starts, ends, 0.25, scale);
    ops_keep(r, "loss", loss);
    if (d.data)
        ops_keep_clean(r, "d_logits", &p, d);
}

const struct ops_case ops_cases_tokens[] = {
    { "embed", run_embed, embeds, { 4e-6, 4e-6, 0.004, 0.0005 }, "order of sums; y is rounded" },
    { "gather_tokens", run_gather_tokens, gathered, { 0, 0, 0, 0 }, "exact" },
    { "token_dropout",
      run_token_dropout,
      rows,
      { 1e-6, 1e-6, 0.004, 0.0005 },
      "rounding; the masks are the same" },
    { "norm",
      run_norm,
      rows,
      { 1e-5, 1e-5, 0.02, 0.0025 },
      "the sum is rounded before its statistics, and again in y and both gradients" },
    { "span_loss", run_span_loss, spans, { 4e-6, 4e-6, 0.004, 0.0005 }, "order of sums, exp" },
    { NULL, NULL, NULL, { 0 }, NULL },
};
