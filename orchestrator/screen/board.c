/* SPDX-License-Identifier: Apache-2.0 */
#include "screen/board.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/build.h"
#include "analysis/keys.h"
#include "analysis/tuples.h"
#include "base/json.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "matrix/names.h"
#include "plan/cells.h"
#include "plan/files.h"
#include "rundir/collect.h"

/* Where the values of the keys are: a report without figures. */
struct hg_board_data {
    struct hg_results set;
    struct hg_report *report;
    size_t *row_keys, *column_keys;                 /* in the order of sorting */
    size_t n_row_keys, n_column_keys, n_label_keys; /* of the columns, less `repeat` */
    size_t turned;                                  /* keys of rows that are columns now */
    uint32_t *rows, *columns;                       /* their values */
    struct hg_map places;                           /* {row, column} to its first cell */
};

/* ---- Loading ---- */

struct loading {
    struct hg_board *b;
    size_t cap;
    int batch;
    bool (*picks)(void *context, int batch, uint32_t line);
    void *context;
    struct hg_errs errs;
};

static int add_cell(size_t line, const json_t *record, void *context)
{
    struct loading *l = context;
    struct hg_board *b = l->b;

    if (l->picks && !l->picks(l->context, l->batch, (uint32_t)line))
        return 0;
    hg_vec_grow((void **)&b->cells, b->n, &l->cap, sizeof *b->cells);
    b->cells[b->n++] = (struct hg_board_cell){ .batch = l->batch, .line = (uint32_t)line };
    hg_results_add(&b->data->set,
                   json_pack("{s:O,s:O,s:s}", "id", json_object_get(record, "id"), "cell",
                             json_object_get(record, "cell"), "status", "pending"),
                   NULL, &l->errs);
    return 0;
}

/* The results of the run as if none had started. A selector of the report hides nothing here. */
static int load_cells(const struct hg_rundir *rd, struct loading *l, struct hg_err *err)
{
    struct hg_results *set = &l->b->data->set;
    json_t *plan = hg_plan_read(rd->path, err), *head = plan ? hg_collect_head(rd, err) : NULL;
    size_t n = json_array_size(json_object_get(plan, "batches"));
    struct hg_json_doc doc = { .root = head };
    int rc = -1;

    json_decref(plan);
    if (!head)
        return -1;
    json_object_del(json_object_get(head, "report"), "where");
    if (hg_results_begin(&doc, HG_RESULTS_TOLERANT, set, &l->errs) < 0)
        return -1;
    for (rc = 0; rc == 0 && l->batch < (int)n;) {
        l->batch++;
        rc = hg_plan_each_cell(rd->path, l->batch, add_cell, l, err);
    }
    if (rc == 0 && l->b->n == 0)
        rc = hg_err_set(err, HG_E_INPUT, "no cell to show");
    return rc == 0 ? hg_results_end(set, &l->errs) : -1;
}

/* ---- Arranging ---- */

/* As the report has them, but for the keys that were turned. */
static void settle_keys(struct hg_board *b)
{
    struct hg_board_data *d = b->data;
    const struct hg_report *r = d->report;
    size_t n_split = r->n_split_keys, n_rows = n_split + r->n_row_keys;

    d->n_row_keys = d->n_column_keys = 0;
    for (size_t i = 0; i < n_rows; i++) {
        size_t key = i < n_split ? r->split_keys[i] : r->row_keys[i - n_split];

        if (i < d->turned)
            d->column_keys[d->n_column_keys++] = key;
        else
            d->row_keys[d->n_row_keys++] = key;
    }
    for (size_t i = 0; i < r->n_column_keys; i++)
        d->column_keys[d->n_column_keys++] = r->column_keys[i];
    d->n_label_keys = d->n_column_keys;
    for (size_t k = 0; k < r->frame.keys.n; k++)
        if (r->frame.keys.items[k].flags & HG_KEY_REPEAT)
            d->column_keys[d->n_column_keys++] = k;
    b->n_row_keys = d->n_row_keys;
}

