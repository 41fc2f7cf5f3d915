/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/reach.h"

#include "cmd/options.h"
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
