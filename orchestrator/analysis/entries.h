/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_ENTRIES_H
#define HG_ANALYSIS_ENTRIES_H

#include "analysis/builder.h"

/* Fill the report's entries with one result of each cell, mark those that `where` shows, choose the metric and measure them; set
 * frame, labels, title, states and currency. Returns 0, or -1 with errs filled. */
int hg_entries_list(struct hg_builder *b);

#endif
