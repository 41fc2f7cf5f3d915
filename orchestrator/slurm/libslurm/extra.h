/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_LIBSLURM_EXTRA_H
#define HG_SLURM_LIBSLURM_EXTRA_H

#include <slurm/slurm.h>

#include "slurm/common/call.h"
#include "contract/sbatch.h"

/* Put sbatch options into a descriptor. Strings are lent by the options, except those that `kept` takes. */
int hg_agent_extra(job_desc_msg_t *desc, const struct hg_sbatch_options *options,
                   struct hg_agent_words *kept, struct hg_err *err);

/* "gres:" or "gres/", as this version of Slurm writes it in front of generic resources. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
#define HG_AGENT_GRES "gres/"
#else
#define HG_AGENT_GRES "gres:"
#endif

#endif
