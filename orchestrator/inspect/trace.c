/* SPDX-License-Identifier: Apache-2.0 */
/* A run as a trace: what ran where, and when. */
#include "inspect/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"

#define QUEUE_LANES 50   /* waiting attempts of a batch that are drawn at a time; all are counted */
#define QUEUE_PID 100000 /* of batch 1's queue is one more; nodes count from 1 */
#define COUNTERS_PID 0

/* Threads of a process: a slice goes to the first one that is free. */
struct lanes {
    char *name;    /* of the process */
    double *items; /* by thread; when its last slice ends */
    size_t n, cap;
};

struct writer {
    FILE *out;
    double base_s;
    bool any; /* an event was written */
    struct hg_buf text;
    struct hg_names *names;
    struct hg_buf name; /* of one cell */
    struct {
        struct lanes *items;
        size_t n, cap;
    } nodes, queues;
    struct hg_map node_numbers;
    const struct hg_timeline_attempt *attempt; /* that is being drawn */
    json_t *args;                              /* its own */
};

/* ---- Events ---- */

static void put(struct writer *w)
{
    fputs(w->any ? ",\n" : "\n", w->out);
    fwrite(hg_buf_str(&w->text), 1, w->text.len, w->out);
    hg_buf_clear(&w->text);
    w->any = true;
}

/* Lent until the next one. */
static const char *name_of(struct writer *w, const struct hg_timeline_attempt *a)
{
    hg_buf_clear(&w->name);
    hg_names_append(w->names, a->number, &w->name);
    return hg_buf_str(&w->name);
}

static void put_string(struct writer *w, const char *key, const char *value)
{
    hg_buf_printf(&w->text, ",\"%s\":", key);
    hg_json_dump_string(value, strlen(value), &w->text);
}

static long long since_ns(const struct writer *w, double t_s)
{
    return llround((t_s - w->base_s) * 1e9);
}

/* args may be NULL. Begin and end are rounded, not the length: slices that touch or end together do so to the nanosecond, because
 * Perfetto drops slices that overlap. */
static void put_slice(struct writer *w, const char *name, const char *category, size_t pid,
                      size_t tid, double from_s, double to_s, const json_t *args)
{
    long long from = since_ns(w, from_s), length = since_ns(w, fmax(to_s, from_s)) - from;

    hg_buf_printf(&w->text,
                  "{\"ph\":\"X\",\"pid\":%zu,\"tid\":%zu,\"ts\":%lld.%03lld,\"dur\":%lld.%03lld",
                  pid, tid, from / 1000, from % 1000, length / 1000, length % 1000);
    put_string(w, "name", name);
    put_string(w, "cat", category);
    if (args) {
        hg_buf_puts(&w->text, ",\"args\":");
        hg_json_dump(args, HG_JSON_COMPACT, &w->text);
    }
    hg_buf_puts(&w->text, "}");
    put(w);
}

/* "process_name", "thread_name" */
static void put_label(struct writer *w, const char *what, size_t pid, size_t tid, const char *name)
{
    hg_buf_printf(&w->text,
                  "{\"ph\":\"M\",\"pid\":%zu,\"tid\":%zu,\"name\":\"%s\",\"args\":{\"name\":", pid,
                  tid, what);
    hg_json_dump_string(name, strlen(name), &w->text);
    hg_buf_puts(&w->text, "}}");
    put(w);
}

/* ---- Lanes ---- */

/* The first thread that is free from a time on, until another; at most `most`. 0: none. */
static size_t take_lane(struct lanes *l, double from_s, double to_s, size_t most)
{
    size_t k = 0;

    while (k < l->n && l->items[k] > from_s)
        k++;
    if (k == most)
        return 0;
    if (k == l->n)
        HG_VEC_PUSH(l);
    l->items[k] = to_s;
    return k + 1;
}

static void label_lanes(struct writer *w, const struct lanes *l, size_t pid, size_t order,
                        const char *lane)
{
    char name[48];

    if (!l->n)
        return;
    put_label(w, "process_name", pid, 0, l->name);
    hg_buf_printf(&w->text,
                  "{\"ph\":\"M\",\"pid\":%zu,\"tid\":0,\"name\":\"process_sort_index\",\"args\":"
                  "{\"sort_index\":%zu}}",
                  pid, order);
    put(w);
    for (size_t k = 1; k <= l->n; k++) {
        snprintf(name, sizeof name, "%s %zu", lane, k);
        put_label(w, "thread_name", pid, k, name);
    }
}

static void free_lanes(struct lanes *l)
{
    free(l->name);
    HG_VEC_DONE(l);
}

/* ---- An attempt on its nodes ---- */

