/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_PACK_H
#define HG_RUNDIR_PACK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "rundir/attempts.h"

/* The pack of a group: one tar file with the files of attempts that have ended. Only rundir/compact.h's caller writes here, with the run's
 * lock. */

/* Are all files in an attempt's folder of hpcgrid's own kind, so that a pack can take them? */
bool hg_pack_can_take(const char *dir);

/* Write the wanted attempts of a group (by their index) into its pack, after those that it has. An attempt that changes meanwhile is left
 * out. Written to a temporary file, synced, renamed; if nothing could be packed, the pack stays as it is. *packed is the number of attempts that were
 * added. 0, or -1 with err set. */
int hg_pack_write(const struct hg_attempt_group *g, const bool *wanted, const char *path,
                  size_t *packed, struct hg_err *err);

/* Remove the folder of an attempt if the pack has all its files, byte for byte; some may be gone already, if an earlier call was killed.
 * 1: removed, 0: it differs and stays, -1 with err set. */
int hg_pack_remove_folder(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                          struct hg_err *err);

#endif
