/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's memory, transfers, failures. One stream does all work of a training in order. */
#include "backends/cuda/device.h"

#include <cuda_runtime_api.h>
#include <string.h>

#include "backends/cuda/cache.h"
#include "backends/cuda/errors.h"
#include "backends/cuda/optimes.h"
#include "backends/cuda/own.h"
#include "base/clock.h"
#include "base/text.h"

/* ---- Failures ---- */

static struct wk_cuda_trouble trouble_of(const struct wk_cuda *c, int code, const char *what)
{
    struct wk_cuda_trouble t = { .code = code,
                                 .name = cudaGetErrorString((cudaError_t)code),
                                 .what = what,
                                 .runtime = CUDART_VERSION,
                                 .architectures = WK_CUDA_ARCHITECTURES };

    cudaDriverGetVersion(&t.driver);
    if (c && c->dev.name[0]) {
        t.device = c->dev.name;
        t.pci = c->dev.pci;
        t.capability = c->capability;
    }
    return t;
}

int wk_cuda_fail(const struct wk_cuda *c, int code, const char *what, struct hg_err *err)
{
    struct wk_cuda_trouble t = trouble_of(c, code, what);

    cudaGetLastError(); /* or the next call would report it again */
    return wk_cuda_explain(&t, err);
}

bool wk_cuda_check(struct wk_cuda *c, int code, const char *what)
{
    if (code != 0 && c->recording) {
        c->unfit = true;
        cudaGetLastError();
        return false;
    }
    if (code != 0 && c->dev.error.code == HG_E_NONE)
        wk_cuda_fail(c, code, what, &c->dev.error);
    if (c->own->op_times)
        wk_op_times_mark(c->own->op_times, what, (cudaStream_t)c->stream);
    return code == 0;
}

/* ---- Waiting ---- */

#define SPIN_S 200e-6 /* a step's own waits are short */
#define NAP_S 50e-6
#define LOOK_S 1e-3

static cudaError_t ask(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t code = event ? cudaEventQuery(event) : cudaStreamQuery(stream);

    if (code == cudaErrorNotReady)
        cudaGetLastError(); /* or the next launch would take it for its own */
    return code;
}

/* A blocking call of CUDA cannot be left when a rank is gone, and nobody would see where this one waits. */
static cudaError_t await_watched(struct wk_cuda *c, cudaEvent_t event, cudaStream_t stream)
{
    double start_s = hg_clock_mono_s(), next_s = start_s, now_s;
    struct hg_err err = HG_ERR_INIT;
    cudaError_t code;

    while ((code = ask(event, stream)) == cudaErrorNotReady) {
        now_s = hg_clock_mono_s();
        if (now_s >= next_s && c->watch->look(c->watch->context, &err) < 0) {
            if (!c->dev.error.code)
                c->dev.error = err;
            code = cudaErrorUnknown;
            break;
        }
        next_s = now_s >= next_s ? now_s + LOOK_S : next_s;
        if (now_s - start_s > SPIN_S)
            hg_clock_sleep_s(NAP_S);
    }
    c->watch->over(c->watch->context);
    return code;
}

cudaError_t wk_cuda_await(struct wk_cuda *c, cudaEvent_t event, cudaStream_t stream)
{
    if (c->watch)
        return await_watched(c, event, stream);
    return event ? cudaEventSynchronize(event) : cudaStreamSynchronize(stream);
}

/* ---- Memory ---- */

/* Allocating memory would end the recording of a graph, and invalidate the rest of the step, unless the thread relaxes the capture mode
 * first. */
static enum cudaStreamCaptureMode relax(enum cudaStreamCaptureMode mode)
{
    cudaThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

static void *get_memory(void *context, size_t bytes)
{
    enum cudaStreamCaptureMode before = relax(cudaStreamCaptureModeRelaxed);
    void *data = NULL;

    (void)context;
    if (cudaMalloc(&data, bytes) != cudaSuccess) {
        cudaGetLastError();
        data = NULL;
    }
    relax(before);
    return data;
}

static void release_memory(void *context, void *data)
{
    enum cudaStreamCaptureMode before = relax(cudaStreamCaptureModeRelaxed);

    (void)context;
    cudaFree(data); /* waits for the device */
    relax(before);
}

void wk_cuda_memory_open(struct wk_cuda *c)
{
    c->own->cache.get = get_memory;
    c->own->cache.release = release_memory;
}

void *wk_cuda_alloc(struct wk_dev *dev, size_t bytes)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    void *data;

    c->unfit |= c->recording;
    data = wk_cache_take(&c->own->cache, bytes);
    if (data && !c->recording)
        wk_cuda_check(c, (int)cudaMemsetAsync(data, 0, bytes, (cudaStream_t)c->stream), "alloc");
    return data;
}

void wk_cuda_free(struct wk_dev *dev, void *data)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    c->unfit |= c->recording && data;
    wk_cache_give(&c->own->cache, data);
}

