/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_CONFIGURATIONS_H
#define HG_ANALYSIS_CONFIGURATIONS_H

#include "analysis/builder.h"

/* Group the entries into configurations, and find each one's baseline: by the id that the result names, else by lookup, with the
 * baseline's members as overrides of the cell. Returns 0, or -1 with errs filled: a baseline has a key that no cell has. */
int hg_configurations_find(struct hg_builder *b);

#endif
