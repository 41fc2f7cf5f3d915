/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_ROW_H
#define HG_MATRIX_ROW_H

#include <stdint.h>

#include "base/words.h"
#include "matrix/matrix.h"

/* A row of a matrix: one cell of `axes` or of an entry of `include`, before repeats. */
struct hg_row {
    size_t source; /* of the grid */
    uint64_t rank; /* within the source */
};

/* Pointers to what the row is made of, as far as it differs from another: "/axes/nodes/2", "/include/1". Appended to out. */
void hg_row_name(const struct hg_matrix *m, const struct hg_row *row, const struct hg_row *other,
                 struct hg_words *out);

#endif
