/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid: find the command, run it, print what went wrong, choose the exit code. */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/bar.h"
#include "base/colour.h"
#include "base/fs.h"
#include "base/log.h"
#include "cmd/commands.h"
#include "cmd/print.h"

static int wrong_arity(const struct hg_cmd *cmd, int argc, struct hg_errs *errs)
{
    struct hg_err *err = hg_errs_next(errs);
    struct hg_buf usage = HG_BUF_INIT;

    hg_err_set(err, HG_E_USAGE, "%s: %s", cmd->name,
               argc < cmd->min_args ? "an argument is missing" : "too many arguments");
    hg_commands_usage(cmd, &usage);
    hg_err_hint(err, "%s", hg_buf_str(&usage));
    hg_buf_done(&usage);
    return -1;
}

static bool asks(int argc, char **argv, const char *name, const char *letter)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], name) == 0 || strcmp(argv[i], letter) == 0)
            return true;
    return false;
}

static bool asks_help(int argc, char **argv)
{
    return asks(argc, argv, "--help", "-h");
}

/* Slurm's library, a box and programs that are started keep some dozens of files open. With too few, what cannot be opened would
 * look absent, or a daemon would not answer. Returns false if there are too few and the limit cannot be raised. */
static bool raise_files(struct rlimit *files)
{
    struct rlimit enough;

    if (getrlimit(RLIMIT_NOFILE, files) < 0 || files->rlim_cur >= HG_CMD_FILES)
        return true;
    enough = (struct rlimit){ .rlim_cur = HG_CMD_FILES, .rlim_max = files->rlim_max };
    return enough.rlim_max >= HG_CMD_FILES && setrlimit(RLIMIT_NOFILE, &enough) == 0;
}

static int too_few_files(const struct rlimit *files, struct hg_errs *errs)
{
    struct hg_err *err = hg_errs_next(errs);

    hg_err_set(err, HG_E_ENV, "ulimit -n allows %llu open files, hpcgrid needs %d",
               (unsigned long long)files->rlim_cur, HG_CMD_FILES);
    return hg_err_hint(
        err,
        "start it from a shell with `ulimit -n 1024`, or ask the administrator to raise "
        "the hard limit of %llu",
        (unsigned long long)files->rlim_max);
}

/* Of one command; NULL: the list of all. */
static void print_help(const struct hg_cmd *cmd, FILE *to)
{
    struct hg_buf help = HG_BUF_INIT;

    if (cmd)
        hg_commands_help_one(cmd, &help);
    else
        hg_commands_help(&help);
    fputs(hg_buf_str(&help), to);
    hg_buf_done(&help);
}

static int run_command(const struct hg_cmd *cmd, int argc, char **argv, struct hg_errs *errs)
{
    static const struct hg_opt none[] = { { 0 } };
    struct hg_err err = HG_ERR_INIT;
    struct rlimit files;

    if (asks_help(argc, argv)) {
        print_help(cmd, stdout);
        return 0;
    }
    if (hg_opt_parse(cmd->opts ? cmd->opts : none, &argc, argv, &err) < 0) {
        hg_err_wrap(&err, "%s", cmd->name);
        return hg_errs_add(errs, &err);
    }
    if (argc < cmd->min_args || (cmd->max_args >= 0 && argc > cmd->max_args))
        return wrong_arity(cmd, argc, errs);
    /* a command that runs in a job reports in its result what it could not open */
    if (!cmd->hidden && !raise_files(&files) && !cmd->any_files)
        return too_few_files(&files, errs);
    return cmd->run(argc, argv, errs);
}

