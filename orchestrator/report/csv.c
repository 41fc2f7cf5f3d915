/* SPDX-License-Identifier: Apache-2.0 */
/* CSV (RFC 4180). Tidy: one line for each cell and attempt, one column for each key, nothing computed
 * that is not in a result. Pivoted: one line for each row of the tables. */
#include "report/renderer.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "report/escape.h"

#define EOL "\r\n"

/* Seconds are told by the name of the column. */
static void append_json(const struct hg_report *r, const char *name, const json_t *value,
                        struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;

    if (json_is_number(value) && hg_metric_is_time(name)) {
        hg_csv_append_seconds(&r->style, json_number_value(value), out);
    } else if (json_is_real(value)) {
        hg_csv_append_number(&r->style, json_real_value(value), out);
    } else if (json_is_integer(value) || json_is_boolean(value)) {
        hg_json_dump(value, HG_JSON_COMPACT, out);
    } else if (json_is_string(value)) {
        hg_csv_append(&r->style, json_string_value(value), out);
    } else if (value && !json_is_null(value)) {
        hg_json_dump(value, HG_JSON_COMPACT | HG_JSON_SORT, &text);
        hg_csv_append(&r->style, hg_buf_str(&text), out);
    }
    hg_buf_done(&text);
}

/* Put a separator in front of all fields but the first. */
static void separate(const struct hg_report *r, bool first, struct hg_buf *out)
{
    hg_buf_puts(out, first ? "" : hg_csv_separator(&r->style));
}

/* ---- Tidy ---- */

/* Result columns: dotted paths of every scalar in any result, in order of appearance. */
struct paths {
    char **items;
    size_t n, cap;
    struct hg_map index;
    bool failed;
};

static const char *const own_members[] = { "cell",    "id",         "baseline_id", "added",
                                           "attempt", "attempt_in", "status" };

static bool is_own(const char *name)
{
    for (size_t i = 0; i < sizeof own_members / sizeof *own_members; i++)
        if (strcmp(own_members[i], name) == 0)
            return true;
    return false;
}

static void add_path(struct paths *paths, const char *path)
{
    char **item;

    if (hg_map_put(&paths->index, path, strlen(path), paths->n) != paths->n)
        return;
    item = HG_VEC_PUSH(paths);
    if (item)
        *item = strdup(path);
    paths->failed = paths->failed || !item || !*item;
}

/* Lists (times of epochs, ranks) have no place in a line. path: where the object stands, left as it was. */
static void gather_paths(struct paths *paths, struct hg_buf *path, const json_t *object)
{
    size_t keep = path->len;
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)object, name, value) {
        if (keep == 0 && is_own(name))
            continue;
        hg_buf_puts(path, keep ? "." : "");
        hg_buf_puts(path, name);
        if (path->failed)
            paths->failed = true;
        else if (json_is_object(value))
            gather_paths(paths, path, value);
        else if (!json_is_array(value))
            add_path(paths, path->data);
        path->len = keep;
    }
}

static const json_t *value_at(const json_t *object, const char *path)
{
    while (object) {
        const json_t *value = json_object_get(object, path);
        char name[256];
        size_t n = strcspn(path, ".");

        if (value || !path[n] || n >= sizeof name)
            return value;
        memcpy(name, path, n);
        name[n] = '\0';
        object = json_object_get(object, name);
        path += n + 1;
    }
    return NULL;
}

/* A key of the cells that is also called like a result keeps its name; the result is "result.X". */
static void append_tidy_header(const struct hg_report *r, const struct paths *paths,
                               struct hg_buf *out)
{
    static const char *const own[] = { "run",    "id",    "attempt",    "counts",
                                       "status", "added", "baseline_id" };

    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        separate(r, i == 0, out);
        hg_buf_puts(out, own[i]);
    }
    for (size_t k = 0; k < r->frame.keys.n; k++) {
        separate(r, false, out);
        hg_csv_append(&r->style, r->frame.keys.items[k].name, out);
    }
    for (size_t i = 0; i < paths->n; i++) {
        char *name = hg_str_printf(
            "%s%s", hg_frame_find_key(&r->frame, paths->items[i]) == HG_MAP_NONE ? "" : "result.",
            paths->items[i]);

        separate(r, false, out);
        hg_csv_append(&r->style, name ? name : "", out);
        free(name);
    }
    hg_buf_puts(out, EOL);
}

static void append_tidy_line(const struct hg_report *r, const struct hg_results *set,
                             const struct hg_result *result, const struct paths *paths,
                             struct hg_buf *out)
{
    json_t *entry = hg_result_entry(result);
    const char *first[] = { result->id,
                            result->attempt,
                            result->used && result->ok ? "true" : "false",
                            result->status,
                            result->added ? "true" : "false",
                            result->baseline_id };

