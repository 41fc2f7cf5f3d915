/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_CLI_SUBMIT_H
#define HG_SLURM_CLI_SUBMIT_H

#include "slurm/common/job.h"

int hg_agent_submit(struct hg_agent_call *call, struct hg_agent_job *job, const char *what);
int hg_agent_probe(struct hg_agent_call *call, struct hg_agent_job *job, const char *what);

#endif
