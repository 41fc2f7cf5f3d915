/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_FIGURES_H
#define HG_ANALYSIS_FIGURES_H

#include "analysis/report.h"
#include "base/buf.h"

/* The figures of a table as text. A table has up to three sections, one below the other with the same rows and columns. */

enum hg_section { HG_SECTION_VALUE, HG_SECTION_SPEEDUP, HG_SECTION_EFFICIENCY, HG_SECTIONS };

/* Does the table have a figure in this section? */
bool hg_section_exists(const struct hg_table *t, enum hg_section section);

/* Append "train_s, seconds", "speedup", "efficiency". */
void hg_section_title(const struct hg_report *r, enum hg_section section, struct hg_buf *out);

/* Set the decimals of a table's values and speedups, once all its points are known: four significant digits of the smallest
 * figure, three if every interval is wider than 1 %; or as the report's style says. */
void hg_figures_settle(const struct hg_report *r, struct hg_table *t);

/* Decimals of all figures of a section: their points stand below each other. */
int hg_section_decimals(const struct hg_table *t, enum hg_section section);

/* The figure of a place with all its digits; NaN: none. */
double hg_section_value(const struct hg_point *p, enum hg_section section);

/* A place of a table: "12.34" and "±4 %", each "" if there is none. A place whose cells do not count has the state as its
 * number; a place without cells has nothing. */
struct hg_figure {
    char number[40];
    char spread[16];
};
void hg_figure_format(const struct hg_report *r, const struct hg_point *p, enum hg_section section,
                      int decimals, struct hg_figure *figure);

/* Append "¹" for note 0. */
void hg_mark_format(size_t number, struct hg_buf *out);

/* Append " ¹ ²", the marks of a place's notes. */
void hg_marks_format(const struct hg_point *p, struct hg_buf *out);

#endif
