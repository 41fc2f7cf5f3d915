/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WK_CMD_CMD_H
#define WK_CMD_CMD_H

#include <jansson.h>

#include "base/err.h"
#include "base/opt.h"

/* A subcommand of hpcgrid-worker: one file in cmd/, one line in main.c's table. main prints the help screen, reads the options
 * and counts the words.
 *
 * run() gets the words that are not options. It returns the exit code, or -1 with at least one error in errs; main prints the
 * errors and exits with the first one's code. stdout is the answer, stderr is talk. */
struct wk_cmd {
    const char *name, *summary;
    const char *usage;         /* after the name: "--data FILE --vocab FILE"; NULL: nothing */
    const char *about;         /* for the help screen; NULL: the summary says it all */
    const struct hg_opt *opts; /* NULL: none */
    int words;                 /* most words that are not options */
    int (*run)(int argc, char **argv, struct hg_errs *errs);
    void (*help)(struct hg_buf *out); /* the help screen after `about`, instead of the options */
    /* the same for `--help=TOPIC`; -1 with err set: unknown topic. NULL: no topics */
    int (*help_on)(const char *topic, struct hg_buf *out, struct hg_err *err);
};

extern const struct wk_cmd wk_cmd_train, wk_cmd_check, wk_cmd_tokenize, wk_cmd_features,
    wk_cmd_eval_squad, wk_cmd_inspect, wk_cmd_describe, wk_cmd_doctor, wk_cmd_predict;

/* The two options that name a cell. */
#define WK_OPT_CELL(cell, config)                                                      \
    { HG_OPT_STRING, 0, "cell", cell, "FILE", "a cell's JSON ($HPCGRID_CELL)", 0, 0 }, \
    {                                                                                  \
        HG_OPT_STRING, 0, "config", config, "FILE",                                    \
            "the same, written by hand; - is standard input", 0, 0                     \
    }

/* What they name: config, else cell, else $HPCGRID_CELL; NULL: nothing. */
const char *wk_cmd_cell(const char *cell, const char *config);

/* A command line that lacks something: "NAME: what", and the command's usage. Returns -1. */
int wk_cmd_misused(const struct wk_cmd *cmd, const char *what, struct hg_errs *errs);

/* Write the answer to stdout; the text is freed. Returns 0, or -1 with err set (ENV). */
int wk_cmd_print(struct hg_buf *text, struct hg_err *err);

/* The same of a value, as hg_json_dump with these flags and a line feed; the reference is taken. */
int wk_cmd_print_json(json_t *value, unsigned flags, struct hg_err *err);

/* Errors to stderr in one write, so that ranks do not mix their lines. */
void wk_cmd_print_errors(struct hg_errs *errs, int rank, int world);

/* Threads of a rank: OMP_NUM_THREADS, else what the cell says (it may be NULL), else all cores when there is one rank. */
struct wk_config;
int wk_cmd_threads(const struct wk_config *config, int world);

#endif
