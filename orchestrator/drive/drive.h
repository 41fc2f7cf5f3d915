/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_DRIVE_H
#define HG_DRIVE_DRIVE_H

#include "drive/options.h"
#include "rundir/runstate.h"
#include "rundir/rundir.h"

/* The loop that takes a run from its plan to its last result. Whatever it learns is journalled before
 * it acts on it, so it may be killed at any moment: the next one continues from the journal.
 *
 * A pass: read users' requests, poll the scheduler (one request, however many cells), settle what
 * was in doubt, read results, cancel, submit what the limits allow. */
struct hg_drive;

/* Take a run's lock before its plan is changed. The folder exists. ENV with the holder's name. */
struct hg_lock *hg_drive_lock(const struct hg_rundir *rd, const char *command, bool steal,
                              struct hg_err *err);

/* Take the run's lock, open its journal and record the plan's size. The plan is borrowed. Fails with
 * ENV: the run is held, cannot be written. */
struct hg_drive *hg_drive_open(const struct hg_rundir *rd, const struct hg_plan *plan,
                               const struct hg_drive_options *options, struct hg_err *err);

/* The state after a pass. */
struct hg_drive_pass {
    bool over;     /* nothing is left to do or to wait for */
    bool sending;  /* more could be submitted now, except for the rate of requests */
    double wait_s; /* until the next pass is useful */
    bool news;     /* something changed */
    double away_s; /* the scheduler has not answered for so long; 0: it does */
};

/* One pass. Fails with ENV when the scheduler never answered, when the journal cannot be written or
 * the lock was stolen; jobs are left as they are. */
int hg_drive_pass(struct hg_drive *d, struct hg_drive_pass *pass, struct hg_err *err);

const struct hg_run_state *hg_drive_state(const struct hg_drive *d);

/* Why pending cells wait, in the scheduler's words, as the last poll showed it: at most max of the reasons, lent until the next pass. Returns
 * how many. */
size_t hg_drive_whys(const struct hg_drive *d, struct hg_run_why *whys, size_t max);

/* Why a batch is not submitted any more (NULL if it is): the scheduler's refusal, with the place of what it concerns. */
const struct hg_err *hg_drive_refusal(const struct hg_drive *d, int batch);

/* Journal the requests that no line has counted yet. */
int hg_drive_finish(struct hg_drive *d, struct hg_err *err);

/* Give the lock back. What is not journalled is lost, as in a crash. */
void hg_drive_close(struct hg_drive *d);

#endif
