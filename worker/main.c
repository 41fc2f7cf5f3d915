/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-worker: find the command, run it, print what went wrong, choose the exit code. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "train/revision.h"
#include "train/train.h"

#define EXIT_CHECKPOINT 75 /* a checkpoint is written, run me again */

/* ---- Errors ---- */

/* Errors to stderr in one write, so that ranks do not mix their lines. */
static void print_errors(struct hg_errs *errs, int rank, int world)
{
    struct hg_buf text = HG_BUF_INIT, out = HG_BUF_INIT;

    hg_errs_sort(errs);
    hg_errs_format(errs, &text);
    for (const char *line = hg_buf_str(&text); *line;) {
        int n = (int)strcspn(line, "\n") + 1;

        if (world > 1 && line[0] != ' ')
            hg_buf_printf(&out, "hpcgrid-worker: rank %d: %.*s", rank, n, line);
        else
            hg_buf_printf(&out, "%s%.*s", line[0] == ' ' ? "" : "hpcgrid-worker: ", n, line);
        line += n;
    }
    fflush(stdout);
    hg_fs_write_all(STDERR_FILENO, hg_buf_str(&out), out.len);
    hg_buf_done(&text);
    hg_buf_done(&out);
}

/* ---- train ---- */

static volatile sig_atomic_t keeps_checkpoint;

#define STOP_LIMIT_S 10 /* a step that waits for a rank which is gone never ends */

static void on_stop(int number)
{
    wk_train_signal(number);
    if (!keeps_checkpoint) /* else the step and the file take what they take */
        alarm(STOP_LIMIT_S);
}

/* The time limit is near: stop with a checkpoint where one is kept, else use the time that is left. */
static void on_usr1(int number)
{
    static const char text[] = "hpcgrid-worker: warning: the time limit is near; no checkpoint is "
                               "kept, training goes on\n";

    if (keeps_checkpoint)
        wk_train_signal(number);
    else if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        return;
}

/* The signal's default action again: it ended the training, now it ends the process. */
static void pass_signal_on(int number)
{
    signal(number, SIG_DFL);
    raise(number);
}

static void catch_signals(void)
{
    struct sigaction stop = { .sa_handler = on_stop, .sa_flags = SA_RESETHAND };
    struct sigaction warn = { .sa_handler = on_usr1, .sa_flags = SA_RESTART };

    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGUSR1, &warn, NULL);
}

static int usable_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* OMP_NUM_THREADS, else what the cell says, else all cores when there is one rank. */
static int choose_threads(const struct wk_config *c, int world)
{
    const char *text = getenv("OMP_NUM_THREADS");
    long n = text ? strtol(text, NULL, 10) : 0;

    if (n >= 1 && n <= 4096)
        return (int)n;
    if (c->cpus_per_task)
        return (int)c->cpus_per_task;
    return world == 1 ? usable_cpus() : 1;
}

/* Ranks that share cores must not spin while they wait for each other. */
static void be_polite(int world, int threads)
{
    if ((long)world * threads > sysconf(_SC_NPROCESSORS_ONLN))
        setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
}

static int check_world(const struct wk_config *c, int world, struct hg_err *err)
{
    long long asked = c->nodes && c->tasks_per_node ? c->nodes * c->tasks_per_node : world;

    if (!wk_strategy_get(c->strategy, world, err))
        return -1;
    if (asked == world)
        return 0;
    hg_err_set(err, HG_E_ENV,
               "the cell is %lld node%s with %lld rank%s each, but a world of %d was started",
               c->nodes, c->nodes == 1 ? "" : "s", c->tasks_per_node,
               c->tasks_per_node == 1 ? "" : "s", world);
    return hg_err_hint(err,
                       "start %lld ranks with mpirun or `srun --mpi=pmix`, or leave nodes and "
                       "tasks_per_node out",
                       asked);
}

struct job {
    struct wk_config config;
    struct wk_result result;
    struct wk_comm *comm;
    const char *result_path;
    int rank, world;
};

static int run_job(struct job *j, const char *cell, struct hg_errs *errs)
{
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;
    int threads, rc;

    if (wk_config_load(cell, &j->config, errs) < 0)
        return -1;
    keeps_checkpoint = j->config.checkpoint != NULL;
    threads = choose_threads(&j->config, j->world);
    if (check_world(&j->config, j->world, err) < 0)
        return hg_errs_add(errs, err);
    be_polite(j->world, threads);
    j->comm = wk_comm_open(err);
    if (!j->comm)
        return hg_errs_add(errs, err);
    j->rank = j->comm->rank;
    j->world = j->comm->world;
    rc = wk_train_all(&j->config, j->comm, threads, &j->result, err);
    if (rc < 0)
        hg_errs_add(errs, err);
    return rc;
}

