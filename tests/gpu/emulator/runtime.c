/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA runtime on the CPU, as far as the cuda backend's own C files use it: device.c, steps.c, gemm.c, optimes.c and nccl.c run as they are
 * on the emulated kernels, so a whole hpcgrid-worker can be tried without a GPU or a driver.
 *
 *   - A stream is a row of work that nobody has done yet. It is done as late as can be: when somebody waits for it, for an event in it, or
 *     for memory. So memory of the host that is used again too early, and a stream that does not wait for another, show in results.
 *   - Capturing knows what may not be done meanwhile, that nothing goes on when it was, which streams have joined, and whether all of them
 *     come back.
 *   - Work belongs to the device that its thread has set: a stream of another one refuses it.
 *   - What can go wrong with a machine is told by the environment:
 *       EMU_DRIVER=12020     the driver's version, 0: none (13000)     EMU_DEVICES=N   (1)      EMU_CAPABILITY=75  (90)
 *       EMU_MEMORY=BYTES     of a device (4 GiB)                       EMU_MODE=N      compute mode (0)
 *       EMU_OPEN=CODE        what the first use of the device gives    EMU_FAIL=CODE@N what work gives from number N on
 *       EMU_CAPTURE=CODE@N   what ends a capture before work N of it (0: it does not begin)
 *
 * EMU_TELL=FILE gets a line when the program ends: times that the host waited until nothing was left to do, works, NCCL's launches, works of other
 * streams than the first, launches over flat buffers that took the wide and the narrow path, graphs launched. Times of events are those of this machine and mean nothing. */
#include "gpu/emulator/runtime.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STREAMS 8 /* of one capture */
#define SIDE 256  /* bytes that memory is aligned to */
#define ASKS 100  /* times that something is said not to be done; who asks on has time */

struct work {
    int (*run)(void *job);
    void *job;
    void (*end)(void *job);
    struct CUevent_st *mark, *wait; /* instead: an event happens here, or must have happened */
    long version;
    struct work *next;
};

struct capture {
    struct CUgraph_st *graph;
    struct CUstream_st *streams[STREAMS];
    long last[STREAMS], count;
    int n;
    int broken; /* the error that ended it */
};

struct CUstream_st {
    struct work *first, **end;
    int device;
    int number; /* in the order of their creation */
    struct capture *capture;
    long seen
        [STREAMS]; /* of each stream of the capture, the work that comes before what is next here */
    int at;        /* of the capture's streams, which */
    int asks;      /* since something was done here */
};

struct CUevent_st {
    int users;                  /* who created it, and work that has it */
    int asks;                   /* since the last record */
    struct CUstream_st *stream; /* of the last record */
    long recorded, happened;    /* versions */
    double time_s;
    struct capture *capture;
    long seen[STREAMS];
};

struct CUgraph_st {
    struct work *first, **end;
    int users;
};

struct CUgraphExec_st {
    struct CUgraph_st *graph;
};

/* ---- What the environment says ---- */

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

static _Thread_local struct capture *capturing; /* by this thread */
static _Thread_local enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
static _Thread_local int device; /* of this thread */
static _Thread_local cudaError_t last_error;
static _Atomic long works;
static _Atomic int streams;
static _Atomic int sticky; /* a device that has failed says so at every call */

static cudaError_t say(cudaError_t code)
{
    if (code != cudaSuccess && code != cudaErrorNotReady)
        last_error = code;
    return code;
}

/* What a call may not do while its thread captures. */
static bool unsafe(void)
{
    if (capturing && !capturing->broken)
        capturing->broken = cudaErrorStreamCaptureUnsupported;
    return capturing;
}

/* What it may do when it has said that it knows. */
static bool unsafe_unless_relaxed(void)
{
    return mode != cudaStreamCaptureModeRelaxed && unsafe();
}

