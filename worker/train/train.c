/* SPDX-License-Identifier: Apache-2.0 */
#include "train/train.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/count.h"
#include "base/alloc.h"
#include "base/text.h"
#include "comm/environment.h"
#include "comm/threads.h"
#include "comm/transports.h"
#include "models/models.h"
#include "strategies/strategies.h"
#include "train/checkpoint.h"
#include "train/loop.h"
#include "train/observe.h"
#include "train/weights.h"

/* ---- Setting up ---- */

static int open_rows(struct wk_train *t, struct hg_err *err)
{
    const struct wk_config *c = t->config;
    struct wk_dataset_options options = {
        .name = c->dataset, .data = c->data, .samples = c->samples, .test_samples = c->test_samples
    };

    if (wk_qa_known(c->dataset))
        return hg_err_set(err, HG_E_INPUT, "model %s does not read data set %s", c->model,
                          c->dataset);
    t->set = wk_dataset_open(&options, err);
    if (!t->set)
        return -1;
    if (t->set->width != t->kind->sample_width || t->set->classes != t->kind->classes)
        return hg_err_set(err, HG_E_INPUT, "model %s does not read data set %s", c->model,
                          c->dataset);
    return 0;
}

static const struct wk_param *find_param(const struct wk_model_kind *kind, const char *name)
{
    for (int i = 0; i < kind->n_params; i++)
        if (strstr(kind->params[i].name, name))
            return &kind->params[i];
    return NULL;
}

/* Optimizer steps of an epoch and of the training. */
static int plan_steps(struct wk_train *t, struct hg_err *err)
{
    const struct wk_config *c = t->config;

    t->epoch_steps = (t->sampler.steps + (long)c->accumulate - 1) / (long)c->accumulate;
    t->total_steps = c->epochs ? t->epoch_steps * (long)c->epochs : (long)c->steps;
    if (c->steps && c->steps < t->total_steps)
        t->total_steps = (long)c->steps;
    if (t->total_steps > 1L << 31)
        return hg_err_set(err, HG_E_INPUT, "%ld optimizer steps are more than can be counted",
                          t->total_steps);
    return 0;
}

