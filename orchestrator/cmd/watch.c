/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/failures.h"
#include "cmd/notify.h"
#include "cmd/options.h"
#include "cmd/progress.h"
#include "cmd/signals.h"
#include "cmd/state.h"
#include "plan/cells.h"
#include "plan/files.h"
#include "rundir/identity.h"
#include "rundir/lock.h"
#include "rundir/events.h"

static const char *reports, *notify;

static const struct hg_opt opts[] = {
    HG_OPTION_NOTIFY(&notify),
    HG_OPTION_REPORTS(&reports),
    { 0 },
};

static void tell_end(const struct hg_rundir *rd, const struct hg_run_state *state)
{
    struct hg_plan *plan = hg_plan_load(rd->path, NULL);

    if (plan)
        hg_failures_tell(rd, plan, state, (struct hg_failures_options){ 0 });
    hg_plan_free(plan);
}

/* By its id: names need all cells. */
static void append_id(void *context, int batch, size_t line, struct hg_buf *out)
{
    const struct hg_rundir *rd = context;
    json_t *cell = hg_plan_read_cell(rd->path, batch, line, NULL);
    const char *id = json_string_value(json_object_get(cell, "id"));

    hg_buf_puts(out, id ? id : "a cell");
    json_decref(cell);
}

/* Another process drives: read its journal as it grows. 0: the run is over, 1: that process is gone, -1: err set. */
static int follow(const struct hg_rundir *rd, size_t *bad, struct hg_err *err)
{
    struct hg_buf last = HG_BUF_INIT;
    struct hg_lock_owner owner;
    struct hg_notify *tell = NULL;
    int rc = 1;

    while (!hg_signals_stop) {
        struct hg_run_state *state = hg_run_state_load(rd->path, err);
        struct hg_buf line = HG_BUF_INIT;
        bool over;

        if (!state) {
            rc = -1;
            break;
        }
        hg_state_format(state, STDERR_FILENO, &line);
        if (strcmp(hg_buf_str(&line), hg_buf_str(&last)) != 0)
            hg_info("%s", hg_buf_str(&line));
        hg_buf_done(&last);
        last = line;
        over = hg_state_open(state) == 0;
        tell = tell ? tell
                    : hg_notify_create(notify, rd->path, state, append_id, (void *)(uintptr_t)rd);
        hg_notify_look(tell, state, 0);
        *bad = hg_state_bad(state);
        if (over)
            tell_end(rd, state);
        if (over) {
            hg_notify_end(tell, state, NULL);
            tell = NULL;
        }
        hg_run_state_free(state);
        if (over || hg_lock_find(rd->path, &owner, NULL) != 1) {
            rc = over ? 0 : 1;
            break;
        }
        hg_clock_sleep_s(1);
    }
    hg_notify_end(tell, NULL, "");
    hg_buf_done(&last);
    return rc;
}

static int drive(const char *run, struct hg_errs *errs)
{
    struct hg_resume_options o = {
        .reports = reports, .run = run, .command = "watch", .wait = true
    };
    struct hg_session s;
    size_t bad;
    int rc = hg_session_resume(&s, &o, errs);

    if (rc != 0)
        return rc < 0 ? -1 : hg_signals_code();
    s.notify = notify;
    rc = hg_progress_drive(&s, errs);
    if (rc == 0)
        hg_progress_tell_end(&s, false);
    bad = hg_state_bad(hg_drive_state(s.drive));
    hg_session_done(&s);
    if (rc == 1)
        return hg_signals_code();
    return rc < 0 ? -1 : bad > 0;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_rundir rd = { 0 };
    struct hg_lock_owner owner;
    size_t bad = 0;
    int rc = 1;

    (void)argc;
    if (hg_rundir_find(hg_options_reports(reports), argv[0], &rd, &err) < 0)
        return hg_errs_add(errs, &err);
    if (hg_identity_check(rd.path, &err) < 0) /* its lock is then also a copy */
        rc = -1;
    else if (hg_lock_find(rd.path, &owner, NULL) == 1) {
        hg_signals_catch();
        hg_info("driven by process %ld on %s (%s)", owner.who.pid, owner.who.host, owner.command);
        rc = follow(&rd, &bad, &err);
    }
    hg_rundir_done(&rd);
    if (rc < 0)
        return hg_errs_add(errs, &err);
    if (hg_signals_stop)
        return hg_signals_code();
    return rc == 0 ? bad > 0 : drive(argv[0], errs);
}

const struct hg_cmd hg_cmd_watch = {
    .name = "watch",
    .args = "RUN",
    .summary = "Follow a run to its end; drive it if no other process does.",
    .details = "Prints a line for each change, or one changing line on a terminal. Exit code: 0\n"
               "if all cells have a good result, 1 if some do not.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
