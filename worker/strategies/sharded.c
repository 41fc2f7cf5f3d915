/* SPDX-License-Identifier: Apache-2.0 */
#include "strategies/sharded.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "strategies/sharded_plan.h"

/* Buffers of one size that groups take in turn. */
struct pool {
    struct wk_span all;
    size_t size; /* elements from one to the next */
    int n;
    bool *taken;
};

/* A group's values and gradients at this moment; absent: not here. */
struct group_state {
    struct wk_span value, gradient;
    int value_slot, gradient_slot; /* -1: a buffer of its own */
    long coming;                   /* ticket of the gather */
    long updated; /* ticket of the last gather after an update, of what every rank has whole */
    bool fresh;   /* nothing of this step is in the gradient's shard yet */
};

/* Gradients on their way. */
struct flight {
    int group;
    struct wk_span buffer; /* where the sums will be */
    int gradient_slot;     /* to give back afterwards; -1: none */
    int stage;             /* the same of the stages; -1: none */
    long ticket;
};

struct sharded {
    struct wk_sharded_plan plan;
    struct wk_span values;      /* this rank's shard; all of them where they are not cut */
    struct wk_span whole;       /* pieces that are never released */
    struct wk_span kept, alone; /* buffers of groups that have their own */
    struct wk_span masters;     /* shard of the values that updates work on, where apart */
    struct wk_span gradients;   /* this rank's shard; all of them where they are not cut */
    struct wk_span stages;      /* (2, cap) */
    struct wk_span slots[WK_OPTIM_SLOTS_MAX], norm;
    struct pool value_pool, gradient_pool;
    struct group_state *groups;
    size_t *value_at; /* (pieces) first element in the gathered group, or among the whole pieces */
    size_t *own_at;   /* (groups) first element in kept, or in alone */
    struct {
        struct flight *items;
        size_t n, cap;
    } flights;
    bool stage_taken[2];
    /* the piece that was fetched last, on the host */
    wk_real *fetched;
    int fetched_state, fetched_piece;
};

static struct sharded *sharded_of(struct wk_strategy *s)
{
    return s->own;
}

static bool is_mixed(const struct wk_strategy *s)
{
    return s->dev->working != WK_REAL;
}

static size_t part_of(const struct wk_strategy *s, const struct wk_piece *p)
{
    return p->padded / (size_t)s->comm->world;
}

/* This rank's part of a piece that begins at `first` of a buffer. */
static struct wk_span own_part(const struct wk_strategy *s, const struct wk_piece *p,
                               struct wk_span buffer, size_t first)
{
    size_t part = part_of(s, p);

    return wk_span_part(buffer, first + part * (size_t)s->comm->rank, part);
}

static struct wk_span shard_part(const struct wk_strategy *s, const struct wk_piece *p,
                                 struct wk_span shard)
{
    return wk_span_part(shard, p->shard_at, part_of(s, p));
}

/* Where this rank's part of a piece's values is: what passes read, and what updates write. */
static struct wk_span own_values(struct wk_strategy *s, const struct wk_piece *p)
{
    struct sharded *d = sharded_of(s);

    if (d->plan.how.values)
        return shard_part(s, p, d->values);
    return own_part(s, p, d->values, d->plan.shards.groups[p->group].at + p->at);
}

static struct wk_span own_masters(struct wk_strategy *s, const struct wk_piece *p)
{
    struct sharded *d = sharded_of(s);

    return d->masters.data ? shard_part(s, p, d->masters) : own_values(s, p);
}

static struct wk_span own_gradients(struct wk_strategy *s, const struct wk_piece *p)
{
    struct sharded *d = sharded_of(s);

    if (d->plan.how.gradients)
        return shard_part(s, p, d->gradients);
    return own_part(s, p, d->gradients, d->plan.shards.groups[p->group].at + p->at);
}

/* ---- Memory ---- */

static int pool_open(struct pool *p, enum wk_mem mem, enum wk_type type, size_t size, int n,
                     struct wk_strategy *s, struct hg_err *err)
{
    if (n == 0)
        return 0;
    p->size = size;
    p->n = n;
    p->taken = hg_alloc_zeroed((size_t)n, sizeof *p->taken);
    return wk_dev_alloc(s->dev, mem, type, size * (size_t)n, &p->all, err);
}

