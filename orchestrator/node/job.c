/* SPDX-License-Identifier: Apache-2.0 */
#include "node/job.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/ranges.h"
#include "matrix/cell.h"
#include "matrix/workload.h"
#include "node/where.h"
#include "plan/cells.h"
#include "plan/files.h"
#include "plan/rehearse.h"
#include "plan/worker.h"
#include "rundir/attempt.h"

/* Values longer than this are not set as HPCGRID_<KEY>: the kernel takes 128 KiB a variable. The workload finds them in
 * the cell's file. */
#define VARIABLE_MAX (100 * 1024)

/* ---- The cell ---- */

static long long job_count(const struct hg_job *job, const char *key)
{
    json_int_t v = json_integer_value(json_object_get(json_object_get(job->batch, "job"), key));

    return v > 0 ? v : 1;
}

static unsigned variable(const char *name)
{
    const char *value = getenv(name);

    return value ? (unsigned)strtoul(value, NULL, 10) : 0;
}

static int find_cell(struct hg_job *job, struct hg_err *err)
{
    job->plan = hg_plan_read(job->rd.path, err);
    if (!job->plan)
        return -1;
    job->batch =
        json_array_get(json_object_get(job->plan, "batches"), (size_t)job->batch_number - 1);
    if (!json_object_get(job->batch, "job"))
        return hg_err_set(err, HG_E_INPUT, "%s has no batch %d", job->rd.path, job->batch_number);
    job->line = hg_plan_read_cell(job->rd.path, job->batch_number, job->line_number, err);
    if (!job->line)
        return -1;
    job->cell = json_object_get(job->line, "cell");
    job->id = json_string_value(json_object_get(job->line, "id"));
    if (!job->id || !json_is_object(job->cell) || !hg_attempt_is_file_name(job->id))
        return hg_err_set(err, HG_E_INPUT, "%s: line %zu of batch %d is not a cell", job->rd.path,
                          job->line_number + 1, job->batch_number);
    return 0;
}

int hg_job_load(const char *run, int batch, size_t line, struct hg_job *job, struct hg_err *err)
{
    *job = (struct hg_job){ .batch_number = batch,
                            .line_number = line,
                            .restarts = variable("SLURM_RESTART_COUNT") };
    if (hg_rundir_find("", run, &job->rd, err) < 0 || find_cell(job, err) < 0)
        return -1;
    job->run_key = json_string_value(json_object_get(job->plan, "run_key"));
    job->site = json_object_get(job->plan, "site");
    job->workload = json_object_get(job->plan, "workload");
    job->rehearsal = json_object_get(job->site, "rehearsal");
    job->shrink = json_is_true(json_object_get(job->rehearsal, "shrink"));
    job->nodes = job_count(job, "nodes");
    job->tasks_per_node = job_count(job, "tasks_per_node");
    job->tasks = job->nodes * job->tasks_per_node;
    job->cpus_per_task = job_count(job, "cpus_per_task");
    job->time_s = json_number_value(json_object_get(json_object_get(job->batch, "job"), "time_s"));
    if (json_integer_value(json_object_get(job->batch, "together")) > 1)
        job->own_s = hg_cell_time_s(job->cell);
    job->lead_s =
        json_integer_value(json_object_get(json_object_get(job->batch, "job"), "signal_lead_s"));
    job->gpu = json_is_true(json_object_get(job->batch, "gpu"));
    job->heartbeat_s = hg_plan_heartbeat_s(job->site);
    job->virtual_nodes =
        !hg_where_head(job->head, sizeof job->head) && getenv("SLURM_JOB_NODELIST");
    return 0;
}

static bool is_removed(const struct hg_job *job)
{
    const char *text = json_string_value(json_object_get(job->batch, "removed"));
    struct hg_ranges set = HG_RANGES_INIT;
    bool is = false;

    if (text && hg_ranges_parse(text, UINT32_MAX - 1, &set, NULL) == 0)
        is = hg_ranges_has(&set, (uint32_t)job->line_number);
    hg_ranges_done(&set);
    return is;
}

