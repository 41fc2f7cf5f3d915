/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/best.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/map.h"
#include "analysis/comparable.h"
#include "analysis/figures.h"
#include "analysis/groups.h"
#include "analysis/places.h"

/* A verdict; if every case has it, it becomes one note. */
#define UNSURE "unsure"

/* The keys of rows and columns, as those that make the case and those that make its variants. */
struct sides {
    const struct hg_report *r;
    const struct hg_table *t;
    bool *variant; /* by key of rows, then of columns */
    size_t n_keys;
};

static size_t key_of(const struct sides *s, size_t i)
{
    return i < s->r->n_row_keys ? s->r->row_keys[i] : s->r->column_keys[i - s->r->n_row_keys];
}

static uint32_t value_of(const struct sides *s, size_t point, size_t i)
{
    size_t rows = s->r->n_row_keys, columns = s->r->n_column_keys;

    return i < rows ? s->t->rows[point / s->t->n_columns * rows + i]
                    : s->t->columns[point % s->t->n_columns * columns + i - rows];
}

/* The variants of a case are its strategies; without strategies the columns, unless these are a number of devices. */
static bool find_variants(struct sides *s)
{
    const struct hg_frame *f = &s->r->frame;
    bool found = false;

    for (size_t i = 0; i < s->n_keys; i++) {
        s->variant[i] = strcmp(f->keys.items[key_of(s, i)].name, "strategy") == 0;
        found = found || s->variant[i];
    }
    if (found)
        return true;
    for (size_t i = s->r->n_row_keys; i < s->n_keys; i++) {
        if (f->keys.items[key_of(s, i)].flags & HG_KEY_SHAPE)
            return false;
        s->variant[i] = found = true;
    }
    return found;
}

static void variant_text(const struct sides *s, size_t point, struct hg_buf *out)
{
    hg_buf_clear(out);
    for (size_t i = 0; i < s->n_keys; i++) {
        uint32_t value = value_of(s, point, i);

        if (!s->variant[i])
            continue;
        hg_buf_printf(out, "%s", out->len ? " " : "");
        if (!value || s->r->frame.values.items[value].is_number)
            hg_buf_printf(out, "%s%s", value ? "" : "no ",
                          s->r->frame.keys.items[key_of(s, i)].name);
        hg_buf_printf(out, "%s%s", value && s->r->frame.values.items[value].is_number ? "=" : "",
                      value ? hg_report_text(s->r, value) : "");
    }
}

/* ---- One case ---- */

struct ranked {
    struct hg_builder *b;
    const struct sides *sides;
    size_t *points, n; /* of one case, best first */
    int decimals;      /* of the table's values */
};

static int compare_points(const void *pa, const void *pb, void *context)
{
    const struct sides *s = context;
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    double x = s->t->points[a].value.value, y = s->t->points[b].value.value;

    if (x == y)
        return (a > b) - (a < b);
    return (x < y) == s->r->higher_is_better ? 1 : -1;
}

static bool overlap(const struct hg_estimate *a, const struct hg_estimate *b)
{
    return a->low <= b->high && b->low <= a->high;
}

static const struct hg_result *result_of(const struct ranked *c, size_t i)
{
    return hg_builder_first(c->b,
                            hg_builder_configuration(c->b, &c->sides->t->points[c->points[i]]));
}

static void append_variant(const struct ranked *c, size_t i, const char *before, struct hg_buf *out)
{
    struct hg_buf name = HG_BUF_INIT;

    variant_text(c->sides, c->points[i], &name);
    hg_buf_printf(out, "%s%s", before, hg_buf_str(&name));
    hg_buf_done(&name);
}

/* Variants may differ in what makes them variants. */
static bool is_variant_key(const void *context, const char *key)
{
    const struct sides *s = context;

    for (size_t i = 0; i < s->n_keys; i++)
        if (s->variant[i] && strcmp(s->r->frame.keys.items[key_of(s, i)].name, key) == 0)
            return true;
    return false;
}

static bool is_comparable(const struct ranked *c, size_t i)
{
    return hg_comparable_is_like(result_of(c, 0), result_of(c, i), is_variant_key, c->sides);
}