static void pool_close(struct pool *p, enum wk_mem mem, struct wk_strategy *s)
{
    wk_dev_free(s->dev, mem, &p->all);
    free(p->taken);
}

/* -1: all are taken. */
static int pool_take(struct pool *p)
{
    for (int i = 0; i < p->n; i++)
        if (!p->taken[i]) {
            p->taken[i] = true;
            return i;
        }
    return -1;
}

static void pool_give(struct pool *p, int i)
{
    if (i >= 0)
        p->taken[i] = false;
}

static int alloc_any(struct wk_strategy *s, enum wk_mem mem, enum wk_type type, size_t n,
                     struct wk_span *out, struct hg_err *err)
{
    return n ? wk_dev_alloc(s->dev, mem, type, n, out, err) : 0;
}

/* All elements, or this rank's of them where they are cut. */
static int alloc_flat(struct sharded *d, struct wk_strategy *s, enum wk_mem mem, enum wk_type type,
                      bool cut, struct wk_span *out, struct hg_err *err)
{
    const struct wk_sharded_plan *p = &d->plan;

    return wk_dev_alloc(s->dev, mem, type, cut ? p->shards.shard : p->shards.padded, out, err);
}

static int open_values(struct sharded *d, struct wk_strategy *s, struct hg_err *err)
{
    const struct wk_sharded_plan *p = &d->plan;
    enum wk_type type = s->dev->working;
    size_t shard = p->shards.shard;

    if (alloc_flat(d, s, WK_MEM_PARAMETERS, type, p->how.values, &d->values, err) < 0 ||
        alloc_any(s, WK_MEM_PARAMETERS, type, p->whole_n, &d->whole, err) < 0 ||
        alloc_any(s, WK_MEM_PARAMETERS, type, p->kept_n, &d->kept, err) < 0 ||
        pool_open(&d->value_pool, WK_MEM_PARAMETERS, type, p->value_slot, p->value_slots, s, err) <
            0)
        return -1;
    return p->how.masters || is_mixed(s)
               ? wk_dev_alloc(s->dev, WK_MEM_OPTIMIZER, WK_REAL, shard, &d->masters, err)
               : 0;
}

static int open_gradients(struct sharded *d, struct wk_strategy *s, struct hg_err *err)
{
    const struct wk_sharded_plan *p = &d->plan;

    if (alloc_flat(d, s, WK_MEM_GRADIENTS, WK_REAL, p->how.gradients, &d->gradients, err) < 0 ||
        alloc_any(s, WK_MEM_GRADIENTS, WK_REAL, p->alone_n, &d->alone, err) < 0 ||
        pool_open(&d->gradient_pool, WK_MEM_GRADIENTS, WK_REAL, p->gradient_slot, p->gradient_slots,
                  s, err) < 0)
        return -1;
    return alloc_any(s, WK_MEM_COMM, WK_REAL, 2 * p->stage, &d->stages, err);
}

/* Elements of a parameter that are this rank's, and the first of them among its elements of the piece. */
struct own {
    size_t first, n, at;
};

static struct own own_elements(struct wk_strategy *s, int param)
{
    const struct wk_param_place *place = &sharded_of(s)->plan.shards.places[param];
    const struct wk_piece *p = &sharded_of(s)->plan.shards.pieces[place->piece];
    size_t part = part_of(s, p), own = part * (size_t)s->comm->rank;
    size_t first = place->at - p->at, end = first + wk_param_n(&s->model->params[param]);
    size_t from = first > own ? first : own, to = end < own + part ? end : own + part;

    if (from >= to)
        return (struct own){ 0 };
    return (struct own){ .first = from - first, .n = to - from, .at = from - own };
}

static int open_spared(struct wk_strategy *s, struct hg_err *err)
{
    const struct wk_shards *shards = &sharded_of(s)->plan.shards;
    uint8_t *spared = wk_strategy_spared(s, shards->shard);

    for (int i = 0; i < s->model->n_params; i++) {
        struct own own = own_elements(s, i);

        wk_strategy_spare(s, spared, i, shards->pieces[shards->places[i].piece].shard_at + own.at,
                          own.n);
    }
    return wk_strategy_take_spared(s, spared, shards->shard, err);
}

