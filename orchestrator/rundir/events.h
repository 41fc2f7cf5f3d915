/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_EVENTS_H
#define HG_RUNDIR_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "matrix/retry.h"

/* events.jsonl: what happened in a run, one JSON object a line, only ever appended to. It is the
 * run's only state: everything that is known of a cell is a fold over these lines.
 *
 *   {"seq":7,"fence":2,"t":1780000000.125,"kind":"submitted","submission":1,"job":17,"crc":"9c1185a5"}
 *
 * seq counts lines from 1. fence is the number of the writer's lock (rundir/lock.h). t: seconds since
 * 1970. crc is the CRC-32C of the line's bytes before `,"crc"`, eight hex digits. Any member may be
 * missing where it says nothing; `rpc` [submit, poll, cancel] on any line counts requests made
 * since the line before that had one. Sets are written "0-9,12". `tasks` are array indices of the
 * submission; line = offset + index; lines count from 0 in batches/<n>.cells.jsonl.
 *
 *   open       schema, command, host, pid, transport, cluster a writer begins
 *   plan       batches [cells of batch 1, of 2, ...]
 *   intent     submission, claim, key, batch, offset, tasks,
 *              running_max, until                             before the request
 *   submitted  submission, job
 *   ambiguous  submission, until, text                        nobody knows; "absent" counts only
 *                                                             when `until` has passed
 *   rejected   submission, again, text                        certainly not submitted
 *   settled    submission, found, by, job
 *   state      submission, tasks, state, restarts, text       as the scheduler says it
 *   result     submission, tasks, restarts, status, text      a result file of these cells was read
 *   verdict    submission, tasks, status, text                there will be none; the scheduler's word
 *   lost       submission, tasks                              accepted, never started, forgotten: to be
 *                                                             submitted again
 *   cancel     batch, lines                                   asked for by a person
 *   hold       batch, lines                                   asked for by a person: not to start;
 *                                                             without lines the whole run, and what
 *                                                             it will get
 *   release    batch, lines                                   the end of it, as above
 *   again      batch, lines, cause                            to be run again, as if they had never run;
 *                                                             cause: by the matrix's "retry"
 *   adopted    batch, lines                                   good results of jobs that nobody here
 *                                                             submitted
 *   receipt                                                   a writer ends
 *
 * `claim` is the number that names a cell's attempt ("<claim>.<restarts>"). A submission that
 * replaces a lost one keeps its claim, so that of two copies only one works.
 */

enum hg_cell_state {
    HG_CELL_WAITING,   /* not submitted */
    HG_CELL_INTENDED,  /* the request was about to be made */
    HG_CELL_AMBIGUOUS, /* the request's outcome is not known */
    HG_CELL_PENDING,
    HG_CELL_RUNNING,
    HG_CELL_ENDED, /* the job has ended, its result is not seen yet */
    HG_CELL_OK,    /* from here on it is over */
    HG_CELL_FAILED,
    HG_CELL_TIMEOUT,
    HG_CELL_OOM,
    HG_CELL_NODE_FAIL,
    HG_CELL_CANCELLED,
    HG_CELL_LOST,    /* it began, and nobody knows how it ended */
    HG_CELL_REFUSED, /* the scheduler said no; `resume` tries once more */
    HG_CELL_STATES
};

extern const char *const hg_cell_state_names[HG_CELL_STATES]; /* "waiting", ... */

struct hg_run_cell {
    uint8_t state;       /* enum hg_cell_state */
    uint8_t losses;      /* how often it was accepted and forgotten */
    bool cancel;         /* a person asked to cancel it */
    bool held;           /* a person wants it not to start */
    bool let_go;         /* ... no more: what the scheduler still holds is to be released */
    bool guessed;        /* it is over by the scheduler's word alone: a late result would count */
    uint32_t restarts;   /* of its job */
    uint32_t submission; /* the last one that carried it; 0: none */
    uint32_t claim;      /* names its attempt; 0: none yet */
    uint8_t retries[HG_RETRY_CAUSES]; /* how often it was run again by the matrix, by cause */
    uint32_t text;                    /* pending reason or error: index for hg_run_text; 0: none */
};

