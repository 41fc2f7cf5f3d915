/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_CHECK_H
#define HG_DRIVE_CHECK_H

#include "base/err.h"

struct hg_drive;

/* Load the scheduler's limits, once. */
int hg_drive_load_limits(struct hg_drive *d, struct hg_err *err);

/* Everything that can be found out before the first request to run something: does the scheduler answer, and would it
 * accept one job of every batch that was never submitted? Each problem is added. */
int hg_drive_check(struct hg_drive *d, struct hg_errs *errs);

/* Put before a refusal which cells it concerns ("batch 1 (6 cells, hardware cpu) <what>"), and after it where their
 * requests are written. */
void hg_drive_explain_refusal(const struct hg_drive *d, int batch, const char *what,
                              struct hg_err *why);

#endif
