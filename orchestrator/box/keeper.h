/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BOX_KEEPER_H
#define HG_BOX_KEEPER_H

#include <jansson.h>

#include "box/daemons.h"
#include "box/process.h"

/* The process that owns a box: it starts the daemons, adopts every orphan below them, and ends them all. */

/* Fork the keeper, which starts the daemons, completes the record with them, saves it and stays. Returns when all run (not
 * yet: nodes idle). ENV with the end of the log of the daemon that failed; nothing of the box runs then. */
int hg_box_keeper_start(const struct hg_box_setup *setup, json_t *record, struct hg_err *err);

/* Request a living keeper to start dead daemons again. */
void hg_box_keeper_heal(struct hg_box_process keeper);

/* Request a keeper to end everything, wait until it has; force it after a while. */
void hg_box_keeper_stop(struct hg_box_process keeper);

/* End what a dead keeper left: the daemons of the record (NULL: there is none, or it is of an earlier boot), daemons that it did not
 * record before it was killed, step daemons and their descendants. */
void hg_box_orphans_stop(const char *dir, const json_t *record);

#endif
