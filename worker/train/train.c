/* SPDX-License-Identifier: Apache-2.0 */
#include "train/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* ---- Setting up ---- */

static int open_data(struct wk_train *t, struct hg_err *err)
{
    const struct wk_config *c = t->config;
    struct wk_dataset_options options = {
        .name = c->dataset, .data = c->data, .samples = c->samples, .test_samples = c->test_samples
    };

    t->set = wk_dataset_open(&options, err);
    if (!t->set)
        return -1;
    if (t->set->width != t->kind->sample_width || t->set->classes != t->kind->classes)
        return hg_err_set(err, HG_E_INPUT, "model %s does not read data set %s", c->model,
                          c->dataset);
    return wk_sampler_open(&t->sampler, t->set->train.n, t->comm->rank, t->comm->world,
                           (int)c->batch_size, (uint64_t)c->seed, err);
}

/* The smallest batch of an epoch is its last. */
static int check_last_batch(const struct wk_train *t, struct hg_err *err)
{
    const struct wk_sampler *s = &t->sampler;
    int last = s->per_rank - (s->steps - 1) * s->batch;

    if (last >= t->kind->min_rows)
        return 0;
    hg_err_set(
        err, HG_E_INPUT,
        "the last batch of an epoch would hold %d sample%s a rank (%d samples, %d rank%s, batch %d); "
        "model %s needs %d",
        last, last == 1 ? "" : "s", s->n, s->world, s->world == 1 ? "" : "s", s->batch,
        t->kind->name, t->kind->min_rows);
    return hg_err_hint(err, "change batch_size or samples by a few");
}

static int open_model(struct wk_train *t, struct hg_err *err)
{
    const struct wk_config *c = t->config;
    int rows = t->sampler.per_rank < c->batch_size ? t->sampler.per_rank : (int)c->batch_size;
    int share = (t->set->test.n + t->comm->world - 1) / t->comm->world;
    int eval_rows = !c->eval ? 0 : share < c->test_batch ? share : (int)c->test_batch;
    struct wk_model_options options = { rows, eval_rows, c->dropout };

    t->model = t->kind->open(t->dev, &options, err);
    if (!t->model || wk_batch_open(&t->batch, rows, t->set->width, t->dev, err) < 0 ||
        wk_resident_open(&t->train, t->set, &t->set->train, t->dev, err) < 0)
        return -1;
    if (wk_dev_alloc(t->dev, WK_MEM_ACTIVATIONS, WK_REAL, (size_t)t->sampler.steps, &t->losses,
                     err) < 0)
        return -1;
    if (!c->eval)
        return 0;
    return wk_batch_open(&t->eval_batch, eval_rows, t->set->width, t->dev, err) < 0 ||
                   wk_resident_open(&t->test, t->set, &t->set->test, t->dev, err) < 0
               ? -1
               : 0;
}

static void describe(const struct wk_train *t)
{
    const struct wk_config *c = t->config;
    struct wk_result *r = t->result;

    r->world = t->comm->world;
    r->threads = t->dev->threads;
    r->batch_rows = (int)c->batch_size;
    r->epochs = c->epochs;
    r->seed = c->seed;
    r->dropout = c->dropout;
    r->params = wk_model_n(t->kind);
    r->train_samples = t->set->train.n;
    r->test_samples = t->set->test.n;
    r->padded_samples = t->sampler.per_rank * t->comm->world;
    snprintf(r->strategy, sizeof r->strategy, "%s", c->strategy);
    snprintf(r->backend, sizeof r->backend, "%s", c->backend);
    snprintf(r->comm_name, sizeof r->comm_name, "%s", t->comm->kind->name);
    snprintf(r->dataset, sizeof r->dataset, "%s", t->set->name);
    snprintf(r->dataset_hash, sizeof r->dataset_hash, "%s", t->set->hash);
    snprintf(r->model, sizeof r->model, "%s", c->model);
}

int wk_train_open(struct wk_train *t, const struct wk_config *c, struct wk_comm *comm, int threads,
                  struct wk_result *result, struct hg_err *err)
{
    struct wk_strategy_options options = { c->bucket_cap_mb, c->first_bucket_mb };
    const struct wk_strategy_kind *strategy = wk_strategy_get(c->strategy, comm->world, err);
    const struct wk_backend *backend = strategy ? wk_backend_get(c->backend, err) : NULL;

    *t = (struct wk_train){ .config = c, .comm = comm, .result = result };
    t->optim = (struct wk_optim){ .rho = c->rho, .eps = c->eps };
    t->optim.kind = wk_optim_get(c->optimizer, err);
    t->kind = wk_model_get(c->model, err);
    if (!backend || !t->optim.kind || !t->kind)
        return -1;
    t->dev = backend->open(threads, err);
    if (!t->dev || open_data(t, err) < 0 || check_last_batch(t, err) < 0 || open_model(t, err) < 0)
        return -1;
    describe(t);
    t->strategy = wk_strategy_open(strategy, t->dev, comm, t->kind, &t->optim, &options,
                                   (uint64_t)c->seed, err);
    return t->strategy ? 0 : -1;
}

void wk_train_close(struct wk_train *t)
{
    wk_strategy_close(t->strategy);
    if (t->dev) {
        wk_batch_close(&t->batch, t->dev);
        wk_batch_close(&t->eval_batch, t->dev);
        wk_resident_close(&t->train, t->dev);
        wk_resident_close(&t->test, t->dev);
        wk_dev_free(t->dev, WK_MEM_ACTIVATIONS, &t->losses);
        if (t->model)
            t->kind->close(t->model);
        t->dev->backend->close(t->dev);
    }
    wk_sampler_close(&t->sampler);
    wk_dataset_free(t->set);
    *t = (struct wk_train){ 0 };
}

/* ---- Accounts ---- */

static void describe_rank(const struct wk_train *t, struct wk_rank_info *info)
{
    *info = (struct wk_rank_info){ .rank = t->comm->rank,
                                   .pid = (int)getpid(),
                                   .threads = t->dev->threads };
    gethostname(info->host, sizeof info->host - 1);
    snprintf(info->device, sizeof info->device, "%s", t->dev->name);
    for (int i = 0; i < WK_MEM_CLASSES; i++)
        info->mem_bytes[i] = t->dev->peak_bytes[i];
    for (int i = 0; i < WK_COLLS; i++)
        info->comm_s += t->comm->counts[WK_PLANE_TRAIN][i].seconds;
}

int wk_train_account(struct wk_train *t, struct hg_err *err)
{
    struct wk_result *r = t->result;

    r->ranks = calloc((size_t)t->comm->world, sizeof *r->ranks);
    if (!r->ranks)
        return hg_err_oom(err);
    describe_rank(t, &r->ranks[t->comm->rank]);
    if (wk_comm_gather(t->comm, r->ranks, sizeof *r->ranks, err) < 0)
        return -1;
    memcpy(r->counts, t->comm->counts, sizeof r->counts);
    t->strategy->kind->expect(t->strategy, t->steps_done, t->evals_done, &r->expected);
    r->has_expected = true;
    return 0;
}

int wk_train_all(const struct wk_config *c, struct wk_comm *comm, int threads,
                 struct wk_result *result, struct hg_err *err)
{
    struct wk_train t = { 0 };
    int rc = -1;

    if (wk_train_open(&t, c, comm, threads, result, err) < 0 || wk_train_run(&t, err) < 0)
        goto out;
    if (c->eval && wk_train_eval(&t, err) < 0)
        goto out;
    rc = wk_train_account(&t, err);
out:
    wk_train_close(&t);
    return rc;
}
