/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"
#include "analysis/groups.h"
#include "analysis/labels.h"

/* The next step is so many times the devices of the last point. */
#define NEXT_STEP 2

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

/* The metric at the predicted speedup, in proportion to the last point's. */
static double predicted_value(const struct hg_report *r, const struct hg_point *last,
                              const struct hg_series *s)
{
    double gain = s->prediction.speedup.value / last->speedup.value;

    if (r->kind == HG_METRIC_RATE)
        return last->value.value * gain;
    if (s->kind == HG_SCALING_WEAK) /* more work, too */
        gain *= last->p / s->prediction.p;
    return last->value.value / gain;
}

static void fit(const struct hg_report *r, const struct hg_table *t, struct hg_series *s,
                struct hg_scaling_point *list)
{
    const struct hg_point *last = &t->points[s->points[s->n_points - 1]];

    for (size_t i = 0; i < s->n_points; i++)
        list[i] = (struct hg_scaling_point){ t->points[s->points[i]].p,
                                             t->points[s->points[i]].speedup.value };
    if (s->kind == HG_SCALING_WEAK) {
        s->has_gustafson = hg_scaling_gustafson(list, s->n_points, &s->gustafson);
    } else if (s->kind != HG_SCALING_NEITHER) {
        s->has_amdahl = hg_scaling_amdahl(list, s->n_points, &s->amdahl);
        s->has_usl = hg_scaling_usl(list, s->n_points, &s->usl);
    }
    s->has_prediction =
        hg_scaling_predict(list, s->n_points, s->kind, NEXT_STEP * last->p, &s->prediction);
    if (!s->has_prediction)
        return;
    s->predicted_devices = NEXT_STEP * last->devices;
    s->predicted_value = predicted_value(r, last, s);
}

static void add_series(const struct hg_report *r, struct hg_table *t, const char *label,
                       const size_t *points, size_t n)
{
    struct hg_scaling_point *list = hg_alloc((n + 1) * sizeof *list);
    struct hg_series *s = HG_VEC_PUSH(&t->series);

    *s = (struct hg_series){ .n_points = n, .label = hg_strdup(label) };
    s->points = hg_alloc((n + 1) * sizeof *s->points);
    memcpy(s->points, points, n * sizeof *points);
    qsort_r(s->points, n, sizeof *s->points, compare_by_p, t);
    s->kind = kind_of(t, s);
    see_ends(t, s);
    fit(r, t, s, list);
    free(list);
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

void hg_series_fit(const struct hg_report *r, struct hg_table *t)
{
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

        if (n_members < HG_SCALING_POINTS_MIN)
            continue;
        hg_point_label(r, t, points[begin[s]], HG_LABEL_SERIES, &label);
        add_series(r, t, hg_buf_str(&label), points + begin[s], n_members);
    }
    hg_buf_done(&label);
    hg_map_done(&labels);
    free(points);
    free(begin);
    free(of_point);
}
