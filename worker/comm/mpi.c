/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of an MPI job. Errors come back as codes, so that a failed collective is reported with its
 * place.
 *
 * Sums are made here, not by MPI: every rank gets the pieces of the elements that it is to sum, adds
 * them up in the order of the ranks, and sends the sums on where all need them. That is what a ring
 * sends, 2 (N-1)/N of the buffer, and the same numbers give the same bits in every collective.
 *
 * Collectives are started without blocking and then polled: while the rank computes, this thread
 * sleeps between polls and leaves the core to it. */
#include "comm/transports.h"

#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"

struct mpi {
    struct wk_comm comm; /* first */
    char *scratch;       /* pieces of other ranks */
    size_t scratch_bytes;
    int *ints;         /* counts and places, four lists of a number for each rank */
    const void **from; /* (world) what is summed */
};

static struct mpi *mpi_of(struct wk_comm *comm)
{
    return (struct mpi *)comm;
}

static int mpi_failed(int code, const char *what, struct hg_err *err)
{
    char text[MPI_MAX_ERROR_STRING];
    int n = 0;

    MPI_Error_string(code, text, &n);
    return hg_err_set(err, HG_E_ENV, "%s: %.*s", what, n, text);
}

/* Open MPI 4 would end the process inside MPI_Init, with a page about how it was built; 5 would come up with a world of 1. Slurm's own PMI
 * leaves no trace in the environment: other libraries use it, and so may an Open MPI that was built for it, by HPCGRID_COMM=mpi. */
static bool is_without_pmi(void)
{
#ifdef OPEN_MPI
    static const char *const traces[] = { "PMIX_NAMESPACE", "PMI_RANK", "PMI_FD",
                                          "OMPI_COMM_WORLD_SIZE", "HPCGRID_COMM" };

    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++)
        if (getenv(traces[i]))
            return false;
    return getenv("SLURM_STEP_NUM_TASKS") != NULL;
#else
    return false;
#endif
}

static struct wk_comm *mpi_open(struct hg_err *err)
{
    struct mpi *m;
    int ready = 0, level = MPI_THREAD_FUNNELED, code = MPI_SUCCESS;

    MPI_Initialized(&ready);
    if (!ready && is_without_pmi()) {
        hg_err_set(err, HG_E_ENV,
                   "srun started the ranks without PMIx (MpiDefault of this cluster)");
        return NULL;
    }
    if (ready)
        MPI_Query_thread(&level);
    else
        code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    if (code != MPI_SUCCESS) {
        mpi_failed(code, "MPI_Init_thread", err);
        return NULL;
    }
    m = hg_alloc_zeroed(1, sizeof *m);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &m->comm.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &m->comm.world);
    m->comm.kind = &wk_comm_mpi;
    m->comm.apart = m->comm.world > 1 && level >= MPI_THREAD_SERIALIZED;
    m->ints = hg_alloc_zeroed(4 * (size_t)m->comm.world, sizeof *m->ints);
    m->from = hg_alloc_zeroed((size_t)m->comm.world, sizeof *m->from);
    return &m->comm;
}

static void mpi_close(struct wk_comm *comm)
{
    int done = 0;

    MPI_Finalized(&done);
    if (!done)
        MPI_Finalize();
    free(mpi_of(comm)->scratch);
    free(mpi_of(comm)->ints);
    free(mpi_of(comm)->from);
    free(comm);
}

/* ---- One collective ---- */

struct run {
    struct mpi *m;
    const struct wk_comm_op *op;
    const _Atomic bool *waited;
    MPI_Datatype type;
    size_t size; /* bytes of an element */
    int rank, world;
};

#define SPIN 100      /* polls before the core is yielded */
#define NAP_NS 20000L /* between polls while the rank computes */

static int finish(const struct run *r, int code, MPI_Request *request)
{
    int done = 0;

    for (int i = 0; code == MPI_SUCCESS && !done; i++) {
        code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done || code != MPI_SUCCESS || i < SPIN)
            continue;
        if (atomic_load(r->waited))
            sched_yield();
        else
            nanosleep(&(struct timespec){ 0, NAP_NS }, NULL);
    }
    return code;
}

#define FINISH(r, call)                        \
    do {                                       \
        MPI_Request request;                   \
        int code_ = finish(r, call, &request); \
                                               \
        if (code_ != MPI_SUCCESS)              \
            return code_;                      \
    } while (0)

