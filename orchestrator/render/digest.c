/* SPDX-License-Identifier: Apache-2.0 */
#include "render/digest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "analysis/labels.h"
#include "results/frame.h"

#define ROWS_MAX 20   /* lowest, highest, without a good result */
#define VALUES_MAX 30 /* of a key that has a line for each */
#define KEYS_MAX 12   /* columns of a listing */

struct value {
    char *text;
    bool word; /* a string */
};

struct key {
    char *name;
    struct hg_map index; /* its values by their text, to their place among these */
    struct {
        struct value *items;
        size_t n, cap;
    } values;
};

/* A cell is a run of pairs: key, value of that key. */
struct pair {
    uint32_t key, value;
};

struct hg_digest {
    struct hg_map key_index;
    struct {
        struct key *items;
        size_t n, cap;
    } keys;
    struct {
        struct pair *items;
        size_t n, cap;
    } pairs;
    struct {
        size_t *items;
        size_t n, cap;
    } begins; /* by row */
    struct hg_buf text;
};

struct hg_digest *hg_digest_create(void)
{
    return hg_alloc_zeroed(1, sizeof(struct hg_digest));
}

void hg_digest_free(struct hg_digest *d)
{
    if (!d)
        return;
    for (size_t k = 0; k < d->keys.n; k++) {
        struct key *key = &d->keys.items[k];

        for (size_t v = 0; v < key->values.n; v++)
            free(key->values.items[v].text);
        HG_VEC_DONE(&key->values);
        hg_map_done(&key->index);
        free(key->name);
    }
    HG_VEC_DONE(&d->keys);
    HG_VEC_DONE(&d->pairs);
    HG_VEC_DONE(&d->begins);
    hg_map_done(&d->key_index);
    hg_buf_done(&d->text);
    free(d);
}

double hg_digest_places(const struct hg_digest *d)
{
    double places = 1;

    for (size_t k = 0; k < d->keys.n; k++)
        if (strcmp(d->keys.items[k].name, "repeat") != 0)
            places *= (double)d->keys.items[k].values.n;
    return places;
}

static size_t find_key(struct hg_digest *d, const char *name)
{
    size_t n = d->keys.n, at = hg_map_put(&d->key_index, name, strlen(name), n);

    if (at == n)
        *HG_VEC_PUSH(&d->keys) = (struct key){ .name = hg_strdup(name) };
    return at;
}

static size_t find_value(struct hg_digest *d, struct key *key, const json_t *value)
{
    size_t n = key->values.n, at;

    hg_buf_clear(&d->text);
    if (json_is_string(value))
        hg_buf_puts(&d->text, json_string_value(value));
    else
        hg_json_dump(value, HG_JSON_COMPACT | HG_JSON_SORT, &d->text);
    at = hg_map_put(&key->index, hg_buf_str(&d->text), d->text.len, n);
    if (at == n)
        *HG_VEC_PUSH(&key->values) = (struct value){ .text = hg_strdup(hg_buf_str(&d->text)),
                                                     .word = json_is_string(value) };
    return at;
}

void hg_digest_add(struct hg_digest *d, const json_t *cell)
{
    const char *name;
    json_t *value;

    *HG_VEC_PUSH(&d->begins) = d->pairs.n;
    json_object_foreach((json_t *)cell, name, value) {
        size_t key;

        if (json_is_null(value) || hg_frame_key_flags(name) & HG_KEY_NOTE)
            continue;
        key = find_key(d, name);
        *HG_VEC_PUSH(&d->pairs) =
            (struct pair){ (uint32_t)key, (uint32_t)find_value(d, &d->keys.items[key], value) };
    }
}

/* The value of a key in a row; HG_MAP_NONE: it has none. */
static size_t value_of(const struct hg_digest *d, size_t row, size_t key)
{
    size_t end = row + 1 < d->begins.n ? d->begins.items[row + 1] : d->pairs.n;

    for (size_t i = d->begins.items[row]; i < end; i++)
        if (d->pairs.items[i].key == key)
            return d->pairs.items[i].value;
    return HG_MAP_NONE;
}

