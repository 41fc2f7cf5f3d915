/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_LIBSLURM_JOBS_H
#define HG_SLURM_LIBSLURM_JOBS_H

#include "slurm/common/call.h"

/* Append this user's jobs that carry a key: one message to the controller. */
int hg_agent_poll(struct hg_agent_call *call, json_t *jobs);

/* The same for these keys from the accounting database, the last record of each job. */
int hg_agent_history(struct hg_agent_call *call, const json_t *keys, double since_s,
                     json_t *latest);

/* A user's accounts in the accounting database, as `accounts` of struct hg_agent. */
int hg_agent_accounts(struct hg_agent_call *call, const char *user, json_t *list);

#endif
