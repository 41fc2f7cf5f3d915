/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLOT_LAYOUT_H
#define HG_PLOT_LAYOUT_H

#include "base/buf.h"
#include "plot/plot.h"

/* How much room the texts of a picture take, before anything is drawn: the same estimate decides margins, cuts and the legend, for every
 * way of drawing. Widths are those of DejaVu Sans, the widest of the usual sans-serif fonts, so that no text is clipped in another. */

/* Width of a text in em, the size of its font. */
double hg_plot_text_em(const char *text);

/* Append the text, without control characters; if it is wider than em with "…" in its middle: names often begin alike. */
void hg_plot_text_fit(const char *text, double em, struct hg_buf *out);

/* Widest of the axis's tick labels, and of the last one; 0: none. */
double hg_plot_ticks_em(const struct hg_plot_axis *a);
double hg_plot_last_tick_em(const struct hg_plot_axis *a);

/* Widest label of the series, or of the bars. */
double hg_plot_series_em(const struct hg_plot *p);
double hg_plot_bars_em(const struct hg_plot *p);

/* Every how manieth tick label can stand on an axis so long (em) without touching the next. */
size_t hg_plot_tick_stride(const struct hg_plot_axis *a, double em);

/* How a series is drawn: no two of the first HG_PLOT_LOOKS have the same shape and dash, neighbours differ in both, so that colour is
 * never all that tells series apart. */
#define HG_PLOT_COLOURS 8
#define HG_PLOT_SHAPES 8
#define HG_PLOT_DASHES 4
#define HG_PLOT_LOOKS (HG_PLOT_SHAPES * HG_PLOT_DASHES)

struct hg_plot_look {
    size_t colour, shape, dash;
};
struct hg_plot_look hg_plot_look(size_t series);

#endif
