/* SPDX-License-Identifier: Apache-2.0 */
/* The cuda backend and its ops: each op passes its buffers and their types to a kernel's launcher or to a GEMM. */
#include "backends/cuda/ops.h"

#include <string.h>

#include "backends/cuda/device.h"
#include "backends/cuda/gemm.h"
#include "backends/cuda/open.h"
#include "backends/cuda/steps.h"

#define OP(name, params, ...) static void cuda_##name params;
#define OPTIONAL_OP(...)
#include "backends/ops.def"

/* Launch an op's kernels on the device's stream; a failure is kept under the op's name. */
#define LAUNCH(c, op, ...) wk_cuda_check(c, wk_cuda_##op((c)->stream, __VA_ARGS__), #op)

/* ---- Translation ---- */

static struct wk_cuda_packing packing_of(const struct wk_packing *p)
{
    return (struct wk_cuda_packing){ .sequences = p->sequences,
                                     .rows = p->rows,
                                     .longest = p->longest,
                                     .first = p->first.data,
                                     .tokens = p->tokens.data,
                                     .sample = p->sample.data,
                                     .sequence = p->sequence.data };
}

/* Randomness of the running step: kernels read its number on the device. */
static struct wk_cuda_rng rng_of(struct wk_cuda *c, struct wk_rng rng)
{
    struct wk_cuda_step step = c->step_sent;

    if (step.number != rng.step) {
        step.number = rng.step;
        wk_cuda_send_step(c, &step);
    }
    return (struct wk_cuda_rng){ rng.seed, rng.site, &c->step->number };
}

/* Dropout that drops nothing draws nothing, whatever the step. */
static struct wk_cuda_rng rng_if(struct wk_cuda *c, double drop, struct wk_rng rng)
{
    return drop > 0 ? rng_of(c, rng) : (struct wk_cuda_rng){ rng.seed, rng.site, &c->step->number };
}

static enum wk_cuda_type type_of(struct wk_span s)
{
    return wk_cuda_type(s.type);
}

/* Scratch for an op that needs so much; false: there is none, and the device has failed. */
static bool scratch_of(struct wk_cuda *c, size_t bytes, void **scratch)
{
    *scratch = wk_cuda_scratch(c, bytes);
    return *scratch || bytes == 0;
}

/* ---- Elementwise ---- */

static void cuda_fill(struct wk_dev *dev, struct wk_span y, double value)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    if (y.n)
        LAUNCH(c, fill, type_of(y), y.data, y.n, (float)value);
}

static void cuda_clear(struct wk_dev *dev, struct wk_span y, struct wk_span spared)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    if (spared.n)
        LAUNCH(c, clear, y.data, spared.data, spared.n, WK_GRAIN);
}

static void cuda_scale(struct wk_dev *dev, struct wk_span y, double a)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    if (y.n)
        LAUNCH(c, scale, type_of(y), y.data, y.n, (float)a, NULL);
}

static void cuda_add(struct wk_dev *dev, struct wk_span y, struct wk_span x)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    if (y.n)
        LAUNCH(c, add, type_of(y), y.data, x.data, y.n);
}

static void cuda_copy(struct wk_dev *dev, struct wk_span y, struct wk_span x)
{
    wk_cuda_copy(wk_cuda_of(dev), y.data, x.data, x.n * wk_type_size(x.type));
}

static void cuda_square_sum(struct wk_dev *dev, struct wk_span sum, struct wk_span x)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    void *scratch;

    if (scratch_of(c, wk_cuda_square_sum_scratch(x.n), &scratch))
        LAUNCH(c, square_sum, sum.data, type_of(x), x.data, x.n, scratch);
}

static void cuda_convert(struct wk_dev *dev, struct wk_span y, struct wk_span x)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    if (y.n)
        LAUNCH(c, convert, type_of(y), y.data, type_of(x), x.data, y.n);
}

/* ---- Batches ---- */

