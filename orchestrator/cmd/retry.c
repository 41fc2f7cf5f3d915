/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/cockpit.h"
#include "cmd/progress.h"
#include "cmd/options.h"
#include "cmd/picks.h"
#include "cmd/signals.h"
#include "drive/requests.h"
#include "rundir/events.h"
#include "rundir/identity.h"
#include "rundir/lock.h"

static struct hg_resume_options again = { .command = "retry", .wait = true };
static const char *select_text, *status_text;

static const struct hg_opt opts[] = {
    HG_OPTION_SELECT(&select_text),
    { HG_OPT_STRING, 0, "status", &status_text, "WORDS", "only cells that ended so: timeout,oom", 0,
      0 },
    HG_OPTION_REPORTS(&again.reports),
    HG_OPTION_STEAL(&again.steal),
    HG_OPTION_SCREEN(&hg_cockpit_wanted),
    { 0 },
};

/* The bit of one word; 0: err set. */
static unsigned status_bit(const char *word, struct hg_err *err)
{
    const char *known[HG_CELL_STATES];
    size_t n = 0;

    for (int s = 0; s < HG_CELL_STATES; s++) {
        if (!(HG_SESSION_BAD & 1u << s))
            continue;
        if (strcmp(word, hg_cell_state_names[s]) == 0)
            return 1u << s;
        known[n++] = hg_cell_state_names[s];
    }
    hg_err_set(err, HG_E_USAGE, "--status: unknown word \"%.40s\"", word);
    hg_text_suggest(err, word, known, n);
    return 0;
}

/* "timeout,oom" to bits; 0: err set. */
static unsigned read_statuses(const char *text, struct hg_err *err)
{
    unsigned bits = 0;

    if (!text)
        return HG_SESSION_BAD;
    for (const char *p = text;; p++) {
        char word[64];
        size_t n = strcspn(p, ",");
        unsigned bit;

        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), p);
        bit = status_bit(word, err);
        if (!bit)
            return 0;
        bits |= bit;
        p += n;
        if (!*p)
            return bits;
    }
}

/* Cells that run again: picked, and ended in one of the states. */
struct wanted {
    const struct hg_run_state *state;
    struct hg_picks picks;
    unsigned statuses;
};

static bool is_wanted(void *context, int batch, uint32_t line)
{
    const struct wanted *w = context;
    const struct hg_run_cell *cell = hg_run_cell_find(w->state, batch, line);

    return cell && hg_cell_is_over(cell) && !cell->removed && w->statuses & 1u << cell->state &&
           hg_picks_has(&w->picks, batch, line);
}

/* Ask the process that drives the run. */
static int request(const struct hg_rundir *rd, unsigned statuses, struct hg_err *err)
{
    struct hg_run_state *state = hg_run_state_load(rd->path, err);
    struct wanted w = { .state = state, .statuses = statuses };
    size_t n = 0;
    int rc = -1;

    if (state && hg_picks_make(&w.picks, rd->path, state, select_text, err) == 0)
        rc = 0;
    for (size_t b = 0; rc == 0 && b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++)
            n += is_wanted(&w, (int)b + 1, (uint32_t)i);
    if (rc == 0 && n)
        rc = hg_drive_request(rd, HG_REQUEST_RETRY, state, is_wanted, &w, err);
    if (rc == 0 && n)
        hg_info("%zu cell%s again; the process that drives the run submits %s within a minute", n,
                n == 1 ? " runs" : "s run", n == 1 ? "it" : "them");
    else if (rc == 0)
        hg_info("no cell to run again");
    hg_picks_done(&w.picks);
    hg_run_state_free(state);
    return rc;
}

/* 0: another process drives the run, and was asked; 1: none does; -1: err set. */
static int ask_driver(const char *run, unsigned statuses, struct hg_err *err)
{
    struct hg_rundir rd = { 0 };
    struct hg_lock_owner owner;
    int rc = -1;

    if (hg_rundir_find(hg_options_reports(again.reports), run, &rd, err) == 0 &&
        hg_identity_check(rd.path, err) == 0)
        rc = again.steal || hg_lock_find(rd.path, &owner, NULL) != 1 ? 1
                                                                     : request(&rd, statuses, err);
    hg_rundir_done(&rd);
    return rc;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    unsigned statuses = read_statuses(status_text, &err);
    struct hg_drive_pass pass;
    struct hg_session s;
    int rc;

    (void)argc;
    rc = statuses ? ask_driver(argv[0], statuses, &err) : -1;
    if (rc <= 0)
        return rc < 0 ? hg_errs_add(errs, &err) : 0;
    again.run = argv[0];
    rc = hg_session_resume(&s, &again, errs);
    if (rc != 0)
        return rc < 0 ? -1 : hg_signals_code();
    if (hg_drive_pass(s.drive, &pass, &err) < 0) /* what failed since a process drove the run */
        rc = hg_errs_add(errs, &err);
    else
        rc = hg_session_again(&s, statuses, select_text, errs);
    if (rc == 0)
        rc = hg_progress_conclude(&s, errs);
    hg_session_done(&s);
    return rc;
}

const struct hg_cmd hg_cmd_retry = {
    .name = "retry",
    .args = "RUN",
    .summary = "Run the failed cells of a run again, to its end.",
    .details = "If another process drives the run, it is asked to, and retry ends at once.\n"
               "The words for --status are failed, timeout, oom, node_fail, cancelled and lost;\n"
               "without it: all of them. Every retry is a new attempt, and the last good one\n"
               "counts; cells with a good result do not run again. Corrections of the matrix and\n"
               "its site apply; cells that the matrix gained since then are added by `run`.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
