/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/axes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "plot/details.h"
#include "plot/layout.h"

#define TICKS 6
#define LABEL_GAP 0.055 /* of the height: a line of text */

static void add_tick(const struct hg_style *style, struct hg_plot_axis *axis, double at,
                     int decimals, bool seconds)
{
    struct hg_plot_tick *tick = HG_VEC_PUSH(&axis->ticks);
    struct hg_buf text = HG_BUF_INIT;

    at = fabs(at) < 1e-12 * fabs(axis->high) ? 0 : at; /* no "-0" */
    tick->at = at;
    if (at != 0 && (fabs(at) >= 1e7 || fabs(at) < 1e-4))
        hg_digits_append(style, at, 3, &text);
    else if (seconds)
        hg_seconds_append(style, at, decimals, &text);
    else
        hg_number_append(style, at, decimals, &text);
    snprintf(tick->label, sizeof tick->label, "%s", hg_buf_str(&text));
    hg_buf_done(&text);
}

/* 1, 2 or 5 times a power of ten, for about TICKS of them. */
static double nice_step(double span)
{
    double raw = span / TICKS, unit = pow(10, floor(log10(raw))), n = raw / unit;

    return unit * (n <= 1 ? 1 : n <= 2 ? 2 : n <= 5 ? 5 : 10);
}

/* whole: of things that are counted, no tick stands between two numbers. */
static void tick_linear(const struct hg_style *style, struct hg_plot_axis *axis, bool seconds,
                        bool whole)
{
    double span = axis->high - axis->low, step, first;
    int decimals;

    if (!(span > 0) || !isfinite(span))
        return;
    step = whole && span > 1 ? fmax(nice_step(span), 1) : nice_step(span);
    decimals = step >= 1 ? 0 : (int)-floor(log10(step) + 1e-9);
    first = ceil(axis->low / step - 1e-9);
    /* Far from zero a step may be less than what a double can tell: no tick then, and never more
     * than so many. */
    for (int k = 0; first + 1 != first && k <= 2 * TICKS; k++)
        if ((first + k) * step <= axis->high + step * 1e-9)
            add_tick(style, axis, (first + k) * step, decimals, seconds);
}

static void tick_log2(const struct hg_style *style, struct hg_plot_axis *axis)
{
    double first = ceil(log2(axis->low) - 1e-9), last = floor(log2(axis->high) + 1e-9);
    double stride = ceil((last - first + 1) / 10);

    for (double k = first; k <= last; k += stride > 0 ? stride : 1)
        add_tick(style, axis, exp2(k), k >= 0 ? 0 : (int)-k > 4 ? 4 : (int)-k, false);
}

static double larger(double a, double b)
{
    return b > a || isnan(a) ? b : a; /* NaN never wins */
}

static double smaller(double a, double b)
{
    return b < a || isnan(a) ? b : a;
}

struct range {
    double x_low, x_high, y_low, y_high;
};

static void widen(const struct hg_plot *p, const struct hg_plot_point *q, struct range *r)
{
    bool part = p->bars && !p->strips;

    r->x_low = smaller(part ? r->x_low : smaller(r->x_low, q->x), p->bars ? q->low : NAN);
    r->x_high = larger(part ? r->x_high : larger(r->x_high, q->x), p->bars ? q->high : NAN);
    if (p->bars)
        return;
    r->y_low = smaller(smaller(r->y_low, q->y), q->low);
    r->y_high = larger(larger(r->y_high, q->y), q->high);
}

static struct range find_range(const struct hg_plot *p)
{
    struct range r = { NAN, NAN, NAN, NAN };

    for (size_t s = 0; s < p->series.n; s++) {
        for (size_t i = 0; i < p->series.items[s].points.n; i++)
            widen(p, &p->series.items[s].points.items[i], &r);
        for (size_t i = 0; i < p->series.items[s].dots.n; i++)
            widen(p, &p->series.items[s].dots.items[i], &r);
        if (p->series.items[s].has_prediction)
            widen(p, &p->series.items[s].prediction, &r);
    }
    return r;
}

