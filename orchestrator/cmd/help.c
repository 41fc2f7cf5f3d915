/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/text.h"
#include "cmd/commands.h"
#include "cmd/manual.h"
#include "manual/topics.h"

#define WORDS_MAX 64

static const char *man_dir;

static const struct hg_opt opts[] = {
    { HG_OPT_STRING, 0, "man", &man_dir, "DIR", "write the manual pages to DIR/man1, man5", 0, 0 },
    { 0 },
};

static int unknown_word(const char *word, struct hg_errs *errs)
{
    struct hg_err *err = hg_errs_next(errs);
    const char *names[WORDS_MAX];
    size_t n = 0;

    for (const struct hg_cmd *const *c = hg_commands; *c; c++)
        if (!(*c)->hidden)
            names[n++] = (*c)->name;
    for (const struct hg_topic *t = hg_topics; t->name; t++)
        names[n++] = t->name;
    hg_err_set(err, HG_E_USAGE, "unknown command or topic \"%s\"", word);
    hg_text_suggest(err, word, names, n);
    return -1;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    const struct hg_topic *topic = argc ? hg_topic_find(argv[0]) : NULL;
    const struct hg_cmd *cmd = argc ? hg_commands_find(argv[0], NULL) : NULL;
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;

    if (man_dir && hg_cmd_manual_save(man_dir, &err) < 0)
        return hg_errs_add(errs, &err);
    if (man_dir)
        return 0;
    if (argc && !topic && !cmd)
        return unknown_word(argv[0], errs);
    if (topic && topic->page)
        hg_topic_append(topic, HG_MARKUP_TEXT, &text);
    else if (cmd)
        hg_commands_help_one(cmd, &text);
    else
        hg_commands_help(&text);
    fputs(hg_buf_str(&text), stdout);
    hg_buf_done(&text);
    return 0;
}

const struct hg_cmd hg_cmd_help = {
    .name = "help",
    .args = "[COMMAND|TOPIC]",
    .summary = "Describe a command, or a topic such as selectors or environment.",
    .details = "Without a word: all commands and topics. The same as manual pages: hpcgrid(1),\n"
               "hpcgrid-run(1), hpcgrid-matrix(5), hpcgrid-site(5).",
    .opts = opts,
    .max_args = 1,
    .any_files = true,
    .run = run,
};
