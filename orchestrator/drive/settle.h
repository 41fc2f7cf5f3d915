/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_SETTLE_H
#define HG_DRIVE_SETTLE_H

#include "drive/state.h"

/* Find out how cells ended and what became of ambiguous submissions; journal it. */
int hg_drive_settle(struct hg_drive *d, struct hg_err *err);

#endif
