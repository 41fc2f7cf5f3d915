/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "analysis/tuples.h"

/* ---- Which keys are rows and columns ---- */

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

/* set: the one whose report requests them; NULL: an option does. */
static int read_keys(struct hg_builder *b, const char *what, char **names,
                     const struct hg_results *set, struct keys *keys)
{
    int rc = 0;

    keys->given = names != NULL;
    for (size_t i = 0; names && names[i]; i++) {
        char pointer[64];
        size_t key;

        snprintf(pointer, sizeof pointer, "/report/%s/%zu", what, i);
        key = hg_builder_key(b, what, names[i], set, pointer);
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

/* Shape keys that vary. A tasks_per_node that follows gpus_per_node adds nothing. */
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
static void choose_variant(const struct hg_builder *b, const struct keys *taken,
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

/* Distinct combinations of these keys among the cells shown. */
static size_t count_combinations(const struct hg_report *r, const struct keys *keys)
{
    uint32_t *values = hg_alloc((keys->n + 1) * sizeof *values);
    struct hg_tuples seen = { .frame = &r->frame, .width = keys->n };
    size_t n;

    for (size_t i = 0; i < r->n_entries; i++) {
        if (!r->entries[i].shown)
            continue;
        hg_keys_take(r, i, keys->items, keys->n, values);
        hg_tuples_put(&seen, values);
    }
    n = seen.n;
    hg_tuples_done(&seen);
    free(values);
    return n;
}

/* The keys that tell cells apart, less those that only follow from the others. */
static void choose_telling(struct hg_builder *b, const struct keys *taken, struct keys *keys)
{
    const struct hg_report *r = b->r;
    size_t all;

    for (size_t k = 0; k < r->frame.keys.n; k++)
        if (!b->masked[k] && !has_key(taken, k) && varies(r, k))
            keys->items[keys->n++] = k;
    all = count_combinations(r, keys);
    for (size_t i = keys->n; i-- > 0;) {
        size_t key = keys->items[i], n;

        memmove(keys->items + i, keys->items + i + 1, (--keys->n - i) * sizeof *keys->items);
        n = count_combinations(r, keys);
        if (n == all)
            continue;
        memmove(keys->items + i + 1, keys->items + i, (keys->n++ - i) * sizeof *keys->items);
        keys->items[i] = key;
    }
}

/* Keys of `group`, whose values give a table each: as requested, else those of the first set that has some. */
static int read_groups(struct hg_builder *b, struct keys *groups)
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

/* A key has one place only. */
static int check_twice(struct hg_builder *b, const struct keys *a, const struct keys *others,
                       const char *what)
{
    for (size_t i = 0; i < a->n; i++)
        if (has_key(others, a->items[i]))
            return hg_err_set(hg_errs_next(b->errs), HG_E_INPUT, "\"%s\" is both %s",
                              b->r->frame.keys.items[a->items[i]].name, what);
    return 0;
}

static int settle_keys(struct hg_builder *b, struct keys *rows, struct keys *columns,
                       struct keys *groups)
{
    struct hg_report *r = b->r;
    char **row_names = b->options->rows, **column_names = b->options->columns;
    const struct hg_results *row_set = NULL, *column_set = NULL;

    if (b->options->against_first) {
        columns->items[columns->n++] = hg_frame_find_key(&r->frame, r->source_key);
        choose_telling(b, columns, rows);
        return 0;
    }
    /* An option for rows or columns overrides a set's own choice of both. */
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

/* ---- Which keys split a report into tables ---- */

void hg_keys_take(const struct hg_report *r, size_t entry, const size_t *keys, size_t n,
                  uint32_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = hg_frame_row(&r->frame, entry)[keys[i]];
}

/* Keys that are shown already (rows, columns, groups), and those that are masked. */
static void mark_taken(const struct hg_builder *b, bool *taken)
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
static void mark_split(const struct hg_report *r, const bool *taken, bool *split)
{
    size_t n_place = r->n_row_keys + r->n_column_keys;
    uint32_t *place = hg_alloc((n_place + 1) * sizeof *place);
    struct hg_map places = HG_MAP_INIT;

    for (size_t i = 0; i < r->n_entries; i++) {
        size_t first;

        if (!r->entries[i].shown)
            continue;
        hg_keys_take(r, i, r->row_keys, r->n_row_keys, place);
        hg_keys_take(r, i, r->column_keys, r->n_column_keys, place + r->n_row_keys);
        first = hg_map_put(&places, place, n_place * sizeof *place, i);
        for (size_t k = 0; k < r->frame.keys.n; k++)
            split[k] = split[k] || (!taken[k] && hg_frame_row(&r->frame, i)[k] !=
                                                     hg_frame_row(&r->frame, first)[k]);
    }
    hg_map_done(&places);
    free(place);
}

/* Keys besides rows, columns and groups that differ between cells of one place. */
static void find_split_keys(struct hg_builder *b)
{
    struct hg_report *r = b->r;
    size_t n_keys = r->frame.keys.n;
    bool *taken = hg_alloc_zeroed(n_keys + 1, sizeof *taken),
         *split = hg_alloc_zeroed(n_keys + 1, sizeof *split);

    mark_taken(b, taken);
    mark_split(r, taken, split);
    for (size_t k = 0; k < n_keys; k++) {
        if (split[k])
            r->split_keys[r->n_split_keys++] = k;
        else if (!taken[k] && !varies(r, k))
            r->same_keys[r->n_same_keys++] = k;
    }
    free(split);
    free(taken);
}

int hg_keys_choose(struct hg_builder *b)
{
    struct hg_report *r = b->r;
    size_t n_keys = r->frame.keys.n + 1;
    struct keys rows = { .items = hg_alloc_zeroed(n_keys, sizeof(size_t)) };
    struct keys columns = { .items = hg_alloc_zeroed(n_keys, sizeof(size_t)) };
    struct keys groups = { .items = hg_alloc_zeroed(n_keys, sizeof(size_t)) };

    r->row_keys = rows.items;
    r->column_keys = columns.items;
    r->split_keys = groups.items;
    r->same_keys = hg_alloc_zeroed(n_keys, sizeof *r->same_keys);
    if (settle_keys(b, &rows, &columns, &groups) < 0)
        return -1;
    r->n_row_keys = rows.n;
    r->n_column_keys = columns.n;
    r->n_split_keys = groups.n;
    find_split_keys(b);
    return 0;
}
