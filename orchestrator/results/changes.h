/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_CHANGES_H
#define HG_RESULTS_CHANGES_H

#include "results/contrast.h"

/* When did the cells of many runs change? On the logarithms of the values; model, formulas and sources: reports/formulas.md,
 * "Following many runs". */

struct hg_shift {
    size_t at; /* the first run after it */
    /* Mean of the runs from there to the next shift, less that of those from the last one to it. */
    double d;
    struct hg_variance v; /* of d, as the runs scatter */
};

/* One cell in all runs, oldest first. */
struct hg_track {
    const struct hg_moments *runs; /* n == 0: no value there */
    size_t n;
    struct {
        struct hg_shift *items; /* by time; free with HG_VEC_DONE */
        size_t n, cap;
    } shifts;
};

/* Find the shifts of all tracks, which are without any. tolerance: of |d|; between: assumed standard deviation between runs. */
void hg_changes_find(struct hg_track *t, size_t n, double tolerance, double between);

/* Mean of the runs from..to that have values, each with the same weight; NaN: none has. */
double hg_track_mean(const struct hg_track *t, size_t from, size_t to);

#endif
