/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CONTRACT_RESTCONFIG_H
#define HG_CONTRACT_RESTCONFIG_H

#include "base/fields.h"
#include "base/json.h"

/* How a site's slurmrestd is reached: member "rest" of a site, and the argument of hpcgrid-rest. The
 * token is never in it: it comes from $SLURM_JWT or from token_file. */
struct hg_rest_config {
    char *url;        /* "https://host:6820", "unix:/path"; NULL: $SLURMRESTD_URL */
    char *token_file; /* NULL: $SLURM_JWT */
    char *ca_file;    /* certificates to trust, PEM; NULL: the system's */
    char *user;       /* NULL: the token's, or else the caller */
    char *api;        /* "v0.0.40": this and no other; NULL: the newest that both sides know */
    double timeout_s; /* of one call; 0: 30 */
    /* What slurmrestd does not report; 0: Slurm's own defaults. */
    long long max_array_size, max_jobs, min_job_age_s, ambiguous_s;
};

extern const struct hg_field hg_rest_fields[];

/* Is it an URL that hpcgrid-rest can use? 0, or -1 with INPUT. */
int hg_rest_url_check(const char *url, struct hg_err *err);

/* The versions of the API that hpcgrid-rest speaks, newest first, NULL-terminated. */
extern const char *const hg_rest_versions[];

#endif
