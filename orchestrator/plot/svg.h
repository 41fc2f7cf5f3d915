/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLOT_SVG_H
#define HG_PLOT_SVG_H

#include "plot/plot.h"

/* Append a picture as an <svg> element for a page, with a title and a description for screen readers. Its colours are those of
 * the page's style, .c0 to .c7 (light, dark, print). `id` makes the ids in it different from those of other pictures. */
void hg_plot_svg(const struct hg_plot *p, size_t id, struct hg_buf *out);

#endif
