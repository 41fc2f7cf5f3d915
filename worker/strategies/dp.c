/* SPDX-License-Identifier: Apache-2.0 */
/* One process, several devices, as PyTorch's DataParallel: in every pass the first device scatters the
 * batch, broadcasts parameters and buffers in chunks of 10 MiB, gathers the losses, and gets the sum of
 * the gradients, in the same chunks, when all backward passes are over. Only it has an optimizer. The
 * loss of a pass is the mean of the devices' losses, so every device's counts 1/N.
 *
 * A batch travels as the numbers of its samples: the data are on every device. */
#include <stdlib.h>

#include "base/alloc.h"
#include "strategies/replica.h"
#include "strategies/shards.h"

#define CHUNK_BYTES 10485760.0

struct dp {
    struct wk_replica replica; /* first; without optimizer on all but the first device */
    struct wk_shards chunks;   /* tensors until another would take a chunk beyond its size */
    struct wk_span numbers;    /* (devices, batch_rows) int32 of all devices; on the first */
    struct wk_span own;        /* (batch_rows) int32 */
    struct wk_span losses;     /* (devices) on the first */
};

static bool is_first(const struct wk_strategy *s)
{
    return s->comm->rank == 0;
}

static void cut(struct wk_shards *out, const struct wk_model_kind *model, size_t grain)
{
    wk_shards_make(out, model, WK_CUT_BUCKETS, CHUNK_BYTES / sizeof(wk_real), 1, grain);
}

static int open_batch(struct dp *d, struct wk_strategy *s, struct hg_err *err)
{
    size_t rows = (size_t)s->options.batch_rows, world = (size_t)s->comm->world;

    if (wk_dev_alloc(s->dev, WK_MEM_COMM, WK_I32, rows, &d->own, err) < 0)
        return -1;
    if (!is_first(s))
        return 0;
    return wk_dev_alloc(s->dev, WK_MEM_COMM, WK_I32, world * rows, &d->numbers, err) < 0 ||
                   wk_dev_alloc(s->dev, WK_MEM_COMM, WK_REAL, world, &d->losses, err) < 0
               ? -1
               : 0;
}

static int dp_open(struct wk_strategy *s, struct hg_err *err)
{
    struct dp *d = hg_alloc_zeroed(1, sizeof *d);

    s->own = d;
    s->share = 1.0 / s->comm->world;
    cut(&d->chunks, s->model, s->grain);
    d->replica.passive = !is_first(s);
    return wk_replica_open(&d->replica, s, err) < 0 ? -1 : open_batch(d, s, err);
}

static void dp_close(struct wk_strategy *s)
{
    struct dp *d = s->own;

    if (!d)
        return;
    wk_comm_wait(s->comm, s->comm->started, NULL);
    wk_replica_close(&d->replica, s);
    wk_shards_done(&d->chunks);
    wk_dev_free(s->dev, WK_MEM_COMM, &d->numbers);
    wk_dev_free(s->dev, WK_MEM_COMM, &d->own);
    wk_dev_free(s->dev, WK_MEM_COMM, &d->losses);
    free(d);
}

static int in_chunks(struct wk_strategy *s, enum wk_coll coll, struct wk_span all,
                     struct hg_err *err)
{
    struct dp *d = s->own;
    long ticket = 0;

    for (int g = 0; g < d->chunks.n_groups; g++) {
        const struct wk_group *chunk = &d->chunks.groups[g];

        if (wk_comm_start(s->comm, WK_PLANE_TRAIN, coll,
                          wk_span_part(all, chunk->at, chunk->padded), WK_NONE, &ticket, err) < 0)
            return -1;
    }
    return wk_comm_wait(s->comm, ticket, err);
}

/* How far the loss is scaled; only the first device finds out. */
static int send_scale(struct wk_strategy *s, struct hg_err *err)
{
    if (s->dev->precision != WK_MIXED_FP16)
        return 0;
    return wk_comm_run(s->comm, WK_PLANE_TRAIN, WK_COLL_BROADCAST, s->control, err);
}

static int replicate(struct wk_strategy *s, struct hg_err *err)
{
    struct dp *d = s->own;
    struct wk_span values = d->replica.copies.data ? d->replica.copies : d->replica.values;

    if (in_chunks(s, WK_COLL_BROADCAST, values, err) < 0 || send_scale(s, err) < 0)
        return -1;
    return wk_strategy_send_buffers(s, err);
}

static int dp_before_step(struct wk_strategy *s, bool training, struct hg_err *err)
{
    struct dp *d = s->own;

    if (!training)
        return replicate(s, err);
    wk_replica_clear(&d->replica, s);
    return 0;
}

static int dp_before_forward(struct wk_strategy *s, int unit, struct hg_err *err)
{
    struct dp *d = s->own;

    if (unit != 0 || !s->training)
        return 0;
    if (!is_first(s)) /* what an earlier pass left was taken */
        wk_replica_clear(&d->replica, s);
    return replicate(s, err);
}

