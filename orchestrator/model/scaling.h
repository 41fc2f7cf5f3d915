/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MODEL_SCALING_H
#define HG_MODEL_SCALING_H

#include <stdbool.h>
#include <stddef.h>

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

struct hg_amdahl {
    double serial; /* serial fraction, 0 to 1 */
    double limit;  /* 1/serial: no number of devices gives more; infinite when serial is 0 */
    double error;  /* root mean square of the residuals of 1/speedup */
};

/* Least squares of 1/S = s + (1 - s)/p over the points with p > 1. False unless there are
 * HG_SCALING_POINTS_MIN of them, or if the best s lies outside 0 to 1: the law cannot describe
 * them. */
bool hg_scaling_amdahl(const struct hg_scaling_point *points, size_t n, struct hg_amdahl *fit);

struct hg_usl {
    double contention; /* sigma >= 0 */
    double coherency;  /* kappa >= 0 */
    double peak_p; /* p of the highest speedup; infinite when coherency is 0; 1 if never above */
    double error;  /* root mean square of the residuals of p/speedup */
};

/* Least squares of p/S = 1 + sigma (p - 1) + kappa p (p - 1) over the points with p > 1; a
 * coefficient that would be negative is 0 and the other is fitted again. False unless there are
 * HG_SCALING_POINTS_MIN points with at least two different p above 1. */
bool hg_scaling_usl(const struct hg_scaling_point *points, size_t n, struct hg_usl *fit);

#endif
