/* SPDX-License-Identifier: Apache-2.0 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/text.h"
#include "base/words.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "rundir/rundir.h"

static const char *reports;
static bool print_only;

static const struct hg_opt opts[] = {
    HG_OPTION_FLAG(0, "print", &print_only, "print the command, start nothing"),
    HG_OPTION_REPORTS(&reports),
    { 0 },
};

/* Are there event files in it, of any program? */
static bool has_events(const char *dir)
{
    struct hg_buf pattern = HG_BUF_INIT;
    glob_t found;
    bool has;

    for (; *dir; dir++)
        hg_buf_printf(&pattern, "%s%c", strchr("*?[\\", *dir) ? "\\" : "", *dir);
    hg_buf_puts(&pattern, "/*/*/*tfevents*");
    has = glob(hg_buf_str(&pattern), GLOB_NOSORT, NULL, &found) == 0;
    globfree(&found);
    hg_buf_done(&pattern);
    return has;
}

static void print_command(const struct hg_words *words)
{
    struct hg_buf line = HG_BUF_INIT;

    for (size_t i = 0; i < words->n; i++) {
        hg_buf_puts(&line, i ? " " : "");
        hg_text_quote_if_needed(words->items[i], &line);
    }
    puts(hg_buf_str(&line));
    hg_buf_done(&line);
}

/* In the place of this process: Ctrl-C and the exit code are TensorBoard's. */
static int start(const struct hg_words *words, struct hg_err *err)
{
    char *found = hg_fs_find_program("tensorboard", getenv("PATH"));

    if (!found || print_only) {
        print_command(words);
        if (!found)
            hg_info("tensorboard is not in PATH: pip install tensorboard, and start the above");
        free(found);
        return 0;
    }
    fflush(stdout);
    execv(found, words->items);
    hg_err_sys(err, "cannot start %s", found);
    free(found);
    return -1;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_words words = HG_WORDS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_rundir rd = { 0 };
    char *dir = NULL;
    int rc = hg_rundir_find(hg_options_reports(reports), argv[0], &rd, &err);

    if (rc == 0) {
        dir = hg_rundir_path(&rd, "cells");
        if (!has_events(dir))
            hg_warn("no event files in %s yet; hpcgrid-worker writes them for cells with "
                    "\"tensorboard\": true",
                    dir);
        hg_words_push(&words, "tensorboard");
        hg_words_push(&words, "--logdir");
        hg_words_push(&words, dir);
        for (int i = 1; i < argc; i++)
            hg_words_push(&words, argv[i]);
        rc = start(&words, &err);
    }
    hg_words_done(&words);
    hg_rundir_done(&rd);
    free(dir);
    return rc < 0 ? hg_errs_add(errs, &err) : 0;
}

const struct hg_cmd hg_cmd_tensorboard = {
    .name = "tensorboard",
    .args = "RUN [-- WORDS]",
    .summary = "Start TensorBoard on a run, or print the command.",
    .details =
        "Shows the event files that cells with \"tensorboard\": true, or any program, wrote\n"
        "to their folders ({{dir}}). WORDS go to tensorboard: -- --port 6007.",
    .opts = opts,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