static int open_optimizer(struct sharded *d, struct wk_strategy *s, struct hg_err *err)
{
    for (int k = 0; k < s->optim->kind->slots; k++)
        if (wk_dev_alloc(s->dev, WK_MEM_OPTIMIZER, WK_REAL, d->plan.shards.shard, &d->slots[k],
                         err) < 0)
            return -1;
    if (open_spared(s, err) < 0)
        return -1;
    return s->control.data ? wk_dev_alloc(s->dev, WK_MEM_OPTIMIZER, WK_REAL, 2, &d->norm, err) : 0;
}

/* Where a parameter lies in its group's gathered values. */
static size_t value_place(const struct sharded *d, int param)
{
    const struct wk_param_place *at = &d->plan.shards.places[param];

    return d->value_at[at->piece] + at->at - d->plan.shards.pieces[at->piece].at;
}

/* Where pieces begin in gathered groups, and groups in the buffers that hold them for good. */
static void lay_out(struct sharded *d)
{
    const struct wk_sharded_plan *p = &d->plan;
    size_t whole = 0, kept = 0, alone = 0;

    for (int g = 0; g < p->shards.n_groups; g++) {
        const struct wk_group *group = &p->shards.groups[g];
        size_t at = 0;

        for (int i = group->first_piece; i < group->first_piece + group->n_pieces; i++) {
            size_t *next = p->whole[i] ? &whole : &at;

            d->value_at[i] = *next;
            *next += p->shards.pieces[i].padded;
        }
        d->own_at[2 * g] = kept;
        d->own_at[2 * g + 1] = alone;
        kept += p->kept[g] ? p->coming[g] : 0;
        alone += p->alone[g] ? group->padded : 0;
        d->groups[g].value_slot = d->groups[g].gradient_slot = -1;
    }
}

/* Spans that do not move: whole values, whole gradients. */
static void bind_fixed(struct sharded *d, struct wk_strategy *s)
{
    const struct wk_shards *shards = &d->plan.shards;

    for (int i = 0; i < s->model->n_params; i++) {
        const struct wk_param_place *at = &shards->places[i];
        size_t n = wk_param_n(&s->model->params[i]), first = shards->groups[at->group].at + at->at;

        if (!d->plan.how.values)
            s->params[i].value = wk_span_part(d->values, first, n);
        else if (d->plan.whole[at->piece])
            s->params[i].value = wk_span_part(d->whole, value_place(d, i), n);
        if (!d->plan.how.gradients)
            s->params[i].gradient = wk_span_part(d->gradients, first, n);
    }
}

static int sharded_open(struct wk_strategy *s, struct hg_err *err)
{
    struct sharded *d = hg_alloc_zeroed(1, sizeof *d);
    struct wk_strategy_shape shape = wk_strategy_shape(s);

    s->own = d;
    wk_sharded_plan(&d->plan, &shape);
    d->fetched_piece = -1;
    d->groups = hg_alloc_zeroed((size_t)d->plan.shards.n_groups, sizeof *d->groups);
    d->value_at = hg_alloc_zeroed((size_t)d->plan.shards.n_pieces, sizeof *d->value_at);
    d->own_at = hg_alloc_zeroed(2 * (size_t)d->plan.shards.n_groups, sizeof *d->own_at);
    lay_out(d);
    if (open_values(d, s, err) < 0 || open_gradients(d, s, err) < 0 ||
        open_optimizer(d, s, err) < 0)
        return -1;
    bind_fixed(d, s);
    return 0;
}

