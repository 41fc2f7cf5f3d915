/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are threads of one process. They meet at a hub: each shows where its data is, and when
 * all have, each does a part of the work on everybody's memory, sums in the order of the ranks. */
#include "comm/comm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct wk_hub {
    pthread_mutex_t lock;
    pthread_cond_t news;
    int world, here;   /* ranks that came to the meeting */
    unsigned long met; /* meetings that are over */
    bool broken;
    int broken_by;
    struct wk_comm_op *shown; /* (world) */
};

struct member {
    struct wk_comm comm; /* first */
    struct wk_hub *hub;
};

struct wk_hub *wk_hub_create(int world, struct hg_err *err)
{
    struct wk_hub *hub;

    if (world < 1 || world > WK_HUB_MAX) {
        hg_err_set(err, HG_E_INPUT, "%d devices in one process; it can drive 1 to %d", world,
                   WK_HUB_MAX);
        return NULL;
    }
    hub = calloc(1, sizeof *hub);
    if (hub)
        hub->shown = calloc((size_t)world, sizeof *hub->shown);
    if (!hub || !hub->shown) {
        free(hub);
        hg_err_oom(err);
        return NULL;
    }
    hub->world = world;
    pthread_mutex_init(&hub->lock, NULL);
    pthread_cond_init(&hub->news, NULL);
    return hub;
}

void wk_hub_free(struct wk_hub *hub)
{
    if (!hub)
        return;
    pthread_cond_destroy(&hub->news);
    pthread_mutex_destroy(&hub->lock);
    free(hub->shown);
    free(hub);
}

void wk_hub_break(struct wk_hub *hub, int rank)
{
    pthread_mutex_lock(&hub->lock);
    if (!hub->broken)
        hub->broken_by = rank;
    hub->broken = true;
    pthread_cond_broadcast(&hub->news);
    pthread_mutex_unlock(&hub->lock);
}

struct wk_comm *wk_hub_join(struct wk_hub *hub, int rank, struct hg_err *err)
{
    struct member *m = calloc(1, sizeof *m);

    if (!m) {
        hg_err_oom(err);
        return NULL;
    }
    m->comm = (struct wk_comm){
        .kind = &wk_comm_threads, .rank = rank, .world = hub->world, .apart = hub->world > 1
    };
    m->hub = hub;
    return &m->comm;
}

static struct wk_hub *hub_of(struct wk_comm *comm)
{
    return ((struct member *)comm)->hub;
}

/* Wait until all ranks are here. */
static int meet(struct wk_comm *comm, const struct wk_comm_op *op, struct hg_err *err)
{
    struct wk_hub *hub = hub_of(comm);
    unsigned long meeting;
    int rc = 0;

    pthread_mutex_lock(&hub->lock);
    if (op)
        hub->shown[comm->rank] = *op;
    meeting = hub->met;
    if (++hub->here == hub->world) {
        hub->here = 0;
        hub->met++;
        pthread_cond_broadcast(&hub->news);
    }
    while (hub->met == meeting && !hub->broken)
        pthread_cond_wait(&hub->news, &hub->lock);
    if (hub->met == meeting)
        rc = hg_err_set(err, HG_E_ENV, "rank %d ended", hub->broken_by);
    pthread_mutex_unlock(&hub->lock);
    return rc;
}

/* All ranks must mean the same collective: another order on one of them would mix up data. */
static int check(const struct wk_comm *comm, const struct wk_comm_op *op,
                 const struct wk_comm_op *all, struct hg_err *err)
{
    for (int k = 0; k < comm->world; k++)
        if (all[k].coll != op->coll || all[k].n != op->n || all[k].type != op->type)
            return hg_err_set(err, HG_E_BUG, "rank %d calls %s of %zu elements meanwhile", k,
                              wk_coll_names[all[k].coll], all[k].n);
    return 0;
}

static char *at(const struct wk_comm_op *op, void *data, size_t i)
{
    return (char *)data + i * wk_wire_size(op->type);
}

/* out = the sum of n elements from `first` on of all wholes. */
static void sum(const struct wk_comm_op *all, int world, size_t first, size_t n, void *out)
{
    const void *from[WK_HUB_MAX];

    for (int k = 0; k < world; k++)
        from[k] = at(&all[k], all[k].whole, first);
    wk_wire_sum(all->type, out, from, world, n);
}

/* Each rank sums its slice, for rank 0 and the `copies` after it. */
static void reduce(int rank, int world, const struct wk_comm_op *all, int copies)
{
    size_t first = all->n * (size_t)rank / (size_t)world;
    size_t n = all->n * ((size_t)rank + 1) / (size_t)world - first;
    char *out = at(all, all->whole, first);

    sum(all, world, first, n, out);
    for (int k = 1; k <= copies; k++)
        memcpy(at(all, all[k].whole, first), out, n * wk_wire_size(all->type));
}

static void copy(const struct wk_comm_op *op, void *to, const void *from, size_t n)
{
    if (to != from && n)
        memmove(to, from, n * wk_wire_size(op->type));
}

/* What a rank does once all have shown their data. */
static void act(int rank, int world, const struct wk_comm_op *all)
{
    const struct wk_comm_op *own = &all[rank];
    size_t n = own->n / (size_t)world, first = n * (size_t)rank;

    switch (own->coll) {
    case WK_COLL_ALL_REDUCE:
        reduce(rank, world, all, world - 1);
        break;
    case WK_COLL_REDUCE:
        reduce(rank, world, all, 0);
        break;
    case WK_COLL_BROADCAST:
        copy(own, own->whole, all[0].whole, own->n);
        break;
    case WK_COLL_ALL_GATHER:
        for (int k = 0; k < world; k++)
            copy(own, at(own, all[k].whole, first), own->part, n);
        break;
    case WK_COLL_GATHER:
        copy(own, at(own, all[0].whole, first), own->part, n);
        break;
    case WK_COLL_REDUCE_SCATTER:
        sum(all, world, first, n, own->part);
        break;
    case WK_COLL_SCATTER:
        copy(own, own->part, at(own, all[0].whole, first), n);
        break;
    case WK_COLLS:
        break;
    }
}

static int threads_run(struct wk_comm *comm, const struct wk_comm_op *op,
                       const _Atomic bool *waited, struct hg_err *err)
{
    struct wk_hub *hub = hub_of(comm);

    (void)waited; /* nobody spins here */
    if (meet(comm, op, err) < 0 || check(comm, op, hub->shown, err) < 0)
        return -1;
    act(comm->rank, comm->world, hub->shown);
    return meet(comm, NULL, err);
}

static void threads_close(struct wk_comm *comm)
{
    free(comm);
}

static void threads_barrier(struct wk_comm *comm)
{
    meet(comm, NULL, NULL);
}

static __attribute__((noreturn)) void threads_abort(struct wk_comm *comm, int code)
{
    wk_hub_break(hub_of(comm), comm->rank);
    exit(code);
}

const struct wk_comm_kind wk_comm_threads = {
    .name = "threads",
    .summary = "devices of one process, a thread each",
    .close = threads_close,
    .run = threads_run,
    .barrier = threads_barrier,
    .abort = threads_abort,
};
