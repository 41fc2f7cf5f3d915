/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of ops.c: elements, batches, the RNN's ops, dense layers, updates. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/ops.h"

/* Bounds: what rounding an output to the working type costs (2^-8 in bf16, 2^-11 in fp16), or some units of the last place of
 * fp32. */
#define ROUNDED                   \
    {                             \
        1e-6, 1e-6, 0.004, 0.0005 \
    }
#define ROUNDED_TWICE            \
    {                            \
        1e-6, 1e-6, 0.008, 0.001 \
    }
#define SUMS                      \
    {                             \
        4e-6, 4e-6, 0.004, 0.0005 \
    }

static const int sizes[] = { 1, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 257, 0, 0, 0, 5003, 0, 0, 0, -1 };

static void run_fill(struct ops_run *r, const int *shape)
{
    struct wk_span y = ops_alloc(r, r->working, (size_t)shape[0]);

    r->dev->backend->fill(r->dev, y, 0.3);
    ops_keep(r, "y", y);
}

/* Grains, of which one of four is cleared, or none. */
static const int grains[] = { 1, 1, 0, 0, 1, 0, 0, 0, 33, 4, 0, 0, 3000, 4, 0, 0, -1 };

static void run_clear(struct ops_run *r, const int *shape)
{
    size_t n = (size_t)shape[0];
    struct wk_span y = ops_real(r, n * WK_GRAIN, 1, 2, 0);
    uint8_t *spared = calloc(n, 1);

    for (size_t i = 0; spared && i < n; i++)
        spared[i] = shape[1] == 0 || i % (size_t)shape[1] > 0;
    r->dev->backend->clear(r->dev, y, ops_bytes(r, spared, n));
    ops_keep(r, "y", y);
    free(spared);
}

static void run_scale(struct ops_run *r, const int *shape)
{
    struct wk_span y = ops_work(r, (size_t)shape[0], 1, 2, 0);

    r->dev->backend->scale(r->dev, y, -0.7);
    ops_keep(r, "y", y);
}

/* A part that does not begin at a multiple of 16 bytes. */
static void run_add(struct ops_run *r, const int *shape)
{
    size_t n = (size_t)shape[0];
    struct wk_span y = ops_work(r, n + 3, 1, 2, 0), x = ops_work(r, n + 3, 2, 2, 0);

    r->dev->backend->add(r->dev, wk_span_part(y, 3, n), wk_span_part(x, 3, n));
    r->dev->backend->add(r->dev, wk_span_part(y, 0, n), wk_span_part(x, 0, n));
    ops_keep(r, "y", y);
}

static void run_convert(struct ops_run *r, const int *shape)
{
    struct wk_span x = ops_work(r, (size_t)shape[0], 1, 2, 0);
    struct wk_span y = ops_alloc(r, WK_REAL, (size_t)shape[0]);
    struct wk_span z = ops_alloc(r, r->working, (size_t)shape[0]);

    r->dev->backend->convert(r->dev, y, x);
    r->dev->backend->convert(r->dev, z, y);
    ops_keep(r, "y", y);
    ops_keep(r, "z", z);
}

static void run_copy(struct ops_run *r, const int *shape)
{
    size_t n = (size_t)shape[0];
    struct wk_span x = ops_work(r, n + 3, 1, 2, 0), y = ops_alloc(r, r->working, n + 3);
    struct wk_span a = ops_real(r, n, 2, 2, 0), b = ops_alloc(r, WK_REAL, n);

    r->dev->backend->copy(r->dev, wk_span_part(y, 3, n), wk_span_part(x, 3, n));
    r->dev->backend->copy(r->dev, b, a);
    b.type = a.type = WK_U8; /* fewer bytes than there is room for */
    r->dev->backend->copy(r->dev, wk_span_part(b, 1, n), wk_span_part(a, 2, n));
    b.type = WK_REAL;
    ops_keep(r, "y", y);
    ops_keep(r, "b", b);
}

static void run_square_sum(struct ops_run *r, const int *shape)
{
    struct wk_span x = ops_real(r, (size_t)shape[0], 1, 3, 0.5f), sum = ops_alloc(r, WK_REAL, 1);

    r->dev->backend->square_sum(r->dev, sum, x);
    ops_keep(r, "sum", sum);
}

