/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_COMMON_JOB_H
#define HG_SLURM_COMMON_JOB_H

#include "slurm/common/call.h"
#include "contract/sbatch.h"

#define HG_AGENT_KEY_DIGITS 32

/* The request's "job" as written. Strings are NULL where absent. */
struct hg_agent_fields {
    char *key, *name, *script, *work_dir, *output, *array, *gres;
    char *partition, *account, *qos, *constraint, *reservation, *licenses;
    char **args, **extra;  /* NULL, or NULL-terminated */
    long long running_max; /* 0: no limit */
    long long nodes, tasks_per_node, cpus_per_task;
    long long mem_mib;       /* per node; -1: not requested */
    long long signal_lead_s; /* 0: none */
    double time_s;           /* 0: the partition's */
    bool requeue, requeue_is_said;
};

struct hg_agent_job {
    struct hg_agent_fields f;
    struct hg_buf script;             /* text of the batch script */
    struct hg_sbatch_options options; /* extra, understood */
    char *comment, *name;             /* "hg-KEY"; the name, which also contains it */
    struct hg_agent_words env;        /* "NAME=value": what the job may see */
};

/* Decode the request's "job" and do the checks that sbatch does before it sends anything. -1 with
 * call->err set: BUG where the object breaks the protocol, REFUSED where the job cannot run. Release
 * with hg_agent_job_done either way. */
int hg_agent_job_read(struct hg_agent_job *job, struct hg_agent_call *call);
void hg_agent_job_done(struct hg_agent_job *job);

/* Add the SLURM_* that sbatch sets itself to the environment, for agents that do not use sbatch. */
void hg_agent_job_add_slurm_env(struct hg_agent_job *job);

/* Minutes of time_s, rounded up. */
unsigned hg_agent_job_minutes(const struct hg_agent_fields *f);

/* What a controller's refusal is most likely about, " (partition x, gres gpu:2)": its own words do not say. */
void hg_agent_job_name_request(const struct hg_agent_fields *f, char out[static 256]);

#endif
