/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"
#include "cmd/session.h"

static const char *reports;
static bool steal;

static const struct hg_opt opts[] = {
    { HG_OPT_STRING, 0, "reports", &reports, "DIR", "where runs are kept (reports)", 0, 0 },
    { HG_OPT_FLAG, 0, "steal", &steal, NULL, "take the run from a process on another machine", 0,
      0 },
    { 0 },
};

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_session_back back = {
        .reports = reports, .run = argv[0], .command = "resume", .steal = steal, .wait = true
    };
    struct hg_session s;
    int rc = hg_session_resume(&s, &back, errs);

    (void)argc;
    if (rc != 0)
        return rc < 0 ? -1 : hg_session_left();
    rc = hg_session_finish(&s, errs);
    hg_session_done(&s);
    return rc;
}

const struct hg_cmd hg_cmd_resume = {
    .name = "resume",
    .args = "RUN",
    .summary = "Go on with a run where it stopped, to its end.",
    .details = "RUN is a run's folder, NAME, NAME/002, or a matrix file (its newest run).\n"
               "Submissions that an earlier hpcgrid left in doubt are looked up, never sent\n"
               "twice. It waits for a Slurm that does not answer. A copied or moved folder can\n"
               "only be read: as every command that submits or writes, resume refuses it.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
