/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "plan/files.h"
#include "cmd/cmd.h"
#include "cmd/forecast.h"
#include "cmd/options.h"
#include "cmd/picks.h"
#include "cmd/print.h"
#include "cmd/scheduler.h"
#include "cmd/session.h"
#include "cmd/state.h"
#include "drive/drive.h"
#include "drive/overlay.h"
#include "drive/requests.h"
#include "rundir/events.h"
#include "rundir/identity.h"
#include "rundir/lock.h"
#include "rundir/reasons.h"

#define REASONS_MAX 32

static const char *reports, *select_text;
static bool as_json, list_cells, show_ids, poll = true, forecast;

#define FORECAST_MAX 2000 /* with more cells it takes a moment, and is made on request */

static const struct hg_opt opts[] = {
    HG_OPTION_SELECT(&select_text),
    { HG_OPT_FLAG, 'c', "cells", &list_cells, NULL, "also list the cells", 0, 0 },
    HG_OPTION_IDS(&show_ids),
    HG_OPTION_JSON(&as_json),
    { HG_OPT_FLAG, 'f', "forecast", &forecast, NULL,
      "say what is left also of more than 2000 cells", 0, 0 },
    { HG_OPT_FLAG, 0, "poll", &poll, NULL, "also contact Slurm (--no-poll: journal only)", 0, 0 },
    HG_OPTION_REPORTS(&reports),
    { 0 },
};

struct view {
    struct hg_rundir rd;
    struct hg_run_state *state;
    struct hg_picks picks;
    struct hg_lock_owner owner;
    bool held, polled;
    bool home;                                  /* commands may drive it here */
    char unreachable[256];                      /* why Slurm was not contacted; "" */
    size_t counts[HG_CELL_STATES], cells, kept; /* kept: held by a person */
    size_t behind; /* of the running ones: others that share their job are before them */
    struct hg_run_why why[REASONS_MAX];
    size_t n_why;
    struct hg_eta *eta;         /* NULL: nothing is left */
    const struct hg_left *left; /* its figures */
    double now_s, starts_s;     /* starts_s: next start that Slurm expects; 0: it says none */
};

/* ---- What there is to see ---- */

/* Nothing was submitted yet: everything waits. */
static struct hg_run_state *state_of_plan(const char *run_dir, struct hg_err *err)
{
    json_t *plan = hg_plan_read(run_dir, err), *sizes = json_array();
    struct hg_run_state *state = plan ? hg_run_state_create() : NULL;
    const json_t *list = json_object_get(plan, "batches"), *batch;
    size_t i;

    json_array_foreach(list, i, batch)
        json_array_append(sizes, json_object_get(batch, "cells"));
    if (state && hg_run_state_apply(state, "plan", json_pack("{s:O}", "batches", sizes), err) < 0) {
        hg_run_state_free(state);
        state = NULL;
    }
    json_decref(sizes);
    json_decref(plan);
    return state;
}

static int load_state(struct view *v, struct hg_err *err)
{
    if (hg_state_load(v->rd.path, &v->state, err) == 0 && !v->state)
        v->state = state_of_plan(v->rd.path, err);
    if (!v->state || hg_drive_fold_requests(v->rd.path, v->state, err) < 0)
        return -1;
    v->held = hg_lock_find(v->rd.path, &v->owner, NULL) == 1;
    return 0;
}

/* One request. If the scheduler does not answer, the journal alone is shown. */
static int ask_slurm(struct view *v, struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;
    struct hg_executor_jobs jobs = { 0 };
    struct hg_scheduler s;
    int rc = 0;

    if (!poll || !hg_state_live(v->state))
        return 0;
    v->polled =
        hg_scheduler_open(&s, &v->rd, &why) == 0 && s.executor->poll(s.session, &jobs, &why) == 0;
    for (size_t i = 0; i < jobs.n; i++)
        if (jobs.items[i].expected_s > 0 &&
            (!v->starts_s || jobs.items[i].expected_s < v->starts_s))
            v->starts_s = jobs.items[i].expected_s;
    if (v->polled)
        rc = hg_drive_overlay(v->state, &jobs, err);
    else
        snprintf(v->unreachable, sizeof v->unreachable, "%.255s", why.text);
    hg_executor_jobs_done(&jobs);
    hg_scheduler_close(&s);
    return rc;
}

