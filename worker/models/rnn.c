/* SPDX-License-Identifier: Apache-2.0 */
/* The MNIST RNN: an image is read as 28 rows of 28 values.
 *
 *   LSTM 28 -> 64, last step -> BatchNorm 64 -> dropout 1/4 -> dense 64 -> 32 -> ReLU -> dropout
 * 1/2 -> dense 32 -> 10
 *   -> log-softmax and negative log-likelihood
 *
 * 26,602 parameters, initialised as PyTorch does: uniform within 1/sqrt(64) in the LSTM, within
 * 1/sqrt(inputs) in dense layers, 1 and 0 in BatchNorm. Statistics of BatchNorm are those of a
 * rank's own batch. */
#include <stdlib.h>

#include "base/alloc.h"
#include "models/models.h"

enum { STEPS = 28, IN = 28, HIDDEN = 64, DENSE = 32, CLASSES = 10 };
enum { UNIT_LSTM, UNIT_HEAD, N_UNITS };
enum {
    W_IH,
    W_HH,
    B_IH,
    B_HH,
    BN_WEIGHT,
    BN_BIAS,
    FC1_WEIGHT,
    FC1_BIAS,
    FC2_WEIGHT,
    FC2_BIAS,
    N_PARAMS
};
enum { RUNNING_MEAN, RUNNING_VAR, N_BUFFERS };

#define DROP1 0.25
#define DROP2 0.5

static const char *const units[N_UNITS] = { "lstm", "head" };

static const struct wk_param params[N_PARAMS] = {
    [W_IH] = { "rnn.weight_ih_l0", UNIT_LSTM, 4 * HIDDEN, IN, WK_INIT_UNIFORM, 0.125 },
    [W_HH] = { "rnn.weight_hh_l0", UNIT_LSTM, 4 * HIDDEN, HIDDEN, WK_INIT_UNIFORM, 0.125 },
    [B_IH] = { "rnn.bias_ih_l0", UNIT_LSTM, 4 * HIDDEN, 0, WK_INIT_UNIFORM, 0.125 },
    [B_HH] = { "rnn.bias_hh_l0", UNIT_LSTM, 4 * HIDDEN, 0, WK_INIT_UNIFORM, 0.125 },
    [BN_WEIGHT] = { "batchnorm.weight", UNIT_HEAD, HIDDEN, 0, WK_INIT_CONSTANT, 1 },
    [BN_BIAS] = { "batchnorm.bias", UNIT_HEAD, HIDDEN, 0, WK_INIT_CONSTANT, 0 },
    [FC1_WEIGHT] = { "fc1.weight", UNIT_HEAD, DENSE, HIDDEN, WK_INIT_UNIFORM, 0.125 },
    [FC1_BIAS] = { "fc1.bias", UNIT_HEAD, DENSE, 0, WK_INIT_UNIFORM, 0.125 },
    [FC2_WEIGHT] = { "fc2.weight", UNIT_HEAD, CLASSES, DENSE, WK_INIT_UNIFORM,
                     0.17677669529663687 },
    [FC2_BIAS] = { "fc2.bias", UNIT_HEAD, CLASSES, 0, WK_INIT_UNIFORM, 0.17677669529663687 },
};

/* Within the LSTM as in PyTorch, which matters to buckets. */
static const int ready[N_PARAMS] = { FC2_BIAS,  FC2_WEIGHT, FC1_BIAS, FC1_WEIGHT, BN_BIAS,
                                     BN_WEIGHT, B_HH,       W_HH,     B_IH,       W_IH };

static const struct wk_buffer buffers[N_BUFFERS] = {
    [RUNNING_MEAN] = { "batchnorm.running_mean", HIDDEN, 0 },
    [RUNNING_VAR] = { "batchnorm.running_var", HIDDEN, 1 },
};

