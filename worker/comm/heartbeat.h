/* SPDX-License-Identifier: Apache-2.0 */
/* Heartbeats between ranks. A collective waits for its slowest rank, forever if that one is dead; so every rank has a thread
 * that reports to rank 0 where it is, and rank 0 reports who is missing:
 *
 *   gone     its connection closed without a message: it was killed or crashed. Seen at once.
 *   silent   its thread no longer reports: it is stopped, or its machine is. Seen after the limit.
 *   late     it reports, but has not reached a collective in which others wait. Seen after the limit.
 *
 * The rank that sees it writes the verdict down, tells the others and ends; then all end. This uses TCP, separate from the training (comm/rendezvous.h), a
 * few bytes a second. Time in which a whole machine was suspended does not count. */
#ifndef WK_COMM_HEARTBEAT_H
#define WK_COMM_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "comm/rendezvous.h"

enum wk_phase { WK_PHASE_START, WK_PHASE_STEP, WK_PHASE_EVAL, WK_PHASE_END, WK_PHASES };
extern const char *const wk_phase_names[WK_PHASES]; /* "start", "step", "evaluation", "end" */

/* Where a rank is. */
struct wk_at {
    uint64_t begun; /* collectives; all ranks begin the same ones in the same order */
    int64_t step;   /* from 1; 0: before the first */
    int32_t phase;
    int32_t inside; /* in the last one that it has begun */
    char coll[16];  /* its name */
};

enum wk_how { WK_HOW_GONE, WK_HOW_SILENT, WK_HOW_LATE, WK_HOWS };
extern const char *const wk_how_names[WK_HOWS]; /* "gone", "silent", "late" */

struct wk_missing {
    int rank, pid;
    enum wk_how how;
    char host[64];
    struct wk_at at; /* last seen */
};

#define WK_MISSING_MAX 16

/* Why the ranks must end. */
struct wk_verdict {
    bool own; /* found by this rank; else by another one, which reports it */
    int n_missing; /* the first WK_MISSING_MAX are described. 0: all ranks are there, and nothing moves */
    struct wk_missing missing[WK_MISSING_MAX];
    struct wk_at at; /* where others wait for them; at.coll is "" if no rank waits yet */
    double limit_s;
    struct hg_err err; /* all of it in words */
};

struct wk_heartbeat;

/* How a rank ends. Both run in the heartbeat thread, while the rank's other threads continue or hang. */
struct wk_heartbeat_ends {
    void *context;
    void (*write)(void *context, const struct wk_verdict *v); /* own verdicts: keep it for people */
    void (*end)(void *context); /* any verdict; should end the process at once */
};

/* Start the heartbeat over these connections, which are taken over also on failure. limit_s: how long ranks may wait for each
 * other. NULL on failure. */
struct wk_heartbeat *wk_heartbeat_start(struct wk_rendezvous *rv, int rank, int world,
                                        double limit_s, const struct wk_heartbeat_ends *ends,
                                        struct hg_err *err);

/* The training is over: announce that and stop. NULL is fine. */
void wk_heartbeat_stop(struct wk_heartbeat *h);

/* This rank fails for its own reason, which it is about to write down: the others must not report it as missing. They end after
 * it. Returns false when a verdict came first: then the process is about to end, wait for that. */
bool wk_heartbeat_failing(struct wk_heartbeat *h);

/* Something went wrong that may be another rank's doing: give the heartbeat this long to find out. True when it found a verdict
 * (then wait for the process to end). */
bool wk_heartbeat_settle(struct wk_heartbeat *h, double seconds);

/* Where this rank is. A NULL heartbeat is fine for all of these. */
void wk_heartbeat_phase(struct wk_heartbeat *h, enum wk_phase phase, long step);
void wk_heartbeat_enter(struct wk_heartbeat *h, const char *coll);
void wk_heartbeat_leave(struct wk_heartbeat *h);
/* Of collectives that a device runs: does the host wait for the last one that it began? Returns what was said before. */
bool wk_heartbeat_inside(struct wk_heartbeat *h, bool inside);

#endif
