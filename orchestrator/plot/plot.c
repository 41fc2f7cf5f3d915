/* SPDX-License-Identifier: Apache-2.0 */
/* Which pictures a table gives: curves here, stacked bars in plot_bars.c. */
#include "plot/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "analysis/figures.h"
#include "plot/plot_parts.h"

#define SERIES_MAX 12
#define POINTS_MAX 200 /* of a loss curve */
#define POINT_LABELS_MAX 30

const char *const hg_plot_names[HG_PLOT_KINDS] = {
    "speedup", "efficiency", "time", "memory", "loss", "cost",
};

const char *hg_plot_needs(enum hg_plot_kind kind)
{
    static const char *const needs[HG_PLOT_KINDS] = {
        "a baseline and results that are compared with it",
        "results on more devices than their baseline",
        "results with train_s and init_s or comm",
        "results with memory",
        "results with a loss curve (loss.step and loss.loss, or loss.epoch)",
        "results whose cells say on how many devices",
    };

    return needs[kind];
}

int hg_plot_kinds_parse(const char *words, unsigned *kinds, struct hg_err *err)
{
    char *copy = strdup(words), *rest = NULL;
    int rc = copy ? 0 : hg_err_oom(err);

    *kinds = 0;
    for (char *word = rc < 0 ? NULL : strtok_r(copy, ",", &rest); word && rc == 0;
         word = strtok_r(NULL, ",", &rest)) {
        size_t k = 0;

        while (k < HG_PLOT_KINDS && strcmp(hg_plot_names[k], word) != 0)
            k++;
        if (k < HG_PLOT_KINDS) {
            *kinds |= 1u << k;
        } else if (strcmp(word, "all") == 0) {
            *kinds = (1u << HG_PLOT_KINDS) - 1;
        } else {
            rc = hg_err_set(err, HG_E_USAGE, "--plot: unknown kind \"%s\"", word);
            hg_text_suggest(err, word, hg_plot_names, HG_PLOT_KINDS);
        }
    }
    if (rc == 0 && *kinds == 0) {
        rc = hg_err_set(err, HG_E_USAGE, "--plot: no kind given");
        hg_text_suggest(err, "", hg_plot_names, HG_PLOT_KINDS);
    }
    free(copy);
    return rc;
}

/* ---- Parts that all kinds share ---- */

struct hg_plot *hg_plot_add(const struct hg_report *r, size_t table, enum hg_plot_kind kind,
                            const char *what, const char *x_title, const char *y_title,
                            struct hg_plots *plots)
{
    const struct hg_table *t = &r->tables.items[table];
    struct hg_buf title = HG_BUF_INIT, part = HG_BUF_INIT;
    struct hg_plot *p = HG_VEC_PUSH(plots);

    if (!p)
        return NULL;
    hg_table_title(r, t, &part);
    hg_buf_printf(&title, "%s: %s%s%s", r->title, what, part.len ? ", " : "", hg_buf_str(&part));
    if (!hg_report_is_complete(r)) /* a picture alone must say so, too */
        hg_buf_printf(&title, " (partial: %zu of %zu cell%s)", r->complete, r->cells,
                      hg_text_s(r->cells));
    *p = (struct hg_plot){ .kind = kind, .table = table };
    p->title = hg_buf_detach(&title);
    p->what = strdup(what);
    p->name = r->tables.n > 1 ? hg_str_printf("%s-%zu", hg_plot_names[kind], table + 1)
                              : strdup(hg_plot_names[kind]);
    p->x.title = strdup(x_title);
    p->y.title = strdup(y_title);
    p->failed = !p->title || !p->what || !p->name || !p->x.title || !p->y.title;
    hg_buf_done(&part);
    return p;
}

struct hg_plot_series *hg_plot_find_series(struct hg_plot *p, const char *label)
{
    struct hg_plot_series *s;

    for (size_t i = 0; i < p->series.n; i++)
        if (strcmp(p->series.items[i].label, label) == 0)
            return &p->series.items[i];
    s = HG_VEC_PUSH(&p->series);
    if (!s) {
        p->failed = true;
        return NULL;
    }
    *s = (struct hg_plot_series){ .label = strdup(label), .label_at = NAN };
    if (!s->label) {
        p->series.n--;
        p->failed = true;
        return NULL;
    }
    return s;
}

