/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bar.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/cockpit.h"
#include "cmd/failures.h"
#include "cmd/many.h"
#include "cmd/notify.h"
#include "cmd/print.h"
#include "cmd/results.h"
#include "cmd/session.h"
#include "cmd/signals.h"
#include "cmd/state.h"
#include "render/save.h"
#include "rundir/collect.h"

#define LINE_EVERY_S 2.0 /* where lines stay on the screen */
#define FAILURES_SHOWN 5 /* while it runs */

struct progress {
    struct hg_cockpit *cockpit; /* NULL: lines */
    bool terminal;
    double started_s, said_s;
    char last[512];
    bool *told;      /* failed cells that were listed, by position in the plan */
    size_t failures; /* their number */
    bool held;       /* it was said that cells are held */
    bool asked;      /* for the full screen */
    struct hg_notify *notify;
};

static void clear_line(const struct progress *p)
{
    if (p->terminal && p->last[0])
        fputs("\r\033[K", stderr);
}

static void tell_failure(struct hg_session *s, int batch, size_t line,
                         const struct hg_run_cell *cell)
{
    const char *text = hg_run_text(hg_drive_state(s->drive), cell);
    struct hg_buf name = HG_BUF_INIT, said = HG_BUF_INIT;

    hg_session_append_name(s, batch, line, &name);
    hg_failures_last_line(&s->rd, batch, line, s->plan->items[batch - 1].ids[line], &said);
    hg_info("%s: %s%s%s%s%s%s%s", hg_buf_str(&name), hg_state_start(STDERR_FILENO, cell->state),
            hg_cell_state_names[cell->state], hg_state_stop(STDERR_FILENO, cell->state),
            *text ? ": " : "", text, said.len ? "; it printed last: " : "", hg_buf_str(&said));
    hg_buf_done(&name);
    hg_buf_done(&said);
}

/* Cells that failed since the last look, with their reason. */
static void tell_failures(struct hg_session *s, struct progress *p)
{
    const struct hg_run_state *state = hg_drive_state(s->drive);
    size_t at = 0;

    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++, at++) {
            const struct hg_run_cell *cell = &state->batches.items[b].cells[i];

            if (p->told[at] || !hg_cell_is_bad(cell))
                continue;
            p->told[at] = true;
            if (++p->failures > FAILURES_SHOWN)
                continue;
            clear_line(p);
            tell_failure(s, (int)b + 1, i, cell);
            if (p->failures == FAILURES_SHOWN)
                hg_info(
                    "the end of the run lists all failures, by cause; until then: hpcgrid logs %s",
                    s->rd.path);
        }
}

/* Held cells start only when a person releases them. */
static void tell_held(const struct hg_session *s, struct progress *p)
{
    size_t held = hg_run_count_held(hg_drive_state(s->drive));

    if (held && !p->held) {
        clear_line(p);
        hg_info("%zu cell%s held; `hpcgrid release %s` lets %s start", held,
                held == 1 ? " is" : "s are", s->rd.path, held == 1 ? "it" : "them");
    }
    p->held = held > 0;
}

static void tell_progress(struct hg_session *s, struct progress *p,
                          const struct hg_drive_pass *pass, bool now)
{
    double mono = hg_clock_mono_s();
    struct hg_buf line = HG_BUF_INIT;
    char elapsed[32];

    hg_state_format(hg_drive_state(s->drive), STDERR_FILENO, &line);
    if (pass->away_s > 5)
        hg_buf_printf(&line, " · Slurm has not answered for %.0f s", pass->away_s);
    hg_text_duration_format(mono - p->started_s, elapsed);
    if (p->terminal) {
        fprintf(stderr, "\r\033[K%s  %s", elapsed, hg_buf_str(&line));
        fflush(stderr);
        snprintf(p->last, sizeof p->last, "%s", hg_buf_str(&line));
    } else if (strncmp(p->last, hg_buf_str(&line), sizeof p->last - 1) != 0 &&
               (now || mono - p->said_s >= LINE_EVERY_S)) {
        hg_info("%s  %s", elapsed, hg_buf_str(&line));
        snprintf(p->last, sizeof p->last, "%s", hg_buf_str(&line));
        p->said_s = mono;
    }
    hg_buf_done(&line);
}

static void tell_way_back(const struct hg_session *s)
{
    size_t open = hg_state_open(hg_drive_state(s->drive));

    hg_info("stopped; %zu cell%s not over; jobs in the queue continue", open,
            open == 1 ? " is" : "s are");
    hg_info("to continue: hpcgrid resume %s", s->rd.path);
    if (*s->scheduler.box)
        hg_info("their box stays up; to end it with its jobs: hpcgrid box down %s",
                s->scheduler.box);
}