static void run_relu(struct ops_run *r, const int *shape)
{
    struct wk_span x = ops_work(r, (size_t)shape[0], 1, 2, 0);
    struct wk_span d = ops_work(r, (size_t)shape[0], 2, 2, 0);

    r->dev->backend->relu_forward(r->dev, x, x);
    r->dev->backend->relu_backward(r->dev, d, d, x);
    ops_keep(r, "y", x);
    ops_keep(r, "d_x", d);
}

static void gelu(struct ops_run *r, const int *shape, enum wk_gelu form)
{
    size_t n = (size_t)shape[0];
    struct wk_span x = ops_work(r, n, 1, 6, 0), y = ops_alloc(r, r->working, n);
    struct wk_span d = ops_work(r, n, 2, 1, 0);

    r->dev->backend->gelu_forward(r->dev, y, x, form);
    r->dev->backend->gelu_backward(r->dev, d, d, x, form);
    ops_keep(r, "y", y);
    ops_keep(r, "d_x", d);
}

static void run_gelu_erf(struct ops_run *r, const int *shape)
{
    gelu(r, shape, WK_GELU_ERF);
}

static void run_gelu_tanh(struct ops_run *r, const int *shape)
{
    gelu(r, shape, WK_GELU_TANH);
}

/* ---- Batches: (n, width) out of ten rows ---- */

static const int gathers[] = { 1, 1, 0, 0, 3, 7, 0, 0, 5, 784, 0, 0, 64, 24, 0, 0, -1 };

static void run_gather(struct ops_run *r, const int *shape)
{
    int n = shape[0], width = shape[1];
    uint8_t *bytes = malloc((size_t)(10 * width));
    int32_t index[64], values[10];
    struct wk_span y = ops_alloc(r, r->working, (size_t)(n * width)),
                   z = ops_alloc(r, WK_I32, (size_t)n);

    for (int i = 0; bytes && i < 10 * width; i++)
        bytes[i] = (uint8_t)(i * 37 + i / 11);
    for (int i = 0; i < 64; i++)
        index[i] = (i * 7 + 3) % 10;
    for (int i = 0; i < 10; i++)
        values[i] = 5 - i;
    struct wk_span rows = ops_bytes(r, bytes, (size_t)(10 * width)),
                   at = ops_ints(r, index, (size_t)n), from = ops_ints(r, values, 10);

    r->dev->backend->gather_u8(r->dev, y, rows, at, n, width, 0.1307, 0.3081);
    r->dev->backend->gather_i32(r->dev, z, from, at, n);
    ops_keep(r, "y", y);
    ops_keep(r, "z", z);
    free(bytes);
}

/* ---- The RNN's head: (rows, cols) ---- */

static const int batches[] = { 2, 1, 0, 0, 3, 5, 0, 0, 64, 64, 0, 0, 130, 33, 0, 0, -1 };

static void run_batchnorm(struct ops_run *r, const int *shape)
{
    size_t rows = (size_t)shape[0], cols = (size_t)shape[1];
    const struct wk_backend *ops = r->dev->backend;
    struct wk_span x = ops_work(r, rows * cols, 1, 2, 0.5f), y = ops_alloc(r, r->working, x.n);
    struct wk_span weight = ops_work(r, cols, 2, 1, 1), bias = ops_work(r, cols, 3, 1, 0);
    struct wk_span mean = ops_real(r, cols, 4, 1, 0), var = ops_real(r, cols, 5, 0.5f, 1);
    struct wk_span saved = ops_alloc(r, WK_REAL, 2 * cols), z = ops_alloc(r, r->working, x.n);
    struct wk_span d_y = ops_work(r, x.n, 6, 1, 0), d_x = ops_alloc(r, r->working, x.n);
    struct wk_span d_weight = ops_real(r, cols, 7, 1, 0), d_bias = ops_real(r, cols, 8, 1, 0);

    ops->batchnorm_forward(r->dev, y, saved, mean, var, x, weight, bias, shape[0], shape[1]);
    ops->batchnorm_infer(r->dev, z, mean, var, x, weight, bias, shape[0], shape[1]);
    ops->batchnorm_backward(r->dev, d_x, d_weight, d_bias, d_y, x, weight, saved, shape[0],
                            shape[1]);
    ops_keep(r, "y", y);
    ops_keep(r, "infer", z);
    ops_keep(r, "running_mean", mean);
    ops_keep(r, "running_var", var);
    ops_keep(r, "d_x", d_x);
    ops_keep(r, "d_weight", d_weight);
    ops_keep(r, "d_bias", d_bias);
}

