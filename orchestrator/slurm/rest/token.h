/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_REST_TOKEN_H
#define HG_SLURM_REST_TOKEN_H

#include "base/err.h"

#define HG_TOKEN_MAX 16384

/* What a token (JWT) says about itself; nobody vouches for it here. */
struct hg_token {
    char *text;     /* yours; NULL: there is none */
    char user[128]; /* "": it names none */
    double expires; /* seconds since 1970; 0: it does not say */
};

/* From a file (NULL: from $SLURM_JWT; neither there: text is NULL). ENV, with the next step: it cannot be read,
 * others may read it, it is no token, or its time is over. The text is in no message. */
int hg_token_load(const char *path, struct hg_token *token, struct hg_err *err);

/* Overwrites what it frees. */
void hg_token_done(struct hg_token *token);

#endif
