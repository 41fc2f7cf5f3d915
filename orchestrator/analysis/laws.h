/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_LAWS_H
#define HG_ANALYSIS_LAWS_H

#include "analysis/report.h"

/* Add the listings of a table's series: "scaling" (what is held constant, serial fractions), "laws" (the fitted laws) and
 * "predicted" (twice the devices), each if there is something to list. */
void hg_laws_list(const struct hg_report *r, struct hg_table *t);

#endif