static void run_dropout(struct ops_run *r, const int *shape)
{
    int32_t sample[256];
    size_t n = (size_t)(shape[0] * shape[1]);
    struct wk_span x = ops_work(r, n, 1, 1, 2), y = ops_alloc(r, r->working, n), key;

    for (int i = 0; i < shape[0]; i++)
        sample[i] = 3 * i + 1;
    key = ops_ints(r, sample, (size_t)shape[0]);
    r->dev->backend->dropout(r->dev, y, x, key, shape[0], shape[1], 0.25,
                             (struct wk_rng){ 0x123456789abcdefULL, WK_SITE_DROPOUT + 1, 5 });
    ops_keep(r, "y", y);
}

/* ---- All of the head but its loss, against the ops that it is made of: (rows, in, mid, out) ---- */

static const int heads[] = { 2,  1,  1,  2,  3, 5,  7, 3,   64, 64, 32, 10, 70,
                             33, 32, 32, 65, 8, 31, 2, 300, 72, 9,  5,  -1 };

struct head_run {
    struct wk_head h;
    struct wk_head_weights w, d_w;
    struct wk_span mean, var, logits, d_logits, d_x;
};

static struct wk_head_weights head_weights(struct ops_run *r, const struct wk_head *h,
                                           uint32_t what,
                                           struct wk_span (*make)(struct ops_run *, size_t,
                                                                  uint32_t, float, float))
{
    size_t in = (size_t)h->in, mid = (size_t)h->mid, out = (size_t)h->out;

    return (struct wk_head_weights){
        make(r, in, what, 1, 1),
        make(r, in, what + 1, 1, 0),
        make(r, in * mid, what + 2, 1, 0),
        make(r, mid, what + 3, 1, 0),
        make(r, mid * out, what + 4, 1, 0),
        make(r, out, what + 5, 1, 0),
    };
}

static void drop_out(struct ops_run *r, const struct wk_head *h, struct wk_span y, int cols,
                     uint32_t place)
{
    double drop = place ? h->drop_mid : h->drop_in;
    struct wk_rng rng = h->rng;

    rng.site += place;
    if (drop > 0)
        r->dev->backend->dropout(r->dev, y, y, h->sample, h->rows, cols, drop, rng);
}

static void forward_by_ops(struct ops_run *r, const struct head_run *t)
{
    const struct wk_backend *ops = r->dev->backend;
    const struct wk_head *h = &t->h;

    ops->batchnorm_forward(r->dev, h->normed, h->saved, t->mean, t->var, h->x, t->w.norm_weight,
                           t->w.norm_bias, h->rows, h->in);
    drop_out(r, h, h->normed, h->in, 0);
    ops->linear_forward(r->dev, h->dense, h->normed, t->w.weight1, t->w.bias1, h->rows, h->in,
                        h->mid);
    ops->relu_forward(r->dev, h->dense, h->dense);
    drop_out(r, h, h->dense, h->mid, 1);
    ops->linear_forward(r->dev, t->logits, h->dense, t->w.weight2, t->w.bias2, h->rows, h->mid,
                        h->out);
}

static void backward_by_ops(struct ops_run *r, const struct head_run *t)
{
    const struct wk_backend *ops = r->dev->backend;
    const struct wk_head *h = &t->h;
    struct wk_span d_dense = ops_alloc(r, WK_REAL, h->dense.n);
    struct wk_span d_normed = ops_alloc(r, WK_REAL, h->normed.n);

    ops->linear_backward(r->dev, d_dense, t->d_w.weight2, t->d_w.bias2, t->d_logits, h->dense,
                         t->w.weight2, h->rows, h->mid, h->out);
    drop_out(r, h, d_dense, h->mid, 1);
    ops->relu_backward(r->dev, d_dense, d_dense, h->dense);
    ops->linear_backward(r->dev, d_normed, t->d_w.weight1, t->d_w.bias1, d_dense, h->normed,
                         t->w.weight1, h->rows, h->in, h->mid);
    drop_out(r, h, d_normed, h->in, 0);
    ops->batchnorm_backward(r->dev, t->d_x, t->d_w.norm_weight, t->d_w.norm_bias, d_normed, h->x,
                            t->w.norm_weight, h->saved, h->rows, h->in);
}

