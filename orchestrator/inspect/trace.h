/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_INSPECT_TRACE_H
#define HG_INSPECT_TRACE_H

#include <stdio.h>

#include "base/err.h"
#include "rundir/rundir.h"
#include "inspect/timeline.h"

/* Chrome's trace format, as Perfetto reads it: one object, times in microseconds from its
 * "baseTimeNanoseconds". Events are written one by one; only what they are made of stays in memory. A
 * file that cannot be written is the caller's to see (ferror). */

/* A run: nodes as processes, on each as many threads as it had attempts at a time; queues, one for each
 * batch; counters of cells. */
int hg_trace_run(const struct hg_rundir *rd, const struct hg_timeline *t, FILE *out,
                 struct hg_err *err);

/* What the worker's profiler wrote of one attempt, trace.<rank>.json.gz in its folder, as one: ranks as
 * processes, by their hosts' wall clocks. NOTFOUND if there is none; INPUT names the file and line that
 * is not as the worker writes it. gzip must be there. */
int hg_trace_ranks(const char *attempt_dir, FILE *out, struct hg_err *err);

#endif
