/* SPDX-License-Identifier: Apache-2.0 */
/* From the job object of a request to slurmrestd's JSON. v0.0.38 ("plain") has its own names for many
 * things; later versions use those of libslurm's descriptor. */
#include "slurm/rest/submit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "slurm/rest/server.h"

#define COMMENT_MAX 1000 /* Slurm takes 1,023 bytes */

/* A submission in the making. */
struct body {
    json_t *job;
    const char *option; /* NULL, or the sbatch option that is being added */
    struct hg_err *err;
};

/* Nothing is left out silently: newer slurmrestds only warn about an unknown member after the job was
 * submitted. The value's reference is taken; name NULL: there is no such member. */
static int put(struct body *b, const char *name, json_t *value)
{
    if (!name || !json_object_get(hg_rest.members, name)) {
        json_decref(value);
        if (b->option)
            return hg_err_set(b->err, HG_E_REFUSED,
                              "sbatch option --%s: slurmrestd (%s) does not support it", b->option,
                              hg_rest.api);
        return hg_err_set(b->err, HG_E_REFUSED, "slurmrestd (%s) does not support \"%s\" of a job",
                          hg_rest.api, name ? name : "");
    }
    json_object_set_new(b->job, name, value);
    return 0;
}

static int put_text(struct body *b, const char *name, const char *text)
{
    json_t *value;

    if (!text)
        return 0;
    value = json_string(text);
    if (!value)
        return hg_err_set(b->err, HG_E_REFUSED, "%s is not UTF-8: JSON cannot carry it", name);
    return put(b, name, value);
}

static int put_count(struct body *b, const char *name, long long number)
{
    return put(b, name, json_integer(number));
}

/* A number that may also be unset or infinite. */
static int put_number(struct body *b, const char *name, long long number)
{
    return put(b, name,
               hg_rest.plain ? json_integer(number)
                             : json_pack("{s:b, s:I}", "set", 1, "number", (json_int_t)number));
}

/* One text, or a list of one. */
static int put_word(struct body *b, const char *name, const char *plain, const char *newer)
{
    return put(b, name, hg_rest.plain ? json_string(plain) : json_pack("[s]", newer));
}

/* ---- sbatch options ---- */

/* Since 23.11 generic resources are "gres/gpu:2", before that "gres:gpu:2". */
static const char *gres_prefix(void)
{
    int major = 0, minor = 0;

    sscanf(hg_rest.release, "%d.%d", &major, &minor);
    return major * 100 + minor >= 2311 ? "gres/" : "gres:";
}

/* A moment, as Slurm's parser of times takes it where a text is required. */
static int put_moment(struct body *b, const char *name, const struct hg_sbatch_option *o)
{
    char text[32];

    snprintf(text, sizeof text, "uts%lld", o->number);
    if (hg_rest.plain)
        return put_text(b, name, text);
    return strcmp(name, "deadline") == 0 ? put_count(b, name, o->number)
                                         : put_number(b, name, o->number);
}

static int put_as_typed(struct body *b, const char *name, const struct hg_sbatch_option *o)
{
    return put_text(b, name, o->text);
}

static int put_its_count(struct body *b, const char *name, const struct hg_sbatch_option *o)
{
    return put_count(b, name, o->number);
}

static int put_its_number(struct body *b, const char *name, const struct hg_sbatch_option *o)
{
    return put_number(b, name, o->number);
}

static int put_yes(struct body *b, const char *name, const struct hg_sbatch_option *o)
{
    (void)o;
    return put(b, name, json_true());
}

/* "per GPU": sbatch's own value, or a descriptor's "gres/gpu:VALUE". */
static int put_per_gpu(struct body *b, const char *name, const struct hg_sbatch_option *o)
{
    bool is_text = strcmp(o->name, "gpu-bind") == 0;
    char *text = is_text ? hg_str_printf("%sgpu:%s", gres_prefix(), o->text)
                         : hg_str_printf("%sgpu:%lld", gres_prefix(), o->number);
    int rc;

    if (!hg_rest.plain)
        rc = put_text(b, name, text);
    else
        rc = is_text ? put_text(b, name, o->text) : put_count(b, name, o->number);
    free(text);
    return rc;
}

static int put_gpu_freq(struct body *b, const char *name, const struct hg_sbatch_option *o)
{
    char *text = hg_str_printf("gpu:%s", o->text);
    int rc = put_text(b, name, hg_rest.plain ? o->text : text);

    free(text);
    return rc;
}