/* Does a run of the best variant contradict itself, or measure something else than its case? */
static bool is_doubtful(const struct ranked *c)
{
    const struct hg_configuration *best =
        hg_builder_configuration(c->b, &c->sides->t->points[c->points[0]]);

    for (size_t i = 0; i < best->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(c->b, best, i);

        if (!e->state && (e->result->doubts || e->result->diverged || e->result->suspended))
            return true;
    }
    return false;
}

/* Does its interval tell the best variant from the others? */
static void judge(const struct ranked *c, struct hg_buf *out)
{
    const struct hg_estimate *best = &c->sides->t->points[c->points[0]].value;
    struct hg_buf close = HG_BUF_INIT, other_work = HG_BUF_INIT;
    bool unsure = !best->has_interval, only_next = true;
    size_t compared = 0;

    for (size_t i = 1; i < c->n; i++) {
        const struct hg_estimate *e = &c->sides->t->points[c->points[i]].value;

        if (!is_comparable(c, i)) {
            append_variant(c, i, other_work.len ? ", " : "", &other_work);
            continue;
        }
        compared++;
        if (!e->has_interval)
            unsure = true;
        else if (best->has_interval && overlap(best, e)) {
            append_variant(c, i, close.len ? ", " : "", &close);
            only_next = i == 1;
        }
    }
    if (close.len && only_next) /* whose name stands two columns before */
        hg_buf_puts(out, "not distinguishable");
    else if (close.len)
        hg_buf_printf(out, "not distinguishable from %s", hg_buf_str(&close));
    else if (compared)
        hg_buf_puts(out, unsure           ? UNSURE
                         : is_doubtful(c) ? "in doubt: see its footnotes"
                                          : "clear");
    if (other_work.len)
        hg_buf_printf(out, "%snot comparable: %s", compared ? "; " : "", hg_buf_str(&other_work));
    hg_buf_done(&close);
    hg_buf_done(&other_work);
}

static void list_case(const struct ranked *c, struct hg_listing *l)
{
    const struct sides *s = c->sides;
    const struct hg_point *best = &s->t->points[c->points[0]], *next = &s->t->points[c->points[1]];
    double ratio = s->r->higher_is_better ? best->value.value / next->value.value
                                          : next->value.value / best->value.value;
    struct hg_buf text = HG_BUF_INIT;

    for (size_t i = 0; i < s->n_keys; i++)
        if (!s->variant[i])
            hg_place_value(s->r, l, value_of(s, c->points[0], i));
    variant_text(s, c->points[0], &text);
    hg_listing_text(l, hg_buf_str(&text));
    hg_place_metric(s->r, l, best->value.value, c->decimals);
    variant_text(s, c->points[1], &text);
    hg_listing_text(l, hg_buf_str(&text));
    hg_listing_number(l, ratio, 3);
    hg_buf_clear(&text);
    judge(c, &text);
    hg_listing_text(l, hg_buf_str(&text));
    hg_buf_done(&text);
}

/* A last column that says "unsure" in every line becomes a note. */
static void fold_verdicts(struct hg_listing *l)
{
    size_t rows = hg_listing_rows(l), columns = l->columns.n, unsure = 0, kept = 0;

    for (size_t row = 0; row < rows; row++)
        unsure += strcmp(hg_listing_datum(l, row, columns - 1)->text, UNSURE) == 0;
    if (unsure == 0)
        return;
    hg_listing_note(l, unsure == rows
                           ? "unsure, with fewer than 3 runs: the differences may be chance"
                           : "unsure: fewer than 3 runs");
    for (size_t i = 0; i < rows * columns && unsure == rows; i++) {
        if (i % columns == columns - 1)
            free(l->data.items[i].text);
        else
            l->data.items[kept++] = l->data.items[i];
    }
    if (unsure < rows)
        return;
    l->data.n = kept;
    l->columns.n--;
    free(l->columns.items[columns - 1].name);
    free(l->columns.items[columns - 1].title);
}