size_t wk_cuda_available(struct wk_dev *dev)
{
    const struct wk_cache *cache = &wk_cuda_of(dev)->own->cache;
    size_t free_bytes = 0, all;

    if (cudaMemGetInfo(&free_bytes, &all) != cudaSuccess)
        return 0;
    return free_bytes + cache->held_bytes - cache->used_bytes;
}

void *wk_cuda_scratch(struct wk_cuda *c, size_t bytes)
{
    struct wk_cuda_own *own = c->own;
    void *more;

    if (bytes <= own->scratch_bytes)
        return bytes ? own->scratch : NULL;
    c->unfit |= c->recording;
    more = wk_cache_take(&own->cache, bytes);
    if (!more) {
        if (c->dev.error.code == HG_E_NONE && !c->recording) {
            char text[32];

            hg_text_size_format(bytes, text);
            hg_err_set(&c->dev.error, HG_E_ENV, "no memory on %s: %s for an op's scratch",
                       c->dev.name, text);
        }
        return NULL;
    }
    /* Launches that use the old one are queued before those that can get it next; graphs that use it would be launched after them. */
    wk_graphs_clear(&own->graphs);
    wk_cache_give(&own->cache, own->scratch);
    wk_dev_book(&c->dev, WK_MEM_WORKSPACE, (ptrdiff_t)bytes - (ptrdiff_t)own->scratch_asked);
    own->scratch_asked = bytes;
    own->scratch = more;
    own->scratch_bytes = wk_cache_size(&own->cache, more);
    return more;
}

/* ---- Transfers ---- */

/* The next part of pinned memory, after its last transfer has ended. */
static struct wk_pinned *next_pinned(struct wk_cuda *c)
{
    struct wk_cuda_own *own = c->own;
    struct wk_pinned *p = &own->pinned[own->next_pinned];

    own->next_pinned = (own->next_pinned + 1) % WK_PINNED_PARTS;
    if (p->sent)
        wk_cuda_check(c, (int)wk_cuda_await(c, p->arrived, NULL), "upload");
    p->sent = true;
    return p;
}

static void send(struct wk_cuda *c, char *to, const char *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += WK_PINNED_BYTES) {
        size_t n = bytes - at < WK_PINNED_BYTES ? bytes - at : WK_PINNED_BYTES;
        struct wk_pinned *p = next_pinned(c);

        memcpy(p->data, from + at, n);
        if (!wk_cuda_check(c,
                           (int)cudaMemcpyAsync(to + at, p->data, n, cudaMemcpyHostToDevice,
                                                (cudaStream_t)c->stream),
                           "upload") ||
            !wk_cuda_check(c, (int)cudaEventRecord(p->arrived, (cudaStream_t)c->stream), "upload"))
            return;
    }
}

void wk_cuda_upload(struct wk_dev *dev, struct wk_span to, const void *host)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    c->unfit |= c->recording;
    if (!c->recording)
        send(c, to.data, host, to.n * wk_type_size(to.type));
}

void wk_cuda_download(struct wk_dev *dev, void *host, struct wk_span from)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    size_t bytes = from.n * wk_type_size(from.type);

    c->unfit |= c->recording;
    if (!bytes || c->recording)
        return;
    /* into memory that is not pinned, the copy itself would block behind a collective */
    if ((c->watch &&
         !wk_cuda_check(c, (int)wk_cuda_await(c, NULL, (cudaStream_t)c->stream), "download")) ||
        !wk_cuda_check(c,
                       (int)cudaMemcpyAsync(host, from.data, bytes, cudaMemcpyDeviceToHost,
                                            (cudaStream_t)c->stream),
                       "download") ||
        !wk_cuda_check(c, (int)wk_cuda_await(c, NULL, (cudaStream_t)c->stream), "download"))
        memset(host, 0xff, bytes); /* NaN: old content must not be taken for a result */
}

void wk_cuda_copy(struct wk_cuda *c, void *to, const void *from, size_t bytes)
{
    if (bytes)
        wk_cuda_check(c,
                      (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                                           (cudaStream_t)c->stream),
                      "copy");
}

void wk_cuda_send_step(struct wk_cuda *c, const struct wk_cuda_step *step)
{
    c->unfit |= c->recording;
    if (!c->recording)
        send(c, (char *)c->step, (const char *)step, sizeof *step);
    c->step_sent = *step;
}

int wk_cuda_sync(struct wk_dev *dev, struct hg_err *err)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    wk_cuda_check(c, (int)wk_cuda_await(c, NULL, (cudaStream_t)c->stream), "sync");
    if (dev->error.code == HG_E_NONE)
        return 0;
    if (err && err->code == HG_E_NONE)
        *err = dev->error;
    dev->error = (struct hg_err)HG_ERR_INIT;
    return -1;
}
