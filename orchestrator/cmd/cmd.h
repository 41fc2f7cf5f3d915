/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_CMD_H
#define HG_CMD_CMD_H

#include "base/err.h"
#include "base/opt.h"

#define HG_CMD_FILES 64 /* open files that commands want */

/* A subcommand: one file in cmd/, one line in commands.c.
 *
 * run() gets the operands (options are already parsed into the file's static variables). It returns
 * the exit code, 0 (fine) or 1 (the tool worked, some cells failed), or -1 with at least one error
 * in errs; main prints the errors and exits with the first one's code. stdout is the answer, stderr
 * is talk.
 */
struct hg_cmd {
    const char *name;
    const char *args;    /* operands as the help shows them: "MATRIX [CELL]" */
    const char *summary; /* one line */
    const char *details; /* paragraph(s) under the usage line; may be NULL */
    const struct hg_opt *opts;
    int min_args, max_args; /* max -1: any number */
    bool hidden;            /* called by hpcgrid itself, not listed */
    bool any_files;         /* runs with fewer than HG_CMD_FILES, too */
    bool raw;               /* run() parses its own words: subcommands such as box */
    int (*run)(int argc, char **argv, struct hg_errs *errs);
};

/* All commands in the order of `hpcgrid help`; ends with NULL. */
extern const struct hg_cmd *const hg_commands[];

const struct hg_cmd *hg_cmd_find(const char *name);

/* Append the help screen of one command; the golden files in tests/cli/help hold it. */
void hg_cmd_help(const struct hg_cmd *cmd, struct hg_buf *out);

#endif
