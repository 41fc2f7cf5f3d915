/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_HISTORY_H
#define HG_RENDER_HISTORY_H

#include "analysis/history.h"
#include "base/buf.h"

/* Append a history as text. width: columns; 0: 80. */
void hg_history_text(const struct hg_history *h, size_t width, struct hg_buf *out);

/* Append it as JSON, "schema": "hpcgrid-history/1". */
void hg_history_json(const struct hg_history *h, struct hg_buf *out);

#endif
