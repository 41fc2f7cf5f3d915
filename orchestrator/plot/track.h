/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLOT_TRACK_H
#define HG_PLOT_TRACK_H

#include "analysis/history.h"
#include "plot/plot.h"

/* Append the pictures of a history, one for each of the first tables: its cells over the sets, as speeds in units of their first level (or that of the baseline
 * run), with the interval of each set's repeats. A table without
 * any value has none. */
void hg_plot_tracks(const struct hg_history *h, struct hg_plots *plots);

#endif
