/* SPDX-License-Identifier: Apache-2.0 */
/* A small BERT with values and gradients where a test can reach them, without strategy or optimizer. */
#ifndef HG_TESTS_WORKER_BERT_H
#define HG_TESTS_WORKER_BERT_H

#include "data/tokens.h"
#include "worker.h"

#define BERT_PARAMS_MAX 64

struct bert_rig {
    struct wk_dev *dev;
    const struct wk_model_kind *kind;
    struct wk_model *model;
    struct wk_tensor params[BERT_PARAMS_MAX];
    struct wk_token_batch tokens;
    struct wk_pass pass;
    struct wk_span loss;
};

static inline void bert_open(struct bert_rig *r, const struct wk_model_size *size, bool dropout,
                             int threads, int rows, int tokens)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_model_options options = { .batch_rows = rows,
                                        .batch_tokens = tokens,
                                        .dropout = dropout };

    *r = (struct bert_rig){ .dev = open_cpu(threads) };
    r->kind = wk_model_make("bert-tiny", size, &err);
    if (!r->kind || wk_token_batch_open(&r->tokens, rows, tokens, r->dev, &err) < 0)
        fail_msg("%s", err.text);
    options.kind = r->kind;
    options.batch_tokens = wk_dev_rows(r->dev, tokens);
    r->model = r->kind->open(r->dev, &options, &err);
    if (!r->model)
        fail_msg("%s", err.text);
    assert_true(r->kind->n_params <= BERT_PARAMS_MAX);
    for (int i = 0; i < r->kind->n_params; i++) {
        size_t n = wk_param_n(&r->kind->params[i]);

        r->params[i] = (struct wk_tensor){ tensor(r->dev, n), tensor(r->dev, n) };
    }
    r->loss = tensor(r->dev, 1);
    r->pass = (struct wk_pass){
        .dev = r->dev, .params = r->params, .training = true, .seed = 7, .step = 3
    };
}

static inline void bert_close(struct bert_rig *r)
{
    for (int i = 0; i < r->kind->n_params; i++) {
        drop(r->dev, r->params[i].value);
        drop(r->dev, r->params[i].gradient);
    }
    drop(r->dev, r->loss);
    r->kind->close(r->model);
    wk_token_batch_close(&r->tokens, r->dev);
    wk_model_free(r->kind);
    r->dev->backend->close(r->dev);
}

/* Values that make every part of the model count: larger than training starts with. */
static inline void bert_set_noise(struct bert_rig *r)
{
    for (int i = 0; i < r->kind->n_params; i++) {
        wk_real *w = r->params[i].value.data;

        for (size_t k = 0; k < r->params[i].value.n; k++)
            w[k] = (wk_real)r->kind->params[i].init_value *
                       (r->kind->params[i].init == WK_INIT_CONSTANT) +
                   (wk_real)0.3 * noise((uint32_t)i + 100, k);
    }
}

/* Sequences of these lengths with tokens, types and labels that look random; sequence i has the key keys[i]. */
static inline void bert_batch(struct bert_rig *r, const int *lengths, const int32_t *keys, int n,
                              int pad_to, int vocab)
{
    wk_token_batch_begin(&r->tokens, pad_to);
    for (int s = 0; s < n; s++) {
        int32_t *ids, *types;
        uint32_t key = (uint32_t)keys[s];
        int start = (int)(key * 7 % (uint32_t)lengths[s]);

        wk_token_batch_next(&r->tokens, lengths[s], start, start + (lengths[s] - 1 - start) / 2,
                            keys[s], &ids, &types);
        for (int i = 0; i < lengths[s]; i++) {
            ids[i] = 1 + (int32_t)((key * 31 + (uint32_t)i * 17) % (uint32_t)(vocab - 1));
            types[i] = i > lengths[s] / 3;
        }
    }
    wk_token_batch_end(&r->tokens, r->dev);
}

static inline double bert_loss_of(struct bert_rig *r)
{
    struct hg_err err = HG_ERR_INIT;

    if (r->kind->forward(r->model, &r->pass, &r->tokens.batch, &err) < 0)
        fail_msg("%s", err.text);
    r->kind->loss(r->model, &r->pass, &r->tokens.batch, r->loss);
    return (double)*(wk_real *)r->loss.data;
}

static inline void bert_backward_of(struct bert_rig *r)
{
    struct hg_err err = HG_ERR_INIT;

    for (int i = 0; i < r->kind->n_params; i++)
        r->dev->backend->fill(r->dev, r->params[i].gradient, 0);
    if (r->kind->backward(r->model, &r->pass, &r->tokens.batch, &err) < 0)
        fail_msg("%s", err.text);
}

#endif