static void cuda_gather_u8(struct wk_dev *dev, struct wk_span y, struct wk_span rows,
                           struct wk_span index, int n, int width, double mean, double std)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    LAUNCH(c, gather_u8, type_of(y), y.data, rows.data, index.data, n, width, (float)mean,
           (float)std);
}

static void cuda_gather_i32(struct wk_dev *dev, struct wk_span y, struct wk_span values,
                            struct wk_span index, int n)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    LAUNCH(c, gather_i32, y.data, values.data, index.data, n);
}

static void cuda_gather_tokens(struct wk_dev *dev, struct wk_span ids, struct wk_span types,
                               const struct wk_packing *packing, const struct wk_token_source *from)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_packing p = packing_of(packing);

    LAUNCH(c, gather_tokens, ids.data, types.data, packing->sequence.data, &p, from->tokens.data,
           from->at.data, from->second.data);
}

/* ---- LSTM ---- */

static struct wk_cuda_lstm lstm_of(const struct wk_lstm *s)
{
    return (struct wk_cuda_lstm){ s->batch, s->steps, s->in, s->hidden };
}

static size_t cuda_lstm_state(struct wk_dev *dev, const struct wk_lstm *s)
{
    struct wk_cuda_lstm l = lstm_of(s);

    (void)dev;
    return wk_cuda_lstm_state(&l);
}

static void cuda_lstm_forward(struct wk_dev *dev, const struct wk_lstm *s,
                              const struct wk_lstm_weights *w, struct wk_span h,
                              struct wk_span state, struct wk_span x)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_lstm l = lstm_of(s);
    void *scratch;

    if (scratch_of(c, wk_cuda_lstm_forward_scratch(&l), &scratch))
        LAUNCH(c, lstm_forward, type_of(x), &l, w->w_ih.data, w->w_hh.data, w->b_ih.data,
               w->b_hh.data, h.data, state.data, x.data, scratch);
}

static void cuda_lstm_backward(struct wk_dev *dev, const struct wk_lstm *s,
                               const struct wk_lstm_weights *w, const struct wk_lstm_weights *d,
                               struct wk_span state, struct wk_span x, struct wk_span d_h)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_lstm l = lstm_of(s);
    void *scratch;

    if (scratch_of(c, wk_cuda_lstm_backward_scratch(&l), &scratch))
        LAUNCH(c, lstm_backward, type_of(x), &l, w->w_ih.data, w->w_hh.data, d->w_ih.data,
               d->w_hh.data, d->b_ih.data, d->b_hh.data, state.data, x.data, d_h.data, scratch);
}

/* ---- Batch normalisation ---- */

static void cuda_batchnorm_forward(struct wk_dev *dev, struct wk_span y, struct wk_span saved,
                                   struct wk_span running_mean, struct wk_span running_var,
                                   struct wk_span x, struct wk_span weight, struct wk_span bias,
                                   int rows, int cols)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    LAUNCH(c, batchnorm_forward, type_of(x), y.data, saved.data, running_mean.data,
           running_var.data, x.data, type_of(weight), weight.data, bias.data, rows, cols);
}

static void cuda_batchnorm_infer(struct wk_dev *dev, struct wk_span y, struct wk_span running_mean,
                                 struct wk_span running_var, struct wk_span x,
                                 struct wk_span weight, struct wk_span bias, int rows, int cols)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    LAUNCH(c, batchnorm_infer, type_of(x), y.data, running_mean.data, running_var.data, x.data,
           type_of(weight), weight.data, bias.data, rows, cols);
}

static void cuda_batchnorm_backward(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_weight,
                                    struct wk_span d_bias, struct wk_span d_y, struct wk_span x,
                                    struct wk_span weight, struct wk_span saved, int rows, int cols)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    LAUNCH(c, batchnorm_backward, type_of(x), d_x.data, d_weight.data, d_bias.data, d_y.data,
           x.data, type_of(weight), weight.data, saved.data, rows, cols);
}

/* ---- Dropout, ReLU ---- */