/* Activations; the gradient of each takes the place of what is no longer needed. */
struct rnn {
    struct wk_model model; /* first */
    bool dropout;
    struct wk_span state;  /* what the LSTM keeps for backward */
    struct wk_span h, d_h; /* (rows, HIDDEN) last step */
    struct wk_span saved;  /* (2, HIDDEN) mean and 1/sqrt(var) */
    /* (ranks, 2, HIDDEN) of all ranks' rows, where these share statistics. */
    struct wk_span moments;
    struct wk_span normed, d_normed; /* (rows, HIDDEN), after dropout */
    struct wk_span dense, d_dense;   /* (rows, DENSE), after ReLU; after dropout in dropped */
    struct wk_span dropped;          /* (rows, DENSE) */
    struct wk_span logits;           /* (rows, CLASSES) */
    struct wk_span d_logits;         /* (rows, CLASSES) */
};

static struct rnn *rnn_of(struct wk_model *model)
{
    return (struct rnn *)model;
}

static void rnn_close(struct wk_model *model)
{
    struct rnn *r = rnn_of(model);

    if (!r)
        return;
    struct wk_span *all[] = { &r->moments, &r->state,   &r->h,        &r->d_h,
                              &r->saved,   &r->normed,  &r->d_normed, &r->dense,
                              &r->d_dense, &r->dropped, &r->logits,   &r->d_logits };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        wk_dev_free(model->dev, WK_MEM_ACTIVATIONS, all[i]);
    free(r);
}

static struct wk_lstm shape(int rows)
{
    return (struct wk_lstm){ .batch = rows, .steps = STEPS, .in = IN, .hidden = HIDDEN };
}

static void rnn_calls(const struct wk_model_options *options, struct wk_calls *calls)
{
    int most = options->eval_rows > options->batch_rows ? options->eval_rows : options->batch_rows;

    calls->lstm = shape(most);
    calls->rows = most;
    calls->cols = HIDDEN;
    calls->wide = DENSE > HIDDEN ? DENSE : HIDDEN;
}

/* What passes keep. */
static int take_memory(struct rnn *r, const struct wk_model_options *options, struct hg_err *err)
{
    struct wk_dev *dev = r->model.dev;
    struct wk_lstm lstm = shape(options->batch_rows);
    size_t train = (size_t)options->batch_rows;
    size_t most = options->eval_rows > options->batch_rows ? (size_t)options->eval_rows : train;
    const enum wk_type t = dev->working;
    const struct {
        struct wk_span *span;
        size_t n;
        enum wk_type type;
    } wanted[] = {
        { &r->state, dev->backend->lstm_state(dev, &lstm), WK_REAL },
        { &r->h, most * HIDDEN, t },
        { &r->d_h, train * HIDDEN, t },
        { &r->saved, 2 * HIDDEN, WK_REAL },
        { &r->moments, (size_t)options->synced_ranks * 2 * HIDDEN, WK_REAL },
        { &r->normed, most * HIDDEN, t },
        { &r->d_normed, train * HIDDEN, t },
        { &r->dense, most * DENSE, t },
        { &r->d_dense, train * DENSE, t },
        { &r->dropped, train * DENSE, t },
        { &r->logits, most * CLASSES, WK_REAL },
        { &r->d_logits, train * CLASSES, t },
    };

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (wanted[i].n && wk_dev_alloc(dev, WK_MEM_ACTIVATIONS, wanted[i].type, wanted[i].n,
                                        wanted[i].span, err) < 0)
            return -1;
    return 0;
}

static struct wk_model *rnn_open(struct wk_dev *dev, const struct wk_model_options *options,
                                 struct hg_err *err)
{
    struct rnn *r;

    if (options->synced_ranks && (dev->working != WK_REAL || !dev->backend->batchnorm_join)) {
        hg_err_set(err, HG_E_INPUT, "sync_batchnorm on backend %s in %s is not supported",
                   dev->backend->name, wk_precision_name(dev->precision));
        return NULL;
    }
    r = hg_alloc_zeroed(1, sizeof *r);
    r->model = (struct wk_model){ .kind = &wk_model_rnn, .dev = dev };
    r->dropout = options->dropout;
    if (take_memory(r, options, err) == 0)
        return &r->model;
    rnn_close(&r->model);
    return NULL;
}

