/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_LIBSLURM_EXTRA_H
#define HG_SLURM_LIBSLURM_EXTRA_H

#include <slurm/slurm.h>

#include "slurm/common/options.h"

/* Strings that a descriptor points to. */
struct hg_agent_keeper {
    char **items;
    size_t n, cap;
};

/* Own s until hg_agent_keeper_done; returns s. */
char *hg_agent_keep(struct hg_agent_keeper *keeper, char *s);
void hg_agent_keeper_done(struct hg_agent_keeper *keeper);

/* Put sbatch options into a descriptor. Strings are lent by the options, except those handed to keep(). */
int hg_agent_extra(job_desc_msg_t *desc, const struct hg_agent_options *options,
                   struct hg_agent_keeper *keeper, struct hg_err *err);

/* "gres:" or "gres/", as this version of Slurm writes it in front of generic resources. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
#define HG_AGENT_GRES "gres/"
#else
#define HG_AGENT_GRES "gres:"
#endif

#endif
