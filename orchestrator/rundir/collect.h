/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_COLLECT_H
#define HG_RUNDIR_COLLECT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "plan/batch.h"
#include "rundir/attempts.h"
#include "rundir/claim.h"
#include "rundir/rundir.h"

/* Reading results back. An attempt is named <S>.<R>: S is the claim number of the submission (decimal, 1, 2, ...; 0: submitted by
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
    bool
        left; /* a copy of the job left because of the cell's newest attempt, which has no good result */
};

/* The attempt that counts of a cell (its place in the plan and its id): the newest whose result is ok, under any claim number, else
 * under this one (0: any) the newest with a result, else the newest claimed. A cell that never began is no error: claimed is false.
 * run_key: of the plan, results of another run do not count (NULL: not checked). g is kept for the next cell. */
int hg_attempt_find(struct hg_attempt_group *g, int batch, size_t line, const char *cell_id,
                    unsigned submission, const char *run_key, struct hg_attempt *a,
                    struct hg_err *err);

/* The result of an attempt, judged: whole, of this place, of this run (run_key; NULL: any), as exec wrote it, of this cell
 * (NULL: any). A new reference, or NULL with err saying what is wrong with it; where err->memory is set, nothing may be. */
json_t *hg_collect_result(const struct hg_attempt_group *g, struct hg_attempt_files *files,
                          const char *run_key, const json_t *cell, struct hg_err *err);

/* Its status alone, judged as well ("ok", ...); a good deal faster. -1 with err set where hg_collect_result gives NULL. */
int hg_collect_status(const struct hg_attempt_group *g, struct hg_attempt_files *files,
                      const char *run_key, const json_t *cell, char status[static 16],
                      struct hg_err *err);

/* What the journal knows of one planned cell; asked for cells without a result. */
struct hg_verdict {
    char status[16]; /* pending running lost, or how Slurm saw it end: node_fail timeout ... */
    char reason[256];
};

/* Fill *v for line `line` (0-based) of batch `batch`. */
typedef void (*hg_verdict_fn)(void *context, int batch, size_t line, struct hg_verdict *v);

/* What was counted. */
struct hg_collect_count {
    size_t cells;    /* planned */
    size_t ok;       /* with a good result */
    size_t failed;   /* ended otherwise */
    size_t open;     /* pending or running */
    size_t attempts; /* with a valid result */
    size_t invalid;  /* result files that do not count: cut short, of another run, edited */
};

/* What is done with each result; the references are taken over. text: see hg_results_add; lent for the call. loss_file: the file where
 * its loss curve is (free it), NULL if the entry has all there is. 0, or -1 to stop with err set. */
typedef int (*hg_collect_fn)(void *context, json_t *entry, const char *text, char *loss_file,
                             struct hg_err *err);

/* All results of a run are one document, the form that `hpcgrid report` reads. It may be larger than the memory, so it comes in pieces:
 *
 *   { "schema": "hpcgrid-results/1", "name": "squad", "run": "001",
 *     "baseline": {...}, "report": {...},              as in the matrix; absent if absent there
 *     "results": [ { "id", "cell": {all members}, "baseline_id": "..." or null, "added": bool,
 *                    "attempt": "1.0" or null, "attempt_in": "cells/1-000" or "cells/1-000.tar": in this folder or pack,
 *                    "status", ...every other key of result.json } ] }
 *
 * Every planned cell stands there at least once, in the plan's order; one entry for each attempt
 * with a result file, oldest first, and one for a cell without: its status is the verdict's word
 * ("pending" where verdict is NULL). A file that does not count is an entry with status "invalid"
 * and error {"message"}. */

/* The document without its results; NULL with err set. A new reference. */
json_t *hg_collect_head(const struct hg_rundir *rd, struct hg_err *err);

/* Its results one by one, without their loss curves: of a hundred thousand that would be all the memory. Returns 0 or -1: the run's own
 * files cannot be read, or take said so. */
int hg_collect_each(const struct hg_rundir *rd, hg_verdict_fn verdict, void *verdict_context,
                    hg_collect_fn take, void *context, struct hg_collect_count *count,
                    struct hg_err *err);

/* The same with whole entries: text and loss_file are NULL. */
int hg_collect_each_whole(const struct hg_rundir *rd, hg_verdict_fn verdict, void *verdict_context,
                          hg_collect_fn take, void *context, struct hg_collect_count *count,
                          struct hg_err *err);

#endif
