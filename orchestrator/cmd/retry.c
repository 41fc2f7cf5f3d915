/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/progress.h"
#include "cmd/options.h"
#include "cmd/signals.h"

static struct hg_resume_options again = { .command = "retry", .wait = true };
static const char *select_text, *status_text;

static const struct hg_opt opts[] = {
    HG_OPTION_SELECT(&select_text),
    { HG_OPT_STRING, 0, "status", &status_text, "WORDS",
      "some of failed,timeout,oom,node_fail,cancelled,lost", 0, 0 },
    HG_OPTION_REPORTS(&again.reports),
    HG_OPTION_STEAL(&again.steal),
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

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    unsigned statuses = read_statuses(status_text, &err);
    struct hg_drive_pass pass;
    struct hg_session s;
    int rc;

    (void)argc;
    if (!statuses)
        return hg_errs_add(errs, &err);
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
    .details = "The words for --status are failed, timeout, oom, node_fail, cancelled and lost;\n"
               "without it: all of them. Every retry is a new attempt, and the last good one\n"
               "counts; cells with a good result do not run again. Corrections of the matrix and\n"
               "its site apply; cells that the matrix gained since then are added by `run`.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