static int open_data(struct wk_train *t, struct hg_err *err)
{
    const struct wk_config *c = t->config;
    int n;

    if (t->kind->reads_tokens) {
        if (wk_qa_open(&t->qa, c, find_param(t->kind, "word_embeddings")->rows,
                       find_param(t->kind, "position_embeddings")->rows, err) < 0)
            return -1;
        n = (int)t->qa.train.n;
    } else {
        if (open_rows(t, err) < 0)
            return -1;
        n = t->set->train.n;
    }
    wk_sampler_open(&t->sampler, n, t->comm->rank, t->comm->world, (int)c->batch_size,
                    (uint64_t)c->seed);
    return plan_steps(t, err);
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

static int least(long long a, long long b)
{
    return (int)(a < b ? a : b);
}

/* Rows that so many sequences have at most. */
static int tokens_of(const struct wk_train *t, const struct wk_features *features, int rows)
{
    return wk_dev_rows(t->dev, wk_qa_tokens(&t->qa, features, rows));
}

/* The model, and the workspace that its passes and the updates take. */
static struct wk_model *open_and_reserve(struct wk_train *t, const struct wk_model_options *options,
                                         struct hg_err *err)
{
    const struct wk_strategy_shape shape = { .optim = &t->optim, .precision = t->dev->precision };
    size_t n = wk_model_room(t->kind, wk_dev_grain(t->dev));
    struct wk_calls calls = { .squares = wk_shape_control(&shape) ? n : 0 };

    t->kind->calls(options, &calls);
    if (t->dev->backend->reserve(t->dev, &calls, err) < 0)
        return NULL;
    return t->kind->open(t->dev, options, err);
}

static int open_token_model(struct wk_train *t, int rows, struct hg_err *err)
{
    const struct wk_config *c = t->config;
    int test_rows = c->eval ? least(c->test_batch, (long long)t->qa.test.n) : 0;
    struct wk_model_options options = { .batch_rows = rows,
                                        .eval_rows = test_rows,
                                        .dropout = c->dropout,
                                        .kind = t->kind,
                                        .batch_tokens = tokens_of(t, &t->qa.train, rows) };

    options.longest = wk_qa_tokens(&t->qa, &t->qa.train, 1);
    if (test_rows) {
        int longest = wk_qa_tokens(&t->qa, &t->qa.test, 1);

        options.eval_tokens = tokens_of(t, &t->qa.test, test_rows);
        options.longest = longest > options.longest ? longest : options.longest;
    }
    options.longest = wk_dev_rows(t->dev, options.longest);
    t->model = open_and_reserve(t, &options, err);
    return t->model ? wk_qa_batches(&t->qa, rows, test_rows, t->dev, err) : -1;
}

static int open_row_model(struct wk_train *t, int rows, struct hg_err *err)
{
    const struct wk_config *c = t->config;
    int eval_rows =
        c->eval ? least((t->set->test.n + t->comm->world - 1) / t->comm->world, c->test_batch) : 0;
    struct wk_model_options options = { .batch_rows = rows,
                                        .eval_rows = eval_rows,
                                        .synced_ranks = c->sync_batchnorm ? t->comm->world : 0,
                                        .dropout = c->dropout };

    t->model = open_and_reserve(t, &options, err);
    if (!t->model || wk_batch_open(&t->batch, rows, t->set->width, t->dev, err) < 0 ||
        wk_resident_open(&t->train, t->set, &t->set->train, t->dev, err) < 0)
        return -1;
    if (!c->eval)
        return 0;
    return wk_batch_open(&t->eval_batch, eval_rows, t->set->width, t->dev, err) < 0 ||
                   wk_resident_open(&t->test, t->set, &t->set->test, t->dev, err) < 0
               ? -1
               : 0;
}

static int open_model(struct wk_train *t, struct hg_err *err)
{
    int rows = least(t->sampler.per_rank, t->config->batch_size);

    if ((t->kind->reads_tokens ? open_token_model : open_row_model)(t, rows, err) < 0)
        return -1;
    if (wk_dev_alloc(t->dev, WK_MEM_ACTIVATIONS, WK_REAL, 1, &t->loss, err) < 0)
        return -1;
    return wk_dev_alloc(t->dev, WK_MEM_ACTIVATIONS, WK_REAL, (size_t)t->sampler.steps, &t->losses,
                        err);
}

/* Versions out of the lines that describe the device and the transports. */
static json_t *environment_of(struct wk_dev *dev)
{
    static const char *const keys[] = { "driver", "cuda", "cublaslt", "nccl", "mpi", "blas" };
    struct hg_buf text = HG_BUF_INIT;
    json_t *env = json_object();
    bool gpu = dev->uuid[0];
    char *line, *rest = NULL;

    dev->backend->describe(dev, &text);
    if (gpu)
        wk_comm_describe(&text);
    else
        wk_comm_mpi.describe(&text);
    for (line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            size_t n = strlen(keys[i]);

            if (strncmp(line, keys[i], n) == 0 && line[n] == ' ')
                json_object_set_new(env, keys[i], json_string(line + n + 1));
        }
    json_object_set_new(env, gpu ? "gpu" : "cpu", json_string(dev->name));
    hg_buf_done(&text);
    return env;
}

static void describe(const struct wk_train *t)
{
    const struct wk_config *c = t->config;
    struct wk_result *r = t->result;

    r->env = environment_of(t->dev);
    r->world = t->comm->world;
    r->threads = t->dev->threads;
    r->batch_rows = (int)c->batch_size;
    r->epochs = (t->total_steps + t->epoch_steps - 1) / t->epoch_steps;
    r->accumulate = (int)c->accumulate;
    r->seed = c->seed;
    r->dropout = c->dropout;
    r->params = wk_model_n(t->kind);
    r->train_samples = t->sampler.n;
    r->test_samples = t->set ? t->set->test.n : (int)t->qa.test.n;
    r->padded_samples = t->sampler.per_rank * t->comm->world;
    snprintf(r->strategy, sizeof r->strategy, "%s", c->strategy);
    snprintf(r->backend, sizeof r->backend, "%s", c->backend);
    snprintf(r->precision, sizeof r->precision, "%s", c->precision);
    snprintf(r->comm_name, sizeof r->comm_name, "%s", t->comm->kind->name);
    snprintf(r->dataset, sizeof r->dataset, "%s", t->set ? t->set->name : t->qa.name);
    snprintf(r->dataset_hash, sizeof r->dataset_hash, "%s", t->set ? t->set->hash : t->qa.hash);
    if (t->kind->reads_tokens) /* more of what makes two trainings comparable */
        r->comparable =
            json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:b}", "padding", c->padding, "seq_len",
                      (json_int_t)c->seq_len, "gelu", c->gelu, "windows", c->windows, "labels",
                      c->labels, "init", c->init ? "file" : "random", "evaluated", (int)c->eval);
    snprintf(r->model, sizeof r->model, "%s", c->model);
}

