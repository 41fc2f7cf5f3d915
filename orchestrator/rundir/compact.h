/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_COMPACT_H
#define HG_RUNDIR_COMPACT_H

#include <stddef.h>

#include "base/err.h"
#include "rundir/runstate.h"
#include "rundir/rundir.h"

/* Attempts that have ended, put into one plain tar file a group, so that a sweep of 100,000 cells has a few hundred inodes:
 * cells/<batch>-<group>.tar (rundir/attempts.h), readable with tar(1). The pack is written to a temporary file, synced, renamed; only then are the
 * folders removed of which the pack has every file, byte for byte. Killed at any point it loses nothing, and the next call finishes. */

/* Why attempts are not packed. */
enum hg_compact_kept {
    HG_COMPACT_OPEN,   /* their cells are not over */
    HG_COMPACT_RESULT, /* no result that counts */
    HG_COMPACT_RECENT, /* the result is not a good one, and young: the workload may still be ending */
    HG_COMPACT_FILES, /* with files of the workload's, links, or other files that hpcgrid does not write */
    HG_COMPACT_CHANGED, /* changed while they were packed, or packed already with other content */
    HG_COMPACT_REASONS
};

extern const char *const hg_compact_reasons
    [HG_COMPACT_REASONS]; /* as the end of a sentence: "12 of cells that are not over" */

struct hg_compact_count {
    size_t packed; /* attempts that this call has put into packs */
    size_t packs;  /* that it has written */
    size_t before; /* attempts that were in packs already */
    size_t kept[HG_COMPACT_REASONS];
};

/* Pack a run, whose lock is the caller's. state: of its journal; NULL: none, and a cell with a good result is over. Returns 0, or -1
 * with err set: what was done until then stays done. */
int hg_compact_run(const struct hg_rundir *rd, const struct hg_run_state *state,
                   struct hg_compact_count *count, struct hg_err *err);

#endif
