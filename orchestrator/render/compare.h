/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_COMPARE_H
#define HG_RENDER_COMPARE_H

#include "analysis/compare.h"
#include "base/buf.h"
#include "render/verdicts.h"

/* Append a comparison: text is 80 columns wide, JSON "schema": "hpcgrid-compare/1". */
void hg_compare_write(const struct hg_compare *c, enum hg_verdict_form form, struct hg_buf *out);

#endif
