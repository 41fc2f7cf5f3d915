/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_HISTORY_H
#define HG_RENDER_HISTORY_H

#include "analysis/history.h"
#include "base/buf.h"
#include "render/verdicts.h"

/* Append a history: text is 80 columns wide, JSON "schema": "hpcgrid-history/1", HTML has pictures. */
void hg_history_write(const struct hg_history *h, enum hg_verdict_form form, struct hg_buf *out);

#endif
