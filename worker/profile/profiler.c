/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/profiler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/vec.h"

#define DEPTH_MAX 32

struct open_span {
    const char *name;
    enum wk_span_kind kind;
    double start_s, inside_s;
};

struct wk_profiler {
    struct wk_dev *dev;
    struct wk_comm *comm;
    struct wk_schedule schedule;
    const struct wk_backend *inner;
    struct wk_backend timed;
    enum wk_step_kind now;
    long step, recorded;
    bool running; /* a step has begun */
    struct {
        struct wk_timed *items;
        size_t n, cap;
    } spans;
    size_t dropped;
    struct open_span open[DEPTH_MAX];
    int depth, deeper; /* deeper: open spans beyond DEPTH_MAX */
};

/* ---- Ops that take the time around the device's own ---- */

#define OP(name, params, args, ...)                          \
    static void timed_##name params                          \
    {                                                        \
        wk_profiler_begin(dev->profiler, WK_SPAN_OP, #name); \
        dev->profiler->inner->name args;                     \
        wk_profiler_end(dev->profiler);                      \
    }
OP(upload, (struct wk_dev * dev, struct wk_span to, const void *host), (dev, to, host))
OP(download, (struct wk_dev * dev, void *host, struct wk_span from), (dev, host, from))
#include "backends/ops.def"

static void time_ops(struct wk_backend *table)
{
    table->upload = timed_upload;
    table->download = timed_download;
#define OP(name, ...) \
    if (table->name)  \
        table->name = timed_##name;
#include "backends/ops.def"
}

struct wk_profiler *wk_profiler_create(struct wk_dev *dev, struct wk_comm *comm,
                                       const struct wk_schedule *schedule)
{
    struct wk_profiler *p = hg_alloc_zeroed(1, sizeof *p);

    p->dev = dev;
    p->comm = comm;
    p->schedule = *schedule;
    p->inner = dev->backend;
    p->timed = *p->inner;
    time_ops(&p->timed);
    dev->profiler = p;
    return p;
}

void wk_profiler_free(struct wk_profiler *p)
{
    if (!p)
        return;
    p->dev->backend = p->inner;
    p->dev->profiler = NULL;
    p->comm->recording = false;
    HG_VEC_DONE(&p->spans);
    free(p);
}

static bool is_watched(const struct wk_profiler *p)
{
    return p && p->running && p->now != WK_STEP_ALONE;
}

static void keep(struct wk_profiler *p, const struct open_span *s, double end_s)
{
    if (p->spans.n == WK_SPANS_MAX)
        p->dropped++;
    else
        *HG_VEC_PUSH(&p->spans) = (struct wk_timed){ .name = s->name,
                                                     .kind = s->kind,
                                                     .number = p->step,
                                                     .start_s = s->start_s,
                                                     .end_s = end_s,
                                                     .self_s = end_s - s->start_s - s->inside_s };
}

void wk_profiler_begin(struct wk_profiler *p, enum wk_span_kind kind, const char *name)
{
    if (!is_watched(p))
        return;
    if (p->depth == DEPTH_MAX) {
        p->deeper++;
        return;
    }
    p->open[p->depth++] =
        (struct open_span){ .name = name, .kind = kind, .start_s = hg_clock_mono_s() };
}

void wk_profiler_end(struct wk_profiler *p)
{
    double now;

    if (!is_watched(p) || p->depth == 0)
        return;
    if (p->deeper) {
        p->deeper--;
        return;
    }
    now = hg_clock_mono_s();
    p->depth--;
    if (p->depth)
        p->open[p->depth - 1].inside_s += now - p->open[p->depth].start_s;
    if (p->now == WK_STEP_RECORD)
        keep(p, &p->open[p->depth], now);
}

static void end_step(struct wk_profiler *p)
{
    struct hg_err later = HG_ERR_INIT; /* the training's own sync hands a failure out */

    if (p->now == WK_STEP_RECORD && p->inner->step_begin)
        p->inner->sync(p->dev, &later);
    while (p->depth)
        wk_profiler_end(p);
    p->recorded += p->now == WK_STEP_RECORD;
    p->running = false;
}

void wk_profiler_step(struct wk_profiler *p, long step)
{
    if (!p)
        return;
    if (is_watched(p))
        end_step(p);
    p->now = wk_schedule_at(&p->schedule, step);
    p->step = step;
    p->running = true;
    p->dev->backend = p->now == WK_STEP_ALONE ? p->inner : &p->timed;
    p->comm->recording = p->now == WK_STEP_RECORD;
    wk_profiler_begin(p, WK_SPAN_STEP, "step");
}

const struct wk_timed *wk_profiler_spans(const struct wk_profiler *p, size_t *n)
{
    *n = p->spans.n;
    return p->spans.items;
}

size_t wk_profiler_dropped(const struct wk_profiler *p)
{
    return p->dropped;
}

long wk_profiler_steps(const struct wk_profiler *p)
{
    return p->recorded;
}

const struct wk_dev *wk_profiler_dev(const struct wk_profiler *p)
{
    return p->dev;
}

const struct wk_comm *wk_profiler_comm(const struct wk_profiler *p)
{
    return p->comm;
}

/* ---- Totals ---- */

struct total {
    const char *name;
    size_t calls;
    double total_s, self_s;
};

static struct total *find_total(struct total *totals, size_t *n, const char *name)
{
    for (size_t i = 0; i < *n; i++)
        if (totals[i].name == name || strcmp(totals[i].name, name) == 0)
            return &totals[i];
    totals[*n] = (struct total){ .name = name };
    return &totals[(*n)++];
}

static int compare_totals(const void *pa, const void *pb)
{
    const struct total *a = pa, *b = pb;

    if (a->self_s != b->self_s)
        return a->self_s > b->self_s ? -1 : 1;
    return strcmp(a->name, b->name);
}

static json_t *to_ns(double s)
{
    return hg_json_number(round(s * 1e9) / 1e9);
}

json_t *wk_profiler_table(const struct wk_profiler *p)
{
    struct total totals[64];
    size_t n = 0;
    json_t *ops = json_array();

    for (size_t i = 0; i < p->spans.n; i++) {
        const struct wk_timed *s = &p->spans.items[i];
        struct total *t;

        if (s->kind != WK_SPAN_OP || (n == sizeof totals / sizeof *totals))
            continue;
        t = find_total(totals, &n, s->name);
        t->calls++;
        t->total_s += s->end_s - s->start_s;
        t->self_s += s->self_s;
    }
    qsort(totals, n, sizeof *totals, compare_totals);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(ops, json_pack("{s:s, s:I, s:o, s:o}", "name", totals[i].name,
                                             "calls", (json_int_t)totals[i].calls, "total_s",
                                             to_ns(totals[i].total_s), "self_s",
                                             to_ns(totals[i].self_s)));
    return json_pack("{s:I, s:o}", "steps", (json_int_t)p->recorded, "ops", ops);
}

enum wk_step_kind wk_schedule_at(const struct wk_schedule *s, long step)
{
    long round = s->wait + s->warmup + s->active, at = step - s->skip;

    if (at < 0 || (s->repeat && at / round >= s->repeat))
        return WK_STEP_ALONE;
    at %= round;
    if (at < s->wait)
        return WK_STEP_ALONE;
    return at < s->wait + s->warmup ? WK_STEP_WARMUP : WK_STEP_RECORD;
}
