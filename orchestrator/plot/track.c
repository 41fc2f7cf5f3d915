/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/track.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "analysis/labels.h"
#include "plot/axes.h"

#define TABLES_MAX 8 /* a page stays one that opens at once */
#define TICK_MAX 8   /* columns of a run's name below the axis; longer ones stay numbers */

static void put_cell(const struct hg_history *h, const struct hg_history_cell *c, struct hg_plot *p)
{
    double reference = log(c->levels[h->baseline == SIZE_MAX ? 0 : h->baseline]);
    double sign = h->report->higher_is_better ? 1 : -1;
    struct hg_buf label = HG_BUF_INIT;
    struct hg_plot_series *s;

    hg_row_label(h->report, c->table, c->row, &label);
    s = hg_plot_find_series(p, hg_buf_str(&label));
    for (size_t i = 0; i < c->track.n; i++) {
        struct hg_moments b = c->moments[i];
        struct hg_estimate e;

        if (b.n == 0)
            continue;
        b.mean = sign * (b.mean - reference);
        e = hg_moments_estimate(&b);
        hg_plot_put(p, s,
                    (struct hg_plot_point){ .x = (double)i + 1,
                                            .y = e.value,
                                            .low = e.has_interval ? e.low : NAN,
                                            .high = e.has_interval ? e.high : NAN });
    }
    hg_buf_done(&label);
}

/* The runs' names instead of their numbers, where they are short. */
static void name_ticks(const struct hg_report *r, struct hg_plot_axis *x)
{
    for (size_t i = 0; i < x->ticks.n; i++) {
        struct hg_plot_tick *tick = &x->ticks.items[i];
        size_t set = (size_t)tick->at;
        const char *slash;

        if (set < 1 || set > r->n_sets) {
            *tick->label = '\0';
            continue;
        }
        slash = strrchr(r->labels[set - 1], '/');
        if (slash && strlen(slash + 1) <= TICK_MAX)
            snprintf(tick->label, sizeof tick->label, "%s", slash + 1);
    }
}

static void draw_table(const struct hg_history *h, size_t table, struct hg_plots *plots)
{
    const struct hg_report *r = h->report;
    char *title =
        hg_str_printf("speed, 1 = %s", h->baseline == SIZE_MAX ? "first" : r->labels[h->baseline]);
    struct hg_plot *p = hg_plot_add(r, table, HG_PLOT_LOSS, "over time", "set", title, plots);

    /* All sets' names would be a title of many lines. */
    free(p->title);
    free(p->name);
    p->title = hg_str_printf("%s to %s: over time", r->labels[0], r->labels[r->n_sets - 1]);
    p->name = r->tables.n > 1 ? hg_str_printf("history-%zu", table + 1) : hg_strdup("history");
    p->lines = p->marks = true;
    for (int steady = 0; steady <= 1; steady++) /* what changed first: not every cell may fit */
        for (size_t i = 0; i < h->cells.n; i++) {
            const struct hg_history_cell *c = &h->cells.items[i];

            if (c->table == &r->tables.items[table] && (c->track.shifts.n == 0) == steady)
                put_cell(h, c, p);
        }
    free(title);
    hg_plot_drop_empty(p);
    hg_plot_limit(p, HG_PLOT_SERIES_MAX);
    if (p->series.n == 0) {
        hg_plots_drop_last(plots);
        return;
    }
    hg_plot_settle(&r->style, p);
    name_ticks(r, &p->x);
}

void hg_plot_tracks(const struct hg_history *h, struct hg_plots *plots)
{
    for (size_t t = 0; t < h->report->tables.n && t < TABLES_MAX; t++)
        draw_table(h, t, plots);
}
