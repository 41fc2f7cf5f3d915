/* SPDX-License-Identifier: Apache-2.0 */
/* From the job object of a request to the descriptor that libslurm sends. */
#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/agent.h"
#include "base/fs.h"

#define SCRIPT_MAX ((size_t)4 << 20) /* slurmctld's own limit unless the site changed it */
#define KEY_DIGITS 32
#define NAME_MAX_SLURM 1024
#define ENV_MAX 128

extern char **environ;

struct fields {
    char *key, *name, *script, *work_dir, *output, *array, *gres;
    char *partition, *account, *qos, *constraint, *reservation, *licenses;
    char **args, **extra;
    long long running_max, nodes, tasks_per_node, cpus_per_task, mem_mib, signal_lead_s;
    double time_s;
    bool requeue;
};

struct hg_agent_job {
    struct fields f;
    job_desc_msg_t desc;
    struct hg_buf script;
    struct hg_agent_keeper keeper;
    char *env[ENV_MAX + 1];
    size_t n_env;
    char **argv;
};

#define AT(member) offsetof(struct fields, member)

static const struct hg_field job_fields[] = {
    { "key", HG_J_STRING, AT(key), HG_J_REQUIRED, .doc = "32 hex digits" },
    { "name", HG_J_STRING, AT(name), HG_J_REQUIRED, .doc = "job name" },
    { "script", HG_J_STRING, AT(script), HG_J_REQUIRED, .doc = "path of the batch script" },
    { "work_dir", HG_J_STRING, AT(work_dir), HG_J_REQUIRED, .doc = "where the script starts" },
    { "output", HG_J_STRING, AT(output), HG_J_REQUIRED, .doc = "path pattern" },
    { "args", HG_J_STRINGS, AT(args), .doc = "words behind the script" },
    { "array", HG_J_STRING, AT(array), .doc = "index set" },
    { "running_max", HG_J_INT, AT(running_max), .min = 1, .max = 1e9, .doc = "the array's %N" },
    { "nodes", HG_J_INT, AT(nodes), .min = 1, .max = 1e6, .doc = "nodes" },
    { "tasks_per_node", HG_J_INT, AT(tasks_per_node), .min = 1, .max = 65000, .doc = "tasks" },
    { "cpus_per_task", HG_J_INT, AT(cpus_per_task), .min = 1, .max = 65000, .doc = "CPUs" },
    { "gres", HG_J_STRING, AT(gres), .doc = "per node" },
    { "mem_mib", HG_J_INT, AT(mem_mib), .min = 0, .max = 1e12, .doc = "per node" },
    { "time_s", HG_J_REAL, AT(time_s), .min = 1, .max = 1e9, .doc = "limit" },
    { "partition", HG_J_STRING, AT(partition), .doc = "partition" },
    { "account", HG_J_STRING, AT(account), .doc = "account" },
    { "qos", HG_J_STRING, AT(qos), .doc = "QOS" },
    { "constraint", HG_J_STRING, AT(constraint), .doc = "features" },
    { "reservation", HG_J_STRING, AT(reservation), .doc = "reservation" },
    { "licenses", HG_J_STRING, AT(licenses), .doc = "licences" },
    { "signal_lead_s", HG_J_INT, AT(signal_lead_s), .min = 1, .max = 65000, .doc = "USR1 before" },
    { "requeue", HG_J_BOOL, AT(requeue), .doc = "requeue after a node failure" },
    { "extra", HG_J_STRINGS, AT(extra), .doc = "sbatch options" },
    { 0 },
};

/* ---- the checks that sbatch does, and a few more ---- */

static int refuse(struct hg_err *err, const char *what, const char *value, const char *why)
{
    return hg_err_set(err, HG_E_REFUSED, "%s \"%s\": %s", what, value, why);
}

static int check_key(const struct fields *f, struct hg_err *err)
{
    char carried[4 + KEY_DIGITS];

    if (strlen(f->key) != KEY_DIGITS || strspn(f->key, "0123456789abcdef") != KEY_DIGITS)
        return hg_err_set(err, HG_E_BUG, "job: key \"%s\" is not 32 lower-case hex digits", f->key);
    snprintf(carried, sizeof carried, "hg-%s", f->key);
    if (!strstr(f->output, carried))
        return hg_err_set(err, HG_E_BUG, "job: output \"%s\" does not carry %s", f->output,
                          carried);
    return 0;
}