static uint32_t *sorted_tuples(const struct hg_report *r, struct hg_tuples *t, const size_t *keys)
{
    uint32_t *values = hg_alloc((t->width + 1) * sizeof *values);

    for (size_t i = 0; i < r->n_entries; i++) {
        hg_keys_take(r, i, keys, t->width, values);
        hg_tuples_put(t, values);
    }
    hg_tuples_sort(t);
    return values;
}

/* The two columns differ in `repeat` at most. */
static bool is_same_group(const struct hg_board_data *d, size_t column, size_t other)
{
    return memcmp(d->columns + column * d->n_column_keys, d->columns + other * d->n_column_keys,
                  d->n_label_keys * sizeof *d->columns) == 0;
}

static int width_of(const struct hg_board *b, size_t i, size_t k,
                    void (*label)(const struct hg_board *b, size_t i, size_t k, struct hg_buf *out))
{
    struct hg_buf text = HG_BUF_INIT;
    int width;

    label(b, i, k, &text);
    width = (int)hg_text_width(hg_buf_str(&text));
    hg_buf_done(&text);
    return width;
}

static void column_label(const struct hg_board *b, size_t column, size_t k, struct hg_buf *out)
{
    (void)k;
    hg_board_column_label(b, column, out);
}

/* The widths of labels, so that a screen is drawn without reading them all. */
static void measure(struct hg_board *b)
{
    b->columns = hg_realloc(b->columns, (b->n_columns + 1) * sizeof *b->columns);
    b->key_widths = hg_realloc(b->key_widths, (b->n_row_keys + 1) * sizeof *b->key_widths);
    for (size_t k = 0; k < b->n_row_keys; k++) {
        b->key_widths[k] = 1;
        for (size_t i = 0; i < b->n_rows; i++) {
            int width = width_of(b, i, k, hg_board_row_label);

            b->key_widths[k] = width > b->key_widths[k] ? width : b->key_widths[k];
        }
    }
    for (size_t i = 0, n; i < b->n_columns; i += n) {
        for (n = 1; i + n < b->n_columns && is_same_group(b->data, i, i + n);)
            n++;
        for (size_t j = i; j < i + n; j++)
            b->columns[j] =
                (struct hg_board_column){ .label_width = width_of(b, i, 0, column_label),
                                          .group = (int)n,
                                          .last = j == i + n - 1 };
    }
}

static void arrange(struct hg_board *b)
{
    struct hg_board_data *d = b->data;
    struct hg_report *r = d->report;
    struct hg_tuples rows = { .frame = &r->frame, .width = d->n_row_keys };
    struct hg_tuples columns = { .frame = &r->frame, .width = d->n_column_keys };
    uint32_t *row = sorted_tuples(r, &rows, d->row_keys);
    uint32_t *column = sorted_tuples(r, &columns, d->column_keys);

    hg_map_done(&d->places);
    d->places = (struct hg_map)HG_MAP_INIT;
    for (size_t i = b->n;
         i-- > 0;) { /* so that a chain is in the plan's order, but for its first */
        struct hg_board_cell *cell = &b->cells[i];
        size_t place[2], first;

        hg_keys_take(r, i, d->row_keys, rows.width, row);
        hg_keys_take(r, i, d->column_keys, columns.width, column);
        place[0] = cell->row = hg_tuples_find(&rows, row);
        place[1] = cell->column = hg_tuples_find(&columns, column);
        first = hg_map_put(&d->places, place, sizeof place, i);
        cell->next = HG_MAP_NONE;
        if (first != i) {
            cell->next = b->cells[first].next;
            b->cells[first].next = i;
        }
    }
    b->n_rows = rows.n;
    b->n_columns = columns.n;
    free(d->rows);
    free(d->columns);
    d->rows = rows.values;
    d->columns = columns.values;
    rows.values = columns.values = NULL;
    hg_tuples_done(&rows);
    hg_tuples_done(&columns);
    free(row);
    free(column);
    measure(b);
}

