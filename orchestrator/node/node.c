/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "node/code.h"
#include "node/enter.h"
#include "node/job.h"
#include "node/outcome.h"
#include "node/save.h"
#include "node/where.h"
#include "rundir/claim.h"

/* Slurm sends TERM to the steps at the same time as to us; the launcher gets one of its own only if it does not end by that. */
#define FORWARD_AFTER_S 2

/* Slurm kills what does not end after TERM. Without Slurm exec does. */
#define KILL_AFTER_S 30

/* Slurm sends TERM to the processes of a job one after another, by other daemons on other nodes: ranks may have died of it before
 * exec receives it. Exec waits this long for its own. */
#define TERM_WITHIN_S 10

struct node {
    struct hg_job job;
    struct hg_launch launch;
    struct hg_err problem; /* why the ranks cannot be started */
    struct hg_outcome outcome;
    char name[HG_ATTEMPT_NAME_MAX]; /* of the attempt */
    char *dir;
    sigset_t signals;         /* those that are waited for; blocked */
    pid_t pid;                /* of the launcher or the only rank, which leads a process group */
    double start_mono_s;      /* before it was started */
    double forward_s, kill_s; /* when to send TERM and KILL (monotonic); 0: not */
    double beat_s;            /* when the next heartbeat is due (monotonic) */
    double warn_s,
        own_s;       /* when to send USR1, and TERM at the cell's own limit (monotonic); 0: not */
    bool overtime;   /* it was ended at its own limit: the job goes on */
    double paused_s; /* since when the job is suspended (monotonic); 0: it is not */
};

/* ---- Signals ---- */

static void block_signals(struct node *n)
{
    static const int wanted[] = { SIGTERM, SIGINT,  SIGUSR1, SIGUSR2,
                                  SIGHUP,  SIGCHLD, SIGTSTP, SIGCONT };

    sigemptyset(&n->signals);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        sigaddset(&n->signals, wanted[i]);
    sigprocmask(SIG_BLOCK, &n->signals, NULL);
}

static double deadline_s(const struct node *n)
{
    const char *end = getenv("SLURM_JOB_END_TIME");

    if (end)
        return strtod(end, NULL);
    return n->job.time_s > 0 ? n->outcome.start_s + n->job.time_s : 0;
}

/* TERM: is it the time limit? Slurm counts from a little before our start. */
static enum hg_stop why_stopped(const struct node *n)
{
    double end = deadline_s(n);
    double slack = n->job.time_s > 120 ? 30 : n->job.time_s / 4;

    if (end > 0)
        end += n->outcome.suspended_s;
    return end > 0 && hg_clock_wall_s() >= end - slack ? HG_STOP_TIMEOUT : HG_STOP_CANCELLED;
}

/* Have we received TERM or INT? Waits for it at most so long; then outcome.stop says why. */
static bool got_term(void *context, double within_s)
{
    struct node *n = context;
    double end_s = hg_clock_mono_s() + within_s;
    sigset_t wanted;

    sigemptyset(&wanted);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGINT);
    while (n->outcome.stop == HG_STOP_NONE) {
        double left_s = fmax(end_s - hg_clock_mono_s(), 0);
        struct timespec left = { .tv_sec = (time_t)left_s,
                                 .tv_nsec = (long)(fmod(left_s, 1) * 1e9) };

        if (sigtimedwait(&wanted, NULL, &left) > 0)
            n->outcome.stop = why_stopped(n);
        else if (left_s <= 0)
            break;
    }
    return n->outcome.stop != HG_STOP_NONE;
}

/* ---- The claim ---- */

/* "ranks" of the claim that n is about to make, so that ranks need no file of their own. If it cannot be made, the reason is
 * reported in the result once the attempt is ours. */
static json_t *describe_ranks(void *context, const char *dir)
{
    struct node *n = context;
    const char *problem = getenv("HPCGRID_ERROR"); /* of the batch script */
    json_t *ranks;

    n->problem = (struct hg_err)HG_ERR_INIT;
    hg_launch_done(&n->launch);
    if (problem && problem[0])
        hg_err_set(&n->problem, HG_E_ENV, "%s", problem);
    ranks = n->problem.code ? NULL : hg_launch_make(&n->job, dir, &n->launch, &n->problem);
    json_decref(n->outcome.env);
    n->outcome.env = hg_where_env(json_object_get(ranks, "env"));
    return ranks;
}

