/* SPDX-License-Identifier: Apache-2.0 */
/* Mixed precision on the CPU: every op reads its 16-bit operands into reals, computes as ever, and rounds what it wrote. That is slow,
 * and it is what a GPU does (16-bit operands, sums in fp32, one rounding at the end), so trainings in bf16 and fp16 can be rehearsed
 * and tested on any machine. */
#include <pthread.h>
#include <stdlib.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/half.h"

/* The operands of one call that are not reals. */
struct call {
    struct wk_dev *dev;
    struct {
        struct wk_span half, real;
        bool written, own;
    } items[20];
    int n;
    bool failed;
};

#define LINE 16 /* operands begin at multiples of so many reals */

/* n reals of the room that was reserved, or of their own: one op at a time takes from it, and gives all back at its end. */
static bool take(struct call *k, size_t n, struct wk_span *real, bool *own)
{
    struct cpu *c = cpu_of(k->dev);
    size_t lines = (n + LINE - 1) / LINE * LINE;

    *own = c->operands.n - c->operands_taken < lines;
    if (*own)
        return wk_dev_alloc(k->dev, WK_MEM_WORKSPACE, WK_REAL, n, real, &k->dev->error) == 0;
    *real = wk_span_part(c->operands, c->operands_taken, n);
    c->operands_taken += lines;
    return true;
}

static struct wk_span use(struct call *k, struct wk_span s, bool written)
{
    struct wk_span real;
    bool own;

    if (!s.data || (s.type != WK_BF16 && s.type != WK_F16) || k->failed)
        return s;
    if (!take(k, s.n, &real, &own)) {
        k->failed = true;
        return s;
    }
    wk_cpu_convert(k->dev, real, s);
    k->items[k->n].half = s;
    k->items[k->n].real = real;
    k->items[k->n].own = own;
    k->items[k->n++].written = written;
    return real;
}

static struct wk_span in(struct call *k, struct wk_span s)
{
    return use(k, s, false);
}

/* What an op leaves as it is keeps its bits: what is behind the last row, or all of it. */
static struct wk_span out(struct call *k, struct wk_span s)
{
    return use(k, s, true);
}

static struct wk_qkv in3(struct call *k, const struct wk_qkv *s)
{
    return (struct wk_qkv){ in(k, s->q), in(k, s->k), in(k, s->v) };
}

static struct wk_qkv out3(struct call *k, const struct wk_qkv *s)
{
    return (struct wk_qkv){ out(k, s->q), out(k, s->k), out(k, s->v) };
}

static struct wk_lstm_weights in4(struct call *k, const struct wk_lstm_weights *w)
{
    return (struct wk_lstm_weights){ in(k, w->w_ih), in(k, w->w_hh), in(k, w->b_ih),
                                     in(k, w->b_hh) };
}

