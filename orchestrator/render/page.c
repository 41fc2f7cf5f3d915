/* SPDX-License-Identifier: Apache-2.0 */
#include "render/page.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/map.h"
#include "base/alloc.h"
#include "render/sentences.h"

#define MATRIX_MAX ((size_t)64 << 10)
#define VALUES_MAX 6 /* of one fact; more are counted */

void hg_page_init(struct hg_page *page, size_t n_sets)
{
    *page = (struct hg_page){ .n_sets = n_sets };
    page->links = hg_alloc_zeroed(n_sets + 1, sizeof *page->links);
    page->folders = hg_alloc_zeroed(n_sets + 1, sizeof *page->folders);
    page->matrices = hg_alloc_zeroed(n_sets + 1, sizeof *page->matrices);
}

void hg_page_done(struct hg_page *page)
{
    for (size_t i = 0; i < page->n_sets; i++) {
        free(page->links[i]);
        free(page->folders[i]);
        free(page->matrices[i]);
    }
    free(page->links);
    free(page->folders);
    free(page->matrices);
    free(page->command);
    *page = (struct hg_page){ 0 };
}

/* The relative path from one absolute folder to another. */
static char *relative_path(const char *from, const char *to)
{
    struct hg_buf path = HG_BUF_INIT;
    size_t same = 0;

    for (size_t i = 0;; i++) {
        bool from_ends = from[i] == '/' || from[i] == '\0', to_ends = to[i] == '/' || !to[i];

        if (from_ends && to_ends)
            same = i;
        if (from[i] != to[i] || !from[i])
            break;
    }
    for (const char *p = from + same; *p; p++)
        if (*p == '/' && p[1])
            hg_buf_puts(&path, path.len ? "/.." : "..");
    if (to[same])
        hg_buf_printf(&path, "%s%s", path.len ? "/" : "", to + same + 1);
    return path.len ? hg_buf_detach(&path) : hg_strdup(".");
}

/* The text of a matrix, or where it is if it is too long for a page; NULL: it cannot be read. */
static char *matrix_text(const char *path)
{
    struct hg_err ignored = HG_ERR_INIT;
    struct hg_buf text = HG_BUF_INIT;
    struct stat st;
    char *result = NULL;

    if (stat(path, &st) == 0 && (size_t)st.st_size > MATRIX_MAX)
        return hg_str_printf("%lld KiB, too long for this page: matrix.json in the run's folder",
                             (long long)st.st_size / 1024);
    if (hg_fs_read(path, MATRIX_MAX, &text, &ignored) == 0)
        result = hg_buf_detach(&text);
    hg_buf_done(&text);
    return result;
}

void hg_page_set_run(struct hg_page *page, size_t set, const char *run_dir, const char *out)
{
    struct hg_err ignored = HG_ERR_INIT;
    char *dir = out ? hg_fs_dirname(out) : hg_strdup(".");
    char *from = hg_fs_absolute(dir, &ignored);
    char *to = hg_fs_absolute(run_dir, &ignored);
    char *matrix = hg_fs_join(run_dir, "matrix.json");

    if (from && to)
        page->links[set] = relative_path(from, to);
    page->folders[set] = to;
    page->matrices[set] = matrix_text(matrix);
    free(matrix);
    free(from);
    free(dir);
}

/* ---- Provenance ---- */

/* The different values of one fact, in order of appearance. */
struct values {
    struct hg_map index;
    struct hg_buf text; /* the first few of them */
};

static void add_value(struct values *v, const json_t *value)
{
    struct hg_buf text = HG_BUF_INIT;

    if (json_is_string(value))
        hg_buf_puts(&text, json_string_value(value));
    else if (json_is_number(value) || json_is_boolean(value))
        hg_json_dump(value, HG_JSON_COMPACT, &text);
    if (text.len && hg_map_find(&v->index, text.data, text.len) == HG_MAP_NONE) {
        hg_map_put(&v->index, text.data, text.len, v->index.n);
        if (v->index.n <= VALUES_MAX)
            hg_buf_printf(&v->text, "%s%s", v->text.len ? ", " : "", text.data);
    }
    hg_buf_done(&text);
}

static void put_fact(struct hg_listing *l, const char *name, struct values *v)
{
    if (v->index.n > VALUES_MAX)
        hg_buf_printf(&v->text, " and %zu more", v->index.n - VALUES_MAX);
    if (v->text.len) {
        hg_listing_text(l, name);
        hg_listing_text(l, hg_buf_str(&v->text));
    }
    hg_map_done(&v->index);
    hg_buf_done(&v->text);
    *v = (struct values){ 0 };
}

