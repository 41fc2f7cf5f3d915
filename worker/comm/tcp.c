/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/tcp.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/environment.h"

#define RENDEZVOUS_LIMIT_S 120.0 /* for all ranks to come */
#define WAIT_LIMIT_S 1e6         /* in a collective: comm/heartbeat.h detects dead ranks */
#define PIECE ((size_t)1 << 18)  /* bytes of a rank that go at once */

struct tcp {
    struct wk_comm comm;
    struct wk_rendezvous *rv;
    char *room; /* (world, PIECE) */
    const void **from;
};

static struct tcp *tcp_of(struct wk_comm *comm)
{
    return (struct tcp *)comm;
}

static void tcp_close(struct wk_comm *comm)
{
    struct tcp *t = tcp_of(comm);

    wk_rendezvous_close(t->rv);
    free(t->room);
    free(t->from);
    free(t);
}

struct wk_comm *wk_tcp_open(const struct wk_rendezvous_place *place, int listener, double limit_s,
                            struct hg_err *err)
{
    struct wk_rendezvous *rv = wk_rendezvous_open(place, listener, limit_s, err);
    size_t world = (size_t)place->world;
    struct tcp *t;

    if (!rv)
        return NULL;
    wk_rendezvous_limit(rv, WAIT_LIMIT_S);
    t = hg_alloc_zeroed(1, sizeof *t);
    t->comm = (struct wk_comm){
        .kind = &wk_comm_tcp, .rank = place->rank, .world = place->world, .apart = true
    };
    t->rv = rv;
    t->room = hg_alloc(world * PIECE);
    t->from = hg_alloc_zeroed(world, sizeof *t->from);
    return &t->comm;
}

static struct wk_comm *tcp_open(struct hg_err *err)
{
    struct wk_rendezvous_place place;

    return wk_rendezvous_find(&place, err) < 0 ? NULL
                                               : wk_tcp_open(&place, -1, RENDEZVOUS_LIMIT_S, err);
}

/* ---- One collective, piece by piece ---- */

struct run {
    struct tcp *t;
    const struct wk_comm_op *op;
    size_t size; /* bytes of an element */
    size_t part; /* elements of a rank's part */
    int rank, world;
    struct hg_err *err;
};

static char *at(const struct run *r, void *data, size_t i)
{
    return (char *)data + i * r->size;
}

/* Elements from `first` on that go at once. */
static size_t piece_of(const struct run *r, size_t n, size_t first)
{
    size_t most = PIECE / r->size;

    return n - first < most ? n - first : most;
}

/* n elements of each rank into the room of all. */
static int collect(const struct run *r, const char *own, size_t n)
{
    memcpy(r->t->room + (size_t)r->rank * n * r->size, own, n * r->size);
    return wk_rendezvous_gather(r->t->rv, r->t->room, n * r->size, r->err);
}

static void sum(const struct run *r, void *out, size_t n)
{
    for (int k = 0; k < r->world; k++)
        r->t->from[k] = r->t->room + (size_t)k * n * r->size;
    wk_wire_sum(r->op->type, out, r->t->from, r->world, n);
}

/* n elements of a whole that begins at `whole`, summed to `out` unless that is NULL. */
static int sum_all(const struct run *r, char *whole, void *out, size_t n)
{
    for (size_t first = 0, m; first < n; first += m) {
        m = piece_of(r, n, first);
        if (collect(r, at(r, whole, first), m) < 0)
            return -1;
        if (out)
            sum(r, at(r, out, first), m);
    }
    return 0;
}

static int reduce_scatter(const struct run *r)
{
    for (int k = 0; k < r->world; k++)
        if (sum_all(r, at(r, r->op->whole, (size_t)k * r->part), k == r->rank ? r->op->part : NULL,
                    r->part) < 0)
            return -1;
    return 0;
}

static int all_gather(const struct run *r)
{
    char *own = at(r, r->op->whole, (size_t)r->rank * r->part);

    memmove(own, r->op->part, r->part * r->size);
    return wk_rendezvous_gather(r->t->rv, r->op->whole, r->part * r->size, r->err);
}

static int gather(const struct run *r)
{
    for (size_t first = 0, n; first < r->part; first += n) {
        n = piece_of(r, r->part, first);
        if (collect(r, at(r, r->op->part, first), n) < 0)
            return -1;
        for (int k = 0; r->rank == 0 && k < r->world; k++)
            memcpy(at(r, r->op->whole, (size_t)k * r->part + first),
                   r->t->room + (size_t)k * n * r->size, n * r->size);
    }
    return 0;
}

static int scatter(const struct run *r)
{
    for (int k = 0; k < r->world; k++)
        for (size_t first = 0, n; first < r->part; first += n) {
            n = piece_of(r, r->part, first);
            if (r->rank == 0)
                memcpy(r->t->room, at(r, r->op->whole, (size_t)k * r->part + first), n * r->size);
            if (wk_rendezvous_broadcast(r->t->rv, r->t->room, n * r->size, r->err) < 0)
                return -1;
            if (k == r->rank)
                memcpy(at(r, r->op->part, first), r->t->room, n * r->size);
        }
    return 0;
}

static int tcp_run(struct wk_comm *comm, const struct wk_comm_op *op, const _Atomic bool *waited,
                   struct hg_err *err)
{
    const struct run r = { .t = tcp_of(comm),
                           .op = op,
                           .size = wk_wire_size(op->type),
                           .part = op->n / (size_t)comm->world,
                           .rank = comm->rank,
                           .world = comm->world,
                           .err = err };

    (void)waited;
    switch (op->coll) {
    case WK_COLL_ALL_REDUCE:
        return sum_all(&r, op->whole, op->whole, op->n);
    case WK_COLL_REDUCE:
        return sum_all(&r, op->whole, comm->rank == 0 ? op->whole : NULL, op->n);
    case WK_COLL_BROADCAST:
        return wk_rendezvous_broadcast(r.t->rv, op->whole, op->n * r.size, err);
    case WK_COLL_ALL_GATHER:
        return all_gather(&r);
    case WK_COLL_REDUCE_SCATTER:
        return reduce_scatter(&r);
    case WK_COLL_GATHER:
        return gather(&r);
    default:
        return scatter(&r);
    }
}

static void tcp_barrier(struct wk_comm *comm)
{
    struct hg_err err = HG_ERR_INIT;
    struct tcp *t = tcp_of(comm);

    wk_rendezvous_gather(t->rv, t->room, 1, &err);
}

/* The others see the connections close. */
static __attribute__((noreturn)) void tcp_abort(struct wk_comm *comm, int code)
{
    (void)comm;
    exit(code);
}

const struct wk_comm_kind wk_comm_tcp = {
    .name = "tcp",
    .summary = "ranks over TCP, without MPI",
    .open = tcp_open,
    .close = tcp_close,
    .run = tcp_run,
    .barrier = tcp_barrier,
    .abort = tcp_abort,
};