static void set_linear(struct hg_plot_axis *axis, double low, double high)
{
    axis->log2 = false;
    axis->low = low;
    axis->high = high > low ? high : low + 1;
}

/* Whole powers of two around the values. */
static void set_log2(struct hg_plot_axis *axis, double low, double high)
{
    axis->log2 = true;
    axis->low = exp2(floor(log2(low) + 1e-9));
    axis->high = exp2(ceil(log2(high) - 1e-9));
    if (axis->high <= axis->low)
        axis->high = axis->low * 2;
}

/* Many devices: doubling is a step, on both axes, so that the ideal stays a straight line. */
static void set_scaling(struct hg_plot *p, const struct range *r)
{
    bool many = r->x_high > 8 && r->x_low > 0 && r->y_low > 0;

    if (many) {
        set_log2(&p->x, smaller(1, r->x_low), r->x_high);
        set_log2(&p->y, smaller(1, r->y_low), larger(r->x_high, r->y_high));
        if (r->y_low < 1 && r->y_low > 0.8) /* a run a little slower than the baseline */
            p->y.low = 0.95 * r->y_low;
    } else {
        set_linear(&p->x, 0, r->x_high * 1.05);
        set_linear(&p->y, 0, larger(r->x_high, r->y_high) * 1.05);
    }
}

/* From zero on, unless the runs are so alike that they would be one dot. */
static void set_strips(struct hg_plot_axis *axis, double low, double high)
{
    double margin = (high - low) * 0.05;

    if (low > high / 2)
        set_linear(axis, low - margin, high + margin);
    else
        set_linear(axis, fmin(low - margin, 0), high + margin);
}

static void set_ranges(struct hg_plot *p)
{
    struct range r = find_range(p);

    if (p->bars) {
        if (p->strips)
            set_strips(&p->x, r.x_low, r.x_high);
        else
            set_linear(&p->x, 0, r.x_high * 1.02);
        set_linear(&p->y, -0.5, (double)p->bar_labels.n - 0.5);
    } else if (p->kind == HG_PLOT_SPEEDUP) {
        set_scaling(p, &r);
    } else if (p->kind == HG_PLOT_EFFICIENCY) {
        set_scaling(p, &r);
        set_linear(&p->y, 0, larger(1, r.y_high) * 1.05);
    } else if (p->kind == HG_PLOT_LOSS) {
        double margin = (r.y_high - r.y_low) * 0.05;

        set_linear(&p->x, 0, r.x_high);
        set_linear(&p->y, r.y_low >= 0 && r.y_low < r.y_high / 2 ? 0 : r.y_low - margin,
                   r.y_high + margin);
    } else {
        set_linear(&p->x, 0, r.x_high * 1.08);
        set_linear(&p->y, 0, r.y_high * 1.08);
    }
}

/* ---- Labels beside the picture ---- */

static double fraction(const struct hg_plot_axis *axis, double v)
{
    return fmin(fmax(hg_plot_share(axis, v), 0), 1);
}

