/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_REST_SUBMIT_H
#define HG_SLURM_REST_SUBMIT_H

#include "slurm/common/job.h"

/* The body of a submission. NULL with call->err set: REFUSED where this version of the API cannot express
 * the request. Adds to the job's environment. */
json_t *hg_rest_submission(struct hg_agent_call *call, struct hg_agent_job *job);

#endif
