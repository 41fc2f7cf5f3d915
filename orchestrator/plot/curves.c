/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/curves.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "analysis/figures.h"
#include "analysis/labels.h"

#define POINTS_MAX 200 /* of a loss curve */
#define POINT_LABELS_MAX 30
#define SPAN_MAX \
    8 /* of a predicted interval, as a factor: a wider one would flatten the measured points */

/* ---- Speedup and efficiency ---- */

static int compare_points(const void *pa, const void *pb)
{
    const struct hg_plot_point *a = pa, *b = pb;

    if (a->x != b->x)
        return a->x < b->x ? -1 : 1;
    return a->y != b->y ? (a->y < b->y ? -1 : 1) : 0;
}

static bool is_drawn(const struct hg_point *p, enum hg_plot_kind kind)
{
    return p->n && p->p > 0 && !isnan(p->speedup.value) &&
           (kind == HG_PLOT_SPEEDUP || !isnan(p->efficiency));
}

/* Every run against the baseline's value, if there are several: what its speedup would have been alone. */
static void put_runs(const struct hg_report *r, const struct hg_plot_runs *runs,
                     const struct hg_point *from, double y, struct hg_plot_series *s)
{
    const struct hg_report_entry *run;

    for (size_t i = 0; from->n > 1 && i < HG_PLOT_DOTS_MAX; i++) {
        if (!(run = hg_plot_entry(r, runs, from->config, i)))
            break;
        hg_plot_put_dot(s, from->p,
                        y * (r->kind == HG_METRIC_RATE ? run->value / from->value.value
                                                       : from->value.value / run->value),
                        r, run);
    }
}

static void put_scaling(const struct hg_report *r, const struct hg_plot_runs *runs,
                        const struct hg_point *from, enum hg_plot_kind kind, struct hg_plot *p,
                        struct hg_plot_series *s)
{
    double by = kind == HG_PLOT_SPEEDUP || !(from->efficiency > 0)
                    ? 1
                    : from->efficiency / from->speedup.value;
    const struct hg_estimate *e = &from->speedup;

    hg_plot_put(p, s,
                (struct hg_plot_point){ .x = from->p,
                                        .y = e->value * by,
                                        .low = e->has_interval ? e->low * by : NAN,
                                        .high = e->has_interval ? e->high * by : NAN });
    put_runs(r, runs, from, e->value * by, s);
}

/* What the listing of predictions has (analysis/laws.h), beside the points that were measured. */
static void add_predictions(const struct hg_report *r, const struct hg_table *t, struct hg_plot *p)
{
    struct hg_buf label = HG_BUF_INIT;
    const char *law = NULL;
    bool wide = false;

    for (size_t i = 0; i < t->series.n; i++) {
        const struct hg_series *from = &t->series.items[i];
        const struct hg_estimate *e = &from->prediction.speedup;
        struct hg_plot_series *s;

        if (!from->has_prediction)
            continue;
        if (e->high > SPAN_MAX * e->low) {
            wide = true;
            continue;
        }
        hg_point_label(r, t, from->points[0], HG_LABEL_SERIES, &label);
        s = hg_plot_find_series(p, hg_buf_str(&label));
        if (s->points.n == 0)
            continue;
        s->has_prediction = true;
        s->prediction = (struct hg_plot_point){ .x = from->prediction.p,
                                                .y = e->value,
                                                .low = e->has_interval ? e->low : NAN,
                                                .high = e->has_interval ? e->high : NAN };
        law = hg_law_names[from->prediction.law];
    }
    if (law) {
        hg_buf_clear(&label);
        hg_buf_printf(&label, "hollow: predicted by %s", law);
        hg_plot_note(p, hg_buf_str(&label));
    }
    if (wide)
        hg_plot_note(p, "predictions with intervals too wide for this picture are only listed");
    hg_buf_done(&label);
}

