/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLOT_TRACK_H
#define HG_PLOT_TRACK_H

#include "analysis/history.h"
#include "plot/plot.h"

/* Append a picture of a history: the cells of one table over the sets, as speeds in units of their first level (or that of the baseline
 * run), with the interval of each set's repeats. None if no cell has two values. */
void hg_plot_tracks(const struct hg_history *h, size_t table, struct hg_plots *plots);

#endif
