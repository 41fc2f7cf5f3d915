/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_NODE_SUPERVISE_H
#define HG_NODE_SUPERVISE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "node/job.h"
#include "node/launch.h"
#include "rundir/outcome.h"

/* The launcher of an attempt, from its start to its end: logs, signals, heartbeat. */
struct hg_supervisor {
    const struct hg_job *job;   /* lent */
    struct hg_outcome *outcome; /* lent; filled */
    sigset_t signals;           /* those that are waited for; blocked */
    pid_t pid;                  /* of the launcher, which leads a process group */
    bool direct;                /* ... or of the only rank */
    double start_mono_s;
    double forward_s, kill_s; /* when to send TERM and KILL (monotonic); 0: not */
    double beat_s;            /* when the next heartbeat is due (monotonic) */
    double paused_s;          /* since when the job is suspended (monotonic); 0: it is not */
};

/* Block the signals that are waited for. Whatever comes from now on is seen. */
void hg_supervise_begin(struct hg_supervisor *s);

/* Have we received TERM or INT? Waits for it at most so long; then outcome->stop says why. */
bool hg_supervise_is_told(struct hg_supervisor *s, double within_s);

/* Start the launcher in the attempt's folder, outcome->dir. Returns 0, or -1 with err set. */
int hg_supervise_start(struct hg_supervisor *s, const struct hg_launch *l, struct hg_err *err);

/* Wait for its end, and for the signals that come before. After TERM a result is written at once. */
void hg_supervise_wait(struct hg_supervisor *s);

/* Set the times of the outcome. */
void hg_supervise_note_time(struct hg_supervisor *s);

#endif
