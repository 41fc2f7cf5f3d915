/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_EVALUATOR_H
#define HG_MATRIX_EVALUATOR_H

#include "base/err.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"

/* The expressions of a matrix over its cells. What one gave is remembered for the members it reads, so that it is evaluated once for each
 * combination of them. */
struct hg_evaluator;

/* Borrows m. */
struct hg_evaluator *hg_evaluator_create(const struct hg_matrix *m);
void hg_evaluator_free(struct hg_evaluator *f);

/* The value that a formula gives for a cell. Returns 0, or -1 with an error added. */
int hg_evaluator_derive(struct hg_evaluator *f, const struct hg_derive *d, const hg_value *values,
                        hg_value *result, struct hg_errs *errs);

/* Does a rule that is an expression hold for a cell? 1, 0, or -1 with an error added. */
int hg_evaluator_judge(struct hg_evaluator *f, const struct hg_rule *rule, const hg_value *values,
                       struct hg_errs *errs);

/* Add an error at the pointer, with the cell that the expression saw as its hint. Returns -1. */
int hg_evaluator_fail(const struct hg_evaluator *f, int expr, const char *pointer,
                      const hg_value *values, const struct hg_err *err, struct hg_errs *errs);

/* A cell's hardware; NULL if its site has none of this name. The last one is remembered. */
const struct hg_hardware *hg_evaluator_hardware(struct hg_evaluator *f, const hg_value *values);

#endif
