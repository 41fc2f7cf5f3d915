/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_REST_SERVER_H
#define HG_SLURM_REST_SERVER_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "contract/restconfig.h"

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

/* Seconds that the requests of one call may take together. */
double hg_rest_timeout_s(void);

/* What slurmrestd does not tell: the site's word, or Slurm's default. */
long long hg_rest_max_array_size(void);
long hg_rest_ambiguous_s(void); /* at most; a token that ends sooner makes it less */

/* Take the program's argument, the site's "rest" as JSON (NULL: none), and $SLURMRESTD_URL where that names no URL. */
int hg_rest_configure(const char *argument, struct hg_err *err);

#endif
