/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_CONCLUDE_H
#define HG_CMD_CONCLUDE_H

#include "cmd/session.h"

/* Drive a run to its end, print its tables, say what may be run again. Returns the exit code, or -1 with errs filled. */
int hg_conclude_run(struct hg_session *s, struct hg_errs *errs);

/* Add an error for each batch that the scheduler refused. Returns -1 if there was one, else 0. */
int hg_conclude_add_refusals(const struct hg_session *s, struct hg_errs *errs);

#endif
