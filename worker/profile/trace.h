/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WK_PROFILE_TRACE_H
#define WK_PROFILE_TRACE_H

#include "base/err.h"
#include "profile/profiler.h"

/* Write all of it as a trace that Perfetto, chrome://tracing and TensorBoard's trace viewer open: gzip-compressed
 * Chrome JSON, by rename. The process is the rank; its threads are "host" and "collectives". */
int wk_profiler_save(const struct wk_profiler *p, const char *path, struct hg_err *err);

#endif
