/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_OVERLAY_H
#define HG_DRIVE_OVERLAY_H

#include "rundir/collect.h"
#include "rundir/runstate.h"
#include "slurm/client/executor.h"

/* For readers, who have no lock. */

/* Update a state that was loaded for reading with what the scheduler shows now. Cells whose job is gone are "ended". */
int hg_drive_overlay(struct hg_run_state *state, const struct hg_executor_jobs *jobs,
                     struct hg_err *err);

/* For hg_collect_run: what the journal (a struct hg_run_state) knows of a cell. */
void hg_drive_verdict(void *state, int batch, size_t line, struct hg_verdict *verdict);

#endif
