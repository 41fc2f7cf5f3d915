/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_WORK_H
#define HG_ANALYSIS_WORK_H

#include "analysis/builder.h"

/* How much work a result did compared with its baseline. Strong scaling holds the work constant, weak scaling lets it grow with
 * the devices: a speedup can only be read if it is known which of the two it is. */

/* Set the report's keys of work, as options or the first set that has some say. Returns 0, or -1 with errs filled: no cell has a key. */
int hg_work_settle(struct hg_builder *b);

/* Does a key say how much work is done? Under weak scaling it differs on purpose. */
bool hg_work_is_key(const struct hg_report *r, const char *key);

/* The work behind one value of the metric, in units of the baseline's; NaN: unknown. */
double hg_work_ratio(const struct hg_report *r, const struct hg_result *own,
                     const struct hg_result *base);

/* The samples that a result counts, or that its `comparable` gives, in units of those of the base, divided by the same ratio of what their
 * cells ask for. 2 on two devices: every rank trained everything? NaN: about 1 (rates: 25 %, amounts: 5 % and a step in
 * each epoch), or unknown. */
double hg_work_excess(const struct hg_report *r, const struct hg_result *own,
                      const struct hg_result *base);

/* Did two results of the same samples take equally many optimizer steps, as far as `steps`, or else their batches, say? A `batch_size` is read
 * as that of each device. */
bool hg_work_has_same_steps(const struct hg_result *a, const struct hg_result *b);

#endif