static int fault_of(const char *setting, long number)
{
    const char *text = getenv(setting), *at = text ? strchr(text, '@') : NULL;

    return at && number >= strtol(at + 1, NULL, 10) ? (int)strtol(text, NULL, 10) : 0;
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- Streams ---- */

static struct work *work_make(int (*run)(void *), void *job, void (*end)(void *))
{
    struct work *w = calloc(1, sizeof *w);

    if (!w)
        abort();
    w->run = run;
    w->job = job;
    w->end = end;
    return w;
}

static void event_release(struct CUevent_st *e)
{
    if (e && --e->users == 0)
        free(e);
}

static void work_free(struct work *w)
{
    if (w->end)
        w->end(w->job);
    event_release(w->mark);
    event_release(w->wait);
    free(w);
}

static void do_work(const struct work *w)
{
    int fault = fault_of("EMU_FAIL", ++works), code = sticky || fault ? 0 : w->run(w->job);

    if (!sticky && (fault || code))
        sticky = fault ? fault : code;
}

static void drain_until(struct CUstream_st *s, const struct CUevent_st *event, long version)
{
    while (s->first && !(event && event->happened >= version)) {
        struct work *w = s->first;

        s->first = w->next;
        if (!s->first)
            s->end = &s->first;
        if (w->wait && w->wait->happened < w->version)
            drain_until(w->wait->stream, w->wait, w->version);
        if (w->mark) {
            w->mark->happened = w->version;
            w->mark->time_s = now_s();
        }
        if (w->run)
            do_work(w);
        work_free(w);
    }
}

/* ---- What happened ---- */

static _Atomic long waits, graphs, collectives, asides;

void emu_collective(void)
{
    collectives++;
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("EMU_TELL");
    FILE *f = path ? fopen(path, "w") : NULL;

    if (f) {
        fprintf(f,
                "waits %ld works %ld collectives %ld asides %ld wide %ld narrow %ld graphs %ld\n",
                waits, works, collectives, asides, emu_flat(1), emu_flat(0), graphs);
        fclose(f);
    }
}

static void append(struct CUstream_st *s, struct work *w)
{
    *s->end = w;
    s->end = &w->next;
}

int emu_stream_launch(void *stream, int (*run)(void *), void *job, void (*end)(void *))
{
    struct CUstream_st *s = stream;
    int refused = 0;
    struct work *w;

    if (s->capture && !s->capture->broken)
        s->capture->broken = fault_of("EMU_CAPTURE", s->capture->count + 1);
    if (s->device != device)
        refused = (int)cudaErrorInvalidResourceHandle;
    else if (s->capture && s->capture->broken)
        refused = (int)cudaErrorStreamCaptureInvalidated;
    if (refused) {
        if (end)
            end(job);
        return (int)say((cudaError_t)refused);
    }
    asides += s->number > 0;
    w = work_make(run, job, end);
    if (!s->capture) {
        append(s, w);
        return sticky;
    }
    *s->capture->graph->end = w;
    s->capture->graph->end = &w->next;
    s->seen[s->at] = s->capture->last[s->at] = ++s->capture->count;
    return 0;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    int fault = (int)setting("EMU_OPEN", 0);

    (void)flags;
    if (fault)
        return say((cudaError_t)fault);
    *stream = calloc(1, sizeof **stream);
    if (!*stream)
        return say(cudaErrorMemoryAllocation);
    (*stream)->end = &(*stream)->first;
    (*stream)->device = device;
    (*stream)->number = streams++;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *most)
{
    *least = 0;
    *most = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    return priority < -5 ? say(cudaErrorInvalidValue) : cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    drain_until(s, NULL, 0);
    free(s);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    if (s->capture || unsafe()) {
        unsafe();
        return say(cudaErrorStreamCaptureUnsupported);
    }
    waits += s->first != NULL;
    drain_until(s, NULL, 0);
    return say((cudaError_t)sticky);
}

cudaError_t cudaStreamQuery(cudaStream_t s)
{
    if (s->capture || unsafe() || sticky || !s->first || s->asks++ == ASKS) {
        s->asks = 0;
        return cudaStreamSynchronize(s);
    }
    return say(cudaErrorNotReady);
}

/* ---- Events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof **event);
    if (!*event)
        return say(cudaErrorMemoryAllocation);
    (*event)->users = 1;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, 0);
}

/* It is there for as long as work waits for it. */
cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    event_release(e);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    struct work *w;

    e->capture = s->capture;
    if (s->capture) {
        memcpy(e->seen, s->seen, sizeof e->seen);
        return cudaSuccess;
    }
    w = work_make(NULL, NULL, NULL);
    e->stream = s;
    w->mark = e;
    e->users++;
    w->version = ++e->recorded;
    append(s, w);
    return say((cudaError_t)sticky);
}