static void cuda_dropout(struct wk_dev *dev, struct wk_span y, struct wk_span x,
                         struct wk_span sample, int rows, int cols, double p, struct wk_rng rng)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_rng r = rng_of(c, rng);

    LAUNCH(c, dropout, type_of(x), y.data, x.data, sample.data, rows, cols, p, &r);
}

static void cuda_relu_forward(struct wk_dev *dev, struct wk_span y, struct wk_span x)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    LAUNCH(c, relu_forward, type_of(x), y.data, x.data, y.n);
}

static void cuda_relu_backward(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_y,
                               struct wk_span y)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    LAUNCH(c, relu_backward, type_of(y), d_x.data, d_y.data, y.data, d_x.n);
}

/* ---- Dense layers ---- */

static struct wk_gemm_call gemm_of(enum wk_gemm_kind kind, int rows, int in, int out,
                                   struct wk_span x, struct wk_span y)
{
    return (struct wk_gemm_call){ .kind = kind,
                                  .rows = rows,
                                  .in = in,
                                  .out = out,
                                  .t = type_of(x),
                                  .y_t = type_of(y),
                                  .x = x.data,
                                  .y = y.data };
}

static void cuda_linear_forward(struct wk_dev *dev, struct wk_span y, struct wk_span x,
                                struct wk_span weight, struct wk_span bias, int rows, int in,
                                int out)
{
    struct wk_gemm_call p = gemm_of(WK_GEMM_FORWARD, rows, in, out, x, y);

    p.weight = weight.data;
    p.bias = bias.data;
    wk_gemm_run(wk_cuda_of(dev), &p);
}

static void linear_backward(struct wk_dev *dev, bool add, struct wk_span d_x,
                            struct wk_span d_weight, struct wk_span d_bias, struct wk_span d_y,
                            struct wk_span x, struct wk_span weight, int rows, int in, int out)
{
    struct wk_gemm_call p = gemm_of(WK_GEMM_WEIGHT, rows, in, out, x, d_y);

    p.weight = d_weight.data;
    p.bias = d_bias.data;
    p.add = !dev->fresh;
    wk_gemm_run(wk_cuda_of(dev), &p);
    if (!d_x.data)
        return;
    p.kind = WK_GEMM_INPUT;
    p.x = d_x.data;
    p.weight = weight.data;
    p.bias = NULL;
    p.add = add;
    wk_gemm_run(wk_cuda_of(dev), &p);
}

static void cuda_linear_backward(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_weight,
                                 struct wk_span d_bias, struct wk_span d_y, struct wk_span x,
                                 struct wk_span weight, int rows, int in, int out)
{
    linear_backward(dev, false, d_x, d_weight, d_bias, d_y, x, weight, rows, in, out);
}

static void cuda_linear_backward_add(struct wk_dev *dev, struct wk_span d_x,
                                     struct wk_span d_weight, struct wk_span d_bias,
                                     struct wk_span d_y, struct wk_span x, struct wk_span weight,
                                     int rows, int in, int out)
{
    linear_backward(dev, true, d_x, d_weight, d_bias, d_y, x, weight, rows, in, out);
}

/* cuBLASLt's GELU is the one with tanh. */
static void cuda_linear_gelu_forward(struct wk_dev *dev, struct wk_span y, struct wk_span pre,
                                     struct wk_span x, struct wk_span weight, struct wk_span bias,
                                     int rows, int in, int out, enum wk_gelu form)
{
    struct wk_gemm_call p = gemm_of(WK_GEMM_FORWARD, rows, in, out, x, y);
    size_t n = (size_t)rows * (size_t)out;

    p.weight = weight.data;
    p.bias = bias.data;
    p.gelu = form == WK_GELU_TANH;
    p.pre = pre.data;
    if (!p.gelu)
        p.y = pre.data;
    wk_gemm_run(wk_cuda_of(dev), &p);
    if (!p.gelu)
        cuda_gelu_forward(dev, wk_span_part(y, 0, n), wk_span_part(pre, 0, n), form);
}