void hg_plot_add_scaling(const struct hg_report *r, size_t table, enum hg_plot_kind kind,
                         const struct hg_plot_runs *runs, struct hg_plots *plots)
{
    const struct hg_table *t = &r->tables.items[table];
    struct hg_plot *p =
        hg_plot_add(r, table, kind, hg_plot_names[kind], "devices / devices of the baseline",
                    hg_plot_names[kind], plots);
    struct hg_buf label = HG_BUF_INIT;
    bool left_out = false, more = false;

    p->ideal = kind == HG_PLOT_SPEEDUP ? HG_IDEAL_DIAGONAL : HG_IDEAL_ONE;
    p->lines = p->marks = true;
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        const struct hg_point *point = &t->points[i];

        if (!is_drawn(point, kind))
            continue;
        left_out = left_out || point->oversubscribed || point->unlike;
        if (point->oversubscribed || point->unlike)
            continue;
        more = more || point->p > 1;
        hg_point_label(r, t, i, HG_LABEL_SERIES, &label);
        put_scaling(r, runs, point, kind, p, hg_plot_find_series(p, hg_buf_str(&label)));
    }
    for (size_t s = 0; s < p->series.n; s++) {
        struct hg_plot_series *series = &p->series.items[s];

        if (!more) { /* nothing but the baseline: no curve */
            hg_plot_points_done(&series->points);
            hg_plot_points_done(&series->dots);
        } else {
            qsort(series->points.items, series->points.n, sizeof *series->points.items,
                  compare_points);
        }
    }
    if (kind == HG_PLOT_SPEEDUP && more)
        add_predictions(r, t, p);
    if (left_out && more)
        hg_plot_note(
            p, "without places that are oversubscribed or not comparable with their baseline");
    hg_buf_done(&label);
}

/* ---- Loss ---- */

static void put_curve(struct hg_plot *p, struct hg_plot_series *s, const json_t *steps,
                      const json_t *losses)
{
    size_t n = json_array_size(losses), stride = (n + POINTS_MAX - 1) / POINTS_MAX;

    for (size_t i = 0; i < n; i++) {
        const json_t *loss = json_array_get(losses, i), *step = json_array_get(steps, i);

        if (!json_is_number(loss) || (i % stride && i + 1 < n))
            continue;
        hg_plot_put(p, s,
                    (struct hg_plot_point){ .x = json_is_number(step) ? json_number_value(step)
                                                                      : (double)i + 1,
                                            .y = json_number_value(loss),
                                            .low = NAN,
                                            .high = NAN });
    }
}

static bool has_steps(const struct hg_result *run)
{
    json_t *loss = run ? hg_result_get(run, "loss") : NULL;
    bool has = json_array_size(json_object_get(loss, "loss")) > 0;

    json_decref(loss);
    return has;
}

void hg_plot_add_loss(const struct hg_report *r, size_t table, const struct hg_plot_runs *runs,
                      struct hg_plots *plots)
{
    const struct hg_table *t = &r->tables.items[table];
    struct hg_buf label = HG_BUF_INIT;
    bool steps = false;
    struct hg_plot *p;

    for (size_t i = 0; i < t->n_rows * t->n_columns && !steps; i++)
        steps = has_steps(hg_plot_run(r, runs, t->points[i].config, 0));
    p = hg_plot_add(r, table, HG_PLOT_LOSS, "loss", steps ? "step" : "epoch", "loss", plots);
    p->lines = true;
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        const struct hg_result *run = hg_plot_run(r, runs, t->points[i].config, 0);
        bool counted = run && run->loss_file && p->series.n >= HG_PLOT_SERIES_MAX; /* not drawn */
        json_t *loss = run && !counted ? hg_result_get(run, "loss") : NULL;
        const json_t *values = json_object_get(loss, steps ? "loss" : "epoch");

        if (counted || json_array_size(values) >= 2) {
            hg_point_label(r, t, i, HG_LABEL_PLACE, &label);
            put_curve(p, hg_plot_find_series(p, hg_buf_str(&label)),
                      steps ? json_object_get(loss, "step") : NULL, values);
        }
        json_decref(loss);
    }
    if (r->repeats > 1)
        hg_plot_note(p, "the first run of each place");
    hg_buf_done(&label);
}

/* ---- Cost ---- */

void hg_plot_add_cost(const struct hg_report *r, size_t table, struct hg_plots *plots)
{
    const struct hg_table *t = &r->tables.items[table];
    struct hg_buf label = HG_BUF_INIT, x_title = HG_BUF_INIT;
    struct hg_plot *p;

    hg_section_title(r, HG_SECTION_VALUE, &x_title);
    p = hg_plot_add(r, table, HG_PLOT_COST, "cost", hg_buf_str(&x_title), "device-hours", plots);
    hg_buf_done(&x_title);
    p->marks = true;
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        const struct hg_point *point = &t->points[i];
        char *name;

        if (point->n == 0 || !(point->device_hours > 0))
            continue;
        hg_point_label(r, t, i, HG_LABEL_SHAPE, &label);
        name = label.len && t->n_rows * t->n_columns <= POINT_LABELS_MAX
                   ? hg_strdup(hg_buf_str(&label))
                   : NULL;
        hg_point_label(r, t, i, HG_LABEL_CASE, &label);
        hg_plot_put(p, hg_plot_find_series(p, hg_buf_str(&label)),
                    (struct hg_plot_point){ .x = point->value.value,
                                            .y = point->device_hours,
                                            .low = NAN,
                                            .high = NAN,
                                            .label = name });
    }
    hg_buf_done(&label);
}
