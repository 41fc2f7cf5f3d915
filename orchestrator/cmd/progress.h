/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_PROGRESS_H
#define HG_CMD_PROGRESS_H

#include "cmd/session.h"

/* Drive a run to its end and show its progress: on a full screen (cmd/cockpit.h), else on stderr, as one line that changes on a terminal and
 * a line for each change elsewhere.
 * Returns 0: over; 1: stopped by a signal; -1: errs filled. */
int hg_progress_drive(struct hg_session *s, struct hg_errs *errs);

/* After the end of a run: what failed and why (cmd/failures.h). tables: they were printed. */
void hg_progress_tell_end(const struct hg_session *s, bool tables);

/* Drive a run to its end, print its tables, say what failed. Returns the exit code, or -1 with errs filled. */
int hg_progress_conclude(struct hg_session *s, struct hg_errs *errs);

/* Add an error for each batch that the scheduler refused. Returns -1 if there was one, else 0. */
int hg_progress_add_refusals(const struct hg_session *s, struct hg_errs *errs);

#endif
