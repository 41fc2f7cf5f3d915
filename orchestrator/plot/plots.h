/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLOT_PLOTS_H
#define HG_PLOT_PLOTS_H

#include "plot/plot.h"

/* Which pictures a table gives: the one place that calls the steps. curves.c and bars.c put points into a picture, axes.c settles
 * ranges, ticks and labels; svg.c or gnuplot.c draws the result. */

/* Kinds in a list of words, "speedup,loss" or "all", as bits 1 << kind. USAGE for an unknown one. */
int hg_plot_kinds_parse(const char *words, unsigned *kinds, struct hg_err *err);

/* What a kind needs, for messages if a report has nothing to draw. */
const char *hg_plot_needs(enum hg_plot_kind kind);

/* Append the pictures of these kinds for one table. A kind without data adds none. */
void hg_plots_build(const struct hg_report *r, size_t table, unsigned kinds,
                    struct hg_plots *plots);

#endif