static int compare_heights(const void *pa, const void *pb)
{
    const struct hg_plot_series *a = *(struct hg_plot_series *const *)pa,
                                *b = *(struct hg_plot_series *const *)pb;

    if (a->label_at != b->label_at)
        return a->label_at > b->label_at ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* Beside the last point of each series, from the top down, one line apart; those that would fall out
 * at the bottom push the others up. */
static void place_labels(struct hg_plot *p)
{
    struct hg_plot_series **sorted = hg_alloc((p->series.n + 1) * sizeof *sorted);
    double ceiling = 1, floor_at = 0;
    size_t n = 0;

    for (size_t s = 0; s < p->series.n; s++) {
        struct hg_plot_series *series = &p->series.items[s];
        const struct hg_plot_point *last;

        series->label_at = NAN;
        if (series->points.n == 0)
            continue;
        last = series->has_prediction ? &series->prediction
                                      : &series->points.items[series->points.n - 1];
        series->label_at = p->lines ? fraction(&p->y, last->y) : 1 - LABEL_GAP * (double)s;
        sorted[n++] = series;
    }
    qsort(sorted, n, sizeof(struct hg_plot_series *), compare_heights);
    for (size_t i = 0; i < n; i++) {
        sorted[i]->label_at = fmin(sorted[i]->label_at, ceiling);
        ceiling = sorted[i]->label_at - LABEL_GAP;
    }
    for (size_t i = n; i-- > 0;) {
        sorted[i]->label_at = fmax(sorted[i]->label_at, floor_at);
        floor_at = sorted[i]->label_at + LABEL_GAP;
    }
    free(sorted);
}

/* ---- Labels of points ---- */

#define LABEL_HEIGHT 0.045
#define LABEL_EM 0.042  /* of the width */
#define LABEL_EM_MAX 11 /* a longer label is cut: there is room on one side of every point */

static double label_share(const struct hg_plot_point *q)
{
    return LABEL_EM * hg_plot_text_em(q->label);
}

/* Where a label begins. */
static double label_start(const struct hg_plot *p, const struct hg_plot_point *q)
{
    return fraction(&p->x, q->x) - (q->label_left ? label_share(q) : 0);
}

/* Do the labels of two points stand on each other, the first one as it is, the other one below? */
static bool collide(const struct hg_plot *p, const struct hg_plot_point *a,
                    const struct hg_plot_point *b, bool below)
{
    double ax = label_start(p, a), bx = label_start(p, b);
    double ay = fraction(&p->y, a->y) + (a->label_below ? -LABEL_HEIGHT : LABEL_HEIGHT / 3);
    double by = fraction(&p->y, b->y) + (below ? -LABEL_HEIGHT : LABEL_HEIGHT / 3);
    double aw = label_share(a), bw = label_share(b);

    return ax < bx + bw && bx < ax + aw && fabs(ay - by) < LABEL_HEIGHT;
}

static bool is_free(const struct hg_plot *p, size_t series, size_t point, bool below)
{
    const struct hg_plot_point *q = &p->series.items[series].points.items[point];

    for (size_t s = 0; s <= series; s++)
        for (size_t i = 0; i < (s < series ? p->series.items[s].points.n : point); i++)
            if (p->series.items[s].points.items[i].label &&
                collide(p, &p->series.items[s].points.items[i], q, below))
                return false;
    return true;
}

/* Cut, and on the side where it does not leave the picture. */
static void fit_label(const struct hg_plot *p, struct hg_plot_point *q)
{
    struct hg_buf cut = HG_BUF_INIT;

    hg_plot_text_fit(q->label, LABEL_EM_MAX, &cut);
    free(q->label);
    q->label = hg_buf_detach(&cut);
    q->label_left = fraction(&p->x, q->x) + label_share(q) > 1;
}

/* One after the other, above its point, else below, else not at all. */
static void place_point_labels(struct hg_plot *p)
{
    bool dropped = false;

    for (size_t s = 0; s < p->series.n; s++)
        for (size_t i = 0; i < p->series.items[s].points.n; i++) {
            struct hg_plot_point *q = &p->series.items[s].points.items[i];

            if (q->label)
                fit_label(p, q);
            if (!q->label || is_free(p, s, i, false))
                continue;
            q->label_below = true;
            if (is_free(p, s, i, true))
                continue;
            free(q->label);
            q->label = NULL;
            dropped = true;
        }
    if (dropped)
        hg_plot_note(p, "some labels are left out for lack of space");
}

void hg_plot_settle(const struct hg_style *style, struct hg_plot *p)
{
    bool seconds = p->kind == HG_PLOT_TIME || p->seconds;

    set_ranges(p);
    hg_plot_detail(style, p);
    if (p->x.log2)
        tick_log2(style, &p->x);
    else
        tick_linear(style, &p->x, seconds, p->ideal != HG_IDEAL_NONE || p->kind == HG_PLOT_LOSS);
    if (p->y.log2)
        tick_log2(style, &p->y);
    else if (!p->bars)
        tick_linear(style, &p->y, false, false);
    if (p->bars)
        return;
    place_labels(p);
    place_point_labels(p);
}
