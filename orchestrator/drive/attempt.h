/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_ATTEMPT_H
#define HG_DRIVE_ATTEMPT_H

#include "drive/state.h"

/* The attempt of a cell that counts; of a submission, or under a claim number (0: any). */
int hg_drive_find_attempt(struct hg_drive *d, const struct hg_submission *sub, uint32_t line,
                          struct hg_attempt *a, struct hg_err *err);
int hg_drive_find_claimed(struct hg_drive *d, int batch, uint32_t line, uint32_t claim,
                          struct hg_attempt *a, struct hg_err *err);

/* It has ended with status "ok". */
bool hg_drive_is_good(const struct hg_attempt *a);

#endif
