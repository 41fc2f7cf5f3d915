/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_DRIVE_H
#define HG_DRIVE_DRIVE_H

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"
#include "slurm/client/executor.h"
#include "plan/batch.h"
#include "rundir/attempt_find.h"
#include "rundir/events.h"
#include "rundir/rundir.h"

/* The loop that takes a run from its plan to its last result. Whatever it learns is journalled before
 * it acts on it, so it may be killed at any moment: the next one goes on from the journal.
 *
 * A pass: read what people ask for, ask the scheduler (one request, however many cells), settle what
 * was in doubt, read results, cancel, submit what the limits let in. */
struct hg_drive;
struct hg_lock;
struct hg_verdict;

/* The world as the loop sees it. NULL members: the real one. */
struct hg_drive_io {
    double (*now)(void *context);  /* seconds since 1970 */
    double (*mono)(void *context); /* seconds that never jump */
    /* The attempt that counts, as hg_attempt_find. */
    int (*attempt)(void *context, int batch, uint32_t line, uint32_t claim, struct hg_attempt *a,
                   struct hg_err *err);
    void *context;
};

struct hg_drive_options {
    const struct hg_executor *executor;
    struct hg_exec *exec; /* open; stays the caller's */
    double deadline_s;    /* of its calls */
    long long running;    /* most cells at a time over all arrays; 0: no limit */
    long long
        max_queued; /* most cells in the queue at a time; 0: as the scheduler's limits allow */
    struct hg_retry retry; /* of the matrix */
    double visible_s;    /* how long a result may take to be seen here; negative: by file system */
    bool near;           /* the scheduler is ours alone (a box): ask it often */
    bool send_nothing;   /* submit nothing */
    bool steal;          /* take the lock from a holder on another machine */
    const char *command; /* for whoever finds the run locked */
    const char *cluster; /* the scheduler's name; NULL or "": not known */
    struct hg_lock
        *lock; /* of hg_drive_lock: taken over, whatever comes of it; NULL: it is taken here */
    const volatile sig_atomic_t *stop; /* stop between two requests when it is set; may be NULL */
    struct hg_drive_io io;
};

/* Take a run's lock before its plan is changed. The folder exists. ENV with a text that says who holds
 * it. */
struct hg_lock *hg_drive_lock(const struct hg_rundir *rd, const char *command, bool steal,
                              struct hg_err *err);

/* Take the run's lock, open its journal and record the plan's size. The plan is borrowed. Fails with
 * ENV: the run is held, cannot be written. */
struct hg_drive *hg_drive_open(const struct hg_rundir *rd, const struct hg_plan *plan,
                               const struct hg_drive_options *options, struct hg_err *err);

/* Everything that can be found out before the first request to run something: is the scheduler
 * there, and would it take one job of every batch that was never submitted? Each problem is added. */
int hg_drive_check(struct hg_drive *d, struct hg_errs *errs);

/* Let cells that have ended without a good result run again: those in one of the states (a bit set of enum
 * hg_cell_state) that picks says (NULL: all of them). Returns how many, or -1. */
long hg_drive_again(struct hg_drive *d, unsigned statuses,
                    bool (*picks)(void *context, int batch, uint32_t line), void *context,
                    struct hg_err *err);

/* What a pass left behind. */
struct hg_drive_pass {
    bool over;     /* nothing is left to do or to wait for */
    bool sending;  /* more could be submitted at once, but for the rate of requests */
    double wait_s; /* when the next pass is worth while */
    bool news;     /* something changed */
    double away_s; /* the scheduler has not answered for so long; 0: it does */
};

/* One pass. Fails with ENV when the scheduler never answered, when the journal cannot be written or
 * the lock was stolen; jobs are left as they are. */
int hg_drive_pass(struct hg_drive *d, struct hg_drive_pass *pass, struct hg_err *err);

const struct hg_run_state *hg_drive_state(const struct hg_drive *d);

/* Why a batch is not submitted any more ("" if it is): the scheduler's refusal. */
const char *hg_drive_refusal(const struct hg_drive *d, int batch);

/* Journal the receipt. */
int hg_drive_finish(struct hg_drive *d, struct hg_err *err);

/* Give the lock back. What is not journalled is forgotten: as good as a crash. */
void hg_drive_close(struct hg_drive *d);

/* ---- Without the lock ---- */

enum hg_request { HG_REQUEST_CANCEL, HG_REQUEST_HOLD, HG_REQUEST_RELEASE };

/* Ask for these cells to be cancelled, held or let go: picks says which (NULL: all, and for a hold or its
 * end also those that the run will get). The request is a file in the run's folder, read by the driver's
 * next pass. */
int hg_drive_request(const struct hg_rundir *rd, enum hg_request what,
                     const struct hg_run_state *state,
                     bool (*picks)(void *context, int batch, uint32_t line), void *context,
                     struct hg_err *err);

/* Fold requests that no driver has read yet into a state that was loaded for reading. */
int hg_drive_fold_requests(const char *run_dir, struct hg_run_state *state, struct hg_err *err);

/* Put what the scheduler says now over such a state. Cells whose job is gone are "ended". */
int hg_drive_overlay(struct hg_run_state *state, const struct hg_exec_jobs *jobs,
                     struct hg_err *err);

/* For hg_collect_each: what the journal (a struct hg_run_state) knows of a cell. */
void hg_drive_verdict(void *state, int batch, size_t line, struct hg_verdict *verdict);

#endif