static void cuda_linear_gelu_backward(struct wk_dev *dev, struct wk_span d_pre,
                                      struct wk_span d_weight, struct wk_span d_bias,
                                      struct wk_span d_y, struct wk_span x, struct wk_span pre,
                                      struct wk_span weight, int rows, int in, int out,
                                      enum wk_gelu form)
{
    struct wk_gemm_call p = gemm_of(WK_GEMM_INPUT, rows, in, out, d_pre, d_y);
    size_t n = (size_t)rows * (size_t)in;

    p.t = type_of(x);
    p.weight = weight.data;
    p.gelu = form == WK_GELU_TANH;
    p.pre = pre.data;

    linear_backward(dev, false, WK_NONE, d_weight, d_bias, d_y, x, weight, rows, in, out);
    wk_gemm_run(wk_cuda_of(dev), &p);
    d_pre = wk_span_part(d_pre, 0, n);
    if (!p.gelu)
        cuda_gelu_backward(dev, d_pre, d_pre, wk_span_part(pre, 0, n), form);
}

/* Elements from the first to the second, and from there to the third; -1: they are not equally spaced, or far apart. */
static ptrdiff_t step_of(const struct wk_span s[3])
{
    ptrdiff_t size = (ptrdiff_t)wk_type_size(s[0].type), far = (ptrdiff_t)1 << 32;
    ptrdiff_t one = (char *)s[1].data - (char *)s[0].data;
    ptrdiff_t two = (char *)s[2].data - (char *)s[1].data;

    return one == two && one > 0 && one < far && one % size == 0 ? one / size : -1;
}

/* Three GEMMs as one batch, if their operands are equally spaced, forwards or backwards, and if addresses may decide. Returns whether it ran. */
static bool run_batch(struct wk_cuda *c, struct wk_gemm_call *p, const struct wk_qkv *y,
                      const struct wk_qkv *weight, const struct wk_qkv *bias)
{
    bool forwards = (char *)weight->q.data < (char *)weight->k.data;
    const struct wk_span ys[] = { forwards ? y->q : y->v, y->k, forwards ? y->v : y->q };
    const struct wk_span ws[] = { forwards ? weight->q : weight->v, weight->k,
                                  forwards ? weight->v : weight->q };
    const struct wk_span bs[] = { forwards ? bias->q : bias->v, bias->k,
                                  forwards ? bias->v : bias->q };

    if (c->by_shape)
        return false;
    p->batch = 3;
    p->y = ys[0].data;
    p->weight = ws[0].data;
    p->bias = bs[0].data;
    p->y_step = step_of(ys);
    p->weight_step = step_of(ws);
    p->bias_step = step_of(bs);
    if (p->y_step < 0 || p->weight_step < 0 || p->bias_step < 0)
        return false;
    wk_gemm_run(c, p);
    return true;
}

static void cuda_linear3_forward(struct wk_dev *dev, const struct wk_qkv *y, struct wk_span x,
                                 const struct wk_qkv *w, const struct wk_qkv *b, int rows, int in,
                                 int out)
{
    struct wk_gemm_call p = gemm_of(WK_GEMM_FORWARD, rows, in, out, x, y->q);

    if (run_batch(wk_cuda_of(dev), &p, y, w, b))
        return;
    cuda_linear_forward(dev, y->q, x, w->q, b->q, rows, in, out);
    cuda_linear_forward(dev, y->k, x, w->k, b->k, rows, in, out);
    cuda_linear_forward(dev, y->v, x, w->v, b->v, rows, in, out);
}

