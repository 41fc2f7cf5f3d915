/* SPDX-License-Identifier: Apache-2.0 */
/* Faults on purpose, for tests: HPCGRID_FAULT=WHAT:RANK:STEP:CALL[:SECONDS] makes one rank, when it begins the CALL-th collective of
 * a step (both from 1; step 0: before the first),
 *
 *   kill   end by SIGKILL
 *   stop   stop by SIGSTOP
 *   slow   sleep for so many seconds, here and in each collective that follows */
#ifndef WK_COMM_FAULT_H
#define WK_COMM_FAULT_H

#include "base/err.h"

struct wk_fault {
    enum { WK_FAULT_NONE, WK_FAULT_KILL, WK_FAULT_STOP, WK_FAULT_SLOW } what;
    int rank;
    long step, call;
    double seconds;
};

/* Fails with USAGE when the variable is set to something else. */
int wk_fault_read(struct wk_fault *f, struct hg_err *err);

/* This rank begins a collective. */
void wk_fault_at(struct wk_fault *f, int rank, long step, long call);

#endif
