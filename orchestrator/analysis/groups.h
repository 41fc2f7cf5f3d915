/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_GROUPS_H
#define HG_ANALYSIS_GROUPS_H

#include <stddef.h>

/* Sort the items 0 to n - 1 by group (HG_MAP_NONE: of no group), within a group in their order: those of group g then stand
 * from items + begin[g] to items + begin[g + 1]. begin: n_groups + 2 zeros; items: room for n. */
void hg_groups_sort(const size_t *of_item, size_t n, size_t n_groups, size_t *begin, size_t *items);

#endif