static int dp_after_backward(struct wk_strategy *s, int unit, struct hg_err *err)
{
    struct dp *d = s->own;

    return unit == 0 ? in_chunks(s, WK_COLL_REDUCE, d->replica.gradients, err) : 0;
}

static int dp_scatter(struct wk_strategy *s, const int32_t *all, int rows, int32_t *own,
                      struct hg_err *err)
{
    struct dp *d = s->own;
    struct wk_span part = wk_span_part(d->own, 0, (size_t)rows), whole = WK_NONE;
    long ticket;

    if (is_first(s)) {
        whole = wk_span_part(d->numbers, 0, (size_t)rows * (size_t)s->comm->world);
        s->dev->backend->upload(s->dev, whole, all);
    }
    if (wk_comm_start(s->comm, WK_PLANE_TRAIN, WK_COLL_SCATTER, whole, part, &ticket, err) < 0 ||
        wk_comm_wait(s->comm, ticket, err) < 0)
        return -1;
    s->dev->backend->download(s->dev, own, part);
    return s->dev->backend->sync(s->dev, err);
}

static int dp_after_loss(struct wk_strategy *s, struct wk_span loss, struct hg_err *err)
{
    struct dp *d = s->own;
    long ticket;

    if (wk_comm_start(s->comm, WK_PLANE_TRAIN, WK_COLL_GATHER, d->losses, loss, &ticket, err) < 0)
        return -1;
    return wk_comm_wait(s->comm, ticket, err);
}

static int dp_update(struct wk_strategy *s, double lr, struct hg_err *err)
{
    struct dp *d = s->own;

    (void)err;
    if (is_first(s))
        wk_replica_update(&d->replica, s, lr);
    return 0;
}

/* State is the first device's; the others get values with the next pass. */
static int dp_store(struct wk_strategy *s, int state, int param, const wk_real *host,
                    struct hg_err *err)
{
    (void)err;
    if (is_first(s) || state == WK_STATE_VALUE)
        s->dev->backend->upload(s->dev, wk_strategy_place(s, state, param), host);
    return 0;
}

static int dp_fetch(struct wk_strategy *s, int state, int param, wk_real *host, struct hg_err *err)
{
    if (!is_first(s))
        return 0;
    s->dev->backend->download(s->dev, host, wk_strategy_place(s, state, param));
    return s->dev->backend->sync(s->dev, err);
}

static void dp_state(const struct wk_strategy_shape *shape, double mem_bytes[WK_MEM_CLASSES])
{
    double rows = (double)shape->options->batch_rows * sizeof(int32_t);
    double room = (double)wk_model_room(shape->model, shape->grain);

    wk_replica_state(shape, mem_bytes);
    mem_bytes[WK_MEM_COMM] = rows;
    if (shape->rank == 0)
        mem_bytes[WK_MEM_COMM] += shape->world * (rows + sizeof(wk_real));
    else
        mem_bytes[WK_MEM_OPTIMIZER] =
            (wk_shape_mixed(shape) ? room * sizeof(wk_real) : 0) +
            (wk_shape_control(shape) ? (1 + WK_CONTROL_N) * sizeof(wk_real) : 0);
}

static void dp_expect(const struct wk_strategy_shape *shape, const struct wk_work *work,
                      struct wk_expected *out)
{
    double n = (double)wk_model_room(shape->model, shape->grain), passes = (double)work->passes;
    double buffers = (double)wk_model_buffers_n(shape->model) * sizeof(wk_real);
    double replications = passes + (double)work->evals;
    struct wk_shards chunks;

    cut(&chunks, shape->model, shape->grain);
    wk_expect_add(out, shape, WK_COLL_BROADCAST,
                  replications * (chunks.n_groups + (buffers > 0 ? 1 : 0)),
                  replications * (n * wk_shape_value_bytes(shape) + buffers));
    wk_expect_add(out, shape, WK_COLL_REDUCE, passes * chunks.n_groups,
                  passes * n * sizeof(wk_real));
    if (shape->precision == WK_MIXED_FP16)
        wk_expect_add(out, shape, WK_COLL_BROADCAST, replications,
                      replications * WK_CONTROL_N * sizeof(wk_real));
    wk_expect_add(out, shape, WK_COLL_SCATTER, passes,
                  (double)work->rows * shape->world * sizeof(int32_t));
    wk_expect_add(out, shape, WK_COLL_GATHER, passes, passes * shape->world * sizeof(wk_real));
    wk_shards_done(&chunks);
}

static const struct wk_strategy_ops ops = {
    .open = dp_open,
    .close = dp_close,
    .round = wk_replica_round,
    .store = dp_store,
    .fetch = dp_fetch,
    .before_step = dp_before_step,
    .before_forward = dp_before_forward,
    .after_backward = dp_after_backward,
    .scatter = dp_scatter,
    .after_loss = dp_after_loss,
    .update = dp_update,
    .state = dp_state,
    .expect = dp_expect,
};

const struct wk_strategy_kind wk_strategy_dp = { .name = "dp", .ops = &ops };
