/* SPDX-License-Identifier: Apache-2.0 */
/* BERT for question answering: an encoder with two outputs for every token, how well an answer starts and ends there.
 *
 *   word + position + type embeddings -> LayerNorm -> dropout
 *   L times: x = LayerNorm(x + dropout(dense(attention(x)))), x = LayerNorm(x + dropout(dense(GELU(dense(x)))))
 *   -> dense to 2 -> softmax over the tokens of the sequence, cross-entropy
 *
 * Parameters have Hugging Face's names and order (BertForQuestionAnswering, no pooler): 108,893,186 for bert-base. They start as
 * N(0, 0.02), biases and the embedding of [PAD] as 0, LayerNorm as 1 and 0. Dropout 0.1 on embeddings, attention probabilities and
 * both dense outputs of a layer. */
#include "models/bert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define DROP 0.1
#define EPS 1e-12
#define TYPES 2
#define PADDING 0 /* id of [PAD] */
#define INIT_STD 0.02

/* Places of parameters: five of the embeddings, sixteen a layer, two of the head. */
enum { WORD, POSITION, TYPE, EMBED_NORM, EMBED_PARAMS = EMBED_NORM + 2 };
enum {
    QUERY,
    KEY = QUERY + 2,
    VALUE = KEY + 2,
    ATTENTION_DENSE = VALUE + 2,
    ATTENTION_NORM = ATTENTION_DENSE + 2,
    WIDE = ATTENTION_NORM + 2,
    NARROW = WIDE + 2,
    NORM = NARROW + 2,
    LAYER_PARAMS = NORM + 2
};

#define NAME_MAX_BYTES 80

/* A kind and what it points to, in one block. */
struct definition {
    struct wk_model_kind kind;
    struct wk_model_size size;
    int head; /* first parameter of the head */
    struct wk_param *params;
    const char **units;
    char *names; /* (params + units, NAME_MAX_BYTES) */
};

/* ---- Parameters ---- */

struct maker {
    struct definition *d;
    int n, unit;
};

static char *name_at(struct definition *d, int i)
{
    return d->names + (size_t)i * NAME_MAX_BYTES;
}

static void add_param(struct maker *m, const char *prefix, const char *name, const char *suffix,
                      long long rows, long long cols, bool vector, double value)
{
    struct wk_param *p = &m->d->params[m->n];

    snprintf(name_at(m->d, m->n), NAME_MAX_BYTES, "%s%s.%s", prefix, name, suffix);
    *p = (struct wk_param){ .name = name_at(m->d, m->n),
                            .unit = m->unit,
                            .rows = (int)rows,
                            .cols = (int)cols,
                            .init = vector ? WK_INIT_CONSTANT : WK_INIT_NORMAL,
                            .init_value = value,
                            .no_decay = vector };
    m->n++;
}

static void add_dense(struct maker *m, const char *prefix, const char *name, long long out,
                      long long in)
{
    add_param(m, prefix, name, "weight", out, in, false, INIT_STD);
    m->d->params[m->n - 1].product = true;
    add_param(m, prefix, name, "bias", out, 0, true, 0);
}

static void add_norm(struct maker *m, const char *prefix, const char *name, long long n)
{
    add_param(m, prefix, name, "weight", n, 0, true, 1);
    add_param(m, prefix, name, "bias", n, 0, true, 0);
}

static void add_embeddings(struct maker *m)
{
    static const char prefix[] = "bert.embeddings.";
    const struct wk_model_size *s = &m->d->size;

    add_param(m, prefix, "word_embeddings", "weight", s->vocab_size, s->hidden, false, INIT_STD);
    m->d->params[WORD].zero_row = true;
    add_param(m, prefix, "position_embeddings", "weight", s->positions, s->hidden, false, INIT_STD);
    add_param(m, prefix, "token_type_embeddings", "weight", TYPES, s->hidden, false, INIT_STD);
    add_norm(m, prefix, "LayerNorm", s->hidden);
}

