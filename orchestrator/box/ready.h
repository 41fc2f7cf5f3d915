/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BOX_READY_H
#define HG_BOX_READY_H

#include <signal.h>

#include "box/boxes.h"
#include "box/tools.h"

/* Wait until all nodes of a box are idle. heal: dead daemons are started again on the way. ENV: it takes too long, a daemon is dead
 * (with the end of its log), the box was taken down, or an interrupt is pending. */
int hg_box_ready_wait(const struct hg_box_tools *tools, struct hg_box *box, bool heal,
                      struct hg_err *err);

/* Keep SIGINT, SIGTERM and SIGHUP back until a box is whole or gone. Restore *before with sigprocmask. */
void hg_box_ready_hold_interrupts(sigset_t *before);

#endif
