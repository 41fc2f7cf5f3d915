/* SPDX-License-Identifier: Apache-2.0 */
#include "strategies/sharded_plan.h"

#include <stdlib.h>

#include "base/alloc.h"

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Elements of other groups between a group's forward and its backward: those after it, twice. */
static double distance(const struct wk_sharded_plan *p, int group)
{
    double n = 0;

    for (int g = 0; g < p->shards.n_groups; g++)
        if (p->shards.groups[g].low > p->shards.groups[group].high)
            n += 2 * (double)p->shards.groups[g].padded;
    return n;
}

/* Which groups stay from forward to backward. The last ones first: they are needed again soonest. */
static void choose_kept(struct wk_sharded_plan *p)
{
    const struct wk_sharding *h = &p->how;
    double live = 0;

    for (int g = 0; g < p->shards.n_groups; g++) {
        double n = (double)p->coming[g];
        bool near = distance(p, g) < h->reuse_elems && live + n <= h->live_elems;

        p->kept[g] = h->keep_all || (h->keep_scattered && p->shards.groups[g].scattered) || near ||
                     p->shards.n_groups == 1;
        if (p->kept[g]) {
            p->kept_n += p->coming[g];
            live += n;
        }
    }
}

static void plan_values(struct wk_sharded_plan *p)
{
    int turns = 0;

    for (int i = 0; i < p->shards.n_pieces; i++) {
        const struct wk_piece *piece = &p->shards.pieces[i];

        p->whole[i] = (double)piece->n <= p->how.whole_elems;
        if (p->whole[i])
            p->whole_n += piece->padded;
        else
            p->coming[piece->group] += piece->padded;
    }
    choose_kept(p);
    for (int g = 0; g < p->shards.n_groups; g++)
        if (!p->kept[g] && p->coming[g]) {
            p->value_slot = most(p->value_slot, p->coming[g]);
            turns++;
        }
    p->value_slots = p->how.forward_ahead || p->how.backward_ahead ? 2 : 1;
    if (p->value_slots > turns)
        p->value_slots = turns;
}

/* Buffers that are full or being filled at a time: those of a unit, and of the one before it, which are sent at the same time. */
static int most_at_once(const struct wk_sharded_plan *p)
{
    int all = 0;

    for (int u = 0; u < p->shards.n_units; u++) {
        int n = 0;

        for (int g = 0; g < p->shards.n_groups; g++)
            n += !p->alone[g] && (wk_shards_touch(&p->shards, g, u) ||
                                  (u > 0 && wk_shards_touch(&p->shards, g, u - 1)));
        all = n > all ? n : all;
    }
    return all;
}

static void plan_gradients(struct wk_sharded_plan *p)
{
    for (int g = 0; g < p->shards.n_groups; g++) {
        p->alone[g] = p->shards.groups[g].scattered;
        if (p->alone[g]) {
            p->alone_n += p->shards.groups[g].padded;
            continue;
        }
        p->gradient_slot = most(p->gradient_slot, p->shards.groups[g].padded);
    }
    p->gradient_slots = most_at_once(p);
}

void wk_sharded_plan(struct wk_sharded_plan *p, const struct wk_strategy_shape *shape)
{
    const struct wk_sharding *how = &p->how;

    *p = (struct wk_sharded_plan){ .how = shape->kind->sharding(shape->options) };
    wk_shards_make(&p->shards, shape->model, how->cut, how->cap, shape->world, shape->grain);
    p->whole = hg_alloc_zeroed((size_t)p->shards.n_pieces, sizeof *p->whole);
    p->kept = hg_alloc_zeroed((size_t)p->shards.n_groups, sizeof *p->kept);
    p->alone = hg_alloc_zeroed((size_t)p->shards.n_groups, sizeof *p->alone);
    p->coming = hg_alloc_zeroed((size_t)p->shards.n_groups, sizeof *p->coming);
    if (how->staged)
        p->stage = wk_grains((size_t)how->cap, shape->grain);
    if (how->values)
        plan_values(p);
    if (how->gradients)
        plan_gradients(p);
}

void wk_sharded_plan_done(struct wk_sharded_plan *p)
{
    wk_shards_done(&p->shards);
    free(p->whole);
    free(p->kept);
    free(p->alone);
    free(p->coming);
    *p = (struct wk_sharded_plan){ 0 };
}

/* ---- The definition ----
 *
 * With P elements of all pieces and S = P / N of a rank's parts, v bytes of a value that passes read and g of a
 * gradient, master or slot of the optimizer. */