static void on_claim(void *context, const char *dir)
{
    struct node *n = context;
    char *made = dir ? hg_fs_join(dir, HG_CLAIM_FILE) : NULL;

    n->outcome.dir = dir; /* NULL: it was given up */
    n->outcome.clock_ahead_s = dir ? hg_clock_ahead_s(hg_clock_wall_s(), made) : 0;
    free(made);
}

/* As hg_enter. */
static int claim(struct node *n, unsigned submission, char why[static 256], struct hg_err *err)
{
    struct hg_comer comer = { .rd = &n->job.rd,
                              .batch = n->job.batch_number,
                              .line = n->job.line_number,
                              .id = n->job.id,
                              .run_key = n->job.run_key,
                              .submission = submission,
                              .restarts = n->job.restarts,
                              .heartbeat_s = n->job.heartbeat_s,
                              .who = hg_where_slurm(NULL),
                              .ranks = describe_ranks,
                              .claimed = on_claim,
                              .reserve = hg_save_reserve(n->job.cell),
                              .got_term = got_term,
                              .context = n };
    int rc;

    json_object_set_new(comer.who, "claimed_s", hg_json_number(n->outcome.start_s));
    rc = hg_enter(&comer, n->name, &n->dir, why, err);
    json_decref(comer.who);
    return rc;
}

/* ---- The launcher, from its start to its end: logs, signals, heartbeat ---- */

