/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas, as PyTorch's DistributedDataParallel has them: all start from rank 0's values; buffers
 * are broadcast from rank 0 before a step; gradients are divided by N and summed in buckets, each on
 * its way as soon as its last gradient is complete, overlapping the rest of backward. In the first
 * step one bucket holds everything; from then on they are cut in the order in which gradients become
 * ready. The last one has no backward to overlap, and BERT's is the largest, with the words: where no norm of all is needed, the parameters
 * of earlier buckets are updated meanwhile. */
#include <stdlib.h>

#include "base/vec.h"
#include "strategies/replica.h"

#define MIB (1024.0 * 1024.0)

/* A range of the flat gradients, and the unit whose backward completes it. */
struct bucket {
    size_t first, n;
    int ready, end; /* its parameters become ready as number `ready` up to `end` */
    int unit;
    long ticket;
};

struct buckets {
    struct bucket *items;
    size_t n, cap;
};

struct ddp {
    struct wk_replica replica; /* first */
    struct buckets buckets;
    struct wk_span copies; /* of the gradients, where buckets are not views of them */
    size_t next;           /* bucket to send; they go strictly in order */
};

/* A bucket is closed by the parameter that reaches or exceeds its cap: parameters are never
 * split. */
static void cut(struct buckets *out, const struct wk_model_kind *model, size_t grain,
                double first_cap, double cap)
{
    size_t first = 0, end = 0, filled = 0;
    int ready = 0;

    out->n = 0;
    for (int k = 0; k < model->n_params; k++) {
        int i = wk_model_ready(model, k);

        filled += wk_param_n(&model->params[i]);
        end += wk_grains(wk_param_n(&model->params[i]), grain);
        if (k + 1 < model->n_params &&
            (double)filled * sizeof(wk_real) < (out->n ? cap : first_cap))
            continue;
        *HG_VEC_PUSH(out) =
            (struct bucket){ first, end - first, ready, k + 1, model->params[i].unit, 0 };
        first = end;
        ready = k + 1;
        filled = 0;
    }
}

static enum wk_type copy_type(const struct wk_strategy_options *o)
{
    return o->bf16_gradients ? WK_BF16 : WK_REAL;
}

static int ddp_open(struct wk_strategy *s, struct hg_err *err)
{
    struct ddp *d = hg_alloc_zeroed(1, sizeof *d);
    bool copies = s->options.bucket_copies || s->options.bf16_gradients;

    s->own = d;
    if (wk_replica_open(&d->replica, s, err) < 0)
        return -1;
    cut(&d->buckets, s->model, s->grain, 1e300, 1e300); /* one bucket */
    return copies ? wk_dev_alloc(s->dev, WK_MEM_COMM, copy_type(&s->options),
                                 d->replica.gradients.n, &d->copies, err)
                  : 0;
}

static void ddp_close(struct wk_strategy *s)
{
    struct ddp *d = s->own;

    if (!d)
        return;
    wk_replica_close(&d->replica, s);
    wk_dev_free(s->dev, WK_MEM_COMM, &d->copies);
    HG_VEC_DONE(&d->buckets);
    free(d);
}

static int ddp_start(struct wk_strategy *s, struct hg_err *err)
{
    struct ddp *d = s->own;

    if (wk_comm_run(s->comm, WK_PLANE_TRAIN, WK_COLL_BROADCAST, d->replica.values, err) < 0)
        return -1;
    return wk_strategy_send_buffers(s, err);
}

static int ddp_before_step(struct wk_strategy *s, bool training, struct hg_err *err)
{
    struct ddp *d = s->own;

    d->next = 0;
    if (training)
        wk_replica_clear(&d->replica, s);
    return wk_strategy_send_buffers(s, err);
}

/* Between gradients and what travels: a view needs nothing. */
static void convert(struct wk_strategy *s, struct wk_span to, struct wk_span from)
{
    if (to.type == from.type)
        s->dev->backend->copy(s->dev, to, from);
    else
        s->dev->backend->convert(s->dev, to, from);
}

