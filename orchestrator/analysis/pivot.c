/* SPDX-License-Identifier: Apache-2.0 */
/* Third step of a report: keys of rows and columns, tables, and the figures in their places. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/vec.h"
#include "analysis/build.h"

/* ---- Which keys are rows and columns ---- */

size_t hg_build_key(struct hg_build *b, const char *what, const char *name,
                    const struct hg_results *set, const char *pointer)
{
    const struct hg_frame *f = &b->r->frame;
    size_t key = hg_frame_find_key(f, name);
    const char **names;
    struct hg_err *err;

    if (key != HG_MAP_NONE)
        return key;
    if (set) {
        err = hg_json_error(&set->doc, pointer, b->errs, "no cell has \"%s\"", name);
    } else {
        err = hg_errs_next(b->errs);
        hg_err_set(err, HG_E_INPUT, "%s: no cell has \"%s\"", what, name);
    }
    names = malloc((f->keys.n + 1) * sizeof *names);
    for (size_t k = 0; names && k < f->keys.n; k++)
        names[k] = f->keys.items[k].name;
    if (names && f->keys.n)
        hg_text_suggest(err, name, names, f->keys.n);
    free(names);
    return HG_MAP_NONE;
}

/* Does a key take more than one value in the cells shown? */
static bool varies(const struct hg_report *r, size_t key)
{
    uint32_t first = UINT32_MAX;

    for (size_t i = 0; i < r->n_entries; i++) {
        uint32_t value = hg_frame_row(&r->frame, i)[key];

        if (!r->entries[i].shown)
            continue;
        if (first != UINT32_MAX && value != first)
            return true;
        first = value;
    }
    return false;
}

struct keys {
    size_t *items;
    size_t n;
    bool given;
};

static bool has_key(const struct keys *keys, size_t key)
{
    for (size_t i = 0; i < keys->n; i++)
        if (keys->items[i] == key)
            return true;
    return false;
}

/* set: whose report asks for them; NULL: an option does. */
static int read_keys(struct hg_build *b, const char *what, char **names,
                     const struct hg_results *set, struct keys *keys)
{
    int rc = 0;

    keys->given = names != NULL;
    for (size_t i = 0; names && names[i]; i++) {
        char pointer[64];
        size_t key;

        snprintf(pointer, sizeof pointer, "/report/%s/%zu", what, i);
        key = hg_build_key(b, what, names[i], set, pointer);
        if (key == HG_MAP_NONE)
            rc = -1;
        else if (has_key(keys, key))
            rc = hg_err_set(hg_errs_next(b->errs), HG_E_INPUT, "%s: \"%s\" is given twice", what,
                            names[i]);
        else
            keys->items[keys->n++] = key;
    }
    return rc;
}

/* Shape keys that vary. tasks_per_node that only follows gpus_per_node says nothing new. */
static void choose_shape(const struct hg_report *r, const struct keys *taken, struct keys *keys)
{
    static const char *const names[] = { "nodes", "gpus_per_node", "tasks_per_node",
                                         "cpus_per_task" };
    size_t gpus = hg_frame_find_key(&r->frame, "gpus_per_node");

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t key = hg_frame_find_key(&r->frame, names[i]);
        bool follows = i == 2 && gpus != HG_MAP_NONE && key != HG_MAP_NONE;

        for (size_t e = 0; e < r->n_entries && follows; e++)
            follows = hg_frame_row(&r->frame, e)[key] == hg_frame_row(&r->frame, e)[gpus];
        if (key != HG_MAP_NONE && !follows && varies(r, key) && !has_key(taken, key))
            keys->items[keys->n++] = key;
    }
}

/* The strategy; else the first other member that varies. */
static void choose_variant(const struct hg_build *b, const struct keys *taken,
                           const struct keys *groups, struct keys *keys)
{
    const struct hg_frame *f = &b->r->frame;
    size_t strategy = hg_frame_find_key(f, "strategy");

    if (strategy != HG_MAP_NONE && !has_key(taken, strategy) && !has_key(groups, strategy)) {
        keys->items[keys->n++] = strategy;
        return;
    }
    for (size_t k = 0; k < f->keys.n && keys->n == 0; k++)
        if (!b->masked[k] && !(f->keys.items[k].flags & HG_KEY_SHAPE) && !has_key(taken, k) &&
            !has_key(groups, k) && varies(b->r, k))
            keys->items[keys->n++] = k;
}