/* ---- Listings ---- */

static void put_figure(const struct hg_report *r, double v, struct hg_listing *l)
{
    if (isnan(v))
        hg_listing_none(l);
    else if (r->kind == HG_METRIC_TIME)
        hg_listing_seconds(l, v, 2);
    else
        hg_listing_number(l, v, fabs(v) >= 100 ? 1 : 4);
}

static bool varies(const struct key *key)
{
    return key->values.n > 1;
}

/* One line for each of these cells: its members that vary, then the figure or why there is none. */
static void list_cells(const struct hg_digest *d, const struct hg_digest_cell *cells, size_t n,
                       const char *name, const char *title, struct hg_report *r)
{
    struct hg_listing *l = hg_listing_add(&r->listings, name, title);
    size_t keys[KEYS_MAX], n_keys = 0;

    for (size_t k = 0; k < d->keys.n && n_keys < KEYS_MAX; k++)
        if (varies(&d->keys.items[k])) {
            hg_listing_column(l, d->keys.items[k].name, d->keys.items[k].name, true);
            keys[n_keys++] = k;
        }
    l->n_keys = n_keys;
    hg_listing_column(l, cells[0].state ? "status" : "value", cells[0].state ? "status" : r->metric,
                      cells[0].state != NULL);
    for (size_t i = 0; i < n && i < ROWS_MAX; i++) {
        for (size_t k = 0; k < n_keys; k++) {
            size_t value = value_of(d, cells[i].row, keys[k]);

            hg_listing_text(
                l, value == HG_MAP_NONE ? "–" : d->keys.items[keys[k]].values.items[value].text);
        }
        if (cells[i].state)
            hg_listing_text(l, cells[i].state);
        else
            put_figure(r, cells[i].value, l);
    }
    if (n > ROWS_MAX) {
        char *more = hg_str_printf("the first %d of %zu", ROWS_MAX, n);

        hg_listing_note(l, more);
        free(more);
    }
}

