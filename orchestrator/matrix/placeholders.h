/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_PLACEHOLDERS_H
#define HG_MATRIX_PLACEHOLDERS_H

#include "base/err.h"
#include "matrix/matrix.h"

/* Does each {{key}} of the workload name a key that some cell has? Problems are added to errs. */
void hg_placeholders_check(const struct hg_matrix *m, struct hg_errs *errs);

#endif
