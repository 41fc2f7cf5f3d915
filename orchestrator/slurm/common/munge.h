/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_COMMON_MUNGE_H
#define HG_SLURM_COMMON_MUNGE_H

#include "slurm/common/call.h"

/* Does the munged of this slurm.conf (NULL: not known) answer within some seconds? 0, or -1 with ENV and a number: it
 * may be started again. 0 if the cluster authenticates in another way. */
int hg_agent_check_auth(struct hg_agent_call *call, const char *conf);

#endif
