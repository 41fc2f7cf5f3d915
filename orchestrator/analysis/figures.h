/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_FIGURES_H
#define HG_ANALYSIS_FIGURES_H

#include "base/buf.h"
#include "analysis/table.h"

/* Figures and sentences as people read them; shared by the renderers for people. */

enum hg_section { HG_SECTION_VALUE, HG_SECTION_SPEEDUP, HG_SECTION_EFFICIENCY, HG_SECTIONS };

/* Does the table have anything to show there? */
bool hg_section_exists(const struct hg_table *t, enum hg_section section);

/* "train_s, seconds", "speedup", "efficiency" */
void hg_section_title(const struct hg_report *r, enum hg_section section, struct hg_buf *out);

/* Decimals that all figures of a section share, so that their points stand below each other: enough
 * for four significant digits of the smallest, three where every interval is wider than 1 %. */
int hg_section_decimals(const struct hg_table *t, enum hg_section section);

/* A place of a table: "12.34" and "±4 %", each "" if there is none; a place whose cells do not count
 * has the state as its number, one without cells nothing at all. */
struct hg_figure {
    char number[40];
    char spread[16];
};
void hg_figure_format(const struct hg_report *r, const struct hg_point *p, enum hg_section section,
                      int decimals, struct hg_figure *figure);

/* What a place is called by. */
enum hg_label {
    HG_LABEL_SHAPE,  /* "2×1": on how many devices; "" if all places agree in that */
    HG_LABEL_CASE,   /* "ddp lr=0.1": the rest */
    HG_LABEL_PLACE,  /* "ddp lr=0.1 2×1" */
    HG_LABEL_SERIES, /* the case without notes, and under weak scaling without the work */
};

/* Replaces what is in out; "all" where there is nothing to say of a case. */
void hg_point_label(const struct hg_report *r, const struct hg_table *t, size_t point,
                    enum hg_label what, struct hg_buf *out);

/* Append " ¹ ²", the marks of a place's notes. */
void hg_marks_format(const struct hg_point *p, struct hg_buf *out);

/* Append "¹". */
void hg_mark_format(size_t number, struct hg_buf *out);

/* "15 of 16 cells complete" or "partial: 15 of 16 cells complete (1 failed)". */
void hg_completeness_format(const struct hg_report *r, struct hg_buf *out);

/* "train_s: median of 3 of 3 runs, ± is the 95 % interval; lower is better" */
void hg_method_format(const struct hg_report *r, struct hg_buf *out);

/* "speedup and efficiency against nodes=1 strategy=single"; "" where there is no speedup. */
void hg_baseline_format(const struct hg_report *r, struct hg_buf *out);

/* "hardware=a100 epochs=15": what all cells have in common; "" if nothing. */
void hg_common_format(const struct hg_report *r, struct hg_buf *out);

/* "epochs=15 no fsdp_wrap": what the cells of a table have in common; "" if it is the only one. */
void hg_table_title(const struct hg_report *r, const struct hg_table *t, struct hg_buf *out);

/* Append text with control characters and signs that turn the direction of writing as "?", cut to at
 * most `columns` columns (0: not cut). */
void hg_clean_append(const char *text, size_t columns, struct hg_buf *out);

/* End a line without blanks behind it: they are invisible and differ. */
void hg_line_end(struct hg_buf *out);

/* Append words of a text and an end of line, broken at blanks to fit the width (longer words anywhere);
 * later lines are indented. `at`: columns of the first line that are taken already. */
void hg_wrapped_append(const char *text, size_t width, size_t indent, size_t at,
                       struct hg_buf *out);

#endif
