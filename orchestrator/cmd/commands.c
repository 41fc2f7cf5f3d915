/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/commands.h"

#include <string.h>

#include "base/text.h"
#include "manual/topics.h"
#include "typeset/plain.h"

/* clang-format off */
/* In the order of `hpcgrid help`. To add one: its line here, and a file in this folder with the const struct hg_cmd hg_cmd_NAME. */
#define COMMANDS(X) \
    X(init) \
    X(check) \
    X(expand) \
    X(explain) \
    X(plan) \
    X(submit) \
    X(run) \
    X(status) \
    X(watch) \
    X(logs) \
    X(hold) \
    X(release) \
    X(cancel) \
    X(resume) \
    X(retry) \
    X(collect) \
    X(report) \
    X(export) \
    X(compare) \
    X(history) \
    X(trace) \
    X(tensorboard) \
    X(fsck) \
    X(box) \
    X(exec) \
    X(doctor) \
    X(schema) \
    X(help) \
    X(complete)

#define DECLARE(name) extern const struct hg_cmd hg_cmd_##name;
#define POINT(name) &hg_cmd_##name,
COMMANDS(DECLARE)
const struct hg_cmd *const hg_commands[] = { COMMANDS(POINT) NULL };
/* clang-format on */

#define COMMANDS_MAX (sizeof hg_commands / sizeof *hg_commands)

const struct hg_cmd *hg_commands_find(const char *name, struct hg_err *err)
{
    const char *names[COMMANDS_MAX];
    size_t n = 0;

    for (const struct hg_cmd *const *c = hg_commands; *c; c++) {
        if (strcmp((*c)->name, name) == 0)
            return *c;
        if (!(*c)->hidden)
            names[n++] = (*c)->name;
    }
    hg_err_set(err, HG_E_USAGE, "unknown command \"%s\"", name);
    hg_text_suggest(err, name, names, n);
    return NULL;
}

void hg_commands_help(struct hg_buf *out)
{
    struct hg_buf topics = HG_BUF_INIT;

    hg_buf_puts(out, "usage: hpcgrid COMMAND [OPTIONS] [ARGUMENTS]\n\n" HG_COMMANDS_SUMMARY "\n\n");
    for (const struct hg_cmd *const *c = hg_commands; *c; c++)
        if (!(*c)->hidden)
            hg_buf_printf(out, "  %-11s %s\n", (*c)->name, (*c)->summary);
    for (const struct hg_topic *t = hg_topics; t->name; t++)
        hg_buf_printf(&topics, "%s%s", t == hg_topics ? "" : ", ", t->name);
    hg_buf_puts(out,
                "\nEvery command takes --color=auto|always|never; NO_COLOR is never.\n"
                "`hpcgrid COMMAND --help` describes one command, `hpcgrid help TOPIC` a topic:\n");
    hg_wrapped_append(hg_buf_str(&topics), 80, 0, 0, out);
    hg_buf_done(&topics);
}

void hg_commands_usage(const struct hg_cmd *cmd, struct hg_buf *out)
{
    hg_buf_printf(out, "usage: hpcgrid %s%s%s%s", cmd->name, cmd->opts ? " [OPTIONS]" : "",
                  cmd->args[0] ? " " : "", cmd->args);
}

void hg_commands_details(const struct hg_cmd *cmd, struct hg_buf *out)
{
    if (cmd->details)
        hg_buf_printf(out, "\n%s\n", cmd->details);
    if (strstr(cmd->args, "RUN"))
        hg_buf_puts(
            out, "\nRUN: a run's folder, NAME/002, or NAME or a matrix file (its newest run).\n");
}

void hg_commands_help_one(const struct hg_cmd *cmd, struct hg_buf *out)
{
    hg_commands_usage(cmd, out);
    hg_buf_printf(out, "\n\n%s\n", cmd->summary);
    hg_commands_details(cmd, out);
    if (cmd->opts) {
        hg_buf_puts(out, "\n");
        hg_opt_help(cmd->opts, out);
    }
}
