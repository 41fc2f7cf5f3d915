/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_ADAPTIVE_H
#define HG_RESULTS_ADAPTIVE_H

#include <stddef.h>

#include "contract/repeats.h"
#include "results/stats.h"

/* Adaptive repeats: a sequential interval for the geometric mean. Runs are added in rounds; after each the interval is looked at, and the
 * size of the next round follows from the spread so far. Who stops when an interval looks narrow finds it too narrow, so t is taken at
 * a higher level: 0.96 at the first and the last possible look, 0.98 in between. Formulas and coverage: reports/formulas.md. */

/* Geometric mean of n values with that interval; no interval below 3 values or where one is not above 0. */
struct hg_estimate hg_adaptive_center(const double *v, size_t n, const struct hg_repeats *rule);

/* Of two geometric means a / b with their intervals: the half widths of the logarithms add as squares (MOVER; Zou and Donner 2008). */
struct hg_estimate hg_adaptive_ratio(const struct hg_estimate *a, const struct hg_estimate *b);

/* Is the interval narrow enough? */
bool hg_adaptive_is_done(const struct hg_estimate *e, const struct hg_repeats *rule);

/* How many values are wanted in all: n if nothing more is (narrow enough, the maximum, or no interval), else as many
 * as would make the interval narrow enough if the spread stays as it is, at most the maximum. */
size_t hg_adaptive_want(const double *v, size_t n, const struct hg_repeats *rule);

#endif
