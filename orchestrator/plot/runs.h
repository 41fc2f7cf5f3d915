/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLOT_RUNS_H
#define HG_PLOT_RUNS_H

#include "analysis/report.h"

/* The results that count, by configuration. */
struct hg_plot_runs {
    size_t *begin;   /* by configuration: from entries + begin[c] to entries + begin[c + 1] */
    size_t *entries; /* of the report */
    size_t n_configs;
    double *room; /* for a number of each run */
};

void hg_plot_runs_find(const struct hg_report *r, struct hg_plot_runs *runs);
void hg_plot_runs_done(struct hg_plot_runs *runs);

/* Run i of a configuration that counts; NULL: it has no more. HG_MAP_NONE has none. */
const struct hg_report_entry *hg_plot_entry(const struct hg_report *r,
                                            const struct hg_plot_runs *runs, size_t config,
                                            size_t i);
const struct hg_result *hg_plot_run(const struct hg_report *r, const struct hg_plot_runs *runs,
                                    size_t config, size_t i);

#endif