static void sharded_close(struct wk_strategy *s)
{
    struct sharded *d = sharded_of(s);

    if (!d)
        return;
    wk_comm_wait(s->comm, s->comm->started, NULL); /* after that no collective writes there */
    wk_dev_free(s->dev, WK_MEM_PARAMETERS, &d->values);
    wk_dev_free(s->dev, WK_MEM_PARAMETERS, &d->whole);
    wk_dev_free(s->dev, WK_MEM_PARAMETERS, &d->kept);
    wk_dev_free(s->dev, WK_MEM_OPTIMIZER, &d->masters);
    wk_dev_free(s->dev, WK_MEM_GRADIENTS, &d->gradients);
    wk_dev_free(s->dev, WK_MEM_GRADIENTS, &d->alone);
    wk_dev_free(s->dev, WK_MEM_COMM, &d->stages);
    wk_dev_free(s->dev, WK_MEM_OPTIMIZER, &d->norm);
    for (int k = 0; k < WK_OPTIM_SLOTS_MAX; k++)
        wk_dev_free(s->dev, WK_MEM_OPTIMIZER, &d->slots[k]);
    pool_close(&d->value_pool, WK_MEM_PARAMETERS, s);
    pool_close(&d->gradient_pool, WK_MEM_GRADIENTS, s);
    wk_sharded_plan_done(&d->plan);
    HG_VEC_DONE(&d->flights);
    free(d->groups);
    free(d->value_at);
    free(d->own_at);
    free(d->fetched);
    free(d);
}

/* ---- Values ---- */

static void bind_values(struct wk_strategy *s, int group)
{
    struct sharded *d = sharded_of(s);
    const struct wk_shards *shards = &d->plan.shards;

    for (int i = 0; i < s->model->n_params; i++) {
        const struct wk_param_place *at = &shards->places[i];

        if (at->group == group && !d->plan.whole[at->piece])
            s->params[i].value = wk_span_part(d->groups[group].value, value_place(d, i),
                                              wk_param_n(&s->model->params[i]));
    }
}

/* Start gathering a group's values. Without `must`, only if there is room. */
static int gather(struct wk_strategy *s, int group, bool must, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);
    const struct wk_group *g = &d->plan.shards.groups[group];
    struct group_state *state = &d->groups[group];
    size_t n = d->plan.coming[group];
    int rc = 0;

    if (!n || state->value.data)
        return 0;
    if (d->plan.kept[group]) {
        state->value = wk_span_part(d->kept, d->own_at[2 * group], n);
    } else {
        state->value_slot = pool_take(&d->value_pool);
        if (state->value_slot < 0)
            return must ? hg_err_set(err, HG_E_BUG, "no room for values of group %d", group) : 0;
        state->value =
            wk_span_part(d->value_pool.all, (size_t)state->value_slot * d->value_pool.size, n);
    }
    if (wk_comm_group(s->comm, err) < 0)
        return -1;
    for (int i = g->first_piece; i < g->first_piece + g->n_pieces && rc == 0; i++) {
        const struct wk_piece *p = &d->plan.shards.pieces[i];

        if (!d->plan.whole[i])
            rc = wk_comm_start(s->comm, WK_PLANE_TRAIN, WK_COLL_ALL_GATHER,
                               wk_span_part(state->value, d->value_at[i], p->padded),
                               own_values(s, p), &state->coming, err);
    }
    return wk_comm_ungroup(s->comm, rc, err);
}

static void release(struct wk_strategy *s, int group)
{
    struct sharded *d = sharded_of(s);
    struct group_state *state = &d->groups[group];

    pool_give(&d->value_pool, state->value_slot);
    state->value_slot = -1;
    state->value = WK_NONE;
}

/* Have the values of a unit that every rank keeps here, as the last update left them. */
static int need_updated(struct wk_strategy *s, int unit, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);

    for (int g = 0; g < d->plan.shards.n_groups; g++)
        if (wk_shards_touch(&d->plan.shards, g, unit) &&
            wk_comm_wait(s->comm, d->groups[g].updated, err) < 0)
            return -1;
    return 0;
}

/* Have the values of a unit here. */
static int need(struct wk_strategy *s, int unit, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);

    for (int g = 0; g < d->plan.shards.n_groups; g++) {
        if (!d->plan.coming[g] || !wk_shards_touch(&d->plan.shards, g, unit))
            continue;
        if (gather(s, g, true, err) < 0 || wk_comm_wait(s->comm, d->groups[g].coming, err) < 0)
            return -1;
        bind_values(s, g);
    }
    return 0;
}