static json_t *make_args(const struct hg_rundir *rd, const struct hg_timeline_attempt *a)
{
    json_t *args = json_pack("{s:s,s:s,s:s,s:i,s:o,s:o}", "cell", a->id, "attempt", a->name,
                             "status", a->status, "batch", a->batch, "parameters",
                             json_loads(a->cell, 0, NULL), "folder", hg_json_text(a->folder));

    if (a->job_id)
        json_object_set_new(args, "job", json_integer(a->job_id));
    if (a->queued_s > 0)
        json_object_set_new(args, "queued_s", hg_json_number(fmax(a->begin_s - a->queued_s, 0)));
    if (a->wall_s > 0)
        json_object_set_new(args, "wall_s", hg_json_number(a->wall_s));
    if (isfinite(a->train_s))
        json_object_set_new(args, "train_s", hg_json_number(a->train_s));
    if (!(a->wall_s > 0))
        json_object_set_new(args, "end", json_string(a->open ? "not yet" : "not known"));
    if (*a->error)
        json_object_set_new(args, "error", hg_json_text(a->error));
    if (a->traces) {
        char *command =
            hg_str_printf("hpcgrid trace %s --cell %s --attempt %s", rd->path, a->id, a->name);

        json_object_set_new(args, "traces", json_integer(a->traces));
        json_object_set_new(args, "see", hg_json_text(command));
        free(command);
    }
    return args;
}

/* A phase inside the attempt's slice. */
static void put_phase(struct writer *w, const char *name, size_t pid, size_t tid, double *at_s,
                      double to_s)
{
    double from_s = *at_s;

    to_s = fmin(fmax(to_s, from_s), w->attempt->end_s);
    *at_s = to_s;
    if (to_s > from_s)
        put_slice(w, name, "phase", pid, tid, from_s, to_s, NULL);
}

/* The start, the phases that the workload reports (or the time of all its ranks), and the rest. */
static void put_phases(struct writer *w, size_t pid, size_t tid)
{
    const struct hg_timeline_attempt *a = w->attempt;
    bool phases = isfinite(a->init_s) && isfinite(a->train_s);
    double at_s = a->begin_s;

    if (a->work_s <= 0)
        return;
    put_phase(w, "start", pid, tid, &at_s, a->work_s);
    if (phases) {
        put_phase(w, "init", pid, tid, &at_s, at_s + a->init_s);
        put_phase(w, "train", pid, tid, &at_s, at_s + a->train_s);
    } else {
        put_phase(w, "work", pid, tid, &at_s, a->worked_s);
    }
    put_phase(w, "finish", pid, tid, &at_s, a->end_s);
}

static int put_on_node(void *context, const char *host)
{
    struct writer *w = context;
    const struct hg_timeline_attempt *a = w->attempt;
    size_t node = hg_map_put(&w->node_numbers, host, strlen(host), w->nodes.n), tid;

    if (node == w->nodes.n)
        *HG_VEC_PUSH(&w->nodes) = (struct lanes){ .name = hg_strdup(host) };
    tid = take_lane(&w->nodes.items[node], a->begin_s, a->end_s, SIZE_MAX);
    put_slice(w, name_of(w, a), a->status, node + 1, tid, a->begin_s, a->end_s, w->args);
    put_phases(w, node + 1, tid);
    return 0;
}

static void put_attempt(struct writer *w, const struct hg_rundir *rd,
                        const struct hg_timeline_attempt *a)
{
    w->attempt = a;
    w->args = make_args(rd, a);
    if (!*a->nodes)
        put_on_node(w, "node not known");
    else if (hg_text_each_host(a->nodes, put_on_node, w) < 0)
        put_on_node(w, a->nodes); /* not a list that we can read: one node of this name */
    json_decref(w->args);
    w->args = NULL;
}

/* ---- The queue ---- */

static int by_queued(const void *pa, const void *pb)
{
    const struct hg_timeline_attempt *a = *(const struct hg_timeline_attempt *const *)pa,
                                     *b = *(const struct hg_timeline_attempt *const *)pb;
    int by = (a->queued_s > b->queued_s) - (a->queued_s < b->queued_s);

    return by ? by : (a > b) - (a < b);
}

static void put_waiting(struct writer *w, const struct hg_timeline_attempt *a)
{
    size_t tid, pid = QUEUE_PID + (size_t)a->batch;
    json_t *args;

    while (w->queues.n < (size_t)a->batch) {
        char *name = hg_str_printf("queue, batch %zu", w->queues.n + 1);

        *HG_VEC_PUSH(&w->queues) = (struct lanes){ .name = name };
    }
    tid = take_lane(&w->queues.items[a->batch - 1], a->queued_s, a->begin_s, QUEUE_LANES);
    if (!tid)
        return;
    args = json_pack("{s:s,s:s}", "cell", a->id, "attempt", a->name);
    put_slice(w, name_of(w, a), "queued", pid, tid, a->queued_s, a->begin_s, args);
    json_decref(args);
}