/* The gradients of x are three GEMMs one after the other, which add to one sum. */
static void cuda_linear3_backward(struct wk_dev *dev, struct wk_span d_x, const struct wk_qkv *d_w,
                                  const struct wk_qkv *d_b, const struct wk_qkv *d_y,
                                  struct wk_span x, const struct wk_qkv *w, int rows, int in,
                                  int out)
{
    const struct wk_span d_ys[] = { d_y->q, d_y->k, d_y->v }, ws[] = { w->q, w->k, w->v };
    struct wk_gemm_call p = gemm_of(WK_GEMM_WEIGHT, rows, in, out, x, d_y->q);

    p.add = !dev->fresh;
    if (!run_batch(wk_cuda_of(dev), &p, d_y, d_w, d_b)) {
        linear_backward(dev, true, WK_NONE, d_w->q, d_b->q, d_y->q, x, w->q, rows, in, out);
        linear_backward(dev, true, WK_NONE, d_w->k, d_b->k, d_y->k, x, w->k, rows, in, out);
        linear_backward(dev, true, WK_NONE, d_w->v, d_b->v, d_y->v, x, w->v, rows, in, out);
    }
    p = gemm_of(WK_GEMM_INPUT, rows, in, out, d_x, d_y->q);
    p.add = true;
    for (int i = 0; i < 3; i++) {
        p.y = d_ys[i].data;
        p.weight = ws[i].data;
        wk_gemm_run(wk_cuda_of(dev), &p);
    }
}

/* ---- Classification ---- */

static void cuda_nll(struct wk_dev *dev, struct wk_span loss, struct wk_span d_logits,
                     struct wk_span logits, struct wk_span labels, int rows, int classes,
                     double weight, struct wk_span scale)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    void *scratch;

    if (scratch_of(c, wk_cuda_nll_scratch(rows), &scratch))
        LAUNCH(c, nll, loss.data, type_of(d_logits), d_logits.data, logits.data, labels.data, rows,
               classes, (float)weight, scale.data, scratch);
}

static void cuda_nll_score(struct wk_dev *dev, struct wk_span out, struct wk_span logits,
                           struct wk_span labels, int rows, int classes)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    void *scratch;

    if (scratch_of(c, wk_cuda_nll_scratch(rows), &scratch))
        LAUNCH(c, nll_score, out.data, logits.data, labels.data, rows, classes, scratch);
}

/* ---- The head ---- */

static struct wk_cuda_head head_of(struct wk_cuda *c, const struct wk_head *h,
                                   const struct wk_head_weights *w)
{
    return (struct wk_cuda_head){ .rows = h->rows,
                                  .in = h->in,
                                  .mid = h->mid,
                                  .out = h->out,
                                  .drop_in = h->drop_in,
                                  .drop_mid = h->drop_mid,
                                  .rng = rng_if(c, h->drop_in + h->drop_mid, h->rng),
                                  .sample = h->sample.data,
                                  .x = h->x.data,
                                  .normed = h->normed.data,
                                  .dense = h->dense.data,
                                  .saved = h->saved.data,
                                  .norm_weight = w->norm_weight.data,
                                  .norm_bias = w->norm_bias.data,
                                  .weight1 = w->weight1.data,
                                  .bias1 = w->bias1.data,
                                  .weight2 = w->weight2.data,
                                  .bias2 = w->bias2.data };
}

static void cuda_head_forward(struct wk_dev *dev, const struct wk_head *head,
                              const struct wk_head_weights *w, struct wk_span running_mean,
                              struct wk_span running_var, struct wk_span logits)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_head h = head_of(c, head, w);

    LAUNCH(c, head_forward, type_of(head->x), type_of(w->weight1), &h, logits.data,
           running_mean.data, running_var.data);
}

static void cuda_head_backward(struct wk_dev *dev, const struct wk_head *head,
                               const struct wk_head_weights *w, const struct wk_head_weights *d_w,
                               struct wk_span d_x, struct wk_span d_logits)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_head h = head_of(c, head, w);
    struct wk_cuda_head_gradients d = { d_w->norm_weight.data, d_w->norm_bias.data,
                                        d_w->weight1.data,     d_w->bias1.data,
                                        d_w->weight2.data,     d_w->bias2.data };

    LAUNCH(c, head_backward, type_of(head->x), type_of(w->weight1), &h, &d, d_x.data,
           d_logits.data);
}