static bool join(struct CUstream_st *s, struct capture *c)
{
    if (s->capture)
        return s->capture == c;
    if (c->n == STREAMS)
        return false;
    s->capture = c;
    s->at = c->n;
    memset(s->seen, 0, sizeof s->seen);
    c->streams[c->n++] = s;
    return true;
}

static cudaError_t wait_captured(struct CUstream_st *s, const struct CUevent_st *e)
{
    if (!e->capture || !join(s, e->capture)) {
        unsafe();
        return say(cudaErrorStreamCaptureIsolation);
    }
    for (int i = 0; i < STREAMS; i++)
        s->seen[i] = s->seen[i] > e->seen[i] ? s->seen[i] : e->seen[i];
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
    struct work *w;

    (void)flags;
    if (s->capture || e->capture)
        return wait_captured(s, e);
    if (!e->recorded)
        return cudaSuccess;
    w = work_make(NULL, NULL, NULL);
    w->wait = e;
    e->users++;
    w->version = e->recorded;
    append(s, w);
    return say((cudaError_t)sticky);
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    if (e->capture || unsafe()) {
        unsafe();
        return say(e->capture ? cudaErrorCapturedEvent : cudaErrorStreamCaptureUnsupported);
    }
    if (e->stream && e->happened < e->recorded) {
        drain_until(e->stream, e, e->recorded);
        waits += !e->stream->first;
    }
    return say((cudaError_t)sticky);
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
    if (e->capture || unsafe()) {
        unsafe();
        return say(e->capture ? cudaErrorCapturedEvent : cudaErrorStreamCaptureUnsupported);
    }
    if (sticky)
        return say((cudaError_t)sticky);
    if (e->happened >= e->recorded)
        return cudaSuccess;
    if (e->asks++ == ASKS) {
        e->asks = 0;
        return cudaEventSynchronize(e);
    }
    last_error = cudaErrorNotReady;
    return cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b)
{
    if (a->capture || b->capture || !a->recorded || !b->recorded)
        return say(cudaErrorInvalidResourceHandle);
    if (a->happened < a->recorded || b->happened < b->recorded)
        return say(cudaErrorNotReady);
    *ms = (float)(1e3 * (b->time_s - a->time_s));
    return say((cudaError_t)sticky);
}

