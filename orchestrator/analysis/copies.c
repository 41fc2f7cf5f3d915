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

/* Six digits do not repeat by chance among the runs of two places; two more for each ten times as many values. */
static bool is_copy(double a, double b, size_t among)
{
    double unit = pow(10, floor(log10(a)) - 4 - ceil(2 * log10((double)among)));
    double units = a / unit;

    return a == b && fabs(units - round(units)) > 1e-6 + 4 * DBL_EPSILON * units;
}

bool hg_copies_within(const struct hg_builder *b, const struct hg_configuration *c)
{
    size_t n = hg_builder_values(b, c, b->room);

    qsort(b->room, n, sizeof *b->room, compare_doubles);
    for (size_t i = 1; i < n && b->r->kind != HG_METRIC_OTHER; i++)
        if (is_copy(b->room[i], b->room[i - 1], 1))
            return true;
    return false;
}

bool hg_copies_between(const struct hg_builder *b, const struct hg_configuration *c,
                       const struct hg_configuration *other)
{
    size_t n = hg_builder_values(b, c, b->room), m = hg_builder_values(b, other, b->room_base);

    qsort(b->room, n, sizeof *b->room, compare_doubles);
    qsort(b->room_base, m, sizeof *b->room_base, compare_doubles);
    for (size_t i = 0, j = 0; i < n && j < m && !b->options->against_first;) {
        if (is_copy(b->room[i], b->room_base[j], 1))
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
    if (all.n)
        qsort(all.items, all.n, sizeof *all.items, compare_seen);
    for (size_t i = 1; i < all.n; i++) {
        const struct seen *x = &all.items[i - 1], *y = &all.items[i];
        const struct hg_point *p = &t->points[x->point], *q = &t->points[y->point];

        if (x->set == y->set && p != q && !is_base_of(b, p, q) && !is_base_of(b, q, p) &&
            is_copy(x->value, y->value, all.n))
            found[x->point] = found[y->point] = true;
    }
    HG_VEC_DONE(&all);
    return found;
}
