/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLOT_PLOT_PARTS_H
#define HG_PLOT_PLOT_PARTS_H

#include "plot/plot.h"

/* Inside of hg_plots_build: what its files share. */

/* Results that count, by config. */
struct hg_plot_runs {
    size_t *begin;   /* by config: from entries + begin[c] to entries + begin[c + 1] */
    size_t *entries; /* of the report */
    size_t n_configs;
    double *room; /* as many numbers as the largest config has runs */
};

int hg_plot_runs_find(const struct hg_report *r, struct hg_plot_runs *runs);
void hg_plot_runs_done(struct hg_plot_runs *runs);

/* Run i of a config that counts; NULL: it has no more. HG_MAP_NONE as config has none. */
const struct hg_result *hg_plot_run(const struct hg_report *r, const struct hg_plot_runs *runs,
                                    size_t config, size_t i);

/* An empty picture at the end; NULL when memory is gone. */
struct hg_plot *hg_plot_add(const struct hg_report *r, size_t table, enum hg_plot_kind kind,
                            const char *what, const char *x_title, const char *y_title,
                            struct hg_plots *plots);

/* The series of this name, made if there is none; NULL when memory is gone (p is marked failed). */
struct hg_plot_series *hg_plot_find_series(struct hg_plot *p, const char *label);

/* Put a point into a series (NULL: nowhere); takes its label over. */
void hg_plot_put(struct hg_plot *p, struct hg_plot_series *s, struct hg_plot_point point);

void hg_plot_note(struct hg_plot *p, const char *text);

/* plot_bars.c: HG_PLOT_TIME, HG_PLOT_MEMORY. */
int hg_plot_add_bars(const struct hg_report *r, size_t table, enum hg_plot_kind kind,
                     const struct hg_plot_runs *runs, struct hg_plots *plots);

#endif
