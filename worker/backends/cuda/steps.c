/* SPDX-License-Identifier: Apache-2.0 */
/* Steps as graphs, and how long they took on the device. A step whose sizes were seen before is recorded and launched as a whole: the
 * hundreds of launches of a small batch cost more than the work. */
#include "backends/cuda/steps.h"

#include <stdlib.h>

#include "backends/cuda/optimes.h"
#include "backends/cuda/own.h"
#include "base/log.h"

static void destroy(void *graph)
{
    cudaGraphExecDestroy((cudaGraphExec_t)graph);
}

int wk_cuda_steps_open(struct wk_cuda *c, struct hg_err *err)
{
    int code = 0;

    c->own->graphs.destroy = destroy;
    c->own->main = c->stream;
    for (int i = 0; i < WK_MARKS && code == 0; i++)
        code = (int)cudaEventCreate(&c->own->marks[i]);
    if (code == 0)
        code = (int)cudaEventCreateWithFlags(&c->own->forked, cudaEventDisableTiming);
    if (code == 0)
        code = (int)cudaEventCreateWithFlags(&c->own->joined, cudaEventDisableTiming);
    if (code == 0)
        code =
            (int)cudaStreamCreateWithFlags((cudaStream_t *)&c->own->aside, cudaStreamNonBlocking);
    if (code == 0)
        return 0;
    return hg_err_set(err, HG_E_ENV, "no events and streams on %s: %s", c->dev.name,
                      cudaGetErrorString((cudaError_t)code));
}

void wk_cuda_steps_close(struct wk_cuda *c)
{
    wk_graphs_done(&c->own->graphs);
    for (int i = 0; i < WK_MARKS; i++)
        if (c->own->marks[i])
            cudaEventDestroy(c->own->marks[i]);
    if (c->own->forked)
        cudaEventDestroy(c->own->forked);
    if (c->own->joined)
        cudaEventDestroy(c->own->joined);
    if (c->own->aside)
        cudaStreamDestroy((cudaStream_t)c->own->aside);
}

/* ---- Graphs ---- */

static bool launch(struct wk_cuda *c, struct wk_graph_entry *e)
{
    c->own->graphs.launched++;
    return wk_cuda_check(c,
                         (int)cudaGraphLaunch((cudaGraphExec_t)e->graph, (cudaStream_t)c->stream),
                         "a step's graph");
}

static void start_recording(struct wk_cuda *c)
{
    c->recording = cudaStreamBeginCapture((cudaStream_t)c->stream,
                                          cudaStreamCaptureModeThreadLocal) == cudaSuccess;
    c->unfit = !c->recording;
    if (c->unfit)
        cudaGetLastError(); /* the next launch would take it for its own */
}

bool wk_cuda_step_begin(struct wk_dev *dev, const struct wk_step *s)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_step numbers = { .number = s->number,
                                    .lr = (float)s->lr,
                                    .taken = (float)s->update };
    struct wk_graph_entry *e;

    wk_cuda_send_step(c, &numbers);
    c->own->running = NULL;
    if (c->own->op_times)
        wk_op_times_step(c->own->op_times, s->epoch, (cudaStream_t)c->stream);
    if (!s->repeats || c->own->op_times || getenv("HPCGRID_NO_GRAPHS"))
        return true;
    e = c->own->running = wk_graphs_get(&c->own->graphs, s->key);
    if (e->state == WK_GRAPH_READY) {
        launch(c, e);
        return false;
    }
    if (e->state == WK_GRAPH_SEEN)
        start_recording(c);
    return true;
}

