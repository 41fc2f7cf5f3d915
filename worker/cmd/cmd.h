/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WK_CMD_CMD_H
#define WK_CMD_CMD_H

#include "base/buf.h"
#include "base/err.h"

/* A subcommand of hpcgrid-worker: one file in cmd/, one line in main.c's table.
 *
 * run() gets the words after the command's name. It returns the exit code, or -1 with at least one
 * error in errs; main prints the errors and exits with the first one's code. stdout is the answer,
 * stderr is talk. */
struct wk_cmd {
    const char *name, *summary;
    int (*run)(int argc, char **argv, struct hg_errs *errs);
    void (*help)(struct hg_buf *out); /* append the help screen; NULL: the summary says it all */
    /* the same for `--help=TOPIC`; -1 with err set: unknown topic. NULL: no topics */
    int (*help_on)(const char *topic, struct hg_buf *out, struct hg_err *err);
};

extern const struct wk_cmd wk_cmd_train, wk_cmd_check, wk_cmd_tokenize, wk_cmd_features,
    wk_cmd_eval_squad, wk_cmd_inspect, wk_cmd_describe, wk_cmd_doctor, wk_cmd_predict;

/* Errors to stderr in one write, so that ranks do not mix their lines. */
void wk_cmd_print_errors(struct hg_errs *errs, int rank, int world);

/* Threads of a rank: OMP_NUM_THREADS, else what the cell says (it may be NULL), else all cores when there is one rank. */
struct wk_config;
int wk_cmd_threads(const struct wk_config *config, int world);

#endif
