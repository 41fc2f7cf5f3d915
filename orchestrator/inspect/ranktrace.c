/* SPDX-License-Identifier: Apache-2.0 */
/* The traces of an attempt's ranks, which the worker writes one event per line, merged into one. */
#include "inspect/ranktrace.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/proc.h"
#include "base/vec.h"

static const char base_member[] = "\"baseTimeNanoseconds\": ";
static const char time_member[] = "\"ts\": ";

struct rank_file {
    unsigned rank;
    char *path;
    long long base_ns; /* time 0 of its events, since 1970 */
};

struct rank_files {
    struct rank_file *items;
    size_t n, cap;
};

/* A file that is being read, through gzip. */
struct reader {
    struct hg_proc gzip;
    FILE *lines;
    char *line;
    size_t cap, number;
};

static int by_rank(const void *pa, const void *pb)
{
    const struct rank_file *a = pa, *b = pb;

    return (a->rank > b->rank) - (a->rank < b->rank);
}

static int list_files(const char *dir, struct rank_files *files, struct hg_err *err)
{
    DIR *d = opendir(dir);
    struct dirent *entry;

    if (!d)
        return hg_err_sys(err, "cannot read folder %s", dir);
    while ((entry = readdir(d))) {
        struct rank_file f = { 0 };
        int end = 0;

        if (sscanf(entry->d_name, "trace.%9u.json.gz%n", &f.rank, &end) != 1 || !end ||
            entry->d_name[end])
            continue;
        f.path = hg_fs_join(dir, entry->d_name);
        *HG_VEC_PUSH(files) = f;
    }
    closedir(d);
    if (files->n)
        qsort(files->items, files->n, sizeof *files->items, by_rank);
    return 0;
}

/* ---- Lines ---- */

static int open_reader(struct reader *r, const char *path, struct hg_err *err)
{
    const char *const argv[] = { "gzip", "-dc", "--", path, NULL };
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;

    *r = (struct reader){ 0 };
    spec.argv = argv;
    spec.in = spec.err = HG_PROC_NULL;
    spec.out = HG_PROC_PIPE;
    spec.death_signal = 9;
    if (hg_fs_check_file(path, err) < 0)
        return -1;
    if (hg_proc_start(&spec, &r->gzip, err) < 0)
        return hg_err_hint(err, "traces are compressed: install gzip");
    r->lines = fdopen(r->gzip.out, "r");
    if (!r->lines)
        hg_alloc_failed();
    return 0;
}

/* whole: it was read to its end, and gzip has to agree. */
static int close_reader(struct reader *r, const char *path, bool whole, struct hg_err *err)
{
    int status = 0;

    fclose(r->lines);
    free(r->line);
    hg_proc_wait(r->gzip.pid, -1, &status, NULL);
    if (whole && status != 0)
        return hg_err_set(err, HG_E_INPUT, "%s is damaged: gzip cannot read it to its end", path);
    return 0;
}

/* The next line without its end and the comma there; its length, or -1 at the end of the file. */
static ssize_t next_line(struct reader *r)
{
    ssize_t n = getline(&r->line, &r->cap, r->lines);

    if (n < 0)
        return -1;
    r->number++;
    while (n > 0 && strchr("\n,", r->line[n - 1]))
        r->line[--n] = '\0';
    return n;
}

static int strange(const struct reader *r, const char *path, struct hg_err *err)
{
    hg_err_set(err, HG_E_INPUT, "%s: line %zu is not as hpcgrid-worker writes it", path, r->number);
    return -1;
}

/* Time 0 of a file is in its first line. */
static int read_base(struct rank_file *f, struct hg_err *err)
{
    struct reader r;
    const char *base;
    int rc = 0;

    if (open_reader(&r, f->path, err) < 0)
        return -1;
    base = next_line(&r) > 0 ? strstr(r.line, base_member) : NULL;
    if (base)
        f->base_ns = strtoll(base + sizeof base_member - 1, NULL, 10);
    if (f->base_ns <= 0)
        rc = strange(&r, f->path, err);
    close_reader(&r, f->path, false, err);
    return rc;
}

/* An event with its time moved; labels have none. */
static int copy_event(const char *line, size_t len, double shift_us, bool first, FILE *out)
{
    const char *ts = strstr(line, time_member), *rest;
    double at_us;
    char *end;

    if (len < 2 || line[0] != '{' || line[len - 1] != '}')
        return -1;
    fputs(first ? "\n" : ",\n", out);
    if (!ts) {
        fputs(line, out);
        return 0;
    }
    rest = ts + sizeof time_member - 1;
    at_us = strtod(rest, &end);
    if (end == rest)
        return -1;
    fwrite(line, 1, (size_t)(rest - line), out);
    fprintf(out, "%.3f%s", at_us + shift_us, end);
    return 0;
}

static int copy_events(const struct rank_file *f, long long base_ns, bool *first, FILE *out,
                       struct hg_err *err)
{
    double shift_us = (double)(f->base_ns - base_ns) / 1e3;
    bool inside = false, ended = false;
    struct reader r;
    ssize_t n;
    int rc = 0;

    if (open_reader(&r, f->path, err) < 0)
        return -1;
    while (rc == 0 && (n = next_line(&r)) >= 0) {
        if (!inside) {
            inside = n > 0 && r.line[n - 1] == '[';
        } else if (strcmp(r.line, "]}") == 0) {
            ended = true;
        } else {
            rc = copy_event(r.line, (size_t)n, shift_us, *first, out);
            *first = false;
        }
    }
    if (rc < 0)
        strange(&r, f->path, err);
    if (close_reader(&r, f->path, rc == 0, err) < 0)
        return -1;
    if (rc == 0 && !ended)
        rc = hg_err_set(err, HG_E_INPUT, "%s was cut short", f->path);
    return rc;
}

static int merge(struct rank_files *files, FILE *out, struct hg_err *err)
{
    long long base_ns = 0;
    bool first = true;

    for (size_t i = 0; i < files->n; i++) {
        if (read_base(&files->items[i], err) < 0)
            return -1;
        if (!base_ns || files->items[i].base_ns < base_ns)
            base_ns = files->items[i].base_ns;
    }
    fprintf(out,
            "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":%lld,"
            "\"ranks\":%zu,\"traceEvents\":[",
            base_ns, files->n);
    for (size_t i = 0; i < files->n; i++)
        if (copy_events(&files->items[i], base_ns, &first, out, err) < 0)
            return -1;
    fputs("\n]}\n", out);
    return 0;
}

int hg_trace_ranks(const char *attempt_dir, FILE *out, struct hg_err *err)
{
    struct rank_files files = { 0 };
    int rc = list_files(attempt_dir, &files, err);

    if (rc == 0 && !files.n) {
        rc = hg_err_set(err, HG_E_NOTFOUND, "%s has no trace", attempt_dir);
        hg_err_hint(err, "give the matrix \"trace\": true (hpcgrid-worker) and run the cell again");
    }
    if (rc == 0)
        rc = merge(&files, out, err);
    for (size_t i = 0; i < files.n; i++)
        free(files.items[i].path);
    HG_VEC_DONE(&files);
    return rc;
}
