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

static void append_double(double v, struct hg_buf *out)
{
    char text[32];

    if (isfinite(v))
        hg_buf_append(out, text, hg_text_number_format(v, text));
}

static void append_json(const json_t *value, struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;

    if (json_is_real(value)) {
        append_double(json_real_value(value), out);
    } else if (json_is_integer(value) || json_is_boolean(value)) {
        hg_json_dump(value, HG_JSON_COMPACT, out);
    } else if (json_is_string(value)) {
        hg_csv_append(json_string_value(value), out);
    } else if (value && !json_is_null(value)) {
        hg_json_dump(value, HG_JSON_COMPACT | HG_JSON_SORT, &text);
        hg_csv_append(hg_buf_str(&text), out);
    }
    hg_buf_done(&text);
}

static void append_number(double v, bool first, struct hg_buf *out)
{
    hg_buf_puts(out, first ? "" : ",");
    append_double(v, out);
}

/* ---- Tidy ---- */

/* Result columns: dotted paths of every scalar in any result, in order of appearance. */
struct paths {
    char **items;
    size_t n, cap;
    struct hg_map index;
    bool failed;
};

static const char *const own_members[] = {
    "cell", "id", "baseline_id", "added", "attempt", "status"
};

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

/* Lists (times of epochs, ranks) have no place in a line. */
static void gather_paths(struct paths *paths, const char *prefix, const json_t *object)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)object, name, value)
    {
        char *path;

        if (!*prefix && is_own(name))
            continue;
        path = hg_str_printf("%s%s%s", prefix, *prefix ? "." : "", name);
        if (!path)
            paths->failed = true;
        else if (json_is_object(value))
            gather_paths(paths, path, value);
        else if (!json_is_array(value))
            add_path(paths, path);
        free(path);
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
    hg_buf_puts(out, "run,id,attempt,counts,status,added,baseline_id");
    for (size_t k = 0; k < r->frame.keys.n; k++) {
        hg_buf_puts(out, ",");
        hg_csv_append(r->frame.keys.items[k].name, out);
    }
    for (size_t i = 0; i < paths->n; i++) {
        char *name = hg_str_printf(
            "%s%s", hg_frame_find_key(&r->frame, paths->items[i]) == HG_MAP_NONE ? "" : "result.",
            paths->items[i]);

        hg_buf_puts(out, ",");
        hg_csv_append(name ? name : "", out);
        free(name);
    }
    hg_buf_puts(out, EOL);
}

static void append_tidy_line(const struct hg_report *r, const struct hg_results *set,
                             const struct hg_result *result, const struct paths *paths,
                             struct hg_buf *out)
{
    hg_csv_append(set->name, out);
    hg_buf_puts(out, *set->run ? "/" : "");
    hg_csv_append(set->run, out);
    hg_buf_puts(out, ",");
    hg_csv_append(result->id, out);
    hg_buf_puts(out, ",");
    hg_csv_append(result->attempt, out);
    hg_buf_printf(out, ",%s,", result->used && result->ok ? "true" : "false");
    hg_csv_append(result->status, out);
    hg_buf_printf(out, ",%s,", result->added ? "true" : "false");
    hg_csv_append(result->baseline_id, out);
    for (size_t k = 0; k < r->frame.keys.n; k++) {
        hg_buf_puts(out, ",");
        append_json(json_object_get(result->cell, r->frame.keys.items[k].name), out);
    }
    for (size_t i = 0; i < paths->n; i++) {
        hg_buf_puts(out, ",");
        append_json(value_at(result->entry, paths->items[i]), out);
    }
    hg_buf_puts(out, EOL);
}

