/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_CLAIM_H
#define HG_RUNDIR_CLAIM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "rundir/owner.h"

/* Which process runs a cell. Slurm may start the same task twice: a controller that dies forgets what it started in its last seconds; a
 * node that is cut off keeps running a job that is requeued. So a job first claims an attempt, and no copy of the job, whatever its
 * attempt's name, begins while another one may be running:
 *
 *   claim.json         in the attempt's folder, made by link(): which process, where. Its modification time is the process's heartbeat.
 *   claim.taken.json   the same, renamed by the copy that took the cell over from a process that is gone. An owner who was cut off
 *                      notices it at his next heartbeat and ends.
 *   left.json          a copy came, found the owner running and left
 *
 * A process of this machine is looked up, of another machine only its heartbeat is known. One whose heartbeat has not moved for
 * HG_CLAIM_MISSED intervals of the watcher's own clock is gone, of which a look counts for one at most: while a file server
 * does not answer, no heartbeat can arrive. Clocks of different machines are never compared. */

#define HG_CLAIM_MISSED 4

#define HG_CLAIM_FILE "claim.json"
#define HG_CLAIM_TAKEN "claim.taken.json"
#define HG_CLAIM_LEFT "left.json"

struct hg_claim {
    struct hg_owner who;
    double beat_s; /* last heartbeat, by the file system's clock */
    bool taken;    /* another copy took it over */
    bool left;     /* a copy left because of it */
};

/* Read the claim in an attempt's folder. False if there is none. */
bool hg_claim_read(const char *dir, struct hg_claim *claim);

/* The memory of a claim between two looks; zero before the first. */
struct hg_claim_watch {
    double beat_s;  /* as seen at the last look */
    double look_s;  /* monotonic; that look; 0: none yet */
    double still_s; /* how long the heartbeat has not moved while we looked */
};

/* Is its owner alive, as far as is known now (monotonic)? UNKNOWN: it may be. */
enum hg_owner_life hg_claim_life(const struct hg_claim *claim, struct hg_claim_watch *watch,
                                 double now_s, double heartbeat_s);

/* Write a text over the claim's own bytes, which are on the disk already, and link it under this name in the same folder: for a result when
 * the disk is full. Fails with ENV if the text is longer, or the name exists. */
int hg_claim_use(const char *dir, const char *text, size_t len, const char *name,
                 struct hg_err *err);

/* Send a heartbeat. False once the attempt was taken over. */
bool hg_claim_beat(const char *dir);

#endif
