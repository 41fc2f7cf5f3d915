/* SPDX-License-Identifier: Apache-2.0 */
/* A sum is made as a ring makes it, but in the order of the ranks: each rank gets its part of all wholes, adds them up, and sends the sum to
 * all. So a rank writes the bytes of a ring, 2 (N-1)/N of the whole, in two steps instead of 2 (N-1), and sums have the same bits
 * everywhere. A broadcast goes from rank to rank. */
#include "comm/tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "comm/environment.h"

#define RENDEZVOUS_LIMIT_S 120.0 /* for all ranks to come */
#define PIECE ((size_t)1 << 18)  /* bytes for a rank that go at once */

/* What is still to go over one connection, in both directions at the same time. */
struct flow {
    const char *out;
    char *in;
    size_t out_bytes, in_bytes;
};

struct tcp {
    struct wk_comm comm;         /* first */
    struct wk_rendezvous **hubs; /* (world) the k-th connects rank k with the ranks after it */
    struct flow *flows;          /* (world) */
    struct pollfd *polls;        /* (world) */
    char *room;                  /* (world, PIECE) */
    const void **from;           /* (world) what is summed */
};

static struct tcp *tcp_of(struct wk_comm *comm)
{
    return (struct tcp *)comm;
}

static void tcp_close(struct wk_comm *comm)
{
    struct tcp *t = tcp_of(comm);

    for (int k = 0; k < comm->world; k++)
        wk_rendezvous_close(t->hubs[k]);
    free(t->hubs);
    free(t->flows);
    free(t->polls);
    free(t->room);
    free(t->from);
    free(t);
}

/* ---- Every rank connected to every other ---- */

/* Who has the connection to another rank, and under which number. */
static struct wk_rendezvous *hub_to(const struct tcp *t, int other, int *number)
{
    int own = t->comm.rank;

    *number = other > own ? other - own : 0;
    return t->hubs[other > own ? own : other];
}

int wk_tcp_fd(struct wk_comm *comm, int other)
{
    int number;
    struct wk_rendezvous *hub = hub_to(tcp_of(comm), other, &number);

    return other == comm->rank ? -1 : wk_rendezvous_fd(hub, number);
}

/* Over the connections to rank 0: where each rank listens. *fd is this rank's listener, -1 if no ranks come after it. */
static int tell_places(struct tcp *t, struct wk_rendezvous_place *all, int *fd, struct hg_err *err)
{
    int rank = t->comm.rank, last = t->comm.world - 1;

    *fd = rank > 0 && rank < last ? wk_rendezvous_listen(0, &all[rank], err) : -1;
    if (wk_rendezvous_gather(t->hubs[0], all, sizeof *all, err) < 0)
        return -1;
    for (int k = 1; k < last; k++)
        if (!all[k].port && k == rank)
            return -1; /* err says why */
        else if (!all[k].port)
            return hg_err_set(err, HG_E_ENV, "rank %d cannot listen", k);
    return 0;
}

/* The hubs one after the other: rank k's is full before anybody comes to the next. */
static int connect_all(struct tcp *t, const struct wk_rendezvous_place *place, int listener,
                       double limit_s, struct hg_err *err)
{
    int rank = place->rank, world = place->world, fd, rc = -1;
    struct wk_rendezvous_place *all = hg_alloc_zeroed((size_t)world, sizeof *all);

    t->hubs[0] = wk_rendezvous_open(place, listener, limit_s, err);
    if (t->hubs[0])
        rc = tell_places(t, all, &fd, err);
    for (int k = 1; rc == 0 && k <= rank && k < world - 1; k++) {
        all[k].rank = rank - k;
        all[k].world = world - k;
        t->hubs[k] = wk_rendezvous_open(&all[k], k == rank ? fd : -1, limit_s, err);
        if (!t->hubs[k])
            rc = hg_err_wrap(err, "connecting rank %d with those after it, counted from it", k);
    }
    free(all);
    return rc;
}

struct wk_comm *wk_tcp_open(const struct wk_rendezvous_place *place, int listener, double limit_s,
                            struct hg_err *err)
{
    struct tcp *t = hg_alloc_zeroed(1, sizeof *t);
    size_t world = (size_t)place->world;

    t->comm = (struct wk_comm){
        .kind = &wk_comm_tcp, .rank = place->rank, .world = place->world, .apart = true
    };
    t->hubs = hg_alloc_zeroed(world, sizeof *t->hubs);
    t->flows = hg_alloc_zeroed(world, sizeof *t->flows);
    t->polls = hg_alloc_zeroed(world, sizeof *t->polls);
    t->room = hg_alloc(world * PIECE);
    t->from = hg_alloc_zeroed(world, sizeof *t->from);
    if (connect_all(t, place, listener, limit_s, err) == 0)
        return &t->comm;
    tcp_close(&t->comm);
    return NULL;
}

