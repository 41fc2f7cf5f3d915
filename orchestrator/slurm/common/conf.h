/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_COMMON_CONF_H
#define HG_SLURM_COMMON_CONF_H

#include "slurm/common/call.h"

/* The file that Slurm's programs will read, or NULL; yours. prefix: where Slurm is installed, NULL: not
 * known. */
char *hg_agent_find_conf(const char *prefix);

/* The error that there is none. */
int hg_agent_no_conf(struct hg_agent_call *call);

/* How long a credential lives, from AuthInfo (may be NULL). */
long hg_agent_credential_life_s(const char *auth_info);

#endif
