/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-worker train: the ranks are found and compared with the cell, signals are handled, and the result file is written in any case. */
#include "train/train.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "cmd/cmd.h"
#include "comm/environment.h"
#include "comm/transports.h"
#include "strategies/strategies.h"
#include "train/devices.h"
#include "train/loop.h"

#define BLAME_S 0.5 /* a launcher that saw a rank die ends the others after a second or two */
#define EXIT_CHECKPOINT 75 /* a checkpoint is written, run me again */

/* Is a checkpoint kept? Signals may come before the cell is read. */
static volatile sig_atomic_t keeps_checkpoint, warned;
enum { UNKNOWN, NO, YES };

#define STOP_LIMIT_S 10 /* a step that waits for a rank which is gone never ends */

/* TERM may come more than once: to the whole job, and again from a launcher that forwards it. */
static void on_stop(int number)
{
    bool first = !wk_train_stopped();

    wk_train_signal(number);
    if (first && keeps_checkpoint != YES) /* else the step and the file take what they take */
        alarm(STOP_LIMIT_S);
}

/* The time limit is near: stop with a checkpoint where one is kept, else use the time that is left. */
static void on_usr1(int number)
{
    static const char text[] = "hpcgrid-worker: warning: the time limit is near; no checkpoint is "
                               "kept, training continues\n";

    warned = 1;
    if (keeps_checkpoint == YES)
        wk_train_signal(number);
    else if (keeps_checkpoint == NO && write(STDERR_FILENO, text, sizeof text - 1) < 0)
        return;
}

/* A signal that came before this was known counts, too. */
static void learn_checkpoint(bool kept)
{
    keeps_checkpoint = kept ? YES : NO;
    if (kept)
        alarm(0);
    if (warned)
        raise(SIGUSR1);
}

/* The signal's default action again: it ended the training, now it ends the process. */
static void pass_signal_on(int number)
{
    signal(number, SIG_DFL);
    raise(number);
}

static void catch_signals(void)
{
    struct sigaction stop = { .sa_handler = on_stop, .sa_flags = SA_RESTART };
    struct sigaction warn = { .sa_handler = on_usr1, .sa_flags = SA_RESTART };
    sigset_t held;

    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGUSR1, &warn, NULL);
    sigemptyset(&held);
    sigaddset(&held, SIGUSR1);
    sigprocmask(SIG_UNBLOCK, &held, NULL); /* blocked by `hpcgrid exec` until it can be handled */
    stop.sa_flags |= SA_RESETHAND;         /* a second SIGINT ends the process at once */
    sigaction(SIGINT, &stop, NULL);
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
               "the cell is %lld node%s with %lld rank%s each, but the world size is %d", c->nodes,
               c->nodes == 1 ? "" : "s", c->tasks_per_node, c->tasks_per_node == 1 ? "" : "s",
               world);
    return hg_err_hint(err,
                       "start %lld ranks with mpirun or `srun --mpi=pmix`, or leave nodes and "
                       "tasks_per_node out",
                       asked);
}

static const char *cell, *config, *result_path;
static bool as_json;

struct job {
    struct wk_config config;
    struct wk_result result;
    struct wk_comm *comm;
    const char *cell, *result_path; /* result_path NULL: none is written */
    char *folder;                   /* of the result; NULL: the working folder */
    int rank, world;
};

/* The errors, and where the ranks are. */
static void print_failure(const struct job *j, struct hg_errs *errs)
{
    const struct wk_place *places = j->result.places;
    struct hg_buf text = HG_BUF_INIT;

    wk_cmd_print_errors(errs, j->rank, j->world);
    if (!places || j->world == 1 || j->result.stopped_with_checkpoint)
        return;
    wk_places_format(places, j->result.n_places, &text);
    hg_fs_write_all(STDERR_FILENO, hg_buf_str(&text), text.len);
    hg_buf_done(&text);
}

/* ---- When another rank is missing ---- */

/* In the heartbeat's thread: what is known of the ranks' places, and why they end. */
static void write_verdict(void *context, const struct wk_verdict *v)
{
    struct job *j = context;
    struct wk_result r = { .start_mono_s = j->result.start_mono_s,
                           .error = v->err,
                           .verdict = v,
                           .n_places = j->result.n_places };
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err unsaved = HG_ERR_INIT;

    r.places = j->result.places;
    r.error_rank = v->n_missing ? v->missing[0].rank : j->rank;
    if (v->n_missing)
        snprintf(r.error_host, sizeof r.error_host, "%s", v->missing[0].host);
    else
        gethostname(r.error_host, sizeof r.error_host - 1);
    hg_errs_add(&errs, &v->err);
    if (j->result_path && wk_result_save(&r, j->result_path, j->rank, &unsaved) < 0)
        hg_errs_add(&errs, &unsaved);
    print_failure(j, &errs);
    hg_errs_done(&errs);
}

/* The rank's own thread hangs in a collective: no way back through main. */
static void end_process(void *context)
{
    (void)context;
    wk_comm_give_up();
    _exit(hg_err_exit_code(HG_E_ENV));
}

/* The cause of an error here may be another rank, which the heartbeat detects: then it ends this process. Else the error is ours, and the
 * others are told. */
static void settle_blame(const struct job *j, const struct hg_errs *errs)
{
    struct wk_heartbeat *heartbeat = j->comm ? j->comm->heartbeat : NULL;
    bool maybe = errs->n && errs->items[0].code == HG_E_ENV;

    if ((maybe && wk_heartbeat_settle(heartbeat, BLAME_S)) || !wk_heartbeat_failing(heartbeat))
        for (int i = 0; i < 60; i++)
            hg_clock_sleep_s(1);
}