static struct head_run head_open(struct ops_run *r, const int *shape, bool dropout)
{
    size_t rows = (size_t)shape[0], in = (size_t)shape[1], mid = (size_t)shape[2];
    size_t out = (size_t)shape[3];
    struct head_run t = { .h = { shape[0], shape[1], shape[2], shape[3] } };
    int32_t sample[512];

    for (int i = 0; i < shape[0]; i++)
        sample[i] = 3 * i + 1;
    t.h.drop_in = dropout ? 0.25 : 0;
    t.h.drop_mid = dropout ? 0.5 : 0;
    t.h.rng = (struct wk_rng){ 0x123456789abcdefULL, WK_SITE_DROPOUT + 1, 5 };
    t.h.sample = ops_ints(r, sample, rows);
    t.h.x = ops_work(r, rows * in, 1, 2, 0.5f);
    t.h.saved = ops_alloc(r, WK_REAL, 2 * in);
    t.h.normed = ops_alloc(r, r->working, rows * in);
    t.h.dense = ops_alloc(r, r->working, rows * mid);
    t.w = head_weights(r, &t.h, 2, ops_work);
    t.d_w = head_weights(r, &t.h, 8, ops_real);
    t.mean = ops_real(r, in, 14, 1, 0);
    t.var = ops_real(r, in, 15, 0.5f, 1);
    t.logits = ops_alloc(r, WK_REAL, rows * out);
    t.d_logits = ops_work(r, rows * out, 16, 1, 0);
    t.d_x = ops_alloc(r, r->working, rows * in);
    return t;
}

/* Backward gets a middle of its own: one that is almost 0 can be above it on one device and below it on the other. */
static void head(struct ops_run *r, const int *shape, bool dropout)
{
    const struct wk_backend *ops = r->dev->backend;
    struct head_run t = head_open(r, shape, dropout);

    if (ops->head_forward)
        ops->head_forward(r->dev, &t.h, &t.w, t.mean, t.var, t.logits);
    else
        forward_by_ops(r, &t);
    ops_keep(r, "logits", t.logits);
    ops_keep(r, "normed", t.h.normed);
    ops_keep(r, "dense", t.h.dense);
    t.h.normed = ops_work(r, t.h.normed.n, 17, 1, 0);
    t.h.dense = ops_work(r, t.h.dense.n, 18, 1, 0.5f);
    ops->relu_forward(r->dev, t.h.dense, t.h.dense);
    drop_out(r, &t.h, t.h.dense, t.h.mid, 1);
    if (ops->head_backward)
        ops->head_backward(r->dev, &t.h, &t.w, &t.d_w, t.d_x, t.d_logits);
    else
        backward_by_ops(r, &t);
    ops_keep(r, "running_mean", t.mean);
    ops_keep(r, "running_var", t.var);
    ops_keep(r, "d_x", t.d_x);
    ops_keep(r, "d_norm_weight", t.d_w.norm_weight);
    ops_keep(r, "d_norm_bias", t.d_w.norm_bias);
    ops_keep(r, "d_weight1", t.d_w.weight1);
    ops_keep(r, "d_bias1", t.d_w.bias1);
    ops_keep(r, "d_weight2", t.d_w.weight2);
    ops_keep(r, "d_bias2", t.d_w.bias2);
}

static void run_head(struct ops_run *r, const int *shape)
{
    head(r, shape, true);
}

static void run_head_without_dropout(struct ops_run *r, const int *shape)
{
    head(r, shape, false);
}

static const int classes[] = { 1, 2, 0, 0, 3, 10, 0, 0, 64, 10, 0, 0, 600, 33, 0, 0, -1 };

static void run_nll(struct ops_run *r, const int *shape)
{
    int32_t labels[1024];
    int rows = shape[0], n = shape[1];
    struct wk_span z = ops_real(r, (size_t)(rows * n), 1, 4, 0), loss = ops_alloc(r, WK_REAL, 1);
    struct wk_span d = ops_alloc(r, r->working, z.n), out = ops_alloc(r, WK_REAL, 2), label;
    struct wk_span scale = ops_real(r, 1, 2, 0, 8);

    for (int i = 0; i < rows; i++)
        labels[i] = (i * 5 + 1) % n;
    label = ops_ints(r, labels, (size_t)rows);
    r->dev->backend->nll_score(r->dev, out, z, label, rows, n);
    r->dev->backend->nll(r->dev, loss, d, z, label, rows, n, 0.5, scale);
    ops_keep(r, "loss", loss);
    ops_keep(r, "d_logits", d);
    ops_keep(r, "score", out);
}

