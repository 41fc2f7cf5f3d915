/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_SAVE_H
#define HG_RENDER_SAVE_H

#include "render/renderer.h"

/* Write every form that is saved (hg_renderer.file) into the folder `tables` of the run that is the report's only set (created if it is
 * missing), each by rename. */
int hg_report_save(const struct hg_report *r, const char *dir, struct hg_err *err);

/* Longer tables are only printed on request. */
#define HG_REPORT_LINES_MAX 500

/* What `run` and `resume` do at the end with a collected run: tabulate it as its matrix says, append the text table (width 0: 80
 * columns), or a summary if it is too long, to the empty out, and save all forms in the run's folder `tables`. *complete: every cell
 * has a good result. Returns 0, or -1 with errs filled. */
int hg_report_run(const struct hg_results *set, const char *run, size_t width, struct hg_buf *out,
                  bool *complete, struct hg_errs *errs);

/* Remove the saved tables of a run that grew too large for them: they would show fewer cells. Its CSV stays. */
int hg_report_forget(const char *run, struct hg_err *err);

#endif
