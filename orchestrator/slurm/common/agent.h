/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_COMMON_AGENT_H
#define HG_SLURM_COMMON_AGENT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/* What every agent is made of; README.md has the protocol. Nothing here needs Slurm's library. */

#define HG_AGENT_PROTOCOL 1

/* One request while it is served. */
struct hg_agent_call {
    const struct hg_json_doc *request;
    json_t *ok;         /* the answer, an object to be filled */
    struct hg_err err;  /* set: the answer is an error */
    int number;         /* Slurm's error number or the system's; 0: none */
    struct hg_buf site; /* what Slurm, or the site behind it, said during this call */
    unsigned rpcs;      /* messages sent to controller or accounting daemon */
    bool unfit;         /* the error: this agent does not go with this Slurm */
    bool submitting;    /* the job may be on its way: dying now is ambiguous */
    long doubt_s;       /* if it is: so long it may still appear; 0: as limits say */
};

/* ---- serve.c ---- */

struct hg_agent_op {
    const char *name;
    int (*run)(struct hg_agent_call *call); /* 0, or -1 with call->err set */
    bool needs_slurm;
};

struct hg_agent {
    const char *library;           /* what a call that ends the program is blamed on: "libslurm" */
    const struct hg_agent_op *ops; /* name NULL: end; "quit" is known without */
    int (*need_slurm)(struct hg_agent_call *call); /* before the ops that need it; may be NULL */
    void (*collect)(
        struct hg_buf *site); /* after every op: what was printed meanwhile; may be NULL */
};

/* Answer requests from stdin until it ends or "quit" comes; answers go to the descriptor `out`. Should
 * something inside a call exit(), the request is still answered. Returns the program's exit code. */
int hg_agent_serve(const struct hg_agent *agent, int out);

/* Put a member into the answer; the reference is taken. */
void hg_agent_add(struct hg_agent_call *call, const char *name, json_t *value);

/* A JSON string of what may be NULL, or no UTF-8. */
json_t *hg_agent_text(const char *s);

/* "job_id" and "tasks" of cancel and hold. *tasks NULL: the whole array. BUG where they are none. */
int hg_agent_which(struct hg_agent_call *call, const char *op, long long *job_id,
                   const char **tasks);

/* "keys" and "since_s" of history are there. BUG where they are not. */
int hg_agent_check_history(struct hg_agent_call *call);

/* ---- codes.c ---- */

#define HG_AGENT_SLURM_ERROR -1
#define HG_AGENT_PROTOCOL_VERSION 1005
#define HG_AGENT_NO_NODES 2014 /* "Requested node configuration is not available" */

/* What an error number says about a submission (AGAIN, AMBIGUOUS, REFUSED, ENV, NOTFOUND): Slurm's
 * codes by table, the system's by rule, -1 (a site plugin said no) is REFUSED. `site` is what
 * Slurm printed: a credential that could not even be made was never sent. A number of Slurm's
 * that the table does not know is REFUSED where controllers answer with it (2000-2999), else
 * AMBIGUOUS. */
enum hg_err_code hg_agent_classify(int number, const char *site);

/* True if the table lists this number of Slurm's. */
bool hg_agent_knows(int number);

/* The members of a job that an error number of Slurm's is about, with commas; NULL: they are not known. */
const char *hg_agent_about(int number);

/* Record a failure with this number; text is Slurm's own for it. call->site has what Slurm printed.
 * AMBIGUOUS becomes AGAIN unless this is a submission: asking again does no harm. Returns -1. */
int hg_agent_fail_number(struct hg_agent_call *call, int number, const char *text, const char *fmt,
                         ...) __attribute__((format(printf, 4, 5)));

/* Slurm has answered, and the answer could be read: should that fail later, the versions are not the reason. */
void hg_agent_understood(void);

/* A controller that has just started knows nothing of a node until that has registered: what it refuses
 * for its lack of nodes, it may take in a moment. Makes such a refusal AGAIN; of total nodes,
 * `unregistered` have not. */
void hg_agent_excuse(struct hg_agent_call *call, size_t unregistered, size_t total);

/* ---- texts.c ---- */

/* The number of the error that Slurm's own words for it end a line with, in the C locale; 0: not known. */
int hg_agent_number_of(const char *text);

/* ---- conf.c ---- */

/* The file that Slurm's programs will read, or NULL; yours. prefix: where Slurm is installed, NULL: not
 * known. */
char *hg_agent_find_conf(const char *prefix);

/* The error that there is none. */
int hg_agent_no_conf(struct hg_agent_call *call);

/* Does the munged of this slurm.conf (NULL: not known) answer? 0, or -1 with ENV. Other kinds of
 * authentication have none: 0. */
int hg_agent_check_auth(struct hg_agent_call *call, const char *conf);

/* How long a credential lives, from AuthInfo (may be NULL). */
long hg_agent_credential_life_s(const char *auth_info);

/* ---- munge.c ---- */

/* Is there a munged at this socket that answers? 0, or -1 with ENV: there is none, or none that answers
 * within some seconds. */
int hg_agent_check_munge(struct hg_agent_call *call, const char *path);

#endif
