/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-worker doctor: what a training would run on. */
#include "cmd/cmd.h"
#include "comm/environment.h"
#include "comm/transports.h"
#include "train/revision.h"

/* What a backend finds here. A missing device is an answer, not a failure. */
static void describe(const struct wk_backend *b, struct hg_buf *out)
{
    const struct wk_dev_options options = { .threads = wk_cmd_threads(NULL, 1),
                                            .local_rank = wk_comm_local_rank() };
    struct hg_err err = HG_ERR_INIT;
    struct wk_dev *dev = b->open(&options, &err);

    if (dev) {
        hg_buf_printf(out, "backend %s: %s\n", b->name, b->summary);
        b->describe(dev, out);
        b->close(dev);
        return;
    }
    hg_buf_printf(out, "backend %s cannot be used here: %s\n", b->name, err.text);
    if (err.hint[0])
        hg_buf_printf(out, "  %s\n", err.hint);
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;

    (void)argc;
    (void)argv;
    hg_buf_printf(&text, "hpcgrid-worker %s, %s\n", WK_REVISION, WK_PRECISION);
    for (const struct wk_backend *const *b = wk_backends; *b; b++)
        describe(*b, &text);
    wk_comm_describe(&text);
    wk_cmd_print(&text, &err);
    return hg_errs_add(errs, &err);
}

const struct wk_cmd wk_cmd_doctor = {
    .name = "doctor",
    .summary = "versions, device, threads and libraries",
    .run = run,
};