    struct hg_buf run = HG_BUF_INIT;

    hg_buf_printf(&run, "%s%s%s", set->name, *set->run ? "/" : "", set->run);
    hg_csv_append(&r->style, hg_buf_str(&run), out);
    hg_buf_done(&run);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        separate(r, false, out);
        hg_csv_append(&r->style, first[i], out);
    }
    for (size_t k = 0; k < r->frame.keys.n; k++) {
        separate(r, false, out);
        append_json(r, "", json_object_get(result->cell, r->frame.keys.items[k].name), out);
    }
    for (size_t i = 0; i < paths->n; i++) {
        separate(r, false, out);
        append_json(r, paths->items[i], value_at(entry, paths->items[i]), out);
    }
    json_decref(entry);
    hg_buf_puts(out, EOL);
}

/* Cells that `where` leaves out stand in no line; every attempt at the others does. */
static void render_tidy(const struct hg_report *r, struct hg_buf *out)
{
    struct paths paths = { 0 };
    struct hg_buf path = HG_BUF_INIT;
    struct hg_map shown = HG_MAP_INIT;

    for (size_t i = 0; i < r->n_entries; i++) {
        const struct hg_result *result = r->entries[i].result;
        const struct hg_results *set = &r->sets[r->entries[i].set];
        const struct hg_result *first = &set->items[result->first];

        if (r->entries[i].shown && hg_map_put(&shown, &first, sizeof first, 1) == HG_MAP_NONE)
            out->failed = true;
    }
    for (size_t s = 0; s < r->n_sets; s++)
        for (size_t i = 0; i < r->sets[s].n; i++) {
            json_t *entry = hg_result_entry(&r->sets[s].items[i]);

            gather_paths(&paths, &path, entry);
            json_decref(entry);
        }
    hg_buf_done(&path);
    append_tidy_header(r, &paths, out);
    for (size_t s = 0; s < r->n_sets; s++)
        for (size_t i = 0; i < r->sets[s].n; i++) {
            const struct hg_result *first = &r->sets[s].items[r->sets[s].items[i].first];

            if (hg_map_find(&shown, &first, sizeof first) != HG_MAP_NONE)
                append_tidy_line(r, &r->sets[s], &r->sets[s].items[i], &paths, out);
        }
    out->failed = out->failed || paths.failed;
    for (size_t i = 0; i < paths.n; i++)
        free(paths.items[i]);
    HG_VEC_DONE(&paths);
    hg_map_done(&paths.index);
    hg_map_done(&shown);
}

/* ---- Pivoted ---- */

/* Columns of all tables: one header stands for them all, so that the whole is one table. */
struct columns {
    const struct hg_report *r;
    size_t width;
    uint32_t *values; /* width to a column */
    size_t n, cap;
    struct hg_map index;
    bool failed;
};

static const uint32_t *column_values(const struct hg_report *r, const struct hg_table *t,
                                     size_t column)
{
    return t->columns + column * r->n_column_keys;
}

static void add_column(struct columns *c, const uint32_t *values)
{
    if (hg_map_put(&c->index, values, c->width * sizeof *values, c->n) != c->n)
        return;
    if (hg_vec_grow((void **)&c->values, c->n, &c->cap, (c->width + 1) * sizeof *values) < 0) {
        c->failed = true;
        return;
    }
    if (c->width)
        memcpy(c->values + c->n * c->width, values, c->width * sizeof *values);
    c->n++;
}

static int compare_columns(const void *pa, const void *pb, void *context)
{
    const struct columns *c = context;
    const uint32_t *a = pa, *b = pb;

    for (size_t i = 0; i < c->width; i++) {
        int order = hg_frame_compare(&c->r->frame, a[i], b[i]);

        if (order)
            return order;
    }
    return 0;
}

static void gather_columns(struct columns *c)
{
    const struct hg_report *r = c->r;

    for (size_t i = 0; i < r->tables.n; i++)
        for (size_t column = 0; column < r->tables.items[i].n_columns; column++)
            add_column(c, column_values(r, &r->tables.items[i], column));
    if (c->width && c->n)
        qsort_r(c->values, c->n, c->width * sizeof *c->values, compare_columns, c);
}