/* RFC 3339, UTC: sorts as text. Keep the first of both if sign is -1, the last if it is 1; takes the reference. */
static void keep_time(struct hg_buf *kept, json_t *time, int sign)
{
    const char *text = json_string_value(time);

    if (text && (!kept->len || strcmp(text, kept->data) * sign > 0)) {
        hg_buf_clear(kept);
        hg_buf_puts(kept, text);
    }
    json_decref(time);
}

/* From the first start to the last end; empty if they are not known. */
static void find_times(const struct hg_report *r, struct hg_buf *out)
{
    struct hg_buf first = HG_BUF_INIT, last = HG_BUF_INIT;

    for (size_t i = 0; i < r->n_entries; i++) {
        if (!r->entries[i].shown)
            continue;
        keep_time(&first, hg_result_get(r->entries[i].result, "started"), -1);
        keep_time(&last, hg_result_get(r->entries[i].result, "ended"), 1);
    }
    if (first.len && last.len)
        hg_buf_printf(out, "%s to %s", first.data, last.data);
    hg_buf_done(&first);
    hg_buf_done(&last);
}

static void put_times(const struct hg_report *r, struct hg_listing *l)
{
    struct hg_buf times = HG_BUF_INIT;

    find_times(r, &times);
    if (times.len) {
        hg_listing_text(l, "measured");
        hg_listing_text(l, hg_buf_str(&times));
    }
    hg_buf_done(&times);
}

void hg_measured_format(const struct hg_report *r, struct hg_buf *out)
{
    struct hg_buf times = HG_BUF_INIT;

    find_times(r, &times);
    if (times.len)
        hg_buf_printf(out, "; measured %s", times.data);
    hg_buf_done(&times);
}

/* Members of a published set at its top level. */
static void put_sources(const struct hg_report *r, struct hg_listing *l)
{
    static const char *const members[] = { "source", "repository", "commit",   "url",
                                           "date",   "hardware",   "software", "note" };

    for (size_t m = 0; m < sizeof members / sizeof *members; m++) {
        struct values v = { 0 };

        for (size_t s = 0; s < r->n_sets; s++)
            add_value(&v, json_object_get(r->sets[s].doc.root, members[m]));
        put_fact(l, members[m], &v);
    }
}

enum part { PART_RANKS, PART_ENV, PART_COMPARABLE, PART_CODE, PART_SLURM, PARTS };

static const struct {
    const char *title, *member;
    enum part part;
} facts[] = {
    { "hosts", "host", PART_RANKS },
    { "devices", "device", PART_RANKS },
    { "CPU", "cpu", PART_ENV },
    { "GPU", "gpu", PART_ENV },
    { "driver", "driver", PART_ENV },
    { "CUDA", "cuda", PART_ENV },
    { "NCCL", "nccl", PART_ENV },
    { "MPI", "mpi", PART_ENV },
    { "kernel", "kernel", PART_ENV },
    { "hpcgrid", "hpcgrid", PART_ENV },
    { "hpcgrid-worker", "revision", PART_COMPARABLE },
    { "revision of the working directory", "revision", PART_CODE },
    { "Slurm", "version", PART_SLURM },
    { "cluster", "cluster", PART_SLURM },
    { "partition", "partition", PART_SLURM },
    { "modules", "modules", PART_ENV },
};

#define FACTS (sizeof facts / sizeof *facts)

/* The values of one result for every fact, from each of its ranks. */
static void gather(const struct hg_result *result, struct values values[static FACTS])
{
    json_t *ranks = hg_result_get(result, "ranks"), *slurm = hg_result_get(result, "slurm"), *rank;
    const json_t *parts[PARTS] = {
        [PART_ENV] = result->env,
        [PART_COMPARABLE] = result->comparable,
        [PART_CODE] = result->code,
        [PART_SLURM] = slurm,
    };
    size_t k;

    for (size_t i = 0; i < FACTS; i++) {
        if (facts[i].part != PART_RANKS)
            add_value(&values[i], json_object_get(parts[facts[i].part], facts[i].member));
        else
            json_array_foreach(ranks, k, rank)
                add_value(&values[i], json_object_get(rank, facts[i].member));
    }
    json_decref(ranks);
    json_decref(slurm);
}

void hg_provenance_fill(const struct hg_report *r, struct hg_listing *l)
{
    struct values values[FACTS] = { 0 };

    hg_listing_column(l, "what", "", true);
    hg_listing_column(l, "value", "", true);
    put_sources(r, l);
    put_times(r, l);
    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].shown && !r->entries[i].state)
            gather(r->entries[i].result, values);
    for (size_t i = 0; i < FACTS; i++)
        put_fact(l, facts[i].title, &values[i]);
    hg_listing_text(l, "tables made by");
    hg_listing_text(l, HG_MADE_BY);
}