/* Slurm takes a name with a newline and then writes broken accounting lines. */
static int check_text(const char *what, const char *value, struct hg_err *err)
{
    for (const char *p = value; value && *p; p++)
        if (iscntrl((unsigned char)*p))
            return refuse(err, what, "...", "contains a control character");
    return 0;
}

static int check_folder(const char *what, const char *path, int mode, struct hg_err *err)
{
    if (path[0] != '/')
        return refuse(err, what, path, "is not an absolute path");
    if (!hg_fs_is_dir(path))
        return refuse(err, what, path, "is no folder");
    if (access(path, mode) != 0)
        return refuse(err, what, path, strerror(errno));
    return 0;
}

static int check_places(const struct fields *f, struct hg_err *err)
{
    char *folder = hg_fs_dirname(f->output);
    int rc;

    if (!folder)
        return hg_err_oom(err);
    if (strchr(folder, '%'))
        rc = refuse(err, "folder of the output", folder,
                    "Slurm makes no folders, so it cannot be a pattern");
    else
        rc = check_folder("folder of the output", folder, W_OK | X_OK, err);
    free(folder);
    if (rc == 0)
        rc = check_folder("work_dir", f->work_dir, X_OK, err);
    return rc;
}

static int load_script(struct hg_agent_job *job, struct hg_err *err)
{
    const struct hg_buf *text = &job->script;

    if (job->f.script[0] != '/')
        return refuse(err, "script", job->f.script, "is not an absolute path");
    if (hg_fs_read(job->f.script, SCRIPT_MAX, &job->script, err) < 0) {
        err->code = HG_E_REFUSED;
        return hg_err_wrap(err, "script");
    }
    if (text->len < 2 || memcmp(text->data, "#!", 2) != 0)
        return refuse(err, "script", job->f.script, "does not begin with #!");
    if (memchr(text->data, 0, text->len))
        return refuse(err, "script", job->f.script, "contains a NUL byte");
    if (memchr(text->data, '\r', text->len))
        return refuse(err, "script", job->f.script, "has DOS line ends");
    return 0;
}

static int check(struct hg_agent_job *job, struct hg_err *err)
{
    const struct fields *f = &job->f;

    if (check_key(f, err) < 0 || check_text("name", f->name, err) < 0 ||
        check_text("output", f->output, err) < 0 || check_places(f, err) < 0 ||
        load_script(job, err) < 0)
        return -1;
    if (!f->name[0] || strlen(f->name) + KEY_DIGITS + 8 > NAME_MAX_SLURM)
        return refuse(err, "name", f->name, "is empty or too long");
    if (f->array && (!f->array[0] || strspn(f->array, "0123456789,-") != strlen(f->array)))
        return hg_err_set(err, HG_E_BUG, "job: array \"%s\" is no index set", f->array);
    return 0;
}

/* ---- environment ---- */

/* What a job may see of the caller's environment. Tokens and passwords live in the rest, and job
 * records are kept for years. */
static bool is_allowed(const char *assignment)
{
    static const char *const names[] = { "HOME",
                                         "USER",
                                         "LOGNAME",
                                         "SHELL",
                                         "PATH",
                                         "LANG",
                                         "LANGUAGE",
                                         "TZ",
                                         "MODULEPATH",
                                         "MODULESHOME",
                                         "MODULES_CMD",
                                         "BASH_ENV",
                                         "LD_LIBRARY_PATH",
                                         "SLURM_CONF" };
    size_t n = strcspn(assignment, "=");

    if (strncmp(assignment, "LC_", 3) == 0 || strncmp(assignment, "LMOD_", 5) == 0)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && strncmp(names[i], assignment, n) == 0)
            return true;
    return false;
}

static int add_env(struct hg_agent_job *job, char *assignment, struct hg_err *err)
{
    if (!assignment)
        return hg_err_oom(err);
    if (job->n_env == ENV_MAX) {
        free(assignment);
        return hg_err_set(err, HG_E_REFUSED, "more than %d environment variables", ENV_MAX);
    }
    job->env[job->n_env++] = assignment;
    return 0;
}

static bool has_env(const struct hg_agent_job *job, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < job->n_env; i++)
        if (strncmp(job->env[i], name, n) == 0 && job->env[i][n] == '=')
            return true;
    return false;
}

