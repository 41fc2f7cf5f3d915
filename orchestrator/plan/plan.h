/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_PLAN_H
#define HG_PLAN_PLAN_H

#include "base/err.h"
#include "matrix/matrix.h"
#include "matrix/select.h"
#include "plan/batch.h"

/* Group the cells that select picks (NULL: all) into batches. Cells already in `known` (a loaded
 * plan of the same run; may be NULL) keep their batch and line; only new ones are appended, as new
 * batches. New cells that would hold more than their device has are left out and listed in skips; when no cell is left
 * that is an error (INPUT). A known batch gets what its cells without a good result request now, whether selected or not: the
 * longest time and the most memory of any. If they differ in anything else, that is an error (INPUT). NULL on failure. */
struct hg_plan *hg_plan_make(const struct hg_matrix *m, const struct hg_selector *select,
                             const struct hg_plan *known, struct hg_errs *errs);

/* Wall times are rounded up to a coarse ladder, so that a matrix with many of them does not become
 * many arrays: 1 2 3 5 10 15 20 30 45 minutes; 1 1.5 2 3 4 6 8 12 16 20 24 36 hours; 2 3 4 5 6 7
 * 10 14 21 28 days; then as requested. Never above `most_s`, the longest time that any cell of the same
 * hardware asks for: rounding must not pass a partition's limit. */
double hg_plan_round_time(double time_s, double most_s);

/* A job whose "time" is "auto" gets at least so long, and after TIMEOUT twice as long, so often at most (or as often as
 * "retry" says). */
#define HG_AUTO_FLOOR_S 300
#define HG_AUTO_RAISES 2

/* The limit of such a job, from the sum of its cells' bounds (m->auto_times): rounded, at most what the hardware allows. 0, where
 * nothing is known: the partition's default. */
double hg_plan_auto_s(const struct hg_hardware *hw, double bound_s);

#endif
