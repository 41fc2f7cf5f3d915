/* SPDX-License-Identifier: Apache-2.0 */
#include "strategies/strategy.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "profile/profiler.h"

/* ---- The hooks of passes ---- */

/* The time of a unit's pass includes what its strategy does for it. */
static int before(void *context, enum wk_direction direction, int unit, struct hg_err *err)
{
    struct wk_strategy *s = context;
    bool forward = direction == WK_FORWARD;
    int (*op)(struct wk_strategy *, int, struct hg_err *) =
        forward ? s->ops->before_forward : s->ops->before_backward;

    if (forward && unit == 0)
        ++*(s->training ? &s->work.passes : &s->work.eval_passes);
    wk_profiler_begin(s->dev->profiler, forward ? WK_SPAN_FORWARD : WK_SPAN_BACKWARD,
                      s->model->units[unit]);
    return op ? op(s, unit, err) : 0;
}

static int after(void *context, enum wk_direction direction, int unit, struct hg_err *err)
{
    struct wk_strategy *s = context;
    int (*op)(struct wk_strategy *, int, struct hg_err *) =
        direction == WK_FORWARD ? s->ops->after_forward : s->ops->after_backward;
    int rc;

    if (unit >= s->model->layers_first && unit < s->model->layers_end)
        s->comm->work++; /* a collective that starts after a layer does not overlap its pass */
    rc = op ? op(s, unit, err) : 0;
    if (direction == WK_BACKWARD && unit == 0)
        s->hooks.fresh = false; /* another pass of the step adds */
    wk_profiler_end(s->dev->profiler);
    return rc;
}

static int all_gather(void *context, struct wk_span whole, struct hg_err *err)
{
    struct wk_strategy *s = context;

    return wk_comm_run(s->comm, WK_PLANE_TRAIN, WK_COLL_ALL_GATHER, whole, err);
}

static int all_reduce(void *context, struct wk_span whole, struct hg_err *err)
{
    struct wk_strategy *s = context;

    return wk_comm_run(s->comm, WK_PLANE_TRAIN, WK_COLL_ALL_REDUCE, whole, err);
}

static struct wk_hooks hooks_of(struct wk_strategy *s)
{
    return (struct wk_hooks){ .context = s,
                              .before = before,
                              .after = after,
                              .ranks = s->options.sync_batchnorm ? s->comm->world : 0,
                              .rank = s->comm->rank,
                              .all_gather = all_gather,
                              .all_reduce = all_reduce };
}

/* ---- Opening ---- */

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
    for (int i = 0; i < m->n_buffers; i++)
        s->dev->backend->fill(s->dev, s->buffers[i], m->buffers[i].init_value);
    return 0;
}

/* The model's buffers, one after the other. */
static int open_buffers(struct wk_strategy *s, struct hg_err *err)
{
    size_t at = 0;

    if (wk_dev_alloc(s->dev, WK_MEM_PARAMETERS, WK_REAL, wk_model_buffers_n(s->model),
                     &s->all_buffers, err) < 0)
        return -1;
    for (int i = 0; i < s->model->n_buffers; i++) {
        s->buffers[i] = wk_span_part(s->all_buffers, at, (size_t)s->model->buffers[i].n);
        at += (size_t)s->model->buffers[i].n;
    }
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

struct wk_strategy *wk_strategy_open(const struct wk_strategy_kind *kind, struct wk_dev *dev,
                                     struct wk_comm *comm, const struct wk_model_kind *model,
                                     const struct wk_optim *optim,
                                     const struct wk_strategy_options *options, uint64_t seed,
                                     struct hg_err *err)
{
    struct wk_strategy *s = hg_alloc(sizeof *s);
    size_t n = (size_t)model->n_params;

    *s = (struct wk_strategy){ .kind = kind,
                               .ops = kind->ops,
                               .dev = dev,
                               .comm = comm,
                               .model = model,
                               .optim = optim,
                               .options = *options,
                               .share = 1,
                               .grain = wk_dev_grain(dev),
                               .params = hg_alloc_zeroed(n, sizeof *s->params),
                               .masters = hg_alloc_zeroed(n, sizeof *s->masters),
                               .slots = hg_alloc_zeroed(n * WK_OPTIM_SLOTS_MAX, sizeof *s->slots),
                               .buffers = hg_alloc_zeroed((size_t)model->n_buffers + 1,
                                                          sizeof *s->buffers) };
    s->hooks = hooks_of(s);
    if (open_control(s, err) == 0 && s->ops->open(s, err) == 0 && open_buffers(s, err) == 0 &&
        set_initial(s, seed, err) == 0)
        return s;
    wk_strategy_close(s);
    return NULL;
}

int wk_strategy_start(struct wk_strategy *s, struct hg_err *err)
{
    if (s->ops->start && s->ops->start(s, err) < 0)
        return -1;
    return wk_strategy_round(s, err);
}

void wk_strategy_close(struct wk_strategy *s)
{
    if (!s)
        return;
    s->ops->close(s);
    wk_dev_free(s->dev, WK_MEM_OPTIMIZER, &s->control);
    wk_dev_free(s->dev, WK_MEM_OPTIMIZER, &s->spared);
    wk_dev_free(s->dev, WK_MEM_PARAMETERS, &s->all_buffers);
    free(s->params);
    free(s->masters);
    free(s->buffers);
    free(s->slots);
    free(s);
}

/* ---- State from and to the host ---- */

void wk_strategy_own(struct wk_strategy *s, int param, size_t *first, size_t *n)
{
    *first = 0;
    *n = wk_param_n(&s->model->params[param]);
    if (s->ops->own)
        s->ops->own(s, param, first, n);
}

int wk_strategy_store_own(struct wk_strategy *s, int state, int param, const wk_real *own,
                          struct hg_err *err)
{
    if (s->ops->store)
        return s->ops->store(s, state, param, own, err);
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
    return s->ops->fetch_own ? s->ops->fetch_own(s, state, param, own, err)
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
    return s->ops->fetch ? s->ops->fetch(s, state, param, host, err)
                         : download(s, state, param, host, err);
}

int wk_strategy_round(struct wk_strategy *s, struct hg_err *err)
{
    s->work.starts++;
    return s->ops->round ? s->ops->round(s, err) : 0;
}

/* ---- What is expected ---- */

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
    s->ops->state(&shape, out->mem_bytes);
    if (s->ops->expect)
        s->ops->expect(&shape, &s->work, out);
    expect_statistics(&shape, &s->work, out);
}

/* ---- Work ---- */

int wk_strategy_begin(struct wk_strategy *s, bool training, struct hg_err *err)
{
    s->training = training;
    s->comm->step = s->updates;
    if (!training)
        s->work.evals++;
    return s->ops->before_step ? s->ops->before_step(s, training, err) : 0;
}

int wk_strategy_update(struct wk_strategy *s, double lr, struct hg_err *err)
{
    s->work.steps++;
    s->updates++;
    return s->ops->update(s, lr, err);
}

void wk_strategy_count_step(struct wk_strategy *s, int steps)
{
    s->work.steps += steps;
    s->work.passes += steps;
    s->updates += steps;
}

int wk_strategy_idle_pass(struct wk_strategy *s, struct hg_err *err)
{
    for (int unit = 0; unit < s->model->n_units; unit++)
        if (wk_before(&s->hooks, WK_FORWARD, unit, err) < 0 ||
            wk_after(&s->hooks, WK_FORWARD, unit, err) < 0)
            return -1;
    return 0;
}