static const struct wk_model_kind *make_kind(const struct wk_config *c, struct hg_err *err)
{
    const struct wk_model_size size = { .layers = c->layers,
                                        .hidden = c->hidden,
                                        .heads = c->heads,
                                        .intermediate = c->intermediate,
                                        .vocab_size = c->vocab_size,
                                        .positions = c->positions,
                                        .gelu = strcmp(c->gelu, "tanh") == 0 ? WK_GELU_TANH
                                                                             : WK_GELU_ERF };

    return wk_model_make(c->model, &size, err);
}

/* Ranks that are threads of one task have its devices in turn. */
static int device_number(const struct wk_comm *comm)
{
    return comm->kind == &wk_comm_threads ? comm->rank : wk_comm_local_rank();
}

static struct wk_dev *open_device(const struct wk_config *c, const struct wk_backend *backend,
                                  int threads, int local_rank, struct hg_err *err)
{
    struct wk_dev_options options = { .threads = threads,
                                      .local_rank = local_rank,
                                      .by_shape = c->deterministic_reduce };

    if (wk_precision_find(c->precision, &options.precision, err) < 0)
        return NULL;
    return backend->open(&options, err);
}

/* Every rank has a device: which, and where? */
static int meet_others(struct wk_train *t, struct hg_err *err)
{
    struct wk_place *places = wk_places_gather(t->comm, t->dev, t->config, err);

    t->result->n_places = t->comm->world;
    atomic_store(&t->result->places, places);
    return places ? 0 : -1;
}

/* What is sharded is cut in as many parts as there are ranks, unit by unit: each must get something. */
static int check_shards(const struct wk_train *t, struct hg_err *err)
{
    const char *name = t->config->strategy;
    bool shards = strcmp(name, "fsdp") == 0 || strncmp(name, "deepspeed", 9) == 0;

    for (int unit = 0; shards && unit < t->kind->n_units; unit++) {
        size_t n = 0;

        for (int i = 0; i < t->kind->n_params; i++)
            n += t->kind->params[i].unit == unit ? wk_param_n(&t->kind->params[i]) : 0;
        if (n >= (size_t)t->comm->world)
            continue;
        hg_err_set(err, HG_E_INPUT,
                   "strategy %s cannot shard the %zu values of unit \"%s\" over %d ranks", name, n,
                   t->kind->units[unit], t->comm->world);
        return hg_err_hint(err, "use fewer ranks, or strategy \"ddp\"");
    }
    return 0;
}

/* Model and optimizer. */
static int choose(struct wk_train *t, struct hg_err *err)
{
    const struct wk_config *c = t->config;

    t->optim = (struct wk_optim){ .rho = c->rho,
                                  .eps = c->eps,
                                  .beta1 = c->beta1,
                                  .beta2 = c->beta2,
                                  .weight_decay = c->weight_decay,
                                  .decay_all = strcmp(c->decay, "all") == 0,
                                  .clip_norm = c->clip_norm };
    t->optim.kind = wk_optim_get(c->optimizer, err);
    t->kind = make_kind(c, err);
    return t->optim.kind && t->kind ? check_shards(t, err) : -1;
}