/* ---- Passes ---- */

/* Ranks that share batch statistics; 0: each has its own. */
static int shared_ranks(const struct wk_pass *pass)
{
    return pass->hooks ? pass->hooks->ranks : 0;
}

static struct wk_span value(const struct wk_pass *pass, int param)
{
    return pass->params[param].value;
}

static struct wk_span gradient(const struct wk_pass *pass, int param)
{
    return pass->params[param].gradient;
}

static struct wk_lstm_weights lstm_values(const struct wk_pass *p)
{
    return (struct wk_lstm_weights){ value(p, W_IH), value(p, W_HH), value(p, B_IH),
                                     value(p, B_HH) };
}

static struct wk_lstm_weights lstm_gradients(const struct wk_pass *p)
{
    return (struct wk_lstm_weights){ gradient(p, W_IH), gradient(p, W_HH), gradient(p, B_IH),
                                     gradient(p, B_HH) };
}

static struct wk_rng rng_at(const struct wk_pass *pass, uint32_t place)
{
    return (struct wk_rng){ pass->seed, WK_SITE_DROPOUT + place, pass->step };
}

/* The first n elements: a batch may have fewer rows than there is room for. */
static struct wk_span rows_of(struct wk_span s, int rows, int cols)
{
    return wk_span_part(s, 0, (size_t)rows * (size_t)cols);
}

/* The head in one op each way, where the device has them and batch statistics are this rank's own. */
static bool is_fused(const struct wk_pass *p)
{
    return p->training && p->dev->backend->head_forward && !shared_ranks(p);
}

static struct wk_head head_of(struct rnn *r, const struct wk_pass *p, const struct wk_batch *b)
{
    return (struct wk_head){ .rows = b->rows,
                             .in = HIDDEN,
                             .mid = DENSE,
                             .out = CLASSES,
                             .drop_in = r->dropout ? DROP1 : 0,
                             .drop_mid = r->dropout ? DROP2 : 0,
                             .rng = rng_at(p, 0),
                             .sample = b->sample,
                             .x = r->h,
                             .saved = r->saved,
                             .normed = r->normed,
                             .dense = r->dropout ? r->dropped : r->dense };
}

static struct wk_head_weights head_weights(const struct wk_pass *p,
                                           struct wk_span (*of)(const struct wk_pass *, int))
{
    return (struct wk_head_weights){ of(p, BN_WEIGHT), of(p, BN_BIAS),    of(p, FC1_WEIGHT),
                                     of(p, FC1_BIAS),  of(p, FC2_WEIGHT), of(p, FC2_BIAS) };
}

/* Statistics over the rows of all ranks, as PyTorch's SyncBatchNorm. */
static int sync_forward(struct rnn *r, const struct wk_pass *p, const struct wk_batch *b,
                        struct hg_err *err)
{
    const struct wk_backend *ops = p->dev->backend;
    int ranks = shared_ranks(p);
    struct wk_span own;

    own = wk_span_part(r->moments, (size_t)p->hooks->rank * 2 * HIDDEN, 2 * HIDDEN);
    ops->batchnorm_moments(p->dev, own, r->h, b->rows, HIDDEN);
    if (p->hooks->all_gather(p->hooks->context, r->moments, err) < 0)
        return -1;
    ops->batchnorm_join(p->dev, r->saved, p->buffers[RUNNING_MEAN], p->buffers[RUNNING_VAR],
                        r->moments, ranks, b->rows, HIDDEN);
    ops->batchnorm_apply(p->dev, r->normed, r->h, r->saved, value(p, BN_WEIGHT), value(p, BN_BIAS),
                         b->rows, HIDDEN);
    return 0;
}

/* Gradients of weight and bias stay those of the rank's own rows: they are averaged with the others. */
static int sync_backward(struct rnn *r, const struct wk_pass *p, const struct wk_batch *b,
                         struct hg_err *err)
{
    const struct wk_backend *ops = p->dev->backend;
    struct wk_span sums = wk_span_part(r->moments, 0, 2 * HIDDEN);

