/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/nccl.h"

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/library.h"
#include "backends/cuda/own.h"
#include "base/alloc.h"
#include "base/clock.h"

/* ---- The library ---- */

#define FUNCTIONS(X)         \
    X(ncclGetVersion)        \
    X(ncclGetUniqueId)       \
    X(ncclCommInitRank)      \
    X(ncclCommDestroy)       \
    X(ncclCommAbort)         \
    X(ncclCommGetAsyncError) \
    X(ncclGetErrorString)    \
    X(ncclGetLastError)      \
    X(ncclGroupStart)        \
    X(ncclGroupEnd)          \
    X(ncclSend)              \
    X(ncclRecv)              \
    X(ncclAllReduce)         \
    X(ncclBroadcast)         \
    X(ncclAllGather)         \
    X(ncclReduceScatter)     \
    X(ncclReduce)

#define POINTER(function) __typeof__(function) *function;
struct library {
    FUNCTIONS(POINTER)
};

static const struct library *library_get_locked(struct hg_err *err)
{
    static const char *const names[] = { "libnccl.so.2", NULL };
    static struct library all;
    void *opened;

    if (all.ncclReduce)
        return &all;
    opened = wk_library_open(names, "NCCL", err);
    if (!opened)
        return NULL;
#define TAKE(function)                                           \
    {                                                            \
        void *address = wk_library_find(opened, #function, err); \
                                                                 \
        if (!address)                                            \
            return NULL;                                         \
        memcpy(&all.function, &address, sizeof address);         \
    }
    FUNCTIONS(TAKE)
    return &all;
}

static const struct library *library_get(struct hg_err *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const struct library *lib;

    pthread_mutex_lock(&lock);
    lib = library_get_locked(err);
    pthread_mutex_unlock(&lock);
    return lib;
}

/* "2.28.9"; false where there is none. */
static bool version_of(char out[32])
{
    const struct library *lib = library_get(NULL);
    int v = 0;

    if (!lib || lib->ncclGetVersion(&v) != ncclSuccess)
        return false;
    snprintf(out, 32, "%d.%d.%d", v / 10000, v / 100 % 100, v % 100);
    return true;
}

void wk_nccl_describe(struct hg_buf *out)
{
    struct hg_err err = HG_ERR_INIT;
    char version[32];

    if (library_get(&err) && version_of(version))
        hg_buf_printf(out, "nccl %s\n", version);
    else
        hg_buf_printf(out, "nccl cannot be used here: %s\n", err.text);
}

/* ---- A communicator ---- */

/* One collective that was started; events are on the collectives' stream, but stand and go, which bound the time that the training's
 * stream waited for it. */
struct entry {
    cudaEvent_t ready, start, end, stand, go;
    struct wk_comm_count *count;
    bool waited;
};
#define ENTRIES 64

struct nccl {
    struct wk_comm_kind kind; /* first: comm->kind points here */
    const struct wk_comm_kind *base;
    const struct library *lib;
    struct wk_comm *comm;
    struct wk_cuda *device;
    struct wk_cuda_watch watch;
    ncclComm_t handle;  /* NULL: aborted, or not open yet */
    struct hg_err lost; /* why it was aborted */
    bool inside,
        before;        /* does the heartbeat have the host wait for collectives; and before that? */
    struct nccl *next; /* live */
    cudaStream_t stream;
    struct entry entries[ENTRIES]; /* ticket t has number t % ENTRIES */
    long last, settled;            /* tickets: given out; into the books */
};

static struct nccl *nccl_of(const struct wk_comm *comm)
{
    return (struct nccl *)(uintptr_t)comm->kind;
}

static int nccl_failed(const struct nccl *n, ncclResult_t code, const char *what,
                       struct hg_err *err)
{
    const char *last = n->lib->ncclGetLastError(n->handle);

    hg_err_set(err, HG_E_ENV, "NCCL: %s: %s%s%s", what, n->lib->ncclGetErrorString(code),
               last && *last ? ": " : "", last && *last ? last : "");
    return hg_err_hint(err, "NCCL_DEBUG=INFO in the cell's environment shows more");
}

static int cuda_failed(cudaError_t code, struct hg_err *err)
{
    return hg_err_set(err, HG_E_ENV, "collectives' stream: %s", cudaGetErrorString(code));
}

/* ---- Ending without the others ---- */

static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nccl *live; /* communicators of this process: dp has several */

/* Its kernels leave the device, so that nothing behind them waits for ever. The lock is held. */
static void abort_one(struct nccl *n, const struct hg_err *why)
{
    ncclComm_t handle = n->handle;

    if (!handle)
        return;
    n->lost = *why;
    n->handle = NULL;
    n->lib->ncclCommAbort(handle);
}

static void *abort_all(void *context)
{
    struct hg_err why = HG_ERR_INIT;

    hg_err_set(&why, HG_E_ENV, "a collective was aborted: another rank has ended");
    pthread_mutex_lock(&live_lock);
    for (struct nccl *n = live; n; n = n->next)
        abort_one(n, &why);
    pthread_mutex_unlock(&live_lock);
    return context;
}

#define ABORT_LIMIT_S 5 /* aborting may hang itself, in a driver that does */

void wk_nccl_give_up(void)
{
    struct timespec until;
    pthread_t thread;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ABORT_LIMIT_S;
    if (pthread_create(&thread, NULL, abort_all, NULL) == 0 &&
        pthread_timedjoin_np(thread, NULL, &until) != 0)
        pthread_detach(thread);
}

/* -1 when the communicator is gone, or NCCL has found out that another rank is: then it is aborted. */
static int check_lost(struct nccl *n, struct hg_err *err)
{
    ncclResult_t code = ncclSuccess;
    struct hg_err why = HG_ERR_INIT;
    bool gone;

    pthread_mutex_lock(&live_lock);
    if (n->handle)
        n->lib->ncclCommGetAsyncError(n->handle, &code);
    if (code != ncclSuccess && code != ncclInProgress) {
        nccl_failed(n, code, "a collective", &why);
        abort_one(n, &why);
    }
    gone = !n->handle;
    if (gone && err)
        *err = n->lost;
    pthread_mutex_unlock(&live_lock);
    return gone ? -1 : 0;
}

/* Are collectives on their way? They end in order. */
static bool is_under_way(const struct nccl *n)
{
    bool is = n->settled < n->last &&
              cudaEventQuery(n->entries[n->last % ENTRIES].end) == cudaErrorNotReady;

    cudaGetLastError(); /* "not ready" is no error */
    return is;
}

static void wait_is_over(void *context)
{
    struct nccl *n = context;

    if (n->inside)
        wk_heartbeat_inside(n->comm->heartbeat, n->before);
    n->inside = false;
}

/* The host waits for the device. If that waits for other ranks, it is where this rank is. */
static int look(void *context, struct hg_err *err)
{
    struct nccl *n = context;

    if (n->settled < n->last && !n->inside) {
        n->before = wk_heartbeat_inside(n->comm->heartbeat, true);
        n->inside = true;
    }
    if (!is_under_way(n))
        wait_is_over(n);
    return check_lost(n, err);
}

/* ---- Collectives ---- */

static double seconds_between(cudaEvent_t a, cudaEvent_t b)
{
    float ms = 0;

    return cudaEventElapsedTime(&ms, a, b) == cudaSuccess ? (double)ms / 1000 : 0;
}

/* Take finished collectives into the books, up to that ticket whatever it takes, and then as far as they are. */
static int settle(struct nccl *n, long ticket, struct hg_err *err)
{
    while (n->settled < n->last) {
        struct entry *e = &n->entries[(n->settled + 1) % ENTRIES];
        cudaEvent_t final = e->waited ? e->go : e->end;
        cudaError_t code =
            n->settled < ticket ? wk_cuda_await(n->device, final, NULL) : cudaEventQuery(final);

        if (code == cudaErrorNotReady) {
            cudaGetLastError();
            break;
        }
        if (code != cudaSuccess)
            return check_lost(n, err) < 0 ? -1 : cuda_failed(code, err);
        if (e->count)
            e->count->seconds += seconds_between(e->start, e->end);
        if (e->count && e->waited)
            e->count->exposed_s += seconds_between(e->stand, e->go);
        e->waited = false;
        n->settled++;
    }
    return 0;
}

static ncclDataType_t data_type(enum wk_wire wire)
{
    static const ncclDataType_t types[] = { [WK_WIRE_REAL] = ncclFloat32,
                                            [WK_WIRE_F64] = ncclFloat64,
                                            [WK_WIRE_BYTE] = ncclUint8,
                                            [WK_WIRE_BF16] = ncclBfloat16 };

    return types[wire];
}

/* Parts to or from rank 0. */
static ncclResult_t move_parts(const struct nccl *n, const struct wk_comm *comm,
                               const struct wk_comm_op *op)
{
    size_t part = op->n / (size_t)comm->world, bytes = part * wk_wire_size(op->type);
    bool out = op->coll == WK_COLL_SCATTER;
    ncclDataType_t type = data_type(op->type);
    ncclResult_t code = n->lib->ncclGroupStart(), end;

    for (int k = 0; comm->rank == 0 && k < comm->world && code == ncclSuccess; k++) {
        char *at = (char *)op->whole + (size_t)k * bytes;

        code = out ? n->lib->ncclSend(at, part, type, k, n->handle, n->stream)
                   : n->lib->ncclRecv(at, part, type, k, n->handle, n->stream);
    }
    if (code == ncclSuccess)
        code = out ? n->lib->ncclRecv(op->part, part, type, 0, n->handle, n->stream)
                   : n->lib->ncclSend(op->part, part, type, 0, n->handle, n->stream);
    end = n->lib->ncclGroupEnd();
    return code == ncclSuccess ? end : code;
}

static ncclResult_t launch(const struct nccl *n, const struct wk_comm *comm,
                           const struct wk_comm_op *op)
{
    size_t part = op->n / (size_t)comm->world;
    ncclDataType_t type = data_type(op->type);
    ncclRedOp_t sum = op->mean ? ncclAvg : ncclSum;

    switch (op->coll) {
    case WK_COLL_ALL_REDUCE:
        return n->lib->ncclAllReduce(op->whole, op->whole, op->n, type, sum, n->handle, n->stream);
    case WK_COLL_BROADCAST:
        return n->lib->ncclBroadcast(op->whole, op->whole, op->n, type, 0, n->handle, n->stream);
    case WK_COLL_ALL_GATHER:
        return n->lib->ncclAllGather(op->part, op->whole, part, type, n->handle, n->stream);
    case WK_COLL_REDUCE_SCATTER:
        return n->lib->ncclReduceScatter(op->whole, op->part, part, type, sum, n->handle,
                                         n->stream);
    case WK_COLL_REDUCE:
        return n->lib->ncclReduce(op->whole, op->whole, op->n, type, ncclSum, 0, n->handle,
                                  n->stream);
    default:
        return move_parts(n, comm, op);
    }
}

/* NCCL's order of a sum depends on ring, channel and size: where the order of the ranks is asked for, the host sums. */
static int start_in_order(struct nccl *n, struct wk_comm *comm, const struct wk_comm_op *op,
                          struct entry *e, struct hg_err *err)
{
    double start = hg_clock_mono_s(), seconds;
    cudaError_t code = wk_cuda_await(n->device, NULL, n->stream);

    if (code != cudaSuccess)
        return check_lost(n, err) < 0 ? -1 : cuda_failed(code, err);
    if (wk_comm_sum_on_host(comm, n->base, op, err) < 0)
        return -1;
    seconds = hg_clock_mono_s() - start;
    e->count->seconds += seconds;
    e->count->exposed_s += seconds;
    code = cudaEventRecord(e->start, n->stream);
    if (code == cudaSuccess)
        code = cudaEventRecord(e->end, n->stream);
    return code == cudaSuccess ? 0 : cuda_failed(code, err);
}

/* Behind what the training's stream has queued. */
static int begin(struct nccl *n, long ticket, struct hg_err *err)
{
    struct entry *e = &n->entries[ticket % ENTRIES];
    cudaError_t code;

    if (check_lost(n, err) < 0 || settle(n, ticket - ENTRIES, err) < 0)
        return -1;
    n->last = ticket;
    e->count = NULL;
    code = cudaEventRecord(e->ready, (cudaStream_t)n->device->stream);
    if (code == cudaSuccess)
        code = cudaStreamWaitEvent(n->stream, e->ready, 0);
    if (code == cudaSuccess)
        code = cudaEventRecord(e->start, n->stream);
    return code == cudaSuccess ? 0 : cuda_failed(code, err);
}

static int end(struct nccl *n, long ticket, struct hg_err *err)
{
    cudaError_t code = cudaEventRecord(n->entries[ticket % ENTRIES].end, n->stream);

    return code == cudaSuccess ? 0 : cuda_failed(code, err);
}

static int nccl_start(struct wk_comm *comm, const struct wk_comm_op *op, long ticket,
                      struct hg_err *err)
{
    struct nccl *n = nccl_of(comm);
    struct entry *e = &n->entries[ticket % ENTRIES];
    ncclResult_t result;

    if (!comm->grouped && begin(n, ticket, err) < 0)
        return -1;
    e->count = &comm->counts[op->plane][op->coll];
    if (comm->in_order && op->n && wk_coll_sums(op->coll))
        return start_in_order(n, comm, op, e, err);
    result = op->n ? launch(n, comm, op) : ncclSuccess;
    if (result != ncclSuccess)
        return nccl_failed(n, result, wk_coll_names[op->coll], err);
    return comm->grouped ? 0 : end(n, ticket, err);
}

static int nccl_group(struct wk_comm *comm, long ticket, bool over, struct hg_err *err)
{
    struct nccl *n = nccl_of(comm);
    ncclResult_t result;

    if (!over && begin(n, ticket, err) < 0)
        return -1;
    result = over ? n->lib->ncclGroupEnd() : n->lib->ncclGroupStart();
    if (result != ncclSuccess)
        return nccl_failed(n, result, "a group", err);
    return over ? end(n, ticket, err) : 0;
}

/* Collectives end in order, so behind one all before it are over. */
static int nccl_wait(struct wk_comm *comm, long ticket, struct hg_err *err)
{
    struct nccl *n = nccl_of(comm);
    cudaStream_t training = (cudaStream_t)n->device->stream;
    struct entry *e = &n->entries[ticket % ENTRIES];
    cudaError_t code;

    if (ticket > n->last || ticket <= n->settled)
        return 0;
    if (check_lost(n, err) < 0)
        return -1;
    code = cudaEventRecord(e->stand, training);
    if (code == cudaSuccess)
        code = cudaStreamWaitEvent(training, e->end, 0);
    if (code == cudaSuccess)
        code = cudaEventRecord(e->go, training);
    if (code != cudaSuccess)
        return cuda_failed(code, err);
    e->waited = true;
    return settle(n, 0, err);
}

/* Host memory goes the other way; what is over by then goes into the books. */
static int nccl_run(struct wk_comm *comm, const struct wk_comm_op *op, const _Atomic bool *waited,
                    struct hg_err *err)
{
    struct nccl *n = nccl_of(comm);

    return settle(n, 0, err) < 0 ? -1 : n->base->run(comm, op, waited, err);
}

static void nccl_free(struct nccl *n)
{
    for (int i = 0; i < ENTRIES; i++) {
        struct entry *e = &n->entries[i];
        cudaEvent_t all[] = { e->ready, e->start, e->end, e->stand, e->go };

        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            if (all[k])
                cudaEventDestroy(all[k]);
    }
    if (n->stream)
        cudaStreamDestroy(n->stream);
    free(n);
}

#define LEAVE_LIMIT_S 30

/* What the strategy left on its way, as the gather behind the last update, comes to its end, unless this rank has failed, or one that is
 * in it. */
static bool all_came(struct nccl *n)
{
    double end_s = hg_clock_mono_s() + LEAVE_LIMIT_S;
    cudaError_t code = cudaErrorNotReady;

    while (!n->comm->failed && check_lost(n, NULL) == 0 &&
           (code = cudaStreamQuery(n->stream)) == cudaErrorNotReady && hg_clock_mono_s() < end_s)
        hg_clock_sleep_s(0.001);
    cudaGetLastError(); /* "not ready" is no error */
    return code == cudaSuccess;
}

static void nccl_detach(struct wk_comm *comm)
{
    struct nccl *n = nccl_of(comm), **at = &live;
    bool came;

    comm->kind = n->base;
    comm->averages = false;
    n->device->watch = NULL;
    came = all_came(n);
    pthread_mutex_lock(&live_lock);
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    if (n->handle && came)
        n->lib->ncclCommDestroy(n->handle);
    else if (n->handle)
        n->lib->ncclCommAbort(n->handle);
    pthread_mutex_unlock(&live_lock);
    nccl_free(n);
}

/* The training failed: no rank may wait for others that do not arrive. */
static __attribute__((noreturn)) void nccl_abort(struct wk_comm *comm, int code)
{
    const struct nccl *n = nccl_of(comm);

    wk_nccl_give_up();
    n->base->abort(comm, code);
}

/* ---- Joining ---- */

/* Ranks that share a GPU, which only a test of correctness may do: NCCL refuses it on one host, so each says that it is on another. */
static void pretend_hosts(int rank)
{
    char host[32];

    if (!getenv("HPCGRID_SHARE_GPU"))
        return;
    snprintf(host, sizeof host, "hpcgrid-%d", rank);
    setenv("NCCL_HOSTID", host, 0);
}

static int exchange_id(struct wk_comm *comm, const struct nccl *n, ncclUniqueId *id,
                       struct hg_err *err)
{
    static const _Atomic bool waited = true;
    const struct wk_comm_op op = { .coll = WK_COLL_BROADCAST,
                                   .plane = WK_PLANE_CONTROL,
                                   .type = WK_WIRE_BYTE,
                                   .whole = id,
                                   .n = sizeof *id };
    ncclResult_t code = comm->rank == 0 ? n->lib->ncclGetUniqueId(id) : ncclSuccess;

    if (code != ncclSuccess)
        return nccl_failed(n, code, "ncclGetUniqueId", err);
    return n->base->run(comm, &op, &waited, err);
}

static int open_events(struct nccl *n, struct hg_err *err)
{
    int least = 0, most = 0;
    /* a collective of a few blocks must not queue behind a GEMM's thousands */
    cudaError_t code = cudaDeviceGetStreamPriorityRange(&least, &most);

    if (code == cudaSuccess)
        code = cudaStreamCreateWithPriority(&n->stream, cudaStreamNonBlocking, most);

    for (int i = 0; i < ENTRIES && code == cudaSuccess; i++) {
        struct entry *e = &n->entries[i];
        cudaEvent_t *all[] = { &e->start, &e->end, &e->stand, &e->go };

        code = cudaEventCreateWithFlags(&e->ready, cudaEventDisableTiming);
        for (size_t k = 0; k < sizeof all / sizeof *all && code == cudaSuccess; k++)
            code = cudaEventCreate(all[k]);
    }
    return code == cudaSuccess ? 0 : cuda_failed(code, err);
}

static void set_kind(struct nccl *n)
{
    n->kind = *n->base;
    n->kind.name = "nccl";
    n->kind.summary = "GPUs through NCCL";
    n->kind.run = nccl_run;
    n->kind.start = nccl_start;
    n->kind.wait = nccl_wait;
    n->kind.group = nccl_group;
    n->kind.abort = nccl_abort;
    n->kind.detach = nccl_detach;
}

int wk_nccl_attach(struct wk_comm *comm, struct wk_dev *dev, struct hg_err *err)
{
    struct nccl *n = hg_alloc_zeroed(1, sizeof *n);
    ncclUniqueId id = { { 0 } };
    ncclResult_t code;

    n->base = comm->kind;
    n->comm = comm;
    n->device = wk_cuda_of(dev);
    n->watch = (struct wk_cuda_watch){ n, look, wait_is_over };
    n->last = n->settled = comm->started;
    n->lib = library_get(err);
    pretend_hosts(comm->rank);
    if (!n->lib || open_events(n, err) < 0 || exchange_id(comm, n, &id, err) < 0) {
        nccl_free(n);
        return -1;
    }
    wk_heartbeat_enter(comm->heartbeat, "ncclCommInitRank");
    code = n->lib->ncclCommInitRank(&n->handle, comm->world, id, comm->rank);
    wk_heartbeat_leave(comm->heartbeat);
    if (code != ncclSuccess) {
        nccl_failed(n, code, "the ranks did not connect", err);
        nccl_free(n);
        return -1;
    }
    set_kind(n);
    comm->kind = &n->kind;
    comm->averages = !comm->in_order; /* else the host sums, which only adds */
    n->device->watch = &n->watch;
    pthread_mutex_lock(&live_lock);
    n->next = live;
    live = n;
    pthread_mutex_unlock(&live_lock);
    return 0;
}
