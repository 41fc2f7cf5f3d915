/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_NODE_NODE_H
#define HG_NODE_NODE_H

#include "base/err.h"

/* The node side: a job's batch script ends in it. */
struct hg_node_args {
    const char *run; /* folder */
    int batch;       /* number */
    long offset;     /* of the array's index 0 in the cells file */
    long submission; /* claim number; 0: by hand */
    const char *
        request; /* what the job was submitted for, as the batch's "request" in plan.json; NULL: by hand */
};

/* Run one cell, the one of this array task, from claim to result.json. *code is the exit code: the
 * workload's, 128 + n for a signal, 1 if it succeeded but left no valid result, 4 if it could
 * not be started, 0 if there is nothing to do for this copy of the job: left is the reason then, and "" otherwise. On TERM or INT at any
 * moment after the claim it leaves a result that names the signal. If memory runs out after the claim, the process ends with a failed
 * result. Returns -1 with err set if there is no attempt's folder to write a result into. Signals stay blocked. */
int hg_node_run(const struct hg_node_args *args, int *code, char left[static 256],
                struct hg_err *err);

#endif
