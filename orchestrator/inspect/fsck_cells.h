/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_INSPECT_FSCK_CELLS_H
#define HG_INSPECT_FSCK_CELLS_H

#include "inspect/check.h"

/* Check cells/: every attempt by its own files, then against the journal. */
void hg_fsck_cells(struct hg_check *c);

#endif
