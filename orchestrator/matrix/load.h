/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_LOAD_H
#define HG_MATRIX_LOAD_H

#include "base/err.h"
#include "matrix/matrix.h"

/* Load and check a matrix: syntax, members, types, hardware, strategies, jq expressions. Every
 * problem is added to errs with its place. `site` overrides the matrix's own (a name or path; NULL:
 * none). NULL on failure. */
struct hg_matrix *hg_matrix_load(const char *path, const char *site, struct hg_errs *errs);
void hg_matrix_free(struct hg_matrix *m);

#endif