/* A path that cannot be written is found before the training. */
static int check_result(struct job *j, struct hg_errs *errs)
{
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;

    if (!j->result_path || j->rank != 0 || hg_fs_check_output(j->result_path, err) == 0)
        return 0;
    j->result_path = NULL;
    return hg_errs_add(errs, err);
}

static int run_job(struct job *j, struct hg_errs *errs)
{
    const struct wk_heartbeat_ends ends = { j, write_verdict, end_process };
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;
    int threads, devices, rc;

    if ((j->world == 1 && check_result(j, errs) < 0) ||
        wk_config_load(j->cell, &j->config, errs) < 0)
        return -1;
    learn_checkpoint(j->config.checkpoint);
    j->config.folder = j->folder;
    threads = wk_cmd_threads(&j->config, j->world);
    if (check_world(&j->config, j->world, err) < 0)
        return hg_errs_add(errs, err);
    devices = wk_config_devices(&j->config);
    if (devices > 1) {
        rc = wk_train_devices(&j->config, devices, threads > devices ? threads / devices : 1,
                              &j->result, err);
        return rc < 0 ? hg_errs_add(errs, err) : 0;
    }
    be_polite(j->world, threads);
    j->comm = wk_comm_open(err);
    if (!j->comm)
        return hg_errs_add(errs, err);
    j->rank = j->comm->rank;
    j->world = j->comm->world;
    if (wk_comm_heartbeat(j->comm, j->config.comm_timeout, &ends, err) < 0)
        return hg_errs_add(errs, err);
    if (j->world > 1 && check_result(j, errs) < 0) /* the others are there to hear of it */
        return -1;
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

static int print_result(const struct job *j, struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;

    if (j->rank != 0)
        return 0;
    if (as_json)
        return wk_cmd_print_json(wk_result_encode(&j->result), HG_JSON_INDENT, err);
    wk_result_format(&j->result, &text);
    return wk_cmd_print(&text, err);
}

/* Report how the training ended. Returns the exit code. */
static int settle(struct job *j, int rc, struct hg_errs *errs)
{
    bool goes_on = j->result.stopped_with_checkpoint;
    struct hg_err err = HG_ERR_INIT;

    if (rc < 0 && !goes_on)
        settle_blame(j, errs);
    if (rc < 0)
        describe_failure(j, errs);
    if (rc == 0 && print_result(j, &err) < 0)
        rc = hg_errs_add(errs, &err);
    if (save_result(j, errs) < 0)
        rc = -1;
    if (rc == 0)
        return 0;
    print_failure(j, errs);
    return goes_on ? EXIT_CHECKPOINT : hg_err_exit_code(errs->items[0].code);
}

/* Of several ranks all go on to MPI: one that ended before it would leave the others waiting. */
static int find_folder(struct job *j, struct hg_errs *errs)
{
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;

    if (!j->result_path)
        return 0;
    j->folder = hg_fs_dirname(j->result_path);
    if (j->world > 1 || hg_fs_exists(j->folder))
        return 0;
    free(j->folder);
    hg_err_set(err, HG_E_ENV, "no folder for the result %s", j->result_path);
    return hg_errs_add(errs, err);
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct job j = { .cell = wk_cmd_cell(cell, config),
                     .result_path = result_path ? result_path : getenv("HPCGRID_RESULT") };
    bool goes_on;
    int code;

    (void)argc;
    (void)argv;
    j.result.start_mono_s = hg_clock_mono_s();
    if (!j.cell)
        return wk_cmd_misused(&wk_cmd_train, "no cell given", errs);
    wk_comm_environment(&j.rank, &j.world);
    catch_signals();
    if (find_folder(&j, errs) < 0)
        return -1;
    code = settle(&j, run_job(&j, errs), errs);
    goes_on = j.result.stopped_with_checkpoint;
    if (code && !goes_on && j.comm && j.world > 1)
        j.comm->kind->abort(j.comm, code);
    wk_comm_close(j.comm);
    wk_result_done(&j.result);
    wk_config_done(&j.config);
    free(j.folder);
    if (wk_train_stopped() && !goes_on && !(code == 0 && keeps_checkpoint == YES))
        pass_signal_on(wk_train_stopped());
    return code;
}

static void help(struct hg_buf *out)
{
    wk_config_overview(out);
    hg_buf_puts(out, "\n--help=SECTION explains those of a section, --help=all all of them.\n");
}

const struct wk_cmd wk_cmd_train = {
    .name = "train",
    .summary = "train a cell and write its result",
    .usage = "--cell FILE [--result FILE] [--json]",
    .about = "Train the cell that the JSON object in FILE describes. Under mpirun or\n"
             "srun --mpi=pmix all ranks train together. Failures write a result too.\n"
             "Its members:\n\n",
    .opts =
        (const struct hg_opt[]){
            WK_OPT_CELL(&cell, &config),
            { HG_OPT_STRING, 0, "result", &result_path, "FILE",
              "where the result goes ($HPCGRID_RESULT)", 0, 0 },
            { HG_OPT_FLAG, 0, "json", &as_json, NULL, "print the result as JSON", 0, 0 },
            { 0 },
        },
    .run = run,
    .help = help,
    .help_on = wk_config_help,
};