/* Start gathering the values of a unit that is needed soon. */
static int expect_unit(struct wk_strategy *s, int unit, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);

    if (unit < 0 || unit >= s->model->n_units)
        return 0;
    for (int g = 0; g < d->plan.shards.n_groups; g++)
        if (wk_shards_touch(&d->plan.shards, g, unit) &&
            (double)d->plan.coming[g] <= d->plan.how.ahead_elems && gather(s, g, false, err) < 0)
            return -1;
    return 0;
}

static int sharded_before_forward(struct wk_strategy *s, int unit, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);

    if (need_updated(s, unit, err) < 0)
        return -1;
    if (!d->plan.how.values)
        return 0;
    if (need(s, unit, err) < 0)
        return -1;
    return d->plan.how.forward_ahead ? expect_unit(s, unit + 1, err) : 0;
}

static int sharded_after_forward(struct wk_strategy *s, int unit, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);

    (void)err;
    for (int g = 0; g < d->plan.shards.n_groups && d->plan.how.values; g++)
        if (d->plan.shards.groups[g].high == unit && (!d->plan.kept[g] || !s->training))
            release(s, g);
    return 0;
}

/* ---- Gradients ---- */

/* The sums of the oldest group on its way are taken to where this rank keeps its own. */
static int land(struct wk_strategy *s, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);
    struct flight f = d->flights.items[0];
    const struct wk_group *g = &d->plan.shards.groups[f.group];
    struct group_state *state = &d->groups[f.group];

    d->flights.n--;
    memmove(d->flights.items, d->flights.items + 1, d->flights.n * sizeof f);
    if (wk_comm_wait(s->comm, f.ticket, err) < 0)
        return -1;
    for (int i = g->first_piece; i < g->first_piece + g->n_pieces; i++) {
        const struct wk_piece *p = &d->plan.shards.pieces[i];
        struct wk_span from = own_part(s, p, f.buffer, p->at), to = own_gradients(s, p);

        if (from.data == to.data)
            continue;
        if (state->fresh || !d->plan.how.gradients)
            s->dev->backend->copy(s->dev, to, from);
        else
            s->dev->backend->add(s->dev, to, from);
    }
    state->fresh = false;
    pool_give(&d->gradient_pool, f.gradient_slot);
    if (f.stage >= 0)
        d->stage_taken[f.stage] = false;
    return 0;
}

static bool is_on_its_way(const struct sharded *d, int group)
{
    for (size_t i = 0; i < d->flights.n; i++)
        if (d->flights.items[i].group == group)
            return true;
    return false;
}

/* A cleared buffer for the gradients of a group. */
static int make_gradient(struct wk_strategy *s, int group, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);
    struct group_state *state = &d->groups[group];
    size_t n = d->plan.shards.groups[group].padded;

    while (is_on_its_way(d, group)) /* an earlier pass's */
        if (land(s, err) < 0)
            return -1;
    if (d->plan.alone[group]) {
        state->gradient = wk_span_part(d->alone, d->own_at[2 * group + 1], n);
    } else {
        while ((state->gradient_slot = pool_take(&d->gradient_pool)) < 0) {
            if (!d->flights.n)
                return hg_err_set(err, HG_E_BUG, "no room for gradients of group %d", group);
            if (land(s, err) < 0)
                return -1;
        }
        state->gradient = wk_span_part(d->gradient_pool.all,
                                       (size_t)state->gradient_slot * d->gradient_pool.size, n);
    }
    s->dev->backend->fill(s->dev, state->gradient, 0);
    for (int i = 0; i < s->model->n_params; i++)
        if (d->plan.shards.places[i].group == group)
            s->params[i].gradient = wk_span_part(state->gradient, d->plan.shards.places[i].at,
                                                 wk_param_n(&s->model->params[i]));
    return 0;
}

static int sharded_before_backward(struct wk_strategy *s, int unit, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);

    if (d->plan.how.values && need(s, unit, err) < 0)
        return -1;
    for (int g = 0; g < d->plan.shards.n_groups && d->plan.how.gradients; g++)
        if (wk_shards_touch(&d->plan.shards, g, unit) && !d->groups[g].gradient.data &&
            make_gradient(s, g, err) < 0)
            return -1;
    return d->plan.how.values && d->plan.how.backward_ahead ? expect_unit(s, unit - 1, err) : 0;
}

