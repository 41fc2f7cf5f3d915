/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLOT_GNUPLOT_H
#define HG_PLOT_GNUPLOT_H

#include "base/err.h"
#include "plot/plot.h"

/* Pictures in files, drawn by gnuplot 5.4 or later from a script that also holds the data. Texts of the report stand in it as
 * strings in which everything that gnuplot could take for more than text is an octal escape; data are numbers only. */

/* Append the script. terminal: "svg", "png" or "pdf". output: the file that the script writes to; NULL: standard output. */
void hg_plot_gnuplot(const struct hg_plot *p, const char *terminal, const char *output,
                     struct hg_buf *out);

/* Draw with gnuplot, append the file's bytes: the same picture gives the same bytes. ENV with a hint if gnuplot is missing or
 * fails. */
int hg_plot_draw(const struct hg_plot *p, const char *terminal, struct hg_buf *out,
                 struct hg_err *err);

#endif