/* Show how far it is, and wait for the next pass. */
static void show(struct hg_session *s, struct progress *p, const struct hg_drive_pass *pass)
{
    double wait_s = pass->wait_s > 0.02 ? pass->wait_s : 0.02;

    if (!p->asked && !s->json) {
        p->asked = true;
        p->cockpit = hg_cockpit_open(&s->rd, hg_drive_state(s->drive));
        p->terminal = p->terminal && !p->cockpit;
    }
    if (p->cockpit) {
        struct hg_cockpit_news news = { .state = hg_drive_state(s->drive),
                                        .away_s = pass->away_s,
                                        .driven = true };

        news.n_whys = hg_drive_whys(s->drive, news.whys, HG_COCKPIT_WHYS);
        hg_cockpit_show(p->cockpit, &news);
        hg_cockpit_wait(p->cockpit, wait_s);
        return;
    }
    tell_failures(s, p);
    tell_held(s, p);
    tell_progress(s, p, pass, false);
    if (!hg_signals_stop)
        hg_clock_sleep_s(wait_s);
}

/* Passes until the run is over (0) or a signal comes (1); -1 with err set. */
static int drive(struct hg_session *s, struct progress *p, struct hg_err *err)
{
    struct hg_drive_pass pass = { 0 };
    int rc = 1;

    while (!hg_signals_stop) {
        rc = hg_drive_pass(s->drive, &pass, err);
        if (hg_drive_state(s->drive)->submits)
            s->box_is_new = false; /* jobs are in it: it stays until they are over */
        if (rc < 0 || pass.over)
            break;
        rc = 1;
        clear_line(p); /* a warning of it has a line of its own */
        hg_notify_look(p->notify, hg_drive_state(s->drive), pass.away_s);
        show(s, p, &pass);
    }
    if (p->cockpit)
        hg_cockpit_close(p->cockpit);
    else
        tell_failures(s, p);
    hg_notify_look(p->notify, hg_drive_state(s->drive), 0);
    tell_progress(s, p, &pass, true);
    if (p->terminal && p->last[0])
        fputc('\n', stderr);
    return rc;
}

static void append_name(void *context, int batch, size_t line, struct hg_buf *out)
{
    hg_session_append_name(context, batch, line, out);
}

int hg_progress_drive(struct hg_session *s, struct hg_errs *errs)
{
    const char *term = getenv("TERM");
    struct progress p = { .terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0,
                          .started_s = hg_clock_mono_s(),
                          .told =
                              hg_alloc_zeroed(hg_drive_state(s->drive)->cells + 1, sizeof(bool)) };
    struct hg_err err = HG_ERR_INIT;
    int rc;

    hg_bar_allow(false); /* the progress of the run is on the terminal */
    p.notify = hg_notify_create(s->notify, s->rd.path, hg_drive_state(s->drive), append_name, s);
    rc = drive(s, &p, &err);
    hg_notify_end(p.notify, hg_drive_state(s->drive), rc < 0 ? err.text : rc == 1 ? "" : NULL);
    hg_bar_allow(true);
    free(p.told);
    if (rc < 0)
        hg_err_hint(&err, "jobs in the queue continue; `hpcgrid resume %s` takes them up again",
                    s->rd.path);
    else if (hg_drive_finish(s->drive, &err) < 0)
        rc = -1;
    if (rc < 0)
        return hg_errs_add(errs, &err);
    if (rc == 1)
        tell_way_back(s);
    else
        s->box_is_over = true;
    return rc;
}

/* Of very many results only the lines are saved, and a summary is printed. 0: every cell has a good result, 1: not, 2: it cannot be
 * done that way, or -1. */
static int report_many(const struct hg_session *s, struct hg_buf *text, struct hg_err *err)
{
    char *tables = hg_rundir_path(&s->rd, "tables"),
         *path = hg_rundir_path(&s->rd, "tables/results.csv");
    struct hg_many *m = hg_cmd_many_run(&s->rd, hg_drive_state(s->drive), NULL, false, err);
    int rc = m ? 0 : err->code ? -1 : 2;

    if (rc == 0 && (hg_report_forget(s->rd.path, err) < 0 || hg_fs_mkdirs(tables, 0700, err) < 0 ||
                    hg_cmd_many_write(m, path, err) < 0))
        rc = -1;
    if (rc == 0) {
        hg_many_summarize(m, s->rd.path, text);
        rc = !hg_many_is_complete(m);
    }
    hg_many_free(m);
    free(tables);
    free(path);
    return rc;
}