bool hg_job_is_wanted(const struct hg_job *job, const char *request, char why[static 256])
{
    const char *now = json_string_value(json_object_get(job->batch, "request"));
    bool removed = is_removed(job);
    bool outdated = request && now && strcmp(request, now) != 0;

    if (removed)
        snprintf(why, 256, "the matrix has no such cell any more");
    else if (outdated)
        snprintf(
            why, 256,
            "the site or the matrix was corrected after it was submitted; it is submitted again");
    return !removed && !outdated;
}

void hg_job_done(struct hg_job *job)
{
    json_decref(job->plan);
    json_decref(job->line);
    hg_rundir_done(&job->rd);
}

/* ---- What starts its ranks ---- */

/* An attempt's folder, for which something is made. */
struct making {
    const struct hg_job *job;
    const char *dir;
    struct hg_template_vars vars;
};

static struct making begin(const struct hg_job *job, const char *dir)
{
    return (struct making){
        .job = job,
        .dir = dir,
        .vars = { .cell = job->cell, .dir = dir, .head = job->head, .id = job->id },
    };
}

/* ---- The attempt's files ---- */

/* Texts of parameters may name the attempt's folder and what else placeholders are. */
static void fill_placeholders(const struct making *m, json_t *cell)
{
    const char *key;
    json_t *value;
    void *next;

    json_object_foreach_safe(cell, next, key, value) {
        struct hg_buf text = HG_BUF_INIT;
        bool absent = false;

        if (json_is_string(value) && strstr(json_string_value(value), "{{")) {
            hg_template_text(json_string_value(value), &m->vars, &text, &absent);
            if (absent)
                json_object_del(cell, key);
            else
                json_object_set_new(cell, key, json_string(hg_buf_str(&text)));
        }
        hg_buf_done(&text);
    }
}

/* What hpcgrid-worker reads: it uses the backend of the site's hardware unless the cell sets one; in a rehearsal the CPU. */
static json_t *cell_of_worker(const struct making *m, json_t *cell)
{
    const json_t *backend = json_object_get(m->job->batch, "backend");
    json_t *rehearsed;

    fill_placeholders(m, cell);
    if (json_is_string(backend) && !json_object_get(cell, "backend"))
        json_object_set(cell, "backend", (json_t *)backend);
    if (!m->job->rehearsal)
        return cell;
    rehearsed = hg_rehearse_cell(m->job->rehearsal, cell, m->dir);
    json_decref(cell);
    return rehearsed;
}

/* cell.json: the members that the workload may see. */
static int write_cell(const struct making *m, struct hg_err *err)
{
    json_t *cell = json_object();
    const char *key;
    json_t *value;
    char *path = hg_fs_join(m->dir, "cell.json");
    int rc;

    json_object_foreach((json_t *)m->job->cell, key, value)
        if (key[0] != '_')
            json_object_set(cell, key, value);
    if (json_object_get(m->job->workload, "program"))
        cell = cell_of_worker(m, cell);
    rc = hg_attempt_write_json(path, cell, err);
    free(path);
    json_decref(cell);
    return rc;
}

static int write_files(const struct making *m, struct hg_err *err)
{
    const char *name;
    json_t *text;
    int rc = 0;

    json_object_foreach(json_object_get(m->job->workload, "files"), name, text) {
        struct hg_buf out = HG_BUF_INIT;
        char *path = hg_fs_join(m->dir, name);

        if (!hg_attempt_is_file_name(name) || hg_workload_is_own_file(name))
            rc = hg_err_set(err, HG_E_INPUT, "workload/files: \"%s\" cannot be a file's name here",
                            name);
        else {
            hg_template_lines(json_string_value(text), &m->vars, &out);
            rc = hg_attempt_write(path, &out, err);
        }
        hg_buf_done(&out);
        free(path);
        if (rc < 0)
            return -1;
    }
    return 0;
}