/* From cron there may be no USER. */
static int add_missing(struct hg_agent_job *job, struct hg_err *err)
{
    const struct passwd *pw = getpwuid(getuid());
    const struct {
        const char *name, *value;
    } defaults[] = {
        { "PATH", "/usr/local/bin:/usr/bin:/bin" },
        { "HOME", pw ? pw->pw_dir : "/" },
        { "USER", pw ? pw->pw_name : "nobody" },
        { "LOGNAME", pw ? pw->pw_name : "nobody" },
    };

    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if (!has_env(job, defaults[i].name) &&
            add_env(job, hg_str_printf("%s=%s", defaults[i].name, defaults[i].value), err) < 0)
            return -1;
    return 0;
}

/* What sbatch adds, because programs in the job read it. */
static int add_slurm(struct hg_agent_job *job, struct hg_err *err)
{
    const struct fields *f = &job->f;
    long long tasks = f->nodes * f->tasks_per_node;
    mode_t mask = umask(0);
    char host[256] = "";

    umask(mask);
    gethostname(host, sizeof host - 1);
    if (add_env(job, hg_str_printf("SLURM_SUBMIT_DIR=%s", f->work_dir), err) < 0 ||
        add_env(job, hg_str_printf("SLURM_SUBMIT_HOST=%s", host), err) < 0 ||
        add_env(job, hg_str_printf("SLURM_JOB_NAME=%s", job->desc.name), err) < 0 ||
        add_env(job, hg_str_printf("SLURM_UMASK=0%03o", (unsigned)mask), err) < 0 ||
        add_env(job, hg_str_printf("SLURM_PRIO_PROCESS=%d", getpriority(PRIO_PROCESS, 0)), err) < 0)
        return -1;
    if (add_env(job, hg_str_printf("SLURM_NTASKS=%lld", tasks), err) < 0 ||
        add_env(job, hg_str_printf("SLURM_NPROCS=%lld", tasks), err) < 0 ||
        add_env(job, hg_str_printf("SLURM_NTASKS_PER_NODE=%lld", f->tasks_per_node), err) < 0 ||
        add_env(job, hg_str_printf("SLURM_CPUS_PER_TASK=%lld", f->cpus_per_task), err) < 0)
        return -1;
    return 0;
}

static int make_env(struct hg_agent_job *job, struct hg_err *err)
{
    for (char **e = environ; *e; e++)
        if (is_allowed(*e) && add_env(job, strdup(*e), err) < 0)
            return -1;
    if (add_missing(job, err) < 0 || add_slurm(job, err) < 0)
        return -1;
    job->desc.environment = job->env;
    job->desc.env_size = (uint32_t)job->n_env;
    return 0;
}

/* ---- descriptor ---- */

static char *keep(struct hg_agent_job *job, char *s, struct hg_err *err)
{
    return hg_agent_keep(&job->keeper, s, err);
}

static int set_names(struct hg_agent_job *job, struct hg_err *err)
{
    const struct fields *f = &job->f;

    job->desc.comment = keep(job, hg_str_printf("hg-%s", f->key), err);
    if (!job->desc.comment)
        return -1;
    if (strstr(f->name, job->desc.comment))
        job->desc.name = f->name;
    else
        job->desc.name = keep(job, hg_str_printf("%s.hg-%s", f->name, f->key), err);
    return job->desc.name ? 0 : -1;
}

/* "gpu:a100:2,nic:1" with Slurm's prefix before each part */
static int set_gres(struct hg_agent_job *job, struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;

    if (!job->f.gres || !job->f.gres[0])
        return 0;
    for (const char *p = job->f.gres; *p;) {
        size_t n = strcspn(p, ",");

        hg_buf_printf(&text, "%s" HG_AGENT_GRES "%.*s", text.len ? "," : "", (int)n, p);
        p += n + (p[n] == ',');
    }
    job->desc.tres_per_node = keep(job, hg_buf_detach(&text), err);
    return job->desc.tres_per_node ? 0 : -1;
}

static int set_array(struct hg_agent_job *job, struct hg_err *err)
{
    const struct fields *f = &job->f;

    if (!f->array)
        return 0;
    job->desc.array_inx = keep(job,
                               f->running_max ? hg_str_printf("%s%%%lld", f->array, f->running_max)
                                              : strdup(f->array),
                               err);
    return job->desc.array_inx ? 0 : -1;
}

