/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_RUNBOX_H
#define HG_CMD_RUNBOX_H

#include "plan/batch.h"
#include "rundir/rundir.h"

/* The box of `run --box`. Its name is in the run's box.json, so that resume, watch, status and cancel find it. */

#define HG_RUNBOX_NAME_MAX 40

/* Start a box with the nodes that the plan's cells need, or find it up, and point SLURM_CONF at it. name: filled in, also before a
 * failure. *is_new: it was not up before. Returns 0, or -1 with err set. */
int hg_runbox_start(const struct hg_rundir *rd, const struct hg_plan *plan,
                    const struct hg_site *site, char name[static HG_RUNBOX_NAME_MAX], bool *is_new,
                    struct hg_err *err);

/* Point SLURM_CONF at the box that the run was started in. name: its name; "": there is none. ENV: the box is not up. */
int hg_runbox_use(const struct hg_rundir *rd, char name[static HG_RUNBOX_NAME_MAX],
                  struct hg_err *err);

/* Take the box down and forget it; a failure is only a warning. */
void hg_runbox_end(const struct hg_rundir *rd, const char *name);

#endif
