/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_FATE_H
#define HG_MATRIX_FATE_H

#include <stdbool.h>

#include "matrix/grid.h"
#include "matrix/site.h"

/* Can a cell run on its hardware, with its strategy? */
struct hg_fates;

/* Borrows g. worker: the program is hpcgrid-worker. */
struct hg_fates *hg_fates_create(const struct hg_grid *g, bool worker);
void hg_fates_free(struct hg_fates *f);

/* Why one of several sites cannot have this cell at all, whatever its formulas give: its hardware, its container; else NULL. */
const char *hg_fate_why_not_at(struct hg_fates *f, const struct hg_site *site,
                               const hg_value *values);

/* Why this cell can never run; NULL if it can. Lent until the next call. */
const char *hg_fate_why_not(struct hg_fates *f, const struct hg_hardware *hw,
                            const hg_value *values);

#endif
