/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_PUBLISHED_H
#define HG_RESULTS_PUBLISHED_H

#include <stddef.h>

#include "results/stats.h"

/* Figures that were published as a mean and a standard deviation, beside measurements that are known one by one. Formulas and
 * sources: reports/formulas.md. */

/* What an interval needs of one side: mean and variance of the logarithms. */
struct hg_moments {
    double mean, variance; /* NaN: not known */
    size_t n;
};

/* Of values, all above 0 (else NaN). */
struct hg_moments hg_moments_of_values(const double *v, size_t n);

/* Of a mean above 0 of n runs and their standard deviation (n - 1; NaN: not published): by the delta method, that is to first
 * order in sd/mean, the logarithms have mean ln(mean) and variance (sd/mean)^2. */
struct hg_moments hg_moments_of_mean(double mean, double sd, size_t n);

/* A published mean with the interval exp(mean ± t s/sqrt(n)), t with n - 1 degrees of freedom, from HG_STATS_INTERVAL_MIN runs on. */
struct hg_estimate hg_published_center(double mean, double sd, size_t n);

/* a / b, with Welch's interval of the difference of the mean logarithms where both sides have HG_STATS_INTERVAL_MIN runs and a
 * variance; value: what stands in the tables, a's in units of b's. */
struct hg_estimate hg_published_ratio(double value, const struct hg_moments *a,
                                      const struct hg_moments *b);

#endif