static char *at(const struct run *r, void *data, size_t i)
{
    return data ? (char *)data + i * r->size : NULL;
}

/* Pieces bound the memory that a sum takes, and MPI counts in int. */
#define PIECE ((size_t)1 << 20)

/* Below so many elements one message to everybody is faster than two rounds of parts. */
#define SMALL 2048

static void sum(const struct run *r, void *out, size_t stride, size_t n)
{
    const void **from = r->m->from;

    for (int k = 0; k < r->world; k++)
        from[k] = r->m->scratch + (size_t)k * stride * r->size;
    wk_wire_sum(r->op->type, out, from, r->world, n);
}

/* Everybody gets everything, and sums it. */
static int all_reduce_small(const struct run *r, void *data, size_t n)
{
    FINISH(r, MPI_Iallgather(data, (int)n, r->type, r->m->scratch, (int)n, r->type, MPI_COMM_WORLD,
                             &request));
    sum(r, data, n, n);
    return MPI_SUCCESS;
}

static int all_reduce_piece(const struct run *r, char *data, size_t n)
{
    int *counts = r->m->ints, *places = counts + r->world;
    int *own = places + r->world, *own_places = own + r->world;

    for (int k = 0; k < r->world; k++) {
        places[k] = (int)(n * (size_t)k / (size_t)r->world);
        counts[k] = (int)(n * ((size_t)k + 1) / (size_t)r->world) - places[k];
    }
    for (int k = 0; k < r->world; k++) {
        own[k] = counts[r->rank];
        own_places[k] = k * own[k];
    }
    FINISH(r, MPI_Ialltoallv(data, counts, places, r->type, r->m->scratch, own, own_places, r->type,
                             MPI_COMM_WORLD, &request));
    sum(r, at(r, data, (size_t)places[r->rank]), (size_t)own[0], (size_t)own[0]);
    FINISH(r, MPI_Iallgatherv(MPI_IN_PLACE, 0, r->type, data, counts, places, r->type,
                              MPI_COMM_WORLD, &request));
    return MPI_SUCCESS;
}

static int all_reduce(const struct run *r)
{
    if (r->op->n <= SMALL)
        return all_reduce_small(r, r->op->whole, r->op->n);
    for (size_t first = 0; first < r->op->n; first += PIECE) {
        size_t n = r->op->n - first < PIECE ? r->op->n - first : PIECE;
        int code = all_reduce_piece(r, at(r, r->op->whole, first), n);

        if (code != MPI_SUCCESS)
            return code;
    }
    return MPI_SUCCESS;
}

/* Elements of a part that go in one piece. */
static size_t part_piece(const struct run *r, size_t first)
{
    size_t left = r->op->n / (size_t)r->world - first, most = PIECE / (size_t)r->world;

    return left < most ? left : most;
}

static int reduce_scatter(const struct run *r)
{
    size_t part = r->op->n / (size_t)r->world, n;
    int *counts = r->m->ints, *places = counts + r->world, *own_places = places + r->world;

    for (size_t first = 0; first < part; first += n) {
        n = part_piece(r, first);
        for (int k = 0; k < r->world; k++) {
            counts[k] = (int)n;
            places[k] = k * (int)n;
            own_places[k] = (int)((size_t)k * part);
        }
        FINISH(r, MPI_Ialltoallv(at(r, r->op->whole, first), counts, own_places, r->type,
                                 r->m->scratch, counts, places, r->type, MPI_COMM_WORLD, &request));
        sum(r, at(r, r->op->part, first), n, n);
    }
    return MPI_SUCCESS;
}

static int reduce(const struct run *r)
{
    size_t n;

    for (size_t first = 0; first < r->op->n; first += n) {
        n = r->op->n - first < PIECE / (size_t)r->world ? r->op->n - first
                                                        : PIECE / (size_t)r->world;
        FINISH(r, MPI_Igather(at(r, r->op->whole, first), (int)n, r->type, r->m->scratch, (int)n,
                              r->type, 0, MPI_COMM_WORLD, &request));
        if (r->rank == 0)
            sum(r, at(r, r->op->whole, first), n, n);
    }
    return MPI_SUCCESS;
}

#define LONG ((size_t)1 << 30)