static void add_layer(struct maker *m, int layer)
{
    const struct wk_model_size *s = &m->d->size;
    char prefix[40];

    snprintf(prefix, sizeof prefix, "bert.encoder.layer.%d.", layer);
    add_dense(m, prefix, "attention.self.query", s->hidden, s->hidden);
    add_dense(m, prefix, "attention.self.key", s->hidden, s->hidden);
    add_dense(m, prefix, "attention.self.value", s->hidden, s->hidden);
    add_dense(m, prefix, "attention.output.dense", s->hidden, s->hidden);
    add_norm(m, prefix, "attention.output.LayerNorm", s->hidden);
    add_dense(m, prefix, "intermediate.dense", s->intermediate, s->hidden);
    add_dense(m, prefix, "output.dense", s->hidden, s->intermediate);
    add_norm(m, prefix, "output.LayerNorm", s->hidden);
}

static const char *add_unit(struct maker *m, const char *name, int number)
{
    char *text = name_at(m->d, m->d->kind.n_params + m->unit);

    if (number < 0)
        snprintf(text, NAME_MAX_BYTES, "%s", name);
    else
        snprintf(text, NAME_MAX_BYTES, "%s.%d", name, number);
    m->d->units[m->unit] = text;
    return text;
}

static void add_all(struct definition *d)
{
    struct maker m = { .d = d };

    add_unit(&m, "embeddings", -1);
    add_embeddings(&m);
    for (int layer = 0; layer < d->size.layers; layer++) {
        m.unit = 1 + layer;
        add_unit(&m, "layer", layer);
        add_layer(&m, layer);
    }
    m.unit++;
    add_unit(&m, "head", -1);
    d->head = m.n;
    add_dense(&m, "", "qa_outputs", 2, d->size.hidden);
}

/* ---- One training's memory ---- */

/* What a layer keeps for backward; evaluation alone lets all layers share one. */
struct layer {
    struct wk_qkv qkv;                             /* (rows, hidden) each, parts of: */
    struct wk_span all_qkv;                        /* values, keys, queries */
    struct wk_span context, lse, mask;             /* (rows, hidden), (rows, heads), dropout's */
    struct wk_span attention_sum, attention_saved; /* (rows, hidden), (rows, 2) */
    struct wk_span middle;                         /* (rows, hidden): between the halves */
    struct wk_span wide, active;                   /* (rows, intermediate), before and after GELU */
    struct wk_span sum, saved;                     /* (rows, hidden), (rows, 2) */
    struct wk_span out;                            /* (rows, hidden) */
};
#define LAYER_SPANS (sizeof(struct layer) / sizeof(struct wk_span))

struct bert {
    struct wk_model model; /* first */
    const struct definition *d;
    bool dropout;
    int kept; /* layers in layers */
    struct layer *layers;
    struct wk_span embed_sum, embed_saved, embedded; /* (rows, hidden), (rows, 2), (rows, hidden) */
    struct wk_span logits, d_logits;                 /* (rows, 2) */
    struct wk_span d_x, d_dense, d_wide;             /* gradients on their way down */
    struct wk_qkv d_qkv;                             /* parts of: */
    struct wk_span all_d_qkv;                        /* (3, rows, hidden) */
};

static struct bert *bert_of(struct wk_model *model)
{
    return (struct bert *)model;
}

static void layer_close(struct layer *l, struct wk_dev *dev)
{
    struct wk_span *spans = (struct wk_span *)l;

    for (size_t i = 3; i < LAYER_SPANS; i++) /* those after qkv */
        wk_dev_free(dev, WK_MEM_ACTIVATIONS, &spans[i]);
}

static void bert_close(struct wk_model *model)
{
    struct bert *b = bert_of(model);

    if (!b)
        return;
    struct wk_span *all[] = { &b->embed_sum, &b->embed_saved, &b->embedded,
                              &b->logits,    &b->d_logits,    &b->d_x,
                              &b->d_dense,   &b->d_wide,      &b->all_d_qkv };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        wk_dev_free(model->dev, WK_MEM_ACTIVATIONS, all[i]);
    for (int i = 0; b->layers && i < b->kept; i++)
        layer_close(&b->layers[i], model->dev);
    free(b->layers);
    free(b);
}

