/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/session.h"

static struct hg_session_wish wish;
static bool data_check = true;
static bool again;

static const struct hg_opt opts[] = {
    { HG_OPT_FLAG, 'b', "box", &wish.box, NULL, "in a private Slurm on this machine", 0, 0 },
    { HG_OPT_FLAG, 'n', "new", &wish.fresh, NULL, "begin a new run instead of continuing the last",
      0, 0 },
    { HG_OPT_STRING, 's', "select", &wish.select, "SELECTOR", "add only these cells", 0, 0 },
    { HG_OPT_FLAG, 0, "rerun-failed", &again, NULL,
      "also run again what ended without a good result", 0, 0 },
    { HG_OPT_STRING, 0, "site", &wish.site, "SITE", "a name or file instead of the matrix's site",
      0, 0 },
    { HG_OPT_FLAG, 0, "data-check", &data_check, NULL,
      "look at the data first (--no-data-check: do not)", 0, 0 },
    { HG_OPT_STRING, 0, "reports", &wish.reports, "DIR", "where runs are kept (reports)", 0, 0 },
    { HG_OPT_FLAG, 0, "steal", &wish.steal, NULL, "take the run from a process on another machine",
      0, 0 },
    { 0 },
};

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_session s;
    int rc = -1;

    wish.matrix = argv[0];
    wish.skip_data = !data_check;
    if (hg_session_begin(&s, &wish, argc, argv, errs) < 0)
        return -1;
    hg_info("%s", s.rd.path);
    if ((!again || hg_session_again(&s, HG_SESSION_BAD, wish.select, errs) == 0) &&
        hg_session_check(&s, errs) == 0)
        rc = hg_session_finish(&s, errs);
    hg_session_done(&s);
    return rc;
}

const struct hg_cmd hg_cmd_run = {
    .name = "run",
    .args = "MATRIX",
    .summary = "Submit a matrix, follow it to its end, print the tables.",
    .details = "Continues the newest run of the matrix: cells with a good result do not run\n"
               "twice, cells that are new in the matrix are added. Ctrl-C leaves the jobs\n"
               "running and says how to come back. Exit code: 0 all cells have a good result,\n"
               "1 some have not.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
