/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_NODE_ENTER_H
#define HG_NODE_ENTER_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "rundir/attempt.h"
#include "rundir/rundir.h"

/* A copy of a job that comes to its cell. All members are lent. */
struct hg_comer {
    const struct hg_rundir *rd;
    int batch;
    size_t line; /* from 0, in the batch's cells file */
    const char *id, *run_key;
    unsigned submission; /* claim number; 0: by hand */
    unsigned restarts;   /* Slurm's count */
    double heartbeat_s;
    json_t *who;    /* stands in its claim, with the process */
    size_t reserve; /* bytes that the claim is to have at least, see hg_claim_use */
    /* "ranks" of the claim; asked once *dir and name are known. A new reference; NULL: none. */
    json_t *(*start)(void *context);
    bool (*told)(void *context, double within_s); /* wait so long; true once it is told to end */
    void *context;
};

/* Claim an attempt of the cell as soon as no other copy can be at work on it. Its number is Slurm's restart count, or the next free one.
 * Returns 0: *dir is the attempt's folder (yours), name its name. 1: the copy has to leave, why says what for. -1: err set. */
int hg_enter(const struct hg_comer *c, char name[static HG_ATTEMPT_NAME_MAX], char **dir,
             char why[static 256], struct hg_err *err);

#endif