struct wanted {
    struct wk_span *span;
    size_t n;
    enum wk_type type;
};

/* In the order in which a strategy's buffers have the weights: three GEMMs of one input can be one. */
static struct wk_qkv cut_qkv(struct wk_span all)
{
    size_t n = all.n / 3;

    return (struct wk_qkv){ .v = wk_span_part(all, 0, n),
                            .k = wk_span_part(all, n, n),
                            .q = wk_span_part(all, 2 * n, n) };
}

static int alloc_all(struct wk_dev *dev, const struct wanted *w, size_t n, struct hg_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (w[i].n && wk_dev_alloc(dev, WK_MEM_ACTIVATIONS, w[i].type, w[i].n, w[i].span, err) < 0)
            return -1;
    return 0;
}

static int larger(long long a, long long b)
{
    return (int)(a > b ? a : b);
}

static int layer_open(struct layer *l, const struct wk_model_size *s, size_t rows,
                      size_t mask_bytes, struct wk_dev *dev, struct hg_err *err)
{
    size_t hidden = rows * (size_t)s->hidden, wide = rows * (size_t)s->intermediate;
    const enum wk_type t = dev->working;
    const struct wanted w[] = {
        { &l->all_qkv, 3 * hidden, t },
        { &l->context, hidden, t },
        { &l->middle, hidden, t },
        { &l->attention_sum, hidden, t },
        { &l->wide, wide, t },
        { &l->active, wide, t },
        { &l->sum, hidden, t },
        { &l->out, hidden, t },
        { &l->saved, 2 * rows, WK_REAL },
        { &l->attention_saved, 2 * rows, WK_REAL },
        { &l->lse, rows * (size_t)s->heads, WK_REAL },
        { &l->mask, mask_bytes, WK_U8 },
    };

    if (alloc_all(dev, w, sizeof w / sizeof *w, err) < 0)
        return -1;
    l->qkv = cut_qkv(l->all_qkv);
    return 0;
}

/* Bytes of a layer's dropout mask. */
static size_t mask_bytes(const struct bert *b, const struct wk_model_options *options)
{
    const struct wk_attention a = { .heads = (int)b->d->size.heads,
                                    .drop = options->dropout ? DROP : 0 };
    const struct wk_backend *ops = b->model.dev->backend;

    return ops->attention_mask ? ops->attention_mask(&a, options->batch_tokens, options->longest)
                               : 0;
}

static int bert_alloc(struct bert *b, const struct wk_model_options *options, struct hg_err *err)
{
    const struct wk_model_size *s = &b->d->size;
    size_t train = (size_t)options->batch_tokens;
    size_t most = (size_t)larger(options->batch_tokens, options->eval_tokens);
    size_t hidden = (size_t)s->hidden;
    size_t wide = (size_t)(s->intermediate > s->hidden ? s->intermediate : s->hidden);
    const enum wk_type t = b->model.dev->working;
    const struct wanted w[] = {
        { &b->embed_sum, most * hidden, t },      { &b->embed_saved, 2 * most, WK_REAL },
        { &b->embedded, most * hidden, t },       { &b->logits, 2 * most, WK_REAL },
        { &b->d_logits, 2 * train, t },           { &b->d_x, train * hidden, t },
        { &b->d_dense, train * hidden, t },       { &b->d_wide, train * wide, t },
        { &b->all_d_qkv, 3 * train * hidden, t },
    };

    if (alloc_all(b->model.dev, w, sizeof w / sizeof *w, err) < 0)
        return -1;
    if (train)
        b->d_qkv = cut_qkv(b->all_d_qkv);
    for (int i = 0; i < b->kept; i++)
        if (layer_open(&b->layers[i], s, most, mask_bytes(b, options), b->model.dev, err) < 0)
            return -1;
    return 0;
}

