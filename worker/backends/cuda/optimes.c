/* SPDX-License-Identifier: Apache-2.0 */
/* How long each op takes on the device: with HPCGRID_OP_TIMES=FILE an event follows every launch, and the seconds between two belong to the op of
 * the second, waiting for the host included. Steps are not launched as graphs then. The file has each op's seconds in a step, the median over
 * the steps, and its launches in one, the mean. Steps of the first epoch, in which code is loaded and algorithms are timed, count only where
 * there are no others; what lies between the last step and the end does not. */
#include "backends/cuda/optimes.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/search.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/log.h"
#include "base/vec.h"

#define EVENTS 1024
#define NAMES 96

/* Instead of an op's name: a step begins, of the first epoch or a later one. */
static const char first_epoch[] = "first", later_epoch[] = "later";

struct op {
    const char *name;
    long calls;     /* in all steps that count */
    long calls_now; /* in the running step */
    double now;     /* seconds in the running step */
    struct {
        double *items;
        size_t n, cap;
    } steps; /* seconds in each that counts; those before its first launch are missing */
};

struct wk_op_times {
    const char *path;
    cudaEvent_t events[EVENTS];
    const char *names[EVENTS]; /* of the launches before them */
    int n;
    struct op ops[NAMES];
    int n_ops;
    size_t steps;      /* that count */
    bool began, later; /* a step did, and one of a later epoch */
};

static void add(struct wk_op_times *t, const char *name, double seconds)
{
    int i = 0;

    while (i < t->n_ops && strcmp(t->ops[i].name, name) != 0)
        i++;
    if (i == NAMES)
        return;
    if (i == t->n_ops)
        t->ops[t->n_ops++].name = name;
    t->ops[i].calls_now++;
    t->ops[i].now += seconds;
}

/* Count the running step, or, where a later epoch begins, forget all steps so far. */
static void end_step(struct wk_op_times *t, bool forget)
{
    bool counts = t->began && !forget;

    t->steps = forget ? 0 : t->steps + counts;
    for (int i = 0; i < t->n_ops; i++) {
        struct op *op = &t->ops[i];

        if (counts)
            *HG_VEC_PUSH(&op->steps) = op->now;
        else
            op->steps.n = 0;
        op->calls = counts ? op->calls + op->calls_now : 0;
        op->calls_now = 0;
        op->now = 0;
    }
}

static void begin_step(struct wk_op_times *t, bool later)
{
    end_step(t, later && !t->later);
    t->began = true;
    t->later = later;
}

/* Add up what is there; the last event begins the next row. */
static void flush(struct wk_op_times *t)
{
    cudaEvent_t last;
    float ms;

    if (t->n < 2 || cudaEventSynchronize(t->events[t->n - 1]) != cudaSuccess)
        return;
    for (int i = 1; i < t->n; i++)
        if (t->names[i] == first_epoch || t->names[i] == later_epoch)
            begin_step(t, t->names[i] == later_epoch);
        else if (cudaEventElapsedTime(&ms, t->events[i - 1], t->events[i]) == cudaSuccess)
            add(t, t->names[i], (double)ms / 1000);
    last = t->events[t->n - 1];
    t->events[t->n - 1] = t->events[0];
    t->events[0] = last;
    t->n = 1;
}

struct wk_op_times *wk_op_times_open(void)
{
    const char *path = getenv("HPCGRID_OP_TIMES");
    struct wk_op_times *t = path && *path ? hg_alloc_zeroed(1, sizeof *t) : NULL;

    if (!t)
        return NULL;
    t->path = path;
    for (int i = 0; i < EVENTS; i++)
        if (cudaEventCreate(&t->events[i]) != cudaSuccess) {
            wk_op_times_close(t);
            return NULL;
        }
    return t;
}

void wk_op_times_mark(struct wk_op_times *t, const char *name, cudaStream_t stream)
{
    if (t->n == EVENTS)
        flush(t);
    if (t->n == EVENTS || cudaEventRecord(t->events[t->n], stream) != cudaSuccess)
        return;
    t->names[t->n++] = name;
}

void wk_op_times_step(struct wk_op_times *t, int epoch, cudaStream_t stream)
{
    wk_op_times_mark(t, epoch > 0 ? later_epoch : first_epoch, stream);
}

static json_t *encode(struct op *op, size_t steps)
{
    while (op->steps.n < steps)
        *HG_VEC_PUSH(&op->steps) = 0;
    return json_pack("{s:f, s:f}", "calls", (double)op->calls / (double)steps, "seconds",
                     wk_search_median(op->steps.items, steps));
}

static void save(struct wk_op_times *t)
{
    struct hg_err err = HG_ERR_INIT;
    json_t *ops = json_object(), *o;

    for (int i = 0; i < t->n_ops; i++)
        if (t->ops[i].steps.n)
            json_object_set_new(ops, t->ops[i].name, encode(&t->ops[i], t->steps));
    o = json_pack("{s:I, s:o}", "steps", (json_int_t)t->steps, "ops", ops);
    if (hg_json_save(t->path, o, &err) < 0)
        hg_warn("%s", err.text);
    json_decref(o);
}

void wk_op_times_close(struct wk_op_times *t)
{
    if (!t)
        return;
    flush(t);
    if (t->began && !t->steps)
        end_step(t, false); /* the only one */
    if (t->steps)
        save(t);
    for (int i = 0; i < t->n_ops; i++)
        HG_VEC_DONE(&t->ops[i].steps);
    for (int i = 0; i < EVENTS; i++)
        if (t->events[i])
            cudaEventDestroy(t->events[i]);
    free(t);
}
