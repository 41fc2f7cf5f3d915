/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_REGRESSION_H
#define HG_ANALYSIS_REGRESSION_H

#include <stdbool.h>

#include "base/buf.h"
#include "results/frame.h"

/* The logarithm of a time as a sum of what each key of a cell adds: a straight line over the logarithm of a numeric key (or a parabola,
 * if that predicts left-out cells better), a step for each other value. Least squares over the means of configurations. */
struct hg_regression;

/* The most coefficients; with more there is no regression. */
#define HG_REGRESSION_MAX 64

/* Fit it to n rows of the frame (borrowed) with the values y. NULL: two degrees of freedom are not left. Free with
 * hg_regression_free. */
struct hg_regression *hg_regression_fit(const struct hg_frame *f, const size_t *rows, size_t n,
                                        const double *y);
void hg_regression_free(struct hg_regression *r);

/* The value of a row, and in u its place: one number for each of hg_regression_size, sum of squares = leverage. False if the row is
 * outside of what was fitted: another value of a key that is no number or was the same everywhere, or a number more than twice
 * above, or below half of, any of its key. */
bool hg_regression_predict(const struct hg_regression *r, size_t row, double *y, double *u);
size_t hg_regression_size(const struct hg_regression *r);

/* Variance of a row's value about the fit, from the residuals of rows that were left out of it; its degrees of freedom. */
double hg_regression_variance(const struct hg_regression *r);
double hg_regression_freedom(const struct hg_regression *r);

/* Append the keys that it uses: "epochs, nodes". */
void hg_regression_append_keys(const struct hg_regression *r, struct hg_buf *out);

#endif
