/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_SCALING_H
#define HG_RESULTS_SCALING_H

/* What a series of speedups says about the program. Formulas and sources: reports/formulas.md.
 * Devices are counted in units of the baseline's, so p = devices / devices of the baseline. */

/* speedup / p */
double hg_scaling_efficiency(double speedup, double p);

/* Karp-Flatt metric, the serial fraction this point alone would need under Amdahl's law:
 * (1/speedup - 1/p) / (1 - 1/p). Negative when efficiency is above 1. NaN unless p > 1. */
double hg_scaling_karp_flatt(double speedup, double p);

/* p at which speedup times efficiency is highest under p/S = 1 + sigma (p - 1) + kappa p (p - 1):
 * beyond it a further device costs more than it brings. Infinite if it never falls; at least 1. */
double hg_scaling_knee(double contention, double coherency);

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

#endif
