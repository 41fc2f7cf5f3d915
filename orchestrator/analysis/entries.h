/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_ENTRIES_H
#define HG_ANALYSIS_ENTRIES_H

#include "analysis/builder.h"
#include "results/moments.h"

/* Fill the report's entries with one result of each cell, mark those that `where` shows, choose the metric and measure them; set
 * frame, labels, title, states and currency. Returns 0, or -1 with errs filled. */
int hg_entries_list(struct hg_builder *b);

/* A published mean as the runs that it stands for, with the standard deviation that was published of the metric. */
struct hg_moments hg_entry_moments(const struct hg_report *r, const struct hg_report_entry *e);

#endif
