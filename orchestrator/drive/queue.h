/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_QUEUE_H
#define HG_DRIVE_QUEUE_H

#include "drive/state.h"

/* Fold what the scheduler shows into the journal; queues the orders that follow from it. */
int hg_drive_read_queue(struct hg_drive *d, const struct hg_executor_jobs *jobs,
                        struct hg_err *err);

/* Was its waiting task one that we cancel in order to send it again? Then no person cancelled it: the process that did
 * may have died, or the answer got lost. */
bool hg_drive_was_redone(const struct hg_drive *d, const struct hg_run_cell *cell);

/* PENDING, RUNNING, or ENDED for every other word; what is still completing counts as running. */
enum hg_cell_state hg_drive_state_of(const struct hg_executor_job *job);

/* "TIMEOUT", "FAILED: NonZeroExitCode": the text of an ended cell. */
void hg_drive_end_text(const struct hg_executor_job *job, char out[static 128]);

/* Does this text say that Slurm could not open the job's output? Then no line of its script was run. */
bool hg_drive_never_opened(const char *ended);

#endif
