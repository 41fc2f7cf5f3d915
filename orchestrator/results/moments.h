/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_MOMENTS_H
#define HG_RESULTS_MOMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "results/stats.h"

/* What is known of the runs of one place, one by one or from a published mean: all that intervals, comparisons and laws need. On the
 * logarithms of the values. Formulas and sources: reports/formulas.md. */
struct hg_moments {
    double mean, squares; /* squares: sum of the squared deviations from the mean */
    size_t n;             /* runs; 0: there are none, or they have no logarithm */
    size_t freedom;       /* of squares: n - 1; 0: the spread is not known */
};

/* Of n values. False, with b->n 0, if there is none, or one is not positive. */
bool hg_moments_make(const double *v, size_t n, struct hg_moments *b);

/* Of the mean of n runs and their standard deviation (n - 1; NaN: not published): by the delta method, that is to first order in
 * sd/mean, the logarithms have mean ln(mean) and variance (sd/mean)^2. n is 0 if the mean is not positive. */
struct hg_moments hg_moments_of_mean(double mean, double sd, size_t n);

/* Add the runs of b to a's. Each side's mean is as good as its number of runs; n is 0 if that of one side is. */
void hg_moments_add(struct hg_moments *a, const struct hg_moments *b);

/* exp(mean ± t s/sqrt(n)), t with n - 1 degrees of freedom, from HG_STATS_INTERVAL_MIN runs of a known spread on. */
struct hg_estimate hg_moments_estimate(const struct hg_moments *b);

/* a / b, with Welch's interval of the difference of the means where both sides have HG_STATS_INTERVAL_MIN runs of a known spread;
 * value: what stands in the tables, a's in units of b's. */
struct hg_estimate hg_moments_ratio(double value, const struct hg_moments *a,
                                    const struct hg_moments *b);

#endif
