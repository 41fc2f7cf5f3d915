/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/cockpit.h"
#include "cmd/progress.h"
#include "cmd/options.h"
#include "drive/check.h"

static struct hg_begin_options begin = { .data_check = true, .shrink = true };
static bool again, as_json;
static const char *notify;

static const struct hg_opt opts[] = {
    { HG_OPT_FLAG, 'b', "box", &begin.box, NULL, "rehearse it in a private Slurm on this machine",
      0, 0 },
    { HG_OPT_FLAG, 0, "shrink", &begin.shrink, NULL,
      "with --box: tiny models, data (--no-shrink: whole)", 0, 0 },
    HG_OPTION_NEW(&begin.fresh),
    HG_OPTION_SELECT(&begin.select),
    { HG_OPT_FLAG, 0, "rerun-failed", &again, NULL, "also run failed cells again", 0, 0 },
    HG_OPTION_SITE(&begin.site),
    HG_OPTION_DATA_CHECK(&begin.data_check),
    HG_OPTION_REPORTS(&begin.reports),
    HG_OPTION_STEAL(&begin.steal),
    HG_OPTION_SCREEN(&hg_cockpit_wanted),
    HG_OPTION_NOTIFY(&notify),
    HG_OPTION_JSON(&as_json),
    { 0 },
};

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_session s;
    int rc = -1;

    begin.matrix = argv[0];
    if (hg_session_begin(&s, &begin, argc, argv, errs) < 0)
        return -1;
    s.json = as_json;
    s.notify = notify;
    hg_info("%s", s.rd.path);
    if ((!again || hg_session_again(&s, HG_SESSION_BAD, begin.select, errs) == 0) &&
        hg_drive_check(s.drive, errs) == 0)
        rc = hg_progress_conclude(&s, errs);
    if (rc >= 0)
        hg_session_tell_elsewhere(&s);
    hg_session_done(&s);
    return rc;
}

const struct hg_cmd hg_cmd_run = {
    .name = "run",
    .args = "MATRIX",
    .summary = "Submit a matrix, follow the run to its end and print the tables.",
    .details = "Continues the newest run of the matrix: cells with a good result do not run\n"
               "again; cells that are new in the matrix, and selected, are added. Ctrl-C leaves\n"
               "the jobs running and prints how to continue. Exit code: 0 if all cells have a\n"
               "good result, 1 if some do not.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
