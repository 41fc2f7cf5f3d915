/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"
#include "cmd/cockpit.h"
#include "cmd/progress.h"
#include "cmd/options.h"
#include "cmd/signals.h"

static const char *reports, *notify;
static bool steal, as_json;

static const struct hg_opt opts[] = {
    HG_OPTION_REPORTS(&reports), HG_OPTION_STEAL(&steal),  HG_OPTION_SCREEN(&hg_cockpit_wanted),
    HG_OPTION_NOTIFY(&notify),   HG_OPTION_JSON(&as_json), { 0 },
};

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_resume_options o = {
        .reports = reports, .run = argv[0], .command = "resume", .steal = steal, .wait = true
    };
    struct hg_session s;
    int rc = hg_session_resume(&s, &o, errs);

    (void)argc;
    if (rc != 0)
        return rc < 0 ? -1 : hg_signals_code();
    s.json = as_json;
    s.notify = notify;
    rc = hg_progress_conclude(&s, errs);
    hg_session_done(&s);
    return rc;
}

const struct hg_cmd hg_cmd_resume = {
    .name = "resume",
    .args = "RUN",
    .summary = "Continue a run where it stopped, to its end.",
    .details = "Looks up submissions whose outcome an earlier hpcgrid did not learn, and never\n"
               "submits them twice. Waits for a Slurm that does not answer. Corrections of the\n"
               "matrix and its site apply; cells that the matrix gained are added by `run`. A\n"
               "folder that was copied or moved can only be read.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
