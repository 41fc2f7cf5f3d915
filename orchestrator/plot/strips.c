/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/strips.h"

#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "analysis/figures.h"
#include "analysis/labels.h"

#define STRIPS_MAX 40

static void add_strip(const struct hg_report *r, const struct hg_table *t, size_t at,
                      const struct hg_plot_runs *runs, struct hg_plot *p)
{
    const struct hg_point *point = &t->points[at];
    struct hg_plot_series *s = hg_plot_find_series(p, "runs");
    const struct hg_estimate *e = &point->value;
    double y = (double)p->bar_labels.n;
    struct hg_buf label = HG_BUF_INIT;
    const struct hg_report_entry *run;

    hg_point_label(r, t, at, HG_LABEL_PLACE, &label);
    *HG_VEC_PUSH(&p->bar_labels) = hg_buf_detach(&label);
    hg_plot_put(p, s,
                (struct hg_plot_point){ .x = e->value,
                                        .y = y,
                                        .low = e->has_interval ? e->low : NAN,
                                        .high = e->has_interval ? e->high : NAN });
    for (size_t i = 0; i < HG_PLOT_DOTS_MAX && (run = hg_plot_entry(r, runs, point->config, i));
         i++)
        hg_plot_put_dot(s, run->value, y, r, run);
}

/* Why there is no picture of runs for most tables: one run each. */
static bool has_repeats(const struct hg_table *t)
{
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++)
        if (t->points[i].n > 1)
            return true;
    return false;
}

void hg_plot_add_strips(const struct hg_report *r, size_t table, const struct hg_plot_runs *runs,
                        struct hg_plots *plots)
{
    const struct hg_table *t = &r->tables.items[table];
    struct hg_buf title = HG_BUF_INIT;
    bool repeats = has_repeats(t);
    struct hg_plot *p;
    size_t places = 0;

    hg_section_title(r, HG_SECTION_VALUE, &title);
    p = hg_plot_add(r, table, HG_PLOT_RUNS, "runs", hg_buf_str(&title), "", plots);
    p->bars = p->strips = p->marks = true;
    p->seconds = r->kind == HG_METRIC_TIME;
    for (size_t i = 0; i < t->n_rows * t->n_columns && repeats; i++)
        if (t->points[i].n && isfinite(t->points[i].value.value) && places++ < STRIPS_MAX)
            add_strip(r, t, i, runs, p);
    hg_buf_clear(&title);
    hg_buf_printf(&title, "dots: single runs; mark: their %s and its %.0f %% interval",
                  hg_statistic_words[r->statistic], 100 * HG_STATS_LEVEL);
    if (places > STRIPS_MAX)
        hg_buf_printf(&title, "; the first %d of %zu places", STRIPS_MAX, places);
    hg_plot_note(p, hg_buf_str(&title));
    hg_buf_done(&title);
}