static int broadcast(const struct run *r)
{
    for (size_t first = 0; first < r->op->n; first += LONG) {
        size_t n = r->op->n - first < LONG ? r->op->n - first : LONG;

        FINISH(r, MPI_Ibcast(at(r, r->op->whole, first), (int)n, r->type, 0, MPI_COMM_WORLD,
                             &request));
    }
    return MPI_SUCCESS;
}

/* Parts that lie where they belong are not sent to oneself. */
static int move_parts(const struct run *r)
{
    int n = (int)(r->op->n / (size_t)r->world);
    void *place = at(r, r->op->whole, (size_t)n * (size_t)r->rank);
    void *own = place && place == r->op->part ? MPI_IN_PLACE : r->op->part;

    if (r->op->coll == WK_COLL_ALL_GATHER)
        FINISH(r,
               MPI_Iallgather(own, n, r->type, r->op->whole, n, r->type, MPI_COMM_WORLD, &request));
    else if (r->op->coll == WK_COLL_GATHER)
        FINISH(r, MPI_Igather(r->rank == 0 ? own : r->op->part, n, r->type, r->op->whole, n,
                              r->type, 0, MPI_COMM_WORLD, &request));
    else
        FINISH(r, MPI_Iscatter(r->op->whole, n, r->type, r->rank == 0 ? own : r->op->part, n,
                               r->type, 0, MPI_COMM_WORLD, &request));
    return MPI_SUCCESS;
}

static int run_op(const struct run *r)
{
    switch (r->op->coll) {
    case WK_COLL_ALL_REDUCE:
        return all_reduce(r);
    case WK_COLL_REDUCE_SCATTER:
        return reduce_scatter(r);
    case WK_COLL_REDUCE:
        return reduce(r);
    case WK_COLL_BROADCAST:
        return broadcast(r);
    default:
        return move_parts(r);
    }
}

static void make_scratch(struct mpi *m, size_t bytes)
{
    if (m->scratch_bytes >= bytes)
        return;
    free(m->scratch);
    m->scratch = hg_alloc(bytes);
    m->scratch_bytes = bytes;
}

static int mpi_run(struct wk_comm *comm, const struct wk_comm_op *op, const _Atomic bool *waited,
                   struct hg_err *err)
{
    MPI_Datatype real = sizeof(wk_real) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
    const struct run r = { .m = mpi_of(comm),
                           .op = op,
                           .waited = waited,
                           .type = op->type == WK_WIRE_REAL   ? real
                                   : op->type == WK_WIRE_F64  ? MPI_DOUBLE
                                   : op->type == WK_WIRE_BF16 ? MPI_UINT16_T
                                                              : MPI_BYTE,
                           .size = wk_wire_size(op->type),
                           .rank = comm->rank,
                           .world = comm->world };
    size_t all = op->n * (size_t)comm->world;
    size_t most = op->n <= SMALL || all < PIECE ? all : PIECE + (size_t)comm->world;
    int code;

    if (op->n > (size_t)INT_MAX && op->coll != WK_COLL_ALL_REDUCE && op->coll != WK_COLL_BROADCAST)
        return hg_err_set(err, HG_E_BUG, "%zu elements are too many for one collective of MPI",
                          op->n);
    if (wk_coll_sums(op->coll))
        make_scratch(r.m, most * r.size);
    code = run_op(&r);
    return code == MPI_SUCCESS ? 0 : mpi_failed(code, "MPI", err);
}

static void mpi_barrier(struct wk_comm *comm)
{
    (void)comm;
    MPI_Barrier(MPI_COMM_WORLD);
}

static __attribute__((noreturn)) void mpi_abort(struct wk_comm *comm, int code)
{
    (void)comm;
    MPI_Abort(MPI_COMM_WORLD, code);
    _Exit(code);
}

static void mpi_describe(struct hg_buf *out)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int n = 0, end = 0;

    MPI_Get_library_version(text, &n);
    while (end < n && text[end] != '\n' && text[end] != ',')
        end++;
    hg_buf_printf(out, "mpi %.*s\n", end, text);
}

const struct wk_comm_kind wk_comm_mpi = {
    .name = "mpi",
    .summary = "ranks of an MPI job",
    .open = mpi_open,
    .close = mpi_close,
    .run = mpi_run,
    .barrier = mpi_barrier,
    .abort = mpi_abort,
    .describe = mpi_describe,
};
