/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_RUNBOX_H
#define HG_CMD_RUNBOX_H

#include "cmd/session.h"

/* `run --box`: a box with the nodes that the run's cells ask for. Its name stands in the run's box.json,
 * so that resume, watch, status and cancel find it. SLURM_CONF points at it afterwards. */
int hg_cmd_start_box(struct hg_session *s, const struct hg_site *site, struct hg_err *err);

/* Remove the box once its run is over, or when this process started it and nothing was submitted. */
void hg_cmd_end_box(struct hg_session *s);

#endif