static int open_log(const struct node *n, const char *name, struct hg_err *err)
{
    char *path = hg_fs_join(n->outcome.dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        hg_err_sys(err, "cannot write %s", path);
    free(path);
    return fd;
}

static int start_launcher(struct node *n)
{
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;
    struct hg_proc proc;
    char cpus[24];
    int rc = -1;

    spec.argv = (const char *const *)n->launch.words.items;
    spec.in = HG_PROC_NULL;
    spec.out = open_log(n, "out.log", &n->problem);
    spec.err = open_log(n, "err.log", &n->problem);
    /* Slurm sends signals to the batch script's process group: exec decides which of them are passed on */
    spec.new_session = true;
    spec.death_signal = n->launch.direct ? SIGTERM : SIGKILL;
    spec.held_signal = n->launch.direct ? SIGUSR1 : 0; /* a rank unblocks it */
    snprintf(cpus, sizeof cpus, "%lld", n->job.cpus_per_task);
    setenv("SRUN_CPUS_PER_TASK", cpus, 1);
    if (spec.out >= 0 && spec.err >= 0)
        rc = hg_proc_start(&spec, &proc, &n->problem);
    if (rc == 0)
        n->pid = proc.pid;
    else
        hg_err_wrap(&n->problem, "%s", n->launch.direct ? "rank" : "launcher");
    if (spec.out >= 0)
        close(spec.out);
    if (spec.err >= 0)
        close(spec.err);
    return rc;
}

static void note_time(struct node *n)
{
    n->outcome.wall_s = hg_clock_mono_s() - n->start_mono_s;
    n->outcome.end_s = hg_clock_wall_s();
}

/* TERM has come. A result is written at once: if the workload takes longer than Slurm waits before
 * it kills, this is what stays. */
static void stop(struct node *n)
{
    double now_s = hg_clock_mono_s();

    if (n->outcome.stop != HG_STOP_NONE)
        return;
    n->outcome.stop = why_stopped(n);
    if (n->launch.direct)
        kill(-n->pid, SIGTERM);
    else
        n->forward_s = now_s + FORWARD_AFTER_S;
    if (!getenv("SLURM_JOB_ID"))
        n->kill_s = now_s + KILL_AFTER_S;
    n->outcome.ending = true;
    note_time(n);
    hg_save_early(&n->outcome);
    n->outcome.ending = false;
}

/* Slurm suspends a job with TSTP, then STOP. CONT alone means nothing: Slurm also sends it before TERM. */
static void on_pause(struct node *n, bool begins)
{
    double now_s = hg_clock_mono_s();

    if (begins && n->paused_s == 0)
        n->paused_s = now_s;
    if (begins || n->paused_s == 0)
        return;
    n->outcome.suspended_s += now_s - n->paused_s;
    n->paused_s = 0;
}

static void on_signal(struct node *n, int signal)
{
    if (signal == SIGTSTP || signal == SIGCONT)
        on_pause(n, signal == SIGTSTP);
    else if (signal == SIGTERM || signal == SIGINT)
        stop(n);
    else if (signal == SIGUSR1 || signal == SIGUSR2 || signal == SIGHUP)
        kill(n->launch.direct ? -n->pid : n->pid, signal);
}

/* The heartbeat. An attempt that was taken over in the meantime must stop, because its successor works now. */
static void beat(struct node *n, double now_s)
{
    if (now_s < n->beat_s)
        return;
    n->beat_s = now_s + n->job.heartbeat_s;
    if (hg_claim_beat(n->outcome.dir) || n->outcome.stop == HG_STOP_SUPERSEDED)
        return;
    n->outcome.stop = HG_STOP_SUPERSEDED;
    n->kill_s = now_s + KILL_AFTER_S;
    kill(n->launch.direct ? -n->pid : n->pid, SIGTERM);
}

/* A cell that shares its job must leave the others their time. What Slurm does at the limit of a job is done here. */
static void on_own_limit(struct node *n, double now_s)
{
    double paused_s = n->outcome.suspended_s;

    if (n->paused_s > 0)
        return;
    if (n->warn_s > 0 && now_s >= n->warn_s + paused_s) {
        n->warn_s = 0;
        on_signal(n, SIGUSR1);
    }
    if (n->own_s <= 0 || now_s < n->own_s + paused_s)
        return;
    n->own_s = 0;
    if (n->outcome.stop != HG_STOP_NONE)
        return;
    n->outcome.stop = HG_STOP_TIMEOUT;
    n->overtime = true;
    n->kill_s = now_s + KILL_AFTER_S;
    kill(n->launch.direct ? -n->pid : n->pid, SIGTERM);
}

static void start_clock(struct node *n)
{
    double limit_s = n->job.own_s, lead_s = n->job.lead_s;

    if (limit_s <= 0)
        return;
    n->own_s = n->start_mono_s + limit_s;
    if (lead_s > 0 && limit_s > lead_s)
        n->warn_s = n->own_s - lead_s;
}

static void on_time(struct node *n)
{
    double now_s = hg_clock_mono_s();

    beat(n, now_s);
    on_own_limit(n, now_s);
    if (n->forward_s > 0 && now_s >= n->forward_s) {
        n->forward_s = 0;
        kill(n->pid, SIGTERM);
    }
    if (n->kill_s > 0 && now_s >= n->kill_s) {
        n->kill_s = 0;
        kill(-n->pid, SIGKILL);
    }
}

static void wait_for_end(struct node *n)
{
    const struct timespec tick = { .tv_sec = 1 };
    pid_t got;

    start_clock(n);
    while ((got = waitpid(n->pid, &n->outcome.status, WNOHANG)) != n->pid) {
        if (got < 0 && errno == ECHILD)
            break;
        on_signal(n, sigtimedwait(&n->signals, NULL, &tick));
        on_time(n);
    }
    on_pause(n, false);
    note_time(n);
    n->outcome.ended = true;
    if (n->outcome.status != 0)
        got_term(n, getenv("SLURM_JOB_ID") && hg_outcome_died_of_term(&n->outcome) ? TERM_WITHIN_S
                                                                                   : 0);
}

/* ---- The attempt ---- */

/* The workload's own words, behind those of the launcher and "--attempt DIR --" of exec. */
static const char *const *command_words(const struct node *n)
{
    static const char *const none[] = { NULL };
    const struct hg_words *words = &n->launch.words;

    for (size_t i = 0; i + 3 < words->n; i++)
        if (strcmp(words->items[i], "--attempt") == 0)
            return (const char *const *)words->items + i + 3;
    return none;
}

static void find_out(struct node *n)
{
    const char *cwd = json_string_value(json_object_get(n->job.workload, "cwd"));
    const char *launcher =
        json_string_value(json_array_get(json_object_get(n->job.site, "launcher"), 0));
    bool srun = launcher && strcmp(basename(launcher), "srun") == 0;

    json_object_set(n->outcome.env, "network_gbit_s",
                    json_object_get(json_object_get(n->job.site, "network_gbit_s"),
                                    json_string_value(json_object_get(n->job.cell, "hardware"))));
    n->outcome.slurm = hg_where_slurm(srun ? launcher : NULL);
    n->outcome.code = hg_code_of(&(struct hg_code_place){
        .dir = cwd ? cwd : n->job.rd.path,
        .run = n->job.rd.path,
        .matrix = json_string_value(json_object_get(n->job.workload, "matrix")),
        .words = command_words(n),
    });
}

static int run_claimed(struct node *n, int *code, struct hg_err *err)
{
    json_t *result = NULL;
    int rc;

    find_out(n);
    if (!n->problem.code)
        hg_launch_write_files(&n->job, n->dir, &n->problem);
    n->start_mono_s = hg_clock_mono_s();
    if (!got_term(n, 0) && !n->problem.code && start_launcher(n) == 0)
        wait_for_end(n);
    else
        note_time(n);
    if (n->problem.code && !got_term(n, 0)) /* else TERM may have caused it */
        n->outcome.problem = &n->problem;
    rc = hg_save_final(&n->outcome, &result, err);
    *code = hg_outcome_exit_code(&n->outcome, result);
    json_decref(result);
    return rc;
}

static void node_done(struct node *n)
{
    hg_save_not_at_end();
    json_decref(n->outcome.env);
    json_decref(n->outcome.slurm);
    json_decref(n->outcome.code);
    hg_launch_done(&n->launch);
    hg_job_done(&n->job);
    free(n->dir);
}

static void begin(struct node *n)
{
    n->outcome = (struct hg_outcome){ .name = n->name,
                                      .run_key = n->job.run_key,
                                      .line = n->job.line,
                                      .workload = n->job.workload,
                                      .gpu = n->job.gpu,
                                      .rehearsal = n->job.rehearsal != NULL,
                                      .cpus_per_task = n->job.shrink ? 1 : n->job.cpus_per_task,
                                      .start_s = n->outcome.start_s };
    hg_save_at_end(&n->outcome);
}

/* What the driver wrote just before it submitted this job may not be seen here yet, whatever is missing or old. */
static int load(struct node *n, const struct hg_node_args *args, struct hg_err *err)
{
    double late_s = getenv("SLURM_JOB_ID") ? hg_fs_late_s(args->run) : 0;
    double end_s = hg_clock_mono_s() + late_s;
    int rc;

    while ((rc = hg_job_load(args->run, args->batch, args->line, &n->job, err)) < 0 &&
           hg_clock_mono_s() < end_s && !got_term(n, 1)) {
        hg_job_done(&n->job);
        *err = (struct hg_err)HG_ERR_INIT;
    }
    return rc;
}

int hg_node_run(const struct hg_node_args *args, struct hg_node_end *end, struct hg_err *err)
{
    struct node n = { .outcome = { .start_s = hg_clock_wall_s() } };
    int rc;

    *end = (struct hg_node_end){ 0 };
    block_signals(&n); /* from here on TERM leaves a result: a claim without one tells nothing */
    rc = load(&n, args, err);
    if (rc == 0 && !hg_job_is_wanted(&n.job, args->request, end->left))
        rc = HG_ENTER_DONE;
    if (rc == 0 && args->follows && got_term(&n, 0)) {
        snprintf(end->left, sizeof end->left, "its job is ending");
        rc = HG_ENTER_BUSY;
    }
    if (rc == 0) {
        begin(&n);
        rc = claim(&n, (unsigned)args->submission, end->left, err);
    }
    if (rc == 0)
        rc = run_claimed(&n, &end->code, err);
    end->stop = rc < 0 || rc == HG_ENTER_BUSY || (n.outcome.stop != HG_STOP_NONE && !n.overtime);
    node_done(&n);
    return rc < 0 ? -1 : 0;
}