/* ---- Dense layers: (rows, in, out) ---- */

static const int dense[] = {
    1, 1, 1, 0, 3, 5, 7, 0, 33, 16, 40, 0, 64, 64, 32, 0, 40, 32, 2, 0, -1
};

static void run_linear(struct ops_run *r, const int *shape)
{
    int rows = shape[0], in = shape[1], out = shape[2];
    size_t n_x = (size_t)(rows * in), n_y = (size_t)(rows * out), n_w = (size_t)(in * out);
    const struct wk_backend *ops = r->dev->backend;
    struct wk_span x = ops_work(r, n_x, 1, 1, 0), w = ops_work(r, n_w, 2, 1, 0);
    struct wk_span b = ops_work(r, (size_t)out, 3, 1, 0), y = ops_alloc(r, r->working, n_y);
    struct wk_span d_y = ops_work(r, n_y, 4, 1, 0), d_x = ops_alloc(r, r->working, n_x);
    struct wk_span d_w = ops_real(r, n_w, 5, 1, 0), d_b = ops_real(r, (size_t)out, 6, 1, 0);
    struct wk_span logits = ops_alloc(r, WK_REAL, n_y);

    ops->linear_forward(r->dev, logits, x, w, b, rows, in, out);
    ops->linear_forward(r->dev, y, x, w, b, rows, in, out);
    ops->linear_backward(r->dev, d_x, d_w, d_b, d_y, x, w, rows, in, out);
    ops->linear_backward_add(r->dev, d_x, d_w, d_b, d_y, x, w, rows, in, out);
    ops->linear_backward(r->dev, WK_NONE, d_w, d_b, d_y, x, w, rows, in, out);
    ops_keep(r, "logits", logits);
    ops_keep(r, "y", y);
    ops_keep(r, "d_x", d_x);
    ops_keep(r, "d_weight", d_w);
    ops_keep(r, "d_bias", d_b);
}

/* Runs a case of dense layers that overwrite the gradients of their weights. */
static void fresh(struct ops_run *r, const int *shape,
                  void (*run)(struct ops_run *r, const int *shape))
{
    r->dev->fresh = true;
    run(r, shape);
    r->dev->fresh = false;
}

static void run_linear_fresh(struct ops_run *r, const int *shape)
{
    fresh(r, shape, run_linear);
}

static void linear_gelu(struct ops_run *r, const int *shape, enum wk_gelu form)
{
    int rows = shape[0], in = shape[1], out = shape[2];
    size_t n_x = (size_t)(rows * in), n_y = (size_t)(rows * out), n_w = (size_t)(in * out);
    const struct wk_backend *ops = r->dev->backend;
    struct wk_span x = ops_work(r, n_x, 1, 1, 0), w = ops_work(r, n_w, 2, 0.2f, 0);
    struct wk_span b = ops_work(r, (size_t)out, 3, 1, 0), y = ops_alloc(r, r->working, n_y);
    struct wk_span kept = ops_alloc(r, r->working, n_y), pre = ops_work(r, n_x, 4, 3, 0);
    struct wk_span d_y = ops_work(r, n_y, 5, 1, 0), d_pre = ops_alloc(r, r->working, n_x);
    struct wk_span d_w = ops_real(r, n_w, 6, 1, 0), d_b = ops_real(r, (size_t)out, 7, 1, 0);

    ops->linear_gelu_forward(r->dev, y, kept, x, w, b, rows, in, out, form);
    ops->linear_gelu_backward(r->dev, d_pre, d_w, d_b, d_y, x, pre, w, rows, in, out, form);
    ops_keep(r, "y", y);
    ops_keep(r, "pre", kept);
    ops_keep(r, "d_pre", d_pre);
    ops_keep(r, "d_weight", d_w);
    ops_keep(r, "d_bias", d_b);
}

static void run_linear_gelu_erf(struct ops_run *r, const int *shape)
{
    linear_gelu(r, shape, WK_GELU_ERF);
}

static void run_linear_gelu_tanh(struct ops_run *r, const int *shape)
{
    linear_gelu(r, shape, WK_GELU_TANH);
}

/* Three tensors in one, as a strategy may lay them. */
static struct wk_qkv three_of(struct wk_span all)
{
    size_t n = all.n / 3;

