/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_BEST_H
#define HG_ANALYSIS_BEST_H

#include "analysis/builder.h"

/* Add the listing "best" to a table: the best strategy of each case (or the best column, if no strategy varies), and whether its
 * interval tells it from the next one. After points and decimals. */
void hg_best_list(struct hg_builder *b, struct hg_table *t);

#endif