static int report_all(const struct hg_session *s, struct hg_buf *text, struct hg_errs *errs)
{
    struct hg_results set = HG_RESULTS_INIT;
    bool complete = false;
    int rc = -1;

    if (hg_cmd_run_results(&s->rd, hg_drive_state(s->drive), &set, errs) == 0)
        rc = hg_report_run(&set, s->rd.path, hg_print_width(STDOUT_FILENO), text, &complete, errs);
    hg_results_done(&set);
    return rc < 0 ? -1 : !complete;
}

/* The tables of what there is, on stdout and in the run's folder. 0: every cell has a good result, 1: not,
 * or -1. */
static int print_report(struct hg_session *s, struct hg_errs *errs)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    int rc = s->plan->cells > HG_MANY_MIN ? report_many(s, &text, &err) : 2;

    if (rc == 2)
        rc = report_all(s, &text, errs);
    if (rc >= 0 && !s->json)
        fwrite(hg_buf_str(&text), 1, text.len, stdout);
    hg_errs_add(errs, &err);
    hg_buf_done(&text);
    return rc;
}

int hg_progress_add_refusals(const struct hg_session *s, struct hg_errs *errs)
{
    size_t before = errs->n;

    for (size_t b = 0; b < s->plan->n; b++)
        if (hg_drive_refusal(s->drive, (int)b + 1))
            hg_errs_add(errs, hg_drive_refusal(s->drive, (int)b + 1));
    return errs->n > before ? -1 : 0;
}

void hg_progress_tell_end(const struct hg_session *s, bool tables)
{
    hg_failures_tell(
        &s->rd, s->plan, hg_drive_state(s->drive),
        (struct hg_failures_options){ .tables = tables, .no_retry = *s->scheduler.box != '\0' });
}

static void tell_rehearsal(const struct hg_session *s)
{
    const json_t *rehearsal = json_object_get(s->plan->site, "rehearsal");
    bool shrink = json_is_true(json_object_get(rehearsal, "shrink"));
    bool worker = json_object_get(s->plan->workload, "program");
    json_t *missing = json_object_get(rehearsal, "missing"), *text;
    size_t i;

    if (!rehearsal)
        return;
    hg_info("a rehearsal of site %s on this machine%s: its times and memory mean nothing",
            json_string_value(json_object_get(s->plan->site, "name")),
            !shrink  ? ""
            : worker ? ", with tiny models and data"
                     : ", with HPCGRID_REHEARSAL=1 for the program");
    json_array_foreach(missing, i, text)
        hg_info("not rehearsed: %s", json_string_value(text));
}

/* The cells that ended without a good result. */
static json_t *bad_json(struct hg_session *s)
{
    const struct hg_run_state *state = hg_drive_state(s->drive);
    json_t *list = json_array();

    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &state->batches.items[b].cells[i];
            struct hg_buf name = HG_BUF_INIT;

            if (!hg_cell_is_bad(cell))
                continue;
            hg_session_append_name(s, (int)b + 1, i, &name);
            json_array_append_new(list,
                                  json_pack("{s:s, s:o, s:s, s:o}", "id", s->plan->items[b].ids[i],
                                            "name", hg_json_text(hg_buf_str(&name)), "state",
                                            hg_cell_state_names[cell->state], "reason",
                                            hg_json_text(hg_run_text(state, cell))));
            hg_buf_done(&name);
        }
    return list;
}

static void print_json(struct hg_session *s, bool stopped)
{
    const struct hg_run_state *state = hg_drive_state(s->drive);

    hg_print_json(json_pack("{s:o, s:I, s:o, s:b, s:b, s:o}", "run", hg_json_text(s->rd.path),
                            "cells", (json_int_t)state->cells, "counts",
                            hg_state_counts_json(state->counts), "stopped", stopped, "complete",
                            !stopped && hg_state_bad(state) == 0, "failed", bad_json(s)));
}

int hg_progress_conclude(struct hg_session *s, struct hg_errs *errs)
{
    int rc = hg_progress_drive(s, errs);

    if (rc < 0)
        return -1;
    if (s->json)
        print_json(s, rc == 1);
    if (rc == 1)
        return hg_signals_code();
    rc = print_report(s, errs);
    tell_rehearsal(s);
    if (rc >= 0)
        hg_progress_tell_end(s, true);
    if (rc >= 0 && hg_progress_add_refusals(s, errs) < 0)
        return -1;
    return rc;
}