/* Into a free stage, if the group is not too long for one. */
static int stage(struct wk_strategy *s, struct flight *f, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);
    size_t cap = d->plan.stage;

    if (!d->stages.data || f->buffer.n > cap)
        return 0;
    while (d->stage_taken[0] && d->stage_taken[1])
        if (land(s, err) < 0)
            return -1;
    f->stage = d->stage_taken[0] ? 1 : 0;
    d->stage_taken[f->stage] = true;
    s->dev->backend->copy(s->dev, wk_span_part(d->stages, (size_t)f->stage * cap, f->buffer.n),
                          f->buffer);
    f->buffer = wk_span_part(d->stages, (size_t)f->stage * cap, f->buffer.n);
    pool_give(&d->gradient_pool, f->gradient_slot);
    f->gradient_slot = -1;
    return 0;
}

/* A group's gradients are complete on this rank. */
static int send(struct wk_strategy *s, int group, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);
    const struct wk_group *g = &d->plan.shards.groups[group];
    struct group_state *state = &d->groups[group];
    struct flight f = { .group = group, .gradient_slot = state->gradient_slot, .stage = -1 };
    int rc = 0;

    f.buffer =
        d->plan.how.gradients ? state->gradient : wk_span_part(d->gradients, g->at, g->padded);
    state->gradient = WK_NONE;
    state->gradient_slot = -1;
    wk_comm_divide(s->comm, s->dev, f.buffer);
    if (stage(s, &f, err) < 0)
        return -1;
    if (wk_comm_group(s->comm, err) < 0)
        return -1;
    for (int i = g->first_piece; i < g->first_piece + g->n_pieces && rc == 0; i++) {
        const struct wk_piece *p = &d->plan.shards.pieces[i];

        rc = wk_comm_start_mean(
            s->comm, d->plan.how.all_reduce ? WK_COLL_ALL_REDUCE : WK_COLL_REDUCE_SCATTER,
            wk_span_part(f.buffer, p->at, p->padded), &f.ticket, err);
    }
    if (wk_comm_ungroup(s->comm, rc, err) < 0)
        return -1;
    *HG_VEC_PUSH(&d->flights) = f;
    return 0;
}

static int sharded_after_backward(struct wk_strategy *s, int unit, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);
    const struct wk_sharding *h = &d->plan.how;

    for (int g = 0; g < d->plan.shards.n_groups; g++) {
        if (d->plan.shards.groups[g].low != unit)
            continue;
        if (h->values)
            release(s, g);
        if ((h->gradients || !s->partial) && send(s, g, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- Steps ---- */

static int sharded_before_step(struct wk_strategy *s, bool training, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);

    if (!training)
        return wk_strategy_send_buffers(s, err); /* all ranks judge the same model */
    for (int g = 0; g < d->plan.shards.n_groups; g++)
        d->groups[g].fresh = true;
    if (!d->plan.how.gradients)
        s->dev->backend->fill(s->dev, d->gradients, 0);
    return 0;
}

/* Begin to put a piece's values together from the ranks' parts, if every rank has it whole. */
static int publish(struct wk_strategy *s, int piece, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);
    const struct wk_piece *p = &d->plan.shards.pieces[piece];
    struct wk_span whole;

    if (d->plan.how.values && !d->plan.whole[piece])
        return 0;
    whole = d->plan.how.values
                ? wk_span_part(d->whole, d->value_at[piece], p->padded)
                : wk_span_part(d->values, d->plan.shards.groups[p->group].at + p->at, p->padded);
    return wk_comm_start(s->comm, WK_PLANE_TRAIN, WK_COLL_ALL_GATHER, whole,
                         d->plan.how.values ? own_values(s, p) : WK_NONE,
                         &d->groups[p->group].updated, err);
}

static int publish_all(struct wk_strategy *s, struct hg_err *err)
{
    int rc = wk_comm_group(s->comm, err);

    if (rc < 0)
        return -1;
    for (int i = sharded_of(s)->plan.shards.n_pieces - 1; i >= 0 && rc == 0; i--)
        rc = publish(s, i, err);
    return wk_comm_ungroup(s->comm, rc, err);
}

static int sharded_round(struct wk_strategy *s, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);

    for (int i = 0; i < d->plan.shards.n_pieces && d->masters.data; i++) {
        const struct wk_piece *p = &d->plan.shards.pieces[i];
        struct wk_span to = own_values(s, p);

        if (to.type == WK_REAL)
            s->dev->backend->copy(s->dev, to, own_masters(s, p));
        else
            s->dev->backend->convert(s->dev, to, own_masters(s, p));
    }
    return publish_all(s, err) < 0 ? -1 : wk_comm_wait(s->comm, s->comm->started, err);
}