static void describe_failure(struct job *j, struct hg_errs *errs)
{
    hg_errs_sort(errs);
    j->result.error = errs->items[0];
    j->result.error_rank = j->rank;
    gethostname(j->result.error_host, sizeof j->result.error_host - 1);
}

static int save_result(const struct job *j, struct hg_errs *errs)
{
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;

    if (!j->result_path || (j->rank != 0 && !j->result.error.code))
        return 0;
    return wk_result_save(&j->result, j->result_path, j->rank, err) < 0 ? hg_errs_add(errs, err)
                                                                        : 0;
}

static int print_result(const struct job *j, bool json)
{
    struct hg_buf text = HG_BUF_INIT;

    if (j->rank != 0)
        return 0;
    if (json) {
        json_t *o = wk_result_encode(&j->result);

        hg_json_dump(o, HG_JSON_INDENT, &text);
        hg_buf_puts(&text, "\n");
        json_decref(o);
    } else {
        wk_result_format(&j->result, &text);
    }
    fputs(hg_buf_str(&text), stdout);
    hg_buf_done(&text);
    return fflush(stdout);
}

static int train(int argc, char **argv, struct hg_errs *errs)
{
    const char *cell = getenv("HPCGRID_CELL"), *config = NULL;
    struct job j = { .result_path = getenv("HPCGRID_RESULT") };
    bool json = false;
    const struct hg_opt opts[] = {
        { HG_OPT_STRING, 0, "cell", &cell, "FILE", "a cell's JSON ($HPCGRID_CELL)", 0, 0 },
        { HG_OPT_STRING, 0, "config", &config, "FILE",
          "the same, written by hand; - is standard input", 0, 0 },
        { HG_OPT_STRING, 0, "result", &j.result_path, "FILE",
          "where the result goes ($HPCGRID_RESULT)", 0, 0 },
        { HG_OPT_FLAG, 0, "json", &json, NULL, "print the result as JSON", 0, 0 },
        { 0 },
    };
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;
    int rc, code = 0;
    bool goes_on;

    j.result.start_mono_s = hg_clock_mono_s();
    if (hg_opt_parse(opts, &argc, argv, err) < 0)
        return hg_errs_add(errs, err);
    if (config)
        cell = config;
    if (argc > 0 || !cell) {
        hg_err_set(err, HG_E_USAGE,
                   argc > 0 ? "train: too many arguments" : "train: no cell given");
        hg_err_hint(err, "usage: hpcgrid-worker train --cell FILE");
        return hg_errs_add(errs, err);
    }
    wk_comm_environment(&j.rank, &j.world);
    catch_signals();
    rc = run_job(&j, cell, errs);
    if (rc < 0)
        describe_failure(&j, errs);
    goes_on = j.result.stopped_with_checkpoint;
    if (save_result(&j, errs) < 0)
        rc = -1;
    if (rc == 0 && print_result(&j, json) != 0)
        rc = hg_err_sys(hg_errs_next(errs), "cannot write the output");
    if (rc < 0) {
        code = goes_on ? EXIT_CHECKPOINT : hg_err_exit_code(errs->items[0].code);
        print_errors(errs, j.rank, j.world);
    }
    if (rc < 0 && !goes_on && j.comm && j.world > 1)
        j.comm->kind->abort(j.comm, code);
    wk_comm_close(j.comm);
    wk_result_done(&j.result);
    wk_config_done(&j.config);
    if (wk_train_stopped() && !goes_on && !(code == 0 && keeps_checkpoint))
        pass_signal_on(wk_train_stopped());
    return code;
}

static void help_train(struct hg_buf *out)
{
    hg_buf_puts(
        out,
        "usage: hpcgrid-worker train --cell FILE [--result FILE] [--json]\n\n"
        "Train as the JSON object in FILE says. Under mpirun or srun --mpi=pmix all ranks train\n"
        "together; a result is written also when training fails. Parameters:\n\n");
    wk_config_help(out);
}

/* ---- doctor, describe ---- */

