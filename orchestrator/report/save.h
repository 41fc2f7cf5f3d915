/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_REPORT_SAVE_H
#define HG_REPORT_SAVE_H

#include "report/renderer.h"

/* Write report.txt, report.md, results.csv, report.json and report.html into the folder `tables` of
 * the run that is the report's one set (made if it is missing), each by rename. */
int hg_report_save(const struct hg_report *r, const char *dir, struct hg_err *err);

/* What `run` and `report` do with a collected run: tabulate it as its matrix says, append the text
 * table (0: 80 columns wide) to out, and save all forms in the folder `tables`. *complete: every cell has a good result. Returns 0, or -1 with errs filled. */
int hg_report_run(const struct hg_results *set, const char *tables, size_t width,
                  struct hg_buf *out, bool *complete, struct hg_errs *errs);

#endif