static struct wk_comm *tcp_open(struct hg_err *err)
{
    struct wk_rendezvous_place place;

    return wk_rendezvous_find(&place, err) < 0 ? NULL
                                               : wk_tcp_open(&place, -1, RENDEZVOUS_LIMIT_S, err);
}

/* ---- All connections at once ---- */

static bool is_over_now(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static int lose(const struct tcp *t, int other, ssize_t n, struct hg_err *err)
{
    const char *why = strerror(n == 0 ? ECONNRESET : errno), *host;
    int number, pid;
    struct wk_rendezvous *hub = hub_to(t, other, &number);

    host = wk_rendezvous_host(hub, number, &pid);
    return hg_err_set(err, HG_E_ENV, "rank %d on %s (pid %d) is gone: %s", other, host, pid, why);
}

/* What can go now, to and from one rank. */
static int move(struct tcp *t, int other, struct hg_err *err)
{
    struct flow *f = &t->flows[other];
    int fd = wk_tcp_fd(&t->comm, other);
    ssize_t n = 1;

    while (f->out_bytes && (n = send(fd, f->out, f->out_bytes, MSG_NOSIGNAL)) > 0) {
        f->out += n;
        f->out_bytes -= (size_t)n;
        t->comm.sent_bytes += (uint64_t)n;
    }
    if (f->out_bytes && !is_over_now(n))
        return lose(t, other, n, err);
    while (f->in_bytes && (n = recv(fd, f->in, f->in_bytes, 0)) > 0) {
        f->in += n;
        f->in_bytes -= (size_t)n;
    }
    return f->in_bytes && !is_over_now(n) ? lose(t, other, n, err) : 0;
}

/* Until the flows are empty. It may wait for ever: comm/heartbeat.h detects ranks that are dead or stopped. */
static int exchange(struct tcp *t, struct hg_err *err)
{
    for (;;) {
        nfds_t busy = 0;

        for (int k = 0; k < t->comm.world; k++) {
            const struct flow *f = &t->flows[k];

            if ((f->out_bytes || f->in_bytes) && move(t, k, err) < 0)
                return -1;
            if (f->out_bytes || f->in_bytes)
                t->polls[busy++] = (struct pollfd){ .fd = wk_tcp_fd(&t->comm, k),
                                                    .events = (short)((f->out_bytes ? POLLOUT : 0) |
                                                                      (f->in_bytes ? POLLIN : 0)) };
        }
        if (!busy)
            return 0;
        if (poll(t->polls, busy, -1) < 0 && errno != EINTR)
            return hg_err_sys(err, "poll");
    }
}

/* ---- One collective ---- */

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

/* n elements to a rank, and from it; nothing to oneself. */
static void send_to(const struct run *r, int other, const char *data, size_t n)
{
    if (other == r->rank)
        return;
    r->t->flows[other].out = data;
    r->t->flows[other].out_bytes = n * r->size;
}

static void take_from(const struct run *r, int other, char *data, size_t n)
{
    if (other == r->rank)
        return;
    r->t->flows[other].in = data;
    r->t->flows[other].in_bytes = n * r->size;
}

static char *room_of(const struct run *r, int rank)
{
    return r->t->room + (size_t)rank * PIECE;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* out = this rank's n elements plus those in the room, in the order of the ranks. */
static void sum(const struct run *r, const char *own, void *out, size_t n)
{
    for (int k = 0; k < r->world; k++)
        r->t->from[k] = k == r->rank ? own : room_of(r, k);
    wk_wire_sum(r->op->type, out, r->t->from, r->world, n);
}

/* n elements, of which a rank's share is at most one piece. */
static int all_reduce_pieces(const struct run *r, char *data, size_t n)
{
    size_t world = (size_t)r->world, first = n * (size_t)r->rank / world;
    size_t own = n * ((size_t)r->rank + 1) / world - first;

    for (size_t k = 0; k < world; k++) {
        send_to(r, (int)k, at(r, data, n * k / world), n * (k + 1) / world - n * k / world);
        take_from(r, (int)k, room_of(r, (int)k), own);
    }
    if (exchange(r->t, r->err) < 0)
        return -1;
    sum(r, at(r, data, first), at(r, data, first), own);
    for (size_t k = 0; k < world; k++) {
        send_to(r, (int)k, at(r, data, first), own);
        take_from(r, (int)k, at(r, data, n * k / world), n * (k + 1) / world - n * k / world);
    }
    return exchange(r->t, r->err);
}

static int all_reduce(const struct run *r)
{
    size_t most = PIECE / r->size * (size_t)r->world;

    for (size_t first = 0; first < r->op->n; first += most)
        if (all_reduce_pieces(r, at(r, r->op->whole, first), least(r->op->n - first, most)) < 0)
            return -1;
    return 0;
}

static int reduce_scatter(const struct run *r)
{
    for (size_t first = 0, n; first < r->part; first += n) {
        n = least(r->part - first, PIECE / r->size);
        for (int k = 0; k < r->world; k++) {
            send_to(r, k, at(r, r->op->whole, (size_t)k * r->part + first), n);
            take_from(r, k, room_of(r, k), n);
        }
        if (exchange(r->t, r->err) < 0)
            return -1;
        sum(r, at(r, r->op->whole, (size_t)r->rank * r->part + first), at(r, r->op->part, first),
            n);
    }
    return 0;
}

static int reduce(const struct run *r)
{
    for (size_t first = 0, n; first < r->op->n; first += n) {
        n = least(r->op->n - first, PIECE / r->size);
        if (r->rank > 0)
            send_to(r, 0, at(r, r->op->whole, first), n);
        for (int k = 1; r->rank == 0 && k < r->world; k++)
            take_from(r, k, room_of(r, k), n);
        if (exchange(r->t, r->err) < 0)
            return -1;
        if (r->rank == 0)
            sum(r, at(r, r->op->whole, first), at(r, r->op->whole, first), n);
    }
    return 0;
}

/* A rank sends on what it has while it takes the next piece. */
static int broadcast(const struct run *r)
{
    size_t have = r->rank == 0 ? r->op->n : 0, sent = 0, n, most = PIECE / r->size;
    bool is_last = r->rank + 1 == r->world;

    while (have < r->op->n || (!is_last && sent < r->op->n)) {
        n = least(r->op->n - have, most);
        if (n)
            take_from(r, r->rank - 1, at(r, r->op->whole, have), n);
        if (!is_last)
            send_to(r, r->rank + 1, at(r, r->op->whole, sent), have - sent);
        if (exchange(r->t, r->err) < 0)
            return -1;
        sent = have;
        have += n;
    }
    return 0;
}

static int all_gather(const struct run *r)
{
    memmove(at(r, r->op->whole, (size_t)r->rank * r->part), r->op->part, r->part * r->size);
    for (int k = 0; k < r->world; k++) {
        send_to(r, k, r->op->part, r->part);
        take_from(r, k, at(r, r->op->whole, (size_t)k * r->part), r->part);
    }
    return exchange(r->t, r->err);
}

static int gather(const struct run *r)
{
    if (r->rank > 0)
        send_to(r, 0, r->op->part, r->part);
    else
        memmove(r->op->whole, r->op->part, r->part * r->size);
    for (int k = 1; r->rank == 0 && k < r->world; k++)
        take_from(r, k, at(r, r->op->whole, (size_t)k * r->part), r->part);
    return exchange(r->t, r->err);
}

static int scatter(const struct run *r)
{
    if (r->rank > 0)
        take_from(r, 0, r->op->part, r->part);
    else
        memmove(r->op->part, r->op->whole, r->part * r->size);
    for (int k = 1; r->rank == 0 && k < r->world; k++)
        send_to(r, k, at(r, r->op->whole, (size_t)k * r->part), r->part);
    return exchange(r->t, r->err);
}

static int tcp_run(struct wk_comm *comm, const struct wk_comm_op *op, const _Atomic bool *waited,
                   struct hg_err *err)
{
    static int (*const runs[WK_COLLS])(const struct run *) = {
        [WK_COLL_ALL_REDUCE] = all_reduce, [WK_COLL_BROADCAST] = broadcast,
        [WK_COLL_ALL_GATHER] = all_gather, [WK_COLL_REDUCE_SCATTER] = reduce_scatter,
        [WK_COLL_REDUCE] = reduce,         [WK_COLL_SCATTER] = scatter,
        [WK_COLL_GATHER] = gather,
    };
    const struct run r = { .t = tcp_of(comm),
                           .op = op,
                           .size = wk_wire_size(op->type),
                           .part = op->n / (size_t)comm->world,
                           .rank = comm->rank,
                           .world = comm->world,
                           .err = err };

    (void)waited;
    return runs[op->coll](&r);
}

static void tcp_barrier(struct wk_comm *comm)
{
    struct hg_err err = HG_ERR_INIT;
    char *room = tcp_of(comm)->room;
    const struct wk_comm_op op = { .coll = WK_COLL_ALL_GATHER,
                                   .type = WK_WIRE_BYTE,
                                   .whole = room,
                                   .part = room + comm->rank,
                                   .n = (size_t)comm->world };

    tcp_run(comm, &op, NULL, &err);
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
