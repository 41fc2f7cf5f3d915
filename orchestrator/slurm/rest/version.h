/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_REST_VERSION_H
#define HG_SLURM_REST_VERSION_H

#include "slurm/common/call.h"

/* Begin a call. Learn, once, which versions the slurmrestd has, choose one, and see that it lets this user in and reaches
 * its slurmctld: what goes wrong here was never submitted. 0, or -1 with call->err set (ENV). */
int hg_rest_ready(struct hg_agent_call *call);

#endif
