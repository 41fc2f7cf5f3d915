/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/details.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

#define MARKS 6       /* on a line of many points */
#define DODGE 0.018   /* between two series; less where places are close */
#define CROWD 200     /* points that are not compared one by one */
#define DODGE_MAX 0.4 /* of the way to the next place, for all series together */

double hg_plot_moved(const struct hg_plot_axis *a, double v, double share)
{
    return a->log2 ? v * exp2(share * log2(a->high / a->low)) : v + share * (a->high - a->low);
}

/* ---- Which points are marked ---- */

/* A few of each line, not the same ones of neighbours, so that marks do not hide each other. */
static void mark_points(struct hg_plot *p)
{
    for (size_t s = 0; s < p->series.n; s++) {
        struct hg_plot_points *points = &p->series.items[s].points;
        size_t stride = p->marks || points->n <= MARKS ? 1 : points->n / MARKS;

        for (size_t i = 0; i < points->n; i++)
            points->items[i].marked = i % stride == s * stride / HG_PLOT_SERIES_MAX % stride;
    }
}

/* ---- Moved apart ---- */

static int compare_numbers(const void *pa, const void *pb)
{
    const double *a = pa, *b = pb;

    return (*a > *b) - (*a < *b);
}

/* The least distance of two places on the axis; 1 if there is only one. */
static double least_gap(const struct hg_plot *p)
{
    size_t n = 0, total = 0;
    double least = 1, *at;

    for (size_t s = 0; s < p->series.n; s++)
        total += p->series.items[s].points.n;
    at = hg_alloc((total + 1) * sizeof *at);
    for (size_t s = 0; s < p->series.n; s++)
        for (size_t i = 0; i < p->series.items[s].points.n; i++)
            at[n++] = hg_plot_share(&p->x, p->series.items[s].points.items[i].x);
    qsort(at, n, sizeof *at, compare_numbers);
    for (size_t i = 1; i < n; i++)
        if (at[i] - at[i - 1] > 1e-9)
            least = fmin(least, at[i] - at[i - 1]);
    free(at);
    return least;
}

static bool has_spread(const struct hg_plot_series *s)
{
    for (size_t i = 0; i < s->points.n; i++)
        if (!isnan(s->points.items[i].low))
            return true;
    return s->dots.n > 0;
}

static bool share_place(const struct hg_plot_series *a, const struct hg_plot_series *b)
{
    for (size_t i = 0; i < a->points.n; i++)
        for (size_t k = 0; k < b->points.n; k++)
            if (a->points.items[i].x == b->points.items[k].x)
                return true;
    return false;
}

/* Does anything of this series hide something of another? */
static bool is_crowded(const struct hg_plot *p, size_t series)
{
    const struct hg_plot_series *s = &p->series.items[series];

    if (!has_spread(s))
        return false;
    for (size_t i = 0; i < p->series.n; i++)
        if (i != series && has_spread(&p->series.items[i]) &&
            (s->points.n > CROWD || share_place(s, &p->series.items[i])))
            return true;
    return false;
}

/* Both ends of the axis move out by as much as series are moved, and half a mark. */
static void make_room(struct hg_plot_axis *a, double share)
{
    double low = a->low, high = a->high;

    a->low = hg_plot_moved(&(struct hg_plot_axis){ .low = low, .high = high, .log2 = a->log2 }, low,
                           -share);
    a->high = hg_plot_moved(&(struct hg_plot_axis){ .low = low, .high = high, .log2 = a->log2 },
                            high, share);
    if (low == 0)
        a->low = 0;
}

/* Series whose intervals or runs are drawn stand beside each other, all points of one by the same distance: its line keeps its form. */
static void dodge(struct hg_plot *p)
{
    size_t n = 0, at = 0;
    double step;

    for (size_t s = 0; s < p->series.n; s++)
        n += is_crowded(p, s);
    if (n < 2)
        return;
    step = fmin(DODGE, DODGE_MAX * least_gap(p) / (double)(n - 1));
    for (size_t s = 0; s < p->series.n; s++)
        if (is_crowded(p, s))
            p->series.items[s].dodge = step * ((double)at++ - (double)(n - 1) / 2);
    make_room(&p->x, step * (double)(n - 1) / 2 + 0.01);
}

/* ---- In words ---- */

static void append_figure(const struct hg_style *style, double v, bool seconds, struct hg_buf *out)
{
    if (seconds)
        hg_seconds_append(style, v, 2, out);
    else
        hg_digits_append(style, v, 4, out);
}

/* "ddp: 4, 3.18 (3.02 to 3.35)", of a part of a bar "ddp 2×1: compute 12.3". */
static void say_point(const struct hg_style *style, const struct hg_plot *p,
                      const struct hg_plot_series *s, struct hg_plot_point *q)
{
    bool seconds = p->seconds || p->kind == HG_PLOT_TIME, part = p->bars && !p->strips;
    struct hg_buf text = HG_BUF_INIT;

    hg_buf_printf(&text, "%s: ", p->bars ? p->bar_labels.items[(size_t)q->y] : s->label);
    if (part)
        hg_buf_printf(&text, "%s ", s->label);
    append_figure(style, part ? q->high - q->low : q->x, seconds, &text);
    if (!p->bars) {
        hg_buf_puts(&text, ", ");
        append_figure(style, q->y, false, &text);
    }
    if (!part && !isnan(q->low)) {
        hg_buf_puts(&text, " (");
        append_figure(style, q->low, seconds && p->bars, &text);
        hg_buf_puts(&text, " to ");
        append_figure(style, q->high, seconds && p->bars, &text);
        hg_buf_puts(&text, ")");
    }
    free(q->tip);
    q->tip = hg_buf_detach(&text);
}

void hg_plot_detail(const struct hg_style *style, struct hg_plot *p)
{
    mark_points(p);
    if (p->marks && p->lines)
        dodge(p);
    for (size_t s = 0; s < p->series.n; s++) {
        struct hg_plot_series *series = &p->series.items[s];

        for (size_t i = 0; i < series->points.n; i++)
            if (p->bars || series->points.items[i].marked)
                say_point(style, p, series, &series->points.items[i]);
        if (series->has_prediction)
            say_point(style, p, series, &series->prediction);
    }
}