static void bert_calls(const struct wk_model_options *options, struct wk_calls *calls)
{
    const struct definition *d = options->kind->own;
    const struct wk_model_size *s = &d->size;

    calls->rows = larger(options->batch_tokens, options->eval_tokens);
    calls->cols = (int)s->hidden;
    calls->wide = larger(s->intermediate, s->hidden);
    calls->sequences = larger(options->batch_rows, options->eval_rows);
    calls->longest = options->longest;
    calls->heads = (int)s->heads;
    calls->embeddings = (int)(s->vocab_size + s->positions + TYPES);
    calls->types = TYPES;
}

static struct wk_model *bert_open(struct wk_dev *dev, const struct wk_model_options *options,
                                  struct hg_err *err)
{
    struct bert *b = hg_alloc_zeroed(1, sizeof *b);

    b->model = (struct wk_model){ .kind = options->kind, .dev = dev };
    b->d = options->kind->own;
    b->dropout = options->dropout;
    b->kept = options->batch_tokens ? (int)b->d->size.layers : 1;
    b->layers = hg_alloc_zeroed((size_t)b->kept, sizeof *b->layers);
    if (bert_alloc(b, options, err) < 0) {
        bert_close(&b->model);
        return NULL;
    }
    return &b->model;
}

/* ---- Passes ---- */

/* What a pass runs with, and which parameters a unit has. */
struct run {
    struct bert *b;
    const struct wk_pass *pass;
    const struct wk_batch *batch;
    const struct wk_backend *ops;
    struct wk_dev *dev;
    int rows, hidden, wide;
    double drop;
    int first; /* parameter of the unit */
};

static struct run run_of(struct wk_model *model, const struct wk_pass *pass,
                         const struct wk_batch *batch)
{
    struct bert *b = bert_of(model);

    return (struct run){ .b = b,
                         .pass = pass,
                         .batch = batch,
                         .ops = pass->dev->backend,
                         .dev = pass->dev,
                         .rows = batch->packing.rows,
                         .hidden = (int)b->d->size.hidden,
                         .wide = (int)b->d->size.intermediate,
                         .drop = pass->training && b->dropout ? DROP : 0 };
}

static struct wk_span value(const struct run *r, int param)
{
    return r->pass->params[r->first + param].value;
}

static struct wk_span gradient(const struct run *r, int param)
{
    return r->pass->params[r->first + param].gradient;
}

/* Places where dropout draws: the embeddings, then a layer's two outputs and its heads. */
static struct wk_rng rng_embed(const struct run *r)
{
    return (struct wk_rng){ r->pass->seed, WK_SITE_DROPOUT, r->pass->step };
}

static struct wk_rng rng_layer(const struct run *r, int layer, int place)
{
    uint32_t places = 2 + (uint32_t)r->b->d->size.heads;

    return (struct wk_rng){ r->pass->seed,
                            WK_SITE_DROPOUT + 1 + (uint32_t)layer * places + (uint32_t)place,
                            r->pass->step };
}

static struct wk_attention attention_of(const struct run *r, int layer)
{
    int heads = (int)r->b->d->size.heads;

    return (struct wk_attention){ heads, r->hidden / heads, r->drop, rng_layer(r, layer, 2) };
}

static void embed_forward(const struct run *r)
{
    struct bert *b = r->b;
    const struct wk_packing *p = &r->batch->packing;

    r->ops->embed_forward(r->dev, b->embed_sum, r->batch->ids, r->batch->types, p, value(r, WORD),
                          value(r, POSITION), value(r, TYPE), r->hidden);
    r->ops->norm_forward(r->dev, b->embedded, b->embed_saved, b->embed_sum, WK_NONE,
                         value(r, EMBED_NORM), value(r, EMBED_NORM + 1), p, r->hidden, EPS, 0,
                         rng_embed(r));
    if (r->drop > 0)
        r->ops->token_dropout(r->dev, b->embedded, b->embedded, p, r->hidden, r->drop,
                              rng_embed(r));
}

static void dense_forward(const struct run *r, struct wk_span y, struct wk_span x, int param,
                          int in, int out)
{
    r->ops->linear_forward(r->dev, y, x, value(r, param), value(r, param + 1), r->rows, in, out);
}

