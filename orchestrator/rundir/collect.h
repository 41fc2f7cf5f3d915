/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_COLLECT_H
#define HG_RUNDIR_COLLECT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "rundir/rundir.h"

/* The journal's state of one planned cell; requested for cells without a result. */
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

/* What is done with each result; entry and file are taken over. file: its result.json, or "PACK.tar:FILE"; NULL if it has none that
 * counts. 0, or -1 to stop with err set. */
typedef int (*hg_collect_fn)(void *context, json_t *entry, char *file, struct hg_err *err);

/* All results of a run are one document, the form that `hpcgrid report` reads. It may be larger than the memory, so it comes in pieces:
 *
 *   { "schema": "hpcgrid-results/1", "name": "squad", "run": "001",
 *     "baseline": {...}, "report": {...},              as in the matrix; absent if absent there
 *     "skipped": {"n", "cells"}, "removed": {"n"},     cells that cannot run (the first few), that the matrix has no more; absent: none
 *     "results": [ { "id", "cell": {all members}, "baseline_id": "..." or null, "added": bool, "removed": true,
 *                    "attempt": "1.0" or null, "attempt_in": "cells/1-000" or "cells/1-000.tar": in this folder or pack,
 *                    "status", ...every other key of result.json } ] }
 *
 * "repeats" as in the matrix, if they are adaptive. Every planned cell that is needed is listed at least once, in the plan's order; one entry for each attempt
 * with a result file, oldest first, and one for a cell without: its status is the verdict's word
 * ("pending" where verdict is NULL). A file that does not count is an entry with status "invalid"
 * and error {"message"}. */

/* The document without its results; NULL with err set. A new reference. */
json_t *hg_collect_head(const struct hg_rundir *rd, struct hg_err *err);

/* Its results one by one, with their loss curves or without ("loss" is then an empty object). Returns 0 or -1: the run's own files
 * cannot be read, or take returned -1. */
int hg_collect_each(const struct hg_rundir *rd, hg_verdict_fn verdict, void *verdict_context,
                    hg_collect_fn take, void *context, bool curves, struct hg_collect_count *count,
                    struct hg_err *err);

#endif
