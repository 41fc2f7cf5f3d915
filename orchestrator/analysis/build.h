/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_BUILD_H
#define HG_ANALYSIS_BUILD_H

#include "analysis/report.h"

/* Arrange result sets as a report: the one place that calls the steps of the analysis, in order.
 *
 *     entries → work → configurations → keys → pivot → for each table: points → cost → notes → figures → series → best → the listing of series
 *     → traffic → cost's listing; then what all attempts cost
 *
 * The sets are borrowed until hg_report_free. NULL with errs filled: a key or metric that no cell has (INPUT), a selector that
 * cannot be parsed (USAGE). */
struct hg_report *hg_report_build(const struct hg_results *sets, size_t n_sets,
                                  const struct hg_report_options *options, struct hg_errs *errs);

/* The same up to the keys: entries, their configurations and names, which keys are rows, columns and tables; no tables. */
struct hg_report *hg_report_arrange(const struct hg_results *sets, size_t n_sets,
                                    const struct hg_report_options *options, struct hg_errs *errs);

#endif
