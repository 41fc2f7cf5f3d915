/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLOT_BARS_H
#define HG_PLOT_BARS_H

#include "plot/plot.h"
#include "plot/runs.h"

/* Add a picture of stacked bars, one for each place of a table: HG_PLOT_TIME (what a training's time went to) or HG_PLOT_MEMORY
 * (peak bytes of each class). Each part is the report's statistic over the runs that count. */
void hg_plot_add_bars(const struct hg_report *r, size_t table, enum hg_plot_kind kind,
                      const struct hg_plot_runs *runs, struct hg_plots *plots);

#endif