/* The sum of squares of the whole gradient; with it the control is set. */
static int measure(struct wk_strategy *s, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);
    const struct wk_backend *ops = s->dev->backend;
    struct wk_span sum, one;

    if (!s->control.data)
        return 0;
    sum = wk_span_part(d->norm, 0, 1);
    one = wk_span_part(d->norm, 1, 1);
    if (d->plan.how.gradients)
        ops->square_sum(s->dev, sum, d->gradients);
    for (int i = 0; i < d->plan.shards.n_pieces && !d->plan.how.gradients; i++) {
        ops->square_sum(s->dev, i ? one : sum, own_gradients(s, &d->plan.shards.pieces[i]));
        if (i)
            ops->add(s->dev, sum, one);
    }
    if (wk_comm_run(s->comm, WK_PLANE_TRAIN, WK_COLL_ALL_REDUCE, sum, err) < 0)
        return -1;
    wk_strategy_control(s, sum);
    return 0;
}

/* Update elements first to end of a piece, as far as they are this rank's. */
static void update_range(struct wk_strategy *s, const struct wk_piece *p, size_t first, size_t end,
                         struct wk_update *u)
{
    struct sharded *d = sharded_of(s);
    size_t part = part_of(s, p), own = part * (size_t)s->comm->rank, n;
    struct wk_span slots[WK_OPTIM_SLOTS_MAX] = { WK_NONE };

    first = first > own ? first - own : 0;
    end = end > own ? end - own : 0;
    end = end < part ? end : part;
    if (first >= end)
        return;
    n = end - first;
    for (int k = 0; k < s->optim->kind->slots; k++)
        slots[k] = wk_span_part(d->slots[k], p->shard_at + first, n);
    if (s->spared.data)
        u->spared = wk_span_part(s->spared, (p->shard_at + first) / s->grain, n / s->grain);
    u->copy = d->masters.data ? wk_span_part(own_values(s, p), first, n) : WK_NONE;
    wk_strategy_apply(s, wk_span_part(own_masters(s, p), first, n),
                      wk_span_part(own_gradients(s, p), first, n), slots, u);
}

/* Neighbours that decay alike at a time. */
static void update_piece(struct wk_strategy *s, int piece, struct wk_update *u)
{
    const struct wk_shards *shards = &sharded_of(s)->plan.shards;
    const struct wk_piece *p = &shards->pieces[piece];
    size_t first = 0, end = 0;

    for (int i = s->model->n_params - 1; i >= 0; i--) {
        if (shards->places[i].piece != piece)
            continue;
        if (end > first && wk_strategy_decay_from(s, i) != u->decay) {
            update_range(s, p, first, end, u);
            first = end;
        }
        u->decay = wk_strategy_decay_from(s, i);
        end += wk_grains(wk_param_n(&s->model->params[i]), s->grain);
    }
    update_range(s, p, first, end, u);
}

/* All of a rank's parts, which lie one after the other everywhere. */
static int update_shard(struct wk_strategy *s, struct wk_update *u, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);

    u->decay = wk_strategy_decay_from(s, 0);
    u->spared = s->spared;
    u->copy = d->masters.data ? d->values : WK_NONE;
    wk_strategy_apply(s, d->masters.data ? d->masters : d->values, d->gradients, d->slots, u);
    return publish_all(s, err);
}

/* The last pieces are needed first in the next forward: their new values are on their way while the others are updated, and the
 * others' while the first units compute. */
static int update_all(struct wk_strategy *s, double lr, struct hg_err *err)
{
    struct wk_update u = { .lr = lr, .step = s->updates, .control = s->control };
    const struct wk_sharding *h = &sharded_of(s)->plan.how;

    /* on a GPU launches cost more than a gather of small pieces that could begin earlier; all decay alike, or s->spared tells */
    if (s->grain > 1 && h->values && h->gradients)
        return update_shard(s, &u, err);
    for (int i = sharded_of(s)->plan.shards.n_pieces - 1; i >= 0; i--) {
        update_piece(s, i, &u);
        if (publish(s, i, err) < 0)
            return -1;
    }
    return 0;
}

