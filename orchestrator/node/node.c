/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/seal.h"
#include "matrix/matrix.h"
#include "plan/batch.h"
#include "plan/preflight.h"
#include "plan/template.h"
#include "rundir/attempt.h"
#include "rundir/claim.h"
#include "node/enter.h"
#include "rundir/outcome.h"
#include "rundir/rundir.h"
#include "node/where.h"

/* Slurm tells the steps to end at the same time as us; only where the launcher does not end by that
 * is it told, too. */
#define FORWARD_AFTER_S 2

/* Slurm kills what does not end after TERM. Without it exec does. */
#define KILL_AFTER_S 30

/* Slurm tells the processes of a job one after another, those of other nodes by other daemons: ranks may
 * be dead of TERM before exec is told. So long it waits for its own. */
#define TOLD_WITHIN_S 10

/* Values longer than this are not set as HPCGRID_<KEY>: the kernel takes 128 KiB a variable. They
 * stand in the cell's file. */
#define VARIABLE_MAX (100 * 1024)

struct node {
    const struct hg_node_args *args;
    struct hg_rundir rd;
    json_t *plan, *line; /* plan.json; the cell's line */
    size_t line_number;  /* of it, from 0 */
    const json_t *batch; /* in plan */
    const json_t *cell;  /* in line */
    const char *id;      /* in line */
    char name[HG_ATTEMPT_NAME_MAX];
    char *dir; /* of the attempt */
    char head[256];
    bool virtual_nodes; /* of this machine: a box */
    long long tasks, tasks_per_node, nodes, cpus_per_task;
    double time_s; /* limit; 0: unknown */
    double start_s, start_mono_s;
    bool direct; /* no launcher: once, here */
    struct hg_words words;
    double forward_s, kill_s; /* when to send TERM and KILL (monotonic); 0: not */
    double heartbeat_s,
        beat_s;            /* between two signs of life; when the next one is due (monotonic) */
    double paused_s;       /* since when the job is suspended (monotonic); 0: it is not */
    sigset_t signals;      /* those that are waited for; blocked */
    struct hg_err problem; /* why the ranks cannot be started */
    struct hg_outcome outcome;
};

/* ---- Which cell ---- */

static long long job_count(const struct node *n, const char *key)
{
    json_int_t v = json_integer_value(json_object_get(json_object_get(n->batch, "job"), key));

    return v > 0 ? v : 1;
}

static unsigned variable(const char *name)
{
    const char *value = getenv(name);

    return value ? (unsigned)strtoul(value, NULL, 10) : 0;
}

static int find_cell(struct node *n, struct hg_err *err)
{
    const json_t *job;

    n->line_number = (size_t)n->args->offset + variable("SLURM_ARRAY_TASK_ID");
    n->plan = hg_plan_read(n->rd.path, err);
    if (!n->plan)
        return -1;
    n->batch = json_array_get(json_object_get(n->plan, "batches"), (size_t)n->args->batch - 1);
    job = json_object_get(n->batch, "job");
    if (!job)
        return hg_err_set(err, HG_E_INPUT, "%s has no batch %d", n->rd.path, n->args->batch);
    n->line = hg_plan_read_cell(n->rd.path, n->args->batch, n->line_number, err);
    n->cell = json_object_get(n->line, "cell");
    n->id = json_string_value(json_object_get(n->line, "id"));
    if (!n->line)
        return -1;
    if (!n->id || !json_is_object(n->cell) || !hg_attempt_is_file_name(n->id))
        return hg_err_set(err, HG_E_INPUT, "%s: line %zu of batch %d is no cell", n->rd.path,
                          n->line_number + 1, n->args->batch);
    n->nodes = job_count(n, "nodes");
    n->tasks_per_node = job_count(n, "tasks_per_node");
    n->tasks = n->nodes * n->tasks_per_node;
    n->cpus_per_task = job_count(n, "cpus_per_task");
    n->time_s = json_number_value(json_object_get(job, "time_s"));
    n->heartbeat_s = hg_plan_heartbeat_s(json_object_get(n->plan, "site"));
    n->virtual_nodes = !hg_where_head(n->head, sizeof n->head) && getenv("SLURM_JOB_NODELIST");
    n->outcome = (struct hg_outcome){
        .run_key = json_string_value(json_object_get(n->plan, "run_key")),
        .line = n->line,
        .workload = json_object_get(n->plan, "workload"),
        .gpu = json_is_true(json_object_get(n->batch, "gpu")),
        .cpus_per_task = n->cpus_per_task,
        .start_s = n->start_s,
    };
    return 0;
}

