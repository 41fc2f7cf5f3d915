/* SPDX-License-Identifier: Apache-2.0 */
#include "node/rank.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "rundir/attempt.h"
#include "rundir/claim.h"
#include "node/where.h"

enum { EXIT_ENVIRONMENT = 4, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

struct rank {
    json_t *env; /* "ranks" of claim.json */
    int rank, local, world;
    json_t *out; /* rank.<r>.json */
};

static int number_from(const char *const *variables, int otherwise)
{
    for (; *variables; variables++) {
        const char *value = getenv(*variables);
        char *end;
        long v = value ? strtol(value, &end, 10) : 0;

        if (value && end != value && *end == '\0' && v >= 0 && v < 1 << 24)
            return (int)v;
    }
    return otherwise;
}

/* The launcher's numbers. mpirun's come first: under it Slurm's variables are those of the batch
 * step. */
static void number_rank(struct rank *r)
{
    static const char *const rank[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                        "SLURM_PROCID", NULL };
    static const char *const local[] = { "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                         "SLURM_LOCALID", NULL };
    static const char *const world[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS",
                                         NULL };
    int tasks = (int)json_integer_value(json_object_get(r->env, "tasks"));
    int per_node = (int)json_integer_value(json_object_get(r->env, "tasks_per_node"));

    if (json_is_true(json_object_get(r->env, "direct"))) {
        r->world = 1;
        return;
    }
    r->rank = number_from(rank, 0);
    r->local = number_from(local, per_node ? r->rank % per_node : 0);
    r->world = number_from(world, tasks);
}

static int set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    return setenv(name, text, 1);
}

static int set_environment(const struct rank *r, struct hg_err *err)
{
    const char *name;
    json_t *value;

    json_object_foreach(json_object_get(r->env, "env"), name, value)
        if (setenv(name, json_string_value(value), 1) < 0)
            return hg_err_sys(err, "cannot set %s", name);
    /* a command that starts ranks of its own must not appear to be one of them */
    if (json_is_true(json_object_get(r->env, "direct")) &&
        json_integer_value(json_object_get(r->env, "tasks")) > 1)
        return 0;
    if (set_number("RANK", r->rank) < 0 || set_number("LOCAL_RANK", r->local) < 0 ||
        set_number("WORLD_SIZE", r->world) < 0)
        return hg_err_sys(err, "cannot set RANK");
    return 0;
}

/* ---- Dying together ---- */

static volatile sig_atomic_t parent_pid, own_pid, term_came, warned;

/* TERM comes when the parent dies (PR_SET_PDEATHSIG), or from Slurm, which sends it to the whole process group: then the program
 * also receives it and decides. */
static void on_term(int signal)
{
    (void)signal;
    term_came = 1;
    if (getpid() != own_pid) /* the child that is about to become the program */
        _exit(128 + SIGTERM);
    if (getppid() == parent_pid)
        return;
    if (getpgrp() == getpid())
        kill(0, SIGKILL);
    _exit(128 + SIGKILL);
}

static void on_other(int signal)
{
    warned |= signal == SIGUSR1;
}

static void die_with_parent(void)
{
    struct sigaction action = { .sa_handler = on_term, .sa_flags = SA_RESTART };
    static const int others[] = { SIGUSR1, SIGUSR2, SIGHUP, SIGINT };
    sigset_t early;

    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = on_other;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        sigaction(others[i], &action, NULL);
    sigemptyset(&early);
    sigaddset(&early, SIGUSR1);
    sigprocmask(SIG_UNBLOCK, &early, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent_pid)
        raise(SIGTERM);
}

/* ---- The program ---- */

static int start(const struct rank *r, char *const *argv, struct hg_proc *proc, struct hg_err *err)
{
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;
    bool worker = json_is_true(json_object_get(r->env, "worker"));

    spec.argv = (const char *const *)argv;
    spec.death_signal = SIGKILL;
    spec.held_signal = worker ? SIGUSR1 : 0; /* it takes a while to load, and USR1 would end it */
    if (chdir(json_string_value(json_object_get(r->env, "cwd"))) < 0) {
        hg_err_sys(err, "cannot go to folder %s",
                   json_string_value(json_object_get(r->env, "cwd")));
        return -1;
    }
    if (hg_proc_start(&spec, proc, err) < 0)
        return -1;
    if (term_came) /* the program had not started yet; by now it may have children */
        kill(getpgrp() == own_pid ? 0 : proc->pid, SIGTERM);
    if (warned && worker)
        kill(proc->pid, SIGUSR1);
    return 0;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static double rounded(double s)
{
    return round(s * 1e6) / 1e6;
}

static void note_end(struct rank *r, int status, const struct rusage *use, long long oom)
{
    if (WIFSIGNALED(status))
        json_object_set_new(r->out, "signal", json_integer(WTERMSIG(status)));
    else
        json_object_set_new(r->out, "exit_code", json_integer(WEXITSTATUS(status)));
    if (oom > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        json_object_set_new(r->out, "oom", json_true());
    json_object_set_new(r->out, "user_s", hg_json_number(rounded(seconds(use->ru_utime))));
    json_object_set_new(r->out, "sys_s", hg_json_number(rounded(seconds(use->ru_stime))));
    json_object_set_new(r->out, "max_rss_bytes", json_integer((json_int_t)use->ru_maxrss * 1024));
}

/* Run the program to its end; what happened goes to r->out. Returns the exit code to pass on. */
static int run(struct rank *r, char *const *argv)
{
    struct hg_err err = HG_ERR_INIT;
    double start_s = hg_clock_mono_s();
    long long oom = hg_where_oom_kills();
    struct rusage use = { 0 };
    struct hg_proc proc;
    int status = 0, code = EXIT_ENVIRONMENT;
    bool set;

    json_object_set_new(r->out, "start_s", hg_json_number(rounded(hg_clock_wall_s())));
    set = set_environment(r, &err) == 0;
    if (!set || start(r, argv, &proc, &err) < 0) {
        if (set)
            code = err.code == HG_E_NOTFOUND ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
        json_object_set_new(r->out, "error", hg_json_text(err.text));
        json_object_set_new(r->out, "exit_code", json_integer(code));
        fprintf(stderr, "hpcgrid: %s\n", err.text);
    } else {
        while (wait4(proc.pid, &status, 0, &use) < 0 && errno == EINTR)
            ;
        note_end(r, status, &use, hg_where_oom_kills() - oom);
        code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    json_object_set_new(r->out, "real_s", hg_json_number(rounded(hg_clock_mono_s() - start_s)));
    json_object_set_new(r->out, "end_s", hg_json_number(rounded(hg_clock_wall_s())));
    return code;
}

static void describe(struct rank *r)
{
    char cpu[256], gpu[256];
    struct utsname u;
    bool needs_gpu = json_is_true(json_object_get(r->env, "gpu"));
    bool has_gpu = needs_gpu && hg_where_gpu(gpu, sizeof gpu);
    const json_t *cores = json_object_get(r->env, "cores"); /* of a box */

    uname(&u);
    hg_where_cpu(cpu, sizeof cpu);
    json_object_set_new(r->out, "rank", json_integer(r->rank));
    json_object_set_new(r->out, "local_rank", json_integer(r->local));
    json_object_set_new(r->out, "host", hg_json_text(u.nodename));
    json_object_set_new(r->out, "cpu", hg_json_text(cpu));
    json_object_set_new(r->out, "cores",
                        json_integer(cores ? json_integer_value(cores) : hg_where_cores()));
    json_object_set_new(r->out, "device", hg_json_text(has_gpu ? gpu : cpu));
    json_object_set_new(r->out, "device_kind", json_string(has_gpu ? "gpu" : "cpu"));
}

static int load_env(const char *dir, struct rank *r, struct hg_err *err)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    char *path = hg_fs_join(dir, HG_CLAIM_FILE);
    int rc = hg_json_load(path, &doc, err);
    json_t *ranks = json_object_get(doc.root, "ranks");

    if (rc == 0 && !json_is_string(json_object_get(ranks, "cwd")))
        rc = hg_err_set(err, HG_E_INPUT, "%s has no \"cwd\"", path);
    if (rc == 0)
        r->env = json_incref(ranks);
    hg_json_doc_done(&doc);
    free(path);
    return rc;
}

static int save(const struct rank *r, const char *dir, struct hg_err *err)
{
    char *path = hg_str_printf("%s/rank.%d.json", dir, r->rank);
    int rc = hg_attempt_write_json(path, r->out, err);

    free(path);
    return rc;
}

int hg_rank_run(const char *dir, char *const *argv, struct hg_err *err)
{
    struct rank r = { .out = json_object() };
    int code = EXIT_ENVIRONMENT;

    parent_pid = getppid();
    own_pid = getpid();
    die_with_parent();
    if (load_env(dir, &r, err) == 0) {
        number_rank(&r);
        describe(&r);
        code = run(&r, argv);
        if (save(&r, dir, err) < 0 && code == 0)
            code = EXIT_ENVIRONMENT;
    }
    json_decref(r.env);
    json_decref(r.out);
    return code;
}
