/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_RESULTS_H
#define HG_CMD_RESULTS_H

#include "results/results.h"
#include "drive/drive.h"
#include "rundir/rundir.h"

/* Read what a user named: a result-set file ("-": standard input), a run's folder, NAME, NAME/002, or
 * a matrix (its newest run). reports: where runs are; NULL: HPCGRID_REPORTS, else "reports". For a
 * run *tables (may be NULL) becomes the folder for its tables, yours to free. Returns 0, or -1 with
 * errs filled; hg_results_done either way. */
int hg_cmd_results(const char *word, const char *reports, struct hg_results *set, char **tables,
                   struct hg_errs *errs);

/* The results of a run whose journal is known, or not (state NULL). Returns the same. */
int hg_cmd_run_results(const struct hg_rundir *rd, const struct hg_run_state *state,
                       struct hg_results *set, struct hg_errs *errs);

#endif
