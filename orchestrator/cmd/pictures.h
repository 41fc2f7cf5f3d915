/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_PICTURES_H
#define HG_CMD_PICTURES_H

#include "analysis/report.h"
#include "plot/plot.h"

/* Draw the pictures of a report. kinds: "speedup,loss" or "all". formats: "svg,gp", of svg, png, pdf
 * (gnuplot draws) and gp (its script, which holds the data); NULL: what out's ending says, else svg.
 * out: a file with one of these endings, any other name is a folder (made if it is missing); NULL:
 * standard output. Returns 0 or -1 with errs filled. */
int hg_pictures_draw(const struct hg_report *r, const char *kinds, const char *formats,
                     const char *out, struct hg_errs *errs);

/* Draw pictures that are there already, in the format of out's ending; any other name is a folder for svg files. */
int hg_pictures_write(const struct hg_plots *plots, const char *out, struct hg_err *err);

#endif