static bool has_shape(const struct hg_report *r, const struct keys *keys)
{
    for (size_t i = 0; i < keys->n; i++)
        if (r->frame.keys.items[keys->items[i]].flags & HG_KEY_SHAPE)
            return true;
    return false;
}

/* Distinct combinations of these keys among the cells shown; HG_MAP_NONE when memory is gone. */
static size_t count_combinations(const struct hg_report *r, const struct keys *keys)
{
    uint32_t *values = malloc((keys->n + 1) * sizeof *values);
    struct hg_map seen = HG_MAP_INIT;
    size_t n = values ? 0 : HG_MAP_NONE;

    for (size_t i = 0; i < r->n_entries && n != HG_MAP_NONE; i++) {
        if (!r->entries[i].shown)
            continue;
        for (size_t k = 0; k < keys->n; k++)
            values[k] = hg_frame_row(&r->frame, i)[keys->items[k]];
        if (hg_map_put(&seen, values, keys->n * sizeof *values, 1) == HG_MAP_NONE)
            n = HG_MAP_NONE;
    }
    n = n == HG_MAP_NONE ? n : seen.n;
    hg_map_done(&seen);
    free(values);
    return n;
}

/* The keys that tell cells apart, less those that only follow from the others. */
static int choose_telling(struct hg_build *b, const struct keys *taken, struct keys *keys)
{
    const struct hg_report *r = b->r;
    size_t all;

    for (size_t k = 0; k < r->frame.keys.n; k++)
        if (!b->masked[k] && !has_key(taken, k) && varies(r, k))
            keys->items[keys->n++] = k;
    all = count_combinations(r, keys);
    for (size_t i = keys->n; i-- > 0 && all != HG_MAP_NONE;) {
        size_t key = keys->items[i], n;

        memmove(keys->items + i, keys->items + i + 1, (--keys->n - i) * sizeof *keys->items);
        n = count_combinations(r, keys);
        if (n == all)
            continue;
        memmove(keys->items + i + 1, keys->items + i, (keys->n++ - i) * sizeof *keys->items);
        keys->items[i] = key;
    }
    return all == HG_MAP_NONE ? hg_err_oom(hg_errs_next(b->errs)) : 0;
}

/* Keys of `group`, which give a table each: as asked for, else as the first set says that has some. */
static int read_groups(struct hg_build *b, struct keys *groups)
{
    const struct hg_report *r = b->r;
    char **names = b->options->group;
    const struct hg_results *set = NULL;

    for (size_t s = 0; s < r->n_sets && !names && !b->options->against_first; s++)
        if (r->sets[s].group) {
            set = &r->sets[s];
            names = set->group;
        }
    return read_keys(b, "group", names, set, groups);
}

/* A key stands in one place only. */
static int check_twice(struct hg_build *b, const struct keys *a, const struct keys *others,
                       const char *what)
{
    for (size_t i = 0; i < a->n; i++)
        if (has_key(others, a->items[i]))
            return hg_err_set(hg_errs_next(b->errs), HG_E_INPUT, "\"%s\" is both %s",
                              b->r->frame.keys.items[a->items[i]].name, what);
    return 0;
}

static int settle_keys(struct hg_build *b, struct keys *rows, struct keys *columns,
                       struct keys *groups)
{
    struct hg_report *r = b->r;
    char **row_names = b->options->rows, **column_names = b->options->columns;
    const struct hg_results *row_set = NULL, *column_set = NULL;

    if (b->options->against_first) {
        columns->items[columns->n++] = hg_frame_find_key(&r->frame, r->source_key);
        return choose_telling(b, columns, rows);
    }
    /* What was asked for on the command line pushes a set's own choice of both aside. */
    for (size_t s = 0; s < r->n_sets && !b->options->rows && !b->options->columns; s++) {
        const struct hg_results *set = &r->sets[s];

        row_set = row_names || !set->rows ? row_set : set;
        row_names = row_names ? row_names : set->rows;
        column_set = column_names || !set->columns ? column_set : set;
        column_names = column_names ? column_names : set->columns;
    }
    if (read_keys(b, "rows", row_names, row_set, rows) < 0 ||
        read_keys(b, "columns", column_names, column_set, columns) < 0 ||
        read_groups(b, groups) < 0 || check_twice(b, rows, columns, "row and column") < 0 ||
        check_twice(b, groups, rows, "group and row") < 0 ||
        check_twice(b, groups, columns, "group and column") < 0)
        return -1;
    if (!rows->given && !(columns->given && has_shape(r, columns)))
        choose_shape(r, groups, rows);
    else if (!rows->given)
        choose_variant(b, columns, groups, rows);
    if (!columns->given && (!rows->given || has_shape(r, rows)))
        choose_variant(b, rows, groups, columns);
    else if (!columns->given)
        choose_shape(r, groups, columns);
    return 0;
}