/* Fail with what fits, before the kernel kills a process. */
static int check_memory(const struct wk_train *t, const struct wk_strategy_kind *kind,
                        struct hg_err *err)
{
    const struct wk_strategy_shape shape = { .kind = kind,
                                             .model = t->kind,
                                             .optim = &t->optim,
                                             .options = &t->config->options,
                                             .precision = t->dev->precision,
                                             .grain = wk_dev_grain(t->dev),
                                             .rank = t->comm->rank,
                                             .world = t->comm->world };
    double all = (double)t->dev->backend->available(t->dev), fixed = 0, each;
    double bytes[WK_MEM_CLASSES] = { 0 }, passes[WK_MEM_CLASSES] = { 0 };
    int rows = least(t->sampler.per_rank, t->config->batch_size);
    char need[32], have[32];

    if (wk_train_count(t, t->config->backend, t->dev->precision, t->dev->threads, passes, err) < 0)
        return -1;
    kind->ops->state(&shape, bytes);
    bytes[WK_MEM_DATA] = passes[WK_MEM_DATA];
    bytes[WK_MEM_WORKSPACE] = passes[WK_MEM_WORKSPACE];
    bytes[WK_MEM_ACTIVATIONS] = 0;
    for (int i = 0; i < WK_MEM_CLASSES; i++)
        fixed += bytes[i];
    each = passes[WK_MEM_ACTIVATIONS] / rows;
    if (all <= 0 || fixed + each * rows < all)
        return 0;
    hg_text_size_format((uint64_t)(fixed + each * rows), need);
    hg_text_size_format((uint64_t)all, have);
    hg_err_set(err, HG_E_ENV, "batch_size %d needs about %s, %s has %s", rows, need, t->dev->name,
               have);
    if (all > fixed + each)
        return hg_err_hint(err, "%d fits; accumulate makes larger steps of smaller batches",
                           (int)((all - fixed) / each));
    return hg_err_hint(err, "not even one sample fits: a smaller model, shorter samples, or a "
                            "strategy that shards");
}

int wk_train_open(struct wk_train *t, const struct wk_config *c, struct wk_comm *comm, int threads,
                  struct wk_result *result, struct hg_err *err)
{
    int tasks = comm->kind == &wk_comm_threads ? 1 : comm->world;
    const struct wk_strategy_kind *strategy = wk_strategy_get(c->strategy, tasks, err);
    const struct wk_backend *backend = strategy ? wk_backend_get(c->backend, err) : NULL;

    *t = (struct wk_train){ .config = c, .comm = comm, .result = result };
    if (!backend || choose(t, err) < 0)
        return -1;
    t->dev = open_device(c, backend, threads, device_number(comm), err);
    comm->in_order = c->deterministic_reduce;
    /* first who is where: NCCL itself does not say which ranks share a GPU */
    if (!t->dev || meet_others(t, err) < 0 || wk_comm_join(comm, t->dev, err) < 0 ||
        open_data(t, err) < 0 || check_last_batch(t, err) < 0)
        return -1;
    describe(t);
    if (wk_checkpoint_find(t, err) < 0 || check_memory(t, strategy, err) < 0 ||
        open_model(t, err) < 0)
        return -1;
    t->scattered =
        hg_alloc_zeroed((size_t)c->batch_size * ((size_t)comm->world + 1), sizeof *t->scattered);
    t->strategy = wk_strategy_open(strategy, t->dev, comm, t->kind, &t->optim, &c->options,
                                   (uint64_t)c->seed, err);
    if (!t->strategy || (c->init && wk_weights_load(c->init, t->strategy, err) < 0) ||
        wk_strategy_start(t->strategy, err) < 0)
        return -1;
    if (c->predictions && wk_qa_prepare_predictions(c->predictions, err) < 0)
        return -1;
    return wk_checkpoint_restore(t, err);
}

