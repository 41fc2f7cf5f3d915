/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_LIBSLURM_SLURM_H
#define HG_SLURM_LIBSLURM_SLURM_H

#include <slurm/slurm.h>

#include "slurm/common/agent.h"
#include "slurm/common/job.h"

/* Inside hpcgrid-slurm. */

#define HG_AGENT_PROGRAM "hpcgrid-slurm"

/* Record the failure of a libslurm function that returned rc. Returns -1. */
int hg_agent_fail(struct hg_agent_call *call, int rc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- capture.c ---- */

/* Send stdout and stderr to a file in memory from now on. Returns a descriptor for the real stdout,
 * or -1. */
int hg_agent_capture(void);

/* Append what was printed on stderr since the last time, without "PROGRAM: error: ", to site. */
void hg_agent_collect(struct hg_buf *site);

/* ---- slurm_job.c ---- */

/* A job as the request describes it, and the descriptor made of it. Everything that desc points to
 * lives in here. */
struct hg_agent_desc;

/* Decode the request's "job" and do the checks that sbatch does before it sends anything. NULL with
 * call->err set: BUG where the object breaks the protocol, REFUSED where the job cannot run.
 * for_array false: leave the array out. */
struct hg_agent_desc *hg_agent_desc_create(struct hg_agent_call *call, bool for_array);
void hg_agent_desc_free(struct hg_agent_desc *d);
job_desc_msg_t *hg_agent_desc_msg(struct hg_agent_desc *d);

/* As hg_agent_job_name_request. */
void hg_agent_desc_name_request(const struct hg_agent_desc *d, char out[static 256]);

/* ---- slurm_extra.c ---- */

struct hg_agent_keeper {
    char *strings[32];
    size_t n;
};
/* Own s until the keeper is done; NULL (memory gone or full) passes through with err set. */
char *hg_agent_keep(struct hg_agent_keeper *keeper, char *s, struct hg_err *err);

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
