/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_SHEET_H
#define HG_ANALYSIS_SHEET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "analysis/style.h"

/* A plain table: lines of words, set in columns when all of them are known. The first line is the
 * header. Words are cleaned when they are written, not before. */
struct hg_sheet {
    char **words; /* n_columns to a line */
    size_t n, cap, n_columns;
    bool failed; /* memory is gone */
};

/* Put a word behind the others; hg_sheet_take empties the buffer. */
void hg_sheet_put(struct hg_sheet *s, const char *word);
void hg_sheet_take(struct hg_sheet *s, struct hg_buf *word);

/* Text: words to the right but in the columns named by the mask `left` (bit k: column k). */
void hg_sheet_text(const struct hg_sheet *s, unsigned long left, struct hg_buf *out);
void hg_sheet_md(const struct hg_sheet *s, unsigned long left, struct hg_buf *out);
void hg_sheet_csv(const struct hg_sheet *s, const struct hg_style *style, struct hg_buf *out);

void hg_sheet_done(struct hg_sheet *s);

#endif
