/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/reach.h"

#include "base/clock.h"
#include "cmd/options.h"
#include "cmd/session.h"
#include "cmd/signals.h"
#include "rundir/identity.h"

int hg_reach_open(struct hg_reach *r, const char *reports, const char *run, struct hg_err *err)
{
    *r = (struct hg_reach){ 0 };
    if (hg_rundir_find(hg_options_reports(reports), run, &r->rd, err) < 0 ||
        hg_identity_check(r->rd.path, err) < 0 || hg_scheduler_open(&r->scheduler, &r->rd, err) < 0)
        return -1;
    r->state = hg_run_state_load(r->rd.path, err);
    return r->state ? hg_scheduler_check_cluster(&r->scheduler, &r->rd, r->state, err) : -1;
}

void hg_reach_done(struct hg_reach *r)
{
    hg_run_state_free(r->state);
    hg_scheduler_close(&r->scheduler);
    hg_rundir_done(&r->rd);
}

void hg_reach_settle(const char *reports, const char *run, const char *command,
                     bool (*settled)(const struct hg_run_state *state), double limit_s)
{
    struct hg_resume_options o = {
        .reports = reports, .run = run, .command = command, .send_nothing = true
    };
    double end = hg_clock_mono_s() + limit_s;
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_drive_pass pass;
    struct hg_session s;

    if (hg_session_resume(&s, &o, &errs) == 0) {
        while (hg_drive_pass(s.drive, &pass, &err) == 0 && settled &&
               !settled(hg_drive_state(s.drive)) && !hg_signals_stop && hg_clock_mono_s() < end)
            hg_clock_sleep_s(pass.wait_s < 1 ? pass.wait_s : 1);
        hg_drive_finish(s.drive, &err);
        hg_session_done(&s);
    }
    hg_errs_done(&errs);
}
