/* SPDX-License-Identifier: Apache-2.0 */
#include "strategies/strategy.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "models/weights.h"
#include "profile/profiler.h"

extern const struct wk_strategy_kind wk_strategy_single, wk_strategy_dp, wk_strategy_ddp,
    wk_strategy_fsdp, wk_strategy_deepspeed, wk_strategy_deepspeed_1, wk_strategy_deepspeed_2,
    wk_strategy_deepspeed_3;

/* In the order of contract/strategies.def. */
static const struct wk_strategy_kind *const kinds[] = {
    &wk_strategy_single,      &wk_strategy_dp,          &wk_strategy_ddp,
    &wk_strategy_fsdp,        &wk_strategy_deepspeed,   &wk_strategy_deepspeed_1,
    &wk_strategy_deepspeed_2, &wk_strategy_deepspeed_3,
};

const struct wk_strategy_limits wk_strategy_limits[] = {
#define HG_STRATEGY(name, max_nodes, max_tasks, max_devices, summary) \
    { #name, max_nodes, max_tasks, max_devices, summary },
#include "contract/strategies.def"
#undef HG_STRATEGY
    { 0 },
};

#define N_LIMITS (sizeof wk_strategy_limits / sizeof *wk_strategy_limits - 1)
_Static_assert(sizeof kinds / sizeof *kinds == N_LIMITS, "every strategy has its code");

const struct wk_strategy_option wk_strategy_option_list[] = {
#define HG_STRATEGY_OPTION(strategy, parameter) { #strategy, #parameter },
#include "contract/strategy_options.def"
#undef HG_STRATEGY_OPTION
    { 0 },
};

bool wk_strategy_is_option(const char *parameter)
{
    for (const struct wk_strategy_option *o = wk_strategy_option_list; o->strategy; o++)
        if (strcmp(o->parameter, parameter) == 0)
            return true;
    return false;
}

bool wk_strategy_has_option(const char *strategy, const char *parameter)
{
    for (const struct wk_strategy_option *o = wk_strategy_option_list; o->strategy; o++)
        if (strcmp(o->parameter, parameter) == 0 && strcmp(o->strategy, strategy) == 0)
            return true;
    return !wk_strategy_is_option(parameter);
}

const struct wk_strategy_limits *wk_strategy_find(const char *name)
{
    for (size_t i = 0; i < N_LIMITS; i++)
        if (strcmp(wk_strategy_limits[i].name, name) == 0)
            return &wk_strategy_limits[i];
    return NULL;
}

static void unknown_strategy(const char *name, struct hg_err *err)
{
    const char *names[N_LIMITS];

    for (size_t i = 0; i < N_LIMITS; i++)
        names[i] = wk_strategy_limits[i].name;
    hg_err_set(err, HG_E_INPUT, "unknown strategy \"%s\"", name);
    hg_text_suggest(err, name, names, N_LIMITS);
}

const struct wk_strategy_kind *wk_strategy_get(const char *name, int world, struct hg_err *err)
{
    const struct wk_strategy_limits *limits = wk_strategy_find(name);

    if (!limits) {
        unknown_strategy(name, err);
        return NULL;
    }
    if (limits->max_tasks && world > limits->max_tasks) {
        hg_err_set(err, HG_E_INPUT,
                   "strategy %s runs as one rank, %d were started: each would train alone", name,
                   world);
        hg_err_hint(err, "use strategy \"ddp\", or one task");
        return NULL;
    }
    return kinds[limits - wk_strategy_limits];
}

static int set_initial(struct wk_strategy *s, uint64_t seed, struct hg_err *err)
{
    const struct wk_model_kind *m = s->model;

    for (int i = 0; i < m->n_params; i++) {
        wk_real *host = hg_alloc(wk_param_n(&m->params[i]) * sizeof *host);

        wk_param_init(&m->params[i], i, seed, host);
        if (wk_strategy_store(s, WK_STATE_VALUE, i, host, err) < 0) {
            free(host);
            return -1;
        }
        free(host);
    }
    if (s->options.weights && wk_weights_load(s->options.weights, s, err) < 0)
        return -1;
    for (int i = 0; i < m->n_buffers; i++)
        s->dev->backend->fill(s->dev, s->buffers[i], m->buffers[i].init_value);
    return 0;
}

static int open_control(struct wk_strategy *s, struct hg_err *err)
{
    bool scaled = s->dev->precision == WK_MIXED_FP16;
    wk_real start[WK_CONTROL_N] = {
        [WK_CONTROL_SCALE] = 1, [WK_CONTROL_LOSS_SCALE] = scaled ? (wk_real)WK_LOSS_SCALE_FIRST : 1
    };

    if (!scaled && s->optim->clip_norm <= 0)
        return 0;
    if (wk_dev_alloc(s->dev, WK_MEM_OPTIMIZER, WK_REAL, WK_CONTROL_N, &s->control, err) < 0)
        return -1;
    s->dev->backend->upload(s->dev, s->control, start);
    return 0;
}

void wk_strategy_control(struct wk_strategy *s, struct wk_span square_sum)
{
    const struct wk_control how = { .clip_norm = s->optim->clip_norm,
                                    .scaled = s->dev->precision == WK_MIXED_FP16,
                                    .grow_after = WK_LOSS_SCALE_GROWS };

    if (s->control.data)
        s->dev->backend->control(s->dev, s->control, square_sum, &how);
}

struct wk_strategy *wk_strategy_open(const struct wk_strategy_kind *kind, struct wk_dev *dev,
                                     struct wk_comm *comm, const struct wk_model_kind *model,
                                     const struct wk_optim *optim,
                                     const struct wk_strategy_options *options, uint64_t seed,
                                     struct hg_err *err)
{
    struct wk_strategy *s = hg_alloc(sizeof *s);
    size_t n = (size_t)model->n_params;

    *s = (struct wk_strategy){ .kind = kind,
                               .dev = dev,
                               .comm = comm,
                               .model = model,
                               .optim = optim,
                               .options = *options,
                               .share = 1,
                               .params = hg_alloc_zeroed(n, sizeof *s->params),
                               .masters = hg_alloc_zeroed(n, sizeof *s->masters),
                               .slots = hg_alloc_zeroed(n * WK_OPTIM_SLOTS_MAX, sizeof *s->slots),
                               .buffers = hg_alloc_zeroed((size_t)model->n_buffers + 1,
                                                          sizeof *s->buffers) };
    if (open_control(s, err) < 0 || kind->open(s, err) < 0 || set_initial(s, seed, err) < 0)
        goto fail;
    if ((kind->start && kind->start(s, err) < 0) || wk_strategy_round(s, err) < 0)
        goto fail;
    return s;
fail:
    wk_strategy_close(s);
    return NULL;
}

void wk_strategy_close(struct wk_strategy *s)
{
    if (!s)
        return;
    s->kind->close(s);
    wk_dev_free(s->dev, WK_MEM_OPTIMIZER, &s->control);
    free(s->params);
    free(s->masters);
    free(s->buffers);
    free(s->slots);
    free(s);
}

/* ---- State from and to the host ---- */

struct wk_span wk_strategy_place(const struct wk_strategy *s, int state, int param)
{
    return state == WK_STATE_VALUE ? s->masters[param]
                                   : s->slots[param * WK_OPTIM_SLOTS_MAX + state - WK_STATE_SLOT];
}

void wk_strategy_own(struct wk_strategy *s, int param, size_t *first, size_t *n)
{
    *first = 0;
    *n = wk_param_n(&s->model->params[param]);
    if (s->kind->own)
        s->kind->own(s, param, first, n);
}

int wk_strategy_store_own(struct wk_strategy *s, int state, int param, const wk_real *own,
                          struct hg_err *err)
{
    if (s->kind->store)
        return s->kind->store(s, state, param, own, err);
    s->dev->backend->upload(s->dev, wk_strategy_place(s, state, param), own);
    return 0;
}

static int download(struct wk_strategy *s, int state, int param, wk_real *host, struct hg_err *err)
{
    s->dev->backend->download(s->dev, host, wk_strategy_place(s, state, param));
    return s->dev->backend->sync(s->dev, err);
}

int wk_strategy_fetch_own(struct wk_strategy *s, int state, int param, wk_real *own,
                          struct hg_err *err)
{
    return s->kind->fetch_own ? s->kind->fetch_own(s, state, param, own, err)
                              : download(s, state, param, own, err);
}

int wk_strategy_store(struct wk_strategy *s, int state, int param, const wk_real *host,
                      struct hg_err *err)
{
    size_t first, n;

    wk_strategy_own(s, param, &first, &n);
    return wk_strategy_store_own(s, state, param, host + first, err);
}

int wk_strategy_fetch(struct wk_strategy *s, int state, int param, wk_real *host,
                      struct hg_err *err)
{
    return s->kind->fetch ? s->kind->fetch(s, state, param, host, err)
                          : download(s, state, param, host, err);
}

int wk_strategy_round(struct wk_strategy *s, struct hg_err *err)
{
    s->work.starts++;
    return s->kind->round ? s->kind->round(s, err) : 0;
}

/* ---- What is expected ---- */

struct wk_strategy_options wk_strategy_defaults(const char *name, bool framework)
{
    struct wk_strategy_options o = { .bucket_mib = 25, .first_bucket_mib = 1 };
    bool stage_3 = strcmp(name, "deepspeed_stage_3") == 0;
    bool zero = strncmp(name, "deepspeed", 9) == 0 && !stage_3;

    o.reduce_elems = framework ? 200e6 : 25 * 1024 * 1024 / 4.0;
    o.bucket_copies = framework && strcmp(name, "ddp") == 0;
    o.wrap_model = framework && strcmp(name, "fsdp") == 0;
    o.all_reduce = o.framework_state = framework && zero;
    o.prefetch_elems = 5e7;
    if (framework && stage_3) {
        o.persistence_threshold = 1e5;
        o.max_live = o.max_reuse_distance = 1e9;
    }
    return o;
}

struct wk_strategy_shape wk_strategy_shape(const struct wk_strategy *s)
{
    return (struct wk_strategy_shape){ .model = s->model,
                                       .optim = s->optim,
                                       .options = &s->options,
                                       .precision = s->dev->precision,
                                       .rank = s->comm->rank,
                                       .world = s->comm->world };
}

/* Statistics that ranks share: their moments forward, sums of gradients backward. */
static void expect_statistics(const struct wk_strategy_shape *shape, const struct wk_work *work,
                              struct wk_expected *out)
{
    double passes = (double)work->passes, bytes = (double)shape->model->synced * sizeof(wk_real);

    if (!shape->options->sync_batchnorm)
        return;
    wk_expect_add(out, shape, WK_COLL_ALL_GATHER, passes, passes * bytes * shape->world);
    wk_expect_add(out, shape, WK_COLL_ALL_REDUCE, passes, passes * bytes);
}

void wk_strategy_expect(const struct wk_strategy *s, struct wk_expected *out)
{
    struct wk_strategy_shape shape = wk_strategy_shape(s);

    *out = (struct wk_expected){
        .mem_bytes = { [WK_MEM_ACTIVATIONS] = -1, [WK_MEM_WORKSPACE] = -1, [WK_MEM_DATA] = -1 }
    };
    s->kind->state(&shape, out->mem_bytes);
    s->kind->expect(&shape, &s->work, out);
    expect_statistics(&shape, &s->work, out);
}

int wk_pass_ranks(const struct wk_pass *pass)
{
    return pass->strategy && pass->strategy->options.sync_batchnorm ? pass->strategy->comm->world
                                                                    : 0;
}

int wk_pass_rank(const struct wk_pass *pass)
{
    return pass->strategy->comm->rank;
}

int wk_pass_talk(const struct wk_pass *pass, enum wk_coll coll, struct wk_span whole,
                 struct hg_err *err)
{
    return wk_comm_run(pass->strategy->comm, WK_PLANE_TRAIN, coll, whole, err);
}

bool wk_shape_mixed(const struct wk_strategy_shape *shape)
{
    return shape->precision == WK_MIXED_BF16 || shape->precision == WK_MIXED_FP16;
}

double wk_shape_value_bytes(const struct wk_strategy_shape *shape)
{
    return wk_shape_mixed(shape) ? 2 : sizeof(wk_real);
}

bool wk_shape_control(const struct wk_strategy_shape *shape)
{
    return shape->precision == WK_MIXED_FP16 || shape->optim->clip_norm > 0;
}

void wk_expect_add(struct wk_expected *out, const struct wk_strategy_shape *shape,
                   enum wk_coll coll, double calls, double payload_bytes)
{
    out->calls[coll] += calls;
    out->payload_bytes[coll] += payload_bytes;
    out->ring_bytes[coll] += wk_ring_bytes(coll, payload_bytes, shape->world);
}

/* ---- Work ---- */

int wk_strategy_begin(struct wk_strategy *s, bool training, struct hg_err *err)
{
    s->training = training;
    s->comm->step = s->updates;
    if (!training)
        s->work.evals++;
    return s->kind->before_step ? s->kind->before_step(s, training, err) : 0;
}

int wk_strategy_update(struct wk_strategy *s, double lr, struct hg_err *err)
{
    s->work.steps++;
    s->updates++;
    return s->kind->update(s, lr, err);
}

void wk_strategy_count_step(struct wk_strategy *s, int steps)
{
    s->work.steps += steps;
    s->work.passes += steps;
    s->updates += steps;
}

int wk_strategy_idle_pass(struct wk_strategy *s, struct hg_err *err)
{
    const struct wk_pass pass = { .dev = s->dev, .strategy = s };

    for (int unit = 0; unit < s->model->n_units; unit++)
        if (wk_before_forward(&pass, unit, err) < 0 || wk_after_forward(&pass, unit, err) < 0)
            return -1;
    return 0;
}

typedef int hook(struct wk_strategy *s, int unit, struct hg_err *err);

static int call(hook *const *h, const struct wk_pass *pass, int unit, struct hg_err *err)
{
    return *h ? (*h)(pass->strategy, unit, err) : 0;
}

/* The time of a unit's pass, what its strategy does for it included. */
static void begin_unit(const struct wk_pass *pass, enum wk_span_kind kind, int unit)
{
    wk_profiler_begin(pass->dev->profiler, kind,
                      pass->strategy ? pass->strategy->model->units[unit] : "unit");
}

/* What a strategy starts behind a layer has not had that layer's pass beside it. */
static void count_work(const struct wk_pass *pass, int unit)
{
    struct wk_strategy *s = pass->strategy;

    if (s && unit >= s->model->layers_first && unit < s->model->layers_end)
        s->comm->work++;
}

int wk_before_forward(const struct wk_pass *pass, int unit, struct hg_err *err)
{
    begin_unit(pass, WK_SPAN_FORWARD, unit);
    if (pass->strategy && unit == 0 && pass->strategy->training)
        pass->strategy->work.passes++;
    else if (pass->strategy && unit == 0)
        pass->strategy->work.eval_passes++;
    return pass->strategy ? call(&pass->strategy->kind->before_forward, pass, unit, err) : 0;
}

int wk_after_forward(const struct wk_pass *pass, int unit, struct hg_err *err)
{
    int rc;

    count_work(pass, unit);
    rc = pass->strategy ? call(&pass->strategy->kind->after_forward, pass, unit, err) : 0;
    wk_profiler_end(pass->dev->profiler);
    return rc;
}

int wk_before_backward(const struct wk_pass *pass, int unit, struct hg_err *err)
{
    begin_unit(pass, WK_SPAN_BACKWARD, unit);
    return pass->strategy ? call(&pass->strategy->kind->before_backward, pass, unit, err) : 0;
}

int wk_after_backward(const struct wk_pass *pass, int unit, struct hg_err *err)
{
    int rc;

    count_work(pass, unit);
    rc = pass->strategy ? call(&pass->strategy->kind->after_backward, pass, unit, err) : 0;
    wk_profiler_end(pass->dev->profiler);
    return rc;
}
