/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_NODE_ENTER_H
#define HG_NODE_ENTER_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "rundir/attempt.h"
#include "rundir/rundir.h"

/* A copy of a job that is about to run its cell. All members are lent. */
struct hg_comer {
    const struct hg_rundir *rd;
    int batch;
    size_t line; /* from 0, in the batch's cells file */
    const char *id, *run_key;
    unsigned submission; /* claim number; 0: by hand */
    unsigned restarts;   /* Slurm's count */
    double heartbeat_s;
    json_t *who;    /* members of its claim, in addition to the process */
    size_t reserve; /* least size of the claim in bytes, see hg_claim_use */
    /* Make "ranks" of the claim for an attempt's folder. A new reference; NULL: none. */
    json_t *(*ranks)(void *context, const char *dir);
    /* The attempt of this folder is ours; NULL: it is not any more. dir is lent as long as it is ours. */
    void (*claimed)(void *context, const char *dir);
    bool (*got_term)(void *context, double within_s); /* wait so long; true once TERM has come */
    void *context;
};

/* The copy has to leave: the cell needs no run; or another copy is running it, or we received TERM. */
enum { HG_ENTER_DONE = 1, HG_ENTER_BUSY };

/* Claim an attempt of the cell as soon as no other copy can be running it. Its number is Slurm's restart count, or the next free one.
 * Returns 0: *dir is the attempt's folder (yours), name its name. HG_ENTER_...: why is the reason. -1: err set. */
int hg_enter(const struct hg_comer *c, char name[static HG_ATTEMPT_NAME_MAX], char **dir,
             char why[static 256], struct hg_err *err);

#endif
