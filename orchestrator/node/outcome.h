/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_NODE_OUTCOME_H
#define HG_NODE_OUTCOME_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

enum hg_stop {
    HG_STOP_NONE,
    HG_STOP_TIMEOUT,    /* TERM at the time limit */
    HG_STOP_CANCELLED,  /* TERM before it */
    HG_STOP_SUPERSEDED, /* another copy took the cell over: this one's heartbeat had stopped */
};

/* All that is known of an attempt when it ends (or is about to be killed); lent. */
struct hg_outcome {
    const char *dir;  /* its folder */
    const char *name; /* "1.0" */
    const char *run_key;
    const json_t *line;     /* of the cells file: id, cell */
    const json_t *workload; /* of plan.json: program, results */
    bool gpu;               /* the cell's hardware has GPUs */
    bool rehearsal;         /* run --box: the result is one, whatever computed */
    long long cpus_per_task;
    const struct hg_err *problem; /* why the launcher was not started; NULL: it was */
    bool ended;                   /* status is the launcher's wait status */
    int status;
    enum hg_stop stop;
    bool ending;           /* it received TERM and has not ended yet: this result may be replaced */
    double suspended_s;    /* part of wall_s in which the scheduler had suspended the job */
    double wall_s;         /* from before the launcher's start to its end, monotonic */
    double start_s, end_s; /* since 1970, by this node's clock */
    double clock_ahead_s;  /* of the file server's; 0: they agree */
    json_t *env, *slurm;   /* node/where.h; NULL: left out */
    json_t *code;          /* node/code.h; NULL: not known */
};

/* The result of an attempt, whatever happened, to be written with hg_seal_dump: what exec knows, merged with what the workload and
 * its ranks wrote (untrusted: size, depth, types, duplicate members and NaN are dealt with). A new
 * reference. */
json_t *hg_outcome_result(const struct hg_outcome *o);

/* The least that counts as a result of it: failed, for this reason. A new reference. Its text, indented, is at most
 * HG_OUTCOME_LEAST bytes longer than the cell's. */
json_t *hg_outcome_least(const struct hg_outcome *o, const char *reason);
#define HG_OUTCOME_LEAST 3072

/* Did the launcher end because its ranks received TERM, and none of them failed before? */
bool hg_outcome_died_of_term(const struct hg_outcome *o);

/* The exit code of exec: the launcher's, 128 + n for a signal, 1 where that is 0 but the result is
 * not ok. */
int hg_outcome_exit_code(const struct hg_outcome *o, const json_t *result);

#endif
