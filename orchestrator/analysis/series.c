/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"
#include "analysis/figures.h"
#include "analysis/groups.h"
#include "analysis/labels.h"
#include "analysis/laws.h"
#include "analysis/places.h"

/* Fewest points with p > 1 that are called a curve. */
#define POINTS_MIN 3

/* ---- One series ---- */

static int compare_by_p(const void *pa, const void *pb, void *context)
{
    const struct hg_table *t = context;
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    double p = t->points[a].p, q = t->points[b].p;

    return p != q ? (p < q ? -1 : 1) : (a > b) - (a < b);
}

static enum hg_scaling_kind kind_of(const struct hg_table *t, const struct hg_series *s)
{
    enum hg_scaling_kind kind = HG_SCALING_UNKNOWN;

    for (size_t i = 0; i < s->n_points; i++) {
        const struct hg_point *p = &t->points[s->points[i]];
        enum hg_scaling_kind own = hg_scaling_kind_of(p->work, p->p);

        if (i && own != kind)
            return HG_SCALING_NEITHER;
        kind = own;
    }
    return kind;
}

static void see_ends(const struct hg_table *t, struct hg_series *s)
{
    const struct hg_point *first = &t->points[s->points[0]],
                          *last = &t->points[s->points[s->n_points - 1]];

    s->first_p = first->p;
    s->first_karp_flatt = first->karp_flatt;
    s->last_p = last->p;
    s->last_karp_flatt = last->karp_flatt;
}

static void add_series(struct hg_builder *b, struct hg_table *t, const char *label,
                       const size_t *points, size_t n)
{
    struct hg_series *s = HG_VEC_PUSH(&t->series);

    *s = (struct hg_series){ .n_points = n, .label = hg_strdup(label) };
    s->points = hg_alloc((n + 1) * sizeof *s->points);
    memcpy(s->points, points, n * sizeof *points);
    qsort_r(s->points, n, sizeof *s->points, compare_by_p, t);
    s->kind = kind_of(t, s);
    see_ends(t, s);
    hg_laws_of_series(b, t, s);
}

/* ---- All of them ---- */

static bool is_on_a_curve(const struct hg_point *p)
{
    return p->p > 1 && !isnan(p->speedup.value) && !p->oversubscribed && !p->unlike;
}

/* Number the labels of the points; of_point: HG_MAP_NONE for those on no curve. */
static void label_points(const struct hg_report *r, const struct hg_table *t, struct hg_map *labels,
                         size_t *of_point)
{
    struct hg_buf label = HG_BUF_INIT;

    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        of_point[i] = HG_MAP_NONE;
        if (!is_on_a_curve(&t->points[i]))
            continue;
        hg_point_label(r, t, i, HG_LABEL_SERIES, &label);
        of_point[i] = hg_map_put(labels, hg_buf_str(&label), label.len, labels->n);
    }
    hg_buf_done(&label);
}

void hg_series_fit(struct hg_builder *b, struct hg_table *t)
{
    const struct hg_report *r = b->r;
    size_t n = t->n_rows * t->n_columns, *of_point = hg_alloc((n + 1) * sizeof *of_point);
    size_t *points = hg_alloc((n + 1) * sizeof *points);
    size_t *begin = hg_alloc_zeroed(n + 2, sizeof *begin);
    struct hg_map labels = HG_MAP_INIT;
    struct hg_buf label = HG_BUF_INIT;

    for (size_t i = 0; i < n; i++)
        t->weak = t->weak || t->points[i].weak;
    label_points(r, t, &labels, of_point);
    hg_groups_sort(of_point, n, labels.n, begin, points);
    for (size_t s = 0; s < labels.n; s++) {
        size_t n_members = begin[s + 1] - begin[s];

        if (n_members < POINTS_MIN)
            continue;
        hg_point_label(r, t, points[begin[s]], HG_LABEL_SERIES, &label);
        add_series(b, t, hg_buf_str(&label), points + begin[s], n_members);
    }
    hg_buf_done(&label);
    hg_map_done(&labels);
    free(points);
    free(begin);
    free(of_point);
}

/* ---- The listings ---- */

static const char *kind_text(const struct hg_series *s)
{
    return s->kind == HG_SCALING_UNKNOWN   ? "strong (assumed)"
           : s->kind == HG_SCALING_NEITHER ? "neither: no fit"
                                           : hg_scaling_kind_words[s->kind];
}

static void list_curves(const struct hg_table *t, struct hg_listing *l)
{
    hg_listing_column(l, "series", "", true);
    hg_listing_column(l, "kind", "scaling", true);
    hg_listing_column(l, "points", "points", false);
    hg_listing_column(l, "first_devices_ratio", "p, first", false);
    hg_listing_column(l, "last_devices_ratio", "last", false);
    hg_listing_column(l, "first_serial_fraction", "serial fraction, first", false);
    hg_listing_column(l, "last_serial_fraction", "last", false);
    for (size_t i = 0; i < t->series.n; i++) {
        const struct hg_series *s = &t->series.items[i];

        hg_listing_text(l, s->label);
        hg_listing_text(l, kind_text(s));
        hg_listing_number(l, (double)s->n_points, 0);
        hg_listing_number(l, s->first_p, 0);
        hg_listing_number(l, s->last_p, 0);
        hg_listing_number(l, s->first_karp_flatt, 3);
        hg_listing_number(l, s->last_karp_flatt, 3);
    }
    hg_listing_note(l, "p: devices in units of the baseline's; serial fraction: Karp-Flatt");
    hg_laws_note_withheld(t, l);
}

void hg_series_list(const struct hg_report *r, struct hg_table *t)
{
    if (t->series.n == 0)
        return;
    list_curves(t, hg_listing_add(&t->listings, "scaling", "scaling curves"));
    hg_laws_list(r, t);
}
