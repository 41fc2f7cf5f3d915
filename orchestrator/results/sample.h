/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_SAMPLE_H
#define HG_RESULTS_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

/* What a set of repeated measurements shows besides its center: signs that an interval says too much. Values are positive and in the
 * order in which they were measured; all comparisons are made on logarithms. Independent normal draws raise each sign in about 1 %
 * of cases (outliers of three runs, 2 %): tests/unit/sample.c. Rules and sources: reports/footnotes.md. */

#define HG_SAMPLE_MIN 3        /* for outliers */
#define HG_SAMPLE_GROUPS_MIN 6 /* for groups, drift and dependence */
#define HG_SAMPLE_SKEW_MIN 8
#define HG_SAMPLE_MAX 1000 /* groups are looked for in at most so many */

/* Mark the values far from the others. Returns how many. */
size_t hg_sample_outliers(const double *v, size_t n, bool *outlier);

/* How many values form the lower of two groups, 0 if there is only one; centers: geometric means of both. */
size_t hg_sample_groups(const double *v, size_t n, double centers[static 2]);

/* Do later values differ from earlier ones? Geometric mean of the second half / that of the first, 1 if there is no drift. */
double hg_sample_drift(const double *v, size_t n);

/* Does one tail reach farther than the other? 1: the high one, -1: the low one, 0: no sign of it. */
int hg_sample_skew(const double *v, size_t n);

/* How far each value resembles the one before it, as a standard normal deviate of von Neumann's ratio: below -1.96 neighbours are more
 * alike than chance makes them. 0 if it cannot be computed. */
double hg_sample_dependence(const double *v, size_t n);

#endif