static int put_exclusive(struct body *b, const char *name, const struct hg_sbatch_option *o)
{
    return put_word(b, name, o->text ? o->text : "exclusive", o->text ? o->text : "none");
}

static int put_oversubscribe(struct body *b, const char *name, const struct hg_sbatch_option *o)
{
    return hg_rest.plain ? put_yes(b, name, o) : put_word(b, name, "", "oversubscribe");
}

static int put_no_kill(struct body *b, const char *name, const struct hg_sbatch_option *o)
{
    (void)o;
    return put(b, name, hg_rest.plain ? json_string("set") : json_false());
}

/* With both, sbatch holds the job, whichever comes last. */
static int put_hold(struct body *b, const char *name, const struct hg_sbatch_option *o)
{
    json_object_del(b->job, "priority");
    return put_yes(b, name, o);
}

static int put_priority(struct body *b, const char *name, const struct hg_sbatch_option *o)
{
    if (json_object_get(b->job, "hold"))
        return 0;
    return hg_rest.plain ? put_text(b, name, o->text) : put_number(b, name, o->number);
}

/* "TIME_LIMIT_90" is "TIME=90%" here. */
static json_t *mail_kind(const char *kind)
{
    static const char limit[] = "TIME_LIMIT";

    if (strncmp(kind, limit, sizeof limit - 1) != 0)
        return json_string(kind);
    return json_sprintf("TIME=%s%%", kind[sizeof limit - 1] ? kind + sizeof limit : "100");
}

static int put_mail_type(struct body *b, const char *name, const struct hg_sbatch_option *o)
{
    json_t *kinds = json_array();

    if (hg_rest.plain) {
        json_decref(kinds);
        return put_text(b, name, o->text);
    }
    for (int i = 0; hg_sbatch_mail_kinds[i]; i++)
        if (o->number >> i & 1)
            json_array_append_new(kinds, mail_kind(hg_sbatch_mail_kinds[i]));
    return put(b, name, kinds);
}

static int put_switches(struct body *b, const char *name, const struct hg_sbatch_option *o)
{
    if (put_number(b, name, o->number) < 0)
        return -1;
    return o->wait_min < 0 ? 0 : put_count(b, "wait_for_switch", o->wait_min * 60);
}

static const struct {
    const char *name, *plain, *newer; /* NULL: not supported */
    int (*put)(struct body *b, const char *name, const struct hg_sbatch_option *o);
} options[] = {
    { "begin", "begin_time", "begin_time", put_moment },
    { "container", "container", "container", put_as_typed },
    { "contiguous", NULL, "contiguous", put_yes },
    { "core-spec", "core_specification", "core_specification", put_its_count },
    { "cores-per-socket", "cores_per_socket", "cores_per_socket", put_its_count },
    { "cpus-per-gpu", NULL, "cpus_per_tres", put_per_gpu }, /* v0.0.38: not with CPUs per task */
    { "deadline", "deadline", "deadline", put_moment },
    { "dependency", "dependency", "dependency", put_as_typed },
    { "exclude", NULL, "excluded_nodes", put_as_typed },
    { "exclusive", "exclusive", "shared", put_exclusive },
    { "gpu-bind", "gpu_binding", "tres_bind", put_per_gpu },
    { "gpu-freq", "gpu_frequency", "tres_freq", put_gpu_freq },
    { "hold", "hold", "hold", put_hold },
    { "mail-type", "mail_type", "mail_type", put_mail_type },
    { "mail-user", "mail_user", "mail_user", put_as_typed },
    { "mem-per-cpu", "memory_per_cpu", "memory_per_cpu", put_its_number },
    { "mem-per-gpu", "memory_per_gpu", "memory_per_tres", put_per_gpu },
    { "mincpus", "minimum_cpus_per_node", "minimum_cpus_per_node", put_its_count },
    { "network", NULL, "network", put_as_typed },
    { "nice", "nice", "nice", put_its_count },
    { "no-kill", "no_kill", "kill_on_node_fail", put_no_kill },
    { "nodelist", NULL, "required_nodes", put_as_typed },
    { "ntasks-per-core", "tasks_per_core", "tasks_per_core", put_its_count },
    { "oversubscribe", "oversubscribe", "shared", put_oversubscribe },
    { "prefer", "prefer", "prefer", put_as_typed },
    { "priority", "priority", "priority", put_priority },
    { "sockets-per-node", "sockets_per_node", "sockets_per_node", put_its_count },
    { "switches", NULL, "required_switches", put_switches },
    { "threads-per-core", "threads_per_core", "threads_per_core", put_its_count },
    { "time-min", "time_minimum", "time_minimum", put_its_number },
    { "tmp", NULL, "temporary_disk_per_node", put_its_count },
    { "wckey", "wckey", "wckey", put_as_typed },
};