static struct wk_qkv values3(const struct run *r, int plus)
{
    return (struct wk_qkv){ value(r, QUERY + plus), value(r, KEY + plus), value(r, VALUE + plus) };
}

static struct wk_qkv gradients3(const struct run *r, int plus)
{
    return (struct wk_qkv){ gradient(r, QUERY + plus), gradient(r, KEY + plus),
                            gradient(r, VALUE + plus) };
}

static void layer_forward(const struct run *r, int index, struct layer *l, struct wk_span x)
{
    const struct wk_qkv weights = values3(r, 0), biases = values3(r, 1);
    const struct wk_packing *p = &r->batch->packing;
    struct wk_attention a = attention_of(r, index);

    r->ops->linear3_forward(r->dev, &l->qkv, x, &weights, &biases, r->rows, r->hidden, r->hidden);
    r->ops->attention_forward(r->dev, &a, p, l->context, r->pass->training ? l->lse : WK_NONE,
                              r->pass->training ? l->mask : WK_NONE, &l->qkv);
    dense_forward(r, l->attention_sum, l->context, ATTENTION_DENSE, r->hidden, r->hidden);
    r->ops->norm_forward(r->dev, l->middle, l->attention_saved, l->attention_sum, x,
                         value(r, ATTENTION_NORM), value(r, ATTENTION_NORM + 1), p, r->hidden, EPS,
                         r->drop, rng_layer(r, index, 0));
    r->ops->linear_gelu_forward(r->dev, l->active, l->wide, l->middle, value(r, WIDE),
                                value(r, WIDE + 1), r->rows, r->hidden, r->wide,
                                r->b->d->size.gelu);
    dense_forward(r, l->sum, l->active, NARROW, r->wide, r->hidden);
    r->ops->norm_forward(r->dev, l->out, l->saved, l->sum, l->middle, value(r, NORM),
                         value(r, NORM + 1), p, r->hidden, EPS, r->drop, rng_layer(r, index, 1));
}

/* A unit is layer `index`, or the embeddings (-1), or the head. */
static int enter(struct run *r, int index)
{
    r->first = index < 0 ? 0 : EMBED_PARAMS + index * LAYER_PARAMS;
    return index + 1;
}

static struct layer *layer_at(struct bert *b, int index)
{
    return &b->layers[index % b->kept];
}

/* What a unit reads: the layer's below, or the embeddings'. */
static struct wk_span input_of(struct bert *b, int index)
{
    return index > 0 ? layer_at(b, index - 1)->out : b->embedded;
}

static int unit_forward(struct run *r, int index, struct hg_err *err)
{
    struct bert *b = r->b;
    int unit = enter(r, index);

    if (wk_before(r->pass->hooks, WK_FORWARD, unit, err) < 0)
        return -1;
    if (index < 0)
        embed_forward(r);
    else if (index < b->d->size.layers)
        layer_forward(r, index, layer_at(b, index), input_of(b, index));
    else
        dense_forward(r, b->logits, input_of(b, index), 0, r->hidden, 2);
    return wk_after(r->pass->hooks, WK_FORWARD, unit, err);
}

static int bert_forward(struct wk_model *model, const struct wk_pass *pass,
                        const struct wk_batch *batch, struct hg_err *err)
{
    struct run r = run_of(model, pass, batch);

    for (int i = -1; i <= r.b->d->size.layers; i++)
        if (unit_forward(&r, i, err) < 0)
            return -1;
    return 0;
}

static void bert_loss(struct wk_model *model, const struct wk_pass *pass,
                      const struct wk_batch *batch, struct wk_span loss)
{
    struct bert *b = bert_of(model);

    pass->dev->backend->span_loss(pass->dev, loss, b->d_logits, b->logits, &batch->packing,
                                  batch->starts, batch->ends, pass->share > 0 ? pass->share : 1,
                                  pass->loss_scale);
}

static void dense_backward(const struct run *r, bool add, struct wk_span d_x, struct wk_span d_y,
                           struct wk_span x, int param, int in, int out)
{
    (add ? r->ops->linear_backward_add
         : r->ops->linear_backward)(r->dev, d_x, gradient(r, param), gradient(r, param + 1), d_y, x,
                                    value(r, param), r->rows, in, out);
}