/* What is left of it. A run whose files cannot be read has no forecast. */
static void look_ahead(struct view *v)
{
    v->now_s = hg_clock_wall_s();
    if (hg_state_open(v->state) && (forecast || v->state->cells <= FORECAST_MAX))
        v->eta = hg_eta_open(&v->rd, NULL);
    if (v->eta)
        v->left = hg_eta_look(v->eta, v->state, v->now_s, true);
}

static void count_cells(struct view *v)
{
    for (size_t b = 0; b < v->state->batches.n; b++)
        for (size_t i = 0; i < v->state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &v->state->batches.items[b].cells[i];

            if (!hg_picks_has(&v->picks, (int)b + 1, (uint32_t)i))
                continue;
            v->cells++;
            v->counts[cell->state]++;
            v->kept += hg_cell_is_held(cell);
            v->behind += cell->state == HG_CELL_RUNNING &&
                         !hg_run_is_first(v->state, (int)b + 1, (uint32_t)i);
        }
    v->n_why = hg_run_whys(v->state, hg_picks_fits, &v->picks, v->why, REASONS_MAX);
}

/* ---- As text ---- */

static void print_batches(const struct view *v)
{
    if (v->state->batches.n < 2)
        return;
    for (size_t b = 0; b < v->state->batches.n; b++) {
        size_t counts[HG_CELL_STATES] = { 0 }, n = 0;
        struct hg_buf text = HG_BUF_INIT;

        for (size_t i = 0; i < v->state->batches.items[b].n; i++)
            if (hg_picks_has(&v->picks, (int)b + 1, (uint32_t)i)) {
                counts[v->state->batches.items[b].cells[i].state]++;
                n++;
            }
        hg_state_format_counts(counts, STDOUT_FILENO, &text);
        if (n)
            printf("  batch %-3zu %6zu  %s\n", b + 1, n, hg_buf_str(&text));
        hg_buf_done(&text);
    }
}

static void print_why(const struct view *v)
{
    for (size_t i = 0; i < v->n_why; i++) {
        const struct hg_reason *reason = hg_reason_find(v->why[i].text);
        struct hg_buf text = HG_BUF_INIT;

        hg_text_escape(v->why[i].text, strlen(v->why[i].text), &text);
        printf("  %zu wait: %s%s%s%s\n", v->why[i].n, hg_buf_str(&text), *reason->name ? " (" : "",
               *reason->name ? reason->text : "", *reason->name ? ")" : "");
        hg_buf_done(&text);
    }
}

static void print_behind(const struct view *v)
{
    if (v->behind)
        printf("  %zu of the running share a job with others and come after them\n", v->behind);
}

/* Cells that start only when a person releases them. */
static void print_held(const struct view *v)
{
    if (v->kept)
        printf("  %zu held: hpcgrid release %s lets %s start\n", v->kept, v->rd.path,
               v->kept == 1 ? "it" : "them");
    else if (v->state->held)
        printf("  held: cells that are added start after hpcgrid release %s\n", v->rd.path);
}

static void print_start(const struct view *v)
{
    char text[32], at[21];

    if (v->starts_s <= v->now_s)
        return;
    hg_text_duration_format(v->starts_s - v->now_s, text);
    hg_clock_format_utc(v->starts_s, at);
    printf("  Slurm expects the next start in %s (%s)\n", text, at);
}

static void print_left(const struct view *v)
{
    struct hg_buf time = HG_BUF_INIT, hours = HG_BUF_INIT;

    if (!v->eta && hg_state_open(v->state) && v->state->cells > FORECAST_MAX && !forecast)
        printf("  left: hpcgrid status --forecast %s\n", v->rd.path);
    if (v->left && v->left->cells > v->left->held) {
        hg_eta_append(v->eta, v->now_s, &time);
        hg_outlook_append_hours(&v->left->outlook, &hours);
        printf("  left: %s\n        %s\n", hg_buf_str(&time), hg_buf_str(&hours));
    }
    hg_buf_done(&time);
    hg_buf_done(&hours);
}

