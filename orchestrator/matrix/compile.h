/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_COMPILE_H
#define HG_MATRIX_COMPILE_H

#include "base/err.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"

/* Compile a matrix whose members are decoded. Every problem goes to errs; what could be read is given
 * all the same, so that names can be looked up for further messages. */
struct hg_grid *hg_grid_compile(const struct hg_matrix *m, struct hg_errs *errs);

#endif