/* ---- Token sequences ---- */

static void cuda_embed_forward(struct wk_dev *dev, struct wk_span y, struct wk_span ids,
                               struct wk_span types, const struct wk_packing *packing,
                               struct wk_span word, struct wk_span position, struct wk_span type,
                               int cols)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_packing p = packing_of(packing);

    LAUNCH(c, embed_forward, type_of(y), y.data, ids.data, types.data, &p, type_of(word), word.data,
           position.data, type.data, cols);
}

static void cuda_embed_backward(struct wk_dev *dev, struct wk_span d_word,
                                struct wk_span d_position, struct wk_span d_type,
                                struct wk_span d_y, struct wk_span ids, struct wk_span types,
                                const struct wk_packing *packing, int padding, int cols)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_packing p = packing_of(packing);
    int n_words = (int)(d_word.n / (size_t)cols), n_types = (int)(d_type.n / (size_t)cols);
    void *scratch;

    if (scratch_of(c, wk_cuda_embed_backward_scratch(&p, cols, n_words, n_types), &scratch))
        LAUNCH(c, embed_backward, d_word.data, d_position.data, d_type.data, type_of(d_y), d_y.data,
               ids.data, types.data, &p, padding, cols, n_words, n_types, scratch);
}

static void cuda_token_dropout(struct wk_dev *dev, struct wk_span y, struct wk_span x,
                               const struct wk_packing *packing, int cols, double drop,
                               struct wk_rng rng)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_packing p = packing_of(packing);
    struct wk_cuda_rng r = rng_of(c, rng);

    LAUNCH(c, token_dropout, type_of(x), y.data, x.data, &p, cols, drop, &r);
}

static void cuda_norm_forward(struct wk_dev *dev, struct wk_span y, struct wk_span saved,
                              struct wk_span x, struct wk_span residual, struct wk_span weight,
                              struct wk_span bias, const struct wk_packing *packing, int cols,
                              double eps, double drop, struct wk_rng rng)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_packing p = packing_of(packing);
    struct wk_cuda_rng r = rng_if(c, drop, rng);

    LAUNCH(c, norm_forward, type_of(x), y.data, saved.data, x.data, residual.data, type_of(weight),
           weight.data, bias.data, &p, cols, eps, drop, &r);
}

static void cuda_norm_backward(struct wk_dev *dev, struct wk_span d_sum, struct wk_span d_x,
                               struct wk_span d_weight, struct wk_span d_bias, struct wk_span d_y,
                               struct wk_span sum, struct wk_span weight, struct wk_span saved,
                               const struct wk_packing *packing, int cols, double drop,
                               struct wk_rng rng)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_packing p = packing_of(packing);
    struct wk_cuda_rng r = rng_if(c, drop, rng);
    void *scratch;

    if (scratch_of(c, wk_cuda_norm_backward_scratch(&p, cols), &scratch))
        LAUNCH(c, norm_backward, type_of(sum), d_sum.data, d_x.data, d_weight.data, d_bias.data,
               d_y.data, sum.data, type_of(weight), weight.data, saved.data, &p, cols, drop, &r,
               scratch);
}

static void cuda_gelu_forward(struct wk_dev *dev, struct wk_span y, struct wk_span x,
                              enum wk_gelu form)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    LAUNCH(c, gelu_forward, type_of(x), y.data, x.data, y.n, form == WK_GELU_TANH);
}

static void cuda_gelu_backward(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_y,
                               struct wk_span x, enum wk_gelu form)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    LAUNCH(c, gelu_backward, type_of(x), d_x.data, d_y.data, x.data, d_x.n, form == WK_GELU_TANH);
}

/* ---- Attention ---- */

