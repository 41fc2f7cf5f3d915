/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_SENTENCES_H
#define HG_RENDER_SENTENCES_H

#include "analysis/report.h"
#include "base/buf.h"

/* Sentences about a report, the same in every form for people. Each is appended. */

/* "15 of 16 cells complete" or "partial: 15 of 16 cells complete (1 failed); 2 more cannot run; 1 is no longer in the matrix". */
void hg_completeness_format(const struct hg_report *r, struct hg_buf *out);

/* "train_s: geometric mean of 3 of 3 runs, ± is the 95 % interval; lower is better" */
void hg_method_format(const struct hg_report *r, struct hg_buf *out);

/* The same of `compare` and `history`, whose figures are geometric means. */
void hg_geometric_format(const struct hg_report *r, struct hg_buf *out);

/* "speedup and efficiency against nodes=1 strategy=single"; nothing if no table has a speedup. */
void hg_baseline_format(const struct hg_report *r, struct hg_buf *out);

/* "code under test: A 33ac97501f, B 12ab34cd56-dirty", the first n_a sets are A; nothing if no set's is known. */
void hg_code_format(const struct hg_report *r, size_t n_a, struct hg_buf *out);

/* "hardware=a100 epochs=15": the values that all cells share; nothing if there are none. */
void hg_common_format(const struct hg_report *r, struct hg_buf *out);

/* Where the figures come from, one line each: "source: ...", "note: ..." of every set that says so (with its label if there are
 * several), and "hpcgrid 1.2.3" with the time of the measurements where it is known. */
void hg_origin_format(const struct hg_report *r, struct hg_buf *out);

/* A member of a set at its top level that is a text with something in it; NULL. Lent. */
const char *hg_set_text(const struct hg_results *set, const char *member);

#define HG_MADE_BY "hpcgrid " HPCGRID_VERSION

#endif
