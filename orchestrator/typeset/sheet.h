/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_TYPESET_SHEET_H
#define HG_TYPESET_SHEET_H

#include <stddef.h>

#include "base/buf.h"
#include "typeset/style.h"

/* A plain table: lines of words, aligned in columns once all of them are known. The first line is the header. Words are cleaned
 * when they are written. */
struct hg_sheet {
    char **items; /* words, n_columns to a line */
    size_t n, cap, n_columns;
    unsigned long left;           /* bit k: column k is left-aligned in text and Markdown */
    const struct hg_style *style; /* of CSV; lent */
};

/* Append a word; hg_sheet_take empties the buffer. */
void hg_sheet_put(struct hg_sheet *s, const char *word);
void hg_sheet_take(struct hg_sheet *s, struct hg_buf *word);

#define HG_SHEET_GAP 2 /* columns between two words of a line */

/* The width of each column in text; free() it. */
size_t *hg_sheet_widths(const struct hg_sheet *s);

/* Append a line of text: the first `keys` columns, then those from..to. */
void hg_sheet_line(const struct hg_sheet *s, const size_t *widths, size_t line, size_t keys,
                   size_t from, size_t to, struct hg_buf *out);

/* Append the sheet in one of these forms. */
void hg_sheet_text(const struct hg_sheet *s, struct hg_buf *out);
void hg_sheet_md(const struct hg_sheet *s, struct hg_buf *out);
void hg_sheet_csv(const struct hg_sheet *s, struct hg_buf *out);

void hg_sheet_done(struct hg_sheet *s);

#endif
