/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_RUNSTATE_H
#define HG_RUNDIR_RUNSTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ranges.h"
#include "matrix/retry.h"

/* The state of a run and its cells: the fold over its journal (rundir/events.h). */

enum hg_cell_state {
    HG_CELL_WAITING,   /* not submitted */
    HG_CELL_INTENDED,  /* the request was about to be made */
    HG_CELL_AMBIGUOUS, /* the request's outcome is not known */
    HG_CELL_PENDING,
    HG_CELL_RUNNING,
    HG_CELL_ENDED, /* the job has ended, its result was not read yet */
    HG_CELL_OK,    /* from here on it is over */
    HG_CELL_FAILED,
    HG_CELL_TIMEOUT,
    HG_CELL_OOM,
    HG_CELL_NODE_FAIL,
    HG_CELL_CANCELLED,
    HG_CELL_LOST,     /* it began, and its end is not known */
    HG_CELL_REFUSED,  /* the scheduler refused it; `resume` tries once more */
    HG_CELL_UNNEEDED, /* a repeat that no round of adaptive repeats has asked for */
    HG_CELL_REMOVED,  /* the matrix has no such cell (any more), and it has no good result */
    HG_CELL_STATES
};

extern const char *const hg_cell_state_names[HG_CELL_STATES]; /* "waiting", ... */

struct hg_run_cell {
    uint8_t state;     /* enum hg_cell_state */
    uint8_t losses;    /* how often it was accepted and forgotten */
    bool cancel;       /* cancel requested by a person */
    bool held;         /* hold requested by a person: it must not start */
    bool removed;      /* the matrix has it no more: it must not start (again) */
    bool let_go;       /* ... and then released: what the scheduler still holds must be released */
    bool guessed;      /* it is over by the scheduler's state alone: a late result would count */
    uint32_t restarts; /* of its job */
    uint32_t submission;              /* the last one that carried it; 0: none */
    uint32_t claim;                   /* names its attempt; 0: none yet */
    uint8_t retries[HG_RETRY_CAUSES]; /* how often it was run again by the matrix, by cause */
    double start_s, end_s; /* wall times when it was seen to run, and to have a result; 0: not */
    uint32_t text;         /* pending reason or error: index for hg_run_text; 0: none */
};

enum hg_submission_state {
    HG_SUB_INTENDED, /* journalled; whether the request was made is not known */
    HG_SUB_AMBIGUOUS,
    HG_SUB_SUBMITTED,
    HG_SUB_ABSENT, /* not found until it could not appear any more */
    HG_SUB_REJECTED,
};

struct hg_submission {
    uint32_t number, claim;
    char key[33];
    char request[17]; /* hash of what it asked for; "": not known */
    int batch;
    uint32_t offset;
    char *tasks; /* index set of its cells; line = offset + index */
    uint32_t n_tasks;
    /* So many indices share a task of the job array: index / together; at least 1. */
    uint32_t together;
    uint32_t running_max;
    double time_s;   /* its limit, where that is not its batch's; 0 */
    uint32_t job_id; /* 0: not known */
    enum hg_submission_state state;
    double t;       /* of the intent */
    double until_s; /* wall time from which "not found" means absent */
};

struct hg_run_batch {
    struct hg_run_cell *cells;
    size_t n;
};

struct hg_run_state {
    uint64_t seq;
    uint32_t fence;
    double first_t, last_t; /* of the first and last line; 0: none */
    struct {
        struct hg_run_batch *items; /* batch n is items[n - 1] */
        size_t n, cap;
    } batches;
    struct {
        struct hg_submission *items; /* submission n is items[n - 1] */
        size_t n, cap;
    } submissions;
    struct {
        char **items; /* texts of cells; 0 is "" */
        size_t n, cap;
    } texts;
    unsigned submits, polls, cancels; /* requests, over the run's life */
    char transport[16];               /* of the last writer; "": not known */
    char cluster[64]; /* where its jobs are, by the last writer that knew; "": not known */
    size_t counts[HG_CELL_STATES]; /* cells by state */
    size_t cells;
    bool held;      /* cells that are added later are also held */
    size_t deposed; /* lines skipped: written by a process that had lost the lock */
    bool torn;      /* the last line was cut short and is not counted */
};

/* The state before the first record. Free with hg_run_state_free. */
struct hg_run_state *hg_run_state_create(void);
void hg_run_state_free(struct hg_run_state *state);

/* The cell, or NULL when the journal does not know it (it is waiting). Lines count from 0, batches
 * from 1. */
struct hg_run_cell *hg_run_cell_find(const struct hg_run_state *state, int batch, uint32_t line);
/* NULL if no submission has this key. */
const struct hg_submission *hg_run_submission_find(const struct hg_run_state *state,
                                                   const char *key);
const char *hg_run_text(const struct hg_run_state *state, const struct hg_run_cell *cell);
bool hg_cell_is_over(const struct hg_run_cell *cell); /* nothing more happens without a person */
bool hg_cell_is_bad(const struct hg_run_cell *cell);  /* it ended without a good result */
bool hg_cell_is_held(const struct hg_run_cell *cell); /* it has not started and must not */
/* Did the cell's last submission ask for something other than this request of its batch? */
bool hg_run_is_outdated(const struct hg_run_state *state, const struct hg_run_cell *cell,
                        const char *request);
size_t hg_run_count_held(const struct hg_run_state *state);

/* Why cells wait that picks says (NULL: all): the scheduler's reasons and refusals, in the order of the cells, at most max of them. Texts
 * are lent. Returns how many. */
struct hg_run_why {
    const char *text;
    size_t n; /* cells */
};
size_t hg_run_whys(const struct hg_run_state *state,
                   bool (*picks)(void *context, int batch, uint32_t line), void *context,
                   struct hg_run_why *out, size_t max);

/* The cells that tasks of a submission's job array run, as its indices. Returns 0, or -1 with err set (INPUT) and *cells empty. */
int hg_run_cells_of(const struct hg_submission *sub, const char *tasks, struct hg_ranges *cells,
                    struct hg_err *err);

/* Is it the first cell of its task that is not over? Those behind it begin when it has ended. */
bool hg_run_is_first(const struct hg_run_state *state, int batch, uint32_t line);

#endif
