/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_REPORT_ESCAPE_H
#define HG_REPORT_ESCAPE_H

#include "base/buf.h"

/* Append text so that nothing in it is markup. */

/* Markdown, in a cell of a table: control characters become "?". */
void hg_md_append(const char *text, struct hg_buf *out);

/* A CSV field (RFC 4180); what a spreadsheet would take for a formula gets an apostrophe in front. A
 * number stays a number. */
void hg_csv_append(const char *text, struct hg_buf *out);

#endif
