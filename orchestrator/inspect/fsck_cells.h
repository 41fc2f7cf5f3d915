/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_INSPECT_FSCK_CELLS_H
#define HG_INSPECT_FSCK_CELLS_H

#include "inspect/fsck_pass.h"

/* Check events.jsonl: every line by its checksum, then all of them together, then against the plan. Fills state. */
void hg_fsck_journal(struct hg_fsck_pass *c);

/* Check cells/, after the journal: every attempt by its own files, then against the journal. */
void hg_fsck_cells(struct hg_fsck_pass *c);

#endif