    return (struct wk_qkv){ .q = wk_span_part(all, 0, n),
                            .k = wk_span_part(all, n, n),
                            .v = wk_span_part(all, 2 * n, n) };
}

static void run_linear3(struct ops_run *r, const int *shape)
{
    int rows = shape[0], in = shape[1], out = shape[2];
    size_t n_x = (size_t)(rows * in), n_y = 3 * (size_t)(rows * out), n_w = 3 * (size_t)(in * out);
    const struct wk_backend *ops = r->dev->backend;
    struct wk_span x = ops_work(r, n_x, 1, 1, 0), d_x = ops_work(r, n_x, 2, 1, 0);
    struct wk_span y = ops_alloc(r, r->working, n_y), d_w = ops_real(r, n_w, 3, 1, 0);
    struct wk_span d_b = ops_real(r, 3 * (size_t)out, 4, 1, 0);
    struct wk_qkv ys = three_of(y), w = three_of(ops_work(r, n_w, 5, 1, 0));
    struct wk_qkv b = three_of(ops_work(r, 3 * (size_t)out, 6, 1, 0)), d_ws = three_of(d_w);
    struct wk_qkv d_bs = three_of(d_b), d_y = three_of(ops_work(r, n_y, 7, 1, 0));

    ops->linear3_forward(r->dev, &ys, x, &w, &b, rows, in, out);
    ops->linear3_backward(r->dev, d_x, &d_ws, &d_bs, &d_y, x, &w, rows, in, out);
    ops_keep(r, "y", y);
    ops_keep(r, "d_x", d_x);
    ops_keep(r, "d_weight", d_w);
    ops_keep(r, "d_bias", d_b);
}

static void run_linear3_fresh(struct ops_run *r, const int *shape)
{
    fresh(r, shape, run_linear3);
}

/* ---- Updates: (n, form) ---- */

static const int updates[] = { 1, 0,    0, 0, 8, 1,    0, 0, 1003, 0, 0,
                               0, 1003, 1, 0, 0, 1003, 2, 0, 0,    -1 };

static struct wk_span control_of(struct ops_run *r, double clip, float square)
{
    struct wk_span control = ops_alloc(r, WK_REAL, WK_CONTROL_N);
    struct wk_span sum = ops_real(r, 1, 1, 0, square);
    const float start[WK_CONTROL_N] = { [WK_CONTROL_LOSS_SCALE] = 4, [WK_CONTROL_SKIPPED] = 1 };
    const struct wk_control how = { clip, true, 1 };

    r->dev->backend->upload(r->dev, control, start);
    r->dev->backend->control(r->dev, control, sum, &how);
    ops_keep(r, "control", control);
    return control;
}

/* Two of three do not decay. */
static struct wk_span spared_of(struct ops_run *r, size_t n)
{
    struct wk_span spared = ops_alloc(r, WK_U8, (n + WK_GRAIN - 1) / WK_GRAIN);
    uint8_t host[16];

    for (size_t i = 0; i < spared.n; i++)
        host[i] = i % 3 > 0;
    r->dev->backend->upload(r->dev, spared, host);
    return spared;
}

static void run_adamw(struct ops_run *r, const int *shape)
{
    size_t n = (size_t)shape[0];
    struct wk_span value = ops_real(r, n, 1, 1, 0), g = ops_real(r, n, 2, 1, 0);
    struct wk_span m = ops_real(r, n, 3, 0.1f, 0), v = ops_real(r, n, 4, 0.1f, 0.2f);
    struct wk_span copy = ops_alloc(r, r->working, n);
    struct wk_adamw how = { .form = (enum wk_adamw_form)shape[1],
                            .lr = 1e-2,
                            .beta1 = 0.9,
                            .beta2 = 0.999,
                            .eps = 1e-6,
                            .decay = 0.01,
                            .scale = 0.5,
                            .step = 3,
                            .copy = copy };

    r->dev->backend->adamw(r->dev, value, g, m, v, &how);
    how.control = control_of(r, 1, 9);
    r->dev->backend->adamw(r->dev, value, g, m, v, &how);
    how.spared = spared_of(r, n);
    r->dev->backend->adamw(r->dev, value, g, m, v, &how);
    how.control = control_of(r, 0, INFINITY); /* skipped */
    r->dev->backend->adamw(r->dev, value, g, m, v, &how);
    ops_keep(r, "value", value);
    ops_keep(r, "m", m);
    ops_keep(r, "v", v);
    ops_keep(r, "copy", copy);
}

