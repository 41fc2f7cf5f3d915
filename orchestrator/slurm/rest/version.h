/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_REST_VERSION_H
#define HG_SLURM_REST_VERSION_H

#include "slurm/common/call.h"

/* Begin a call. Learn, once, which versions the slurmrestd has, choose one, and check that it accepts this user and reaches
 * its slurmctld: an error here means that nothing was submitted. 0, or -1 with call->err set (ENV). */
int hg_rest_ready(struct hg_agent_call *call);

#endif
