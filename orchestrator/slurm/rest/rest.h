/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_REST_REST_H
#define HG_SLURM_REST_REST_H

#include <jansson.h>
#include <stdbool.h>

#include "slurm/common/job.h"
#include "slurm/rest/rest_http.h"
#include "slurm/rest/rest_token.h"
#include "contract/restconfig.h"

/* Inside hpcgrid-rest; slurm/README.md has the protocol and what slurmrestd can do. */

/* What is known of the slurmrestd. */
struct hg_rest {
    struct hg_rest_config config;
    char *url, *base, *socket; /* as given; what is asked; NULL: there is none */
    bool known;                /* the rest holds */
    char api[16];              /* "v0.0.40" */
    bool plain;        /* v0.0.38: numbers, states and lists are written in their own ways */
    bool kills_lists;  /* many tasks can be cancelled by one request */
    bool has_accounts; /* it speaks to an accounting daemon, as far as it says */
    json_t *members;   /* of a job that is submitted, from its own description */
    char release[32];  /* of Slurm; "" until an answer said it */
    char cluster[64];
};

extern struct hg_rest hg_rest;

/* ---- rest_api.c ---- */

enum hg_rest_area { HG_REST_SLURM, HG_REST_DATABASE, HG_REST_OTHER };

/* Seconds that the requests of one call may take together. */
double hg_rest_timeout_s(void);

/* What slurmrestd does not tell: the site's word, or Slurm's default. */
long long hg_rest_max_array_size(void);
long hg_rest_ambiguous_s(void); /* at most; a token that ends sooner makes it less */

/* Begin a call. Learn, once, which versions the slurmrestd has, choose one, and see that it lets this user in and reaches
 * its slurmctld: what goes wrong here was never submitted. 0, or -1 with call->err set (ENV). */
int hg_rest_ready(struct hg_agent_call *call);

/* One request. path is what follows the area and version: "/jobs" (OTHER: all of it). body is consumed; NULL:
 * none. *answer is a new reference to the JSON object that came back, also where its "errors" say no, which
 * hg_rest_check is for. -1 with call->err set: ENV or AGAIN, nothing was done; AMBIGUOUS (only while
 * call->submitting): nobody knows. */
int hg_rest_ask(struct hg_agent_call *call, const char *method, enum hg_rest_area area,
                const char *path, json_t *body, json_t **answer);

/* The first error number of an answer, -1 where it has an error without one, 0: none. *text is lent. */
int hg_rest_errno(const json_t *answer, const char **text);

/* Record this error of an answer, as hg_agent_fail does one of libslurm's. Returns -1. */
int hg_rest_fail(struct hg_agent_call *call, int number, const char *text, const char *what);

/* Ask for a list, "/jobs" or "/jobs?...", and hand on an error as call->err. That there is none is one. */
int hg_rest_get(struct hg_agent_call *call, enum hg_rest_area area, const char *path,
                const char *what, json_t **answer);

/* A number as one of the versions writes it; dflt where it is not set or infinite. */
json_int_t hg_rest_number(const json_t *value, json_int_t dflt);

/* A text, "" where there is none; a list: its first. */
const char *hg_rest_text(const json_t *value);

/* Does the list (or the text) have this word? Case does not count. */
bool hg_rest_has(const json_t *value, const char *word);

/* ---- rest_submit.c ---- */

/* The body of a submission. NULL with call->err set: REFUSED where this version of the API cannot say what is
 * asked for. Adds to the job's environment. */
json_t *hg_rest_submission(struct hg_agent_call *call, struct hg_agent_job *job);

/* ---- rest_jobs.c ---- */

int hg_rest_poll(struct hg_agent_call *call);
int hg_rest_history(struct hg_agent_call *call);

/* ---- rest_lists.c ---- */

int hg_rest_partitions(struct hg_agent_call *call);
int hg_rest_nodes(struct hg_agent_call *call);

#endif
