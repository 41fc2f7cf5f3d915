/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_FAILURES_H
#define HG_CMD_FAILURES_H

#include "base/buf.h"
#include "plan/batch.h"
#include "rundir/rundir.h"
#include "rundir/runstate.h"

/* What a person reads about cells without a good result, on stderr. */

/* Append the last line that the newest attempt at a cell wrote to stderr, or else to stdout; nothing if there is none. */
void hg_failures_last_line(const struct hg_rundir *rd, int batch, size_t line, const char *id,
                           struct hg_buf *out);

/* Is anything of this said already? */
struct hg_failures_options {
    /* They were printed: they name the cells that cannot run, and those that the matrix has no more. */
    bool tables;
    bool no_retry; /* `hpcgrid retry` would not reach the run's Slurm */
};

/* At the end of a run: cells that failed, grouped by cause, each with its last line and the command that shows more, and how to
 * run them again. However many failed, it is a few lines. */
void hg_failures_tell(const struct hg_rundir *rd, const struct hg_plan *plan,
                      const struct hg_run_state *state, struct hg_failures_options options);

#endif
