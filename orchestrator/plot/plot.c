/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/vec.h"
#include "analysis/labels.h"

const char *const hg_plot_names[HG_PLOT_KINDS] = {
    "speedup", "efficiency", "time", "memory", "loss", "cost", "runs",
};

struct hg_plot *hg_plot_add(const struct hg_report *r, size_t table, enum hg_plot_kind kind,
                            const char *what, const char *x_title, const char *y_title,
                            struct hg_plots *plots)
{
    const struct hg_table *t = &r->tables.items[table];
    struct hg_buf title = HG_BUF_INIT, part = HG_BUF_INIT;
    struct hg_plot *p = HG_VEC_PUSH(plots);

    hg_table_title(r, t, &part);
    hg_buf_printf(&title, "%s: %s%s%s", r->title, what, part.len ? ", " : "", hg_buf_str(&part));
    if (!hg_report_is_complete(r)) /* a picture alone must say so, too */
        hg_buf_printf(&title, " (partial: %zu of %zu cell%s)", r->complete, r->cells,
                      hg_text_s(r->cells));
    *p = (struct hg_plot){ .kind = kind, .table = table };
    p->title = hg_buf_detach(&title);
    p->what = hg_strdup(what);
    p->name = r->tables.n > 1 ? hg_str_printf("%s-%zu", hg_plot_names[kind], table + 1)
                              : hg_strdup(hg_plot_names[kind]);
    p->x.title = hg_strdup(x_title);
    p->y.title = hg_strdup(y_title);
    hg_buf_done(&part);
    return p;
}

struct hg_plot_series *hg_plot_find_series(struct hg_plot *p, const char *label)
{
    size_t n = p->series.n, at = hg_map_put(&p->series_index, label, strlen(label), n);
    struct hg_plot_series *s;

    if (at < n)
        return &p->series.items[at];
    s = HG_VEC_PUSH(&p->series);
    *s = (struct hg_plot_series){ .label = hg_strdup(label), .label_at = NAN };
    return s;
}

/* Beyond that even the difference of two values overflows. */
static bool fits_paper(double v)
{
    return fabs(v) < 1e300;
}

void hg_plot_put(struct hg_plot *p, struct hg_plot_series *s, struct hg_plot_point point)
{
    if (fits_paper(point.x) && fits_paper(point.y) && (!p->bars || !(fabs(point.high) >= 1e300))) {
        *HG_VEC_PUSH(&s->points) = point;
        return;
    }
    free(point.label);
    free(point.tip);
}

void hg_plot_put_dot(struct hg_plot_series *s, double x, double y, const struct hg_report *r,
                     const struct hg_report_entry *run)
{
    struct hg_buf name = HG_BUF_INIT;

    if (!fits_paper(x) || !fits_paper(y))
        return;
    hg_entry_name(r, run, &name);
    *HG_VEC_PUSH(&s->dots) = (struct hg_plot_point){
        .x = x, .y = y, .low = NAN, .high = NAN, .tip = hg_buf_detach(&name)
    };
}

void hg_plot_note(struct hg_plot *p, const char *text)
{
    char *longer = p->note ? hg_str_printf("%s; %s", p->note, text) : hg_strdup(text);

    free(p->note);
    p->note = longer;
}

void hg_plot_points_done(struct hg_plot_points *points)
{
    for (size_t i = 0; i < points->n; i++) {
        free(points->items[i].label);
        free(points->items[i].tip);
    }
    HG_VEC_DONE(points);
}

static void free_series(struct hg_plot_series *s)
{
    hg_plot_points_done(&s->points);
    hg_plot_points_done(&s->dots);
    free(s->prediction.tip);
    free(s->label);
}

void hg_plot_limit(struct hg_plot *p, size_t most)
{
    char *text;

    if (p->series.n <= most)
        return;
    text = hg_str_printf("the first %zu of %zu curves", most, p->series.n);
    hg_plot_note(p, text);
    free(text);
    while (p->series.n > most)
        free_series(&p->series.items[--p->series.n]);
}

void hg_plot_drop_empty(struct hg_plot *p)
{
    size_t kept = 0;

    for (size_t s = 0; s < p->series.n; s++) {
        if (p->series.items[s].points.n)
            p->series.items[kept++] = p->series.items[s];
        else
            free_series(&p->series.items[s]);
    }
    p->series.n = kept;
}

double hg_plot_share(const struct hg_plot_axis *a, double v)
{
    return a->log2 ? log2(v / a->low) / log2(a->high / a->low) : (v - a->low) / (a->high - a->low);
}

static void free_plot(struct hg_plot *p)
{
    for (size_t i = 0; i < p->series.n; i++)
        free_series(&p->series.items[i]);
    HG_VEC_DONE(&p->series);
    hg_map_done(&p->series_index);
    for (size_t i = 0; i < p->bar_labels.n; i++)
        free(p->bar_labels.items[i]);
    HG_VEC_DONE(&p->bar_labels);
    HG_VEC_DONE(&p->x.ticks);
    HG_VEC_DONE(&p->y.ticks);
    free(p->x.title);
    free(p->y.title);
    free(p->name);
    free(p->title);
    free(p->what);
    free(p->note);
}

void hg_plots_drop_last(struct hg_plots *plots)
{
    free_plot(&plots->items[--plots->n]);
}

void hg_plots_done(struct hg_plots *plots)
{
    for (size_t i = 0; i < plots->n; i++)
        free_plot(&plots->items[i]);
    HG_VEC_DONE(plots);
}