static struct wk_cuda_attention attention_of(struct wk_cuda *c, const struct wk_attention *a)
{
    return (struct wk_cuda_attention){ .heads = a->heads,
                                       .size = a->size,
                                       .stride = a->heads * a->size,
                                       .d_stride = a->heads * a->size,
                                       .tf32 = c->dev.precision == WK_TF32,
                                       .drop = a->drop,
                                       .rng = rng_if(c, a->drop, a->rng) };
}

static size_t cuda_attention_mask(const struct wk_attention *a, int rows, int longest)
{
    return a->drop > 0 ? wk_cuda_attention_mask(a->heads, rows, longest) : 0;
}

static void cuda_attention_forward(struct wk_dev *dev, const struct wk_attention *attention,
                                   const struct wk_packing *packing, struct wk_span out,
                                   struct wk_span lse, struct wk_span mask, const struct wk_qkv *in)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_attention a = attention_of(c, attention);
    struct wk_cuda_packing p = packing_of(packing);

    LAUNCH(c, attention_forward, type_of(in->q), &a, &p, out.data, lse.data, mask.data, in->q.data,
           in->k.data, in->v.data);
}

static void cuda_attention_backward(struct wk_dev *dev, const struct wk_attention *attention,
                                    const struct wk_packing *packing, const struct wk_qkv *d_in,
                                    struct wk_span d_out, struct wk_span out, struct wk_span lse,
                                    struct wk_span mask, const struct wk_qkv *in)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_attention a = attention_of(c, attention);
    struct wk_cuda_packing p = packing_of(packing);
    void *scratch;

    if (scratch_of(c, wk_cuda_attention_backward_scratch(a.heads, p.rows), &scratch))
        LAUNCH(c, attention_backward, type_of(in->q), &a, &p, d_in->q.data, d_in->k.data,
               d_in->v.data, d_out.data, out.data, lse.data, mask.data, in->q.data, in->k.data,
               in->v.data, scratch);
}

static void cuda_span_loss(struct wk_dev *dev, struct wk_span loss, struct wk_span d_logits,
                           struct wk_span logits, const struct wk_packing *packing,
                           struct wk_span starts, struct wk_span ends, double weight,
                           struct wk_span scale)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_packing p = packing_of(packing);
    void *scratch;

    if (scratch_of(c, wk_cuda_span_loss_scratch(&p), &scratch))
        LAUNCH(c, span_loss, loss.data, type_of(d_logits), d_logits.data, logits.data, &p,
               starts.data, ends.data, (float)weight, scale.data, scratch);
}

/* ---- Updates ---- */

static void cuda_control(struct wk_dev *dev, struct wk_span control, struct wk_span square_sum,
                         const struct wk_control *how)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    LAUNCH(c, control, control.data, square_sum.data, (float)how->clip_norm, how->scaled,
           how->grow_after);
}

/* Learning rate and step (0: it does not count) of an update go to the device, when they are not there yet. */
static void send_update(struct wk_cuda *c, double lr, long step)
{
    struct wk_cuda_step now = c->step_sent;

    now.lr = (float)lr;
    now.taken = step ? (float)step : now.taken;
    if (memcmp(&now, &c->step_sent, sizeof now) != 0)
        wk_cuda_send_step(c, &now);
}

static void cuda_adamw(struct wk_dev *dev, struct wk_span value, struct wk_span gradient,
                       struct wk_span m, struct wk_span v, const struct wk_adamw *h)
{
    static const enum wk_cuda_adamw_form forms[] = { [WK_ADAMW_TORCH] = WK_CUDA_ADAMW_TORCH,
                                                     [WK_ADAMW_HF] = WK_CUDA_ADAMW_HF,
                                                     [WK_ADAMW_GOOGLE] = WK_CUDA_ADAMW_GOOGLE };
    struct wk_cuda *c = wk_cuda_of(dev);