/* d_x comes in as the gradient of the layer's output and leaves as that of its input x. */
static void layer_backward(const struct run *r, int index, struct layer *l, struct wk_span x)
{
    const struct wk_qkv weights = values3(r, 0), d_weights = gradients3(r, 0),
                        d_biases = gradients3(r, 1);
    struct bert *b = r->b;
    const struct wk_packing *p = &r->batch->packing;
    struct wk_attention a = attention_of(r, index);

    r->ops->norm_backward(r->dev, b->d_x, b->d_dense, gradient(r, NORM), gradient(r, NORM + 1),
                          b->d_x, l->sum, value(r, NORM), l->saved, p, r->hidden, r->drop,
                          rng_layer(r, index, 1));
    r->ops->linear_gelu_backward(r->dev, b->d_wide, gradient(r, NARROW), gradient(r, NARROW + 1),
                                 b->d_dense, l->active, l->wide, value(r, NARROW), r->rows, r->wide,
                                 r->hidden, b->d->size.gelu);
    dense_backward(r, true, b->d_x, b->d_wide, l->middle, WIDE, r->hidden, r->wide);
    r->ops->norm_backward(r->dev, b->d_x, b->d_dense, gradient(r, ATTENTION_NORM),
                          gradient(r, ATTENTION_NORM + 1), b->d_x, l->attention_sum,
                          value(r, ATTENTION_NORM), l->attention_saved, p, r->hidden, r->drop,
                          rng_layer(r, index, 0));
    /* what GELU's gradient no longer needs holds the context's */
    dense_backward(r, false, b->d_wide, b->d_dense, l->context, ATTENTION_DENSE, r->hidden,
                   r->hidden);
    r->ops->attention_backward(r->dev, &a, p, &b->d_qkv, b->d_wide, l->context, l->lse, l->mask,
                               &l->qkv);
    r->ops->linear3_backward(r->dev, b->d_x, &d_weights, &d_biases, &b->d_qkv, x, &weights, r->rows,
                             r->hidden, r->hidden);
}

static void embed_backward(const struct run *r)
{
    struct bert *b = r->b;
    const struct wk_packing *p = &r->batch->packing;

    if (r->drop > 0)
        r->ops->token_dropout(r->dev, b->d_x, b->d_x, p, r->hidden, r->drop, rng_embed(r));
    r->ops->norm_backward(r->dev, b->d_x, WK_NONE, gradient(r, EMBED_NORM),
                          gradient(r, EMBED_NORM + 1), b->d_x, b->embed_sum, value(r, EMBED_NORM),
                          b->embed_saved, p, r->hidden, 0, rng_embed(r));
    r->ops->embed_backward(r->dev, gradient(r, WORD), gradient(r, POSITION), gradient(r, TYPE),
                           b->d_x, r->batch->ids, r->batch->types, p, PADDING, r->hidden);
}

static int unit_backward(struct run *r, int index, struct hg_err *err)
{
    struct bert *b = r->b;
    int unit = enter(r, index);

    if (wk_before(r->pass->hooks, WK_BACKWARD, unit, err) < 0)
        return -1;
    if (index < 0)
        embed_backward(r);
    else if (index < b->d->size.layers)
        layer_backward(r, index, layer_at(b, index), input_of(b, index));
    else
        dense_backward(r, false, b->d_x, b->d_logits, input_of(b, index), 0, r->hidden, 2);
    return wk_after(r->pass->hooks, WK_BACKWARD, unit, err);
}

static int bert_backward(struct wk_model *model, const struct wk_pass *pass,
                         const struct wk_batch *batch, struct hg_err *err)
{
    struct run r = run_of(model, pass, batch);
    int rc = 0;

    r.dev->fresh = pass->hooks && pass->hooks->fresh;
    for (int i = (int)r.b->d->size.layers; i >= -1 && rc == 0; i--)
        rc = unit_backward(&r, i, err);
    r.dev->fresh = false;
    return rc;
}

