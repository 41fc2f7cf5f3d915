/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/groups.h"

#include "base/map.h"

void hg_groups_sort(const size_t *of_item, size_t n, size_t n_groups, size_t *begin, size_t *items)
{
    for (size_t i = 0; i < n; i++)
        if (of_item[i] != HG_MAP_NONE)
            begin[of_item[i] + 2]++;
    for (size_t g = 2; g < n_groups + 2; g++)
        begin[g] += begin[g - 1];
    for (size_t i = 0; i < n; i++)
        if (of_item[i] != HG_MAP_NONE)
            items[begin[of_item[i] + 1]++] = i;
}
