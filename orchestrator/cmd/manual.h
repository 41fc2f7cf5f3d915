/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_MANUAL_H
#define HG_CMD_MANUAL_H

#include "base/err.h"

/* Write the manual pages to dir/man1/hpcgrid.1, hpcgrid-run.1, ..., dir/man5/hpcgrid-matrix.5, from the tables of commands and
 * options and the topics of help. Returns 0, or -1 with err set. */
int hg_cmd_manual_save(const char *dir, struct hg_err *err);

#endif
