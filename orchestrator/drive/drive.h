/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_DRIVE_H
#define HG_DRIVE_DRIVE_H

#include "drive/options.h"
#include "rundir/runstate.h"
#include "rundir/rundir.h"

/* The loop that takes a run from its plan to its last result. Whatever it learns is journalled before
 * it acts on it, so it may be killed at any moment: the next one goes on from the journal.
 *
 * A pass: read what people ask for, ask the scheduler (one request, however many cells), settle what
 * was in doubt, read results, cancel, submit what the limits let in. */
struct hg_drive;

/* Take a run's lock before its plan is changed. The folder exists. ENV with a text that says who holds
 * it. */
struct hg_lock *hg_drive_lock(const struct hg_rundir *rd, const char *command, bool steal,
                              struct hg_err *err);

/* Take the run's lock, open its journal and record the plan's size. The plan is borrowed. Fails with
 * ENV: the run is held, cannot be written. */
struct hg_drive *hg_drive_open(const struct hg_rundir *rd, const struct hg_plan *plan,
                               const struct hg_drive_options *options, struct hg_err *err);

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

#endif
