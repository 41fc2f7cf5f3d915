/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_CLI_LISTS_H
#define HG_SLURM_CLI_LISTS_H

#include "slurm/common/call.h"

int hg_agent_partitions(struct hg_agent_call *call, json_t *list);
int hg_agent_nodes(struct hg_agent_call *call, json_t *list);
int hg_agent_accounts(struct hg_agent_call *call, const char *user, json_t *list);

#endif