    ops->batchnorm_sums(p->dev, sums, r->d_normed, r->h, r->saved, b->rows, HIDDEN);
    ops->add(p->dev, gradient(p, BN_BIAS), wk_span_part(sums, 0, HIDDEN));
    ops->add(p->dev, gradient(p, BN_WEIGHT), wk_span_part(sums, HIDDEN, HIDDEN));
    if (p->hooks->all_reduce(p->hooks->context, sums, err) < 0)
        return -1;
    ops->batchnorm_spread(p->dev, r->d_h, r->d_normed, r->h, value(p, BN_WEIGHT), r->saved, sums,
                          b->rows, b->rows * shared_ranks(p), HIDDEN);
    return 0;
}

static int head_forward(struct rnn *r, const struct wk_pass *p, const struct wk_batch *b,
                        struct hg_err *err)
{
    const struct wk_backend *ops = p->dev->backend;
    struct wk_span mean = p->buffers[RUNNING_MEAN], var = p->buffers[RUNNING_VAR];
    bool drop = p->training && r->dropout;
    struct wk_span dense = rows_of(r->dense, b->rows, DENSE);
    struct wk_head head = head_of(r, p, b);
    struct wk_head_weights w = head_weights(p, value);

    if (is_fused(p)) {
        ops->head_forward(p->dev, &head, &w, mean, var, r->logits);
        return 0;
    }
    if (p->training && shared_ranks(p)) {
        if (sync_forward(r, p, b, err) < 0)
            return -1;
    } else if (p->training)
        ops->batchnorm_forward(p->dev, r->normed, r->saved, mean, var, r->h, value(p, BN_WEIGHT),
                               value(p, BN_BIAS), b->rows, HIDDEN);
    else
        ops->batchnorm_infer(p->dev, r->normed, mean, var, r->h, value(p, BN_WEIGHT),
                             value(p, BN_BIAS), b->rows, HIDDEN);
    if (drop)
        ops->dropout(p->dev, r->normed, r->normed, b->sample, b->rows, HIDDEN, DROP1, rng_at(p, 0));
    ops->linear_forward(p->dev, dense, r->normed, value(p, FC1_WEIGHT), value(p, FC1_BIAS), b->rows,
                        HIDDEN, DENSE);
    ops->relu_forward(p->dev, dense, dense);
    if (drop)
        ops->dropout(p->dev, r->dropped, dense, b->sample, b->rows, DENSE, DROP2, rng_at(p, 1));
    ops->linear_forward(p->dev, r->logits, drop ? r->dropped : dense, value(p, FC2_WEIGHT),
                        value(p, FC2_BIAS), b->rows, DENSE, CLASSES);
    return 0;
}

static int rnn_forward(struct wk_model *model, const struct wk_pass *p, const struct wk_batch *b,
                       struct hg_err *err)
{
    struct rnn *r = rnn_of(model);
    struct wk_lstm lstm = shape(b->rows);
    struct wk_lstm_weights w;

    if (wk_before(p->hooks, WK_FORWARD, UNIT_LSTM, err) < 0)
        return -1;
    w = lstm_values(p);
    p->dev->backend->lstm_forward(p->dev, &lstm, &w, r->h, p->training ? r->state : WK_NONE, b->x);
    if (wk_after(p->hooks, WK_FORWARD, UNIT_LSTM, err) < 0 ||
        wk_before(p->hooks, WK_FORWARD, UNIT_HEAD, err) < 0)
        return -1;
    if (head_forward(r, p, b, err) < 0)
        return -1;
    return wk_after(p->hooks, WK_FORWARD, UNIT_HEAD, err);
}

static void rnn_loss(struct wk_model *model, const struct wk_pass *p, const struct wk_batch *b,
                     struct wk_span loss)
{
    struct rnn *r = rnn_of(model);

    p->dev->backend->nll(p->dev, loss, r->d_logits, r->logits, b->labels, b->rows, CLASSES,
                         p->share > 0 ? p->share : 1, p->loss_scale);
}

