/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/cockpit.h"
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
    HG_OPTION_SCREEN(&hg_cockpit_wanted),
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

/* A run that another process drives, or that is over and on the screen. */
struct follow {
    const struct hg_rundir *rd;
    struct hg_run_state *state;
    size_t used; /* of its journal */
    struct hg_cockpit *cockpit;
    struct hg_notify *notify;
    struct hg_buf last; /* line */
    char *retry;        /* cells to run again; NULL: none */
};

/* ALONE: no process drives it any more. */
enum followed { FOLLOW_OVER, FOLLOW_ALONE, FOLLOW_RETRY };

static void tell_line(struct follow *f)
{
    struct hg_buf line = HG_BUF_INIT;

    hg_state_format(f->state, STDERR_FILENO, &line);
    if (strcmp(hg_buf_str(&line), hg_buf_str(&f->last)) != 0)
        hg_info("%s", hg_buf_str(&line));
    hg_buf_done(&f->last);
    f->last = line;
}

static void show(struct follow *f, bool driven)
{
    struct hg_cockpit_news news = { .state = f->state, .driven = driven };

    news.n_whys = hg_run_whys(f->state, NULL, NULL, news.whys, HG_COCKPIT_WHYS);
    hg_cockpit_show(f->cockpit, &news);
}

/* Read the journal as it grows, until the run is over, or on a screen until a person leaves it. FOLLOW_*, or -1 with err set. */
static int follow_journal(struct follow *f, struct hg_err *err)
{
    struct hg_lock_owner owner;
    bool asked = false; /* for the full screen */

    while (hg_run_state_follow(f->rd->path, &f->state, &f->used, err) == 0) {
        bool over = hg_state_open(f->state) == 0;
        bool driven = hg_lock_find(f->rd->path, &owner, NULL) == 1;

        if (!f->notify && !over)
            f->notify = hg_notify_create(notify, f->rd->path, f->state, append_id,
                                         (void *)(uintptr_t)f->rd);
        hg_notify_look(f->notify, f->state, 0);
        if (over)
            hg_notify_over(f->notify, f->state);
        if (!asked)
            f->cockpit = hg_cockpit_open(f->rd, f->state);
        asked = true;
        if (!f->cockpit)
            tell_line(f);
        if (over ? !f->cockpit || hg_signals_stop : hg_signals_stop || !driven)
            return over ? FOLLOW_OVER : FOLLOW_ALONE;
        if (!f->cockpit) {
            hg_clock_sleep_s(1);
            continue;
        }
        show(f, driven);
        hg_cockpit_wait(f->cockpit, 1);
        if ((f->retry = hg_cockpit_retry(f->cockpit)))
            return FOLLOW_RETRY;
    }
    return -1;
}

/* tell: of a run that is over, what failed. */
static int follow(const struct hg_rundir *rd, bool tell, size_t *bad, char **retry,
                  struct hg_err *err)
{
    struct follow f = { .rd = rd };
    int rc = follow_journal(&f, err);

    hg_cockpit_close(f.cockpit);
    hg_notify_end(f.notify, f.state, "");
    if (f.state)
        *bad = hg_state_bad(f.state);
    if (rc == FOLLOW_OVER && tell)
        tell_end(rd, f.state);
    *retry = f.retry;
    hg_run_state_free(f.state);
    hg_buf_done(&f.last);
    return rc;
}

/* retry: cells to run again (a selector, "": all); NULL: none. Returns 0: over, 1: stopped by a signal, or -1 with errs filled. */
static int drive(const char *run, const char *retry, size_t *bad, struct hg_errs *errs)
{
    struct hg_resume_options o = {
        .reports = reports, .run = run, .command = "watch", .wait = true
    };
    struct hg_session s;
    int rc = hg_session_resume(&s, &o, errs);

    if (rc != 0)
        return rc;
    s.notify = notify;
    if (retry)
        rc = hg_session_again(&s, HG_SESSION_BAD, *retry ? retry : NULL, errs);
    if (rc == 0)
        rc = hg_progress_drive(&s, errs);
    if (rc == 0)
        hg_progress_tell_end(&s, false);
    *bad = hg_state_bad(hg_drive_state(s.drive));
    hg_session_done(&s);
    return rc;
}

/* Drive it, or follow who does; on a screen it stays until a person leaves it. Returns the exit code, or -1 with errs filled. */
static int watch(const struct hg_rundir *rd, const char *run, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_lock_owner owner;
    char *retry = NULL;
    size_t bad = 0;
    int rc = FOLLOW_ALONE;

    hg_signals_catch();
    if (hg_lock_find(rd->path, &owner, NULL) == 1) {
        hg_info("driven by process %ld on %s (%s)", owner.who.pid, owner.who.host, owner.command);
        rc = follow(rd, true, &bad, &retry, &err);
    }
    while (rc > FOLLOW_OVER && !hg_signals_stop) {
        rc = drive(run, retry, &bad, errs);
        free(retry);
        retry = NULL;
        if (rc == 0 && hg_cockpit_possible())
            rc = follow(rd, false, &bad, &retry, &err);
        else if (rc != 0)
            return rc < 0 ? -1 : hg_signals_code();
    }
    free(retry);
    if (rc < 0)
        return hg_errs_add(errs, &err);
    return rc == FOLLOW_OVER ? bad > 0 : hg_signals_code();
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_rundir rd = { 0 };
    int rc = -1;

    (void)argc;
    if (hg_rundir_find(hg_options_reports(reports), argv[0], &rd, &err) == 0 &&
        hg_identity_check(rd.path, &err) == 0) /* else its lock is also a copy */
        rc = watch(&rd, argv[0], errs);
    hg_rundir_done(&rd);
    return err.code ? hg_errs_add(errs, &err) : rc;
}

const struct hg_cmd hg_cmd_watch = {
    .name = "watch",
    .args = "RUN",
    .summary = "Follow a run to its end; drive it if no other process does.",
    .details = "On a terminal: its matrix on a full screen, with the log of a cell, and keys to\n"
               "hold, release, cancel and retry cells (? lists them); elsewhere a line for each\n"
               "change. Exit code: 0 if all cells have a good result, 1 if some do not.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
