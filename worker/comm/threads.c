/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are threads of one process. They share a hub: each shows where its data is, and when
 * all have, each does a part of the work on all ranks' memory, sums in the order of the ranks. Where that memory is a GPU's, each has its
 * own GPU do it: slower than NCCL, but several ranks may share one (HPCGRID_SHARE_GPU). */
#include "comm/threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct wk_hub {
    pthread_mutex_t lock;
    pthread_cond_t news;
    int world, here;      /* ranks that arrived in this round */
    unsigned long rounds; /* rounds that are over */
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
        hg_err_set(err, HG_E_INPUT, "%d devices in one process, allowed are 1 to %d", world,
                   WK_HUB_MAX);
        return NULL;
    }
    hub = hg_alloc_zeroed(1, sizeof *hub);
    hub->shown = hg_alloc_zeroed((size_t)world, sizeof *hub->shown);
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

struct wk_comm *wk_hub_join(struct wk_hub *hub, int rank)
{
    struct member *m = hg_alloc_zeroed(1, sizeof *m);

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
static int rendezvous(struct wk_comm *comm, const struct wk_comm_op *op, struct hg_err *err)
{
    struct wk_hub *hub = hub_of(comm);
    unsigned long round;
    int rc = 0;

    pthread_mutex_lock(&hub->lock);
    if (op)
        hub->shown[comm->rank] = *op;
    round = hub->rounds;
    if (++hub->here == hub->world) {
        hub->here = 0;
        hub->rounds++;
        pthread_cond_broadcast(&hub->news);
    }
    while (hub->rounds == round && !hub->broken)
        pthread_cond_wait(&hub->news, &hub->lock);
    if (hub->rounds == round)
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
            return hg_err_set(err, HG_E_BUG, "rank %d calls %s of %zu elements at the same time", k,
                              wk_coll_names[all[k].coll], all[k].n);
    return 0;
}

static char *at(const struct wk_comm_op *op, void *data, size_t i)
{
    return (char *)data + i * wk_wire_size(op->type);
}

/* Is it in a GPU's memory? */
static bool is_far(const struct wk_comm *comm, const struct wk_comm_op *op)
{
    return op->device && comm->dev && comm->dev->uuid[0];
}

static void copy(struct wk_comm *comm, const struct wk_comm_op *op, void *to, void *from, size_t n)
{
    size_t bytes = n * wk_wire_size(op->type);

    if (to == from || !n)
        return;
    if (is_far(comm, op))
        comm->dev->backend->copy(comm->dev, (struct wk_span){ to, bytes, WK_U8 },
                                 (struct wk_span){ from, bytes, WK_U8 });
    else
        memmove(to, from, bytes);
}

#define FAR_PIECE ((size_t)1 << 20) /* elements that a GPU sums at once */

static int far_sum(struct wk_comm *comm, const struct wk_comm_op *all, size_t first, size_t n,
                   char *out, struct hg_err *err)
{
    struct wk_dev *dev = comm->dev;
    size_t room = n < FAR_PIECE ? n : FAR_PIECE;
    struct wk_span sum = { NULL, room, WK_REAL }, other = sum;

    if (all->type != WK_WIRE_REAL)
        return hg_err_set(err, HG_E_BUG,
                          "ranks that share a GPU can only sum full-precision values");
    sum.data = n ? dev->backend->alloc(dev, 2 * room * sizeof(wk_real)) : NULL;
    if (!n || !sum.data)
        return n ? hg_err_set(err, HG_E_ENV, "out of memory on %s for a sum", dev->name) : 0;
    other.data = (wk_real *)sum.data + room;
    for (size_t done = 0; done < n; done += sum.n) {
        sum.n = other.n = n - done < room ? n - done : room;
        for (int k = 0; k < comm->world; k++) {
            copy(comm, all, k ? other.data : sum.data, at(&all[k], all[k].whole, first + done),
                 sum.n);
            if (k)
                dev->backend->add(dev, sum, other);
        }
        copy(comm, all, at(all, out, done), sum.data, sum.n);
    }
    dev->backend->free(dev, sum.data);
    return 0;
}

/* out = the sum of n elements from `first` on of all wholes. */
static int sum(struct wk_comm *comm, const struct wk_comm_op *all, size_t first, size_t n,
               char *out, struct hg_err *err)
{
    const void *from[WK_HUB_MAX];

    if (is_far(comm, all))
        return far_sum(comm, all, first, n, out, err);
    for (int k = 0; k < comm->world; k++)
        from[k] = at(&all[k], all[k].whole, first);
    wk_wire_sum(all->type, out, from, comm->world, n);
    return 0;
}

/* Each rank sums its slice, for rank 0 and the `copies` after it. */
static int reduce(struct wk_comm *comm, const struct wk_comm_op *all, int copies,
                  struct hg_err *err)
{
    size_t rank = (size_t)comm->rank, world = (size_t)comm->world;
    size_t first = all->n * rank / world, n = all->n * (rank + 1) / world - first;
    char *out = at(all, all->whole, first);
    int rc = sum(comm, all, first, n, out, err);

    for (int k = 1; k <= copies; k++)
        copy(comm, all, at(all, all[k].whole, first), out, n);
    return rc;
}

/* What a rank does once all have shown their data. */
static int act(struct wk_comm *comm, const struct wk_comm_op *all, struct hg_err *err)
{
    const struct wk_comm_op *own = &all[comm->rank];
    size_t n = own->n / (size_t)comm->world, first = n * (size_t)comm->rank;

    switch (own->coll) {
    case WK_COLL_ALL_REDUCE:
        return reduce(comm, all, comm->world - 1, err);
    case WK_COLL_REDUCE:
        return reduce(comm, all, 0, err);
    case WK_COLL_BROADCAST:
        copy(comm, own, own->whole, all[0].whole, own->n);
        break;
    case WK_COLL_ALL_GATHER:
        for (int k = 0; k < comm->world; k++)
            copy(comm, own, at(own, all[k].whole, first), own->part, n);
        break;
    case WK_COLL_GATHER:
        copy(comm, own, at(own, all[0].whole, first), own->part, n);
        break;
    case WK_COLL_REDUCE_SCATTER:
        return sum(comm, all, first, n, own->part, err);
    case WK_COLL_SCATTER:
        copy(comm, own, own->part, at(own, all[0].whole, first), n);
        break;
    case WK_COLLS:
        break;
    }
    return 0;
}

static int threads_run(struct wk_comm *comm, const struct wk_comm_op *op,
                       const _Atomic bool *waited, struct hg_err *err)
{
    struct wk_hub *hub = hub_of(comm);
    struct wk_dev *dev = is_far(comm, op) ? comm->dev : NULL; /* what it does has to be over */

    (void)waited; /* no spinning here */
    if ((dev && dev->backend->sync(dev, err) < 0) || rendezvous(comm, op, err) < 0 ||
        check(comm, op, hub->shown, err) < 0 || act(comm, hub->shown, err) < 0 ||
        (dev && dev->backend->sync(dev, err) < 0))
        return -1;
    return rendezvous(comm, NULL, err);
}

static void threads_close(struct wk_comm *comm)
{
    free(comm);
}

static void threads_barrier(struct wk_comm *comm)
{
    rendezvous(comm, NULL, NULL);
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
