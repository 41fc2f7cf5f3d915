/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_STATS_H
#define HG_RESULTS_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* Arithmetic over repeated measurements. Formulas and sources: reports/formulas.md. */

/* Fewest measurements for which an interval is given. */
#define HG_STATS_INTERVAL_MIN 3

/* Confidence level of every interval. */
#define HG_STATS_LEVEL 0.95

/* A value with its interval. */
struct hg_estimate {
    double value;     /* NaN: there is none */
    double low, high; /* only if has_interval */
    bool has_interval;
};
#define HG_ESTIMATE_NONE           \
    {                              \
        .value = __builtin_nan("") \
    }

/* Middle value, or the mean of the two middle ones; sorts v in place. NaN if n is 0. */
double hg_stats_median(double *v, size_t n);

/* Regularised incomplete beta function I_x(a, b); a, b > 0, 0 <= x <= 1. */
double hg_stats_beta(double a, double b, double x);

/* Distribution function of Student's t with df > 0 degrees of freedom (any real number). */
double hg_stats_t_cdf(double t, double df);

/* Its inverse: the t below which a share p of the distribution lies, 0 < p < 1. */
double hg_stats_t_quantile(double p, double df);

/* What the runs of a place are summarised by. One for all places of a report: a ratio of a median to a
 * geometric mean would estimate neither. */
enum hg_statistic { HG_GEOMETRIC_MEAN, HG_MEDIAN };
extern const char *const hg_statistic_words[2];

/* Fewest measurements from which an interval of the median at HG_STATS_LEVEL exists. */
#define HG_STATS_MEDIAN_MIN 6

/* The statistic of n values with its own interval, so that the value always lies inside. Sorts v in place.
 * HG_GEOMETRIC_MEAN: exp(m ± t s/sqrt(n)) of the logarithms, from HG_STATS_INTERVAL_MIN values on.
 * HG_MEDIAN: between two order statistics, from HG_STATS_MEDIAN_MIN on, whatever the distribution.
 * If a value is not positive, the geometric mean does not exist: the median is taken. */
struct hg_estimate hg_stats_center(double *v, size_t n, enum hg_statistic statistic);

/* center(a) / center(b). Interval: the half widths of both as standard errors, combined and multiplied by
 * t with Welch's degrees of freedom, upwards and downwards on its own; for geometric means this is Welch's
 * interval. Sorts both in place. */
struct hg_estimate hg_stats_ratio(double *a, size_t na, double *b, size_t nb,
                                  enum hg_statistic statistic);

/* How far the interval reaches from the value, as a factor less one: the larger of high / value and
 * value / low, less 1; 0 if there is no interval. */
double hg_stats_spread(const struct hg_estimate *e);

#endif
