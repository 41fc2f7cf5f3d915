/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLOT_DETAILS_H
#define HG_PLOT_DETAILS_H

#include "plot/plot.h"

/* Set which points are marked, how far series are moved apart, and what every point says for itself, once the ranges are known. */
void hg_plot_detail(const struct hg_style *style, struct hg_plot *p);

/* A value that stands so far (a share of the axis) behind v. */
double hg_plot_moved(const struct hg_plot_axis *a, double v, double share);

#endif