static void append_pivot_header(const struct columns *c, struct hg_buf *out)
{
    static const char *const figures[] = {
        "", " low", " high", " n", " of", " speedup", " speedup low", " speedup high", " efficiency"
    };
    const struct hg_report *r = c->r;

    for (size_t column = 0; column < c->n; column++)
        for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
            struct hg_buf name = HG_BUF_INIT;

            for (size_t k = 0; k < c->width; k++) {
                uint32_t value = c->values[column * c->width + k];

                hg_buf_printf(&name, "%s=%s ", r->frame.keys.items[r->column_keys[k]].name,
                              value ? hg_report_text(r, value) : "");
            }
            if (i < 5)
                hg_buf_puts(&name, r->metric);
            hg_buf_puts(&name, i < 5 ? figures[i] : figures[i] + 1);
            separate(r, false, out);
            hg_csv_append(&r->style, hg_buf_str(&name), out);
            hg_buf_done(&name);
        }
}

static void append_field(const struct hg_report *r, double v, bool seconds, struct hg_buf *out)
{
    separate(r, false, out);
    if (seconds)
        hg_csv_append_seconds(&r->style, v, out);
    else
        hg_csv_append_number(&r->style, v, out);
}

static void append_estimate(const struct hg_report *r, const struct hg_estimate *e, bool seconds,
                            struct hg_buf *out)
{
    append_field(r, e->value, seconds, out);
    append_field(r, e->has_interval ? e->low : NAN, seconds, out);
    append_field(r, e->has_interval ? e->high : NAN, seconds, out);
}

static void append_pivot_point(const struct hg_report *r, const struct hg_point *p,
                               struct hg_buf *out)
{
    append_estimate(r, &p->value, hg_metric_is_time(r->metric), out);
    append_field(r, p->of ? (double)p->n : NAN, false, out);
    append_field(r, p->of ? (double)p->of : NAN, false, out);
    append_estimate(r, &p->speedup, false, out);
    append_field(r, p->efficiency, false, out);
}

/* Where a column of the whole stands in this table; HG_MAP_NONE: it has no such column. */
static void find_columns(const struct columns *c, const struct hg_table *t, size_t *places)
{
    struct hg_map index = HG_MAP_INIT;

    for (size_t i = 0; i < t->n_columns; i++)
        hg_map_put(&index, column_values(c->r, t, i), c->width * sizeof *c->values, i);
    for (size_t i = 0; i < c->n; i++)
        places[i] = hg_map_find(&index, c->values + i * c->width, c->width * sizeof *c->values);
    hg_map_done(&index);
}

static void append_pivot_table(const struct columns *c, const struct hg_table *t,
                               const size_t *places, struct hg_buf *out)
{
    static const struct hg_point nothing = { .value = HG_ESTIMATE_NONE,
                                             .speedup = HG_ESTIMATE_NONE,
                                             .efficiency = NAN };
    const struct hg_report *r = c->r;

    for (size_t row = 0; row < t->n_rows; row++) {
        hg_buf_puts(out, t->rehearsal ? "true" : "false");
        for (size_t k = 0; k < r->n_split_keys; k++) {
            separate(r, false, out);
            append_json(r, "", r->frame.values.items[t->split[k]].json, out);
        }
        for (size_t k = 0; k < r->n_row_keys; k++) {
            separate(r, false, out);
            append_json(r, "", r->frame.values.items[t->rows[row * r->n_row_keys + k]].json, out);
        }
        for (size_t i = 0; i < c->n; i++)
            append_pivot_point(
                r, places[i] == HG_MAP_NONE ? &nothing : hg_table_point(t, row, places[i]), out);
        hg_buf_puts(out, EOL);
    }
}

static void append_keys(const struct hg_report *r, const size_t *keys, size_t n, struct hg_buf *out)
{
    for (size_t k = 0; k < n; k++) {
        separate(r, false, out);
        hg_csv_append(&r->style, r->frame.keys.items[keys[k]].name, out);
    }
}

static void render_pivot(const struct hg_report *r, struct hg_buf *out)
{
    struct columns c = { .r = r, .width = r->n_column_keys };
    size_t *places = NULL;

    gather_columns(&c);
    places = calloc(c.n + 1, sizeof *places);
    hg_buf_puts(out, "rehearsal");
    append_keys(r, r->split_keys, r->n_split_keys, out);
    append_keys(r, r->row_keys, r->n_row_keys, out);
    append_pivot_header(&c, out);
    hg_buf_puts(out, EOL);
    for (size_t i = 0; places && i < r->tables.n; i++) {
        find_columns(&c, &r->tables.items[i], places);
        append_pivot_table(&c, &r->tables.items[i], places, out);
    }
    out->failed = out->failed || c.failed || !places;
    free(places);
    free(c.values);
    hg_map_done(&c.index);
}

static void render(const struct hg_report *r, const struct hg_render_options *o, struct hg_buf *out)
{
    if (o->pivot)
        render_pivot(r, out);
    else
        render_tidy(r, out);
}

const struct hg_renderer hg_renderer_csv = {
    .name = "csv",
    .summary = "one line for each cell and attempt (--pivot: as in the table)",
    .render = render,
};