static int send_bucket(struct wk_strategy *s, struct bucket *b, struct hg_err *err)
{
    struct ddp *d = s->own;
    struct wk_span gradients = wk_span_part(d->replica.gradients, b->first, b->n), out = gradients;

    wk_comm_divide(s->comm, s->dev, gradients);
    if (d->copies.data) {
        out = wk_span_part(d->copies, b->first, b->n);
        convert(s, out, gradients);
    }
    return wk_comm_start_mean(s->comm, WK_COLL_ALL_REDUCE, out, &b->ticket, err);
}

static int ddp_after_backward(struct wk_strategy *s, int unit, struct hg_err *err)
{
    struct ddp *d = s->own;

    if (s->partial)
        return 0;
    for (; d->next < d->buckets.n && d->buckets.items[d->next].unit >= unit; d->next++)
        if (send_bucket(s, &d->buckets.items[d->next], err) < 0)
            return -1;
    return 0;
}

static int ddp_update(struct wk_strategy *s, double lr, struct hg_err *err)
{
    struct ddp *d = s->own;

    if (d->next != d->buckets.n)
        return hg_err_set(err, HG_E_BUG, "%zu of %zu gradient buckets were reduced", d->next,
                          d->buckets.n);
    for (size_t i = 0; i < d->buckets.n; i++) {
        const struct bucket *b = &d->buckets.items[i];

        if (wk_comm_wait(s->comm, b->ticket, err) < 0)
            return -1;
        if (d->copies.data)
            convert(s, wk_span_part(d->replica.gradients, b->first, b->n),
                    wk_span_part(d->copies, b->first, b->n));
        if (!s->control.data)
            wk_replica_update_some(&d->replica, s, lr, s->updates, b->ready, b->end, b->first);
    }
    if (s->control.data)
        wk_replica_update(&d->replica, s, lr);
    if (s->work.steps == 1)
        cut(&d->buckets, s->model, s->grain, s->options.first_bucket_mib * MIB,
            s->options.bucket_mib * MIB);
    return 0;
}

static void ddp_state(const struct wk_strategy_shape *shape, double mem_bytes[WK_MEM_CLASSES])
{
    const struct wk_strategy_options *o = shape->options;

    wk_replica_state(shape, mem_bytes);
    if (o->bucket_copies || o->bf16_gradients)
        mem_bytes[WK_MEM_COMM] =
            (double)wk_model_room(shape->model, shape->grain) * (double)wk_type_size(copy_type(o));
}

static void ddp_expect(const struct wk_strategy_shape *shape, const struct wk_work *work,
                       struct wk_expected *out)
{
    const struct wk_strategy_options *o = shape->options;
    double n = (double)wk_model_room(shape->model, shape->grain);
    double wire = (double)wk_type_size(copy_type(o));
    double buffers = (double)wk_model_buffers_n(shape->model) * sizeof(wk_real);
    double casts = buffers > 0 ? 1 + (double)work->steps + (double)work->evals : 0;
    struct buckets b = { 0 };

    cut(&b, shape->model, shape->grain, o->first_bucket_mib * MIB, o->bucket_mib * MIB);
    wk_expect_add(out, shape, WK_COLL_ALL_REDUCE,
                  work->steps ? 1 + (double)(work->steps - 1) * (double)b.n : 0,
                  (double)work->steps * n * wire);
    wk_expect_add(out, shape, WK_COLL_BROADCAST, 1 + casts, n * sizeof(wk_real) + casts * buffers);
    HG_VEC_DONE(&b);
}

static const struct wk_strategy_ops ops = {
    .open = ddp_open,
    .close = ddp_close,
    .start = ddp_start,
    .round = wk_replica_round,
    .before_step = ddp_before_step,
    .after_backward = ddp_after_backward,
    .update = ddp_update,
    .state = ddp_state,
    .expect = ddp_expect,
};

const struct wk_strategy_kind wk_strategy_ddp = { .name = "ddp", .ops = &ops };
