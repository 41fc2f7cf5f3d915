/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/comm.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/half.h"
#include "base/clock.h"
#include "base/vec.h"
#include "comm/nccl.h"
#include "comm/queue.h"
#include "comm/tcp.h"

const char *const wk_coll_names[WK_COLLS] = { "all_reduce",     "broadcast", "all_gather",
                                              "reduce_scatter", "reduce",    "scatter",
                                              "gather" };

/* A variable's value as a count from 0; -1 if it is absent or no number. */
static int env_int(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long v = text ? strtol(text, &end, 10) : -1;

    return text && *text && *end == '\0' && v >= 0 && v <= INT_MAX ? (int)v : -1;
}

void wk_comm_environment(int *rank, int *world)
{
    /* mpirun inside a Slurm step has the last word. Else the largest claim counts: a WORLD_SIZE
     * that somebody exported must not hide that srun started several processes. */
    bool mpirun = env_int("OMPI_COMM_WORLD_SIZE") > 0;
    int told = env_int("WORLD_SIZE"), step = env_int("SLURM_STEP_NUM_TASKS");

    *world = mpirun ? env_int("OMPI_COMM_WORLD_SIZE") : told > step ? told : step;
    *rank = mpirun ? env_int("OMPI_COMM_WORLD_RANK") : env_int("RANK");
    if (*rank < 0)
        *rank = env_int("SLURM_PROCID");
    if (*rank < 0)
        *rank = 0;
    if (*world < 1)
        *world = 1;
}

int wk_comm_local_rank(void)
{
    static const char *const names[] = { "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                         "SLURM_LOCALID" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (env_int(names[i]) >= 0)
            return env_int(names[i]);
    return 0;
}

static int wrong_world(const struct wk_comm *comm, int told, struct hg_err *err)
{
    hg_err_set(err, HG_E_ENV,
               "%d processes were started, but MPI sees a world of %d: each would train alone",
               told, comm->world);
    if (getenv("SLURM_STEP_NUM_TASKS"))
        return hg_err_hint(
            err, "srun must start MPI ranks: `srun --mpi=pmix` (srun --mpi=list shows what "
                 "the site has), or set the site's \"launcher\"; without PMIx HPCGRID_COMM=tcp "
                 "(site's \"env\") does without MPI");
    return hg_err_hint(err, "start the ranks with mpirun or with `srun --mpi=pmix`");
}

/* How several ranks talk. */
static const struct wk_comm_kind *kind_of(struct hg_err *err)
{
    static const struct wk_comm_kind *const kinds[] = { &wk_comm_mpi, &wk_comm_tcp };
    const char *name = getenv("HPCGRID_COMM");

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!name || !*name || strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    hg_err_set(err, HG_E_ENV, "HPCGRID_COMM is \"%s\": ranks know no such way to talk", name);
    hg_err_hint(err, "mpi (also where it is not set), or tcp");
    return NULL;
}

struct wk_comm *wk_comm_open(struct hg_err *err)
{
    int rank, told;
    const struct wk_comm_kind *kind;
    struct wk_comm *comm;

    wk_comm_environment(&rank, &told);
    kind = told > 1 ? kind_of(err) : &wk_comm_self;
    comm = kind ? kind->open(err) : NULL;
    if (comm && told > 1 && comm->world != told) {
        wrong_world(comm, told, err);
        wk_comm_close(comm);
        return NULL;
    }
    return comm;
}

void wk_comm_close(struct wk_comm *comm)
{
    if (!comm)
        return;
    wk_heartbeat_stop(comm->heartbeat);
    wk_queue_close(comm->queue);
    comm->queue = NULL;
    HG_VEC_DONE(&comm->records);
    comm->kind->close(comm);
}

static const struct {
    const char *backend;
    int (*attach)(struct wk_comm *comm, struct wk_dev *dev, struct hg_err *err);
    void (*describe)(struct hg_buf *out);
} ways[] = {
#ifdef WK_CUDA
    { "cuda", wk_nccl_attach, wk_nccl_describe },
#endif
    { NULL, NULL, NULL },
};

void wk_comm_describe(struct hg_buf *out)
{
    wk_comm_mpi.describe(out);
    for (int i = 0; ways[i].backend; i++)
        ways[i].describe(out);
}

int wk_comm_join(struct wk_comm *comm, struct wk_dev *dev, struct hg_err *err)
{
    bool share = comm->kind == &wk_comm_threads && getenv("HPCGRID_SHARE_GPU");

    comm->dev = dev;
    if (dev->uuid[0] && comm->kind == &wk_comm_threads)
        comm->apart = false; /* a GPU's work comes from the thread that opened it */
    for (int i = 0; ways[i].backend && !share; i++)
        if (strcmp(ways[i].backend, dev->backend->name) == 0 &&
            (comm->world > 1 || getenv("HPCGRID_JOIN_ALONE")))
            return ways[i].attach(comm, dev, err);
    return 0;
}

void wk_comm_leave(struct wk_comm *comm)
{
    if (comm->kind && comm->kind->detach)
        comm->kind->detach(comm);
    comm->dev = NULL;
}

double wk_ring_bytes(enum wk_coll coll, double payload_bytes, int world)
{
    double others = (world - 1.0) / world;

    switch (coll) {
    case WK_COLL_ALL_REDUCE:
        return 2 * others * payload_bytes;
    case WK_COLL_BROADCAST:
    case WK_COLL_REDUCE:
        return world > 1 ? payload_bytes : 0;
    default:
        return others * payload_bytes;
    }
}

size_t wk_wire_size(enum wk_wire type)
{
    static const size_t sizes[] = { sizeof(wk_real), sizeof(double), 1, 2 };

    return sizes[type];
}

#define BLOCK 1024 /* elements whose sum stays in the cache */

#define SUM(real)                                                  \
    for (size_t at = 0; at < n; at += BLOCK) {                     \
        size_t m = n - at < BLOCK ? n - at : BLOCK;                \
        real sum[BLOCK];                                           \
                                                                   \
        memcpy(sum, (const real *)from[0] + at, m * sizeof(real)); \
        for (int k = 1; k < world; k++)                            \
            for (size_t i = 0; i < m; i++)                         \
                sum[i] += ((const real *)from[k])[at + i];         \
        memcpy((real *)out + at, sum, m * sizeof(real));           \
    }

static void sum_bf16(uint16_t *out, const void *const *from, int world, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float sum = 0;

        for (int k = 0; k < world; k++)
            sum += wk_bf16_decode(((const uint16_t *)from[k])[i]);
        out[i] = wk_bf16_encode(sum);
    }
}