/* What open_model has made. */
static void close_model(struct wk_train *t)
{
    wk_batch_close(&t->batch, t->dev);
    wk_batch_close(&t->eval_batch, t->dev);
    wk_resident_close(&t->train, t->dev);
    wk_resident_close(&t->test, t->dev);
    wk_dev_free(t->dev, WK_MEM_ACTIVATIONS, &t->losses);
    wk_dev_free(t->dev, WK_MEM_ACTIVATIONS, &t->loss);
    if (t->model)
        t->kind->close(t->model);
    wk_qa_batches_close(&t->qa, t->dev);
}

void wk_train_close(struct wk_train *t)
{
    wk_strategy_close(t->strategy);
    if (t->dev) {
        close_model(t);
        wk_comm_leave(t->comm);
        t->dev->backend->close(t->dev);
    }
    free(t->scattered);
    wk_sampler_close(&t->sampler);
    wk_dataset_free(t->set);
    wk_qa_close(&t->qa);
    wk_model_free(t->kind);
    wk_checkpoint_close(t);
    *t = (struct wk_train){ 0 };
}

/* ---- What it takes ---- */

int wk_train_count(const struct wk_train *t, const char *backend, enum wk_precision precision,
                   int threads, double mem_bytes[WK_MEM_CLASSES], struct hg_err *err)
{
    struct wk_train k = { .config = t->config,
                          .comm = t->comm,
                          .set = t->set,
                          .kind = t->kind,
                          .optim = t->optim,
                          .sampler = t->sampler,
                          .qa = t->qa,
                          .dev = wk_dev_count_open(backend, precision, threads, err) };
    struct wk_span sums = WK_NONE;
    int rc = -1;

    if (!k.dev)
        return -1;
    k.qa.batch = k.qa.test_batch = (struct wk_token_batch){ 0 };
    k.qa.source = (struct wk_token_source){ 0 };
    if (open_model(&k, err) < 0)
        goto out;
    if (t->config->eval) /* evaluation adds up two numbers there */
        wk_dev_alloc(k.dev, WK_MEM_ACTIVATIONS, WK_REAL, 2, &sums, NULL);
    mem_bytes[WK_MEM_ACTIVATIONS] = (double)k.dev->peak_bytes[WK_MEM_ACTIVATIONS];
    mem_bytes[WK_MEM_WORKSPACE] = (double)k.dev->peak_bytes[WK_MEM_WORKSPACE];
    mem_bytes[WK_MEM_DATA] = (double)k.dev->peak_bytes[WK_MEM_DATA];
    wk_dev_free(k.dev, WK_MEM_ACTIVATIONS, &sums);
    rc = 0;
out:
    close_model(&k);
    k.dev->backend->close(k.dev);
    return rc;
}

#define SEQUENCES_MAX 1000000 /* more than any question answering set here has */

/* Stand in for data that has not been read: as many samples as the set is known to have, sequences as long as they may be. */
static void imagine_data(struct wk_train *t)
{
    const struct wk_config *c = t->config;
    bool slice = strstr(c->dataset, "-slice");
    long long n = slice ? 4000 : 60000, test_n = slice ? 1000 : 10000;

    if (t->kind->reads_tokens) {
        wk_qa_imagine(&t->qa, c);
        t->sampler.per_rank = INT_MAX;
        t->sampler.steps = (int)(SEQUENCES_MAX / c->batch_size / t->comm->world) + 1;
        return;
    }
    t->set = hg_alloc_zeroed(1, sizeof *t->set);
    t->set->width = t->kind->sample_width;
    t->set->train.n = (int)(c->samples ? c->samples : n);
    t->set->test.n = (int)(c->test_samples ? c->test_samples : test_n);
    wk_sampler_open(&t->sampler, t->set->train.n, t->comm->rank, t->comm->world, (int)c->batch_size,
                    0);
}

