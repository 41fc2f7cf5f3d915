/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_AGAIN_H
#define HG_DRIVE_AGAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct hg_drive;

/* Run cells again that have ended without a good result: those in one of the states (a bit set of enum
 * hg_cell_state) that picks says (NULL: all of them). Returns how many, or -1. */
long hg_drive_again(struct hg_drive *d, unsigned statuses,
                    bool (*picks)(void *context, int batch, uint32_t line), void *context,
                    struct hg_err *err);

/* The same for what the matrix's "retry" allows. */
int hg_drive_retry(struct hg_drive *d, struct hg_err *err);

#endif
