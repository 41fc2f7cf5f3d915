/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_SAVE_H
#define HG_RENDER_SAVE_H

#include "render/renderer.h"

/* Write report.txt, report.md, results.csv, report.json and report.html into the folder `tables` of
 * the run that is the report's one set (made if it is missing), each by rename. */
int hg_report_save(const struct hg_report *r, const char *dir, struct hg_err *err);

/* Longer tables are not printed where nobody asked for them. */
#define HG_REPORT_LINES_MAX 500

/* What `run` and `resume` do with a collected run at its end: tabulate it as its matrix says, put the text table (0: 80 columns wide), or
 * what there is to say of a longer one, into the empty out, and save all forms in the folder `tables` of the run's. *complete: every cell
 * has a good result. Returns 0, or -1 with errs filled. */
int hg_report_run(const struct hg_results *set, const char *run, size_t width, struct hg_buf *out,
                  bool *complete, struct hg_errs *errs);

/* Remove the forms that a run has which grew too large for them: they would tell of fewer cells. */
int hg_report_forget(const char *run, struct hg_err *err);

#endif
