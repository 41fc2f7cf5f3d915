/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_INSPECT_FSCK_JOURNAL_H
#define HG_INSPECT_FSCK_JOURNAL_H

#include "inspect/check.h"

/* Check events.jsonl: every line by its checksum, then all of them together, then against the plan. Fills state. */
void hg_fsck_journal(struct hg_check *c);

/* Has the journal grown since it was read? Then state is read again. Whatever is in the run was in the journal before, so
 * only what the new state does not explain is odd. */
bool hg_fsck_reread(struct hg_check *c);

#endif