static void end(struct call *k)
{
    for (int i = 0; i < k->n; i++) {
        if (k->items[i].written && !k->failed)
            wk_cpu_convert(k->dev, k->items[i].half, k->items[i].real);
        if (k->items[i].own)
            wk_dev_free(k->dev, WK_MEM_WORKSPACE, &k->items[i].real);
    }
    cpu_of(k->dev)->operands_taken = 0;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Each line is an op, or more than those that could be meant take. */
size_t wk_cpu_operands(const struct wk_calls *m)
{
    size_t rows = (size_t)m->rows, narrow = rows * (size_t)m->cols, wide = rows * (size_t)m->wide;
    size_t in = (size_t)m->lstm.in, hidden = (size_t)m->lstm.hidden;
    size_t n = 3 * wide; /* backward of GELU and ReLU */

    n = most(n, 2 * wide + narrow + (size_t)m->cols * (size_t)m->wide); /* of dense layers */
    n = most(n, 4 * narrow + 3 * (size_t)m->cols);                      /* norms */
    if (m->heads)
        n = most(n, 7 * narrow + wide); /* backward of attention */
    if (m->embeddings)
        n = most(n, narrow + (size_t)m->embeddings * (size_t)m->cols);
    if (m->lstm.batch)
        n = most(n, rows * ((size_t)m->lstm.steps * in + hidden) + 4 * hidden * (in + hidden + 2));
    return n + sizeof(((struct call *)0)->items) / sizeof *((struct call *)0)->items * LINE;
}

#define OPS (&wk_backend_cpu)

static void half_fill(struct wk_dev *dev, struct wk_span y, double value)
{
    struct call k = { .dev = dev };

    y = out(&k, y);
    if (!k.failed)
        OPS->fill(dev, y, value);
    end(&k);
}

static void half_scale(struct wk_dev *dev, struct wk_span y, double a)
{
    struct call k = { .dev = dev };

    y = out(&k, y);
    if (!k.failed)
        OPS->scale(dev, y, a);
    end(&k);
}

static void half_add(struct wk_dev *dev, struct wk_span y, struct wk_span x)
{
    struct call k = { .dev = dev };

    y = out(&k, y);
    x = in(&k, x);
    if (!k.failed)
        OPS->add(dev, y, x);
    end(&k);
}

static void half_square_sum(struct wk_dev *dev, struct wk_span sum, struct wk_span x)
{
    struct call k = { .dev = dev };

    x = in(&k, x);
    if (!k.failed)
        OPS->square_sum(dev, sum, x);
    end(&k);
}

static void half_gather_u8(struct wk_dev *dev, struct wk_span y, struct wk_span rows,
                           struct wk_span index, int n, int width, double mean, double std)
{
    struct call k = { .dev = dev };

    y = out(&k, y);
    if (!k.failed)
        OPS->gather_u8(dev, y, rows, index, n, width, mean, std);
    end(&k);
}

static void half_lstm_forward(struct wk_dev *dev, const struct wk_lstm *s,
                              const struct wk_lstm_weights *weights, struct wk_span h,
                              struct wk_span state, struct wk_span x)
{
    struct call k = { .dev = dev };
    struct wk_lstm_weights w = in4(&k, weights);

    h = out(&k, h);
    x = in(&k, x);
    if (!k.failed)
        OPS->lstm_forward(dev, s, &w, h, state, x);
    end(&k);
}

static void half_lstm_backward(struct wk_dev *dev, const struct wk_lstm *s,
                               const struct wk_lstm_weights *weights,
                               const struct wk_lstm_weights *d_weights, struct wk_span state,
                               struct wk_span x, struct wk_span d_h)
{
    struct call k = { .dev = dev };
    struct wk_lstm_weights w = in4(&k, weights);

    x = in(&k, x);
    d_h = in(&k, d_h);
    if (!k.failed)
        OPS->lstm_backward(dev, s, &w, d_weights, state, x, d_h);
    end(&k);
}

static void half_batchnorm_forward(struct wk_dev *dev, struct wk_span y, struct wk_span saved,
                                   struct wk_span running_mean, struct wk_span running_var,
                                   struct wk_span x, struct wk_span weight, struct wk_span bias,
                                   int rows, int cols)
{
    struct call k = { .dev = dev };

    y = out(&k, y);
    x = in(&k, x);
    weight = in(&k, weight);
    bias = in(&k, bias);
    if (!k.failed)
        OPS->batchnorm_forward(dev, y, saved, running_mean, running_var, x, weight, bias, rows,
                               cols);
    end(&k);
}

static void half_batchnorm_infer(struct wk_dev *dev, struct wk_span y, struct wk_span running_mean,
                                 struct wk_span running_var, struct wk_span x,
                                 struct wk_span weight, struct wk_span bias, int rows, int cols)
{
    struct call k = { .dev = dev };

    y = out(&k, y);
    x = in(&k, x);
    weight = in(&k, weight);
    bias = in(&k, bias);
    if (!k.failed)
        OPS->batchnorm_infer(dev, y, running_mean, running_var, x, weight, bias, rows, cols);
    end(&k);
}

static void half_batchnorm_backward(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_weight,
                                    struct wk_span d_bias, struct wk_span d_y, struct wk_span x,
                                    struct wk_span weight, struct wk_span saved, int rows, int cols)
{
    struct call k = { .dev = dev };

    d_x = out(&k, d_x);
    d_y = in(&k, d_y);
    x = in(&k, x);
    weight = in(&k, weight);
    if (!k.failed)
        OPS->batchnorm_backward(dev, d_x, d_weight, d_bias, d_y, x, weight, saved, rows, cols);
    end(&k);
}

static void half_dropout(struct wk_dev *dev, struct wk_span y, struct wk_span x,
                         struct wk_span sample, int rows, int cols, double p, struct wk_rng rng)
{
    struct call k = { .dev = dev };

    y = out(&k, y);
    x = in(&k, x);
    if (!k.failed)
        OPS->dropout(dev, y, x, sample, rows, cols, p, rng);
    end(&k);
}

static void half_linear_forward(struct wk_dev *dev, struct wk_span y, struct wk_span x,
                                struct wk_span weight, struct wk_span bias, int rows, int in_cols,
                                int out_cols)
{
    struct call k = { .dev = dev };

    y = out(&k, y);
    x = in(&k, x);
    weight = in(&k, weight);
    bias = in(&k, bias);
    if (!k.failed)
        OPS->linear_forward(dev, y, x, weight, bias, rows, in_cols, out_cols);
    end(&k);
}

static void half_linear_backward(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_weight,
                                 struct wk_span d_bias, struct wk_span d_y, struct wk_span x,
                                 struct wk_span weight, int rows, int in_cols, int out_cols)
{
    struct call k = { .dev = dev };

    d_x = out(&k, d_x);
    d_y = in(&k, d_y);
    x = in(&k, x);
    weight = in(&k, weight);
    if (!k.failed)
        OPS->linear_backward(dev, d_x, d_weight, d_bias, d_y, x, weight, rows, in_cols, out_cols);
    end(&k);
}

static void half_linear_backward_add(struct wk_dev *dev, struct wk_span d_x,
                                     struct wk_span d_weight, struct wk_span d_bias,
                                     struct wk_span d_y, struct wk_span x, struct wk_span weight,
                                     int rows, int in_cols, int out_cols)
{
    struct call k = { .dev = dev };

    d_x = out(&k, d_x);
    d_y = in(&k, d_y);
    x = in(&k, x);
    weight = in(&k, weight);
    if (!k.failed)
        OPS->linear_backward_add(dev, d_x, d_weight, d_bias, d_y, x, weight, rows, in_cols,
                                 out_cols);
    end(&k);
}

static void half_gelu_forward(struct wk_dev *dev, struct wk_span y, struct wk_span x,
                              enum wk_gelu form);
static void half_gelu_backward(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_y,
                               struct wk_span x, enum wk_gelu form);

/* Between the product and the GELU there is a rounding, as where they are two. */
static void half_linear_gelu_forward(struct wk_dev *dev, struct wk_span y, struct wk_span pre,
                                     struct wk_span x, struct wk_span weight, struct wk_span bias,
                                     int rows, int in_cols, int out_cols, enum wk_gelu form)
{
    size_t n = (size_t)rows * (size_t)out_cols;

    half_linear_forward(dev, pre, x, weight, bias, rows, in_cols, out_cols);
    half_gelu_forward(dev, wk_span_part(y, 0, n), wk_span_part(pre, 0, n), form);
}

static void half_linear_gelu_backward(struct wk_dev *dev, struct wk_span d_pre,
                                      struct wk_span d_weight, struct wk_span d_bias,
                                      struct wk_span d_y, struct wk_span x, struct wk_span pre,
                                      struct wk_span weight, int rows, int in_cols, int out_cols,
                                      enum wk_gelu form)
{
    size_t n = (size_t)rows * (size_t)in_cols;

    half_linear_backward(dev, d_pre, d_weight, d_bias, d_y, x, weight, rows, in_cols, out_cols);
    d_pre = wk_span_part(d_pre, 0, n);
    half_gelu_backward(dev, d_pre, d_pre, wk_span_part(pre, 0, n), form);
}

static void half_linear3_forward(struct wk_dev *dev, const struct wk_qkv *y, struct wk_span x,
                                 const struct wk_qkv *w, const struct wk_qkv *b, int rows,
                                 int in_cols, int out_cols)
{
    half_linear_forward(dev, y->q, x, w->q, b->q, rows, in_cols, out_cols);
    half_linear_forward(dev, y->k, x, w->k, b->k, rows, in_cols, out_cols);
    half_linear_forward(dev, y->v, x, w->v, b->v, rows, in_cols, out_cols);
}

static void half_linear3_backward(struct wk_dev *dev, struct wk_span d_x, const struct wk_qkv *d_w,
                                  const struct wk_qkv *d_b, const struct wk_qkv *d_y,
                                  struct wk_span x, const struct wk_qkv *w, int rows, int in_cols,
                                  int out_cols)
{
    half_linear_backward_add(dev, d_x, d_w->q, d_b->q, d_y->q, x, w->q, rows, in_cols, out_cols);
    half_linear_backward_add(dev, d_x, d_w->k, d_b->k, d_y->k, x, w->k, rows, in_cols, out_cols);
    half_linear_backward_add(dev, d_x, d_w->v, d_b->v, d_y->v, x, w->v, rows, in_cols, out_cols);
}

static void half_relu_forward(struct wk_dev *dev, struct wk_span y, struct wk_span x)
{
    struct call k = { .dev = dev };

    y = out(&k, y);
    x = in(&k, x);
    if (!k.failed)
        OPS->relu_forward(dev, y, x);
    end(&k);
}

static void half_relu_backward(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_y,
                               struct wk_span y)
{
    struct call k = { .dev = dev };

    d_x = out(&k, d_x);
    d_y = in(&k, d_y);
    y = in(&k, y);
    if (!k.failed)
        OPS->relu_backward(dev, d_x, d_y, y);
    end(&k);
}

static void half_nll(struct wk_dev *dev, struct wk_span loss, struct wk_span d_logits,
                     struct wk_span logits, struct wk_span labels, int rows, int classes,
                     double weight, struct wk_span scale)
{
    struct call k = { .dev = dev };

    d_logits = out(&k, d_logits);
    logits = in(&k, logits);
    if (!k.failed)
        OPS->nll(dev, loss, d_logits, logits, labels, rows, classes, weight, scale);
    end(&k);
}

static void half_nll_score(struct wk_dev *dev, struct wk_span score, struct wk_span logits,
                           struct wk_span labels, int rows, int classes)
{
    struct call k = { .dev = dev };

    logits = in(&k, logits);
    if (!k.failed)
        OPS->nll_score(dev, score, logits, labels, rows, classes);
    end(&k);
}

static void half_embed_forward(struct wk_dev *dev, struct wk_span y, struct wk_span ids,
                               struct wk_span types, const struct wk_packing *p,
                               struct wk_span word, struct wk_span position, struct wk_span type,
                               int cols)
{
    struct call k = { .dev = dev };

    y = out(&k, y);
    word = in(&k, word);
    position = in(&k, position);
    type = in(&k, type);
    if (!k.failed)
        OPS->embed_forward(dev, y, ids, types, p, word, position, type, cols);
    end(&k);
}

static void half_embed_backward(struct wk_dev *dev, struct wk_span d_word,
                                struct wk_span d_position, struct wk_span d_type,
                                struct wk_span d_y, struct wk_span ids, struct wk_span types,
                                const struct wk_packing *p, int padding, int cols)
{
    struct call k = { .dev = dev };

    d_y = in(&k, d_y);
    if (!k.failed)
        OPS->embed_backward(dev, d_word, d_position, d_type, d_y, ids, types, p, padding, cols);
    end(&k);
}

static void half_token_dropout(struct wk_dev *dev, struct wk_span y, struct wk_span x,
                               const struct wk_packing *p, int cols, double drop, struct wk_rng rng)
{
    struct call k = { .dev = dev };

    y = out(&k, y);
    x = in(&k, x);
    if (!k.failed)
        OPS->token_dropout(dev, y, x, p, cols, drop, rng);
    end(&k);
}

static void half_norm_forward(struct wk_dev *dev, struct wk_span y, struct wk_span saved,
                              struct wk_span x, struct wk_span residual, struct wk_span weight,
                              struct wk_span bias, const struct wk_packing *p, int cols, double eps,
                              double drop, struct wk_rng rng)
{
    struct call k = { .dev = dev };

    y = out(&k, y);
    x = out(&k, x);
    residual = in(&k, residual);
    weight = in(&k, weight);
    bias = in(&k, bias);
    if (!k.failed)
        OPS->norm_forward(dev, y, saved, x, residual, weight, bias, p, cols, eps, drop, rng);
    end(&k);
}

static void half_norm_backward(struct wk_dev *dev, struct wk_span d_sum, struct wk_span d_x,
                               struct wk_span d_weight, struct wk_span d_bias, struct wk_span d_y,
                               struct wk_span sum, struct wk_span weight, struct wk_span saved,
                               const struct wk_packing *p, int cols, double drop, struct wk_rng rng)
{
    struct call k = { .dev = dev };

    d_sum = out(&k, d_sum);
    d_x = out(&k, d_x);
    d_y = in(&k, d_y);
    sum = in(&k, sum);
    weight = in(&k, weight);
    if (!k.failed)
        OPS->norm_backward(dev, d_sum, d_x, d_weight, d_bias, d_y, sum, weight, saved, p, cols,
                           drop, rng);
    end(&k);
}

static void half_gelu_forward(struct wk_dev *dev, struct wk_span y, struct wk_span x,
                              enum wk_gelu form)
{
    struct call k = { .dev = dev };

    y = out(&k, y);
    x = in(&k, x);
    if (!k.failed)
        OPS->gelu_forward(dev, y, x, form);
    end(&k);
}

static void half_gelu_backward(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_y,
                               struct wk_span x, enum wk_gelu form)
{
    struct call k = { .dev = dev };

    d_x = out(&k, d_x);
    d_y = in(&k, d_y);
    x = in(&k, x);
    if (!k.failed)
        OPS->gelu_backward(dev, d_x, d_y, x, form);
    end(&k);
}

static void half_attention_forward(struct wk_dev *dev, const struct wk_attention *a,
                                   const struct wk_packing *p, struct wk_span result,
                                   struct wk_span lse, const struct wk_qkv *from)
{
    struct call k = { .dev = dev };
    struct wk_qkv qkv = in3(&k, from);

    result = out(&k, result);
    if (!k.failed)
        OPS->attention_forward(dev, a, p, result, lse, &qkv);
    end(&k);
}

static void half_attention_backward(struct wk_dev *dev, const struct wk_attention *a,
                                    const struct wk_packing *p, const struct wk_qkv *d_from,
                                    struct wk_span d_result, struct wk_span result,
                                    struct wk_span lse, const struct wk_qkv *from)
{
    struct call k = { .dev = dev };
    struct wk_qkv d_qkv = out3(&k, d_from), qkv = in3(&k, from);

    d_result = in(&k, d_result);
    result = in(&k, result);
    if (!k.failed)
        OPS->attention_backward(dev, a, p, &d_qkv, d_result, result, lse, &qkv);
    end(&k);
}

static void half_span_loss(struct wk_dev *dev, struct wk_span loss, struct wk_span d_logits,
                           struct wk_span logits, const struct wk_packing *p, struct wk_span starts,
                           struct wk_span ends, double weight, struct wk_span scale)
{
    struct call k = { .dev = dev };

    d_logits = out(&k, d_logits);
    logits = in(&k, logits);
    if (!k.failed)
        OPS->span_loss(dev, loss, d_logits, logits, p, starts, ends, weight, scale);
    end(&k);
}

static struct wk_backend half;

static void make_half(void)
{
    half =
        wk_backend_cpu; /* memory, integers, convert, control and updates know of types already */
    half.fill = half_fill;
    half.scale = half_scale;
    half.add = half_add;
    half.square_sum = half_square_sum;
    half.gather_u8 = half_gather_u8;
    half.lstm_forward = half_lstm_forward;
    half.lstm_backward = half_lstm_backward;
    half.batchnorm_forward = half_batchnorm_forward;
    half.batchnorm_infer = half_batchnorm_infer;
    half.batchnorm_backward = half_batchnorm_backward;
    half.dropout = half_dropout;
    half.linear_forward = half_linear_forward;
    half.linear_backward = half_linear_backward;
    half.linear_backward_add = half_linear_backward_add;
    half.linear_gelu_forward = half_linear_gelu_forward;
    half.linear_gelu_backward = half_linear_gelu_backward;
    half.linear3_forward = half_linear3_forward;
    half.linear3_backward = half_linear3_backward;
    half.relu_forward = half_relu_forward;
    half.relu_backward = half_relu_backward;
    half.nll = half_nll;
    half.nll_score = half_nll_score;
    half.embed_forward = half_embed_forward;
    half.embed_backward = half_embed_backward;
    half.token_dropout = half_token_dropout;
    half.norm_forward = half_norm_forward;
    half.norm_backward = half_norm_backward;
    half.gelu_forward = half_gelu_forward;
    half.gelu_backward = half_gelu_backward;
    half.attention_forward = half_attention_forward;
    half.attention_backward = half_attention_backward;
    half.span_loss = half_span_loss;
}

const struct wk_backend *wk_cpu_half(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_half);
    return &half;
}
