/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_CMD_H
#define HG_CMD_CMD_H

#include "base/err.h"
#include "base/opt.h"

#define HG_CMD_FILES 64 /* open files that commands need */

/* A command: one file in cmd/, one line in commands.c.
 *
 * run() gets the operands; the options are already in the file's static variables. It returns the exit code, 0 (fine) or 1 (the
 * tool worked, some cells failed), or -1 with at least one error in errs: main prints them and exits with the first one's code.
 * The answer goes to stdout, messages to stderr.
 */
struct hg_cmd {
    const char *name;
    /* Operands as the help shows them: "MATRIX [CELL]". RUN: the help explains it. */
    const char *args;
    const char *summary; /* one line */
    const char *details; /* paragraphs under the usage line, at most 80 columns; may be NULL */
    const struct hg_opt *opts;
    int min_args, max_args; /* max -1: any number */
    bool hidden;            /* called by hpcgrid itself, not listed */
    bool any_files;         /* also runs with fewer than HG_CMD_FILES */
    int (*run)(int argc, char **argv, struct hg_errs *errs);
};

#endif
