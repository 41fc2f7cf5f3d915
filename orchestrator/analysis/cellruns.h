/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_CELLRUNS_H
#define HG_ANALYSIS_CELLRUNS_H

#include "analysis/report.h"
#include "results/contrast.h"

/* The measurements behind the places of a report whose columns are its sets (against_first). */

struct hg_cellruns {
    const struct hg_report *report;
    size_t *entries; /* of the report, those that count, by configuration */
    double *values;  /* theirs */
    size_t *begin;   /* of each configuration */
    size_t *set;     /* that it is of */
};

void hg_cellruns_open(const struct hg_report *r, struct hg_cellruns *b);
void hg_cellruns_close(struct hg_cellruns *b);

/* A cell in one set. */
struct hg_cell_run {
    const struct hg_point *point; /* NULL: the set has no such cell */
    struct hg_moments moments;    /* n == 0: no good result, or one that has no logarithm */
};

/* Fill runs[0..n_sets] for a row of a table. */
void hg_cellruns_row(const struct hg_cellruns *b, const struct hg_table *t, size_t row,
                     struct hg_cell_run *runs);

#endif