static int put_options(struct body *b, const struct hg_agent_job *job)
{
    for (size_t i = 0; i < job->options.n; i++) {
        const struct hg_sbatch_option *o = &job->options.items[i];
        size_t k = 0;

        b->option = o->name;
        while (k < sizeof options / sizeof *options && strcmp(options[k].name, o->name) != 0)
            k++;
        if (k == sizeof options / sizeof *options)
            return put(b, NULL, json_null());
        if (options[k].put(b, hg_rest.plain ? options[k].plain : options[k].newer, o) < 0)
            return -1;
    }
    b->option = NULL;
    return 0;
}

/* ---- the rest of the job ---- */

/* slurmrestd 22.05 crashes on a job with arguments after it has sent it. So they are written into the script, behind its
 * first line. */
static int put_arguments_into_script(const struct hg_agent_job *job, struct hg_buf *script,
                                     struct hg_err *err)
{
    static const char *const shells[] = { "sh", "bash", "dash", "ksh", "zsh", NULL };
    const char *text = job->script.data, *line_end = text + strcspn(text, "\n");
    bool is_shell = false;

    for (const char *p = text + 2; p < line_end;) {
        size_t n = strcspn(p, " \t/\n");

        is_shell = is_shell || hg_text_is_one_of(p, n, shells);
        p += n + 1;
    }
    if (!is_shell)
        return hg_err_set(
            err, HG_E_REFUSED,
            "script \"%s\": with slurmrestd (%s) only a shell script can have arguments",
            job->f.script, hg_rest.api);
    hg_buf_append(script, text, (size_t)(line_end - text));
    hg_buf_puts(script, "\nset --");
    for (char *const *a = job->f.args; *a; a++) {
        hg_buf_puts(script, " ");
        hg_text_quote(*a, script);
    }
    hg_buf_puts(script, *line_end ? line_end : "\n");
    return 0;
}

static int put_script(struct body *b, json_t *root, const struct hg_agent_job *job)
{
    struct hg_buf text = HG_BUF_INIT;
    json_t *argv = hg_rest.plain ? NULL : json_pack("[s]", job->f.script), *script;
    /* 23.11's v0.0.40 looks for it nowhere else, that of later releases in both places. */
    bool beside = hg_rest.plain || strcmp(hg_rest.api, "v0.0.40") == 0;
    int rc = 0;

    for (char *const *a = job->f.args; argv && a && *a; a++)
        json_array_append_new(argv, json_string(*a));
    if (hg_rest.plain && job->f.args && *job->f.args)
        rc = put_arguments_into_script(job, &text, b->err);
    else
        hg_buf_append(&text, job->script.data, job->script.len);
    if (rc == 0 && argv)
        rc = put(b, "argv", argv);
    script = rc == 0 ? json_stringn(hg_buf_str(&text), text.len) : NULL;
    if (rc == 0 && !script)
        rc = hg_err_set(b->err, HG_E_REFUSED, "script \"%s\" is not UTF-8: JSON cannot carry it",
                        job->f.script);
    if (rc == 0)
        json_object_set_new(beside ? root : b->job, "script", script);
    hg_buf_done(&text);
    return rc;
}

static int put_environment(struct body *b, const struct hg_agent_job *job)
{
    json_t *all = hg_rest.plain ? json_object() : json_array();

    for (size_t i = 0; i < job->env.n; i++) {
        const char *line = job->env.items[i];
        char name[256];

        snprintf(name, sizeof name, "%.*s", (int)strcspn(line, "="), line);
        if (hg_rest.plain)
            json_object_set_new(all, name, json_string(line + strcspn(line, "=") + 1));
        else
            json_array_append_new(all, json_string(line));
    }
    return put(b, "environment", all);
}