int hg_launch_write_files(const struct hg_job *job, const char *dir, struct hg_err *err)
{
    struct making m = begin(job, dir);

    return write_cell(&m, err) < 0 || write_files(&m, err) < 0 ? -1 : 0;
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

static void add_members(const struct making *m, json_t *env)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)m->job->cell, key, value) {
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

static void add_templates(const struct making *m, const json_t *from, json_t *env)
{
    const char *name;
    json_t *text;

    json_object_foreach((json_t *)from, name, text) {
        struct hg_buf value = HG_BUF_INIT;
        bool absent = false;

        hg_template_text(json_string_value(text), &m->vars, &value, &absent);
        if (!absent)
            json_object_set_new(env, name, json_string(hg_buf_str(&value)));
        hg_buf_done(&value);
    }
}

static void set_path(const struct making *m, json_t *env, const char *name, const char *file)
{
    char *path = hg_fs_join(m->dir, file);

    json_object_set_new(env, name, json_string(path));
    free(path);
}

/* Open MPI names its shared memory by host and local rank, so ranks of two virtual nodes would share one segment by mistake. Its ranks
 * also spin while they wait, on cores that they share. Release 5 cannot connect by TCP from a network address of this host to the same
 * address, but can over the loopback; and when a rank is gone it ends the others at once, before they can report in which collective,
 * unless it is set to return errors. In a rehearsal the site's own settings are for another network. */
static void add_virtual(const struct making *m, json_t *env)
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
        if (m->job->rehearsal || !json_object_get(env, settings[i][0]))
            json_object_set_new(env, settings[i][0], json_string(settings[i][1]));
}

/* The variables that every rank gets; a site or workload may have set threads and port itself. */
static void add_promises(const struct making *m, json_t *env)
{
    char number[24];

    set_path(m, env, "HPCGRID_CELL", "cell.json");
    set_path(m, env, "HPCGRID_RESULT", "workload.json");
    json_object_set_new(env, "HPCGRID_RUN", json_string(m->job->rd.path));
    json_object_set_new(env, "HPCGRID_ATTEMPT", json_string(m->dir));
    if (!json_object_get(env, "MASTER_ADDR"))
        json_object_set_new(env, "MASTER_ADDR", json_string(m->job->head));
    snprintf(number, sizeof number, "%d", hg_where_port());
    if (!json_object_get(env, "MASTER_PORT"))
        json_object_set_new(env, "MASTER_PORT", json_string(number));
    snprintf(number, sizeof number, "%lld", m->job->cpus_per_task);
    if (m->job->shrink && m->job->tasks > HG_REHEARSE_MPI_RANKS)
        json_object_set_new(env, "HPCGRID_COMM", json_string("tcp"));
    if (m->job->shrink) { /* many ranks share few cores, and nobody looks at their times */
        json_object_set_new(env, "HPCGRID_REHEARSAL", json_string("1"));
        json_object_set_new(env, "OMP_NUM_THREADS", json_string("1"));
    }
    if (!json_object_get(env, "OMP_NUM_THREADS"))
        json_object_set_new(env, "OMP_NUM_THREADS", json_string(number));
}

/* A later setting of a variable wins: the site's, the cell's members, the workload's. */
static json_t *make_environment(const struct making *m)
{
    json_t *env = json_object();

    add_templates(m, json_object_get(m->job->site, "env"), env);
    add_members(m, env);
    add_templates(m, json_object_get(m->job->workload, "env"), env);
    add_promises(m, env);
    if (m->job->virtual_nodes)
        add_virtual(m, env);
    return env;
}

/* What the ranks need to begin. A new reference. */
static json_t *make_ranks(const struct making *m, bool direct)
{
    json_t *root = json_object();

    json_object_set(root, "cwd", json_object_get(m->job->workload, "cwd"));
    json_object_set_new(root, "tasks", json_integer(m->job->tasks));
    json_object_set_new(root, "tasks_per_node", json_integer(m->job->tasks_per_node));
    json_object_set_new(root, "direct", json_boolean(direct));
    json_object_set_new(root, "gpu", json_boolean(m->job->gpu));
    json_object_set_new(root, "worker",
                        json_boolean(!json_object_get(m->job->workload, "command")));
    if (m->job->virtual_nodes) /* elsewhere ranks are bound, and each host has its own number */
        json_object_set_new(root, "cores", json_integer(hg_proc_cpus()));
    json_object_set_new(root, "env", make_environment(m));
    return root;
}

/* ---- The command line ---- */

static void push_number(struct hg_words *words, const char *option, long long value)
{
    char text[64];

    snprintf(text, sizeof text, "%s%lld", option, value);
    hg_words_push(words, text);
}