static void print_doubts(const struct view *v)
{
    for (size_t i = 0; i < v->state->submissions.n; i++) {
        const struct hg_submission *sub = &v->state->submissions.items[i];

        if (sub->state == HG_SUB_AMBIGUOUS || (sub->state == HG_SUB_INTENDED && !v->held))
            printf("  submission %u (%u): not known whether Slurm has it; it is being looked up\n",
                   sub->number, sub->n_tasks);
    }
}

/* Columns of the longest name that is shown. On a narrow terminal names are cut, so that states are seen. */
static size_t name_width(const struct view *v)
{
    size_t terminal = hg_print_width(STDOUT_FILENO), width = 0;

    for (size_t b = 0; b < v->state->batches.n; b++)
        for (size_t i = 0; i < v->state->batches.items[b].n; i++) {
            struct hg_buf name = HG_BUF_INIT;
            size_t w;

            if (hg_picks_has(&v->picks, (int)b + 1, (uint32_t)i))
                hg_picks_append_name(&v->picks, (int)b + 1, (uint32_t)i, &name);
            w = hg_text_width(hg_buf_str(&name));
            width = w > width ? w : width;
            hg_buf_done(&name);
        }
    return terminal && width > terminal / 2 ? terminal / 2 : width;
}

static void print_cell(const struct view *v, int batch, uint32_t line, size_t width)
{
    const struct hg_run_cell *cell = &v->state->batches.items[batch - 1].cells[line];
    const char *text = hg_run_text(v->state, cell);
    struct hg_buf name = HG_BUF_INIT, shown = HG_BUF_INIT;

    hg_picks_append_name(&v->picks, batch, line, &name);
    hg_name_cut(hg_buf_str(&name), width, &shown);
    hg_buf_printf(&shown, "%*s  %s%-9s%s%s", (int)(width - hg_text_width(hg_buf_str(&shown))), "",
                  hg_state_start(STDOUT_FILENO, cell->state), hg_cell_state_names[cell->state],
                  hg_state_stop(STDOUT_FILENO, cell->state), hg_cell_is_held(cell) ? " held" : "");
    if (show_ids)
        hg_buf_printf(&shown, " %s", hg_picks_id(&v->picks, batch, line));
    hg_buf_puts(&shown, *text ? " " : "");
    hg_text_escape(text, strlen(text), &shown);
    puts(hg_buf_str(&shown));
    hg_buf_done(&name);
    hg_buf_done(&shown);
}

static void print_cells(const struct view *v)
{
    size_t width = name_width(v);

    for (size_t b = 0; b < v->state->batches.n; b++)
        for (size_t i = 0; i < v->state->batches.items[b].n; i++)
            if (hg_picks_has(&v->picks, (int)b + 1, (uint32_t)i))
                print_cell(v, (int)b + 1, (uint32_t)i, width);
}

static void print_text(const struct view *v)
{
    struct hg_buf counts = HG_BUF_INIT;

    hg_state_format_counts(v->counts, STDOUT_FILENO, &counts);
    printf("%s\n  %zu cell%s: %s\n", v->rd.path, v->cells, hg_text_s(v->cells),
           hg_buf_str(&counts));
    hg_buf_done(&counts);
    print_batches(v);
    print_why(v);
    print_behind(v);
    print_start(v);
    print_held(v);
    print_left(v);
    print_doubts(v);
    if (v->held)
        printf("  driven by process %ld on %s (%s)\n", v->owner.who.pid, v->owner.who.host,
               v->owner.command);
    else if (v->home && hg_state_open(v->state))
        printf("  no process drives it: hpcgrid resume %s\n", v->rd.path);
    if (*v->unreachable)
        printf("  Slurm was not contacted: %s\n", v->unreachable);
    printf("  receipt: submit %u · poll %u · cancel %u%s%s\n", v->state->submits, v->state->polls,
           v->state->cancels, *v->state->transport ? " by " : "", v->state->transport);
    if (list_cells)
        print_cells(v);
}