static int doctor(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;

    (void)argv;
    if (argc > 0) {
        hg_err_set(err, HG_E_USAGE, "doctor: too many arguments");
        return hg_errs_add(errs, err);
    }
    hg_buf_printf(&text, "hpcgrid-worker %s, %s\n", WK_REVISION, WK_PRECISION);
    for (const struct wk_backend *const *b = wk_backends; *b; b++) {
        struct wk_dev *dev = (*b)->open(choose_threads(&(struct wk_config){ 0 }, 1), err);

        hg_buf_printf(&text, "backend %s: %s\n", (*b)->name, dev ? (*b)->summary : err->text);
        if (dev)
            (*b)->describe(dev, &text);
        (*b)->close(dev);
    }
    wk_comm_mpi.describe(&text);
    fputs(hg_buf_str(&text), stdout);
    hg_buf_done(&text);
    return err->code ? hg_errs_add(errs, err) : 0;
}

static void add_names(json_t *o, const char *key, json_t *list)
{
    json_object_set_new(o, key, list);
}

static int describe(int argc, char **argv, struct hg_errs *errs)
{
    bool json = true; /* there is no other form */
    const struct hg_opt opts[] = {
        { HG_OPT_FLAG, 0, "json", &json, NULL, "print JSON", 0, 0 },
        { 0 },
    };
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;
    json_t *o, *models, *strategies, *backends;
    struct hg_buf text = HG_BUF_INIT;

    if (hg_opt_parse(opts, &argc, argv, err) == 0 && argc > 0)
        hg_err_set(err, HG_E_USAGE, "describe: too many arguments");
    if (err->code)
        return hg_errs_add(errs, err);
    o = json_object();
    models = json_array();
    strategies = json_array();
    backends = json_array();
    for (const struct wk_model_entry *m = wk_models; m->name; m++) {
        const struct wk_model_kind *kind = wk_model_get(m->name, NULL);

        if (kind)
            json_array_append_new(models, json_pack("{s:s, s:s, s:I}", "name", m->name, "summary",
                                                    m->summary, "parameters",
                                                    (json_int_t)wk_model_n(kind)));
        wk_model_free(kind);
    }
    for (const struct wk_strategy_limits *s = wk_strategy_limits; s->name; s++)
        json_array_append_new(strategies, json_pack("{s:s, s:s, s:b}", "name", s->name, "summary",
                                                    s->summary, "available", (int)s->built));
    for (const struct wk_backend *const *b = wk_backends; *b; b++)
        json_array_append_new(
            backends, json_pack("{s:s, s:s}", "name", (*b)->name, "summary", (*b)->summary));
    json_object_set_new(o, "revision", json_string(WK_REVISION));
    json_object_set_new(o, "precision", json_string(WK_PRECISION));
    add_names(o, "models", models);
    add_names(o, "strategies", strategies);
    add_names(o, "backends", backends);
    hg_json_dump(o, HG_JSON_INDENT, &text);
    puts(hg_buf_str(&text));
    hg_buf_done(&text);
    json_decref(o);
    return 0;
}

/* ---- The table ---- */

static const struct wk_cmd cmd_train = { "train", "train as a cell says and write its result",
                                         train, help_train };
static const struct wk_cmd cmd_describe = {
    "describe", "models, strategies and backends of this build, as JSON", describe, NULL
};
static const struct wk_cmd cmd_doctor = { "doctor", "versions, device, threads and libraries",
                                          doctor, NULL };

static const struct wk_cmd *const commands[] = {
    &cmd_train,         &wk_cmd_check,   &wk_cmd_tokenize, &wk_cmd_features,
    &wk_cmd_eval_squad, &wk_cmd_inspect, &cmd_describe,    &cmd_doctor,
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

static int print_help(const struct wk_cmd *c)
{
    struct hg_buf text = HG_BUF_INIT;

    if (c->help)
        c->help(&text);
    else
        hg_buf_printf(&text, "usage: hpcgrid-worker %s\n\nPrint %s.\n", c->name, c->summary);
    fputs(hg_buf_str(&text), stdout);
    hg_buf_done(&text);
    return 0;
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

int main(int argc, char **argv)
{
    const struct wk_cmd *c;
    struct hg_errs errs = HG_ERRS_INIT;
    int rc;

    signal(SIGPIPE, SIG_IGN);
    hg_log_set_name("hpcgrid-worker");
    if (argc < 2) {
        print_overview(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("hpcgrid-worker " WK_REVISION);
        return 0;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_overview(stdout);
        return 0;
    }
    c = find_command(argv[1]);
    if (c && argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0))
        return print_help(c);
    rc = c ? c->run(argc - 2, argv + 2, &errs) : unknown_command(argv[1], &errs);
    if (rc < 0) {
        print_errors(&errs, 0, 1);
        rc = hg_err_exit_code(errs.items[0].code);
    }
    hg_errs_done(&errs);
    return rc;
}
