/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_OUTCOME_H
#define HG_RUNDIR_OUTCOME_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/jsontext.h"

#define HG_RESULT_SCHEMA "hpcgrid-result/1"
#define HG_RESULT_MAX ((size_t)16 << 20) /* bytes of a workload's result file */
#define HG_RESULT_DEPTH 64
#define HG_RESULT_VALUES 1000000 /* a parsed value takes some 200 bytes, whatever its text */

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
    long long cpus_per_task;
    const struct hg_err *problem; /* why the launcher was not started; NULL: it was */
    bool ended;                   /* status is the launcher's wait status */
    int status;
    enum hg_stop stop;
    bool ending;           /* it received TERM and has not ended yet: this result may be replaced */
    double suspended_s;    /* part of wall_s in which the scheduler had suspended the job */
    double wall_s;         /* from before the launcher's start to its end, monotonic */
    double start_s, end_s; /* since 1970 */
    json_t *env, *slurm;   /* node/where.h; NULL: left out */
};

/* The result of an attempt, whatever happened: what exec knows, merged with what the workload and
 * its ranks wrote (untrusted: size, depth, types, duplicate members and NaN are dealt with). A new
 * reference. */
json_t *hg_outcome_result(const struct hg_outcome *o);

/* The least that counts as a result of it: failed, for this reason. A new reference. Its text, indented, is at most
 * HG_OUTCOME_LEAST bytes longer than the cell's. */
json_t *hg_outcome_least(const struct hg_outcome *o, const char *reason);
#define HG_OUTCOME_LEAST 3072

/* What stands in a result's "crc32c": CRC-32C over the canonical JSON of its other members, as 8 hex
 * digits. An edited or damaged file no longer has it. -1 when memory is gone. */
int hg_outcome_checksum(const json_t *result, char out[static 9]);

/* The same of a result's text as exec wrote it, without reading its numbers. */
void hg_outcome_checksum_text(const struct hg_json_canonical *text, char out[static 9]);

/* Did the launcher end because its ranks received TERM, none of them having failed by itself before? */
bool hg_outcome_died_of_term(const struct hg_outcome *o);

/* The exit code of exec: the launcher's, 128 + n for a signal, 1 where that is 0 but the result is
 * not ok. */
int hg_outcome_exit_code(const struct hg_outcome *o, const json_t *result);

/* Parse JSON that a foreign program wrote: at most HG_RESULT_DEPTH levels, HG_RESULT_VALUES values,
 * no member twice; NaN and infinities become null and set *diverged. NULL with err set. */
json_t *hg_outcome_parse(const char *name, const char *text, size_t len, bool *diverged,
                         struct hg_err *err);

#endif
