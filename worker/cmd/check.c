/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-worker check: what would stop a training before its first step, found before it waits in a queue. */
#include "cmd/cmd.h"
#include "train/train.h"

static const char *cell, *config;

static int run(int argc, char **argv, struct hg_errs *errs)
{
    const char *path = wk_cmd_cell(cell, config);
    struct hg_err err = HG_ERR_INIT;
    struct wk_config c;
    int rc = -1;

    (void)argc;
    (void)argv;
    if (!path)
        return wk_cmd_misused(&wk_cmd_check, "no cell given", errs);
    if (wk_config_load(path, &c, errs) == 0)
        rc = wk_train_check(&c, &err);
    wk_config_done(&c);
    hg_errs_add(errs, &err);
    return rc;
}

const struct wk_cmd wk_cmd_check = {
    .name = "check",
    .summary = "read a cell and its data, and report what is wrong",
    .usage = "--cell FILE",
    .about = "Read a cell and its data set, and report what is wrong with them. Nothing is\n"
             "trained, no other rank is needed. Exit code 0, or the one of train.\n",
    .opts = (const struct hg_opt[]){ WK_OPT_CELL(&cell, &config), { 0 } },
    .run = run,
};
