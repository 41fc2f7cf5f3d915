/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_COMMANDS_H
#define HG_CMD_COMMANDS_H

#include "cmd/cmd.h"

#define HG_COMMANDS_SUMMARY "Run a matrix of experiments on Slurm, tabulate speedup and efficiency."

/* All commands in the order of `hpcgrid help`; ends with NULL. */
extern const struct hg_cmd *const hg_commands[];

/* USAGE, with a suggestion: there is no such command. */
const struct hg_cmd *hg_commands_find(const char *name, struct hg_err *err);

/* Append the list of commands, or the help screen of one; the golden files in tests/cli/help hold them. */
void hg_commands_help(struct hg_buf *out);
void hg_commands_help_one(const struct hg_cmd *cmd, struct hg_buf *out);

/* Append what the help screen says of a command between its summary and its options. */
void hg_commands_details(const struct hg_cmd *cmd, struct hg_buf *out);

/* Append "usage: hpcgrid NAME [OPTIONS] ARGS". */
void hg_commands_usage(const struct hg_cmd *cmd, struct hg_buf *out);

#endif
