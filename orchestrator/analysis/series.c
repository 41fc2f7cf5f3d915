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
#include "analysis/places.h"

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

/* ---- The listings ---- */

/* A prediction with a wider interval, as a factor, is not listed. */
#define SPAN_MAX 2

/* Does the series gain from its devices? If not, a law adds nothing to the table. */
static bool gains(const struct hg_table *t, const struct hg_series *s)
{
    return s->n_points && t->points[s->points[s->n_points - 1]].speedup.value > 1;
}

static bool has_fit(const struct hg_table *t, const struct hg_series *s)
{
    return gains(t, s) && (s->has_amdahl || s->has_usl || s->has_gustafson);
}

static bool has_prediction(const struct hg_table *t, const struct hg_series *s)
{
    const struct hg_estimate *e = &s->prediction.speedup;

    return gains(t, s) && s->has_prediction && e->has_interval && e->high <= SPAN_MAX * e->low;
}

static bool any(const struct hg_table *t,
                bool (*has)(const struct hg_table *t, const struct hg_series *s))
{
    for (size_t i = 0; i < t->series.n; i++)
        if (has(t, &t->series.items[i]))
            return true;
    return false;
}

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
}

/* ---- Laws ---- */

static void list_law(struct hg_listing *l, const struct hg_series *s, const char *law)
{
    hg_listing_text(l, s->label);
    hg_listing_text(l, law);
}

static void list_amdahl(struct hg_listing *l, const struct hg_series *s)
{
    list_law(l, s, "Amdahl");
    hg_listing_number(l, s->amdahl.serial, 3);
    hg_listing_number(l, s->amdahl.serial_error, 3);
    hg_listing_none(l);
    hg_listing_none(l);
    hg_listing_number(l, s->amdahl.limit, 1);
    hg_listing_none(l);
    hg_listing_number(l, s->amdahl.knee_p, 0);
}

static void list_usl(struct hg_listing *l, const struct hg_series *s)
{
    double p = s->usl.peak_p,
           most = isinf(p) ? 1 / s->usl.contention
                           : p / (1 + s->usl.contention * (p - 1) + s->usl.coherency * p * (p - 1));

    list_law(l, s, "USL");
    hg_listing_number(l, s->usl.contention, 3);
    hg_listing_number(l, s->usl.contention_error, 3);
    hg_listing_number(l, s->usl.coherency, 4);
    hg_listing_number(l, s->usl.coherency_error, 4);
    hg_listing_number(l, most, 1);
    hg_listing_number(l, p, 0);
    hg_listing_number(l, s->usl.knee_p, 0);
}

static void list_gustafson(struct hg_listing *l, const struct hg_series *s)
{
    list_law(l, s, "Gustafson");
    hg_listing_number(l, s->gustafson.serial, 3);
    hg_listing_number(l, s->gustafson.serial_error, 3);
    for (int i = 0; i < 5; i++)
        hg_listing_none(l);
}

static void list_laws(const struct hg_table *t, struct hg_listing *l)
{
    hg_listing_column(l, "series", "", true);
    hg_listing_column(l, "law", "law", true);
    l->n_keys = 2;
    hg_listing_column(l, "serial_fraction", "serial", false);
    hg_listing_column(l, "serial_fraction_error", "±", false);
    hg_listing_column(l, "coherency", "kappa", false);
    hg_listing_column(l, "coherency_error", "±", false);
    hg_listing_column(l, "limit", "limit", false);
    hg_listing_column(l, "peak_devices_ratio", "peak", false);
    hg_listing_column(l, "knee_devices_ratio", "knee", false);
    for (size_t i = 0; i < t->series.n; i++) {
        const struct hg_series *s = &t->series.items[i];

        if (!has_fit(t, s))
            continue;
        if (s->has_amdahl)
            list_amdahl(l, s);
        if (s->has_usl)
            list_usl(l, s);
        if (s->has_gustafson)
            list_gustafson(l, s);
    }
    hg_listing_note(
        l, "serial: serial fraction (USL: sigma); ±: standard error; limit: highest speedup; "
           "peak, knee: in units of the baseline's devices");
}

/* ---- Predictions ---- */

static void list_predictions(const struct hg_report *r, const struct hg_table *t,
                             struct hg_listing *l)
{
    int decimals = hg_section_decimals(t, HG_SECTION_VALUE);

    hg_listing_column(l, "series", "", true);
    hg_listing_column(l, "law", "law", true);
    hg_listing_column(l, "devices", "devices", false);
    hg_listing_column(l, "speedup", "speedup", false);
    hg_listing_column(l, "speedup_low", "from", false);
    hg_listing_column(l, "speedup_high", "to", false);
    hg_listing_column(l, "value", r->metric, false);
    for (size_t i = 0; i < t->series.n; i++) {
        const struct hg_series *s = &t->series.items[i];
        const struct hg_estimate *e = &s->prediction.speedup;

        if (!has_prediction(t, s))
            continue;
        hg_listing_text(l, s->label);
        hg_listing_text(l, s->prediction.law);
        hg_listing_number(l, s->predicted_devices, 0);
        hg_listing_number(l, e->value, 2);
        hg_listing_number(l, e->low, 2);
        hg_listing_number(l, e->high, 2);
        hg_place_metric(r, l, s->predicted_value, decimals);
    }
    hg_listing_note(l, "from, to: range of 95 % of further measurements, if the law holds there");
}

void hg_series_list(const struct hg_report *r, struct hg_table *t)
{
    struct hg_listings *all = &t->listings;

    if (t->series.n)
        list_curves(t, hg_listing_add(all, "scaling", "scaling curves"));
    if (any(t, has_fit))
        list_laws(t, hg_listing_add(all, "laws", "scaling laws"));
    if (any(t, has_prediction))
        list_predictions(
            r, t, hg_listing_add(all, "predicted", "predicted, not measured: twice the devices"));
}
