/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_COMMON_CALL_H
#define HG_SLURM_COMMON_CALL_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/* Strings that are owned. */
struct hg_agent_words {
    char **items;
    size_t n, cap;
};

/* Take a string; returns it. */
char *hg_agent_words_take(struct hg_agent_words *words, char *s);
void hg_agent_words_done(struct hg_agent_words *words);

/* One request while it is served. */
struct hg_agent_call {
    const struct hg_json_doc *request;
    json_t *ok;         /* the answer, an object to be filled */
    struct hg_err err;  /* set: the answer is an error */
    int number;         /* Slurm's error number or the system's; 0: none */
    struct hg_buf site; /* what Slurm or the site's plugins printed during this call */
    unsigned rpcs;      /* messages sent to controller or accounting daemon */
    bool unfit;         /* the error: this agent does not fit this Slurm */
    bool submitting;    /* the job may have been sent: ending now is ambiguous */
    long doubt_s;       /* if it is: how long it may still appear; 0: as limits say */
};

/* Put a member into the answer; the reference is taken. */
void hg_agent_add(struct hg_agent_call *call, const char *name, json_t *value);

/* A JSON string of what may be NULL, or not UTF-8. */
json_t *hg_agent_text(const char *s);

/* Append lines that one of Slurm's programs printed to site, without "PROGRAM: error: ". Lines that begin with skip (NULL:
 * none) are left out. */
void hg_agent_add_lines(const char *text, const char *skip, struct hg_buf *site);

/* "17" or "17_[0-9,12]"; yours. tasks NULL: the whole array. */
char *hg_agent_name_tasks(long long job_id, const char *tasks);

#endif