/* Beyond that even the difference of two values is no number. */
static bool fits_paper(double v)
{
    return fabs(v) < 1e300;
}

void hg_plot_put(struct hg_plot *p, struct hg_plot_series *s, struct hg_plot_point point)
{
    struct hg_plot_point *slot;

    if (!fits_paper(point.x) || !fits_paper(point.y) || (p->bars && !fits_paper(point.high))) {
        free(point.label);
        return;
    }
    slot = s ? HG_VEC_PUSH(&s->points) : NULL;

    if (slot)
        *slot = point;
    else
        free(point.label);
    p->failed = p->failed || !slot;
}

static void free_series(struct hg_plot_series *s)
{
    for (size_t i = 0; i < s->points.n; i++)
        free(s->points.items[i].label);
    HG_VEC_DONE(&s->points);
    free(s->label);
}

static void free_plot(struct hg_plot *p)
{
    for (size_t i = 0; i < p->series.n; i++)
        free_series(&p->series.items[i]);
    HG_VEC_DONE(&p->series);
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

void hg_plots_done(struct hg_plots *plots)
{
    for (size_t i = 0; i < plots->n; i++)
        free_plot(&plots->items[i]);
    HG_VEC_DONE(plots);
}

void hg_plot_note(struct hg_plot *p, const char *text)
{
    char *longer = p->note ? hg_str_printf("%s; %s", p->note, text) : strdup(text);

    free(p->note);
    p->note = longer;
    p->failed = p->failed || !longer;
}

/* More curves than an eye can hold apart: the first ones, and the note says so. */
static void limit_series(struct hg_plot *p)
{
    struct hg_buf text = HG_BUF_INIT;

    if (p->series.n <= SERIES_MAX)
        return;
    hg_buf_printf(&text, "the first %d of %zu curves", SERIES_MAX, p->series.n);
    hg_plot_note(p, hg_buf_str(&text));
    hg_buf_done(&text);
    while (p->series.n > SERIES_MAX)
        free_series(&p->series.items[--p->series.n]);
}

/* A picture without a point is none. */
static int finish(const struct hg_report *r, struct hg_plots *plots)
{
    struct hg_plot *p = &plots->items[plots->n - 1];
    size_t points = 0;

    for (size_t i = 0; i < p->series.n; i++)
        points += p->series.items[i].points.n;
    if (points == 0) {
        bool failed = p->failed;

        free_plot(p);
        plots->n--;
        return failed ? -1 : 0;
    }
    if (!p->bars)
        limit_series(p);
    hg_plot_settle(&r->style, p);
    return p->failed ? -1 : 0;
}

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

static void put_scaling(const struct hg_point *from, enum hg_plot_kind kind, struct hg_plot *p,
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
}

/* Of the series that have one, beside the points that were measured. */
static void add_predictions(const struct hg_report *r, const struct hg_table *t, struct hg_plot *p)
{
    struct hg_buf label = HG_BUF_INIT;
    const char *law = NULL;

    for (size_t i = 0; i < t->series.n; i++) {
        const struct hg_series *from = &t->series.items[i];
        const struct hg_estimate *e = &from->prediction.speedup;
        struct hg_plot_series *s;

        if (!from->has_prediction || from->n_points == 0 || isnan(e->value))
            continue;
        hg_point_label(r, t, from->points[0], HG_LABEL_SERIES, &label);
        s = hg_plot_find_series(p, hg_buf_str(&label));
        if (!s || s->points.n == 0)
            continue;
        s->has_prediction = true;
        s->prediction = (struct hg_plot_point){ .x = from->prediction.p,
                                                .y = e->value,
                                                .low = e->has_interval ? e->low : NAN,
                                                .high = e->has_interval ? e->high : NAN };
        law = from->prediction.law;
    }
    if (law) {
        hg_buf_clear(&label);
        hg_buf_printf(&label, "hollow: predicted by %s", law);
        hg_plot_note(p, hg_buf_str(&label));
    }
    hg_buf_done(&label);
}

/* Against devices in units of the baseline's, where the ideal is the diagonal whatever it ran on. */
static int add_scaling(const struct hg_report *r, size_t table, enum hg_plot_kind kind,
                       struct hg_plots *plots)
{
    const struct hg_table *t = &r->tables.items[table];
    struct hg_plot *p =
        hg_plot_add(r, table, kind, hg_plot_names[kind], "devices / devices of the baseline",
                    hg_plot_names[kind], plots);
    struct hg_buf label = HG_BUF_INIT;
    bool left_out = false, more = false;

    if (!p)
        return -1;
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
        put_scaling(point, kind, p, hg_plot_find_series(p, hg_buf_str(&label)));
    }
    for (size_t s = 0; s < p->series.n; s++) {
        struct hg_plot_series *series = &p->series.items[s];

        if (!more) /* nothing but the baseline: no curve */
            series->points.n = 0;
        else
            qsort(series->points.items, series->points.n, sizeof *series->points.items,
                  compare_points);
    }
    if (kind == HG_PLOT_SPEEDUP && more)
        add_predictions(r, t, p);
    if (left_out && more)
        hg_plot_note(p, "without places that are oversubscribed or not like their baseline");
    hg_buf_done(&label);
    return finish(r, plots);
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

/* The first run of each place that counts; steps where any has them, else epochs. */
static int add_loss(const struct hg_report *r, size_t table, const struct hg_plot_runs *runs,
                    struct hg_plots *plots)
{
    const struct hg_table *t = &r->tables.items[table];
    struct hg_buf label = HG_BUF_INIT;
    bool steps = false;
    struct hg_plot *p;

    for (size_t i = 0; i < t->n_rows * t->n_columns && !steps; i++)
        steps = has_steps(hg_plot_run(r, runs, t->points[i].config, 0));
    p = hg_plot_add(r, table, HG_PLOT_LOSS, "loss", steps ? "step" : "epoch", "loss", plots);
    if (!p)
        return -1;
    p->lines = true;
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        const struct hg_result *run = hg_plot_run(r, runs, t->points[i].config, 0);
        bool counted = run && run->loss_file && p->series.n >= SERIES_MAX; /* not drawn */
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
    return finish(r, plots);
}

/* ---- Cost ---- */

static int add_cost(const struct hg_report *r, size_t table, struct hg_plots *plots)
{
    const struct hg_table *t = &r->tables.items[table];
    struct hg_buf label = HG_BUF_INIT, x_title = HG_BUF_INIT;
    struct hg_plot *p;

    hg_section_title(r, HG_SECTION_VALUE, &x_title);
    p = hg_plot_add(r, table, HG_PLOT_COST, "cost", hg_buf_str(&x_title), "device-hours", plots);
    hg_buf_done(&x_title);
    if (!p)
        return -1;
    p->marks = true;
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        const struct hg_point *point = &t->points[i];
        char *name;

        if (point->n == 0 || !(point->device_hours > 0))
            continue;
        hg_point_label(r, t, i, HG_LABEL_SHAPE, &label);
        name = label.len && t->n_rows * t->n_columns <= POINT_LABELS_MAX
                   ? strdup(hg_buf_str(&label))
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
    return finish(r, plots);
}

/* ---- All ---- */

int hg_plots_build(const struct hg_report *r, size_t table, unsigned kinds, struct hg_plots *plots)
{
    struct hg_plot_runs runs = { 0 };
    int rc = hg_plot_runs_find(r, &runs);

    for (unsigned k = 0; k < HG_PLOT_KINDS && rc == 0; k++) {
        if (!(kinds >> k & 1))
            continue;
        if (k == HG_PLOT_SPEEDUP || k == HG_PLOT_EFFICIENCY)
            rc = add_scaling(r, table, (enum hg_plot_kind)k, plots);
        else if (k == HG_PLOT_LOSS)
            rc = add_loss(r, table, &runs, plots);
        else if (k == HG_PLOT_COST)
            rc = add_cost(r, table, plots);
        else if ((rc = hg_plot_add_bars(r, table, (enum hg_plot_kind)k, &runs, plots)) == 0)
            rc = finish(r, plots);
    }
    hg_plot_runs_done(&runs);
    return rc;
}
