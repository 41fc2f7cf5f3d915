/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_RUNPLAN_H
#define HG_CMD_RUNPLAN_H

#include "matrix/select.h"
#include "plan/batch.h"
#include "rundir/rundir.h"

/* The steps from a matrix to a run's plan. */

/* Nothing is written by this: print the warnings of the cells, and find out whether a plan can be made and, with data, whether the
 * worker has the data sets. Returns 0, or -1 with errs filled. */
int hg_runplan_check(const struct hg_matrix *m, const struct hg_selector *select, bool data,
                     struct hg_errs *errs);

/* May the run be continued here: is it the folder, and the cluster, that it was submitted from? A run that was never submitted
 * may. Returns 0, or -1 with err set. */
int hg_runplan_check_past(const struct hg_rundir *rd, const char *cluster, struct hg_err *err);

/* How many submissions are in the run's journal? -1: err set. */
long hg_runplan_submissions(const struct hg_rundir *rd, struct hg_err *err);

/* Under the run's lock: bring its plan up to the matrix, say what changed, save it. NULL with errs filled. */
struct hg_plan *hg_runplan_make(const struct hg_rundir *rd, const struct hg_matrix *m,
                                const struct hg_selector *select, struct hg_errs *errs);

/* The same for a run that is continued by its name: if the matrix or the site that it was planned from has changed since, its own cells
 * get what the matrix says now, and *plan is replaced. Fails (INPUT) if the matrix has other cells in their places. A matrix that is gone, and that
 * of a run in a box, change nothing. Returns 1 if something changed, 0, or -1 with errs filled. */
int hg_runplan_correct(const struct hg_rundir *rd, struct hg_plan **plan, struct hg_errs *errs);

#endif
