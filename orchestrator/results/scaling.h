/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_SCALING_H
#define HG_RESULTS_SCALING_H

#include <stdbool.h>
#include <stddef.h>

#include "results/stats.h"

/* What a series of speedups says about the program. Formulas and sources: reports/README.md.
 * Devices are counted in units of the baseline's, so p = devices / devices of the baseline. */

/* Fewest points with p > 1 for which a model is fitted. */
#define HG_SCALING_POINTS_MIN 3

struct hg_scaling_point {
    double p;       /* devices in units of the baseline's, > 0 */
    double speedup; /* > 0 */
};

/* speedup / p */
double hg_scaling_efficiency(double speedup, double p);

/* Karp-Flatt metric, the serial fraction this point alone would need under Amdahl's law:
 * (1/speedup - 1/p) / (1 - 1/p). Negative when efficiency is above 1. NaN unless p > 1. */
double hg_scaling_karp_flatt(double speedup, double p);

/* ---- Laws ----
 *
 * A standard error is that of least squares with equal weights: it needs more points than
 * coefficients (NaN otherwise), and says how well the points agree with the law, not that the law
 * is right. A coefficient that was set to its bound has none. */

struct hg_amdahl {
    double serial;       /* serial fraction, 0 to 1 */
    double serial_error; /* its standard error */
    double limit;        /* 1/serial: no number of devices gives more; infinite when serial is 0 */
    double knee_p;       /* hg_scaling_knee */
    double error;        /* root mean square of the residuals of 1/speedup */
};

/* Least squares of 1/S = s + (1 - s)/p over the points with p > 1. False unless there are
 * HG_SCALING_POINTS_MIN of them, or if the best s lies outside 0 to 1: the law cannot describe
 * them. */
bool hg_scaling_amdahl(const struct hg_scaling_point *points, size_t n, struct hg_amdahl *fit);

struct hg_usl {
    double contention; /* sigma >= 0 */
    double coherency;  /* kappa >= 0 */
    double contention_error, coherency_error;
    double peak_p; /* p of the highest speedup; infinite when coherency is 0; 1 if never above */
    double knee_p; /* hg_scaling_knee */
    double error;  /* root mean square of the residuals of p/speedup */
};

/* Least squares of p/S = 1 + sigma (p - 1) + kappa p (p - 1) over the points with p > 1; a
 * coefficient that would be negative is 0 and the other is fitted again. False unless there are
 * HG_SCALING_POINTS_MIN points with at least two different p above 1. */
bool hg_scaling_usl(const struct hg_scaling_point *points, size_t n, struct hg_usl *fit);

/* p at which speedup times efficiency is highest under p/S = 1 + sigma (p - 1) + kappa p (p - 1):
 * beyond it a further device costs more than it brings. Infinite if it never falls; at least 1. */
double hg_scaling_knee(double contention, double coherency);

struct hg_gustafson {
    double serial; /* share of the time on p devices that is serial */
    double serial_error;
    double error; /* root mean square of the residuals of the scaled speedup */
};

/* For weak scaling, where the work grows with p and `speedup` is the scaled one, work times
 * T_base/T: least squares of S = p - s (p - 1). False as for Amdahl's law. */
bool hg_scaling_gustafson(const struct hg_scaling_point *points, size_t n,
                          struct hg_gustafson *fit);

/* ---- What is held constant ---- */

enum hg_scaling_kind {
    HG_SCALING_UNKNOWN, /* the work of some point is not known */
    HG_SCALING_STRONG,  /* the same work on more devices */
    HG_SCALING_WEAK,    /* work in proportion to the devices */
    HG_SCALING_NEITHER,
};

/* "strong", "weak", ... */
extern const char *const hg_scaling_kind_words[];

/* Of one point: its work in units of the baseline's (NaN: not known) on p times its devices. What
 * differs by less than HG_SCALING_WORK_TOLERANCE counts as the same. */
#define HG_SCALING_WORK_TOLERANCE 0.02
enum hg_scaling_kind hg_scaling_kind_of(double work, double p);

/* ---- What may come next ---- */

struct hg_prediction {
    double p;
    struct hg_estimate speedup; /* the interval holds a further measurement in 95 of 100 cases, if
                                   the law holds; none without a degree of freedom */
    const char *law;            /* "USL", "Gustafson" */
};

/* The speedup at p, which lies beyond the points: by the USL under strong scaling, by Gustafson's law
 * under weak. False where that law cannot be fitted. */
bool hg_scaling_predict(const struct hg_scaling_point *points, size_t n, enum hg_scaling_kind kind,
                        double p, struct hg_prediction *out);

#endif
