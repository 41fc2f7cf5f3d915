/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_TYPESET_ESCAPE_H
#define HG_TYPESET_ESCAPE_H

#include "base/buf.h"
#include "typeset/style.h"

/* Append text so that nothing in it is markup. */

/* Markdown, in a cell of a table: control characters become "?". */
void hg_md_append(const char *text, struct hg_buf *out);

/* HTML and XML, as text or inside of "...". */
void hg_html_append(const char *text, struct hg_buf *out);

/* A path for href: every byte but letters, digits and "-._~/" becomes %XX, so a colon does not make a scheme of it; "//host"
 * stays a path. */
void hg_href_append(const char *path, struct hg_buf *out);

/* LaTeX, outside of math. Letters that are not Latin need a TeX that knows them (lualatex). */
void hg_latex_append(const char *text, struct hg_buf *out);

/* What stands between two fields: ",", or ";" where a comma is the decimal sign. */
const char *hg_csv_separator(const struct hg_style *style);

/* A CSV field (RFC 4180); what a spreadsheet would take for a formula gets an apostrophe in front. A
 * number stays a number. */
void hg_csv_append(const struct hg_style *style, const char *text, struct hg_buf *out);

/* A text that must stay one: with an apostrophe in front where pandas or R would read a number ("1.10", "007"), a truth or
 * nothing ("NA"). */
void hg_csv_append_text(const struct hg_style *style, const char *text, struct hg_buf *out);

/* A number with all its digits; nothing for NaN and infinity. */
void hg_csv_append_number(const struct hg_style *style, double v, struct hg_buf *out);

/* The same of a time in seconds, which may be written as a duration. */
void hg_csv_append_seconds(const struct hg_style *style, double s, struct hg_buf *out);

#endif