static int report(struct hg_errs *errs)
{
    struct hg_buf text = HG_BUF_INIT, out = HG_BUF_INIT;
    int code = errs->n ? hg_err_exit_code(errs->items[0].code) : 5;

    hg_errs_format(errs, &text);
    fflush(stdout);
    for (const char *line = hg_buf_str(&text); *line;) {
        size_t n = strcspn(line, "\n") + 1;

        if (line[0] != ' ' && strncmp(line, "error: ", 7) == 0)
            hg_buf_puts(&out, "hpcgrid: ");
        if (line[0] != ' ')
            hg_colour_append_message(STDERR_FILENO, line, n, &out);
        else
            hg_buf_append(&out, line, n);
        line += n;
    }
    /* one write: the tasks of an array share a file */
    (void)!hg_fs_write_all(STDERR_FILENO, out.data, out.len);
    hg_buf_done(&text);
    hg_buf_done(&out);
    return code;
}

/* Every command takes --color=WHEN: it is taken out of the words here. */
static int take_colour(int *argc, char **argv, struct hg_err *err)
{
    int n = 0;

    for (int i = 0; i < *argc; i++) {
        const char *when;

        if (strcmp(argv[i], "--") == 0) {
            for (; i < *argc; i++)
                argv[n++] = argv[i];
            break;
        }
        when = strncmp(argv[i], "--color=", 8) == 0 ? argv[i] + 8
               : strcmp(argv[i], "--color") == 0    ? "always"
                                                    : NULL;
        if (!when)
            argv[n++] = argv[i];
        else if (!hg_colour_set(when))
            return hg_err_set(err, HG_E_USAGE, "--color: \"%s\" is not auto, always or never",
                              when);
    }
    argv[n] = NULL;
    *argc = n;
    return 0;
}

/* Returns the exit code, or -1 with errs filled. */
static int dispatch(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    const struct hg_cmd *cmd;

    if (strcmp(argv[1], "--version") == 0) {
        puts("hpcgrid " HPCGRID_VERSION);
        return 0;
    }
    if (asks_help(1, argv + 1)) {
        print_help(NULL, stdout);
        return 0;
    }
    cmd = hg_commands_find(argv[1], &err);
    if (!cmd)
        return hg_errs_add(errs, &err);
    return run_command(cmd, argc - 2, argv + 2, errs);
}

/* `hpcgrid report | head`: the reader has read enough. */
static bool reader_left(void)
{
    struct pollfd out = { .fd = STDOUT_FILENO };

    return poll(&out, 1, 0) == 1 && out.revents & POLLERR;
}

/* After an earlier failure there is neither its reason nor anything left to flush. */
static int finish_output(struct hg_errs *errs)
{
    bool failed = ferror(stdout);

    if (fflush(stdout) == 0 && !failed)
        return 0;
    if (reader_left())
        return 0;
    return failed ? hg_err_set(hg_errs_next(errs), HG_E_ENV, "cannot write the whole output")
                  : hg_err_sys(hg_errs_next(errs), "cannot write the output");
}

/* A crash must leave no core file: it would hold the environment of the shell, and that of a rank's program, which inherits the
 * limit, gigabytes. A program that needs one can raise its limit again. */
static void no_core_files(void)
{
    struct rlimit core;

    if (getrlimit(RLIMIT_CORE, &core) == 0) {
        core.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &core);
    }
}

int main(int argc, char **argv)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    bool json = asks(argc, argv, "--json", "-j");
    int rc;

    hg_fs_hold_streams();
    no_core_files();
    signal(SIGPIPE, SIG_IGN);
    hg_log_set_name("hpcgrid");
    hg_bar_allow(true);
    rc = take_colour(&argc, argv, &err);
    if (rc == 0 && argc < 2) {
        print_help(NULL, stderr);
        return 2;
    }
    if (json)
        hg_log_on_warning(hg_print_warning);
    rc = rc < 0 ? hg_errs_add(&errs, &err) : dispatch(argc, argv, &errs);
    hg_errs_sort(&errs);
    hg_print_finish(&errs, json);
    if (rc >= 0 && finish_output(&errs) < 0)
        rc = -1;
    if (rc < 0)
        rc = report(&errs);
    hg_errs_done(&errs);
    return rc;
}
