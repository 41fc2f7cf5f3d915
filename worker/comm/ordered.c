/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/ordered.h"

#include <stdlib.h>

#include "base/alloc.h"

static struct wk_span span_of(void *data, size_t n, enum wk_wire type)
{
    return (
        struct wk_span){ .data = data, .n = n, .type = type == WK_WIRE_BF16 ? WK_BF16 : WK_REAL };
}

/* What the collective left on the host for this rank. */
static void take_back(const struct wk_comm *comm, const struct wk_comm_op *op,
                      const struct wk_comm_op *done)
{
    size_t part = op->n / (size_t)comm->world;

    if (op->coll == WK_COLL_REDUCE_SCATTER)
        comm->dev->backend->upload(comm->dev, span_of(op->part, part, op->type), done->part);
    else if (op->coll == WK_COLL_ALL_REDUCE || comm->rank == 0)
        comm->dev->backend->upload(comm->dev, span_of(op->whole, op->n, op->type), done->whole);
}

int wk_comm_sum_on_host(struct wk_comm *comm, const struct wk_comm_kind *base,
                        const struct wk_comm_op *op, struct hg_err *err)
{
    static const _Atomic bool waited = true;
    const struct wk_backend *ops = comm->dev->backend;
    size_t size = wk_wire_size(op->type), part = op->n / (size_t)comm->world;
    char *host = hg_alloc(op->n * size + 1);
    struct wk_comm_op there = *op;
    int rc = -1;

    there.device = false;
    there.whole = host;
    there.part = host + (size_t)comm->rank * part * size;
    ops->download(comm->dev, host, span_of(op->whole, op->n, op->type));
    if (ops->sync(comm->dev, err) < 0 || base->run(comm, &there, &waited, err) < 0)
        goto out;
    take_back(comm, op, &there);
    rc = ops->sync(comm->dev, err);
out:
    free(host);
    return rc;
}
