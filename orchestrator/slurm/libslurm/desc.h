/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_LIBSLURM_DESC_H
#define HG_SLURM_LIBSLURM_DESC_H

#include <slurm/slurm.h>

#include "slurm/common/job.h"

/* The descriptor that libslurm sends. Everything that it points to lives in here, or in the job. */
struct hg_agent_desc {
    job_desc_msg_t msg;
    struct hg_agent_job *job; /* borrowed */
    struct hg_agent_words kept;
    char **argv;
};

/* for_array false: leave the array out. The job is borrowed; its environment grows. -1 with REFUSED. Release d either way. */
int hg_agent_desc_fill(struct hg_agent_desc *d, struct hg_agent_job *job, bool for_array,
                       struct hg_err *err);
void hg_agent_desc_done(struct hg_agent_desc *d);

#endif
