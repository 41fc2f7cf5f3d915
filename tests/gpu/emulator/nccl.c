/* SPDX-License-Identifier: Apache-2.0 */
/* libnccl on the CPU for the mock runtime: ranks are threads or processes of this machine, which share a file in memory that the
 * communicator's id names. A collective is work of its stream; sums are taken in the order of the ranks.
 *
 * EMU_NCCL=RANK@N: that rank hears of an error in the background when it asks for the N-th time. EMU_REFUSE=RANK@N: its N-th collective is
 * refused. EMU_ABORTED=FILE gets a line for every
 * communicator that is aborted. */
#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/half.h"
#include "gpu/emulator/runtime.h"

#define RANKS 8
#define SLOT ((size_t)64 << 10)

struct shared {
    pthread_mutex_t lock;
    pthread_cond_t met;
    int here;      /* ranks that have come */
    long meetings; /* that were complete */
    _Atomic int ready;
    char slots[RANKS][SLOT];
};

struct ncclComm {
    struct shared *shared;
    char path[128];
    int rank, world, asks, starts;
    bool aborted;
};

enum what { ALL_REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, REDUCE, SEND, RECEIVE };

struct job {
    struct ncclComm *comm;
    enum what what;
    const char *from;
    char *to;
    size_t n;
    ncclDataType_t type;
    int peer;
    bool mean; /* each rank's is divided before the sum, as NCCL does it */
};

static size_t size_of(ncclDataType_t t)
{
    return t == ncclFloat64 ? 8 : t == ncclFloat32 ? 4 : t == ncclBfloat16 ? 2 : 1;
}

static void meet(struct ncclComm *c)
{
    struct shared *s = c->shared;
    long meeting;

    pthread_mutex_lock(&s->lock);
    meeting = s->meetings;
    if (++s->here == c->world) {
        s->here = 0;
        s->meetings++;
        pthread_cond_broadcast(&s->met);
    }
    while (s->meetings == meeting && !c->aborted)
        pthread_cond_wait(&s->met, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* The sum of all ranks' slots, or their mean. */
static void sum_up(const struct job *j, char *to, size_t bytes)
{
    const struct ncclComm *c = j->comm;
    ncclDataType_t type = j->type;
    double factor = j->mean ? 1.0 / c->world : 1;

    for (size_t i = 0; i < bytes / size_of(type); i++) {
        double sum = 0;

        for (int k = 0; k < c->world; k++) {
            const char *slot = c->shared->slots[k];

            sum +=
                factor * (type == ncclFloat64 ? ((const double *)(const void *)slot)[i]
                          : type == ncclFloat32
                              ? (double)((const float *)(const void *)slot)[i]
                              : (double)wk_bf16_decode(((const uint16_t *)(const void *)slot)[i]));
        }
        if (type == ncclFloat64)
            ((double *)(void *)to)[i] = sum;
        else if (type == ncclFloat32)
            ((float *)(void *)to)[i] = (float)sum;
        else
            ((uint16_t *)(void *)to)[i] = wk_bf16_encode((float)sum);
    }
}

/* One piece of `bytes` from each rank; `at` is its place in the whole. */
static void run_piece(const struct job *j, size_t at, size_t bytes)
{
    struct ncclComm *c = j->comm;
    size_t each = j->n * size_of(j->type);

    if (j->what == REDUCE_SCATTER) {
        for (int part = 0; part < c->world; part++) {
            memcpy(c->shared->slots[c->rank], j->from + (size_t)part * each + at, bytes);
            meet(c);
            if (part == c->rank)
                sum_up(j, j->to + at, bytes);
            meet(c);
        }
        return;
    }
    memcpy(c->shared->slots[c->rank], j->from + at, bytes);
    meet(c);
    if (j->what == ALL_REDUCE || (j->what == REDUCE && c->rank == 0))
        sum_up(j, j->to + at, bytes);
    else if (j->what == BROADCAST)
        memcpy(j->to + at, c->shared->slots[0], bytes);
    for (int k = 0; j->what == ALL_GATHER && k < c->world; k++)
        memcpy(j->to + (size_t)k * each + at, c->shared->slots[k], bytes);
    meet(c);
}

static int run(void *job)
{
    const struct job *j = job;
    size_t bytes = j->n * size_of(j->type);

    for (size_t at = 0; at < bytes && !j->comm->aborted; at += SLOT)
        run_piece(j, at, bytes - at < SLOT ? bytes - at : SLOT);
    return 0;
}

/* What is begun between ncclGroupStart and ncclGroupEnd: one piece of work. */
static _Thread_local struct group {
    struct job jobs[256];
    int n;
    bool open;
    cudaStream_t stream;
} group;

static ncclResult_t launch(int (*what)(void *), const void *job, size_t bytes, cudaStream_t stream)
{
    void *own = malloc(bytes);

    memcpy(own, job, bytes);
    emu_collective();
    return emu_stream_launch(stream, what, own, free) == 0 ? ncclSuccess : ncclUnhandledCudaError;
}

/* Is RANK@N of the environment this rank, and has it come so far? */
static bool is_due(const char *setting, const struct ncclComm *c, int number)
{
    const char *text = getenv(setting), *at = text ? strchr(text, '@') : NULL;

    return at && strtol(text, NULL, 10) == c->rank && number >= strtol(at + 1, NULL, 10);
}

static ncclResult_t start(const struct job *j, cudaStream_t stream)
{
    if (is_due("EMU_REFUSE", j->comm, ++j->comm->starts))
        return ncclInvalidUsage;
    if (!group.open)
        return launch(run, j, sizeof *j, stream);
    if (group.n == sizeof group.jobs / sizeof *group.jobs)
        return ncclInternalError;
    group.stream = stream;
    group.jobs[group.n++] = *j;
    return ncclSuccess;
}

/* ---- Communicators ---- */

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static _Atomic int number;

    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "/hpcgrid-mock-%d-%d", (int)getpid(), ++number);
    return ncclSuccess;
}