/* The comment also carries the array; jobs.c has the reason. */
static int put_names(struct body *b, const struct hg_agent_job *job)
{
    const struct hg_agent_fields *f = &job->f;
    bool fits = f->array && strlen(job->comment) + 1 + strlen(f->array) <= COMMENT_MAX;
    char *comment = hg_str_printf("%s%s%s", job->comment, fits ? " " : "", fits ? f->array : "");
    char *array = f->running_max
                      ? hg_str_printf("%s%%%lld", f->array ? f->array : "", f->running_max)
                      : hg_str_printf("%s", f->array ? f->array : "");
    int rc = -1;

    if (put_text(b, "name", job->name) == 0 && put_text(b, "comment", comment) == 0)
        rc = f->array ? put_text(b, "array", array) : 0;
    free(comment);
    free(array);
    return rc;
}

/* v0.0.38 describes a list of two numbers, takes it and leaves it out: such a job had a node for each task. A number means
 * what sbatch's -N means. */
static int put_nodes(struct body *b, long long nodes)
{
    if (hg_rest.plain)
        return put_count(b, "nodes", nodes);
    return put_count(b, "minimum_nodes", nodes) < 0 ? -1 : put_count(b, "maximum_nodes", nodes);
}

/* "gpu:a100:2,nic:1"; a descriptor needs its prefix before each part. */
static int put_gres(struct body *b, const char *gres)
{
    struct hg_buf text = HG_BUF_INIT;
    int rc;

    if (!gres || !*gres)
        return 0;
    for (const char *p = gres; *p;) {
        size_t n = strcspn(p, ",");

        hg_buf_printf(&text, "%s%s%.*s", text.len ? "," : "", gres_prefix(), (int)n, p);
        p += n + (p[n] == ',');
    }
    rc =
        hg_rest.plain ? put_text(b, "gres", gres) : put_text(b, "tres_per_node", hg_buf_str(&text));
    hg_buf_done(&text);
    return rc;
}

static int put_size(struct body *b, const struct hg_agent_fields *f)
{
    long long tasks = f->nodes * f->tasks_per_node;

    if (put_nodes(b, f->nodes) < 0 || put_count(b, "tasks", tasks) < 0 ||
        put_count(b, "tasks_per_node", f->tasks_per_node) < 0 ||
        put_count(b, "cpus_per_task", f->cpus_per_task) < 0 || put_gres(b, f->gres) < 0)
        return -1;
    if (!hg_rest.plain && put_count(b, "minimum_cpus", tasks * f->cpus_per_task) < 0)
        return -1;
    if (f->mem_mib >= 0 && put_number(b, "memory_per_node", f->mem_mib) < 0)
        return -1;
    return f->time_s > 0 ? put_number(b, "time_limit", hg_agent_job_minutes(f)) : 0;
}

static int put_signal(struct body *b, long long lead_s)
{
    char text[32];

    snprintf(text, sizeof text, "USR1@%lld", lead_s);
    if (!lead_s)
        return 0;
    if (hg_rest.plain)
        return put_text(b, "signal", text);
    return put_text(b, "kill_warning_signal", "USR1") < 0
               ? -1
               : put_number(b, "kill_warning_delay", lead_s);
}

static int put_fields(struct body *b, const struct hg_agent_fields *f)
{
    const struct {
        const char *name, *text;
    } texts[] = {
        { "partition", f->partition },
        { "account", f->account },
        { "qos", f->qos },
        { "constraints", f->constraint },
        { "reservation", f->reservation },
        { "licenses", f->licenses },
        { "standard_output", f->output },
        { "current_working_directory", f->work_dir },
        { "standard_input", "/dev/null" },
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (put_text(b, texts[i].name, texts[i].text) < 0)
            return -1;
    if (put_word(b, "open_mode", "append", "APPEND") < 0 || put_signal(b, f->signal_lead_s) < 0)
        return -1;
    return f->requeue_is_said ? put(b, "requeue", json_boolean(f->requeue)) : 0;
}

json_t *hg_rest_submission(struct hg_agent_call *call, struct hg_agent_job *job)
{
    json_t *root = json_pack("{s:{}}", "job");
    struct body b = { json_object_get(root, "job"), NULL, &call->err };

    hg_agent_job_add_slurm_env(job);
    if (put_names(&b, job) == 0 && put_size(&b, &job->f) == 0 && put_fields(&b, &job->f) == 0 &&
        put_environment(&b, job) == 0 && put_script(&b, root, job) == 0 &&
        put_options(&b, job) == 0)
        return root;
    json_decref(root);
    return NULL;
}
