/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_METRIC_H
#define HG_ANALYSIS_METRIC_H

#include "analysis/report.h"

/* The metric of a report: which one, which way is good, and which results count. */

/* The metric if nobody requested one: train_s if every good result has it, else wall_s; if there is neither, a rate or real_s.
 * count: how many of the *ok good results that are shown have the metric. */
const char *hg_metric_usual(size_t (*count)(const void *context, const char *metric, size_t *ok),
                            const void *context);

/* Set r->kind and the direction of the metric. better: "lower", "higher", or NULL: as its name says. */
void hg_metric_direct(struct hg_report *r, const char *metric, const char *better,
                      bool against_first);

/* Why a result with this value does not count ("failed", "not measured"); NULL: it counts. */
const char *hg_metric_state(const struct hg_report *r, const struct hg_result *result,
                            double value);

/* Count a cell that is shown, by its state; after the last one sort the states. */
void hg_metric_count(struct hg_report *r, const char *state);
void hg_metric_sort_states(struct hg_report *r);

#endif
