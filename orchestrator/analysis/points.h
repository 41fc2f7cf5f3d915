/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_POINTS_H
#define HG_ANALYSIS_POINTS_H

#include "analysis/builder.h"

/* Compute the figures of a table's places: the center of their runs, and speedup, efficiency and serial fraction against their
 * baselines. Formulas: reports/formulas.md. */
void hg_points_fill(struct hg_builder *b, struct hg_table *t);

/* Set the report's statistic, before any figure: the median if every place and every baseline has
 * HG_STATS_MEDIAN_MIN runs (or a value is not positive), else the geometric mean. */
void hg_points_choose_statistic(struct hg_builder *b);

#endif
