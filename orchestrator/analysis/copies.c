/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/copies.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/vec.h"

/* A value of a point. */
struct seen {
    double value;
    size_t set, point;
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static int compare_seen(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    int order = compare_doubles(&x->value, &y->value);

    return order ? order : (x->set > y->set) - (x->set < y->set);
}

/* Is the last digit of a value below this unit, a power of ten? */
static bool is_finer(double value, double unit)
{
    double units = value / unit;

    return fabs(units - round(units)) > 1e-6 + 4 * DBL_EPSILON * units;
}

/* Six digits do not repeat by chance, if they are a hundred times as fine as n values that lie in this range are apart, in pairs. */
static bool is_copy(double a, double b, double range, size_t n)
{
    double unit = pow(10, floor(log10(a)) - 4), pairs = (double)n * (double)n;

    if (range > 0)
        unit = fmin(unit, pow(10, floor(log10(range / pairs / 100))));
    return a == b && is_finer(a, unit);
}

bool hg_copies_within(const struct hg_builder *b, const struct hg_configuration *c)
{
    size_t n = hg_builder_values(b, c, b->room);

    qsort(b->room, n, sizeof *b->room, compare_doubles);
    for (size_t i = 1; i < n && b->r->kind != HG_METRIC_OTHER; i++)
        if (is_copy(b->room[i], b->room[i - 1], b->room[n - 1] - b->room[0], n))
            return true;
    return false;
}

bool hg_copies_between(const struct hg_builder *b, const struct hg_configuration *c,
                       const struct hg_configuration *other)
{
    size_t n = hg_builder_values(b, c, b->room), m = hg_builder_values(b, other, b->room_base);
    double range;

    qsort(b->room, n, sizeof *b->room, compare_doubles);
    qsort(b->room_base, m, sizeof *b->room_base, compare_doubles);
    range = fmax(b->room[n - 1], b->room_base[m - 1]) - fmin(b->room[0], b->room_base[0]);
    for (size_t i = 0, j = 0; i < n && j < m && !b->options->against_first;) {
        if (is_copy(b->room[i], b->room_base[j], range, n + m))
            return true;
        if (b->room[i] < b->room_base[j])
            i++;
        else
            j++;
    }
    return false;
}

static bool is_base_of(const struct hg_builder *b, const struct hg_point *p,
                       const struct hg_point *q)
{
    return b->configurations.items[p->config].base == q->config;
}

bool *hg_copies_of_places(const struct hg_builder *b, const struct hg_table *t)
{
    size_t n = t->n_rows * t->n_columns;
    double digits;
    bool *found = hg_alloc_zeroed(n + 1, sizeof *found);
    struct {
        struct seen *items;
        size_t n, cap;
    } all = { 0 };

    for (size_t i = 0; i < n && b->r->kind != HG_METRIC_OTHER; i++) {
        const struct hg_configuration *c = hg_builder_configuration(b, &t->points[i]);

        for (size_t j = 0; c && j < c->n_entries; j++) {
            const struct hg_report_entry *e = hg_builder_entry(b, c, j);

            if (!e->state)
                *HG_VEC_PUSH(&all) = (struct seen){ e->value, e->set, i };
        }
    }
    /* Two more digits for each ten times as many values. */
    digits = all.n ? ceil(2 * log10((double)all.n)) : 0;
    if (all.n)
        qsort(all.items, all.n, sizeof *all.items, compare_seen);
    for (size_t i = 1; i < all.n; i++) {
        const struct seen *x = &all.items[i - 1], *y = &all.items[i];
        const struct hg_point *p = &t->points[x->point], *q = &t->points[y->point];

        if (x->set == y->set && p != q && !is_base_of(b, p, q) && !is_base_of(b, q, p) &&
            x->value == y->value &&
            is_finer(x->value, pow(10, floor(log10(x->value)) - 4 - digits)))
            found[x->point] = found[y->point] = true;
    }
    HG_VEC_DONE(&all);
    return found;
}
