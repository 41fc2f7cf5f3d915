/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome's trace format, as Perfetto reads it: times in microseconds from the file's base time. */
#include "profile/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"

enum { TID_HOST = 1, TID_COMM = 2 };

struct trace {
    gzFile file;
    int rank;
    double base_s; /* monotonic clock at time 0 */
    bool failed;
};

static const char *const categories[] = {
    [WK_SPAN_STEP] = "user_annotation",
    [WK_SPAN_PHASE] = "user_annotation",
    [WK_SPAN_FORWARD] = "user_annotation",
    [WK_SPAN_BACKWARD] = "user_annotation",
    [WK_SPAN_OP] = "cpu_op",
};

static void put(struct trace *t, const struct hg_buf *text)
{
    const char *bytes = hg_buf_str(text);

    if (text->len && gzwrite(t->file, bytes, (unsigned)text->len) <= 0)
        t->failed = true;
}

/* A name as a JSON string. */
static void add_name(struct hg_buf *out, const char *prefix, const char *name, long number)
{
    char text[160];
    json_t *string;

    if (number >= 0)
        snprintf(text, sizeof text, "%s%.128s#%ld", prefix, name, number);
    else
        snprintf(text, sizeof text, "%s%.128s", prefix, name);
    string = hg_json_text(text);
    hg_json_dump(string, HG_JSON_COMPACT, out);
    json_decref(string);
}

static void add_times(struct hg_buf *out, const struct trace *t, double start_s, double end_s)
{
    hg_buf_printf(out, ", \"ts\": %.3f, \"dur\": %.3f", (start_s - t->base_s) * 1e6,
                  (end_s - start_s) * 1e6);
}

static void put_span(struct trace *t, const struct wk_timed *s)
{
    struct hg_buf out = HG_BUF_INIT;
    bool step = s->kind == WK_SPAN_STEP;
    const char *prefix = s->kind == WK_SPAN_FORWARD    ? "forward "
                         : s->kind == WK_SPAN_BACKWARD ? "backward "
                                                       : "";

    hg_buf_printf(&out, ",\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": ", categories[s->kind]);
    add_name(&out, prefix, step ? "ProfilerStep" : s->name, step ? s->number : -1);
    hg_buf_printf(&out, ", \"pid\": %d, \"tid\": %d", t->rank, TID_HOST);
    add_times(&out, t, s->start_s, s->end_s);
    hg_buf_printf(&out, ", \"args\": {\"step\": %ld}}", s->number);
    put(t, &out);
    hg_buf_done(&out);
}

static void put_collective(struct trace *t, const struct wk_comm_record *r, int world)
{
    struct hg_buf out = HG_BUF_INIT;

    hg_buf_puts(&out, ",\n{\"ph\": \"X\", \"cat\": \"collective_comm\", \"name\": ");
    add_name(&out, "", wk_coll_names[r->coll], -1);
    hg_buf_printf(&out, ", \"pid\": %d, \"tid\": %d", t->rank, TID_COMM);
    add_times(&out, t, r->start_s, r->end_s);
    hg_buf_printf(
        &out,
        ", \"args\": {\"step\": %ld, \"In msg nelems\": %zu, \"bytes\": %zu, \"Group size\": %d, "
        "\"exposed_us\": %.3f, \"control\": %s}}",
        r->step, r->n, r->n * wk_wire_size(r->type), world, r->exposed_s * 1e6,
        r->plane == WK_PLANE_CONTROL ? "true" : "false");
    put(t, &out);
    hg_buf_done(&out);
}

static void put_label(struct trace *t, const char *what, int tid, const char *name)
{
    struct hg_buf out = HG_BUF_INIT;

    hg_buf_printf(
        &out, "%s{\"ph\": \"M\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, \"args\": {\"name\": ",
        tid ? ",\n" : "\n", what, t->rank, tid);
    add_name(&out, "", name, -1);
    hg_buf_puts(&out, "}}");
    put(t, &out);
    hg_buf_done(&out);
}

static void put_head(struct trace *t, const struct wk_dev *dev, const struct wk_comm *comm,
                     size_t dropped)
{
    double base_wall_s = hg_clock_wall_s() - (hg_clock_mono_s() - t->base_s);
    char host[64] = "", name[192];
    struct hg_buf out = HG_BUF_INIT;

    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "rank %d on %s, %.100s", t->rank, host, dev->name);
    hg_buf_printf(
        &out,
        "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": %.0f000, "
        "\"droppedSpans\": %zu,\n\"distributedInfo\": {\"backend\": \"%s\", \"rank\": %d, "
        "\"world_size\": %d},\n\"traceEvents\": [",
        base_wall_s * 1e6, dropped, comm->kind->name, comm->rank, comm->world);
    put(t, &out);
    put_label(t, "process_name", 0, name);
    put_label(t, "thread_name", TID_HOST, "host");
    put_label(t, "thread_name", TID_COMM, "collectives");
    hg_buf_done(&out);
}

static void put_all(struct trace *t, const struct wk_profiler *p, const struct wk_dev *dev,
                    const struct wk_comm *comm)
{
    struct hg_buf end = HG_BUF_INIT;
    size_t n;
    const struct wk_timed *spans = wk_profiler_spans(p, &n);

    t->base_s = n ? spans[0].start_s : 0;
    for (size_t i = 0; i < n; i++)
        if (spans[i].start_s < t->base_s)
            t->base_s = spans[i].start_s;
    put_head(t, dev, comm, wk_profiler_dropped(p));
    for (size_t i = 0; i < n; i++)
        put_span(t, &spans[i]);
    for (size_t i = 0; i < comm->records.n; i++)
        if (comm->records.items[i].start_s >= t->base_s)
            put_collective(t, &comm->records.items[i], comm->world);
    hg_buf_puts(&end, "\n]}\n");
    put(t, &end);
    hg_buf_done(&end);
}

int wk_profiler_save(const struct wk_profiler *p, const char *path, struct hg_err *err)
{
    char *part = hg_str_printf("%s.part", path);
    struct trace t = { .rank = wk_profiler_comm(p)->rank };

    t.file = gzopen(part, "wb3");
    if (t.file) {
        put_all(&t, p, wk_profiler_dev(p), wk_profiler_comm(p));
        t.failed |= gzclose(t.file) != Z_OK;
    }
    if (!t.file || t.failed || rename(part, path) < 0) {
        hg_err_sys(err, "cannot write the trace %s", path);
        unlink(part);
    }
    free(part);
    return err->code ? -1 : 0;
}
