/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLOT_AXES_H
#define HG_PLOT_AXES_H

#include "plot/plot.h"

/* Set ranges, ticks and places of labels, once a picture's points are there. */
void hg_plot_settle(const struct hg_style *style, struct hg_plot *p);

#endif
