/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_TYPESET_PLAIN_H
#define HG_TYPESET_PLAIN_H

#include <stddef.h>

#include "base/buf.h"

/* Append a text whose control characters and the like (hg_text_control) became "?": a name cannot rearrange what stands beside it.
 * Cut to at most `columns` columns, with "…" at the end; 0: not cut. */
void hg_clean_append(const char *text, size_t columns, struct hg_buf *out);

/* End a line. Trailing blanks are removed: they are invisible and make files differ. */
void hg_line_end(struct hg_buf *out);

/* Append the words of a text and an end of line, broken at blanks to fit the width (a longer word anywhere). Later lines are
 * indented. `at`: columns of the first line that are in use already. */
void hg_wrapped_append(const char *text, size_t width, size_t indent, size_t at,
                       struct hg_buf *out);

#endif
