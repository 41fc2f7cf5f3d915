/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_TOGETHER_H
#define HG_MATRIX_TOGETHER_H

#include "matrix/matrix.h"

/* "together": which cells share a job and its nodes. A list of keys: those that differ in these keys only. A number: so many that
 * request the same, in the order of the matrix. */

#define HG_TOGETHER_MAX 1000

/* Does the matrix want cells to share jobs? */
bool hg_matrix_has_together(const struct hg_matrix *m);

/* Judge the type of the member at the pointer. */
void hg_together_check(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                       struct hg_errs *errs);

/* Has some cell each of the keys? Once the grid is made. */
void hg_together_check_keys(const struct hg_matrix *m, struct hg_errs *errs);

/* The text that two cells have in common exactly if they share a job by their keys; origins as a walk with HG_CELLS_ORIGINS gives them.
 * What follows from the keys by "derive" may differ, and so may notes and how a job is requested. */
void hg_together_key(const struct hg_matrix *m, const json_t *members, const json_t *origins,
                     struct hg_buf *out);

#endif
