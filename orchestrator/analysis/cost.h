/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_COST_H
#define HG_ANALYSIS_COST_H

#include "analysis/builder.h"

/* Compute what each place cost, once its points are filled: device-hours, energy if it was measured, money if the hardware has a
 * price; and samples per second. */
void hg_cost_fill(struct hg_builder *b, struct hg_table *t);

/* Add the listing "cost" to a table, if there are prices or energies, or if the options request it. */
void hg_cost_list(struct hg_builder *b, struct hg_table *t);

/* Add the listing "spent" to the report: what all attempts cost, including failed ones, by hardware. After the tables' costs. */
void hg_cost_list_spent(struct hg_builder *b);

#endif
