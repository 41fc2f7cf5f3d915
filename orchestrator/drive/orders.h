/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_ORDERS_H
#define HG_DRIVE_ORDERS_H

#include "drive/state.h"

/* Queue the order that a waiting or running task needs, if any. */
void hg_drive_judge(struct hg_drive *d, const struct hg_executor_job *job,
                    const struct hg_submission *sub, uint32_t index, const struct hg_run_cell *cell,
                    struct hg_drive_task *task);

/* Send the queued orders to the scheduler, and journal what follows from them. */
int hg_drive_give_orders(struct hg_drive *d, struct hg_err *err);

#endif
