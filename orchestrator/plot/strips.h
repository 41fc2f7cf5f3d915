/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLOT_STRIPS_H
#define HG_PLOT_STRIPS_H

#include "plot/plot.h"
#include "plot/runs.h"

/* Add a picture of every run of each place, HG_PLOT_RUNS: dots, with the place's value and its interval. Without a point unless some place
 * has several runs. */
void hg_plot_add_strips(const struct hg_report *r, size_t table, const struct hg_plot_runs *runs,
                        struct hg_plots *plots);

#endif
