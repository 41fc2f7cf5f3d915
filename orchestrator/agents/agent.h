/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_AGENTS_AGENT_H
#define HG_AGENTS_AGENT_H

#include <jansson.h>
#include <stdbool.h>
#include <slurm/slurm.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/* Inside hpcgrid-slurm; agents/README.md has the protocol. */

/* One request while it is served. */
struct hg_agent_call {
    const struct hg_json_doc *request;
    json_t *ok;         /* the answer, an object to be filled */
    struct hg_err err;  /* set: the answer is an error */
    int number;         /* Slurm's error number or the system's; 0: none */
    struct hg_buf site; /* what libslurm printed during this call */
    unsigned rpcs;      /* messages sent to controller or accounting daemon */
    bool unfit;         /* the error: this library does not go with this Slurm */
    bool submitting;    /* the job may be on its way: dying now is ambiguous */
};

/* ---- slurm_codes.c ---- */

/* What an error number says about a submission (AGAIN, AMBIGUOUS, REFUSED, ENV, NOTFOUND): Slurm's
 * codes by table, the system's by rule, -1 (a site plugin said no) is REFUSED. `site` is what
 * libslurm printed: a credential that could not even be made was never sent. A number of Slurm's
 * that the table does not know is REFUSED where controllers answer with it (2000-2999), else
 * AMBIGUOUS. */
enum hg_err_code hg_agent_classify(int number, const char *site);

/* True if the table lists this number of Slurm's. */
bool hg_agent_knows(int number);

/* Take what libslurm printed into call->site and record the failure of a libslurm function that
 * returned rc. AMBIGUOUS becomes AGAIN unless this is a submission: asking again does no harm.
 * Returns -1. */
int hg_agent_fail(struct hg_agent_call *call, int rc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- slurm_munge.c ---- */

/* Is there a munged at this socket that answers? 0, or -1 with ENV: there is none, or none that answers
 * within some seconds. */
int hg_agent_check_munge(struct hg_agent_call *call, const char *path);

/* ---- slurm_capture.c ---- */

#define HG_AGENT_PROGRAM "hpcgrid-slurm"

/* Send stdout and stderr to a file in memory from now on. Returns a descriptor for the real stdout,
 * or -1. */
int hg_agent_capture(void);

/* Append what was printed on stderr since the last time, without "PROGRAM: error: ", to site. */
void hg_agent_collect(struct hg_buf *site);

/* ---- slurm_job.c ---- */

/* A job as the request describes it, and the descriptor made of it. Everything that desc points to
 * lives in here. */
struct hg_agent_job;

/* Decode the request's "job" and do the checks that sbatch does before it sends anything. NULL with
 * call->err set: BUG where the object breaks the protocol, REFUSED where the job cannot run.
 * for_array false: leave the array out. */
struct hg_agent_job *hg_agent_job_create(struct hg_agent_call *call, bool for_array);
void hg_agent_job_free(struct hg_agent_job *job);
job_desc_msg_t *hg_agent_job_desc(struct hg_agent_job *job);

/* ---- slurm_extra.c ---- */

/* Put sbatch options, as typed, into a descriptor. Strings are kept by pointing into `words`,
 * except those handed to keep(), which owns them from then on. REFUSED with the option's name. */
struct hg_agent_keeper {
    char *strings[32];
    size_t n;
};
/* Own s until the keeper is done; NULL (memory gone or full) passes through with err set. */
char *hg_agent_keep(struct hg_agent_keeper *keeper, char *s, struct hg_err *err);
int hg_agent_extra(job_desc_msg_t *desc, char *const *words, struct hg_agent_keeper *keeper,
                   struct hg_err *err);

/* "gres:" or "gres/", as this version of Slurm writes it in front of generic resources. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
#define HG_AGENT_GRES "gres/"
#else
#define HG_AGENT_GRES "gres:"
#endif

#endif
