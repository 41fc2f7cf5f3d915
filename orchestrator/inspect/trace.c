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

#define QUEUE_LANES 50   /* attempts of a batch whose waiting is drawn at a time; all are counted */
#define QUEUE_PID 100000 /* of batch 1's queue is one more; nodes count from 1 */
#define COUNTERS_PID 0

/* Threads of a process: a slice goes to the first one that is free. */
struct lanes {
    char *name;     /* of the process */
    double *free_s; /* by thread; when its last slice ends */
    size_t n, cap;
};

struct writer {
    FILE *out;
    double base_s;
    bool any; /* an event was written */
    struct hg_buf text;
    struct {
        struct lanes *items;
        size_t n, cap;
    } nodes, queues;
    struct hg_map node_numbers;
    const struct hg_timeline_attempt *attempt; /* that is being drawn */
    json_t *args;                              /* its own */
    struct hg_err *err;
};

/* ---- Events ---- */

static int put(struct writer *w)
{
    if (w->text.failed)
        return hg_err_oom(w->err);
    fputs(w->any ? ",\n" : "\n", w->out);
    fwrite(hg_buf_str(&w->text), 1, w->text.len, w->out);
    hg_buf_clear(&w->text);
    w->any = true;
    return 0;
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

/* args may be NULL. Begin and end are rounded, not the length: what touches its neighbour or ends with what it stands in does so to
 * the nanosecond, as Perfetto drops slices that overlap. */
static int put_slice(struct writer *w, const char *name, const char *category, size_t pid,
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
    return put(w);
}

/* "process_name", "thread_name" */
static int put_label(struct writer *w, const char *what, size_t pid, size_t tid, const char *name)
{
    hg_buf_printf(&w->text,
                  "{\"ph\":\"M\",\"pid\":%zu,\"tid\":%zu,\"name\":\"%s\",\"args\":{\"name\":", pid,
                  tid, what);
    hg_json_dump_string(name, strlen(name), &w->text);
    hg_buf_puts(&w->text, "}}");
    return put(w);
}

static int put_order(struct writer *w, size_t pid, size_t order)
{
    hg_buf_printf(&w->text,
                  "{\"ph\":\"M\",\"pid\":%zu,\"tid\":0,\"name\":\"process_sort_index\",\"args\":"
                  "{\"sort_index\":%zu}}",
                  pid, order);
    return put(w);
}

/* ---- Lanes ---- */

/* The first free thread from a time on, until another; at most `most`. 0: none, or memory is gone. */
static size_t take_lane(struct lanes *l, double from_s, double to_s, size_t most)
{
    size_t k = 0;
    double *grown;

    while (k < l->n && l->free_s[k] > from_s)
        k++;
    if (k == most)
        return 0;
    if (k == l->cap) {
        grown = hg_realloc(l->free_s, (l->cap * 2 + 4) * sizeof *grown);
        if (!grown)
            return 0;
        l->free_s = grown;
        l->cap = l->cap * 2 + 4;
    }
    l->n = k == l->n ? k + 1 : l->n;
    l->free_s[k] = to_s;
    return k + 1;
}

static int label_lanes(struct writer *w, const struct lanes *l, size_t pid, size_t order,
                       const char *lane)
{
    char name[48];

    if (!l->n)
        return 0;
    if (put_label(w, "process_name", pid, 0, l->name) < 0 || put_order(w, pid, order) < 0)
        return -1;
    for (size_t k = 1; k <= l->n; k++) {
        snprintf(name, sizeof name, "%s %zu", lane, k);
        if (put_label(w, "thread_name", pid, k, name) < 0)
            return -1;
    }
    return 0;
}

static void free_lanes(struct lanes *l)
{
    free(l->name);
    free(l->free_s);
}

/* ---- An attempt on its nodes ---- */

static json_t *make_args(const struct hg_rundir *rd, const struct hg_timeline_attempt *a)
{
    json_t *args = json_pack("{s:s,s:s,s:s,s:i,s:o,s:o}", "cell", a->id, "attempt", a->name,
                             "status", a->status, "batch", a->batch, "parameters",
                             json_loads(a->cell, 0, NULL), "folder", hg_json_text(a->folder));

    if (args && a->job_id)
        json_object_set_new(args, "job", json_integer(a->job_id));
    if (args && a->queued_s > 0)
        json_object_set_new(args, "queued_s", hg_json_number(fmax(a->begin_s - a->queued_s, 0)));
    if (args && a->wall_s > 0)
        json_object_set_new(args, "wall_s", hg_json_number(a->wall_s));
    if (args && isfinite(a->train_s))
        json_object_set_new(args, "train_s", hg_json_number(a->train_s));
    if (args && !(a->wall_s > 0))
        json_object_set_new(args, "end", json_string(a->open ? "not yet" : "not known"));
    if (args && *a->error)
        json_object_set_new(args, "error", hg_json_text(a->error));
    if (args && a->traces) {
        char *command =
            hg_str_printf("hpcgrid trace %s --cell %s --attempt %s", rd->path, a->id, a->name);

        json_object_set_new(args, "traces", json_integer(a->traces));
        json_object_set_new(args, "see", hg_json_text(command ? command : ""));
        free(command);
    }
    return args;
}

/* A phase inside the attempt's slice. */
static int put_phase(struct writer *w, const char *name, size_t pid, size_t tid, double *at_s,
                     double to_s)
{
    double from_s = *at_s;

    to_s = fmin(fmax(to_s, from_s), w->attempt->end_s);
    *at_s = to_s;
    return to_s > from_s ? put_slice(w, name, "phase", pid, tid, from_s, to_s, NULL) : 0;
}

/* Starting it, what the workload says of itself (or all of its ranks' time), and the rest. */
static int put_phases(struct writer *w, size_t pid, size_t tid)
{
    const struct hg_timeline_attempt *a = w->attempt;
    bool told = isfinite(a->init_s) && isfinite(a->train_s);
    double at_s = a->begin_s;

    if (a->work_s <= 0)
        return 0;
    if (put_phase(w, "start", pid, tid, &at_s, a->work_s) < 0)
        return -1;
    if (told && (put_phase(w, "init", pid, tid, &at_s, at_s + a->init_s) < 0 ||
                 put_phase(w, "train", pid, tid, &at_s, at_s + a->train_s) < 0))
        return -1;
    if (!told && put_phase(w, "work", pid, tid, &at_s, a->worked_s) < 0)
        return -1;
    return put_phase(w, "finish", pid, tid, &at_s, a->end_s);
}

static struct lanes *get_node(struct writer *w, const char *name)
{
    size_t number = hg_map_put(&w->node_numbers, name, strlen(name), w->nodes.n);
    struct lanes *l;

    if (number == HG_MAP_NONE || number < w->nodes.n)
        return number == HG_MAP_NONE ? NULL : &w->nodes.items[number];
    l = HG_VEC_PUSH(&w->nodes);
    if (l) {
        *l = (struct lanes){ .name = hg_strdup(name) };
        l = l->name ? l : NULL;
    }
    return l;
}

static int put_on_node(void *context, const char *host)
{
    struct writer *w = context;
    const struct hg_timeline_attempt *a = w->attempt;
    struct lanes *node = get_node(w, host);
    size_t tid = node ? take_lane(node, a->begin_s, a->end_s, SIZE_MAX) : 0;
    size_t pid = node ? (size_t)(node - w->nodes.items) + 1 : 0;

    if (!tid)
        return hg_err_oom(w->err);
    if (put_slice(w, a->id, a->status, pid, tid, a->begin_s, a->end_s, w->args) < 0)
        return -1;
    return put_phases(w, pid, tid);
}

static int put_attempt(struct writer *w, const struct hg_rundir *rd,
                       const struct hg_timeline_attempt *a)
{
    int rc;

    w->attempt = a;
    w->args = make_args(rd, a);
    if (!w->args)
        return hg_err_oom(w->err);
    rc = *a->nodes ? hg_text_each_host(a->nodes, put_on_node, w) : put_on_node(w, "node not known");
    if (rc < 0 && !w->err->code)
        rc = put_on_node(w, a->nodes); /* no list that we can read: one node of this name */
    json_decref(w->args);
    w->args = NULL;
    return rc;
}

/* ---- The queue ---- */

static int by_queued(const void *pa, const void *pb)
{
    const struct hg_timeline_attempt *a = *(const struct hg_timeline_attempt *const *)pa,
                                     *b = *(const struct hg_timeline_attempt *const *)pb;
    int by = (a->queued_s > b->queued_s) - (a->queued_s < b->queued_s);

    return by ? by : (a > b) - (a < b);
}

static struct lanes *get_queue(struct writer *w, int batch)
{
    struct lanes *l;

    while (w->queues.n < (size_t)batch) {
        l = HG_VEC_PUSH(&w->queues);
        if (!l)
            return NULL;
        *l = (struct lanes){ .name = hg_str_printf("queue, batch %zu", w->queues.n) };
        if (!l->name)
            return NULL;
    }
    return &w->queues.items[batch - 1];
}

static int put_waiting(struct writer *w, const struct hg_timeline_attempt *a)
{
    struct lanes *queue = get_queue(w, a->batch);
    size_t tid, pid = QUEUE_PID + (size_t)a->batch;
    json_t *args;
    int rc;

    if (!queue)
        return hg_err_oom(w->err);
    tid = take_lane(queue, a->queued_s, a->begin_s, QUEUE_LANES);
    if (!tid)
        return 0;
    args = json_pack("{s:s,s:s}", "cell", a->id, "attempt", a->name);
    rc = put_slice(w, a->id, "queued", pid, tid, a->queued_s, a->begin_s, args);
    json_decref(args);
    return rc;
}

static int put_queues(struct writer *w, const struct hg_timeline *t)
{
    const struct hg_timeline_attempt **sorted = hg_alloc_zeroed(t->n + 1, sizeof(*sorted));
    size_t n = 0;
    int rc = 0;

    if (!sorted)
        return hg_err_oom(w->err);
    for (size_t i = 0; i < t->n; i++)
        if (t->items[i].queued_s > 0 && t->items[i].queued_s <= t->items[i].begin_s)
            sorted[n++] = &t->items[i];
    qsort(sorted, n, sizeof(*sorted), by_queued);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = put_waiting(w, sorted[i]);
    free(sorted);
    return rc;
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

static int put_count(struct writer *w, const struct change *now)
{
    hg_buf_printf(
        &w->text,
        "{\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,\"name\":\"attempts\",\"args\":{\"queued\":%d,"
        "\"running\":%d}}",
        COUNTERS_PID, (now->t_s - w->base_s) * 1e6, now->queued, now->running);
    if (put(w) < 0)
        return -1;
    hg_buf_printf(&w->text,
                  "{\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,\"name\":\"cells\",\"args\":{\"ok\":%d,"
                  "\"bad attempts\":%d}}",
                  COUNTERS_PID, (now->t_s - w->base_s) * 1e6, now->ok, now->bad);
    return put(w);
}

static int put_counters(struct writer *w, const struct hg_timeline *t)
{
    struct change *list = hg_alloc_zeroed(3 * t->n + 1, sizeof *list), now = { 0 };
    struct hg_map done = HG_MAP_INIT;
    size_t n;
    int rc = list ? put_label(w, "process_name", COUNTERS_PID, 0, "counters") : hg_err_oom(w->err);

    if (rc == 0) {
        n = list_changes(t, &done, list);
        for (size_t i = 0; i < n && rc == 0; i++) {
            now.t_s = list[i].t_s;
            now.queued += list[i].queued;
            now.running += list[i].running;
            now.ok += list[i].ok;
            now.bad += list[i].bad;
            if (i + 1 == n || list[i + 1].t_s > now.t_s)
                rc = put_count(w, &now);
        }
    }
    hg_map_done(&done);
    free(list);
    return rc;
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

static int put_labels(struct writer *w)
{
    for (size_t i = 0; i < w->nodes.n; i++)
        if (label_lanes(w, &w->nodes.items[i], i + 1, 1000 + i, "slot") < 0)
            return -1;
    for (size_t i = 0; i < w->queues.n; i++)
        if (label_lanes(w, &w->queues.items[i], QUEUE_PID + i + 1, 1 + i, "waits") < 0)
            return -1;
    return 0;
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
}

int hg_trace_run(const struct hg_rundir *rd, const struct hg_timeline *t, FILE *out,
                 struct hg_err *err)
{
    struct writer w = { .out = out, .base_s = first_time(t), .err = err };
    int rc = 0;

    put_head(&w, rd);
    for (size_t i = 0; i < t->n && rc == 0; i++)
        rc = put_attempt(&w, rd, &t->items[i]);
    if (rc == 0 && (put_queues(&w, t) < 0 || put_counters(&w, t) < 0 || put_labels(&w) < 0))
        rc = -1;
    fputs("\n]}\n", out);
    writer_done(&w);
    return rc;
}