/* Cells that `where` leaves out stand in no line; every attempt at the others does. */
static void render_tidy(const struct hg_report *r, struct hg_buf *out)
{
    struct paths paths = { 0 };
    struct hg_map shown = HG_MAP_INIT;

    for (size_t i = 0; i < r->n_entries; i++) {
        const struct hg_result *result = r->entries[i].result;
        const struct hg_results *set = &r->sets[r->entries[i].set];
        const struct hg_result *first = &set->items[result->first];

        if (r->entries[i].shown && hg_map_put(&shown, &first, sizeof first, 1) == HG_MAP_NONE)
            out->failed = true;
    }
    for (size_t s = 0; s < r->n_sets; s++)
        for (size_t i = 0; i < r->sets[s].n; i++)
            gather_paths(&paths, "", r->sets[s].items[i].entry);
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

static void append_pivot_columns(const struct hg_report *r, const struct hg_table *t,
                                 struct hg_buf *out)
{
    static const char *const figures[] = {
        "", " low", " high", " n", " of", " speedup", " speedup low", " speedup high", " efficiency"
    };

    for (size_t column = 0; column < t->n_columns; column++)
        for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
            struct hg_buf name = HG_BUF_INIT;

            for (size_t k = 0; k < r->n_column_keys; k++) {
                uint32_t value = t->columns[column * r->n_column_keys + k];

                hg_buf_printf(&name, "%s=%s ", r->frame.keys.items[r->column_keys[k]].name,
                              value ? hg_report_text(r, value) : "");
            }
            if (i < 5)
                hg_buf_puts(&name, r->metric);
            hg_buf_puts(&name, i < 5 ? figures[i] : figures[i] + 1);
            hg_buf_puts(out, ",");
            hg_csv_append(hg_buf_str(&name), out);
            hg_buf_done(&name);
        }
}

static void append_pivot_point(const struct hg_point *p, struct hg_buf *out)
{
    append_number(p->value.value, false, out);
    append_number(p->value.has_interval ? p->value.low : NAN, false, out);
    append_number(p->value.has_interval ? p->value.high : NAN, false, out);
    append_number(p->of ? (double)p->n : NAN, false, out);
    append_number(p->of ? (double)p->of : NAN, false, out);
    append_number(p->speedup.value, false, out);
    append_number(p->speedup.has_interval ? p->speedup.low : NAN, false, out);
    append_number(p->speedup.has_interval ? p->speedup.high : NAN, false, out);
    append_number(p->efficiency, false, out);
}

static void append_pivot_table(const struct hg_report *r, const struct hg_table *t,
                               struct hg_buf *out)
{
    hg_buf_puts(out, "rehearsal");
    for (size_t k = 0; k < r->n_split_keys; k++) {
        hg_buf_puts(out, ",");
        hg_csv_append(r->frame.keys.items[r->split_keys[k]].name, out);
    }
    for (size_t k = 0; k < r->n_row_keys; k++) {
        hg_buf_puts(out, ",");
        hg_csv_append(r->frame.keys.items[r->row_keys[k]].name, out);
    }
    append_pivot_columns(r, t, out);
    hg_buf_puts(out, EOL);
    for (size_t row = 0; row < t->n_rows; row++) {
        hg_buf_puts(out, t->rehearsal ? "true" : "false");
        for (size_t k = 0; k < r->n_split_keys; k++) {
            hg_buf_puts(out, ",");
            append_json(r->frame.values.items[t->split[k]].json, out);
        }
        for (size_t k = 0; k < r->n_row_keys; k++) {
            hg_buf_puts(out, ",");
            append_json(r->frame.values.items[t->rows[row * r->n_row_keys + k]].json, out);
        }
        for (size_t column = 0; column < t->n_columns; column++)
            append_pivot_point(hg_table_point(t, row, column), out);
        hg_buf_puts(out, EOL);
    }
}

/* Tables with other columns follow behind an empty line, each with its own header. */
static void render_pivot(const struct hg_report *r, struct hg_buf *out)
{
    for (size_t i = 0; i < r->tables.n; i++) {
        if (i)
            hg_buf_puts(out, EOL);
        append_pivot_table(r, &r->tables.items[i], out);
    }
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