void wk_wire_sum(enum wk_wire type, void *out, const void *const *from, int world, size_t n)
{
    if (type == WK_WIRE_BF16)
        sum_bf16(out, from, world, n);
    else if (type == WK_WIRE_F64)
        SUM(double)
    else
        SUM(wk_real)
}

/* ---- The one place that every collective passes ---- */

static void sleep_s(double seconds)
{
    struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

    while (nanosleep(&t, &t) < 0)
        continue;
}

/* The time that a slow link would take, for tests. */
static void be_slow(const struct wk_comm *comm, const struct wk_comm_op *op)
{
    double bytes = wk_ring_bytes(op->coll, (double)(op->n * wk_wire_size(op->type)), comm->world);

    if (op->plane != WK_PLANE_TRAIN || comm->world == 1)
        return;
    if (comm->link_latency_s > 0)
        sleep_s(comm->link_latency_s);
    if (comm->link_bytes_per_s > 0)
        sleep_s(bytes / comm->link_bytes_per_s);
}

static void run_request(struct wk_comm *comm, struct wk_request *r, const _Atomic bool *waited)
{
    r->start_s = hg_clock_mono_s();
    wk_heartbeat_enter(comm->heartbeat, wk_coll_names[r->op.coll]);
    if (r->op.n && comm->kind->run(comm, &r->op, waited, &r->error) < 0)
        hg_err_wrap(&r->error, "%s of %zu bytes, rank %d of %d", wk_coll_names[r->op.coll],
                    r->op.n * wk_wire_size(r->op.type), comm->rank, comm->world);
    be_slow(comm, &r->op);
    wk_heartbeat_leave(comm->heartbeat);
    r->end_s = hg_clock_mono_s();
}

/* Take a collective that is over into the books. */
static int settle(struct wk_comm *comm, const struct wk_request *r, struct hg_err *err)
{
    struct wk_comm_count *count = &comm->counts[r->op.plane][r->op.coll];

    count->seconds += r->end_s - r->start_s;
    count->exposed_s += r->exposed_s;
    if (comm->recording)
        *HG_VEC_PUSH(&comm->records) = (struct wk_comm_record){ .step = r->step,
                                                                .coll = r->op.coll,
                                                                .plane = r->op.plane,
                                                                .type = r->op.type,
                                                                .n = r->op.n,
                                                                .stream = r->apart,
                                                                .start_s = r->start_s,
                                                                .end_s = r->end_s,
                                                                .exposed_s = r->exposed_s,
                                                                .asked = r->asked,
                                                                .claimed = comm->work };
    if (!r->error.code)
        return 0;
    if (err && !err->code)
        *err = r->error;
    return -1;
}

static int settle_until(struct wk_comm *comm, long ticket, struct hg_err *err)
{
    int rc = 0;

    while (comm->settled < ticket) {
        struct wk_request r;

        wk_queue_pop(comm->queue, &r);
        comm->settled++;
        if (settle(comm, &r, err) < 0)
            rc = -1;
    }
    return rc;
}

/* The device waits for it, not the rank. */
static int start_on_stream(struct wk_comm *comm, const struct wk_comm_op *op, struct hg_err *err)
{
    int rc;

    wk_heartbeat_enter(comm->heartbeat, wk_coll_names[op->coll]);
    rc = comm->kind->start(comm, op, ++comm->started, err);
    wk_heartbeat_leave(comm->heartbeat);
    return rc;
}