/* What was recorded, as something that can be launched; NULL when it cannot. */
static cudaGraphExec_t finish_recording(struct wk_cuda *c)
{
    cudaGraphExec_t ready = NULL;
    cudaGraph_t graph = NULL;
    cudaError_t code = cudaStreamEndCapture((cudaStream_t)c->stream, &graph);

    c->recording = false;
    if (code == cudaSuccess && graph && !c->unfit)
        code = cudaGraphInstantiate(&ready, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    if (code != cudaSuccess) {
        cudaGetLastError();
        ready = NULL;
    }
    return ready;
}

bool wk_cuda_step_end(struct wk_dev *dev)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_graph_entry *e = c->own->running;
    cudaGraphExec_t ready;

    if (!e)
        return false;
    if (!c->recording) {
        if (e->state == WK_GRAPH_NEW)
            e->state = WK_GRAPH_SEEN;
        else if (e->state == WK_GRAPH_SEEN)
            e->state = WK_GRAPH_REFUSED; /* recording did not even begin */
        return false;
    }
    ready = finish_recording(c);
    if (!ready) {
        e->state = WK_GRAPH_REFUSED; /* nothing of it ran: once more, as it is */
        hg_log(HG_LOG_DEBUG, "this step cannot be recorded as a graph");
        return true;
    }
    e->state = WK_GRAPH_READY;
    e->graph = ready;
    c->own->graphs.recorded++;
    launch(c, e);
    return false;
}

/* ---- Times ---- */

static int place_of(const struct wk_cuda_own *own, int i)
{
    return (own->first_mark + i) % WK_MARKS;
}

static cudaEvent_t mark_at(const struct wk_cuda_own *own, int i)
{
    return own->marks[place_of(own, i)];
}

/* From the first mark to the second; the first is forgotten. */
static struct wk_lap take_time(struct wk_cuda *c)
{
    struct wk_cuda_own *own = c->own;
    enum wk_mark what = own->mark_kinds[place_of(own, 1)];
    float ms = 0;

    wk_cuda_check(c, (int)cudaEventElapsedTime(&ms, mark_at(own, 0), mark_at(own, 1)),
                  "a step's time");
    own->first_mark = (own->first_mark + 1) % WK_MARKS;
    own->n_marks--;
    return (struct wk_lap){ .what = what, .seconds = (double)ms / 1000 };
}

void wk_cuda_mark(struct wk_dev *dev, enum wk_mark what)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_own *own = c->own;

    if (what == WK_MARK_BEGIN)
        own->n_marks = 0;
    if (own->n_marks == WK_MARKS) /* not read: the oldest is lost */
        take_time(c);
    wk_cuda_check(c, (int)cudaEventRecord(mark_at(own, own->n_marks), (cudaStream_t)c->stream),
                  "a step's time");
    own->mark_kinds[place_of(own, own->n_marks)] = what;
    own->n_marks++;
}

int wk_cuda_times(struct wk_dev *dev, struct wk_lap *laps, int most)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_own *own = c->own;
    int n = 0;

    while (n < most && own->n_marks > 1) {
        /* the host runs ahead, but not without end */
        if (own->n_marks < WK_MARKS - 2 && cudaEventQuery(mark_at(own, 1)) != cudaSuccess)
            break;
        if (!wk_cuda_check(c, (int)wk_cuda_await(c, mark_at(own, 1), NULL), "a step's time"))
            break;
        laps[n++] = take_time(c);
    }
    cudaGetLastError(); /* "not ready" is not an error */
    return n;
}

/* ---- A second stream ---- */

/* In a graph, too, it is a branch of its own: waiting for an event of the recorded stream takes the other into the recording. Op times are those of
 * ops one after the other. */
bool wk_cuda_aside(struct wk_dev *dev, bool on)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    struct wk_cuda_own *own = c->own;
    int code;

    if (own->op_times)
        return false;
    if (on) {
        code = (int)cudaEventRecord(own->forked, (cudaStream_t)own->main);
        if (code == 0)
            code = (int)cudaStreamWaitEvent((cudaStream_t)own->aside, own->forked, 0);
    } else {
        code = (int)cudaEventRecord(own->joined, (cudaStream_t)own->aside);
    }
    c->stream = on ? own->aside : own->main;
    wk_cuda_check(c, code, "a second stream");
    return true;
}

void wk_cuda_join(struct wk_dev *dev)
{
    struct wk_cuda *c = wk_cuda_of(dev);
    cudaStream_t stream = (cudaStream_t)c->own->main;

    wk_cuda_check(c, (int)cudaStreamWaitEvent(stream, c->own->joined, 0), "a second stream");
}