static void put_queues(struct writer *w, const struct hg_timeline *t)
{
    const struct hg_timeline_attempt **sorted = hg_alloc(t->n * sizeof(*sorted));
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        if (t->items[i].queued_s > 0 && t->items[i].queued_s <= t->items[i].begin_s)
            sorted[n++] = &t->items[i];
    qsort(sorted, n, sizeof(*sorted), by_queued);
    for (size_t i = 0; i < n; i++)
        put_waiting(w, sorted[i]);
    free(sorted);
}

/* ---- Counters ---- */

struct change {
    double t_s;
    int queued, running, ok, bad;
};

static int by_time(const void *pa, const void *pb)
{
    const struct change *a = pa, *b = pb;

    return (a->t_s > b->t_s) - (a->t_s < b->t_s);
}

/* What each attempt changes, and when. A cell is done once, by its first good result. */
static size_t list_changes(const struct hg_timeline *t, struct hg_map *done, struct change *list)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++) {
        const struct hg_timeline_attempt *a = &t->items[i];
        bool queued = a->queued_s > 0 && a->queued_s <= a->begin_s;
        bool first = a->good && hg_map_put(done, a->id, strlen(a->id), i) == i;

        if (queued)
            list[n++] = (struct change){ .t_s = a->queued_s, .queued = 1 };
        list[n++] = (struct change){ .t_s = a->begin_s, .queued = -queued, .running = 1 };
        if (!a->open)
            list[n++] =
                (struct change){ .t_s = a->end_s, .running = -1, .ok = first, .bad = !a->good };
    }
    qsort(list, n, sizeof *list, by_time);
    return n;
}

static void put_count(struct writer *w, const struct change *now)
{
    hg_buf_printf(
        &w->text,
        "{\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,\"name\":\"attempts\",\"args\":{\"queued\":%d,"
        "\"running\":%d}}",
        COUNTERS_PID, (now->t_s - w->base_s) * 1e6, now->queued, now->running);
    put(w);
    hg_buf_printf(&w->text,
                  "{\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,\"name\":\"cells\",\"args\":{\"ok\":%d,"
                  "\"bad attempts\":%d}}",
                  COUNTERS_PID, (now->t_s - w->base_s) * 1e6, now->ok, now->bad);
    put(w);
}

static void put_counters(struct writer *w, const struct hg_timeline *t)
{
    struct change *list = hg_alloc(3 * t->n * sizeof *list), now = { 0 };
    struct hg_map done = HG_MAP_INIT;
    size_t n = list_changes(t, &done, list);

    put_label(w, "process_name", COUNTERS_PID, 0, "counters");
    for (size_t i = 0; i < n; i++) {
        now.t_s = list[i].t_s;
        now.queued += list[i].queued;
        now.running += list[i].running;
        now.ok += list[i].ok;
        now.bad += list[i].bad;
        if (i + 1 == n || list[i + 1].t_s > now.t_s)
            put_count(w, &now);
    }
    hg_map_done(&done);
    free(list);
}

/* ---- The file ---- */

static double first_time(const struct hg_timeline *t)
{
    double first_s = INFINITY;

    for (size_t i = 0; i < t->n; i++) {
        first_s = fmin(first_s, t->items[i].begin_s);
        if (t->items[i].queued_s > 0)
            first_s = fmin(first_s, t->items[i].queued_s);
    }
    return isfinite(first_s) ? first_s : 0;
}

static void put_head(struct writer *w, const struct hg_rundir *rd)
{
    hg_buf_printf(&w->text,
                  "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":%.0f000",
                  w->base_s * 1e6);
    put_string(w, "run", rd->path);
    hg_buf_puts(&w->text, ",\"traceEvents\":[");
    fwrite(hg_buf_str(&w->text), 1, w->text.len, w->out);
    hg_buf_clear(&w->text);
}

static void put_labels(struct writer *w)
{
    for (size_t i = 0; i < w->nodes.n; i++)
        label_lanes(w, &w->nodes.items[i], i + 1, 1000 + i, "slot");
    for (size_t i = 0; i < w->queues.n; i++)
        label_lanes(w, &w->queues.items[i], QUEUE_PID + i + 1, 1 + i, "waits");
}

static void writer_done(struct writer *w)
{
    for (size_t i = 0; i < w->nodes.n; i++)
        free_lanes(&w->nodes.items[i]);
    for (size_t i = 0; i < w->queues.n; i++)
        free_lanes(&w->queues.items[i]);
    HG_VEC_DONE(&w->nodes);
    HG_VEC_DONE(&w->queues);
    hg_map_done(&w->node_numbers);
    hg_buf_done(&w->text);
    hg_buf_done(&w->name);
}

void hg_trace_run(const struct hg_rundir *rd, const struct hg_timeline *t, FILE *out)
{
    struct writer w = { .out = out, .base_s = first_time(t), .names = t->names };

    put_head(&w, rd);
    for (size_t i = 0; i < t->n; i++)
        put_attempt(&w, rd, &t->items[i]);
    put_queues(&w, t);
    put_counters(&w, t);
    put_labels(&w);
    fputs("\n]}\n", out);
    writer_done(&w);
}
