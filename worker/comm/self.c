/* SPDX-License-Identifier: Apache-2.0 */
/* A world of one rank: a collective moves a part to where the whole is, at most. */
#include "comm/transports.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static struct wk_comm *self_open(struct hg_err *err)
{
    struct wk_comm *comm = hg_alloc_zeroed(1, sizeof *comm);

    (void)err;
    comm->kind = &wk_comm_self;
    comm->world = 1;
    return comm;
}

static void self_close(struct wk_comm *comm)
{
    free(comm);
}

static void move(struct wk_comm *comm, const struct wk_comm_op *op, void *to, void *from)
{
    enum wk_type type = op->type == WK_WIRE_REAL   ? WK_REAL
                        : op->type == WK_WIRE_BF16 ? WK_BF16
                                                   : WK_U8;

    if (op->device)
        comm->dev->backend->copy(comm->dev, (struct wk_span){ to, op->n, type },
                                 (struct wk_span){ from, op->n, type });
    else
        memcpy(to, from, op->n * wk_wire_size(op->type));
}

static int self_run(struct wk_comm *comm, const struct wk_comm_op *op, const _Atomic bool *waited,
                    struct hg_err *err)
{
    (void)waited, (void)err;
    if (!op->part || op->part == op->whole)
        return 0;
    if (op->coll == WK_COLL_ALL_GATHER || op->coll == WK_COLL_GATHER)
        move(comm, op, op->whole, op->part);
    else if (op->coll == WK_COLL_REDUCE_SCATTER || op->coll == WK_COLL_SCATTER)
        move(comm, op, op->part, op->whole);
    return 0;
}

static void self_barrier(struct wk_comm *comm)
{
    (void)comm;
}

static __attribute__((noreturn)) void self_abort(struct wk_comm *comm, int code)
{
    (void)comm;
    exit(code);
}

const struct wk_comm_kind wk_comm_self = {
    .name = "self",
    .summary = "one rank",
    .open = self_open,
    .close = self_close,
    .run = self_run,
    .barrier = self_barrier,
    .abort = self_abort,
};
