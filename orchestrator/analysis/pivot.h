/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_PIVOT_H
#define HG_ANALYSIS_PIVOT_H

#include "analysis/builder.h"

/* Arrange the entries that are shown as tables: rows, columns, and the configuration of each place, whose figures are not there
 * yet. Set the report's usual number of runs, too. */
void hg_pivot_arrange(struct hg_builder *b);

#endif
