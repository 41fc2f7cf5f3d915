/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_FDR_H
#define HG_RESULTS_FDR_H

#include <stddef.h>

/* Many tests at once, and variances from few measurements each. Formulas and sources: reports/formulas.md, "Comparing two sets". */

/* Degrees of freedom that count as infinitely many. */
#define HG_FDR_DF_MAX 1e6

/* Replace n p-values by those of Benjamini and Hochberg (1995): rejecting where they are at most q keeps the expected share of
 * false rejections at most q, and the chance of any at most q if all hypotheses are true. */
void hg_fdr_adjust(double *p, size_t n);

/* A variance with its degrees of freedom; df 0: unknown. */
struct hg_variance {
    double value, df;
};

/* Squeeze n variances towards a common one, as far as they agree with each other (Smyth 2004, limma's squeezeVar). One without
 * degrees of freedom of its own becomes the common one. Below three known ones nothing is squeezed. No df is above the sum of all. */
void hg_fdr_squeeze(struct hg_variance *v, size_t n);

/* Sum of two variances with Satterthwaite's degrees of freedom. */
struct hg_variance hg_fdr_add(struct hg_variance a, struct hg_variance b);

/* Two-sided p-value of a difference |d| against |d| <= tolerance. */
double hg_fdr_p(double d, double tolerance, struct hg_variance v);

#endif
