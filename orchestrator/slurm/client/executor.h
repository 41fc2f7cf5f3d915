/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_CLIENT_EXECUTOR_H
#define HG_SLURM_CLIENT_EXECUTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* clang-format off */
/* A way to run jobs. One file holds one `const struct hg_executor`.
 *
 * A job is a JSON object, the description that the request to Slurm, the printed #SBATCH header and plan.json share:
 *
 *   name, script, work_dir                strings
 *   output                                path pattern, opened for appending; all tasks of an array may share one file
 *   args                                  list of the script's arguments
 *   array                                 index set: "0-9,12"
 *   running_max                           integer, the array's %N; absent: no limit
 *   nodes, tasks_per_node, cpus_per_task  integers
 *   gres                                  "gpu:a100:2" per node; absent: none
 *   mem_mib                               per node; absent: the site's default
 *   time_s                                limit; absent: the partition's
 *   partition, account, qos, constraint, reservation, licenses
 *                                         strings, absent where not requested
 *   signal_lead_s                         USR1 to the steps so long before the limit; absent: none
 *   requeue                               bool
 *   extra                                 list of further sbatch options, as typed
 *   key                                   32 hex digits, new for each submission: it travels in comment, name and output,
 *                                         as "hg-<key>", because sites rewrite some of them
 *
 * Errors:
 *   AGAIN      certainly not submitted, try later
 *   AMBIGUOUS  it is unknown whether it was submitted: look the key up
 *   REFUSED    certainly not submitted, and not worth another try; the text is the site's own
 *   ENV        not reachable, certainly not submitted
 *
 * None of the methods prints. A method never blocks longer than the deadline given to open.
 */
/* clang-format on */
struct hg_executor_session; /* an open session; each executor has its own */

struct hg_executor_limits {
    uint32_t max_array_size; /* indices go to max_array_size - 1 */
    uint32_t max_jobs;       /* of the whole controller */
    uint32_t ambiguous_s;    /* how long a lost submission may still appear: munge's ttl */
    uint32_t min_job_age_s;  /* how long finished jobs stay visible */
    uint32_t call_s;         /* how long one call may be under way; 0: the deadline */
    bool accounting;         /* accounting knows them after that */
    char version[32];        /* of the scheduler; "" if none */
    char cluster[64];
};

/* One or more tasks of one array that share a state. */
struct hg_executor_job {
    char key[33];    /* as submitted */
    uint32_t job_id; /* of the array */
    char *tasks;     /* index set "0-9,12"; "": no array, or what stays of a cancelled one; owned */
    char state[24]; /* Slurm's base state: PENDING RUNNING COMPLETED FAILED TIMEOUT CANCELLED ... */
    char reason[64]; /* why it is pending or failed */
    char nodes[128];
    uint32_t restarts;
    int exit_status;                 /* wait status of the batch script; 0 while it runs */
    double submit_s, start_s, end_s; /* seconds since 1970; 0 = not yet */
    /* The start that the scheduler expects of one that waits; 0: it does not say. */
    double expected_s;
};

struct hg_executor_jobs {
    struct hg_executor_job *items;
    size_t n, cap;
};

struct hg_executor_counts {
    unsigned submits, polls, cancels; /* a hold or release counts as a cancel */
};

/* What a session knows about itself. */
struct hg_executor_facts {
    struct hg_executor_counts counts; /* requests so far */
    const char *transport; /* how requests travel, as "transport" of a site; NULL: only one way */
    double cpu_s;          /* CPU time of its process since that began; it may be started again */
    bool away;             /* the last error: the scheduler does not answer, waiting may help */
    /* How long the last AMBIGUOUS submission may still appear; 0: as limits say. */
    uint32_t doubt_s;
    char about[96]; /* members of the job that the last refusal was about, "a,b"; "": unknown */
};

struct hg_executor {
    const char *name;

    /* deadline_s: of each later call. config: executor's own (may be NULL); of "slurm": the site as
     * written, for its "transport". */
    struct hg_executor_session *(*open)(const json_t *config, double deadline_s,
                                        struct hg_err *err);
    int (*limits)(struct hg_executor_session *x, struct hg_executor_limits *limits,
                  struct hg_err *err);

    /* All or nothing. *job_id is the array's id. */
    int (*submit)(struct hg_executor_session *x, const json_t *job, uint32_t *job_id,
                  struct hg_err *err);

    /* Would this job be accepted? 0 or -1 with REFUSED; burns no job id where that can be avoided. */
    int (*probe)(struct hg_executor_session *x, const json_t *job, struct hg_err *err);

    /* All jobs of this user that carry an hpcgrid key and are still in the controller's table: one
     * RPC however many there are. Absence says nothing about how a job ended. */
    int (*poll)(struct hg_executor_session *x, struct hg_executor_jobs *jobs, struct hg_err *err);

    /* Look keys up in accounting, for jobs that have left the table. since_s: not before. */
    int (*history)(struct hg_executor_session *x, const char *const *keys, size_t n_keys,
                   double since_s, struct hg_executor_jobs *jobs, struct hg_err *err);

    /* Cancel these tasks ("0-9"; NULL: the whole array). Tasks that have ended already are fine. */
    int (*cancel)(struct hg_executor_session *x, uint32_t job_id, const char *tasks,
                  struct hg_err *err);

    /* held: keep these tasks from starting, as their user ("JobHeldUser"); running tasks continue.
     * Not held: release them; REFUSED where only an administrator may. Tasks that have ended
     * are fine. */
    int (*hold)(struct hg_executor_session *x, uint32_t job_id, const char *tasks, bool held,
                struct hg_err *err);

    const struct hg_executor_facts *(*facts)(
        const struct hg_executor_session *x); /* lent, always up to date */
    void (*close)(struct hg_executor_session *x);
};

extern const struct hg_executor hg_executor_slurm; /* Slurm, through an agent */

void hg_executor_jobs_done(struct hg_executor_jobs *jobs);

#endif
