/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_REST_SERVER_H
#define HG_SLURM_REST_SERVER_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "contract/restconfig.h"

/* What is known of the slurmrestd. */
struct hg_rest {
    struct hg_rest_config config; /* with defaults for what is not set */
    char *url, *base, *socket;    /* as given; as used; NULL: there is none */
    bool known;                   /* the members below are valid */
    char api[16];                 /* "v0.0.40" */
    bool plain;                   /* v0.0.38: numbers, states and lists have other formats */
    bool kills_lists;             /* many tasks can be cancelled by one request */
    bool has_accounts;            /* it speaks to an accounting daemon, as far as known */
    json_t *members;              /* of a job that is submitted, from its own description */
    char release[32];             /* of Slurm; "" until an answer said it */
    char cluster[64];
};

extern struct hg_rest hg_rest;

/* Take the program's argument, the site's "rest" as JSON (NULL: none), and $SLURMRESTD_URL if that has no URL. */
int hg_rest_configure(const char *argument, struct hg_err *err);

#endif