struct hg_board *hg_board_load(const struct hg_rundir *rd,
                               bool (*picks)(void *context, int batch, uint32_t line),
                               void *context, struct hg_err *err)
{
    struct hg_board *b = hg_alloc_zeroed(1, sizeof *b);
    struct loading l = { .b = b, .picks = picks, .context = context };
    struct hg_report *r = NULL;

    b->data = hg_alloc_zeroed(1, sizeof *b->data);
    if (load_cells(rd, &l, err) == 0)
        r = b->data->report = hg_report_arrange(&b->data->set, 1, NULL, &l.errs);
    if (l.errs.n && !err->code)
        *err = l.errs.items[0];
    hg_errs_done(&l.errs);
    if (r && r->n_entries != b->n)
        hg_err_set(err, HG_E_INPUT, "%s: two of its cells have the same id", rd->path);
    if (!r || r->n_entries != b->n) {
        hg_board_free(b);
        return NULL;
    }
    b->data->row_keys = hg_alloc_zeroed(r->frame.keys.n + 1, sizeof *b->data->row_keys);
    b->data->column_keys = hg_alloc_zeroed(r->frame.keys.n + 1, sizeof *b->data->column_keys);
    settle_keys(b);
    arrange(b);
    return b;
}

void hg_board_free(struct hg_board *b)
{
    if (!b)
        return;
    hg_map_done(&b->data->places);
    free(b->data->row_keys);
    free(b->data->column_keys);
    free(b->data->rows);
    free(b->data->columns);
    hg_report_free(b->data->report);
    hg_results_done(&b->data->set);
    free(b->data);
    free(b->cells);
    free(b->columns);
    free(b->key_widths);
    free(b);
}

const char *hg_board_turn(struct hg_board *b)
{
    struct hg_board_data *d = b->data;
    const struct hg_report *r = d->report;

    d->turned = d->turned == r->n_split_keys + r->n_row_keys ? 0 : d->turned + 1;
    settle_keys(b);
    arrange(b);
    return d->turned ? r->frame.keys.items[d->column_keys[d->turned - 1]].name : NULL;
}

const char *hg_board_sort(struct hg_board *b, bool columns)
{
    struct hg_board_data *d = b->data;
    size_t *keys = columns ? d->column_keys : d->row_keys;
    size_t n = columns ? d->n_label_keys : d->n_row_keys, first = n ? keys[0] : 0;

    if (n < 2)
        return NULL;
    memmove(keys, keys + 1, (n - 1) * sizeof *keys);
    keys[n - 1] = first;
    arrange(b);
    return d->report->frame.keys.items[keys[0]].name;
}

/* ---- Reading ---- */

size_t hg_board_at(const struct hg_board *b, size_t row, size_t column)
{
    size_t place[2] = { row, column };

    return hg_map_find(&b->data->places, place, sizeof place);
}

void hg_board_row_label(const struct hg_board *b, size_t row, size_t k, struct hg_buf *out)
{
    const struct hg_board_data *d = b->data;

    hg_buf_puts(out, hg_report_text(d->report, d->rows[row * d->n_row_keys + k]));
}

void hg_board_row_key(const struct hg_board *b, size_t k, struct hg_buf *out)
{
    hg_buf_puts(out, b->data->report->frame.keys.items[b->data->row_keys[k]].name);
}

void hg_board_column_label(const struct hg_board *b, size_t column, struct hg_buf *out)
{
    const struct hg_board_data *d = b->data;
    const uint32_t *values = d->columns + column * d->n_column_keys;

    for (size_t i = 0; i < d->n_label_keys; i++)
        hg_buf_printf(out, "%s%s", i ? " " : "", hg_report_text(d->report, values[i]));
}

void hg_board_append_name(const struct hg_board *b, size_t cell, struct hg_buf *out)
{
    hg_names_append(b->data->report->names, cell, out);
}

const char *hg_board_id(const struct hg_board *b, size_t cell)
{
    return b->data->report->entries[cell].result->id;
}

const char *hg_board_metric(const struct hg_board *b)
{
    return b->data->set.metric;
}