/* ---- Tables ---- */

/* Key of a table, row or column: values of some keys, and whether it is a rehearsal. */
static void take_values(const struct hg_report *r, size_t entry, const size_t *keys, size_t n,
                        uint32_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = hg_frame_row(&r->frame, entry)[keys[i]];
}

/* Rows, columns and groups show their keys; those masked are nobody's. */
static void mark_taken(const struct hg_build *b, bool *taken)
{
    const struct hg_report *r = b->r;

    for (size_t k = 0; k < r->frame.keys.n; k++)
        taken[k] = b->masked[k];
    for (size_t i = 0; i < r->n_row_keys; i++)
        taken[r->row_keys[i]] = true;
    for (size_t i = 0; i < r->n_column_keys; i++)
        taken[r->column_keys[i]] = true;
    for (size_t i = 0; i < r->n_split_keys; i++) /* `group` */
        taken[r->split_keys[i]] = true;
}

/* Mark the keys not taken in which a cell differs from the first in its place. */
static int mark_split(const struct hg_report *r, const bool *taken, bool *split)
{
    size_t n_place = r->n_row_keys + r->n_column_keys;
    uint32_t *place = malloc((n_place + 1) * sizeof *place);
    struct hg_map places = HG_MAP_INIT;
    int rc = place ? 0 : -1;

    for (size_t i = 0; i < r->n_entries && rc == 0; i++) {
        size_t first;

        if (!r->entries[i].shown)
            continue;
        take_values(r, i, r->row_keys, r->n_row_keys, place);
        take_values(r, i, r->column_keys, r->n_column_keys, place + r->n_row_keys);
        first = hg_map_put(&places, place, n_place * sizeof *place, i);
        if (first == HG_MAP_NONE)
            rc = -1;
        for (size_t k = 0; k < r->frame.keys.n && rc == 0; k++)
            split[k] = split[k] || (!taken[k] && hg_frame_row(&r->frame, i)[k] !=
                                                     hg_frame_row(&r->frame, first)[k]);
    }
    hg_map_done(&places);
    free(place);
    return rc;
}

/* Keys besides rows, columns and groups that differ between cells of one place. */
static int find_split_keys(struct hg_build *b)
{
    struct hg_report *r = b->r;
    size_t n_keys = r->frame.keys.n;
    bool *taken = calloc(n_keys + 1, sizeof *taken), *split = calloc(n_keys + 1, sizeof *split);
    int rc = -1;

    if (!taken || !split)
        goto out;
    mark_taken(b, taken);
    rc = mark_split(r, taken, split);
    for (size_t k = 0; k < n_keys && rc == 0; k++) {
        if (split[k])
            r->split_keys[r->n_split_keys++] = k;
        else if (!taken[k] && !varies(r, k))
            r->same_keys[r->n_same_keys++] = k;
    }
out:
    free(split);
    free(taken);
    return rc;
}

/* Distinct tuples of values, sorted for people. */
struct tuples {
    const struct hg_frame *frame;
    size_t width;
    uint32_t *values;
    size_t n, cap; /* in tuples */
    struct hg_map index;
};

static size_t put_tuple(struct tuples *t, const uint32_t *values)
{
    size_t at = hg_map_put(&t->index, values, t->width * sizeof *values, t->n);

    if (at != t->n)
        return at;
    if (hg_vec_grow((void **)&t->values, t->n, &t->cap, (t->width + 1) * sizeof *values) < 0)
        return HG_MAP_NONE;
    if (t->width)
        memcpy(t->values + t->n * t->width, values, t->width * sizeof *values);
    return t->n++;
}

static int compare_tuples(const void *pa, const void *pb, void *context)
{
    const struct tuples *t = context;
    const uint32_t *a = pa, *b = pb;

    for (size_t i = 0; i < t->width; i++) {
        int order = hg_frame_compare(t->frame, a[i], b[i]);

        if (order)
            return order;
    }
    return 0;
}

