/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_LIBSLURM_CAPTURE_H
#define HG_SLURM_LIBSLURM_CAPTURE_H

#include "slurm/common/call.h"

/* Send stdout and stderr to a file in memory from now on. Returns a descriptor for the real stdout, or -1. */
int hg_agent_capture(void);

/* Append what was printed on stderr since the last time to site. */
void hg_agent_collect(struct hg_buf *site);

/* Record the failure of a libslurm function that returned rc, with what it printed. Returns -1. */
int hg_agent_fail(struct hg_agent_call *call, int rc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
