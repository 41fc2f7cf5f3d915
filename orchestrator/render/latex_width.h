/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_LATEX_WIDTH_H
#define HG_RENDER_LATEX_WIDTH_H

#include "base/buf.h"

/* How wide text will be in LaTeX: in points of Computer Modern Roman at 10 pt, from its font metrics (cmr10.tfm). */

/* The column of a two-column article at 10 pt, the narrowest of the usual classes (IEEEtran 252, acmart 241): every other has more. */
#define HG_LATEX_COLUMN_PT 229

/* A plain text (not LaTeX's). */
double hg_latex_width(const char *text);

/* Append a text in lines one above the other, each as narrow as its words allow, if it is wider than `room`: "\shortstack{...}".
 * side: 'l' or 'r', where the lines begin or end; 'c' their middle. Returns how wide it is. */
double hg_latex_stack(const char *text, double room, char side, struct hg_buf *out);

#endif
