/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_POINTS_H
#define HG_ANALYSIS_POINTS_H

#include "analysis/builder.h"

/* Compute the figures of a table's places: the median of their runs, and speedup, efficiency and serial fraction against their
 * baselines. Formulas: reports/README.md. */
void hg_points_fill(struct hg_builder *b, struct hg_table *t);

#endif
