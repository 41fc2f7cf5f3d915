/* SPDX-License-Identifier: Apache-2.0 */
/* The job object of a request: fields, checks, names, environment. */
#include "slurm/common/job.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fields.h"
#include "base/fs.h"
#include "base/vec.h"

#define SCRIPT_MAX ((size_t)4 << 20) /* slurmctld's own limit unless the site changed it */
#define NAME_MAX_SLURM 1024

extern char **environ;

#define AT(member) offsetof(struct hg_agent_fields, member)

static const struct hg_field job_fields[] = {
    { "key", HG_J_STRING, AT(key), HG_J_REQUIRED, .doc = "32 hex digits" },
    { "name", HG_J_STRING, AT(name), HG_J_REQUIRED, .doc = "job name" },
    { "script", HG_J_STRING, AT(script), HG_J_REQUIRED, .doc = "path of the batch script" },
    { "work_dir", HG_J_STRING, AT(work_dir), HG_J_REQUIRED, .doc = "where the script starts" },
    { "output", HG_J_STRING, AT(output), HG_J_REQUIRED, .doc = "path pattern" },
    { "args", HG_J_STRINGS, AT(args), .doc = "arguments of the script" },
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

static int check_key(const struct hg_agent_fields *f, struct hg_err *err)
{
    char carried[4 + HG_AGENT_KEY_DIGITS];

    if (strlen(f->key) != HG_AGENT_KEY_DIGITS ||
        strspn(f->key, "0123456789abcdef") != HG_AGENT_KEY_DIGITS)
        return hg_err_set(err, HG_E_BUG, "job: key \"%s\" is not 32 lower-case hex digits", f->key);
    snprintf(carried, sizeof carried, "hg-%s", f->key);
    if (!strstr(f->output, carried))
        return hg_err_set(err, HG_E_BUG, "job: output \"%s\" does not contain %s", f->output,
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
        return refuse(err, what, path, "is not a folder");
    if (access(path, mode) != 0)
        return refuse(err, what, path, strerror(errno));
    return 0;
}

static int check_places(const struct hg_agent_fields *f, struct hg_err *err)
{
    char *folder = hg_fs_dirname(f->output);
    int rc;

    if (strchr(folder, '%'))
        rc = refuse(err, "folder of the output", folder,
                    "Slurm does not create folders, so it cannot be a pattern");
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
        return refuse(err, "script", job->f.script, "has DOS line endings");
    return 0;
}

static int check_all(struct hg_agent_job *job, struct hg_err *err)
{
    const struct hg_agent_fields *f = &job->f;

    if (check_key(f, err) < 0 || check_text("name", f->name, err) < 0 ||
        check_text("output", f->output, err) < 0 || check_places(f, err) < 0 ||
        load_script(job, err) < 0)
        return -1;
    if (!f->name[0] || strlen(f->name) + HG_AGENT_KEY_DIGITS + 8 > NAME_MAX_SLURM)
        return refuse(err, "name", f->name, "is empty or too long");
    if (f->array && (!f->array[0] || strspn(f->array, "0123456789,-") != strlen(f->array)))
        return hg_err_set(err, HG_E_BUG, "job: array \"%s\" is not an index set", f->array);
    return 0;
}

/* ---- environment ---- */

/* What a job may see of the caller's environment. The rest may hold tokens and passwords, and job
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

static bool has_env(const struct hg_agent_job *job, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < job->env.n; i++)
        if (strncmp(job->env.items[i], name, n) == 0 && job->env.items[i][n] == '=')
            return true;
    return false;
}

/* From cron there may be no USER. */
static void add_missing(struct hg_agent_job *job)
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
        if (!has_env(job, defaults[i].name))
            hg_agent_words_take(&job->env,
                                hg_str_printf("%s=%s", defaults[i].name, defaults[i].value));
}

void hg_agent_job_add_slurm_env(struct hg_agent_job *job)
{
    const struct hg_agent_fields *f = &job->f;
    struct hg_agent_words *env = &job->env;
    long long tasks = f->nodes * f->tasks_per_node;
    mode_t mask = umask(0);
    char host[256] = "";

    umask(mask);
    gethostname(host, sizeof host - 1);
    hg_agent_words_take(env, hg_str_printf("SLURM_SUBMIT_DIR=%s", f->work_dir));
    hg_agent_words_take(env, hg_str_printf("SLURM_SUBMIT_HOST=%s", host));
    hg_agent_words_take(env, hg_str_printf("SLURM_JOB_NAME=%s", job->name));
    hg_agent_words_take(env, hg_str_printf("SLURM_UMASK=0%03o", (unsigned)mask));
    hg_agent_words_take(env, hg_str_printf("SLURM_PRIO_PROCESS=%d", getpriority(PRIO_PROCESS, 0)));
    hg_agent_words_take(env, hg_str_printf("SLURM_NTASKS=%lld", tasks));
    hg_agent_words_take(env, hg_str_printf("SLURM_NPROCS=%lld", tasks));
    hg_agent_words_take(env, hg_str_printf("SLURM_NTASKS_PER_NODE=%lld", f->tasks_per_node));
    hg_agent_words_take(env, hg_str_printf("SLURM_CPUS_PER_TASK=%lld", f->cpus_per_task));
}

static void make_env(struct hg_agent_job *job)
{
    for (char **e = environ; *e; e++)
        if (is_allowed(*e))
            hg_agent_words_take(&job->env, hg_strdup(*e));
    add_missing(job);
}

/* ---- the whole ---- */

static void make_names(struct hg_agent_job *job)
{
    const struct hg_agent_fields *f = &job->f;

    job->comment = hg_str_printf("hg-%s", f->key);
    job->name = strstr(f->name, job->comment) ? hg_strdup(f->name)
                                              : hg_str_printf("%s.%s", f->name, job->comment);
}

static int read_options(struct hg_agent_job *job, struct hg_err *err)
{
    if (hg_sbatch_read(job->f.extra, &job->options, err) < 0)
        return -1;
    for (size_t i = 0; i < job->options.n; i++)
        if (strcmp(job->options.items[i].name, "mem-per-cpu") == 0 && job->f.mem_mib >= 0)
            return hg_err_set(err, HG_E_REFUSED,
                              "--mem-per-cpu: the job also requests memory per node");
    return 0;
}

static int decode(struct hg_agent_call *call, const json_t *object, struct hg_agent_fields *f)
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

int hg_agent_job_read(struct hg_agent_job *job, struct hg_agent_call *call)
{
    const json_t *object = json_object_get(call->request->root, "job");

    *job = (struct hg_agent_job){ .script = HG_BUF_INIT };
    if (!json_is_object(object))
        return hg_err_set(&call->err, HG_E_BUG, "\"job\" is missing or not an object");
    if (decode(call, object, &job->f) < 0)
        return -1;
    job->f.requeue_is_said = json_object_get(object, "requeue") != NULL;
    if (check_all(job, &call->err) < 0)
        return -1;
    make_names(job);
    make_env(job);
    return read_options(job, &call->err);
}

void hg_agent_job_done(struct hg_agent_job *job)
{
    hg_agent_words_done(&job->env);
    free(job->comment);
    free(job->name);
    HG_VEC_DONE(&job->options);
    hg_buf_done(&job->script);
    hg_json_release(job_fields, &job->f);
    *job = (struct hg_agent_job){ .script = HG_BUF_INIT };
}

unsigned hg_agent_job_minutes(const struct hg_agent_fields *f)
{
    return (unsigned)((f->time_s + 59.999) / 60);
}

void hg_agent_job_name_request(const struct hg_agent_fields *f, char out[static 256])
{
    const struct {
        const char *what, *value;
    } parts[] = {
        { "partition", f->partition },
        { "account", f->account },
        { "qos", f->qos },
        { "gres", f->gres },
        { "constraint", f->constraint },
        { "licenses", f->licenses },
        { "reservation", f->reservation },
    };
    int n = 0;

    out[0] = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].value && n < 255)
            n += snprintf(out + n, (size_t)(256 - n), "%s%s %s", n ? ", " : " (", parts[i].what,
                          parts[i].value);
    if (n && n < 255)
        snprintf(out + n, (size_t)(256 - n), ")");
}
