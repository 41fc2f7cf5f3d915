/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_NODE_NODE_H
#define HG_NODE_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* The node side: a job's batch script ends in it. */
struct hg_node_args {
    const char *run; /* folder */
    int batch;       /* number */
    size_t line;     /* of the cell, from 0, in the batch's cells file */
    bool follows;    /* another cell of its job was before it */
    long submission; /* claim number; 0: by hand */
    /* What the job was submitted for, as the batch's "request" in plan.json; NULL: by hand. */
    const char *request;
};

struct hg_node_end {
    /* The workload's exit code, 128 + n for a signal, 1 if it succeeded but left no valid result, 4 if it could not be started, 0
     * if there was nothing to do for this copy of the job. */
    int code;
    char left[256]; /* why there was nothing to do; "": there was */
    /* The job ends (TERM), or another copy of it is running: its other cells do not begin. */
    bool stop;
};

/* Run one cell from claim to result.json. On TERM or INT at any moment after the claim it leaves a result that names the signal; a cell
 * that follows others is not claimed after it. A cell that shares its job is ended at its own time limit. If memory runs out after the claim, the process
 * ends with a failed result. Returns -1 with err set if there is no attempt's folder to write a result into. Signals stay blocked. */
int hg_node_run(const struct hg_node_args *args, struct hg_node_end *end, struct hg_err *err);

#endif
