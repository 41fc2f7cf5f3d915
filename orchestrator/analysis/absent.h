/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_ABSENT_H
#define HG_ANALYSIS_ABSENT_H

#include "analysis/report.h"

/* Where a run and its matrix are not the same: cells that were skipped because they cannot run, and cells that were removed from the
 * matrix after they had been planned. */

/* Count them, and mark entries of removed cells that the matrix has again with other words, environment or files: these do not count. */
void hg_absent_mark(struct hg_report *r);

/* Add the listings "skipped" and "removed": the first few with the reason, or with what tells each from the nearest cell of the matrix. */
void hg_absent_list(struct hg_report *r);

#endif
