/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_NOTES_H
#define HG_ANALYSIS_NOTES_H

#include "analysis/builder.h"

/* Write the footnotes of a table, once its points are filled: incomplete, oversubscribed, not comparable with the baseline, run on other
 * nodes, too good to be true. With `strict`, withhold the speedup of a place that is not comparable with its baseline. */
void hg_notes_write(struct hg_builder *b, struct hg_table *t);

#endif
