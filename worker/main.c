/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-worker: find the command, run it, print what went wrong, choose the exit code. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "train/revision.h"

static const struct wk_cmd *const commands[] = {
    &wk_cmd_train,      &wk_cmd_check,   &wk_cmd_predict,  &wk_cmd_tokenize, &wk_cmd_features,
    &wk_cmd_eval_squad, &wk_cmd_inspect, &wk_cmd_describe, &wk_cmd_doctor,
};
#define N_COMMANDS (sizeof commands / sizeof *commands)

static const struct wk_cmd *find_command(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static void print_overview(FILE *to)
{
    fputs("usage: hpcgrid-worker COMMAND [OPTIONS]\n\nTrain one cell of an experiment matrix.\n\n",
          to);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n`hpcgrid-worker train --help` lists the parameters.\n", to);
}

/* Is the word --help, -h or --help=TOPIC? */
static bool asks_for_help(const char *word, const char **topic)
{
    *topic = strncmp(word, "--help=", 7) == 0 ? word + 7 : NULL;
    return *topic || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int print_help(const struct wk_cmd *c, const char *topic, struct hg_errs *errs)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;
    int rc = 0;

    if (topic && c->help_on) {
        rc = c->help_on(topic, &text, err);
    } else if (topic) {
        rc = hg_err_set(err, HG_E_USAGE, "%s: --help has no topics", c->name);
    } else {
        hg_buf_printf(&text, "usage: hpcgrid-worker %s%s%s\n\n", c->name, c->usage ? " " : "",
                      c->usage ? c->usage : "");
        if (c->about)
            hg_buf_puts(&text, c->about);
        else
            hg_buf_printf(&text, "Print %s.\n", c->summary);
        if (c->help)
            c->help(&text);
        else if (c->opts) {
            hg_buf_puts(&text, "\n");
            hg_opt_help(c->opts, &text);
        }
    }
    if (rc < 0)
        hg_errs_add(errs, err);
    else
        fputs(hg_buf_str(&text), stdout);
    hg_buf_done(&text);
    return rc;
}

/* Options go to the command's variables, what is left to its run. */
static int run_command(const struct wk_cmd *c, int argc, char **argv, struct hg_errs *errs)
{
    static const struct hg_opt none[] = { { 0 } };
    struct hg_err err = HG_ERR_INIT;

    if (hg_opt_parse(c->opts ? c->opts : none, &argc, argv, &err) < 0)
        return hg_errs_add(errs, &err);
    if (argc > c->words)
        return wk_cmd_misused(c, "too many arguments", errs);
    return c->run(argc, argv, errs);
}

static int unknown_command(const char *name, struct hg_errs *errs)
{
    const char *names[N_COMMANDS];
    struct hg_err *err = hg_errs_next(errs);

    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i]->name;
    hg_err_set(err, HG_E_USAGE, "unknown command \"%s\"", name);
    hg_text_suggest(err, name, names, N_COMMANDS);
    return -1;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    const struct wk_cmd *c;
    const char *topic;

    if (strcmp(argv[1], "--version") == 0) {
        puts("hpcgrid-worker " WK_REVISION);
        return 0;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_overview(stdout);
        return 0;
    }
    c = find_command(argv[1]);
    if (!c)
        return unknown_command(argv[1], errs);
    if (argc > 2 && asks_for_help(argv[2], &topic))
        return print_help(c, topic, errs);
    return run_command(c, argc - 2, argv + 2, errs);
}

/* An answer that did not fit was not given; a reader that leaves early had enough. */
static int flush_output(struct hg_errs *errs)
{
    if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE)
        return 0;
    return hg_err_sys(hg_errs_next(errs), "cannot write the output");
}

int main(int argc, char **argv)
{
    struct hg_errs errs = HG_ERRS_INIT;
    int rc;

    hg_fs_hold_streams();
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_name("hpcgrid-worker");
    if (argc < 2) {
        print_overview(stderr);
        return 2;
    }
    rc = run(argc, argv, &errs);
    if (rc == 0)
        rc = flush_output(&errs);
    if (rc < 0) {
        wk_cmd_print_errors(&errs, 0, 1);
        rc = hg_err_exit_code(errs.items[0].code);
    }
    hg_errs_done(&errs);
    return rc;
}
