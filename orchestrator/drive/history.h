/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_HISTORY_H
#define HG_DRIVE_HISTORY_H

#include "drive/state.h"

/* Look up in accounting how jobs ended that have left the queue, and fold that into the journal. */
int hg_drive_read_history(struct hg_drive *d, struct hg_err *err);

/* Does accounting know a job of this submission? False with *answered false: accounting does not answer. */
bool hg_drive_is_in_history(struct hg_drive *d, const struct hg_submission *sub, bool *answered);

#endif