/* `now`: the caller waits for it at once. */
static int start(struct wk_comm *comm, const struct wk_comm_op *op, bool now, struct hg_err *err)
{
    static const _Atomic bool waited = true;
    struct wk_request r = {
        .op = *op, .step = comm->step, .asked = comm->work, .error = HG_ERR_INIT
    };
    struct wk_comm_count *count = &comm->counts[op->plane][op->coll];
    size_t bytes = op->n * wk_wire_size(op->type);

    count->calls++;
    count->payload_bytes += bytes;
    count->ring_bytes += wk_ring_bytes(op->coll, (double)bytes, comm->world);
    if (op->device && comm->kind->start)
        return start_on_stream(comm, op, err);
    if (!comm->apart || (now && (!comm->queue || wk_queue_idle(comm->queue)))) {
        run_request(comm, &r, &waited);
        r.exposed_s = r.end_s - r.start_s;
        return settle(comm, &r, err);
    }
    if (!comm->queue && !(comm->queue = wk_queue_open(comm, run_request, err)))
        return -1;
    if (wk_queue_full(comm->queue) && settle_until(comm, comm->settled + 1, err) < 0)
        return -1;
    r.apart = true;
    comm->started++;
    wk_queue_push(comm->queue, &r);
    return 0;
}

static enum wk_wire wire_of(enum wk_type type)
{
    return type == WK_REAL ? WK_WIRE_REAL : type == WK_BF16 ? WK_WIRE_BF16 : WK_WIRE_BYTE;
}

static int op_of(const struct wk_comm *comm, enum wk_plane plane, enum wk_coll coll,
                 struct wk_span whole, struct wk_span part, struct wk_comm_op *op,
                 struct hg_err *err)
{
    bool parts = coll != WK_COLL_ALL_REDUCE && coll != WK_COLL_REDUCE && coll != WK_COLL_BROADCAST;
    struct wk_span all = whole.data ? whole : part;
    size_t n = whole.data ? whole.n : part.n * (size_t)comm->world;

    if ((wk_comm_sums(coll) && all.type != WK_REAL && all.type != WK_BF16) ||
        (parts && n % (size_t)comm->world != 0) || (part.data && part.n * (size_t)comm->world != n))
        return hg_err_set(err, HG_E_BUG, "%s of %zu %s", wk_coll_names[coll], n,
                          wk_type_name(all.type));
    *op = (struct wk_comm_op){ .coll = coll,
                               .plane = plane,
                               .type = wire_of(all.type),
                               .device = true,
                               .whole = whole.data,
                               .part = part.data,
                               .n = n * wk_type_size(all.type) / wk_wire_size(wire_of(all.type)) };
    if (parts && !op->part)
        op->part = (char *)whole.data +
                   (size_t)comm->rank * (n / (size_t)comm->world) * wk_type_size(all.type);
    return 0;
}

int wk_comm_start(struct wk_comm *comm, enum wk_plane plane, enum wk_coll coll,
                  struct wk_span whole, struct wk_span part, long *ticket, struct hg_err *err)
{
    struct wk_comm_op op;

    if (op_of(comm, plane, coll, whole, part, &op, err) < 0 || start(comm, &op, false, err) < 0)
        return -1;
    *ticket = comm->started;
    return 0;
}

int wk_comm_wait(struct wk_comm *comm, long ticket, struct hg_err *err)
{
    if (comm->settled >= ticket)
        return 0;
    if (!comm->kind->wait)
        return settle_until(comm, ticket, err);
    comm->settled = ticket;
    return comm->kind->wait(comm, ticket, err);
}

static int run_now(struct wk_comm *comm, const struct wk_comm_op *op, struct hg_err *err)
{
    return start(comm, op, true, err) < 0 ? -1 : wk_comm_wait(comm, comm->started, err);
}

int wk_comm_run(struct wk_comm *comm, enum wk_plane plane, enum wk_coll coll, struct wk_span whole,
                struct hg_err *err)
{
    struct wk_comm_op op;

    return op_of(comm, plane, coll, whole, WK_NONE, &op, err) < 0 ? -1 : run_now(comm, &op, err);
}

int wk_comm_sum(struct wk_comm *comm, double *values, size_t n, struct hg_err *err)
{
    const struct wk_comm_op op = { .coll = WK_COLL_ALL_REDUCE,
                                   .plane = WK_PLANE_CONTROL,
                                   .type = WK_WIRE_F64,
                                   .whole = values,
                                   .n = n };

    return run_now(comm, &op, err);
}

int wk_comm_gather(struct wk_comm *comm, void *all, size_t bytes, struct hg_err *err)
{
    const struct wk_comm_op op = { .coll = WK_COLL_ALL_GATHER,
                                   .plane = WK_PLANE_CONTROL,
                                   .type = WK_WIRE_BYTE,
                                   .whole = all,
                                   .part = (char *)all + (size_t)comm->rank * bytes,
                                   .n = bytes * (size_t)comm->world };

    return run_now(comm, &op, err);
}

void wk_comm_barrier(struct wk_comm *comm)
{
    wk_comm_wait(comm, comm->started, NULL);
    wk_heartbeat_enter(comm->heartbeat, "barrier");
    comm->kind->barrier(comm);
    wk_heartbeat_leave(comm->heartbeat);
}