/* ---- The attempt's files ---- */

static int write_json(const struct node *n, const char *name, const json_t *value,
                      struct hg_err *err)
{
    char *path = hg_fs_join(n->dir, name);
    int rc = path ? hg_attempt_write_json(path, value, err) : hg_err_oom(err);

    free(path);
    return rc;
}

/* cell.json: the members as the workload may see them. The worker computes with what the site says
 * of the hardware unless the cell says more. */
static int write_cell(const struct node *n, struct hg_err *err)
{
    const json_t *backend = json_object_get(n->batch, "backend");
    json_t *cell = json_object();
    const char *key;
    json_t *value;
    int rc;

    json_object_foreach((json_t *)n->cell, key, value)
        if (key[0] != '_')
            json_object_set(cell, key, value);
    if (json_object_get(n->outcome.workload, "program") && json_is_string(backend) &&
        !json_object_get(cell, "backend"))
        json_object_set(cell, "backend", (json_t *)backend);
    rc = write_json(n, "cell.json", cell, err);
    json_decref(cell);
    return rc;
}

static int write_files(const struct node *n, const struct hg_template_vars *vars,
                       struct hg_err *err)
{
    const char *name;
    json_t *text;
    int rc = 0;

    json_object_foreach(json_object_get(n->outcome.workload, "files"), name, text) {
        struct hg_buf out = HG_BUF_INIT;
        char *path = hg_fs_join(n->dir, name);

        if (!hg_attempt_is_file_name(name) || hg_matrix_is_own_file(name))
            rc = hg_err_set(err, HG_E_INPUT, "workload/files: \"%s\" cannot be a file's name here",
                            name);
        else if (!path)
            rc = hg_err_oom(err);
        else if ((rc = hg_template_lines(json_string_value(text), vars, &out, err)) == 0)
            rc = hg_attempt_write(path, &out, err);
        hg_buf_done(&out);
        free(path);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* ---- The ranks' environment ---- */

/* "batch_size" -> "HPCGRID_BATCH_SIZE" */
static void variable_name(const char *key, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "HPCGRID_");

    for (; *key && used + 1 < size; key++)
        out[used++] = isalnum((unsigned char)*key) ? (char)toupper((unsigned char)*key) : '_';
    out[used] = '\0';
}

static void add_members(const struct node *n, json_t *env)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)n->cell, key, value) {
        struct hg_buf text = HG_BUF_INIT;
        char name[256];

        if (key[0] == '_' || json_is_null(value))
            continue;
        variable_name(key, name, sizeof name);
        hg_template_value(value, &text);
        if (text.len <= VARIABLE_MAX)
            json_object_set_new(env, name, json_string(hg_buf_str(&text)));
        hg_buf_done(&text);
    }
}

static int add_templates(const json_t *from, const struct hg_template_vars *vars, json_t *env,
                         struct hg_err *err)
{
    const char *name;
    json_t *text;