static struct shared *open_shared(const char *name, int rank)
{
    int fd = shm_open(name, O_CREAT | O_RDWR, 0600);
    struct shared *s = MAP_FAILED;
    pthread_mutexattr_t m;
    pthread_condattr_t a;

    if (fd >= 0 && ftruncate(fd, sizeof *s) == 0)
        s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (s == MAP_FAILED)
        return NULL;
    if (rank == 0) {
        pthread_mutexattr_init(&m);
        pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED);
        pthread_mutex_init(&s->lock, &m);
        pthread_condattr_init(&a);
        pthread_condattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
        pthread_cond_init(&s->met, &a);
        s->ready = 1;
    }
    while (!s->ready)
        usleep(1000);
    return s;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int world, ncclUniqueId id, int rank)
{
    struct ncclComm *c = calloc(1, sizeof *c);

    c->rank = rank;
    c->world = world;
    snprintf(c->path, sizeof c->path, "%s", id.internal);
    c->shared = world <= RANKS ? open_shared(c->path, rank) : NULL;
    if (!c->shared)
        return ncclSystemError;
    meet(c);
    if (rank == 0)
        shm_unlink(c->path);
    *comm = c;
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    munmap(c->shared, sizeof *c->shared);
    free(c);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t c)
{
    const char *path = getenv("EMU_ABORTED");
    FILE *f = path ? fopen(path, "a") : NULL;

    if (f) {
        fprintf(f, "rank %d\n", c->rank);
        fclose(f);
    }
    /* and left: who waits in it must not see it go */
    pthread_mutex_lock(&c->shared->lock);
    c->aborted = true;
    pthread_cond_broadcast(&c->shared->met);
    pthread_mutex_unlock(&c->shared->lock);
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *code)
{
    *code = is_due("EMU_NCCL", c, ++c->asks) ? ncclRemoteError : ncclSuccess;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t code)
{
    return code == ncclSuccess ? "no error" : "mock error";
}

const char *ncclGetLastError(ncclComm_t c)
{
    (void)c;
    return "";
}

/* ---- Collectives ---- */

ncclResult_t ncclAllReduce(const void *from, void *to, size_t n, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t c, cudaStream_t s)
{
    const struct job j = { c, ALL_REDUCE, from, to, n, type, 0, op == ncclAvg };

    return start(&j, s);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t n, ncclDataType_t type, int root,
                           ncclComm_t c, cudaStream_t s)
{
    const struct job j = { c, BROADCAST, from, to, n, type, root, false };

    return start(&j, s);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t n, ncclDataType_t type, ncclComm_t c,
                           cudaStream_t s)
{
    const struct job j = { c, ALL_GATHER, from, to, n, type, 0, false };

    return start(&j, s);
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t n, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t c, cudaStream_t s)
{
    const struct job j = { c, REDUCE_SCATTER, from, to, n, type, 0, op == ncclAvg };

    return start(&j, s);
}

ncclResult_t ncclReduce(const void *from, void *to, size_t n, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t c, cudaStream_t s)
{
    const struct job j = { c, REDUCE, from, to, n, type, root, false };

    (void)op;
    return start(&j, s);
}

/* ---- Groups: collectives one after the other, or sends and receives between rank 0 and the others ---- */

/* One pair after the other: every rank goes through all of them. */
static void run_pairs(const struct group *g)
{
    struct ncclComm *c = g->jobs[0].comm;
    size_t bytes = g->jobs[0].n * size_of(g->jobs[0].type);

    for (int from = 0; from < c->world; from++)
        for (int to = 0; to < c->world; to++)
            for (size_t at = 0; at < bytes; at += SLOT) {
                size_t n = bytes - at < SLOT ? bytes - at : SLOT;

                for (int i = 0; i < g->n; i++)
                    if (g->jobs[i].what == SEND && c->rank == from && g->jobs[i].peer == to)
                        memcpy(c->shared->slots[from], g->jobs[i].from + at, n);
                meet(c);
                for (int i = 0; i < g->n; i++)
                    if (g->jobs[i].what == RECEIVE && c->rank == to && g->jobs[i].peer == from)
                        memcpy(g->jobs[i].to + at, c->shared->slots[from], n);
                meet(c);
            }
}

static int run_group(void *job)
{
    struct group *g = job;

    if (g->jobs[0].what == SEND || g->jobs[0].what == RECEIVE) {
        run_pairs(g);
        return 0;
    }
    for (int i = 0; i < g->n; i++)
        run(&g->jobs[i]);
    return 0;
}

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclGroupStart(void)
{
    group.n = 0;
    group.open = true;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    group.open = false;
    return group.n ? launch(run_group, &group, sizeof group, group.stream) : ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t n, ncclDataType_t type, int peer, ncclComm_t c,
                      cudaStream_t s)
{
    const struct job j = { c, SEND, from, NULL, n, type, peer, false };

    return start(&j, s);
}

ncclResult_t ncclRecv(void *to, size_t n, ncclDataType_t type, int peer, ncclComm_t c,
                      cudaStream_t s)
{
    const struct job j = { c, RECEIVE, NULL, to, n, type, peer, false };

    return start(&j, s);
}
