/* SPDX-License-Identifier: Apache-2.0 */
/* CSV (RFC 4180). Tidy: one line for each cell and attempt, one column for each key, only values of the results. Pivoted: one line
 * for each row of the tables. */
#include "render/renderers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "analysis/labels.h"
#include "analysis/tuples.h"
#include "typeset/escape.h"
#include "render/many.h"

#define EOL "\r\n"

/* Put a separator in front of all fields but the first. */
static void separate(const struct hg_report *r, bool first, struct hg_buf *out)
{
    hg_buf_puts(out, first ? "" : hg_csv_separator(&r->style));
}

/* ---- Tidy ---- */

/* By the same code as the lines of results that are too many for memory. */
static void add_lines(const struct hg_report *r, struct hg_lines *lines, struct hg_err *err)
{
    for (size_t s = 0; s < r->n_sets; s++)
        for (size_t i = 0; i < r->sets[s].n; i++) {
            const struct hg_result *result = &r->sets[s].items[i];
            json_t *entry = hg_result_entry(result);

            hg_lines_add(lines, &r->sets[s], result, entry, err);
            json_decref(entry);
        }
}

/* The lines of cells that `where` leaves out are not shown; every attempt at the others is. */
static unsigned char *flag_lines(const struct hg_report *r)
{
    size_t n = 0, *first = hg_alloc_zeroed(r->n_sets + 1, sizeof *first);
    unsigned char *flags, *shown;

    for (size_t s = 0; s < r->n_sets; s++) {
        first[s] = n;
        n += r->sets[s].n;
    }
    flags = hg_alloc_zeroed(n + 1, 1);
    shown = hg_alloc_zeroed(n + 1, 1); /* by a cell's first line; 2: it does not count */
    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].shown || r->entries[i].replaced)
            shown[first[r->entries[i].set] + r->entries[i].result->first] =
                r->entries[i].replaced ? 2 : 1;
    for (size_t s = 0; s < r->n_sets; s++)
        for (size_t i = 0; i < r->sets[s].n; i++) {
            const struct hg_result *result = &r->sets[s].items[i];

            flags[first[s] + i] =
                (shown[first[s] + result->first] ? HG_LINE_SHOWN : 0) |
                (result->used && result->ok && shown[first[s] + result->first] != 2 ? HG_LINE_COUNTS
                                                                                    : 0);
        }
    free(shown);
    free(first);
    return flags;
}

static int put_text(void *out, const char *text, size_t len, struct hg_err *err)
{
    (void)err;
    hg_buf_append(out, text, len);
    return 0;
}

int hg_report_write_lines(const struct hg_report *r, const struct hg_style *style,
                          hg_lines_put_fn put, void *context, struct hg_err *err)
{
    struct hg_lines *lines = hg_lines_create(style, SIZE_MAX);
    const char **keys = hg_alloc((r->frame.keys.n + 1) * sizeof *keys);
    unsigned char *flags = flag_lines(r);
    int rc;

    for (size_t k = 0; k < r->frame.keys.n; k++)
        keys[k] = r->frame.keys.items[k].name;
    do
        add_lines(r, lines, err);
    while (hg_lines_again(lines));
    rc = hg_lines_write(lines, keys, r->frame.keys.n, flags, put, context, err);
    hg_lines_free(lines);
    free(keys);
    free(flags);
    return rc;
}

/* In memory nothing of this can fail. */
static void render_tidy(const struct hg_report *r, struct hg_buf *out)
{
    struct hg_err err = HG_ERR_INIT;

    hg_report_write_lines(r, &r->style, put_text, out, &err);
}

/* ---- Pivoted ---- */

/* The columns of all tables: one header stands for them all, so that the whole is one table. */
static struct hg_tuples gather_columns(const struct hg_report *r)
{
    struct hg_tuples all = { .frame = &r->frame, .width = r->n_column_keys };

    for (size_t i = 0; i < r->tables.n; i++)
        for (size_t column = 0; column < r->tables.items[i].n_columns; column++)
            hg_tuples_put(&all, r->tables.items[i].columns + column * all.width);
    hg_tuples_sort(&all);
    return all;
}

static void append_pivot_header(const struct hg_report *r, const struct hg_tuples *all,
                                struct hg_buf *out)
{
    static const char *const figures[] = {
        "", " low", " high", " n", " of", " speedup", " speedup low", " speedup high", " efficiency"
    };

