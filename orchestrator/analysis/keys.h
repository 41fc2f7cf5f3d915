/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_KEYS_H
#define HG_ANALYSIS_KEYS_H

#include "analysis/builder.h"

/* Choose the keys of rows, columns and tables: as options or sets say, else from the cells. Keys that vary besides split the
 * report into tables; those with one value are common to all cells. Returns 0, or -1 with errs filled: no cell has a key, or it
 * is given twice. */
int hg_keys_choose(struct hg_builder *b);

/* The values that an entry has for some keys. */
void hg_keys_take(const struct hg_report *r, size_t entry, const size_t *keys, size_t n,
                  uint32_t *out);

#endif
