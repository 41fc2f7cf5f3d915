/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-worker check: what would stop a training before its first step, found before it waits in a queue. */
#include <stdlib.h>

#include "base/opt.h"
#include "cmd/cmd.h"
#include "train/train.h"

static const char *cell, *config;

static const struct hg_opt opts[] = {
    { HG_OPT_STRING, 0, "cell", &cell, "FILE", "a cell's JSON ($HPCGRID_CELL)", 0, 0 },
    { HG_OPT_STRING, 0, "config", &config, "FILE", "the same, written by hand; - is standard input",
      0, 0 },
    { 0 },
};

static void help(struct hg_buf *out)
{
    hg_buf_puts(
        out,
        "usage: hpcgrid-worker check --cell FILE\n\n"
        "Read a cell and its data set, and report what is wrong with them. Nothing is\n"
        "trained, no other rank is needed. Exit code 0, or the one that train would end with.\n\n");
    hg_opt_help(opts, out);
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;
    struct wk_config c;
    int rc = -1;

    cell = getenv("HPCGRID_CELL");
    if (hg_opt_parse(opts, &argc, argv, err) < 0)
        return hg_errs_add(errs, err);
    if (config)
        cell = config;
    if (argc > 0 || !cell) {
        hg_err_set(err, HG_E_USAGE,
                   argc > 0 ? "check: too many arguments" : "check: no cell given");
        hg_err_hint(err, "usage: hpcgrid-worker check --cell FILE");
        return hg_errs_add(errs, err);
    }
    if (wk_config_load(cell, &c, errs) == 0)
        rc = wk_train_check(&c, err);
    wk_config_done(&c);
    if (err->code)
        hg_errs_add(errs, err);
    return rc;
}

const struct wk_cmd wk_cmd_check = {
    .name = "check",
    .summary = "read a cell and its data, and report what is wrong",
    .run = run,
    .help = help,
};
