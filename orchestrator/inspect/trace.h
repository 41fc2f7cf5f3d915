/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_INSPECT_TRACE_H
#define HG_INSPECT_TRACE_H

#include <stdio.h>

#include "rundir/rundir.h"
#include "inspect/timeline.h"

/* Chrome's trace format, as Perfetto reads it: one object, times in microseconds from its
 * "baseTimeNanoseconds". Events are written one by one, so that memory holds only the timeline. The caller checks
 * the file for write errors (ferror). */

/* A run: nodes as processes, each with as many threads as it had attempts at a time; queues, one for each
 * batch; counters of cells. */
void hg_trace_run(const struct hg_rundir *rd, const struct hg_timeline *t, FILE *out);

#endif
