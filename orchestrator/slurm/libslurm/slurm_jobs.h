/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_LIBSLURM_SLURM_JOBS_H
#define HG_SLURM_LIBSLURM_SLURM_JOBS_H

#include "slurm/common/records.h"
#include "slurm/libslurm/slurm.h"

/* Fill call->ok with "jobs": this user's jobs that carry a key, one message to the controller. */
int hg_agent_poll(struct hg_agent_call *call);

/* The same for the request's keys from the accounting database. The caller has made sure that there
 * is one. */
int hg_agent_history(struct hg_agent_call *call);

#endif
