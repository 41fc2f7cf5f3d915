/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_SERIES_H
#define HG_ANALYSIS_SERIES_H

#include "analysis/builder.h"

/* Find the scaling curves of a table (points that differ only in their number of devices), fit the laws of scaling to them, and
 * predict the next step (laws.h). After points and notes: points that are oversubscribed or not comparable with their baseline are left
 * out. */
void hg_series_fit(struct hg_builder *b, struct hg_table *t);

/* Add the listings of a table's series, if it has any: "scaling" (what is held constant, serial fractions, what is withheld and why),
 * and those of laws.h. */
void hg_series_list(const struct hg_report *r, struct hg_table *t);

#endif