    json_object_foreach((json_t *)from, name, text) {
        struct hg_buf value = HG_BUF_INIT;
        bool absent = false;
        int rc = hg_template_text(json_string_value(text), vars, &value, &absent, err);

        if (rc == 0 && !absent)
            json_object_set_new(env, name, json_string(hg_buf_str(&value)));
        hg_buf_done(&value);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static void set_path(const struct node *n, json_t *env, const char *name, const char *file)
{
    char *path = hg_fs_join(n->dir, file);

    if (path)
        json_object_set_new(env, name, json_string(path));
    free(path);
}

/* Open MPI names its shared memory by host and local rank: ranks of two virtual nodes would take
 * each other's. They spin while they wait, too, on cores that they share. Release 5 finds no way by TCP
 * from a network address of this host to the same one, but one by the loopback; and where a rank is gone
 * it ends the others at once, before they can say in which collective, unless it is to return errors. */
static void add_virtual(json_t *env)
{
    static const char *const settings[][2] = {
        { "OMPI_MCA_pml", "ob1" },
        { "OMPI_MCA_btl", "tcp,self" },
        { "OMPI_MCA_btl_tcp_if_include", "lo" },
        { "OMPI_MCA_mpi_yield_when_idle", "1" },
        { "OMPI_MCA_mpi_ft_enable", "1" },
        { "OMPI_ALLOW_RUN_AS_ROOT", "1" },
        { "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1" },
    };

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (!json_object_get(env, settings[i][0]))
            json_object_set_new(env, settings[i][0], json_string(settings[i][1]));
}

/* What hpcgrid promises to every rank; a site or workload may have set threads and port itself. */
static void add_promises(const struct node *n, json_t *env)
{
    char number[24];

    set_path(n, env, "HPCGRID_CELL", "cell.json");
    set_path(n, env, "HPCGRID_RESULT", "workload.json");
    json_object_set_new(env, "HPCGRID_RUN", json_string(n->rd.path));
    json_object_set_new(env, "HPCGRID_ATTEMPT", json_string(n->dir));
    if (!json_object_get(env, "MASTER_ADDR"))
        json_object_set_new(env, "MASTER_ADDR", json_string(n->head));
    snprintf(number, sizeof number, "%d", hg_where_port());
    if (!json_object_get(env, "MASTER_PORT"))
        json_object_set_new(env, "MASTER_PORT", json_string(number));
    snprintf(number, sizeof number, "%lld", n->cpus_per_task);
    if (!json_object_get(env, "OMP_NUM_THREADS"))
        json_object_set_new(env, "OMP_NUM_THREADS", json_string(number));
}

/* What the ranks need to begin. A new reference, NULL with err set. */
static json_t *make_start(const struct node *n, const struct hg_template_vars *vars,
                          struct hg_err *err)
{
    json_t *root = json_object(), *env = json_object();
    int rc = -1;

    if (add_templates(json_object_get(json_object_get(n->plan, "site"), "env"), vars, env, err) < 0)
        goto out;
    add_members(n, env);
    if (add_templates(json_object_get(n->outcome.workload, "env"), vars, env, err) < 0)
        goto out;
    add_promises(n, env);
    if (n->virtual_nodes)
        add_virtual(env);
    json_object_set(root, "cwd", json_object_get(n->outcome.workload, "cwd"));
    json_object_set_new(root, "tasks", json_integer(n->tasks));
    json_object_set_new(root, "tasks_per_node", json_integer(n->tasks_per_node));
    json_object_set_new(root, "direct", json_boolean(n->direct));
    json_object_set_new(root, "gpu", json_boolean(n->outcome.gpu));
    json_object_set_new(root, "worker",
                        json_boolean(!json_object_get(n->outcome.workload, "command")));
    if (n->virtual_nodes) /* elsewhere ranks are bound, and each host has its own number */
        json_object_set_new(root, "cores", json_integer(hg_proc_cpus()));
    json_object_set(root, "env", env);
    rc = 0;
out:
    json_decref(env);
    if (rc < 0)
        json_decref(root);
    return rc < 0 ? NULL : root;
}

/* ---- The words that start it all ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int push_format(struct hg_words *words, const char *fmt, long long value, struct hg_err *err)
{
    char text[64];

    snprintf(text, sizeof text, "%s%lld", fmt, value);
    return hg_words_push(words, text) < 0 ? hg_err_oom(err) : 0;
}

/* srun since 22.05 does not take the job's CPUs per task over: everything is said. What the site or
 * the matrix says stands behind and wins. */
static int push_srun_options(const struct node *n, struct hg_words *words, struct hg_err *err)
{
    if (push_format(words, "--nodes=", n->nodes, err) < 0 ||
        push_format(words, "--ntasks=", n->tasks, err) < 0 ||
        push_format(words, "--ntasks-per-node=", n->tasks_per_node, err) < 0 ||
        push_format(words, "--cpus-per-task=", n->cpus_per_task, err) < 0)
        return -1;
    if (hg_words_push(words, "--kill-on-bad-exit=1") < 0 ||
        hg_words_push(words, "--export=ALL") < 0 || hg_words_push(words, "--input=none") < 0)
        return hg_err_oom(err);
    return 0;
}

/* The site's words for a cell that runs in a container: options of the launcher, or a program that
 * starts the workload's. */
static int push_container(const struct node *n, const struct hg_template_vars *vars, bool options,
                          struct hg_words *words, struct hg_err *err)
{
    const json_t *site = json_object_get(json_object_get(n->plan, "site"), "container");
    const char *first = json_string_value(json_array_get(site, 0));

    if (!json_is_string(json_object_get(n->cell, "container")) || !first ||
        (first[0] == '-') != options)
        return 0;
    if (options && !words->n)
        return hg_err_set(
            err, HG_E_INPUT,
            "the site's \"container\" is options of a launcher, and \"launch\" is []");
    return hg_template_words(site, vars, words, err);
}

static int push_launcher(const struct node *n, const struct hg_template_vars *vars,
                         struct hg_words *words, struct hg_err *err)
{
    const json_t *launch = json_object_get(n->outcome.workload, "launch");
    const json_t *site = json_object_get(json_object_get(n->plan, "site"), "launcher");
    struct hg_words given = HG_WORDS_INIT;
    int rc = hg_template_words(launch ? launch : site, vars, &given, err);

    for (size_t i = 0; rc == 0 && i < given.n; i++) {
        if (hg_words_push(words, given.items[i]) < 0)
            rc = hg_err_oom(err);
        if (rc == 0 && i == 0 && strcmp(base_name(given.items[0]), "srun") == 0)
            rc = push_srun_options(n, words, err);
        if (rc == 0 && i == 0 && strncmp(base_name(given.items[0]), "mpi", 3) == 0) {
            rc = hg_words_push(words, "-n") < 0 ? hg_err_oom(err)
                                                : push_format(words, "", n->tasks, err);
        }
    }
    if (rc == 0)
        rc = push_container(n, vars, true, words, err);
    hg_words_done(&given);
    return rc;
}

static int push_argv(const struct node *n, const char *self, const struct hg_template_vars *vars,
                     struct hg_words *words, struct hg_err *err)
{
    const json_t *command = json_object_get(n->outcome.workload, "command");
    size_t before = words->n;
    char *worker, *cell;
    int rc;

    if (command) {
        if (hg_template_words(command, vars, words, err) < 0)
            return -1;
        if (words->n == before)
            return hg_err_set(err, HG_E_INPUT, "the command has no words left for this cell");
        return 0;
    }
    worker = hg_worker_find(self);
    cell = hg_fs_join(n->dir, "cell.json");
    rc = worker && cell && hg_words_push(words, worker) == 0 &&
                 hg_words_push(words, "train") == 0 && hg_words_push(words, "--cell") == 0 &&
                 hg_words_push(words, cell) == 0
             ? 0
             : hg_err_oom(err);
    free(worker);
    free(cell);
    return rc;
}

static int make_words(struct node *n, const struct hg_template_vars *vars, struct hg_err *err)
{
    char *self = hg_fs_self(err);
    int rc = -1;

    if (!self)
        return -1;
    if (push_launcher(n, vars, &n->words, err) < 0)
        goto out;
    n->direct = n->words.n == 0;
    if (hg_words_push(&n->words, self) < 0 || hg_words_push(&n->words, "exec") < 0 ||
        hg_words_push(&n->words, "--rank") < 0 || hg_words_push(&n->words, "--attempt") < 0 ||
        hg_words_push(&n->words, n->dir) < 0 || hg_words_push(&n->words, "--") < 0) {
        hg_err_oom(err);
        goto out;
    }
    rc = push_container(n, vars, false, &n->words, err);
    if (rc == 0)
        rc = push_argv(n, self, vars, &n->words, err);
out:
    free(self);
    return rc;
}

/* Stands in the claim of the attempt that n is about to claim, so that ranks find it in a file less. What is wrong with it is known only
 * then, and told when the attempt is ours. */
static json_t *describe_start(void *context)
{
    struct node *n = context;
    struct hg_template_vars vars = { .cell = n->cell, .dir = n->dir, .head = n->head, .id = n->id };
    const char *problem = getenv("HPCGRID_ERROR"); /* of the batch script */

    n->problem = (struct hg_err)HG_ERR_INIT;
    hg_words_done(&n->words);
    if (problem && problem[0])
        hg_err_set(&n->problem, HG_E_ENV, "%s", problem);
    else if (make_words(n, &vars, &n->problem) == 0)
        return make_start(n, &vars, &n->problem);
    return NULL;
}

static int prepare(struct node *n, struct hg_err *err)
{
    struct hg_template_vars vars = { .cell = n->cell, .dir = n->dir, .head = n->head, .id = n->id };

    if (n->problem.code) {
        *err = n->problem;
        return -1;
    }
    return write_cell(n, err) < 0 || write_files(n, &vars, err) < 0 ? -1 : 0;
}

/* ---- Running ---- */

static int open_log(const struct node *n, const char *name, struct hg_err *err)
{
    char *path = hg_fs_join(n->dir, name);
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;

    if (fd < 0)
        hg_err_sys(err, "cannot write %s/%s", n->dir, name);
    free(path);
    return fd;
}

static int start(struct node *n, struct hg_proc *proc, struct hg_err *err)
{
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;
    char cpus[24];
    int rc = -1;

    spec.argv = (const char *const *)n->words.items;
    spec.in = HG_PROC_NULL;
    spec.out = open_log(n, "out.log", err);
    spec.err = open_log(n, "err.log", err);
    /* out of reach of what Slurm sends to the batch script's group: exec decides what gets through */
    spec.new_session = true;
    spec.death_signal = n->direct ? SIGTERM : SIGKILL;
    spec.held_signal = n->direct ? SIGUSR1 : 0; /* a rank lets it come */
    snprintf(cpus, sizeof cpus, "%lld", n->cpus_per_task);
    setenv("SRUN_CPUS_PER_TASK", cpus, 1);
    if (spec.out >= 0 && spec.err >= 0)
        rc = hg_proc_start(&spec, proc, err);
    if (rc < 0)
        hg_err_wrap(err, "%s", n->direct ? "rank" : "launcher");
    if (spec.out >= 0)
        close(spec.out);
    if (spec.err >= 0)
        close(spec.err);
    return rc;
}

static double deadline_s(const struct node *n)
{
    const char *end = getenv("SLURM_JOB_END_TIME");

    if (end)
        return strtod(end, NULL);
    return n->time_s > 0 ? n->start_s + n->time_s : 0;
}

/* TERM: is it the time limit? Slurm counts from a little before we began. */
static enum hg_stop why_stopped(const struct node *n)
{
    double end = deadline_s(n);
    double slack = n->time_s > 120 ? 30 : n->time_s / 4;

    if (end > 0)
        end += n->outcome.suspended_s;
    return end > 0 && hg_clock_wall_s() >= end - slack ? HG_STOP_TIMEOUT : HG_STOP_CANCELLED;
}

static void note_time(struct node *n)
{
    n->outcome.wall_s = hg_clock_mono_s() - n->start_mono_s;
    n->outcome.end_s = hg_clock_wall_s();
}

/* The disk is full, or the quota reached. What the claim occupies is enough to say so. */
static int save_least(const struct node *n, json_t **result, struct hg_err *err)
{
    struct hg_err why = n->outcome.problem ? *n->outcome.problem : *err;
    struct hg_buf text = HG_BUF_INIT;
    json_t *least;
    int rc;

    hg_err_wrap(&why, n->outcome.problem ? "not started" : "the result is lost");
    least = hg_outcome_least(&n->outcome, why.text);
    hg_seal_dump(least, HG_JSON_INDENT, &text);
    rc = hg_claim_use(n->dir, hg_buf_str(&text), text.len, "result.json", NULL);
    hg_buf_done(&text);
    json_decref(*result);
    *result = least;
    return rc;
}

/* final: there will be no other. */
static int save_result(struct node *n, bool final, struct hg_err *err, json_t **out)
{
    char *path = hg_fs_join(n->dir, "result.json");
    struct hg_buf text = HG_BUF_INIT;
    json_t *result;
    int rc;

    if (!n->outcome.ended)
        note_time(n);
    result = hg_outcome_result(&n->outcome);
    hg_seal_dump(result, HG_JSON_INDENT, &text);
    rc = hg_fs_replace(path, text.data, text.len, 0644, err);
    if (rc < 0 && final && save_least(n, &result, err) == 0)
        hg_err_wrap(err, "only an error stands in its result");
    hg_buf_done(&text);
    free(path);
    if (out)
        *out = result;
    else
        json_decref(result);
    return rc;
}

/* ---- What is left ---- */

static void remove_file(const struct node *n, const char *name, bool only_empty)
{
    char *path = hg_fs_join(n->dir, name);
    struct stat st;

    if (path && (!only_empty || (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)))
        unlink(path);
    free(path);
}

/* The result is on the disk, and says what these files said. A workload's result that does not count stays. */
static void tidy(const struct node *n, const json_t *result)
{
    const char *status = json_string_value(json_object_get(result, "status"));
    const json_t *rank;
    char name[40];
    size_t i;

    json_array_foreach(json_object_get(result, "ranks"), i, rank) {
        snprintf(name, sizeof name, "rank.%lld.json",
                 (long long)json_integer_value(json_object_get(rank, "rank")));
        remove_file(n, name, false);
    }
    if (status && strcmp(status, "ok") == 0)
        remove_file(n, "workload.json", false);
    remove_file(n, "out.log", true);
    remove_file(n, "err.log", true);
}

/* TERM has come. A result is written at once: if the workload takes longer than Slurm waits before
 * it kills, this is what stays. */
static void stop(struct node *n, pid_t pid)
{
    double now_s = hg_clock_mono_s();

    if (n->outcome.stop != HG_STOP_NONE)
        return;
    n->outcome.stop = why_stopped(n);
    if (n->direct)
        kill(-pid, SIGTERM);
    else
        n->forward_s = now_s + FORWARD_AFTER_S;
    if (!getenv("SLURM_JOB_ID"))
        n->kill_s = now_s + KILL_AFTER_S;
    n->outcome.ending = true;
    save_result(n, false, NULL, NULL);
    n->outcome.ending = false;
}

/* Slurm suspends a job with TSTP, then STOP. CONT alone says nothing: it comes before TERM, too. */
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

static void on_signal(struct node *n, pid_t pid, int signal)
{
    if (signal == SIGTSTP || signal == SIGCONT)
        on_pause(n, signal == SIGTSTP);
    else if (signal == SIGTERM || signal == SIGINT)
        stop(n, pid);
    else if (signal == SIGUSR1 || signal == SIGUSR2 || signal == SIGHUP)
        kill(n->direct ? -pid : pid, signal);
}

/* A sign of life is due. Who was given up for dead in the meantime must not work beside his successor. */
static void beat(struct node *n, pid_t pid, double now_s)
{
    if (now_s < n->beat_s)
        return;
    n->beat_s = now_s + n->heartbeat_s;
    if (hg_claim_beat(n->dir) || n->outcome.stop == HG_STOP_SUPERSEDED)
        return;
    n->outcome.stop = HG_STOP_SUPERSEDED;
    n->kill_s = now_s + KILL_AFTER_S;
    kill(n->direct ? -pid : pid, SIGTERM);
}

static void on_time(struct node *n, pid_t pid)
{
    double now_s = hg_clock_mono_s();

    beat(n, pid, now_s);

    if (n->forward_s > 0 && now_s >= n->forward_s) {
        n->forward_s = 0;
        kill(pid, SIGTERM);
    }
    if (n->kill_s > 0 && now_s >= n->kill_s) {
        n->kill_s = 0;
        kill(-pid, SIGKILL);
    }
}

/* Have we been told to end? Waits for it at most so long; then n->outcome.stop says why. */
static bool is_told(struct node *n, double within_s)
{
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

/* Wait for the launcher, with the signals that may come before it ends. */
static void wait_end(struct node *n, pid_t pid)
{
    const struct timespec tick = { .tv_sec = 1 };
    pid_t got;

    while ((got = waitpid(pid, &n->outcome.status, WNOHANG)) != pid) {
        if (got < 0 && errno == ECHILD)
            break;
        on_signal(n, pid, sigtimedwait(&n->signals, NULL, &tick));
        on_time(n, pid);
    }
    on_pause(n, false);
    note_time(n);
    n->outcome.ended = true;
    if (n->outcome.status != 0)
        is_told(n,
                getenv("SLURM_JOB_ID") && hg_outcome_died_of_term(&n->outcome) ? TOLD_WITHIN_S : 0);
}

/* ---- The claim ---- */

static bool is_told_to_end(void *node, double within_s)
{
    return is_told(node, within_s);
}

/* What hg_outcome_least takes. */
static size_t reserve(const struct node *n)
{
    struct hg_buf text = HG_BUF_INIT;
    size_t len;

    hg_json_dump(n->cell, HG_JSON_INDENT, &text);
    len = 2 * text.len + HG_OUTCOME_LEAST; /* it is indented more there */
    hg_buf_done(&text);
    return len;
}

/* 0: the attempt is ours, 1: this copy of the job has to leave, -1: err set. */
static int claim(struct node *n, char why[static 256], struct hg_err *err)
{
    struct hg_comer comer = { .rd = &n->rd,
                              .batch = n->args->batch,
                              .line = n->line_number,
                              .id = n->id,
                              .run_key = json_string_value(json_object_get(n->plan, "run_key")),
                              .submission = (unsigned)n->args->submission,
                              .restarts = variable("SLURM_RESTART_COUNT"),
                              .heartbeat_s = n->heartbeat_s,
                              .who = hg_where_slurm(NULL),
                              .start = describe_start,
                              .reserve = reserve(n),
                              .told = is_told_to_end,
                              .context = n };
    int rc;

    json_object_set_new(comer.who, "claimed_s", hg_json_number(n->start_s));
    rc = hg_enter(&comer, n->name, &n->dir, why, err);
    json_decref(comer.who);
    return rc;
}

static void block_signals(struct node *n)
{
    static const int wanted[] = { SIGTERM, SIGINT,  SIGUSR1, SIGUSR2,
                                  SIGHUP,  SIGCHLD, SIGTSTP, SIGCONT };

    sigemptyset(&n->signals);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        sigaddset(&n->signals, wanted[i]);
    sigprocmask(SIG_BLOCK, &n->signals, NULL);
}

static void find_out(struct node *n)
{
    const json_t *launcher = json_object_get(json_object_get(n->plan, "site"), "launcher");
    const char *srun = json_string_value(json_array_get(launcher, 0));

    n->outcome.env =
        hg_where_env(json_string_value(json_object_get(n->outcome.workload, "cwd"))
                         ? json_string_value(json_object_get(n->outcome.workload, "cwd"))
                         : n->rd.path);
    n->outcome.slurm = hg_where_slurm(srun && strcmp(base_name(srun), "srun") == 0 ? srun : NULL);
}

static int run_claimed(struct node *n, int *code, struct hg_err *err)
{
    struct hg_err problem = HG_ERR_INIT;
    struct hg_proc proc;
    json_t *result = NULL;
    int rc;

    n->outcome.dir = n->dir;
    n->outcome.name = n->name;
    find_out(n);
    rc = prepare(n, &problem);
    n->start_mono_s = hg_clock_mono_s();
    if (!is_told(n, 0) && rc == 0 && (rc = start(n, &proc, &problem)) == 0)
        wait_end(n, proc.pid);
    if (rc < 0 && !is_told(n, 0)) /* else it may have failed for that */
        n->outcome.problem = &problem;
    rc = save_result(n, true, err, &result);
    if (rc == 0)
        tidy(n, result);
    *code = hg_outcome_exit_code(&n->outcome, result);
    json_decref(result);
    return rc;
}

static void node_done(struct node *n)
{
    json_decref(n->outcome.env);
    json_decref(n->outcome.slurm);
    json_decref(n->plan);
    json_decref(n->line);
    hg_words_done(&n->words);
    free(n->dir);
    hg_rundir_done(&n->rd);
}

int hg_node_run(const struct hg_node_args *args, int *code, char left[static 256],
                struct hg_err *err)
{
    struct node n = { .args = args, .start_s = hg_clock_wall_s() };
    int rc;

    block_signals(&n); /* a claim without a result says nothing: from here on TERM leaves one */
    rc = hg_rundir_find("", args->run, &n.rd, err);
    if (rc == 0)
        rc = find_cell(&n, err);
    left[0] = '\0';
    if (rc == 0)
        rc = claim(&n, left, err);
    *code = 0;
    if (rc == 0)
        rc = run_claimed(&n, code, err);
    node_done(&n);
    return rc < 0 ? -1 : 0;
}
