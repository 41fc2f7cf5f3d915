/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_TYPESET_CLEAN_H
#define HG_TYPESET_CLEAN_H

#include <stddef.h>

#include "base/buf.h"

/* Append a text whose control characters, and characters that change the direction of writing, became "?": a name cannot
 * rearrange what stands beside it. Cut to at most `columns` columns, with "…" at the end; 0: not cut. */
void hg_clean_append(const char *text, size_t columns, struct hg_buf *out);

#endif
