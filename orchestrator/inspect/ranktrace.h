/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_INSPECT_RANKTRACE_H
#define HG_INSPECT_RANKTRACE_H

#include <stdio.h>

#include "base/err.h"

/* Write what the worker's profiler wrote of one attempt, trace.<rank>.json.gz in its folder, as one trace in the form of inspect/trace.h:
 * ranks as processes, by their hosts' wall clocks. NOTFOUND if there is none; INPUT names the file and line that is not as the worker
 * writes it. Needs gzip. */
int hg_trace_ranks(const char *attempt_dir, FILE *out, struct hg_err *err);

#endif
