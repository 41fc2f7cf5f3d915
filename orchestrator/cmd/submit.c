/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/progress.h"
#include "cmd/options.h"
#include "cmd/print.h"
#include "cmd/signals.h"
#include "cmd/state.h"
#include "drive/check.h"

static struct hg_begin_options begin = { .data_check = true };
static bool as_json;

static const struct hg_opt opts[] = {
    HG_OPTION_NEW(&begin.fresh),
    HG_OPTION_SELECT(&begin.select),
    HG_OPTION_JSON(&as_json),
    HG_OPTION_SITE(&begin.site),
    HG_OPTION_DATA_CHECK(&begin.data_check),
    HG_OPTION_REPORTS(&begin.reports),
    HG_OPTION_STEAL(&begin.steal),
    { 0 },
};

/* Passes until everything that fits has been sent. */
static int send_all(struct hg_session *s, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_drive_pass pass;

    do {
        if (hg_drive_pass(s->drive, &pass, &err) < 0)
            return hg_errs_add(errs, &err);
        if (pass.sending)
            hg_clock_sleep_s(pass.wait_s);
    } while (pass.sending && !hg_signals_stop);
    if (hg_drive_finish(s->drive, &err) < 0)
        return hg_errs_add(errs, &err);
    return 0;
}

/* Of those that wait. */
static size_t count_held(const struct hg_run_state *state)
{
    size_t n = 0;

    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++)
            n += state->batches.items[b].cells[i].state == HG_CELL_WAITING &&
                 state->batches.items[b].cells[i].held;
    return n;
}

static void print_json(const struct hg_session *s, size_t from)
{
    const struct hg_run_state *state = hg_drive_state(s->drive);
    json_t *list = json_array();
    json_t *answer;

    for (size_t i = from; i < state->submissions.n; i++) {
        const struct hg_submission *sub = &state->submissions.items[i];

        json_array_append_new(list, json_pack("{s:i,s:I,s:s,s:I,s:b}", "batch", sub->batch, "job",
                                              (json_int_t)sub->job_id, "key", sub->key, "cells",
                                              (json_int_t)sub->n_tasks, "certain",
                                              sub->state == HG_SUB_SUBMITTED));
    }
    answer =
        json_pack("{s:o,s:I,s:I,s:I,s:I,s:o}", "run", hg_json_text(s->rd.path), "cells",
                  (json_int_t)state->cells, "waiting", (json_int_t)state->counts[HG_CELL_WAITING],
                  "not_needed", (json_int_t)state->counts[HG_CELL_UNNEEDED], "held",
                  (json_int_t)count_held(state), "submissions", list);
    hg_print_json(answer);
}

static void print_text(const struct hg_session *s)
{
    const struct hg_run_state *state = hg_drive_state(s->drive);
    size_t waiting = state->counts[HG_CELL_WAITING], held = count_held(state);
    struct hg_buf counts = HG_BUF_INIT;

    hg_state_format(state, STDERR_FILENO, &counts);
    hg_info("%s", hg_buf_str(&counts));
    hg_buf_done(&counts);
    if (waiting > held)
        hg_info(
            "waiting for room in the queue: %zu; `hpcgrid resume`, `run` or `watch` submits them",
            waiting - held);
    if (held)
        hg_info("held, not submitted: %zu; `hpcgrid release %s` lets them start", held, s->rd.path);
    if (state->counts[HG_CELL_UNNEEDED])
        hg_info("adaptive repeats: when these cells have ended, `hpcgrid run` or `resume` decides "
                "which of %zu more are needed, and submits them",
                state->counts[HG_CELL_UNNEEDED]);
    if (state->counts[HG_CELL_AMBIGUOUS])
        hg_info("not known whether submitted: %zu; `hpcgrid resume` looks them up",
                state->counts[HG_CELL_AMBIGUOUS]);
    puts(s->rd.path);
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_session s;
    int rc = -1;

    begin.matrix = argv[0];
    if (hg_session_begin(&s, &begin, argc, argv, errs) < 0)
        return -1;
    if (hg_drive_check(s.drive, errs) == 0) {
        size_t before = hg_drive_state(s.drive)->submissions.n;

        rc = send_all(&s, errs);
        if (rc == 0 && as_json)
            print_json(&s, before);
        else if (rc == 0)
            print_text(&s);
        if (rc == 0)
            hg_session_tell_elsewhere(&s);
        if (rc == 0)
            rc = hg_progress_add_refusals(&s, errs);
    }
    hg_session_done(&s);
    return rc;
}

const struct hg_cmd hg_cmd_submit = {
    .name = "submit",
    .args = "MATRIX",
    .summary = "Submit what fits into Slurm's limits and print the run's folder.",
    .details = "Continues the newest run of the matrix: cells with a good result do not run\n"
               "again. What does not fit waits for `run`, `watch` or `resume`. Nothing is\n"
               "submitted if Slurm would refuse any batch.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