    for (size_t column = 0; column < all->n; column++)
        for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
            struct hg_buf name = HG_BUF_INIT;

            for (size_t k = 0; k < all->width; k++) {
                uint32_t value = all->values[column * all->width + k];

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

/* By column of the whole: where it stands in this table; HG_MAP_NONE: nowhere. */
static void find_columns(const struct hg_tuples *all, const struct hg_table *t, size_t *places)
{
    for (size_t i = 0; i < all->n; i++)
        places[i] = HG_MAP_NONE;
    for (size_t i = 0; i < t->n_columns; i++)
        places[hg_tuples_find(all, t->columns + i * all->width)] = i;
}

/* Source and note of one set; a line of several sets has none. */
static void append_origin(const struct hg_report *r, bool names, struct hg_buf *out)
{
    const struct hg_results *set = r->sets;

    hg_csv_append_origin(&r->style, &set, r->n_sets == 1, names ? NULL : set, out);
}

/* The footnotes of a row, "ddp: 2 of 3 runs count; ...". */
static void append_notes(const struct hg_report *r, const struct hg_table *t, size_t row,
                         struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;

    for (size_t column = 0; column < t->n_columns; column++) {
        const struct hg_point *p = hg_table_point(t, row, column);

        for (size_t i = 0; i < p->n_notes; i++) {
            hg_buf_puts(&text, text.len ? "; " : "");
            if (i == 0 && r->n_column_keys) {
                hg_column_label(r, t, column, &text);
                hg_buf_puts(&text, ": ");
            }
            hg_buf_puts(&text, t->notes.items[p->notes[i]]);
        }
    }
    separate(r, false, out);
    hg_csv_append(&r->style, hg_buf_str(&text), out);
    hg_buf_done(&text);
}

static void append_pivot_table(const struct hg_report *r, const struct hg_table *t,
                               const size_t *places, size_t n, struct hg_buf *out)
{
    static const struct hg_point nothing = { .value = HG_ESTIMATE_NONE,
                                             .speedup = HG_ESTIMATE_NONE,
                                             .efficiency = NAN };

    for (size_t row = 0; row < t->n_rows; row++) {
        hg_buf_puts(out, t->rehearsal ? "true" : "false");
        for (size_t k = 0; k < r->n_split_keys; k++) {
            separate(r, false, out);
            hg_csv_append_json(&r->style, "", r->frame.values.items[t->split[k]].json, out);
        }
        for (size_t k = 0; k < r->n_row_keys; k++) {
            separate(r, false, out);
            hg_csv_append_json(&r->style, "",
                               r->frame.values.items[t->rows[row * r->n_row_keys + k]].json, out);
        }
        for (size_t i = 0; i < n; i++)
            append_pivot_point(
                r, places[i] == HG_MAP_NONE ? &nothing : hg_table_point(t, row, places[i]), out);
        append_notes(r, t, row, out);
        append_origin(r, false, out);
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
    struct hg_tuples all = gather_columns(r);
    size_t *places = hg_alloc((all.n + 1) * sizeof *places);

    hg_buf_puts(out, "rehearsal");
    append_keys(r, r->split_keys, r->n_split_keys, out);
    append_keys(r, r->row_keys, r->n_row_keys, out);
    append_pivot_header(r, &all, out);
    separate(r, false, out);
    hg_buf_puts(out, "notes");
    append_origin(r, true, out);
    hg_buf_puts(out, EOL);
    for (size_t i = 0; i < r->tables.n; i++) {
        find_columns(&all, &r->tables.items[i], places);
        append_pivot_table(r, &r->tables.items[i], places, all.n, out);
    }
    free(places);
    hg_tuples_done(&all);
}

static void render(const struct hg_report *r, const struct hg_render_options *o, struct hg_buf *out)
{
    if (o->pivot)
        render_pivot(r, out);
    else
        render_tidy(r, out);
}

/* A whole field. */
static void escape(const char *text, struct hg_buf *out)
{
    static const struct hg_style style = HG_STYLE_INIT;

    hg_csv_append(&style, text, out);
}

const struct hg_renderer hg_renderer_csv = {
    .name = "csv",
    .endings = "csv",
    .file = "results.csv",
    .tidy = true,
    .render = render,
    .escape = escape,
    .sheet = hg_sheet_csv,
};