static void run_adadelta(struct ops_run *r, const int *shape)
{
    size_t n = (size_t)shape[0];
    struct wk_span value = ops_real(r, n, 1, 1, 0), g = ops_real(r, n, 2, 1, 0);
    struct wk_span square = ops_real(r, n, 3, 0.1f, 0.2f), delta = ops_real(r, n, 4, 0.1f, 0.2f);
    struct wk_span copy = ops_alloc(r, r->working, n);
    struct wk_adadelta how = { .lr = 0.5, .rho = 0.9, .eps = 1e-6, .scale = 1, .copy = copy };

    r->dev->backend->adadelta(r->dev, value, g, square, delta, &how);
    how.control = control_of(r, 1, 9);
    r->dev->backend->adadelta(r->dev, value, g, square, delta, &how);
    how.control = control_of(r, 0, INFINITY); /* skipped */
    r->dev->backend->adadelta(r->dev, value, g, square, delta, &how);
    ops_keep(r, "value", value);
    ops_keep(r, "square", square);
    ops_keep(r, "delta", delta);
    ops_keep(r, "copy", copy);
}

const struct ops_case ops_cases_rows[] = {
    { "fill", run_fill, sizes, ROUNDED, "rounding" },
    { "clear", run_clear, grains, { 0, 0, 0, 0 }, "exact" },
    { "scale", run_scale, sizes, ROUNDED, "rounding" },
    { "add", run_add, sizes, ROUNDED_TWICE, "rounding, twice" },
    { "convert", run_convert, sizes, { 0, 0, 0, 0 }, "exact: the numbers are of the type" },
    { "copy", run_copy, sizes, { 0, 0, 0, 0 }, "exact" },
    { "square_sum", run_square_sum, sizes, { 4e-6, 4e-6, 4e-6, 4e-6 }, "order of sums" },
    { "relu", run_relu, sizes, { 0, 0, 0, 0 }, "exact" },
    { "gelu_erf", run_gelu_erf, sizes, ROUNDED, "rounding; the twin's fit is within 1e-8" },
    { "gelu_tanh",
      run_gelu_tanh,
      sizes,
      { 4e-5, 4e-5, 0.004, 0.0005 },
      "rounding; the twin's 1 + tanh cancels where x is far below 0" },
    { "gather", run_gather, gathers, ROUNDED, "rounding" },
    { "batchnorm", run_batchnorm, batches, { 1e-5, 1e-5, 0.004, 0.0005 }, "order of sums, twice" },
    { "dropout", run_dropout, batches, ROUNDED, "rounding; the masks are the same" },
    { "head",
      run_head,
      heads,
      { 1e-5, 1e-5, 0.008, 0.001 },
      "order of sums; the layers' inputs are rounded" },
    { "head_without_dropout",
      run_head_without_dropout,
      heads,
      { 1e-5, 1e-5, 0.008, 0.001 },
      "the same" },
    { "nll", run_nll, classes, SUMS, "order of sums, exp" },
    { "linear",
      run_linear,
      dense,
      { 4e-6, 2e-3, 0.008, 0.001 },
      "order of sums; tf32 has 10 bits; d_x is rounded twice" },
    { "linear_fresh", run_linear_fresh, dense, { 4e-6, 2e-3, 0.008, 0.001 }, "the same" },
    { "linear_gelu_erf",
      run_linear_gelu_erf,
      dense,
      { 4e-6, 2e-3, 0.008, 0.001 },
      "order of sums; y and d_pre are rounded twice" },
    { "linear_gelu_tanh",
      run_linear_gelu_tanh,
      dense,
      { 4e-5, 2e-3, 0.008, 0.002 },
      "the same, and the twin's cancellation, the library's tanh" },
    { "linear3",
      run_linear3,
      dense,
      { 4e-6, 2e-3, 0.012, 0.0015 },
      "order of sums; d_x is rounded three times" },
    { "linear3_fresh", run_linear3_fresh, dense, { 4e-6, 2e-3, 0.012, 0.0015 }, "the same" },
    { "adamw", run_adamw, updates, SUMS, "division and square root" },
    { "adadelta", run_adadelta, updates, SUMS, "division and square root" },
    { NULL, NULL, NULL, { 0 }, NULL },
};