static int sort_tuples(struct tuples *t)
{
    size_t n = t->n;

    if (n == 0 || t->width == 0)
        return 0;
    qsort_r(t->values, n, t->width * sizeof *t->values, compare_tuples, t);
    hg_map_done(&t->index);
    t->n = 0;
    while (t->n < n) {
        if (hg_map_put(&t->index, t->values + t->n * t->width, t->width * sizeof *t->values,
                       t->n) == HG_MAP_NONE)
            return -1;
        t->n++;
    }
    return 0;
}

static void tuples_done(struct tuples *t)
{
    free(t->values);
    hg_map_done(&t->index);
}

/* ---- The figures of one place ---- */

struct work {
    struct hg_build *b;
    double *mine, *base; /* room for the values of the largest config */
};

static void scale(struct hg_estimate *e, double factor)
{
    e->value *= factor;
    e->low *= factor;
    e->high *= factor;
}

/* With more work in proportion to the devices a time says by itself how well that went; as a speedup
 * it is scaled (Gustafson). A rate is right as it is. */
static void see_scaling(const struct hg_report *r, struct hg_point *p)
{
    p->weak = hg_scaling_kind_of(p->work, p->p) == HG_SCALING_WEAK;
    if (p->weak && r->kind == HG_METRIC_TIME)
        scale(&p->speedup, p->work);
    p->efficiency = hg_scaling_efficiency(p->speedup.value, p->p);
    p->karp_flatt = p->weak ? NAN : hg_scaling_karp_flatt(p->speedup.value, p->p);
}

static void compare_with_baseline(struct work *w, const struct hg_config *c, struct hg_point *p)
{
    const struct hg_report *r = w->b->r;
    const struct hg_config *base = &w->b->configs.items[c->base];
    const struct hg_result *own = r->entries[c->entry].result,
                           *other = r->entries[base->entry].result;

    p->base_n = hg_config_values(w->b, base, w->base);
    if (own->on_cores == other->on_cores)
        p->p = own->devices / other->devices;
    if (p->n == 0 || p->base_n == 0)
        return;
    p->work = w->b->options->against_first /* the same cell */
                  ? 1
                  : hg_build_work(r, hg_config_first(w->b, c), hg_config_first(w->b, base));
    if (base == c)
        p->speedup.value = 1;
    else if (r->kind == HG_METRIC_RATE)
        p->speedup = hg_stats_ratio(w->mine, p->n, w->base, p->base_n);
    else
        p->speedup = hg_stats_ratio(w->base, p->base_n, w->mine, p->n);
    if (!isfinite(p->speedup.value) || p->speedup.value <= 0) /* beyond the range of a double */
        p->speedup = (struct hg_estimate)HG_ESTIMATE_NONE;
    see_scaling(r, p);
}

static void fill_point(struct work *w, size_t config, struct hg_point *p)
{
    const struct hg_report *r = w->b->r;
    const struct hg_config *c;

    *p = (struct hg_point){ .value = HG_ESTIMATE_NONE,
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
                            .config = config };
    if (config == HG_MAP_NONE)
        return;
    c = &w->b->configs.items[config];
    p->devices = r->entries[c->entry].result->devices;
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = &r->entries[w->b->config_entries[c->begin + i]];

        if (!e->shown)
            continue;
        p->of++;
        if (!e->state) {
            w->mine[p->n++] = e->value;
            p->oversubscribed = p->oversubscribed || e->result->oversubscribed;
        } else if (!p->state) {
            p->state = e->state;
        }
    }
    if (p->n) {
        p->value = hg_stats_center(w->mine, p->n);
        p->state = NULL;
    }
    hg_build_cost(w->b, c, w->base, p);
    if (c->base != HG_MAP_NONE)
        compare_with_baseline(w, c, p);
}

/* ---- Filling a table ---- */

static int arrange(struct hg_build *b, struct hg_table *t, const size_t *entries, size_t n,
                   struct tuples *rows, struct tuples *columns, uint32_t *values)
{
    struct hg_report *r = b->r;

