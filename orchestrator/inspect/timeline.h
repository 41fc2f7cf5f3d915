/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_INSPECT_TIMELINE_H
#define HG_INSPECT_TIMELINE_H

#include "base/err.h"
#include "matrix/names.h"
#include "matrix/select.h"
#include "rundir/attempt.h"
#include "rundir/runstate.h"
#include "rundir/rundir.h"

/* When the attempts of a run were queued, began and ended: from claims, results and the journal. All
 * strings are the timeline's. Times are seconds since 1970. */
struct hg_timeline_attempt {
    char *id, *nodes, *error; /* nodes: Slurm's list, "" if not known; error: "" if none */
    size_t number;            /* of its cell among the names */
    char *cell;               /* its members as compact JSON */
    char *folder;             /* where its files are */
    char name[HG_ATTEMPT_NAME_MAX];
    char status[16]; /* of the result, else of the journal */
    int batch;
    long long job_id; /* 0: not known */
    double queued_s;  /* submitted, or requeued; 0: not known */
    double begin_s, end_s;
    double work_s, worked_s; /* the first rank began, the last one ended; 0: not known */
    double wall_s;           /* of the result; 0: it has none */
    double init_s, train_s;  /* seconds, reported by the workload; NaN: not reported */
    unsigned traces;         /* files of the worker's profiler */
    bool open;               /* has not ended: end_s is now */
    bool good;               /* has a result, and its status is ok */
};

struct hg_timeline {
    struct hg_timeline_attempt *items; /* by begin_s */
    size_t n, cap;
    struct hg_names *names; /* of all planned cells */
    size_t cells;           /* picked ones */
    size_t undated;         /* attempts whose time is not known */
    size_t damaged;         /* ... and those whose result does not count */
};

/* Read it. state: the journal, NULL if there is none. select: NULL picks all. Returns 0 or -1;
 * hg_timeline_done either way. */
int hg_timeline_load(const struct hg_rundir *rd, const struct hg_run_state *state,
                     struct hg_selector *select, struct hg_timeline *t, struct hg_err *err);
void hg_timeline_done(struct hg_timeline *t);

#endif