/* Is their number known before anybody has read them? */
static bool knows_samples(const struct wk_train *t)
{
    return !t->kind->reads_tokens && (t->config->samples || strstr(t->config->dataset, "-slice"));
}

int wk_train_plan(struct wk_train *t, const struct wk_config *c, struct wk_comm *comm,
                  bool read_data, struct hg_err *err)
{
    *t = (struct wk_train){ .config = c, .comm = comm };
    if (choose(t, err) < 0 || (read_data && open_data(t, err) < 0))
        return -1;
    if (!read_data)
        imagine_data(t);
    return read_data || knows_samples(t) ? check_last_batch(t, err) : 0;
}

/* ---- Accounts ---- */

static void describe_rank(const struct wk_train *t, struct wk_rank_info *info)
{
    *info = (struct wk_rank_info){ .rank = t->comm->rank,
                                   .pid = (int)getpid(),
                                   .threads = t->dev->threads };
    gethostname(info->host, sizeof info->host - 1);
    snprintf(info->device, sizeof info->device, "%s", t->dev->name);
    snprintf(info->pci, sizeof info->pci, "%s", t->dev->pci);
    snprintf(info->uuid, sizeof info->uuid, "%s", t->dev->uuid);
    for (int i = 0; i < WK_MEM_CLASSES; i++)
        info->mem_bytes[i] = t->dev->peak_bytes[i];
    for (int i = 0; i < WK_COLLS; i++)
        info->comm_s += t->comm->counts[WK_PLANE_TRAIN][i].seconds;
}

int wk_train_account(struct wk_train *t, struct hg_err *err)
{
    struct wk_result *r = t->result;

    r->ranks = hg_alloc_zeroed((size_t)t->comm->world, sizeof *r->ranks);
    describe_rank(t, &r->ranks[t->comm->rank]);
    if (wk_comm_gather(t->comm, r->ranks, sizeof *r->ranks, err) < 0)
        return -1;
    memcpy(r->counts, t->comm->counts, sizeof r->counts);
    wk_strategy_expect(t->strategy, &r->expected);
    r->has_expected = true;
    return wk_train_count(t, t->config->backend, t->dev->precision, t->dev->threads,
                          r->expected.mem_bytes, err);
}

int wk_train_all(const struct wk_config *c, struct wk_comm *comm, int threads,
                 struct wk_result *result, struct hg_err *err)
{
    struct wk_train t = { 0 };
    int rc = -1;

    if (wk_train_open(&t, c, comm, threads, result, err) < 0 || wk_observe_open(&t, err) < 0 ||
        wk_train_run(&t, err) < 0)
        goto out;
    /* an evaluation may take as long as an epoch, and fail: the training is kept first */
    if (c->eval && t.checkpoint && wk_checkpoint_save(&t, result->train_s, 0, err) < 0)
        goto out;
    if (c->eval && wk_train_eval(&t, err) < 0)
        goto out;
    wk_comm_phase(comm, WK_PHASE_END, t.steps_done);
    if (wk_checkpoint_finish(&t, err) < 0)
        goto out;
    rc = wk_train_account(&t, err);
out:
    if (wk_observe_close(&t, err) < 0)
        rc = -1;
    comm->failed = rc < 0 && !result->stopped_with_checkpoint;
    wk_train_close(&t);
    return rc;
}

int wk_train_check(const struct wk_config *c, struct hg_err *err)
{
    int tasks = c->nodes && c->tasks_per_node ? (int)(c->nodes * c->tasks_per_node) : 1;
    struct wk_comm comm = { .world = tasks * wk_config_devices(c) };
    struct wk_train t = { .config = c, .comm = &comm };
    int rc = -1;

    if (wk_strategy_get(c->strategy, tasks, err) && choose(&t, err) == 0 &&
        (!c->init || wk_weights_check(c->init, t.kind, err) == 0) && open_data(&t, err) == 0)
        rc = check_last_batch(&t, err);
    if (rc == 0)
        wk_observe_check(&t);
    wk_train_close(&t);
    return rc;
}
