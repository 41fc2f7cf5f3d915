/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_LABELS_H
#define HG_ANALYSIS_LABELS_H

#include "analysis/report.h"
#include "base/buf.h"

/* What places, series and tables are called. */

/* Which part of a place's keys makes the label. */
enum hg_label {
    HG_LABEL_SHAPE,  /* "2×1": on how many devices; "" if all places agree in that */
    HG_LABEL_CASE,   /* "ddp lr=0.1": the rest */
    HG_LABEL_PLACE,  /* "ddp lr=0.1 2×1" */
    HG_LABEL_SERIES, /* the case without notes, and under weak scaling without the work */
};

/* Append what one cell is called: "ddp 2x2 lr=0.1, run 3". e is one of r's entries. */
void hg_entry_name(const struct hg_report *r, const struct hg_report_entry *e, struct hg_buf *out);

/* Replaces the text in out; "all" for a case without keys. */
void hg_point_label(const struct hg_report *r, const struct hg_table *t, size_t point,
                    enum hg_label what, struct hg_buf *out);

/* Append "nodes=2 strategy=ddp": the keys that tell the rows of all tables apart; "all" without any. */
void hg_row_label(const struct hg_report *r, const struct hg_table *t, size_t row,
                  struct hg_buf *out);

/* Append the label of a column, "ddp lr=0.1": words as they are, numbers with their key, "–" for absence. */
void hg_column_label(const struct hg_report *r, const struct hg_table *t, size_t column,
                     struct hg_buf *out);

/* Append "epochs=15", or "no epochs" for a value "". */
void hg_member_append(const char *name, const char *value, struct hg_buf *out);

/* Append "epochs=15 no fsdp_wrap": the values that the cells of a table share; nothing if the table is the only one. */
void hg_table_title(const struct hg_report *r, const struct hg_table *t, struct hg_buf *out);

#endif
