/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <string.h>

extern const struct hg_cmd hg_cmd_box;
extern const struct hg_cmd hg_cmd_cancel;
extern const struct hg_cmd hg_cmd_check;
extern const struct hg_cmd hg_cmd_collect;
extern const struct hg_cmd hg_cmd_compare;
extern const struct hg_cmd hg_cmd_doctor;
extern const struct hg_cmd hg_cmd_exec;
extern const struct hg_cmd hg_cmd_expand;
extern const struct hg_cmd hg_cmd_explain;
extern const struct hg_cmd hg_cmd_fsck;
extern const struct hg_cmd hg_cmd_history;
extern const struct hg_cmd hg_cmd_hold;
extern const struct hg_cmd hg_cmd_init;
extern const struct hg_cmd hg_cmd_logs;
extern const struct hg_cmd hg_cmd_plan;
extern const struct hg_cmd hg_cmd_release;
extern const struct hg_cmd hg_cmd_report;
extern const struct hg_cmd hg_cmd_resume;
extern const struct hg_cmd hg_cmd_retry;
extern const struct hg_cmd hg_cmd_run;
extern const struct hg_cmd hg_cmd_schema;
extern const struct hg_cmd hg_cmd_status;
extern const struct hg_cmd hg_cmd_submit;
extern const struct hg_cmd hg_cmd_trace;
extern const struct hg_cmd hg_cmd_watch;

/* clang-format off */
const struct hg_cmd *const hg_commands[] = {
    &hg_cmd_init,
    &hg_cmd_check,
    &hg_cmd_expand,
    &hg_cmd_explain,
    &hg_cmd_plan,
    &hg_cmd_submit,
    &hg_cmd_run,
    &hg_cmd_status,
    &hg_cmd_watch,
    &hg_cmd_logs,
    &hg_cmd_hold,
    &hg_cmd_release,
    &hg_cmd_cancel,
    &hg_cmd_resume,
    &hg_cmd_retry,
    &hg_cmd_collect,
    &hg_cmd_report,
    &hg_cmd_compare,
    &hg_cmd_history,
    &hg_cmd_trace,
    &hg_cmd_fsck,
    &hg_cmd_box,
    &hg_cmd_exec,
    &hg_cmd_doctor,
    &hg_cmd_schema,
    NULL,
};
/* clang-format on */

const struct hg_cmd *hg_cmd_find(const char *name)
{
    for (const struct hg_cmd *const *c = hg_commands; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

void hg_cmd_help(const struct hg_cmd *cmd, struct hg_buf *out)
{
    hg_buf_printf(out, "usage: hpcgrid %s%s%s%s\n\n%s\n", cmd->name, cmd->opts ? " [OPTIONS]" : "",
                  cmd->args[0] ? " " : "", cmd->args, cmd->summary);
    if (cmd->details)
        hg_buf_printf(out, "\n%s\n", cmd->details);
    if (cmd->opts) {
        hg_buf_puts(out, "\n");
        hg_opt_help(cmd->opts, out);
    }
}
