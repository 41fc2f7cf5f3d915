/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLOT_CURVES_H
#define HG_PLOT_CURVES_H

#include "plot/plot.h"
#include "plot/runs.h"

/* Pictures of curves and points. Each adds one picture of a table, perhaps without a point. */

/* HG_PLOT_SPEEDUP or HG_PLOT_EFFICIENCY against devices in units of the baseline's: the ideal speedup is the diagonal. Dots are
 * single runs, each in the place of the value that the speedup was computed from. */
void hg_plot_add_scaling(const struct hg_report *r, size_t table, enum hg_plot_kind kind,
                         const struct hg_plot_runs *runs, struct hg_plots *plots);

/* HG_PLOT_LOSS: the first run of each place that counts, against steps if any run has them, else against epochs. */
void hg_plot_add_loss(const struct hg_report *r, size_t table, const struct hg_plot_runs *runs,
                      struct hg_plots *plots);

/* HG_PLOT_COST: device-hours against the metric. */
void hg_plot_add_cost(const struct hg_report *r, size_t table, struct hg_plots *plots);

#endif
