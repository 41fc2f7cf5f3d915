/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_REPORT_H
#define HG_MATRIX_REPORT_H

#include "base/json.h"
#include "matrix/matrix.h"

/* The "report" of a matrix: the tables to make. */
extern const struct hg_field hg_report_fields[];

/* Check it: members, keys that no cell has, the selector. Problems are added to errs. */
void hg_report_check(const struct hg_matrix *m, struct hg_errs *errs);

#endif
