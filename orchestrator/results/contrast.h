/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_CONTRAST_H
#define HG_RESULTS_CONTRAST_H

#include <stdbool.h>
#include <stddef.h>

#include "results/fdr.h"
#include "results/moments.h"

/* Which cells of two sides differ? All on the logarithms of the values; model, formulas and sources: reports/formulas.md, "Comparing
 * two sets". */

/* Assumed unless measured: how much whole runs of the same cell differ, and a single measurement if nothing was repeated. */
#define HG_BETWEEN_DEFAULT 0.03
#define HG_SINGLE_DEFAULT 0.10

/* Cells from which their differences show themselves how much runs differ. */
#define HG_CONTRAST_MANY 10

/* One cell on both sides. */
struct hg_contrast {
    double d;                  /* difference of the two means: above 0 is better */
    struct hg_variance within; /* of one measurement; hg_contrasts_judge squeezes it */
    double weight;             /* variance of d in units of `within` */
    double runs;               /* variance of d in units of that between runs */
    double spread, spread_df;  /* variance of the runs' means, both sides; df 0: one run each */
    /* hg_contrasts_judge: */
    struct hg_variance noise; /* of d, from the repeats alone */
    double p; /* adjusted: d is beyond the tolerance, and runs do not differ so much */
};

/* Fill all but what hg_contrasts_judge fills from the runs of two sides (at least one each). sign 1: d = a - b, as for times; -1. */
void hg_contrast_make(const struct hg_moments *a, size_t na, const struct hg_moments *b, size_t nb,
                      double sign, struct hg_contrast *c);

struct hg_overall {
    double d;
    struct hg_variance noise;
    double p;
    double between;          /* standard deviation between runs that was used, a fraction */
    struct hg_variance seen; /* what several runs on a side show of it; df 0: one each */
    double runs;             /* variance of d in units of that between runs */
    bool repeated;           /* some cell has repeats: the noise was measured */
};

/* Judge all contrasts of a comparison at once. tolerance: of |d|; between: assumed standard deviation between runs. */
struct hg_overall hg_contrasts_judge(struct hg_contrast *c, size_t n, double tolerance,
                                     double between);

/* exp(d) with its 95 % interval; none without a noise of finite df. */
struct hg_estimate hg_contrast_ratio(double d, struct hg_variance noise);

#endif
