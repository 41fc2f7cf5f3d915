/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_SENTENCES_H
#define HG_RENDER_SENTENCES_H

#include "analysis/report.h"
#include "base/buf.h"

/* Sentences about a report, the same in every form for people. Each is appended. */

/* "15 of 16 cells complete" or "partial: 15 of 16 cells complete (1 failed)". */
void hg_completeness_format(const struct hg_report *r, struct hg_buf *out);

/* "train_s: geometric mean of 3 of 3 runs, ± is the 95 % interval; lower is better" */
void hg_method_format(const struct hg_report *r, struct hg_buf *out);

/* "speedup and efficiency against nodes=1 strategy=single"; nothing if no table has a speedup. */
void hg_baseline_format(const struct hg_report *r, struct hg_buf *out);

/* "hardware=a100 epochs=15": the values that all cells share; nothing if there are none. */
void hg_common_format(const struct hg_report *r, struct hg_buf *out);

/* Where the figures come from, one line each: "source: ...", "note: ..." of every set that says so (with its label if there are
 * several), and "hpcgrid 1.2.3" with the time of the measurements where it is known. */
void hg_origin_format(const struct hg_report *r, struct hg_buf *out);

/* A member of a set at its top level that is a text with something in it; NULL. Lent. */
const char *hg_set_text(const struct hg_results *set, const char *member);

#define HG_MADE_BY "hpcgrid " HPCGRID_VERSION

#endif
