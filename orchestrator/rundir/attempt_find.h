/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_ATTEMPT_FIND_H
#define HG_RUNDIR_ATTEMPT_FIND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "rundir/attempts.h"
#include "rundir/claim.h"

/* Which attempt of a cell counts. An attempt is named <S>.<R>: S is the claim number of the submission (decimal, 1, 2, ...; 0: submitted by
 * hand), R Slurm's restart count. rundir/attempts.h says where attempts lie. */

/* One attempt, as far as the folder tells. */
struct hg_attempt {
    unsigned submission, restarts; /* its name is "<submission>.<restarts>" */
    bool claimed;                  /* it began: the folder has a claim */
    bool done;                     /* a complete, valid result.json is there */
    bool superseded;               /* a later attempt under the same claim number has begun */
    char status[16];               /* ok failed timeout oom cancelled node_fail; "" unless done */
    char error[256];               /* message of the result, or what is wrong with the file */
    double wall_s;                 /* 0 unless done */
    bool open; /* some attempt of the cell, whatever its number, was begun and has no end yet */
    struct hg_claim claim; /* ... and this is its claim */
    /* A copy of the job left because of the cell's newest attempt, which has no good result. */
    bool left;
};

/* The attempt that counts of a cell (its place in the plan and its id): the newest whose result is ok, under any claim number, else
 * under this one (0: any) the newest with a result, else the newest claimed. A cell that never began is not an error: claimed is false. Nor is
 * a result that is damaged; but one that cannot be read is, for it may be good. run_key: of the plan, results of another run do not count
 * (NULL: not checked). g is kept for the next cell. */
int hg_attempt_find(struct hg_attempt_group *g, int batch, size_t line, const char *cell_id,
                    unsigned submission, const char *run_key, struct hg_attempt *a,
                    struct hg_err *err);

#endif
