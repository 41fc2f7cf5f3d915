/* SPDX-License-Identifier: Apache-2.0 */
/* Distributed data parallel: a replica per rank, trained on its own part of every batch. Rank 0's
 * parameters and buffers go to all at the start, its buffers (running statistics) before each
 * forward. Gradients are cut into buckets in the order in which they become ready; a bucket is
 * divided by the number of ranks and summed over them as soon as its last gradient is complete, so
 * every rank takes the same step. */
#include <stdlib.h>

#include "base/vec.h"
#include "strategies/replica.h"

#define MIB (1024.0 * 1024.0)

/* A range of the flat gradients, and the unit whose backward completes it. */
struct bucket {
    struct wk_span gradients;
    int unit;
};

struct ddp {
    struct wk_replica replica;
    struct {
        struct bucket *items;
        size_t n, cap;
    } buckets;
    size_t next; /* bucket to send; they go strictly in order */
};

/* A bucket is closed by the parameter that takes it to its cap or beyond: parameters are never
 * split. */
static int make_buckets(struct ddp *d, struct wk_strategy *s, struct hg_err *err)
{
    double cap = s->options.first_bucket_mib * MIB;
    size_t first = 0, end = 0;

    for (int i = s->model->n_params - 1; i >= 0; i--) {
        end += wk_param_n(&s->model->params[i]);
        if (i > 0 && (double)(end - first) * sizeof(wk_real) < cap)
            continue;
        struct bucket *b = HG_VEC_PUSH(&d->buckets);

        if (!b)
            return hg_err_oom(err);
        b->gradients = wk_span_part(d->replica.gradients, first, end - first);
        b->unit = s->model->params[i].unit;
        first = end;
        cap = s->options.bucket_mib * MIB;
    }
    return 0;
}

static int ddp_open(struct wk_strategy *s, struct hg_err *err)
{
    struct ddp *d = calloc(1, sizeof *d);

    s->own = d;
    if (!d)
        return hg_err_oom(err);
    return wk_replica_open(&d->replica, s, err) < 0 || make_buckets(d, s, err) < 0 ? -1 : 0;
}

static void ddp_close(struct wk_strategy *s)
{
    struct ddp *d = s->own;

    if (d) {
        wk_replica_close(&d->replica, s);
        HG_VEC_DONE(&d->buckets);
    }
    free(d);
}

static int send_buffers(struct wk_strategy *s, struct hg_err *err)
{
    struct ddp *d = s->own;

    return wk_comm_run(s->comm, WK_PLANE_TRAIN, WK_COLL_BROADCAST, d->replica.buffers, err);
}

static int ddp_start(struct wk_strategy *s, struct hg_err *err)
{
    struct ddp *d = s->own;

    if (wk_comm_run(s->comm, WK_PLANE_TRAIN, WK_COLL_BROADCAST, d->replica.values, err) < 0)
        return -1;
    return send_buffers(s, err);
}

static void ddp_round(struct wk_strategy *s)
{
    struct ddp *d = s->own;

    wk_replica_round(&d->replica, s);
}

static int ddp_before_step(struct wk_strategy *s, bool training, struct hg_err *err)
{
    struct ddp *d = s->own;

    d->next = 0;
    if (training)
        wk_replica_clear(&d->replica, s);
    return send_buffers(s, err);
}

static int ddp_after_backward(struct wk_strategy *s, int unit, struct hg_err *err)
{
    struct ddp *d = s->own;

    if (s->partial)
        return 0;
    for (; d->next < d->buckets.n && d->buckets.items[d->next].unit >= unit; d->next++) {
        struct wk_span gradients = d->buckets.items[d->next].gradients;

        s->dev->backend->scale(s->dev, gradients, 1.0 / s->comm->world);
        if (wk_comm_run(s->comm, WK_PLANE_TRAIN, WK_COLL_ALL_REDUCE, gradients, err) < 0)
            return -1;
    }
    return 0;
}

static int ddp_update(struct wk_strategy *s, double lr, struct hg_err *err)
{
    struct ddp *d = s->own;

    if (d->next != d->buckets.n)
        return hg_err_set(err, HG_E_BUG, "%zu of %zu gradient buckets were reduced", d->next,
                          d->buckets.n);
    wk_replica_update(&d->replica, s, lr);
    return 0;
}

static void ddp_expect(const struct wk_strategy *s, long steps, long evals, struct wk_expected *out)
{
    const struct ddp *d = s->own;
    double params = (double)wk_model_n(s->model) * sizeof(wk_real);
    double buffers = (double)wk_model_buffers_n(s->model) * sizeof(wk_real);
    int world = s->comm->world;

    wk_replica_expect(&d->replica, out);
    out->ring_bytes[WK_COLL_ALL_REDUCE] = (double)steps * 2 * (world - 1) / world * params;
    out->ring_bytes[WK_COLL_BROADCAST] =
        world > 1 ? params + buffers + (double)(steps + evals) * buffers : 0;
}

const struct wk_strategy_kind wk_strategy_ddp = {
    .name = "ddp",
    .open = ddp_open,
    .close = ddp_close,
    .start = ddp_start,
    .round = ddp_round,
    .before_step = ddp_before_step,
    .after_backward = ddp_after_backward,
    .update = ddp_update,
    .expect = ddp_expect,
};
