/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-worker doctor: what a training would run on. */
#include <stdio.h>

#include "cmd/cmd.h"
#include "comm/comm.h"
#include "train/revision.h"

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;

    (void)argv;
    if (argc > 0) {
        hg_err_set(err, HG_E_USAGE, "doctor: too many arguments");
        return hg_errs_add(errs, err);
    }
    hg_buf_printf(&text, "hpcgrid-worker %s, %s\n", WK_REVISION, WK_PRECISION);
    for (const struct wk_backend *const *b = wk_backends; *b; b++) {
        const struct wk_dev_options options = { .threads = wk_cmd_threads(NULL, 1) };
        struct wk_dev *dev = (*b)->open(&options, err);

        hg_buf_printf(&text, "backend %s: %s\n", (*b)->name, dev ? (*b)->summary : err->text);
        if (dev)
            (*b)->describe(dev, &text);
        (*b)->close(dev);
    }
    wk_comm_mpi.describe(&text);
    fputs(hg_buf_str(&text), stdout);
    hg_buf_done(&text);
    return err->code ? hg_errs_add(errs, err) : 0;
}

const struct wk_cmd wk_cmd_doctor = {
    .name = "doctor",
    .summary = "versions, device, threads and libraries",
    .run = run,
};
