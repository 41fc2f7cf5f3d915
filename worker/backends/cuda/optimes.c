/* SPDX-License-Identifier: Apache-2.0 */
/* How long each op takes on the device: with HPCGRID_OP_TIMES=FILE an event follows every launch, and the seconds between two belong to the op of
 * the second, waiting for the host included. Steps are not launched as graphs then. */
#include "backends/cuda/optimes.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/log.h"

#define EVENTS 1024
#define NAMES 96

struct wk_op_times {
    const char *path;
    cudaEvent_t events[EVENTS];
    const char *names[EVENTS]; /* of the launches before them */
    int n;
    struct {
        const char *name;
        long calls;
        double seconds;
    } ops[NAMES];
    int n_ops;
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
    t->ops[i].calls++;
    t->ops[i].seconds += seconds;
}

/* Add up what is there; the last event begins the next row. */
static void flush(struct wk_op_times *t)
{
    cudaEvent_t last;
    float ms;

    if (t->n < 2 || cudaEventSynchronize(t->events[t->n - 1]) != cudaSuccess)
        return;
    for (int i = 1; i < t->n; i++)
        if (cudaEventElapsedTime(&ms, t->events[i - 1], t->events[i]) == cudaSuccess)
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

static void save(const struct wk_op_times *t)
{
    struct hg_err err = HG_ERR_INIT;
    json_t *o = json_object();

    for (int i = 0; i < t->n_ops; i++)
        json_object_set_new(o, t->ops[i].name,
                            json_pack("{s:I, s:f}", "calls", (json_int_t)t->ops[i].calls, "seconds",
                                      t->ops[i].seconds));
    if (hg_json_save(t->path, o, &err) < 0)
        hg_warn("%s", err.text);
    json_decref(o);
}

void wk_op_times_close(struct wk_op_times *t)
{
    if (!t)
        return;
    flush(t);
    if (t->n_ops)
        save(t);
    for (int i = 0; i < EVENTS; i++)
        if (t->events[i])
            cudaEventDestroy(t->events[i]);
    free(t);
}