    if (!value.n)
        return;
    send_update(c, h->lr, h->step);
    if (LAUNCH(c, factors, c->factors, c->step, h->control.data, (float)h->scale, forms[h->form],
               h->beta1, h->beta2))
        LAUNCH(c, adamw, value.data, type_of(h->copy), h->copy.data, gradient.data, m.data, v.data,
               value.n, c->factors, h->beta1, h->beta2, (float)h->eps, (float)h->decay,
               h->spared.data, WK_GRAIN);
}

static void cuda_adadelta(struct wk_dev *dev, struct wk_span value, struct wk_span gradient,
                          struct wk_span square, struct wk_span delta, const struct wk_adadelta *h)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    if (!value.n)
        return;
    send_update(c, h->lr, 0);
    LAUNCH(c, adadelta, value.data, type_of(h->copy), h->copy.data, gradient.data, square.data,
           delta.data, value.n, c->step, h->control.data, (float)h->scale, h->rho, (float)h->eps);
}

/* ---- Workspace ---- */

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Scratch of ops over a batch of so many rows; fewer rows can take more. */
static size_t rows_scratch(const struct wk_calls *m, int rows)
{
    const struct wk_cuda_packing p = { .sequences = m->sequences,
                                       .rows = rows,
                                       .longest = m->longest };
    size_t n = most(wk_cuda_bias_backward_scratch(1, rows, m->wide), wk_cuda_nll_scratch(rows));

    if (!m->sequences)
        return n;
    n = most(n, wk_cuda_bias_backward_scratch(3, rows, m->cols)); /* linear3 */
    n = most(n, wk_cuda_norm_backward_scratch(&p, m->cols));
    n = most(n, wk_cuda_span_loss_scratch(&p));
    n = most(n, wk_cuda_embed_backward_scratch(&p, m->cols, m->embeddings, m->types));
    return most(n, wk_cuda_attention_backward_scratch(m->heads, rows));
}

static size_t all_scratch(const struct wk_calls *m)
{
    struct wk_cuda_lstm l = lstm_of(&m->lstm);
    size_t n = wk_cuda_square_sum_scratch(m->squares);

    if (l.batch)
        n = most(n, most(wk_cuda_lstm_forward_scratch(&l), wk_cuda_lstm_backward_scratch(&l)));
    for (int rows = 1; rows <= m->rows; rows++)
        n = most(n, rows_scratch(m, rows));
    return n;
}

static size_t cuda_workspace(struct wk_dev *dev, const struct wk_calls *calls)
{
    (void)dev;
    return all_scratch(calls) + WK_GEMM_WORKSPACE;
}

static int cuda_reserve(struct wk_dev *dev, const struct wk_calls *calls, struct hg_err *err)
{
    size_t bytes = all_scratch(calls);

    if (wk_cuda_scratch(wk_cuda_of(dev), bytes) || bytes == 0)
        return 0;
    return dev->backend->sync(dev, err);
}

static struct wk_dev *cuda_open(const struct wk_dev_options *options, struct hg_err *err)
{
    return wk_cuda_open(&wk_backend_cuda, options, err);
}

const struct wk_backend wk_backend_cuda = {
    .name = "cuda",
    .summary = "an NVIDIA GPU: own kernels, cuBLASLt and NCCL",
    .open = cuda_open,
    .close = wk_cuda_close,
    .describe = wk_cuda_describe,
    .alloc = wk_cuda_alloc,
    .free = wk_cuda_free,
    .upload = wk_cuda_upload,
    .download = wk_cuda_download,
    .sync = wk_cuda_sync,
    .available = wk_cuda_available,
    .workspace = cuda_workspace,
    .reserve = cuda_reserve,
    .step_begin = wk_cuda_step_begin,
    .step_end = wk_cuda_step_end,
    .mark = wk_cuda_mark,
    .times = wk_cuda_times,
    .aside = wk_cuda_aside,
    .join = wk_cuda_join,
    .lstm_state = cuda_lstm_state,
    .attention_mask = cuda_attention_mask,
#define OP(name, ...) .name = cuda_##name,
#define OPTIONAL_OP(...)
#include "backends/ops.def"
};
