/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of ops.c: attention and the LSTM. */
#include "gpu/ops.h"

#define N_TENSORS 3

/* (lengths, heads, size, dropout in tenths). Size 64 is BERT's; others are padded inside. */
static const int attentions[] = { 0,  1, 64, 0, 0,  2, 8,   1, 1,  2, 64, 0, 1,  2,
                                  64, 1, 1,  1, 16, 3, 2,   3, 40, 1, 3,  2, 64, 1,
                                  3,  1, 72, 0, 1,  2, 128, 1, 4,  1, 64, 1, -1 };

static void run_attention(struct ops_run *r, const int *shape)
{
    struct ops_packing p = ops_pack(r, &ops_lengths[shape[0]]);
    struct wk_attention a = {
        shape[1], shape[2], shape[3] * 0.1, { 0x1234567890abcdefULL, WK_SITE_DROPOUT + 3, 21 }
    };
    size_t cols = (size_t)(shape[1] * shape[2]), n = (size_t)p.p.rows * cols;
    struct wk_qkv in = { ops_rows(r, &p, cols, 1, 2), ops_rows(r, &p, cols, 2, 2),
                         ops_rows(r, &p, cols, 3, 1) };
    struct wk_qkv d_in = { ops_work(r, n, 4, 1, 0), ops_work(r, n, 5, 1, 0),
                           ops_work(r, n, 6, 1, 0) };
    struct wk_span out = ops_work(r, n, 7, 1, 0), d_out = ops_rows(r, &p, cols, 8, 1);
    struct wk_span lse = ops_real(r, (size_t)(p.p.rows * shape[1]), 9, 1, 0), mask = WK_NONE;

    if (r->dev->backend->attention_mask)
        mask = ops_alloc(r, WK_U8, r->dev->backend->attention_mask(&a, p.p.rows, p.p.longest));
    r->dev->backend->attention_forward(r->dev, &a, &p.p, out, lse, mask, &in);
    if (mask.data)
        a.rng.seed = 0; /* where there is a mask, nothing is drawn once more */
    r->dev->backend->attention_backward(r->dev, &a, &p.p, &d_in, d_out, out, lse, mask, &in);
    ops_keep_clean(r, "out", &p, out);
    ops_keep_rows(r, "lse", &p, lse);
    ops_keep_clean(r, "d_q", &p, d_in.q);
    ops_keep_clean(r, "d_k", &p, d_in.k);
    ops_keep_clean(r, "d_v", &p, d_in.v);
}

/* Scores far apart: softmax is nearly one key. */
static const int sharp[] = { 1, 2, 64, 1, 3, 1, 64, 0, -1 };

static void run_sharp(struct ops_run *r, const int *shape)
{
    struct ops_packing p = ops_pack(r, &ops_lengths[shape[0]]);
    struct wk_attention a = { shape[1], shape[2], shape[3] * 0.1, { 1, WK_SITE_DROPOUT, 2 } };
    size_t cols = (size_t)(shape[1] * shape[2]), n = (size_t)p.p.rows * cols;
    struct wk_qkv in = { ops_rows(r, &p, cols, 1, 24), ops_rows(r, &p, cols, 2, 24),
                         ops_rows(r, &p, cols, 3, 1) };
    struct wk_span out = ops_work(r, n, 7, 1, 0);

    r->dev->backend->attention_forward(r->dev, &a, &p.p, out, WK_NONE, WK_NONE, &in);
    ops_keep_clean(r, "out", &p, out);
}

/* (batch, steps, in, hidden) */
static const int lstms[] = { 1,  1,  1, 1, 3,  5, 2, 7, 5,  28, 28, 64, 2,  3, 33,
                             20, 70, 2, 4, 17, 4, 3, 5, 70, 9,  4,  28, 64, -1 };

static void run_lstm(struct ops_run *r, const int *shape)
{
    struct wk_lstm l = { shape[0], shape[1], shape[2], shape[3] };
    size_t in = (size_t)l.in, hidden = (size_t)l.hidden, batch = (size_t)l.batch;
    struct wk_lstm_weights w = { ops_work(r, 4 * hidden * in, 1, 0.3f, 0),
                                 ops_work(r, 4 * hidden * hidden, 2, 0.3f, 0),
                                 ops_work(r, 4 * hidden, 3, 0.3f, 0),
                                 ops_work(r, 4 * hidden, 4, 0.3f, 0) };
    struct wk_lstm_weights d = { ops_real(r, 4 * hidden * in, 5, 1, 0),
                                 ops_real(r, 4 * hidden * hidden, 6, 1, 0),
                                 ops_real(r, 4 * hidden, 7, 1, 0),
                                 ops_real(r, 4 * hidden, 8, 1, 0) };
    struct wk_span x = ops_work(r, batch * (size_t)l.steps * in, 9, 1, 0);
    struct wk_span h = ops_alloc(r, r->working, batch * hidden), again = ops_alloc(r, h.type, h.n);
    struct wk_span d_h = ops_work(r, batch * hidden, 10, 1, 0);
    struct wk_span state = ops_alloc(r, WK_REAL, r->dev->backend->lstm_state(r->dev, &l));

    r->dev->backend->lstm_forward(r->dev, &l, &w, again, WK_NONE, x);
    r->dev->backend->lstm_forward(r->dev, &l, &w, h, state, x);
    r->dev->backend->lstm_backward(r->dev, &l, &w, &d, state, x, d_h);
    ops_keep(r, "h without state", again);
    ops_keep(r, "h", h);
    ops_keep(r, "d_w_ih", d.w_ih);
    ops_keep(r, "d_w_hh", d.w_hh);
    ops_keep(r, "d_b_ih", d.b_ih);
    ops_keep(r, "d_b_hh", d.b_hh);
}

const struct ops_case ops_cases_attention[] = {
    { "attention",
      run_attention,
      attentions,
      { 2e-5, 4e-3, 0.03, 0.004 },
      "order of sums; 16-bit: probabilities and slopes are rounded before products" },
    { "attention_sharp",
      run_sharp,
      sharp,
      { 2e-4, 4e-3, 0.02, 0.0025 },
      "scores up to 2,000: a unit of their last place is 1e-4" },
    { "lstm",
      run_lstm,
      lstms,
      { 1e-5, 2e-3, 0.004, 0.0005 },
      "exp and order of sums; h is rounded" },
    { NULL, NULL, NULL, { 0 }, NULL },
};