/* ---- Graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode how)
{
    struct capture *c;
    int fault = fault_of("EMU_CAPTURE", 0);

    (void)how;
    if (fault)
        return say((cudaError_t)fault);
    c = calloc(1, sizeof *c);
    if (!c || !(c->graph = calloc(1, sizeof *c->graph)))
        abort();
    c->graph->end = &c->graph->first;
    c->graph->users = 1;
    join(s, c);
    capturing = c;
    return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *new_mode)
{
    enum cudaStreamCaptureMode before = mode;

    mode = *new_mode;
    *new_mode = before;
    return cudaSuccess;
}

/* Does the stream that began come behind all that was done in the others? */
static bool all_came_back(const struct capture *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->streams[0]->seen[i] < c->last[i])
            return false;
    return true;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph)
{
    struct capture *c = s->capture;
    int code = c->broken           ? (int)cudaErrorStreamCaptureInvalidated
               : !all_came_back(c) ? (int)cudaErrorStreamCaptureUnjoined
                                   : 0;

    for (int i = 0; i < c->n; i++)
        c->streams[i]->capture = NULL;
    capturing = NULL;
    *graph = c->graph;
    if (code) {
        cudaGraphDestroy(c->graph);
        *graph = NULL;
    }
    free(c);
    return say((cudaError_t)code);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    (void)flags;
    *exec = calloc(1, sizeof **exec);
    if (!*exec)
        return say(cudaErrorMemoryAllocation);
    (*exec)->graph = graph;
    graph->users++;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    if (--graph->users)
        return cudaSuccess;
    while (graph->first) {
        struct work *w = graph->first;

        graph->first = w->next;
        work_free(w);
    }
    free(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    cudaGraphDestroy(exec->graph);
    free(exec);
    return cudaSuccess;
}

static int run_graph(void *job)
{
    struct CUgraph_st *graph = job;

    for (struct work *w = graph->first; w && !sticky; w = w->next)
        do_work(w);
    return 0;
}

static void leave_graph(void *job)
{
    cudaGraphDestroy(job);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s)
{
    exec->graph->users++;
    graphs++;
    return say((cudaError_t)emu_stream_launch(s, run_graph, exec->graph, leave_graph));
}

/* ---- Memory ---- */

static pthread_mutex_t books = PTHREAD_MUTEX_INITIALIZER;
static size_t used_bytes;

static size_t memory_bytes(void)
{
    return (size_t)setting("EMU_MEMORY", 1L << 32);
}

/* The size stands before the memory. */
static void *take(size_t bytes)
{
    size_t all = (bytes + 2 * SIDE - 1) / SIDE * SIDE;
    char *memory = aligned_alloc(SIDE, all);

    if (!memory)
        return NULL;
    memset(memory, 0xff, all); /* NaN: nobody may rely on what was there */
    *(size_t *)(void *)memory = bytes;
    return memory + SIDE;
}

cudaError_t cudaMalloc(void **data, size_t bytes)
{
    bool room;

    if (unsafe_unless_relaxed())
        return say(cudaErrorStreamCaptureUnsupported);
    pthread_mutex_lock(&books);
    room = used_bytes + bytes <= memory_bytes();
    used_bytes += room ? bytes : 0;
    pthread_mutex_unlock(&books);
    *data = room ? take(bytes) : NULL;
    return *data ? cudaSuccess : say(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *data)
{
    char *memory = data;

    if (unsafe_unless_relaxed())
        return say(cudaErrorStreamCaptureUnsupported);
    if (!memory)
        return cudaSuccess;
    pthread_mutex_lock(&books);
    used_bytes -= *(size_t *)(void *)(memory - SIDE);
    pthread_mutex_unlock(&books);
    free(memory - SIDE);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **data, size_t bytes)
{
    if (unsafe_unless_relaxed())
        return say(cudaErrorStreamCaptureUnsupported);
    *data = take(bytes);
    return *data ? cudaSuccess : say(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *data)
{
    free((char *)data - SIDE);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    *all = memory_bytes();
    *left = *all - used_bytes;
    return say((cudaError_t)sticky);
}

struct transfer {
    void *to;
    const void *from;
    int value;
    size_t bytes;
};

static int run_transfer(void *job)
{
    const struct transfer *t = job;

    if (t->from)
        memmove(t->to, t->from, t->bytes);
    else
        memset(t->to, t->value, t->bytes);
    return 0;
}

static cudaError_t transfer(cudaStream_t s, const struct transfer *wanted)
{
    struct transfer *t = malloc(sizeof *t);

    if (!t)
        abort();
    *t = *wanted;
    return say((cudaError_t)emu_stream_launch(s, run_transfer, t, free));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t s)
{
    const struct transfer t = { .to = to, .from = from, .bytes = bytes };

    (void)kind;
    return transfer(s, &t);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t s)
{
    const struct transfer t = { .to = to, .value = value, .bytes = bytes };

    return transfer(s, &t);
}

/* ---- Devices ---- */

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = (int)setting("EMU_DRIVER", 13000);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    const char *shown = getenv("CUDA_VISIBLE_DEVICES");

    *count = shown && !*shown ? 0 : (int)setting("EMU_DEVICES", 1);
    if (setting("EMU_DRIVER", 13000) < CUDART_VERSION / 1000 * 1000)
        return say(cudaErrorInsufficientDriver);
    return *count ? cudaSuccess : say(cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int number)
{
    long capability = setting("EMU_CAPABILITY", 90);

    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "emulated GPU");
    p->major = (int)capability / 10;
    p->minor = (int)capability % 10;
    p->multiProcessorCount = 4;
    p->totalGlobalMem = memory_bytes();
    p->uuid.bytes[15] = (char)number;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int number)
{
    (void)number;
    *value = attribute == cudaDevAttrComputeMode ? (int)setting("EMU_MODE", 0) : 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int number)
{
    snprintf(text, (size_t)size, "0000:%02x:00.0", number + 1);
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int number)
{
    if (number < 0 || number >= (int)setting("EMU_DEVICES", 1))
        return say(cudaErrorInvalidDevice);
    device = number;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t code = last_error;

    last_error = cudaSuccess;
    return code;
}

const char *cudaGetErrorString(cudaError_t code)
{
    static _Thread_local char text[32];

    snprintf(text, sizeof text, "emulated error %d", (int)code);
    return text;
}
