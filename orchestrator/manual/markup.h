/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MANUAL_MARKUP_H
#define HG_MANUAL_MARKUP_H

#include <stdbool.h>

#include "base/buf.h"

/* The Markdown of the repository's pages for a terminal or for man(1): headings, paragraphs, lists, tables (a row becomes an
 * entry: the first cell, what stands between, the last cell), indented and fenced code, `code`, **bold** and links, of which
 * the text stays. */
enum hg_markup_form { HG_MARKUP_TEXT, HG_MARKUP_MAN };

#define HG_MARKUP_COLUMNS 79 /* of text */

/* Append a page, or a part of one. */
void hg_markup_append(const char *page, enum hg_markup_form form, struct hg_buf *out);

/* Append the sections of a page from the heading `first` to `last` (NULL: only that one); first NULL: all but the page's title,
 * and with last "" only what stands before the first of them.
 * False if the page has no such heading. */
bool hg_markup_sections(const char *page, const char *first, const char *last,
                        enum hg_markup_form form, struct hg_buf *out);

/* Append a text so that man(1) shows it as it is; at: the text is at the beginning of a line. */
void hg_markup_roff(const char *text, bool at, struct hg_buf *out);

#endif
