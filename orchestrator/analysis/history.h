/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_HISTORY_H
#define HG_ANALYSIS_HISTORY_H

#include "analysis/cellruns.h"
#include "analysis/compare.h"
#include "results/changes.h"

/* The same cells over many result sets, oldest first: what changed, and when? render/history.h writes it. */

/* One cell in all sets. */
struct hg_history_cell {
    const struct hg_table *table;
    size_t row;
    struct hg_cell_run *runs;   /* one for each set, in their order */
    struct hg_moments *moments; /* of them */
    struct hg_track track;
    double *levels; /* geometric mean of the stretch that each set lies in; NaN: no value */
    /* Of the newest stretch in units of the first, or of that of the baseline run. */
    struct hg_estimate speed;
    /* SAME: steady; FASTER, SLOWER; BROKEN; ONLY_A: gone; UNLIKE (strict). */
    enum hg_verdict_kind verdict;
    size_t since; /* the first set since which that is so; 0: always */
};

struct hg_history {
    struct hg_report *report;
    double tolerance, between;
    bool strict;     /* no verdict on what is not comparable */
    size_t baseline; /* the set that counts as the reference; SIZE_MAX: the last change counts */
    struct {
        struct hg_history_cell *items;
        size_t n, cap;
    } cells;
    /* "history": a line for each cell; "changes": one for each change. */
    struct hg_listings listings;
    size_t steady, slower, faster, broken, missing, unlike; /* as of the newest set */
};

/* The names of runs are the sets' labels. options as in a report, `where` and `metric` at least; how: a change of up to the tolerance is
 * none; baseline: a set's number, or SIZE_MAX. Free with hg_history_free, before the sets (two at least). NULL with errs filled as
 * hg_report_build does; INPUT if it is unknown which direction of the metric is good. */
struct hg_history *hg_history_build(const struct hg_results *sets, size_t n_sets,
                                    const struct hg_report_options *options,
                                    const struct hg_compare_options *how, size_t baseline,
                                    struct hg_errs *errs);
void hg_history_free(struct hg_history *h);

/* Append "steady", "slower since nightly/004", "broken", "gone". */
void hg_history_verdict(const struct hg_history *h, const struct hg_history_cell *c,
                        struct hg_buf *out);

/* In no cell was the last change for the worse (or the newest stretch than the baseline run), and none is broken in the newest set, gone or refused. */
bool hg_history_is_good(const struct hg_history *h);

#endif
