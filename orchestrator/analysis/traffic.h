/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_TRAFFIC_H
#define HG_ANALYSIS_TRAFFIC_H

#include "analysis/builder.h"

/* Add the listing "traffic" to a table, if the options request it: bytes sent, exposed communication, peak memory. */
void hg_traffic_list(struct hg_builder *b, struct hg_table *t);

#endif
