/* SPDX-License-Identifier: Apache-2.0 */
#include "train/predict.h"

#include "backends/count.h"
#include "strategies/strategies.h"
#include "train/train.h"

#define RANKS_ALL 64 /* worlds up to this are looked at rank by rank, larger ones at their ends */

/* CPU threads of a device; where the cell does not say, one. */
static int threads_of(const struct wk_config *c)
{
    long long n = c->cpus_per_task / wk_config_devices(c);

    return n > 1 ? (int)n : 1;
}

static int world_of(const struct wk_config *c)
{
    return c->nodes && c->tasks_per_node ? (int)(c->nodes * c->tasks_per_node) : 1;
}

/* The strategy's part on one rank. */
static void add_state(const struct wk_strategy_shape *shape, struct wk_prediction *p)
{
    double mem_bytes[WK_MEM_CLASSES] = { 0 }, total = 0;

    shape->kind->ops->state(shape, mem_bytes);
    for (int i = 0; i < WK_MEM_CLASSES; i++) {
        if (i == WK_MEM_ACTIVATIONS || i == WK_MEM_WORKSPACE || i == WK_MEM_DATA)
            mem_bytes[i] = p->mem_bytes[i];
        total += mem_bytes[i];
    }
    if (total <= p->total_bytes)
        return;
    for (int i = 0; i < WK_MEM_CLASSES; i++)
        p->mem_bytes[i] = mem_bytes[i];
    p->total_bytes = total;
    p->rank = shape->rank;
}

int wk_predict(const struct wk_config *c, const char *strategy, bool read_data,
               struct wk_prediction *out, struct hg_err *err)
{
    struct wk_comm comm = { .world = world_of(c) * wk_config_devices(c) };
    struct wk_strategy_options options =
        strategy ? wk_strategy_defaults(strategy, false) : c->options;
    struct wk_strategy_shape shape = { .kind = wk_strategy_get(strategy ? strategy : c->strategy,
                                                               world_of(c), err),
                                       .options = &options,
                                       .grain = wk_dev_count_grain(c->backend),
                                       .world = comm.world };
    struct wk_train t = { 0 };
    int rc = -1;

    options.batch_rows = (int)c->batch_size;
    *out = (struct wk_prediction){ .world = comm.world, .exact = read_data };
    if (!shape.kind || wk_precision_find(c->precision, &shape.precision, err) < 0)
        return -1;
    if (wk_train_plan(&t, c, &comm, read_data, err) < 0 ||
        wk_train_count(&t, c->backend, shape.precision, threads_of(c), out->mem_bytes, err) < 0)
        goto out;
    shape.model = t.kind;
    shape.optim = &t.optim;
    for (shape.rank = 0; shape.rank < shape.world; shape.rank++)
        if (shape.world <= RANKS_ALL || shape.rank < 2 || shape.rank == shape.world - 1)
            add_state(&shape, out);
    rc = 0;
out:
    wk_train_close(&t);
    return rc;
}