    for (size_t i = 0; i < n; i++) {
        take_values(r, entries[i], r->row_keys, r->n_row_keys, values);
        if (put_tuple(rows, values) == HG_MAP_NONE)
            return -1;
        take_values(r, entries[i], r->column_keys, r->n_column_keys, values);
        if (put_tuple(columns, values) == HG_MAP_NONE)
            return -1;
    }
    if (sort_tuples(rows) < 0 || sort_tuples(columns) < 0)
        return -1;
    t->n_rows = rows->n;
    t->n_columns = columns->n;
    t->rows = rows->values;
    t->columns = columns->values;
    rows->values = columns->values = NULL;
    return 0;
}

static int fill_points(struct work *w, struct hg_table *t, const size_t *point_config)
{
    size_t n = t->n_rows * t->n_columns;

    t->points = calloc(n + 1, sizeof *t->points);
    if (!t->points)
        return -1;
    for (size_t i = 0; i < n; i++) {
        fill_point(w, point_config[i], &t->points[i]);
        t->has_speedup = t->has_speedup || !isnan(t->points[i].speedup.value);
        /* On as many devices as the baseline, efficiency says what speedup says. */
        t->has_efficiency =
            t->has_efficiency || (!isnan(t->points[i].efficiency) && t->points[i].p != 1);
    }
    for (size_t i = 0; i < n; i++) {
        const struct hg_config *c;

        if (point_config[i] == HG_MAP_NONE)
            continue;
        c = &w->b->configs.items[point_config[i]];
        t->points[i].is_baseline = c->base == point_config[i];
    }
    return 0;
}

static int fill_table(struct work *w, struct hg_table *t, const size_t *entries, size_t n)
{
    struct hg_build *b = w->b;
    struct hg_report *r = b->r;
    struct tuples rows = { .frame = &r->frame, .width = r->n_row_keys };
    struct tuples columns = { .frame = &r->frame, .width = r->n_column_keys };
    uint32_t *values = malloc((r->frame.keys.n + 1) * sizeof *values);
    size_t *point_config = NULL, n_points;
    int rc = -1;

    if (!values || arrange(b, t, entries, n, &rows, &columns, values) < 0)
        goto out;
    n_points = t->n_rows * t->n_columns;
    point_config = malloc((n_points + 1) * sizeof *point_config);
    if (!point_config)
        goto out;
    for (size_t i = 0; i < n_points; i++)
        point_config[i] = HG_MAP_NONE;
    for (size_t i = 0; i < n; i++) {
        size_t row, column;

        take_values(r, entries[i], r->row_keys, r->n_row_keys, values);
        row = hg_map_find(&rows.index, values, r->n_row_keys * sizeof *values);
        take_values(r, entries[i], r->column_keys, r->n_column_keys, values);
        column = hg_map_find(&columns.index, values, r->n_column_keys * sizeof *values);
        point_config[row * t->n_columns + column] = r->entries[entries[i]].config;
    }
    if (fill_points(w, t, point_config) < 0 || hg_build_notes(b, t) < 0)
        goto out;
    hg_build_decimals(t);
    if (hg_build_series(r, t) < 0 || hg_build_best(b, t) < 0 || hg_build_laws(r, t) < 0 ||
        hg_build_traffic(b, t) < 0 || hg_build_cost_listing(b, t) < 0)
        goto out;
    rc = 0;
out:
    free(point_config);
    free(values);
    tuples_done(&rows);
    tuples_done(&columns);
    return rc;
}

/* ---- All tables ---- */

/* Entries shown, by the table they belong to: real ones first, then by the values of the split keys.
 */
static int split_entries(struct hg_build *b, struct tuples *tables, size_t *of_entry)
{
    struct hg_report *r = b->r;
    uint32_t *values = malloc((r->n_split_keys + 1) * sizeof *values);
    int rc = values ? 0 : -1;

    for (int pass = 0; pass < 2 && rc == 0; pass++) {
        for (size_t i = 0; i < r->n_entries && rc == 0; i++) {
            if (!r->entries[i].shown)
                continue;
            values[0] = r->entries[i].rehearsal; /* as a value: 0 sorts first */
            take_values(r, i, r->split_keys, r->n_split_keys, values + 1);
            if (pass == 0)
                rc = put_tuple(tables, values) == HG_MAP_NONE ? -1 : 0;
            else
                of_entry[i] = hg_map_find(&tables->index, values, tables->width * sizeof *values);
        }
        if (pass == 0 && rc == 0)
            rc = sort_tuples(tables);
    }
    free(values);
    return rc;
}

