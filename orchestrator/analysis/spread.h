/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_SPREAD_H
#define HG_ANALYSIS_SPREAD_H

#include "analysis/builder.h"

/* What the runs of places show besides their center: outliers, groups, drift (results/sample.h). */

/* What is known only of all places of a table together. */
struct hg_spread {
    size_t values, places;     /* looked at: values; places with at least HG_SAMPLE_MIN runs */
    size_t first_slowest;      /* places whose first run was the slowest */
    double chance;             /* sum of 1 / runs: how many of these chance makes */
    double dependence, tested; /* sum of hg_sample_dependence, and of how many places */
    double smallest;           /* value */
    bool fractions;            /* some value is not a whole number */
};

/* Look at the runs of one place, and call note for each sentence about it. */
void hg_spread_place(struct hg_builder *b, const struct hg_configuration *c, struct hg_spread *all,
                     void (*note)(void *context, const char *text), void *context);

/* Add to the remarks of a table what its places show together. */
void hg_spread_remark(const struct hg_report *r, const struct hg_spread *all, struct hg_table *t);

#endif
