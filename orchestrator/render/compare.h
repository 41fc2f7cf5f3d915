/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_COMPARE_H
#define HG_RENDER_COMPARE_H

#include "analysis/compare.h"
#include "base/buf.h"

/* Append a comparison as text, 80 columns wide. */
void hg_compare_text(const struct hg_compare *c, struct hg_buf *out);

/* Append it as JSON, "schema": "hpcgrid-compare/1". */
void hg_compare_json(const struct hg_compare *c, struct hg_buf *out);

#endif
