/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_INSPECT_FSCK_PLAN_H
#define HG_INSPECT_FSCK_PLAN_H

#include "inspect/fsck_pass.h"

/* Check matrix.json, site.json, plan.json and the batches: are they complete, and do they match? Fills plan, run_key, ids and
 * complete. */
void hg_fsck_plan(struct hg_fsck_pass *c);

#endif
