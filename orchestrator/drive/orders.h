/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_ORDERS_H
#define HG_DRIVE_ORDERS_H

#include "drive/state.h"

/* Queue what the scheduler has to be told about a task that waits or runs, if anything. */
void hg_drive_judge(struct hg_drive *d, const struct hg_exec_job *job,
                    const struct hg_submission *sub, uint32_t index, const struct hg_run_cell *cell,
                    struct hg_drive_task *task);

/* Tell the scheduler what is queued, and journal what follows from it. */
int hg_drive_give_orders(struct hg_drive *d, struct hg_err *err);

#endif
