/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that look after each other. A collective waits for its slowest rank, for ever if that one is dead; so every rank has a thread
 * that tells rank 0 where it is, and rank 0 tells who is missing:
 *
 *   gone     its connection closed without a word: it was killed or crashed. Seen at once.
 *   silent   its thread no longer speaks: it is stopped, or its machine is. Seen after the limit.
 *   late     it speaks, but has not come to a collective in which others wait. Seen after the limit.
 *
 * Whoever sees it writes it down, tells the others and ends; then all end. This goes over TCP beside the training (comm/rendezvous.h), a
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
    bool own; /* this rank found it out; else another one has, and tells the world */
    int n_missing; /* the first WK_MISSING_MAX are described. 0: all ranks are there, and nothing moves */
    struct wk_missing missing[WK_MISSING_MAX];
    struct wk_at at; /* where others wait for them; at.coll is "" if nobody waits yet */
    double limit_s;
    struct hg_err err; /* all of it in words */
};

struct wk_heartbeat;

/* What a rank does in the end. Both run in the watching thread, while the rank's own threads go on or hang. */
struct wk_heartbeat_ends {
    void *context;
    void (*write)(void *context, const struct wk_verdict *v); /* own verdicts: keep it for people */
    void (*end)(void *context); /* any verdict; should end the process at once */
};

/* Start watching over these connections, which are taken over also on failure. limit_s: how long ranks may wait for each
 * other. NULL on failure. */
struct wk_heartbeat *wk_heartbeat_start(struct wk_rendezvous *meet, int rank, int world,
                                        double limit_s, const struct wk_heartbeat_ends *ends,
                                        struct hg_err *err);

/* The training is over: say good-bye and stop watching. NULL is fine. */
void wk_heartbeat_stop(struct wk_heartbeat *h);

/* This rank fails for a reason of its own, which it is about to write down: the others shall not call it missing. They end after
 * it. Returns false when a verdict came first: then the process is about to end, wait for that. */
bool wk_heartbeat_failing(struct wk_heartbeat *h);

/* Something went wrong that may be another rank's doing: give the watch this long to find out. True when it found a verdict
 * (then wait for the process to end). */
bool wk_heartbeat_settle(struct wk_heartbeat *h, double seconds);

/* Where this rank is. A NULL watch is fine for all of these. */
void wk_heartbeat_phase(struct wk_heartbeat *h, enum wk_phase phase, long step);
void wk_heartbeat_enter(struct wk_heartbeat *h, const char *coll);
void wk_heartbeat_leave(struct wk_heartbeat *h);

#endif