static int sharded_update(struct wk_strategy *s, double lr, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);

    while (d->flights.n)
        if (land(s, err) < 0)
            return -1;
    if (measure(s, err) < 0)
        return -1;
    d->fetched_piece = -1;
    return update_all(s, lr, err);
}

/* ---- From and to the host ---- */

static struct wk_span own_state(struct wk_strategy *s, const struct wk_piece *p, int state)
{
    return state == WK_STATE_VALUE ? own_masters(s, p)
                                   : shard_part(s, p, sharded_of(s)->slots[state - WK_STATE_SLOT]);
}

static struct wk_span own_span(struct wk_strategy *s, int state, int param, const struct own *own)
{
    const struct wk_shards *shards = &sharded_of(s)->plan.shards;

    return wk_span_part(own_state(s, &shards->pieces[shards->places[param].piece], state), own->at,
                        own->n);
}

static void sharded_own(struct wk_strategy *s, int param, size_t *first, size_t *n)
{
    struct own own = own_elements(s, param);

    *first = own.first;
    *n = own.n;
}

static int sharded_store(struct wk_strategy *s, int state, int param, const wk_real *host,
                         struct hg_err *err)
{
    struct own own = own_elements(s, param);

    (void)err;
    sharded_of(s)->fetched_piece = -1;
    if (own.n)
        s->dev->backend->upload(s->dev, own_span(s, state, param, &own), host);
    return 0;
}

static int sharded_fetch_own(struct wk_strategy *s, int state, int param, wk_real *host,
                             struct hg_err *err)
{
    struct own own = own_elements(s, param);

    if (!own.n)
        return 0;
    s->dev->backend->download(s->dev, host, own_span(s, state, param, &own));
    return s->dev->backend->sync(s->dev, err);
}

/* A whole piece from all ranks to the host; it stays there for the parameters beside. */
static int fetch_piece(struct wk_strategy *s, int state, int piece, struct hg_err *err)
{
    struct sharded *d = sharded_of(s);
    const struct wk_piece *p = &d->plan.shards.pieces[piece];
    size_t part = part_of(s, p);

    if (d->fetched_piece == piece && d->fetched_state == state)
        return 0;
    free(d->fetched);
    d->fetched_piece = -1;
    d->fetched = hg_alloc(p->padded * sizeof *d->fetched);
    s->dev->backend->download(s->dev, d->fetched + part * (size_t)s->comm->rank,
                              own_state(s, p, state));
    if (s->dev->backend->sync(s->dev, err) < 0 ||
        wk_comm_gather(s->comm, d->fetched, part * sizeof *d->fetched, err) < 0)
        return -1;
    d->fetched_piece = piece;
    d->fetched_state = state;
    return 0;
}

static int sharded_fetch(struct wk_strategy *s, int state, int param, wk_real *host,
                         struct hg_err *err)
{
    struct sharded *d = sharded_of(s);
    const struct wk_param_place *at = &d->plan.shards.places[param];

    if (fetch_piece(s, state, at->piece, err) < 0)
        return -1;
    memcpy(host, d->fetched + at->at - d->plan.shards.pieces[at->piece].at,
           wk_param_n(&s->model->params[param]) * sizeof *host);
    return 0;
}

const struct wk_strategy_ops wk_sharded_ops = {
    .open = sharded_open,
    .close = sharded_close,
    .start = wk_strategy_send_buffers,
    .round = sharded_round,
    .own = sharded_own,
    .store = sharded_store,
    .fetch_own = sharded_fetch_own,
    .fetch = sharded_fetch,
    .before_step = sharded_before_step,
    .before_forward = sharded_before_forward,
    .after_forward = sharded_after_forward,
    .before_backward = sharded_before_backward,
    .after_backward = sharded_after_backward,
    .update = sharded_update,
    .state = wk_sharded_state,
    .expect = wk_sharded_expect,
};
