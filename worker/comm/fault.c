/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/fault.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static int wrong(const char *text, struct hg_err *err)
{
    return hg_err_set(err, HG_E_USAGE,
                      "HPCGRID_FAULT is \"%s\", not kill, stop or slow:RANK:STEP:CALL[:SECONDS]",
                      text);
}

int wk_fault_read(struct wk_fault *f, struct hg_err *err)
{
    const char *text = getenv("HPCGRID_FAULT");
    char what[8];
    int n = 0, end = 0;

    *f = (struct wk_fault){ 0 };
    if (!text || !*text)
        return 0;
    n = sscanf(text, "%7[a-z]:%d:%ld:%ld%n:%lf%n", what, &f->rank, &f->step, &f->call, &end,
               &f->seconds, &end);
    if (n < 4 || text[end] || f->rank < 0 || f->step < 0 || f->call < 1 || f->seconds < 0 ||
        !isfinite(f->seconds))
        return wrong(text, err);
    f->what = strcmp(what, "kill") == 0   ? WK_FAULT_KILL
              : strcmp(what, "stop") == 0 ? WK_FAULT_STOP
              : strcmp(what, "slow") == 0 ? WK_FAULT_SLOW
                                          : WK_FAULT_NONE;
    return f->what == WK_FAULT_NONE || (f->what == WK_FAULT_SLOW) != (n == 5) ? wrong(text, err)
                                                                              : 0;
}

void wk_fault_at(struct wk_fault *f, int rank, long step, long call)
{
    if (f->what == WK_FAULT_NONE || rank != f->rank || step < f->step ||
        (step == f->step && call < f->call))
        return;
    if (f->what == WK_FAULT_SLOW) {
        hg_clock_sleep_s(f->seconds);
        return;
    }
    raise(f->what == WK_FAULT_KILL ? SIGKILL : SIGSTOP);
    f->what = WK_FAULT_NONE; /* it was stopped and continues */
}