/* srun since 22.05 does not inherit the job's CPUs per task, so every option is given. Options of the site or
 * the matrix come later and win. */
static void push_srun_options(const struct hg_job *job, struct hg_words *words)
{
    push_number(words, "--nodes=", job->nodes);
    push_number(words, "--ntasks=", job->tasks);
    push_number(words, "--ntasks-per-node=", job->tasks_per_node);
    push_number(words, "--cpus-per-task=", job->cpus_per_task);
    hg_words_push(words, "--kill-on-bad-exit=1");
    hg_words_push(words, "--export=ALL");
    hg_words_push(words, "--input=none");
}

/* The site's words for a cell that runs in a container: options of the launcher, or a program that
 * starts the workload's. */
static int push_container(const struct making *m, bool options, struct hg_words *words,
                          struct hg_err *err)
{
    const json_t *site = json_object_get(m->job->site, "container");
    const char *first = json_string_value(json_array_get(site, 0));

    if (!json_is_string(json_object_get(m->job->cell, "container")) || !first ||
        (first[0] == '-') != options)
        return 0;
    if (options && !words->n)
        return hg_err_set(
            err, HG_E_INPUT,
            "the site's \"container\" is options of a launcher, and \"launch\" is []");
    return hg_template_words(site, &m->vars, words, err);
}

static int push_launcher(const struct making *m, struct hg_words *words, struct hg_err *err)
{
    const json_t *launch = json_object_get(m->job->workload, "launch");
    const json_t *site = json_object_get(m->job->site, "launcher");
    struct hg_words given = HG_WORDS_INIT;
    int rc = hg_template_words(launch ? launch : site, &m->vars, &given, err);

    for (size_t i = 0; rc == 0 && i < given.n; i++) {
        hg_words_push(words, given.items[i]);
        if (i == 0 && strcmp(basename(given.items[0]), "srun") == 0)
            push_srun_options(m->job, words);
        if (i == 0 && strncmp(basename(given.items[0]), "mpi", 3) == 0) {
            hg_words_push(words, "-n");
            push_number(words, "", m->job->tasks);
        }
    }
    if (rc == 0)
        rc = push_container(m, true, words, err);
    hg_words_done(&given);
    return rc;
}

/* The workload's command. */
static int push_command(const struct making *m, struct hg_words *words, struct hg_err *err)
{
    const json_t *command = json_object_get(m->job->workload, "command");
    size_t before = words->n;
    char *worker, *cell;

    if (command) {
        if (hg_template_words(command, &m->vars, words, err) < 0)
            return -1;
        if (words->n == before)
            return hg_err_set(err, HG_E_INPUT, "the command has no words left for this cell");
        return 0;
    }
    worker = hg_worker_find();
    cell = hg_fs_join(m->dir, "cell.json");
    hg_words_push(words, worker);
    hg_words_push(words, "train");
    hg_words_push(words, "--cell");
    hg_words_push(words, cell);
    free(worker);
    free(cell);
    return 0;
}

static int make_words(const struct making *m, struct hg_launch *l, struct hg_err *err)
{
    char *self = hg_fs_self(err);
    int rc = self ? push_launcher(m, &l->words, err) : -1;

    if (rc == 0) {
        l->direct = l->words.n == 0;
        hg_words_push(&l->words, self);
        hg_words_push(&l->words, "exec");
        hg_words_push(&l->words, "--rank");
        hg_words_push(&l->words, "--attempt");
        hg_words_push(&l->words, m->dir);
        hg_words_push(&l->words, "--");
        rc = push_container(m, false, &l->words, err);
    }
    if (rc == 0)
        rc = push_command(m, &l->words, err);
    free(self);
    return rc;
}

json_t *hg_launch_make(const struct hg_job *job, const char *dir, struct hg_launch *l,
                       struct hg_err *err)
{
    struct making m = begin(job, dir);

    *l = (struct hg_launch){ .words = HG_WORDS_INIT };
    return make_words(&m, l, err) == 0 ? make_ranks(&m, l->direct) : NULL;
}

void hg_launch_done(struct hg_launch *l)
{
    hg_words_done(&l->words);
}