static void head(const struct sides *s, struct hg_listing *l)
{
    for (size_t i = 0; i < s->n_keys; i++)
        if (!s->variant[i]) {
            const char *name = s->r->frame.keys.items[key_of(s, i)].name;

            hg_listing_column(l, name, name, false);
        }
    l->n_keys = l->columns.n;
    hg_listing_column(l, "best", "best", true);
    hg_listing_column(l, "value", s->r->metric, false);
    hg_listing_column(l, "next", "next", true);
    hg_listing_column(l, "times_better", "ratio", false);
    hg_listing_column(l, "verdict", "verdict", true);
}

/* ---- All cases ---- */

/* Number the cases; of_point: HG_MAP_NONE for places without a figure. Returns how many. */
static size_t number_cases(const struct sides *s, size_t *of_point)
{
    struct {
        double devices; /* more devices make another case, not a better variant */
        uint32_t values[];
    } *key = hg_alloc_zeroed(1, sizeof *key + s->n_keys * sizeof *key->values);
    size_t size = sizeof *key + s->n_keys * sizeof *key->values;
    struct hg_map cases = HG_MAP_INIT;
    size_t n = s->t->n_rows * s->t->n_columns, count;

    for (size_t i = 0; i < n; i++) {
        const struct hg_point *p = &s->t->points[i];

        of_point[i] = HG_MAP_NONE;
        if (p->n == 0 || p->oversubscribed || p->alone)
            continue;
        for (size_t k = 0; k < s->n_keys; k++)
            key->values[k] = s->variant[k] ? 0 : value_of(s, i, k);
        key->devices = isnan(p->devices) ? 0 : p->devices;
        of_point[i] = hg_map_put(&cases, key, size, cases.n);
    }
    count = cases.n;
    hg_map_done(&cases);
    free(key);
    return count;
}

static char *title_of(const struct sides *s)
{
    struct hg_buf title = HG_BUF_INIT;

    hg_buf_puts(&title, "best");
    for (size_t i = 0; i < s->n_keys; i++)
        if (s->variant[i])
            hg_buf_printf(&title, " %s", s->r->frame.keys.items[key_of(s, i)].name);
    hg_buf_puts(&title, " per case");
    return hg_buf_detach(&title);
}

/* c: without points yet; points: those of all cases, case by case from begin[case] on. */
static void list_all(struct ranked *c, size_t *points, const size_t *begin, size_t count,
                     struct hg_listings *listings)
{
    struct hg_listing *l = NULL;

    for (size_t i = 0; i < count; i++) {
        c->points = points + begin[i];
        c->n = begin[i + 1] - begin[i];
        if (c->n < 2)
            continue;
        qsort_r(c->points, c->n, sizeof *c->points, compare_points, (void *)c->sides);
        if (!l) {
            char *title = title_of(c->sides);

            l = hg_listing_add(listings, "best", title);
            free(title);
            head(c->sides, l);
        }
        list_case(c, l);
    }
    if (l)
        fold_verdicts(l);
}

static void list_cases(struct hg_builder *b, const struct sides *s, struct hg_listings *listings)
{
    size_t n = s->t->n_rows * s->t->n_columns, *of_point = hg_alloc((n + 1) * sizeof *of_point);
    size_t *points = hg_alloc((n + 1) * sizeof *points);
    size_t *begin = hg_alloc_zeroed(n + 2, sizeof *begin);
    size_t count = number_cases(s, of_point);
    struct ranked c = { .b = b,
                        .sides = s,
                        .decimals = hg_section_decimals(s->t, HG_SECTION_VALUE) };

    hg_groups_sort(of_point, n, count, begin, points);
    list_all(&c, points, begin, count, listings);
    free(points);
    free(begin);
    free(of_point);
}

void hg_best_list(struct hg_builder *b, struct hg_table *t)
{
    struct sides s = { .r = b->r, .t = t, .n_keys = b->r->n_row_keys + b->r->n_column_keys };

    if (!b->r->has_direction || b->options->against_first)
        return;
    s.variant = hg_alloc_zeroed(s.n_keys + 1, sizeof *s.variant);
    if (find_variants(&s))
        list_cases(b, &s, &t->listings);
    free(s.variant);
}