void wk_sharded_state(const struct wk_strategy_shape *shape, double mem_bytes[WK_MEM_CLASSES])
{
    double v = wk_shape_value_bytes(shape), g = sizeof(wk_real), p, s;
    struct wk_sharded_plan plan;
    bool masters;
    const struct wk_sharding *how = &plan.how;

    wk_sharded_plan(&plan, shape);
    masters = how->masters || wk_shape_mixed(shape);
    p = (double)plan.shards.padded;
    s = (double)plan.shards.shard;
    mem_bytes[WK_MEM_PARAMETERS] =
        (double)wk_model_buffers_n(shape->model) * g +
        v * (how->values ? s + (double)plan.whole_n + (double)plan.kept_n +
                               (double)plan.value_slot * plan.value_slots
                         : p);
    mem_bytes[WK_MEM_GRADIENTS] =
        g * (how->gradients
                 ? s + (double)plan.alone_n + (double)plan.gradient_slot * plan.gradient_slots
                 : p);
    mem_bytes[WK_MEM_OPTIMIZER] =
        g * s * (shape->optim->kind->slots + (masters ? 1 : 0)) + wk_shape_spared_bytes(shape, s);
    if (wk_shape_control(shape)) /* the control, a norm and its summand */
        mem_bytes[WK_MEM_OPTIMIZER] += (2 + WK_CONTROL_N) * g;
    if (how->staged)
        mem_bytes[WK_MEM_COMM] = 2 * g * (double)plan.stage;
    wk_sharded_plan_done(&plan);
}

/* Elements and calls of gathering the groups, all or those that did not stay. */
static double gathered(const struct wk_sharded_plan *p, bool all, double *calls)
{
    double n = 0;

    *calls = 0;
    for (int i = 0; i < p->shards.n_pieces; i++)
        if (!p->whole[i] && (all || !p->kept[p->shards.pieces[i].group])) {
            n += (double)p->shards.pieces[i].padded;
            *calls += 1;
        }
    return n;
}

static void expect_gathers(const struct wk_sharded_plan *p, const struct wk_strategy_shape *shape,
                           const struct wk_work *w, double v, struct wk_expected *out)
{
    double whole_calls = 0, forward_calls, backward_calls;
    double forward = gathered(p, true, &forward_calls);
    double backward = gathered(p, false, &backward_calls);
    double forwards = (double)(w->passes + w->eval_passes), backwards = (double)w->passes;
    double times = (double)(w->starts + w->steps);

    for (int i = 0; i < p->shards.n_pieces; i++)
        whole_calls += p->whole[i];
    wk_expect_add(out, shape, WK_COLL_ALL_GATHER, forwards * forward_calls, forwards * forward * v);
    wk_expect_add(out, shape, WK_COLL_ALL_GATHER, backwards * backward_calls,
                  backwards * backward * v);
    wk_expect_add(out, shape, WK_COLL_ALL_GATHER, times * whole_calls,
                  times * (double)p->whole_n * v);
}

void wk_sharded_expect(const struct wk_strategy_shape *shape, const struct wk_work *w,
                       struct wk_expected *out)
{
    double v = wk_shape_value_bytes(shape), g = sizeof(wk_real), p, pieces;
    double buffers = (double)wk_model_buffers_n(shape->model) * g, casts = 1 + (double)w->evals;
    double times = (double)(w->starts + w->steps), reductions;
    struct wk_sharded_plan plan;
    const struct wk_sharding *how = &plan.how;

    wk_sharded_plan(&plan, shape);
    reductions = (double)(how->gradients ? w->passes : w->steps);
    p = (double)plan.shards.padded;
    pieces = plan.shards.n_pieces;
    if (how->values)
        expect_gathers(&plan, shape, w, v, out);
    else
        wk_expect_add(out, shape, WK_COLL_ALL_GATHER, times * pieces, times * p * v);
    wk_expect_add(out, shape, how->all_reduce ? WK_COLL_ALL_REDUCE : WK_COLL_REDUCE_SCATTER,
                  reductions * pieces, reductions * p * g);
    if (buffers > 0)
        wk_expect_add(out, shape, WK_COLL_BROADCAST, casts, casts * buffers);
    if (wk_shape_control(shape))
        wk_expect_add(out, shape, WK_COLL_ALL_REDUCE, (double)w->steps, (double)w->steps * g);
    wk_sharded_plan_done(&plan);
}
