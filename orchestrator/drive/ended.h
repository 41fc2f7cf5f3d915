/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_ENDED_H
#define HG_DRIVE_ENDED_H

#include "drive/state.h"

/* The job of this cell has ended or is missing: take its result, give a verdict, send it again, or wait (counts as awaited). */
int hg_drive_settle_cell(struct hg_drive *d, int batch, uint32_t line, struct hg_err *err);

#endif