static int head_backward(struct rnn *r, const struct wk_pass *p, const struct wk_batch *b,
                         struct hg_err *err)
{
    const struct wk_backend *ops = p->dev->backend;
    struct wk_span d_dense = rows_of(r->d_dense, b->rows, DENSE);
    struct wk_head head = head_of(r, p, b);
    struct wk_head_weights w = head_weights(p, value), d_w = head_weights(p, gradient);

    if (is_fused(p)) {
        ops->head_backward(p->dev, &head, &w, &d_w, r->d_h, r->d_logits);
        return 0;
    }
    ops->linear_backward(p->dev, d_dense, gradient(p, FC2_WEIGHT), gradient(p, FC2_BIAS),
                         r->d_logits, r->dropout ? r->dropped : r->dense, value(p, FC2_WEIGHT),
                         b->rows, DENSE, CLASSES);
    if (r->dropout)
        ops->dropout(p->dev, d_dense, d_dense, b->sample, b->rows, DENSE, DROP2, rng_at(p, 1));
    ops->relu_backward(p->dev, d_dense, d_dense, r->dense);
    ops->linear_backward(p->dev, r->d_normed, gradient(p, FC1_WEIGHT), gradient(p, FC1_BIAS),
                         d_dense, r->normed, value(p, FC1_WEIGHT), b->rows, HIDDEN, DENSE);
    if (r->dropout)
        ops->dropout(p->dev, r->d_normed, r->d_normed, b->sample, b->rows, HIDDEN, DROP1,
                     rng_at(p, 0));
    if (shared_ranks(p))
        return sync_backward(r, p, b, err);
    ops->batchnorm_backward(p->dev, r->d_h, gradient(p, BN_WEIGHT), gradient(p, BN_BIAS),
                            r->d_normed, r->h, value(p, BN_WEIGHT), r->saved, b->rows, HIDDEN);
    return 0;
}

static int rnn_backward(struct wk_model *model, const struct wk_pass *p, const struct wk_batch *b,
                        struct hg_err *err)
{
    struct rnn *r = rnn_of(model);
    struct wk_lstm lstm = shape(b->rows);
    struct wk_lstm_weights w, d_w;

    if (wk_before(p->hooks, WK_BACKWARD, UNIT_HEAD, err) < 0)
        return -1;
    if (head_backward(r, p, b, err) < 0 || wk_after(p->hooks, WK_BACKWARD, UNIT_HEAD, err) < 0 ||
        wk_before(p->hooks, WK_BACKWARD, UNIT_LSTM, err) < 0)
        return -1;
    w = lstm_values(p);
    d_w = lstm_gradients(p);
    p->dev->backend->lstm_backward(p->dev, &lstm, &w, &d_w, r->state, b->x, r->d_h);
    return wk_after(p->hooks, WK_BACKWARD, UNIT_LSTM, err);
}

static void rnn_score(struct wk_model *model, const struct wk_pass *p, const struct wk_batch *b,
                      struct wk_span out)
{
    p->dev->backend->nll_score(p->dev, out, rnn_of(model)->logits, b->labels, b->rows, CLASSES);
}

static struct wk_span rnn_outputs(struct wk_model *model)
{
    return rnn_of(model)->logits;
}

const struct wk_model_kind wk_model_rnn = {
    .name = "rnn",
    .summary = "LSTM over the 28 rows of an MNIST image, two dense layers",
    .params = params,
    .n_params = N_PARAMS,
    .units = units,
    .n_units = N_UNITS,
    .ready = ready,
    .layers_first = UNIT_LSTM,
    .layers_end = UNIT_LSTM + 1,
    .buffers = buffers,
    .n_buffers = N_BUFFERS,
    .sample_width = STEPS * IN,
    .classes = CLASSES,
    .synced = 2 * HIDDEN,
    .min_rows = 2, /* the variance of one row is not defined */
    .open = rnn_open,
    .close = rnn_close,
    .calls = rnn_calls,
    .forward = rnn_forward,
    .loss = rnn_loss,
    .backward = rnn_backward,
    .score = rnn_score,
    .outputs = rnn_outputs,
};
