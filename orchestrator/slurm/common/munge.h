/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_COMMON_MUNGE_H
#define HG_SLURM_COMMON_MUNGE_H

#include "slurm/common/call.h"

/* Is there a munged at this socket that answers? 0, or -1 with ENV: there is none, or none that answers
 * within some seconds. */
int hg_agent_check_munge(struct hg_agent_call *call, const char *path);

#endif
