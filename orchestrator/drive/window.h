/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_WINDOW_H
#define HG_DRIVE_WINDOW_H

#include "drive/state.h"

/* Submit what the limits allow. */
int hg_drive_send(struct hg_drive *d, struct hg_err *err);

/* The job object of a submission, a new reference. */
json_t *hg_drive_make_job(const struct hg_drive *d, const struct hg_submission *sub);

#endif