static int set_argv(struct hg_agent_job *job, struct hg_err *err)
{
    size_t n = 0;

    while (job->f.args && job->f.args[n])
        n++;
    job->argv = calloc(n + 2, sizeof *job->argv);
    if (!job->argv)
        return hg_err_oom(err);
    job->argv[0] = job->f.script;
    for (size_t i = 0; i < n; i++)
        job->argv[i + 1] = job->f.args[i];
    job->desc.argv = job->argv;
    job->desc.argc = (uint32_t)(n + 1);
    return 0;
}

static void set_size(struct hg_agent_job *job)
{
    const struct fields *f = &job->f;
    job_desc_msg_t *d = &job->desc;

    d->min_nodes = d->max_nodes = (uint32_t)f->nodes;
    d->num_tasks = (uint32_t)(f->nodes * f->tasks_per_node);
    d->ntasks_per_node = (uint16_t)f->tasks_per_node;
    d->cpus_per_task = (uint16_t)f->cpus_per_task;
    d->min_cpus = (uint32_t)(d->num_tasks * f->cpus_per_task);
    d->bitflags |= JOB_NTASKS_SET | JOB_CPUS_SET;
    if (f->mem_mib >= 0)
        d->pn_min_memory = (uint64_t)f->mem_mib;
    if (f->time_s > 0)
        d->time_limit = (uint32_t)((f->time_s + 59.999) / 60);
}

static void set_rest(struct hg_agent_job *job)
{
    const struct fields *f = &job->f;
    job_desc_msg_t *d = &job->desc;

    d->partition = f->partition;
    d->account = f->account;
    d->qos = f->qos;
    d->features = f->constraint;
    d->reservation = f->reservation;
    d->licenses = f->licenses;
    d->work_dir = f->work_dir;
    d->std_in = (char *)"/dev/null";
    d->std_out = f->output;
    d->open_mode = OPEN_MODE_APPEND;
    d->script = job->script.data;
    d->user_id = getuid();
    d->group_id = getgid();
    if (f->signal_lead_s) {
        d->warn_signal = SIGUSR1;
        d->warn_time = (uint16_t)f->signal_lead_s;
    }
}

static int fill(struct hg_agent_job *job, const json_t *object, bool for_array, struct hg_err *err)
{
    slurm_init_job_desc_msg(&job->desc);
    if (set_names(job, err) < 0 || set_gres(job, err) < 0 || set_argv(job, err) < 0 ||
        (for_array && set_array(job, err) < 0))
        return -1;
    set_size(job);
    set_rest(job);
    if (json_object_get(object, "requeue"))
        job->desc.requeue = job->f.requeue;
    if (make_env(job, err) < 0)
        return -1;
    return hg_agent_extra(&job->desc, job->f.extra, &job->keeper, err);
}

static int decode(struct hg_agent_call *call, const json_t *object, struct fields *f)
{
    struct hg_errs errs = HG_ERRS_INIT;
    int rc;

    f->nodes = f->tasks_per_node = f->cpus_per_task = 1;
    f->mem_mib = -1;
    rc = hg_json_decode(call->request, object, "/job", job_fields, false, f, &errs);
    if (rc < 0) {
        call->err = errs.items[0];
        call->err.code = HG_E_BUG;
        hg_err_wrap(&call->err, "job%s", call->err.pointer + (call->err.pointer[0] ? 4 : 0));
    }
    hg_errs_done(&errs);
    return rc;
}

struct hg_agent_job *hg_agent_job_create(struct hg_agent_call *call, bool for_array)
{
    const json_t *object = json_object_get(call->request->root, "job");
    struct hg_agent_job *job = calloc(1, sizeof *job);

    if (!job) {
        hg_err_oom(&call->err);
        return NULL;
    }
    if (!json_is_object(object)) {
        hg_err_set(&call->err, HG_E_BUG, "\"job\" is missing or no object");
        goto fail;
    }
    if (decode(call, object, &job->f) < 0 || check(job, &call->err) < 0 ||
        fill(job, object, for_array, &call->err) < 0)
        goto fail;
    return job;
fail:
    hg_agent_job_free(job);
    return NULL;
}

job_desc_msg_t *hg_agent_job_desc(struct hg_agent_job *job)
{
    return &job->desc;
}

void hg_agent_job_free(struct hg_agent_job *job)
{
    if (!job)
        return;
    for (size_t i = 0; i < job->keeper.n; i++)
        free(job->keeper.strings[i]);
    for (size_t i = 0; i < job->n_env; i++)
        free(job->env[i]);
    free(job->argv);
    hg_buf_done(&job->script);
    hg_json_release(job_fields, &job->f);
    free(job);
}
