/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_LAWS_H
#define HG_RESULTS_LAWS_H

#include <stdbool.h>
#include <stddef.h>

#include "results/moments.h"

/* Laws of scaling, fitted to times on p devices, p counted in units of the baseline's. Formulas, sources and
 * how often the intervals hold: reports/formulas.md.
 *
 * ln T = ln T1 - ln S(p) is fitted by least squares to the logarithms of all runs, those of the baseline among them, with T1 free: so a
 * point weighs as many runs as it has, and the baseline's error is that of one more point. Coefficients are not forced to be positive,
 * because intervals of forced ones do not hold what they promise: one below 0 by less than its interval is 0 within its error. */

enum hg_law {
    HG_LAW_AMDAHL,    /* 1/S = s + (1 - s)/p; s: serial fraction */
    HG_LAW_USL,       /* p/S = 1 + sigma (p - 1) + kappa p (p - 1); contention, coherency */
    HG_LAW_GUSTAFSON, /* S = p - s (p - 1), S the scaled speedup under weak scaling */
    HG_LAWS
};

/* "Amdahl", ... */
extern const char *const hg_law_names[HG_LAWS];

#define HG_LAW_COEFFICIENTS_MAX 2

/* The runs on p devices. */
struct hg_law_point {
    double p;              /* 1: the baseline */
    struct hg_moments log; /* of the times for one unit of the baseline's work */
};

/* A coefficient. It lies within ± error in 68.3 of 100 cases, within low to high in 95: both from Student's t. */
struct hg_coefficient {
    double value, error, low, high;
};

struct hg_law_fit {
    enum hg_law law;
    size_t n; /* coefficients */
    struct hg_coefficient coefficients[HG_LAW_COEFFICIENTS_MAX];
    double error; /* root mean square of the residuals of the points' logarithms, by runs */
    /* The points are further from the law than their runs explain (F test at 1 %). The errors are then those of the points, without the runs. */
    bool lack_of_fit;
    double variance, freedom; /* of one run's logarithm */
    double log_base;          /* ln T1 */
    double runs;              /* of all points */
    /* of the coefficients in units of the variance; mean derivatives of the fitted logarithms */
    double covariance[HG_LAW_COEFFICIENTS_MAX][HG_LAW_COEFFICIENTS_MAX];
    double slopes[HG_LAW_COEFFICIENTS_MAX];
};

/* Fit a law to n points by ascending p, the baseline first. NULL if that worked; else why not, in a few words: too few points or
 * runs, or the points contradict the law beyond the interval. */
const char *hg_laws_fit(enum hg_law law, const struct hg_law_point *points, size_t n,
                        struct hg_law_fit *fit);

/* Highest speedup that the fitted law allows; p at which it is reached; p beyond which a further device costs more than it gains
 * (hg_scaling_knee). For Amdahl's law and the USL. Infinite if there is none, NaN with a coherency below 0. */
double hg_laws_limit(const struct hg_law_fit *fit);
double hg_laws_peak(const struct hg_law_fit *fit);
double hg_laws_knee(const struct hg_law_fit *fit);

/* Logarithm of the time of one further run on p devices, for one unit of work, with the interval that holds it in 95 of 100 cases if
 * the law holds there. NaN if the law gives no time. */
struct hg_estimate hg_laws_predict(const struct hg_law_fit *fit, double p);

#endif