/* Only losses: which answers are right takes the texts (data/squad_eval.h). */
static void bert_score(struct wk_model *model, const struct wk_pass *pass,
                       const struct wk_batch *batch, struct wk_span out)
{
    struct bert *b = bert_of(model);

    pass->dev->backend->fill(pass->dev, out, 0);
    pass->dev->backend->span_loss(pass->dev, wk_span_part(out, 0, 1), WK_NONE, b->logits,
                                  &batch->packing, batch->starts, batch->ends, 1, WK_NONE);
    pass->dev->backend->scale(pass->dev, wk_span_part(out, 0, 1), batch->packing.sequences);
}

static struct wk_span bert_outputs(struct wk_model *model)
{
    return bert_of(model)->logits;
}

/* ---- Making a kind ---- */

static long long either(long long asked, long long preset)
{
    return asked ? asked : preset;
}

static int check_size(const char *name, const struct wk_model_size *s, struct hg_err *err)
{
    if (s->hidden % s->heads != 0)
        return hg_err_set(err, HG_E_INPUT,
                          "%s: hidden %lld cannot be cut into %lld heads of equal size", name,
                          s->hidden, s->heads);
    if (1 + s->layers * (2 + s->heads) >= 1 << 16)
        return hg_err_set(err, HG_E_INPUT, "%s: %lld layers of %lld heads are too many", name,
                          s->layers, s->heads);
    return 0;
}

static struct definition *definition_alloc(const struct wk_model_size *size, int n_params,
                                           int n_units)
{
    size_t params = (size_t)n_params * sizeof(struct wk_param);
    size_t units = (size_t)n_units * sizeof(char *);
    size_t names = (size_t)(n_params + n_units) * NAME_MAX_BYTES;
    struct definition *d = hg_alloc_zeroed(1, sizeof *d + params + units + names);

    d->size = *size;
    d->params = (struct wk_param *)(d + 1);
    d->units = (const char **)((char *)d->params + params);
    d->names = (char *)d->units + units;
    d->kind.n_params = n_params;
    d->kind.n_units = n_units;
    return d;
}

/* What is requested, and what follows from it. */
static struct wk_model_size size_of(const struct wk_model_size *preset,
                                    const struct wk_model_size *asked)
{
    struct wk_model_size s = { .layers = either(asked->layers, preset->layers),
                               .hidden = either(asked->hidden, preset->hidden),
                               .vocab_size = either(asked->vocab_size, preset->vocab_size),
                               .positions = either(asked->positions, preset->positions),
                               .gelu = asked->gelu };

    s.heads = either(asked->heads, asked->hidden ? (s.hidden + 63) / 64 : preset->heads);
    s.intermediate = either(asked->intermediate, 4 * s.hidden);
    return s;
}

struct wk_model_kind *wk_bert_make(const struct wk_model_entry *entry,
                                   const struct wk_model_size *asked, struct hg_err *err)
{
    struct wk_model_size s = size_of(&entry->size, asked);
    struct definition *d;

    if (check_size(entry->name, &s, err) < 0)
        return NULL;
    d = definition_alloc(&s, EMBED_PARAMS + (int)s.layers * LAYER_PARAMS + 2, (int)s.layers + 2);
    add_all(d);
    d->kind = (struct wk_model_kind){ .name = entry->name,
                                      .summary = entry->summary,
                                      .params = d->params,
                                      .n_params = d->kind.n_params,
                                      .units = d->units,
                                      .n_units = d->kind.n_units,
                                      .layers_first = 1,
                                      .layers_end = 1 + (int)s.layers,
                                      .min_rows = 1,
                                      .reads_tokens = true,
                                      .size = &d->size,
                                      .own = d,
                                      .open = bert_open,
                                      .close = bert_close,
                                      .calls = bert_calls,
                                      .forward = bert_forward,
                                      .loss = bert_loss,
                                      .backward = bert_backward,
                                      .score = bert_score,
                                      .outputs = bert_outputs };
    return &d->kind;
}
