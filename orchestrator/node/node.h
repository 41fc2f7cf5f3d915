/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_NODE_NODE_H
#define HG_NODE_NODE_H

#include "base/err.h"

/* The node side: what a job's batch script ends in. */
struct hg_node_args {
    const char *run; /* folder */
    int batch;       /* number */
    long offset;     /* of the array's index 0 in the cells file */
    long submission; /* claim number; 0: by hand */
};

/* Run one cell, the one of this array task, from claim to result.json. *code is the exit code: the
 * workload's, 128 + n for a signal, 1 where it ended well but left no valid result, 4 when it could
 * not be started, 0 when there is nothing to do for this copy of the job: left says why then, and is "" otherwise. Told to end by TERM or
 * INT at any moment once the cell is claimed, it leaves a result that says so. Returns -1 with err set when there is
 * no attempt's folder to write a result into. Signals stay blocked. */
int hg_node_run(const struct hg_node_args *args, int *code, char left[static 256],
                struct hg_err *err);

#endif
