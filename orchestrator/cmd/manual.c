/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/manual.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "cmd/commands.h"
#include "manual/topics.h"

static void begin_page(const char *name, int section, const char *summary, struct hg_buf *out)
{
    size_t len = strlen(summary);

    hg_buf_puts(out, ".\\\" made by `hpcgrid help --man`\n.TH ");
    for (const char *p = name; *p; p++)
        hg_buf_printf(out, "%s%c", *p == '-' ? "\\" : "", toupper((unsigned char)*p));
    hg_buf_printf(out, " %d \"\" \"hpcgrid %s\"\n.nh\n.SH NAME\n", section, HPCGRID_VERSION);
    hg_markup_roff(name, true, out);
    hg_buf_printf(out, " \\- %.*s\n", (int)(len - (summary[len - 1] == '.')), summary);
}

static void append_topic(const char *name, struct hg_buf *out)
{
    hg_topic_append(hg_topic_find(name), HG_MARKUP_MAN, out);
}

static void append_option(const struct hg_opt *o, struct hg_buf *out)
{
    hg_buf_puts(out, ".TP\n");
    if (isalpha((unsigned char)o->letter))
        hg_buf_printf(out, "\\fB\\-%c\\fR, ", o->letter);
    hg_buf_puts(out, "\\fB\\-\\-");
    hg_markup_roff(o->name, false, out);
    hg_buf_puts(out, "\\fR");
    if (o->arg)
        hg_buf_printf(out, " \\fI%s\\fR", o->arg);
    hg_buf_puts(out, "\n");
    hg_markup_roff(o->help ? o->help : "", true, out);
    hg_buf_puts(out, "\n");
}

static void append_command(const struct hg_cmd *cmd, struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;

    hg_buf_printf(out, ".SH SYNOPSIS\n\\fBhpcgrid %s\\fR%s ", cmd->name,
                  cmd->opts ? " [\\fIOPTIONS\\fR]" : "");
    hg_markup_roff(cmd->args, false, out);
    hg_buf_puts(out, "\n.SH DESCRIPTION\n");
    hg_buf_printf(&text, "%s\n\n", cmd->summary);
    hg_commands_details(cmd, &text);
    hg_markup_append(hg_buf_str(&text), HG_MARKUP_MAN, out);
    hg_buf_puts(out, cmd->opts ? ".SH OPTIONS\n" : "");
    for (const struct hg_opt *o = cmd->opts; o && o->kind != HG_OPT_END; o++)
        append_option(o, out);
    append_topic("exit-codes", out);
    hg_buf_puts(out, ".SH SEE ALSO\n.BR hpcgrid (1)\n");
    hg_buf_done(&text);
}

static void append_overview(struct hg_buf *out)
{
    hg_buf_puts(out, ".SH SYNOPSIS\n\\fBhpcgrid\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] "
                     "[\\fIARGUMENTS\\fR]\n.SH COMMANDS\n");
    for (const struct hg_cmd *const *c = hg_commands; *c; c++) {
        if ((*c)->hidden)
            continue;
        hg_buf_printf(out, ".TP\n.BR hpcgrid\\-%s (1)\n", (*c)->name);
        hg_markup_roff((*c)->summary, true, out);
        hg_buf_puts(out, "\n");
    }
    append_topic("environment", out);
    append_topic("exit-codes", out);
    hg_buf_puts(out, ".SH SEE ALSO\n");
    for (const struct hg_manual_page *p = hg_manual_pages; p->name; p++) {
        hg_buf_puts(out, ".BR ");
        hg_markup_roff(p->name, false, out);
        hg_buf_printf(out, " (%d)%s\n", p->section, p[1].name ? "," : "");
    }
}

/* Save a page and empty it. */
static int save_page(const char *dir, const char *name, int section, struct hg_buf *page,
                     struct hg_err *err)
{
    char *folder = hg_str_printf("%s/man%d", dir, section);
    char *path = hg_str_printf("%s/%s.%d", folder, name, section);
    int rc = hg_fs_mkdirs(folder, 0755, err);

    if (rc == 0)
        rc = hg_fs_replace(path, page->data, page->len, 0644, err);
    hg_buf_clear(page);
    free(path);
    free(folder);
    return rc;
}

static int save_command(const char *dir, const struct hg_cmd *cmd, struct hg_buf *page,
                        struct hg_err *err)
{
    char *name = hg_str_printf("hpcgrid-%s", cmd->name);
    int rc;

    begin_page(name, 1, cmd->summary, page);
    append_command(cmd, page);
    rc = save_page(dir, name, 1, page, err);
    free(name);
    return rc;
}

int hg_cmd_manual_save(const char *dir, struct hg_err *err)
{
    struct hg_buf page = HG_BUF_INIT;
    int rc;

    begin_page("hpcgrid", 1, HG_COMMANDS_SUMMARY, &page);
    append_overview(&page);
    rc = save_page(dir, "hpcgrid", 1, &page, err);
    for (const struct hg_cmd *const *c = hg_commands; rc == 0 && *c; c++)
        rc = (*c)->hidden ? 0 : save_command(dir, *c, &page, err);
    for (const struct hg_manual_page *p = hg_manual_pages; rc == 0 && p->name; p++) {
        begin_page(p->name, p->section, p->summary, &page);
        for (size_t i = 0; p->topics[i]; i++)
            append_topic(p->topics[i], &page);
        rc = save_page(dir, p->name, p->section, &page, err);
    }
    hg_buf_done(&page);
    return rc;
}
