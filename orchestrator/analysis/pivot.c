/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/pivot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "analysis/groups.h"
#include "analysis/keys.h"
#include "analysis/tuples.h"

/* Rows and columns of a table from its entries; values: room for a tuple. */
static void arrange(struct hg_report *r, struct hg_table *t, const size_t *entries, size_t n,
                    struct hg_tuples *rows, struct hg_tuples *columns, uint32_t *values)
{
    for (size_t i = 0; i < n; i++) {
        hg_keys_take(r, entries[i], r->row_keys, r->n_row_keys, values);
        hg_tuples_put(rows, values);
        hg_keys_take(r, entries[i], r->column_keys, r->n_column_keys, values);
        hg_tuples_put(columns, values);
    }
    hg_tuples_sort(rows);
    hg_tuples_sort(columns);
    t->n_rows = rows->n;
    t->n_columns = columns->n;
    t->rows = rows->values;
    t->columns = columns->values;
    rows->values = columns->values = NULL;
}

/* A place without cells, of which nothing is known. */
static const struct hg_point nothing = { .value = HG_ESTIMATE_NONE,
                                         .speedup = HG_ESTIMATE_NONE,
                                         .per_s = HG_ESTIMATE_NONE,
                                         .efficiency = NAN,
                                         .p = NAN,
                                         .work = NAN,
                                         .karp_flatt = NAN,
                                         .device_hours = NAN,
                                         .hours_ratio = NAN,
                                         .energy_j = NAN,
                                         .cost = NAN,
                                         .devices = NAN,
                                         .config = HG_MAP_NONE,
                                         .base = HG_MAP_NONE };

static void place_entries(struct hg_report *r, struct hg_table *t, const size_t *entries, size_t n)
{
    struct hg_tuples rows = { .frame = &r->frame, .width = r->n_row_keys };
    struct hg_tuples columns = { .frame = &r->frame, .width = r->n_column_keys };
    uint32_t *values = hg_alloc((r->frame.keys.n + 1) * sizeof *values);
    size_t n_points;

    arrange(r, t, entries, n, &rows, &columns, values);
    n_points = t->n_rows * t->n_columns;
    t->points = hg_alloc((n_points + 1) * sizeof *t->points);
    for (size_t i = 0; i < n_points; i++)
        t->points[i] = nothing;
    for (size_t i = 0; i < n; i++) {
        size_t row, column;

        hg_keys_take(r, entries[i], r->row_keys, r->n_row_keys, values);
        row = hg_tuples_find(&rows, values);
        hg_keys_take(r, entries[i], r->column_keys, r->n_column_keys, values);
        column = hg_tuples_find(&columns, values);
        hg_table_point(t, row, column)->config = r->entries[entries[i]].config;
    }
    free(values);
    hg_tuples_done(&rows);
    hg_tuples_done(&columns);
}

/* The table of each entry that is shown: real ones first, rehearsals after them, then by the values of the split keys. */
static void split_entries(struct hg_report *r, struct hg_tuples *tables, size_t *of_entry)
{
    uint32_t *values = hg_alloc((r->n_split_keys + 1) * sizeof *values);

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < r->n_entries; i++) {
            of_entry[i] = HG_MAP_NONE;
            if (!r->entries[i].shown)
                continue;
            values[0] = r->entries[i].rehearsal; /* as a value: 0 sorts first */
            hg_keys_take(r, i, r->split_keys, r->n_split_keys, values + 1);
            if (pass == 0)
                hg_tuples_put(tables, values);
            else
                of_entry[i] = hg_tuples_find(tables, values);
        }
        if (pass == 0)
            hg_tuples_sort(tables);
    }
    free(values);
}

static struct hg_table *add_table(struct hg_report *r, const uint32_t *key)
{
    struct hg_table *t = HG_VEC_PUSH(&r->tables);

    *t = (struct hg_table){ .rehearsal = key[0] != 0 };
    t->split = hg_alloc_zeroed(r->n_split_keys + 1, sizeof *t->split);
    memcpy(t->split, key + 1, r->n_split_keys * sizeof *t->split);
    return t;
}

static void name_device(const struct hg_report *r, struct hg_table *t, const size_t *entries,
                        size_t n)
{
    for (size_t i = 0; i < n && !t->device && t->rehearsal; i++)
        t->device = r->entries[entries[i]].result->device;
}

static void make_tables(struct hg_report *r)
{
    struct hg_tuples tables = { .frame = &r->frame, .width = r->n_split_keys + 1 };
    size_t *of_entry = hg_alloc((r->n_entries + 1) * sizeof *of_entry);
    size_t *sorted = hg_alloc((r->n_entries + 1) * sizeof *sorted), *begin;

    split_entries(r, &tables, of_entry);
    begin = hg_alloc_zeroed(tables.n + 2, sizeof *begin);
    hg_groups_sort(of_entry, r->n_entries, tables.n, begin, sorted);
    for (size_t i = 0; i < tables.n; i++) {
        struct hg_table *t = add_table(r, tables.values + i * tables.width);

        name_device(r, t, sorted + begin[i], begin[i + 1] - begin[i]);
        place_entries(r, t, sorted + begin[i], begin[i + 1] - begin[i]);
    }
    hg_tuples_done(&tables);
    free(begin);
    free(sorted);
    free(of_entry);
}

static int compare_counts(const void *pa, const void *pb)
{
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;

    return (a > b) - (a < b);
}

/* Runs in most places, so that only the others need saying; the larger of two equally frequent. */
static void count_repeats(struct hg_builder *b)
{
    size_t *counts = hg_alloc_zeroed(b->configurations.n + 1, sizeof *counts), n = 0, best = 0,
           times = 0;

    for (size_t c = 0; c < b->configurations.n; c++) {
        const struct hg_configuration *own = &b->configurations.items[c];

        for (size_t i = 0; i < own->n_entries; i++)
            counts[n] += hg_builder_entry(b, own, i)->shown;
        n += counts[n] > 0;
    }
    qsort(counts, n, sizeof *counts, compare_counts);
    for (size_t i = 0; i < n; i++) {
        times = i && counts[i] == counts[i - 1] ? times + 1 : 1;
        if (times >= best) {
            best = times;
            b->r->repeats = counts[i];
        }
    }
    free(counts);
}

void hg_pivot_arrange(struct hg_builder *b)
{
    count_repeats(b);
    make_tables(b->r);
}