/* ---- As JSON ---- */

static json_t *cells_json(const struct view *v)
{
    json_t *list = json_array();

    for (size_t b = 0; b < v->state->batches.n; b++)
        for (size_t i = 0; i < v->state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &v->state->batches.items[b].cells[i];

            if (hg_picks_has(&v->picks, (int)b + 1, (uint32_t)i))
                json_array_append_new(
                    list,
                    json_pack("{s:s,s:i,s:I,s:s,s:b,s:I,s:s}", "id",
                              hg_picks_id(&v->picks, (int)b + 1, (uint32_t)i), "batch", (int)b + 1,
                              "line", (json_int_t)i, "state", hg_cell_state_names[cell->state],
                              "held", hg_cell_is_held(cell), "restarts", (json_int_t)cell->restarts,
                              "text", hg_run_text(v->state, cell)));
        }
    return list;
}

static json_t *reasons_json(const struct view *v)
{
    json_t *object = json_object();

    for (size_t i = 0; i < v->n_why; i++)
        json_object_set_new(object, v->why[i].text, json_integer((json_int_t)v->why[i].n));
    return object;
}

static void print_json(const struct view *v)
{
    json_t *answer =
        json_pack("{s:o,s:I,s:o,s:I,s:o,s:b,s:{s:I,s:I,s:I}}", "run", hg_json_text(v->rd.path),
                  "cells", (json_int_t)v->cells, "counts", hg_state_counts_json(v->counts), "held",
                  (json_int_t)v->kept, "reasons", reasons_json(v), "polled", v->polled, "receipt",
                  "submit", (json_int_t)v->state->submits, "poll", (json_int_t)v->state->polls,
                  "cancel", (json_int_t)v->state->cancels);

    if (v->behind)
        json_object_set_new(answer, "behind", json_integer((json_int_t)v->behind));
    if (*v->state->transport)
        json_object_set_new(answer, "transport", json_string(v->state->transport));
    if (v->held)
        json_object_set_new(answer, "driver",
                            json_pack("{s:o,s:I,s:o}", "host", hg_json_text(v->owner.who.host),
                                      "pid", (json_int_t)v->owner.who.pid, "command",
                                      hg_json_text(v->owner.command)));
    if (v->left && v->left->cells > v->left->held)
        json_object_set_new(answer, "left", hg_outlook_json(&v->left->outlook, v->left->pace));
    if (v->starts_s > 0)
        json_object_set_new(answer, "next_start_s", json_real(v->starts_s));
    if (*v->unreachable)
        json_object_set_new(answer, "unreachable", hg_json_text(v->unreachable));
    if (list_cells)
        json_object_set_new(answer, "list", cells_json(v));
    hg_print_json(answer);
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct view v = { 0 };
    int rc = -1;

    (void)argc;
    list_cells = list_cells || show_ids;
    if (hg_rundir_find(hg_options_reports(reports), argv[0], &v.rd, &err) < 0)
        goto out;
    v.home = hg_identity_warn(v.rd.path);
    if (load_state(&v, &err) < 0 || ask_slurm(&v, &err) < 0)
        goto out;
    if ((list_cells ? hg_picks_name : hg_picks_make)(&v.picks, v.rd.path, v.state, select_text,
                                                     &err) < 0)
        goto out;
    count_cells(&v);
    look_ahead(&v);
    (as_json ? print_json : print_text)(&v);
    rc = 0;
out:
    hg_eta_free(v.eta);
    hg_picks_done(&v.picks);
    hg_run_state_free(v.state);
    hg_rundir_done(&v.rd);
    return rc < 0 ? hg_errs_add(errs, &err) : 0;
}

const struct hg_cmd hg_cmd_status = {
    .name = "status",
    .args = "RUN",
    .summary = "Show a run's progress, from its journal and one request to Slurm.",
    .details = "Needs no lock and changes nothing. Cells that have \"ended\" left the queue;\n"
               "`hpcgrid resume` reads their results.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