static int start_table(struct hg_report *r, const uint32_t *key)
{
    struct hg_table *t = HG_VEC_PUSH(&r->tables);

    if (!t)
        return -1;
    *t = (struct hg_table){ .rehearsal = key[0] != 0 };
    t->split = calloc(r->n_split_keys + 1, sizeof *t->split);
    if (!t->split)
        return -1;
    memcpy(t->split, key + 1, r->n_split_keys * sizeof *t->split);
    return 0;
}

static void name_device(const struct hg_report *r, struct hg_table *t, const size_t *entries,
                        size_t n)
{
    for (size_t i = 0; i < n && !t->device && t->rehearsal; i++)
        t->device = r->entries[entries[i]].result->device;
}

static int make_tables(struct work *w)
{
    struct hg_report *r = w->b->r;
    struct tuples tables = { .frame = &r->frame, .width = r->n_split_keys + 1 };
    size_t *of_entry = malloc((r->n_entries + 1) * sizeof *of_entry);
    size_t *begin = NULL, *sorted = malloc((r->n_entries + 1) * sizeof *sorted);
    int rc = -1;

    if (!of_entry || !sorted || split_entries(w->b, &tables, of_entry) < 0)
        goto out;
    begin = calloc(tables.n + 2, sizeof *begin);
    if (!begin)
        goto out;
    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].shown)
            begin[of_entry[i] + 2]++;
    for (size_t t = 2; t < tables.n + 2; t++)
        begin[t] += begin[t - 1];
    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].shown)
            sorted[begin[of_entry[i] + 1]++] = i;
    for (size_t t = 0; t < tables.n; t++) {
        size_t n = begin[t + 1] - begin[t];

        if (start_table(r, tables.values + t * tables.width) < 0)
            goto out;
        name_device(r, &r->tables.items[t], sorted + begin[t], n);
        if (fill_table(w, &r->tables.items[t], sorted + begin[t], n) < 0)
            goto out;
    }
    rc = 0;
out:
    tuples_done(&tables);
    free(begin);
    free(sorted);
    free(of_entry);
    return rc;
}

static int compare_counts(const void *pa, const void *pb)
{
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;

    return (a > b) - (a < b);
}

/* Runs in most places, so that only the others need saying; the larger of two equally frequent. */
static int count_repeats(struct hg_build *b)
{
    size_t *counts = calloc(b->configs.n + 1, sizeof *counts), n = 0, best = 0, times = 0;

    if (!counts)
        return -1;
    for (size_t c = 0; c < b->configs.n; c++) {
        const struct hg_config *config = &b->configs.items[c];

        for (size_t i = 0; i < config->n_entries; i++)
            counts[n] += b->r->entries[b->config_entries[config->begin + i]].shown;
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
    return 0;
}

int hg_build_tables(struct hg_build *b)
{
    struct hg_report *r = b->r;
    size_t n_keys = r->frame.keys.n + 1, largest = 1;
    struct keys rows = { .items = calloc(n_keys, sizeof(size_t)) };
    struct keys columns = { .items = calloc(n_keys, sizeof(size_t)) };
    struct keys groups = { .items = calloc(n_keys, sizeof(size_t)) };
    struct work w = { .b = b };
    int rc = -1;

    r->row_keys = rows.items;
    r->column_keys = columns.items;
    r->split_keys = groups.items;
    r->same_keys = calloc(n_keys, sizeof *r->same_keys);
    if (!rows.items || !columns.items || !r->split_keys || !r->same_keys)
        return hg_err_oom(hg_errs_next(b->errs));
    if (settle_keys(b, &rows, &columns, &groups) < 0)
        return -1;
    r->n_row_keys = rows.n;
    r->n_column_keys = columns.n;
    r->n_split_keys = groups.n;
    for (size_t c = 0; c < b->configs.n; c++)
        if (b->configs.items[c].n_entries > largest)
            largest = b->configs.items[c].n_entries;
    w.mine = malloc(largest * sizeof *w.mine);
    w.base = malloc(largest * sizeof *w.base);
    if (w.mine && w.base && count_repeats(b) == 0 && find_split_keys(b) == 0 &&
        make_tables(&w) == 0 && hg_build_spent(b) == 0)
        rc = 0;
    free(w.mine);
    free(w.base);
    return rc < 0 ? hg_err_oom(hg_errs_next(b->errs)) : 0;
}