/* Good ones by size, then the others; what is equal stays in the order of the set. */
static int compare_cells(const void *pa, const void *pb)
{
    const struct hg_digest_cell *a = pa, *b = pb;

    if (!a->state != !b->state)
        return a->state ? 1 : -1;
    if (!a->state && a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* Numbers by size, then words as they appeared. */
static int compare_values(const void *pa, const void *pb, void *values)
{
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    const struct value *va = (const struct value *)values + a,
                       *vb = (const struct value *)values + b;

    if (va->word != vb->word)
        return va->word ? 1 : -1;
    if (!va->word && strtod(va->text, NULL) != strtod(vb->text, NULL))
        return strtod(va->text, NULL) < strtod(vb->text, NULL) ? -1 : 1;
    return (a > b) - (a < b);
}

/* Cells of one value of a key: how many, and the figures of the good ones. */
struct group {
    size_t all, good, begin;
};

static void list_value(const struct key *key, size_t value, const struct group *g, const double *v,
                       struct hg_report *r, struct hg_listing *l)
{
    hg_listing_text(l, key->name);
    hg_listing_text(l, key->values.items[value].text);
    hg_listing_number(l, (double)g->all, 0);
    hg_listing_number(l, (double)g->good, 0);
    v += g->begin;
    put_figure(r, g->good ? v[0] : NAN, l);
    put_figure(r, g->good ? (v[(g->good - 1) / 2] + v[g->good / 2]) / 2 : NAN, l);
    put_figure(r, g->good ? v[g->good - 1] : NAN, l);
}

/* Cells are sorted by their figures: so are those of each value. */
static void list_key(const struct hg_digest *d, size_t k, const struct hg_digest_cell *cells,
                     size_t n, struct hg_report *r, struct hg_listing *l)
{
    struct key *key = &d->keys.items[k];
    size_t order[VALUES_MAX], at[VALUES_MAX], value, begin = 0;
    struct group groups[VALUES_MAX] = { 0 };
    double *v = hg_alloc((n + 1) * sizeof *v);

    for (size_t i = 0; i < n; i++)
        if ((value = value_of(d, cells[i].row, k)) != HG_MAP_NONE) {
            groups[value].all++;
            groups[value].good += !cells[i].state;
        }
    for (size_t i = 0; i < key->values.n; begin += groups[i++].good)
        at[i] = groups[i].begin = begin;
    for (size_t i = 0; i < n && !cells[i].state; i++)
        if ((value = value_of(d, cells[i].row, k)) != HG_MAP_NONE)
            v[at[value]++] = cells[i].value;
    for (size_t i = 0; i < key->values.n; i++)
        order[i] = i;
    qsort_r(order, key->values.n, sizeof *order, compare_values, key->values.items);
    for (size_t i = 0; i < key->values.n; i++)
        list_value(key, order[i], &groups[order[i]], v, r, l);
    free(v);
}

/* What this is instead of, and how to see the rest. */
static void note_part(const struct hg_digest *d, size_t n, struct hg_listing *l)
{
    struct hg_buf text = HG_BUF_INIT;

    hg_buf_printf(&text,
                  "%zu cells are too many for tables: this is a part. Every result: --format csv; "
                  "tables of some: --where; of all, with about %zu MB of memory: --rows KEYS",
                  n, n / 1000 * 4);
    hg_listing_note(l, hg_buf_str(&text));
    hg_buf_clear(&text);
    for (size_t k = 0; k < d->keys.n; k++)
        if (!varies(&d->keys.items[k])) {
            hg_buf_puts(&text, text.len ? " " : "all cells: ");
            hg_member_append(d->keys.items[k].name, d->keys.items[k].values.items[0].text, &text);
        }
    if (text.len)
        hg_listing_note(l, hg_buf_str(&text));
    hg_buf_done(&text);
}

static void list_keys(const struct hg_digest *d, const struct hg_digest_cell *cells, size_t n,
                      struct hg_report *r)
{
    char *title = hg_str_printf("digest of %zu cells: %s by the values of each key", n, r->metric);
    struct hg_listing *l = hg_listing_add(&r->listings, "by_key", title);

    free(title);
    hg_listing_column(l, "key", "key", true);
    hg_listing_column(l, "key_value", "value", true);
    l->n_keys = 2;
    hg_listing_column(l, "cells", "cells", false);
    hg_listing_column(l, "complete", "complete", false);
    hg_listing_column(l, "lowest", "lowest", false);
    hg_listing_column(l, "median", "median", false);
    hg_listing_column(l, "highest", "highest", false);
    for (size_t k = 0; k < d->keys.n; k++) {
        const struct key *key = &d->keys.items[k];

        if (key->values.n > VALUES_MAX) {
            char *text = hg_str_printf("%s has %zu values", key->name, key->values.n);

            hg_listing_note(l, text);
            free(text);
        } else if (varies(key)) {
            list_key(d, k, cells, n, r, l);
        }
    }
    note_part(d, n, l);
}

/* From the other end. */
static void reverse(struct hg_digest_cell *cells, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        struct hg_digest_cell one = cells[i];

        cells[i] = cells[n - 1 - i];
        cells[n - 1 - i] = one;
    }
}

void hg_digest_list(const struct hg_digest *d, struct hg_digest_cell *cells, size_t n,
                    struct hg_report *r)
{
    size_t good = 0;
    char *title;

    qsort(cells, n, sizeof *cells, compare_cells);
    while (good < n && !cells[good].state)
        good++;
    list_keys(d, cells, n, r);
    if (good) {
        title = hg_str_printf("lowest %s", r->metric);
        list_cells(d, cells, good, "lowest", title, r);
        free(title);
        reverse(cells, good);
        title = hg_str_printf("highest %s", r->metric);
        list_cells(d, cells, good, "highest", title, r);
        free(title);
    }
    if (good < n)
        list_cells(d, cells + good, n - good, "incomplete", "cells without a good result", r);
}