enum hg_submission_state {
    HG_SUB_INTENDED, /* journalled; whether the request was made is not known */
    HG_SUB_AMBIGUOUS,
    HG_SUB_SUBMITTED,
    HG_SUB_ABSENT, /* looked for until it could not appear any more */
    HG_SUB_REJECTED,
};

struct hg_submission {
    uint32_t number, claim;
    char key[33];
    int batch;
    uint32_t offset;
    char *tasks; /* index set */
    uint32_t n_tasks;
    uint32_t running_max;
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
    char transport[16];               /* that the last writer took; "": not said */
    char cluster[64]; /* where its jobs are, by the last writer that knew; "": not said */
    size_t counts[HG_CELL_STATES]; /* cells by state */
    size_t cells;
    bool held;      /* what is added to it is, too */
    size_t deposed; /* lines skipped: written by a process that had lost the lock */
    bool torn;      /* the last line was cut short and is not counted */
};

/* Read and fold a run's events without a lock. Torn last lines are left out. NULL with err set:
 * NOTFOUND if nothing was ever journalled, INPUT with the line if one is damaged. Free with
 * hg_run_state_free. */
struct hg_run_state *hg_run_state_load(const char *run_dir, struct hg_err *err);
void hg_run_state_free(struct hg_run_state *state);

/* Fold text (whole lines) into a state; *used is what was taken, a torn last line is left. The path
 * is for messages. */
int hg_run_state_fold(struct hg_run_state *state, const char *path, const char *text, size_t len,
                      size_t *used, struct hg_err *err);
struct hg_run_state *hg_run_state_create(struct hg_err *err);

/* Is this a line (without its end) as it was written: JSON with the right checksum? */
bool hg_run_line_is_whole(const char *line, size_t len);

/* Fold a record that stands in no journal, for a look at what would be; the reference is taken (NULL:
 * memory was gone). */
int hg_run_state_apply(struct hg_run_state *state, const char *kind, json_t *members,
                       struct hg_err *err);

/* The cell, or NULL when the journal does not know it (it waits). Lines count from 0, batches
 * from 1. */
struct hg_run_cell *hg_run_cell_find(const struct hg_run_state *state, int batch, uint32_t line);
/* NULL if no submission has this key. */
const struct hg_submission *hg_run_submission_find(const struct hg_run_state *state,
                                                   const char *key);
const char *hg_run_text(const struct hg_run_state *state, const struct hg_run_cell *cell);
bool hg_cell_is_over(const struct hg_run_cell *cell); /* nothing more will come without a person */
bool hg_cell_is_held(const struct hg_run_cell *cell); /* it has not started and is not to */
size_t hg_run_count_held(const struct hg_run_state *state);

/* ---- Writing: only while holding the run's lock ---- */

struct hg_journal;

/* Open for appending, with everything folded. A torn last line is cut off, with a warning. guard
 * (may be NULL) is asked before every write whether we still own the run. Fails with AGAIN when the
 * file has lines of an equal or higher fence: take a higher lock. */
struct hg_journal *hg_journal_open(const char *run_dir, uint32_t fence,
                                   int (*guard)(void *context, struct hg_err *err), void *context,
                                   struct hg_err *err);
const struct hg_run_state *hg_journal_state(const struct hg_journal *j);

/* Queue a line; the reference is taken (NULL: memory was gone, an error). now_s: for `t`. */
int hg_journal_add(struct hg_journal *j, double now_s, const char *kind, json_t *members,
                   struct hg_err *err);

/* Write what is queued (one write), sync it, then fold it. On failure nothing is written, folded or
 * queued. */
int hg_journal_commit(struct hg_journal *j, struct hg_err *err);
bool hg_journal_is_empty(const struct hg_journal *j); /* nothing is queued */

/* What is still queued is dropped. */
void hg_journal_close(struct hg_journal *j);

#endif
