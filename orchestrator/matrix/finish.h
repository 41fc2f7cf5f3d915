/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_FINISH_H
#define HG_MATRIX_FINISH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "matrix/cell.h"
#include "matrix/grid.h"

/* From what the axes gave to a whole cell: defaults, derive, exclude, and whether it can run. */
struct hg_finisher;

/* What became of a cell. Lent until the next call. */
struct hg_outcome {
    enum hg_cell_fate fate; /* RUNS, SKIPPED or EXCLUDED */
    int rule;               /* EXCLUDED: which */
    const char *why;        /* SKIPPED: the reason, else NULL */
};

/* Borrows m. */
struct hg_finisher *hg_finisher_create(const struct hg_matrix *m);
void hg_finisher_free(struct hg_finisher *f);

/* values holds the cell as it left the repeats; it is completed in place. Returns 0, or -1 with an
 * error added: an expression failed or gave a value that its key cannot have. */
int hg_finish(struct hg_finisher *f, hg_value *values, struct hg_outcome *out,
              struct hg_errs *errs);

/* Was this column filled by its formula in the last cell? */
bool hg_finish_derived(const struct hg_finisher *f, int column);

/* How many cells each derive rule filled so far. */
const uint64_t *hg_finish_uses(const struct hg_finisher *f);

#endif
