/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_HISTORY_H
#define HG_ANALYSIS_HISTORY_H

#include "analysis/report.h"

/* The same cells over many result sets, oldest first: what changed, and when? render/history.h writes it. */

struct hg_history {
    struct hg_report *report;
    double tolerance;
    bool strict; /* no verdict on what is not comparable */
    struct hg_listings
        listings; /* "history": a line for each cell; "changes": one for each change */
    size_t cells, steady, slower, faster, broken, missing, unlike; /* as of the newest set */
};

/* options as in a report, `where` and `metric` at least; `tolerance` is a fraction: a change of up to
 * 0.05 is none. Free with hg_history_free, before the sets (two at least). NULL with errs filled as
 * hg_report_build does; INPUT if it is unknown which direction of the metric is good. */
struct hg_history *hg_history_build(const struct hg_results *sets, size_t n_sets,
                                    const struct hg_report_options *options, double tolerance,
                                    struct hg_errs *errs);
void hg_history_free(struct hg_history *h);

/* In no cell was the last change for the worse, and none is broken in the newest set, gone, or (strict) not comparable. */
bool hg_history_is_good(const struct hg_history *h);

#endif
