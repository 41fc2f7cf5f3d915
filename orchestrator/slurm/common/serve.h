/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_COMMON_SERVE_H
#define HG_SLURM_COMMON_SERVE_H

#include "slurm/common/call.h"
#include "slurm/common/job.h"

#define HG_AGENT_PROTOCOL 1

/* An agent: what it does for each operation of the protocol (slurm/protocol.md). hg_agent_main does everything that is the same
 * for all agents, from the command line to the checks of a request. An operation returns 0 after it filled the answer
 * (call->ok, or the list that is handed over), or -1 with call->err set. */
struct hg_agent {
    const char *program; /* "hpcgrid-slurm" */
    const char *library; /* blamed for a call that ends the program: "libslurm" */
    const char *usage;   /* the text after "usage: PROGRAM" */
    bool has_argument;   /* it takes one: the site's member for this transport, as JSON */

    const char *(*built_with)(void); /* "libslurm 22.05.8", for --version; may be NULL */

    /* Start. Returns the descriptor for answers; stdout is only written through it from now on. -1 with err set. */
    int (*begin)(const char *argument, struct hg_err *err);
    int (*need_slurm)(struct hg_agent_call *call); /* before every operation but hello */
    void (*collect)(
        struct hg_buf *site); /* after every operation: what was printed meanwhile; may be NULL */

    int (*hello)(struct hg_agent_call *call); /* adds "library" and "conf" */
    int (*limits)(struct hg_agent_call *call);

    /* what: for messages, "submit (partition x, gres gpu:2)". call->submitting is set during submit. */
    int (*submit)(struct hg_agent_call *call, struct hg_agent_job *job, const char *what);
    int (*probe)(struct hg_agent_call *call, struct hg_agent_job *job, const char *what);

    /* Append the records of this user's jobs. */
    int (*poll)(struct hg_agent_call *call, json_t *jobs);

    /* Put the last record of each job whose key is in the set into latest (hg_agent_keep_latest). */
    int (*history)(struct hg_agent_call *call, const json_t *keys, double since_s, json_t *latest);

    /* tasks NULL: the whole array. */
    int (*cancel)(struct hg_agent_call *call, long long job_id, const char *tasks);
    int (*hold)(struct hg_agent_call *call, long long job_id, const char *tasks, bool held);

    int (*partitions)(struct hg_agent_call *call, json_t *list);
    int (*nodes)(struct hg_agent_call *call, json_t *list);

    /* Append what the accounting database knows of a user: {"cluster", "account", "qos" (the default one), "default": is it
     * the user's default account there?}. */
    int (*accounts)(struct hg_agent_call *call, const char *user, json_t *list);
};

/* Answer requests from stdin until it ends or "quit" comes. Should something inside a call exit(), the request is still
 * answered. Returns the program's exit code. */
int hg_agent_main(const struct hg_agent *agent, int argc, char **argv);

#endif
