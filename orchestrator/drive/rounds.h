/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_ROUNDS_H
#define HG_DRIVE_ROUNDS_H

#include "drive/state.h"

/* Adaptive repeats: `min` runs of each configuration are submitted at first, the rest is held back as not needed. When all runs asked
 * for have ended, the interval of the good ones says whether more are needed, and how many (results/adaptive.h). A round is
 * journalled before it is submitted; the same results give the same decision, so it does not matter who drives. */

/* For the journal's record of a plan that has grown: which of the new lines of each batch are held back, a list of index sets; NULL:
 * none. A new reference. */
json_t *hg_drive_spare_lines(const struct hg_drive *d);

/* Ask for what the configurations need whose runs have all ended. */
int hg_drive_rounds(struct hg_drive *d, struct hg_err *err);

void hg_drive_rounds_done(struct hg_drive *d);

#endif
