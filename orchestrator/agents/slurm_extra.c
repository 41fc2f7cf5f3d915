/* SPDX-License-Identifier: Apache-2.0 */
/* sbatch options as typed, for a job that goes to slurmctld without sbatch. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "agents/agent.h"
#include "base/text.h"

char *hg_agent_keep(struct hg_agent_keeper *keeper, char *s, struct hg_err *err)
{
    if (s && keeper->n < sizeof keeper->strings / sizeof *keeper->strings)
        return keeper->strings[keeper->n++] = s;
    free(s);
    hg_err_oom(err);
    return NULL;
}

struct setter {
    job_desc_msg_t *desc;
    struct hg_agent_keeper *keeper;
    const char *option;
    char *value; /* lent for as long as the descriptor lives; NULL: none was given */
    struct hg_err *err;
};

static int bad(const struct setter *s, const char *wanted)
{
    return hg_err_set(s->err, HG_E_REFUSED, "--%s: \"%s\" is not %s", s->option,
                      s->value ? s->value : "", wanted);
}

/* A decimal number in [min, max], all of the text. */
static int number(const struct setter *s, const char *text, long long min, long long max,
                  long long *out)
{
    char *end;

    errno = 0;
    *out = strtoll(text, &end, 10);
    if (end == text || *end || errno || *out < min || *out > max)
        return bad(s, "a number that Slurm takes here");
    return 0;
}

/* ---- time ---- */

/* Slurm's time limits: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S. Minutes, rounded up. */
static int minutes(const struct setter *s, long long *out)
{
    long long d = 0, a = 0, b = 0, c = 0, seconds;
    const char *dash = strchr(s->value, '-');
    const char *rest = dash ? dash + 1 : s->value;
    int n = 0, used = 0;

    if (dash && (sscanf(s->value, "%lld-%n", &d, &used) != 1 || s->value + used != rest))
        return bad(s, "a time");
    used = 0;
    n = sscanf(rest, "%lld%n:%lld%n:%lld%n", &a, &used, &b, &used, &c, &used);
    if (n < 1 || rest[used] || d < 0 || a < 0 || b < 0 || c < 0 || d > 36500 || a > 1000000)
        return bad(s, "a time");
    if (dash || n == 3)
        seconds = d * 86400 + a * 3600 + b * 60 + c;
    else
        seconds = a * 60 + b;
    *out = (seconds + 59) / 60;
    return 0;
}

static double unit_s(const char *unit)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = { { "seconds", 1 },
                  { "minutes", 60 },
                  { "hours", 3600 },
                  { "days", 86400 },
                  { "weeks", 604800 } };

    if (!*unit)
        return 1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) /* "hour" and "h" will do */
        if (strncasecmp(unit, units[i].name, strlen(unit)) == 0)
            return units[i].seconds;
    return 0;
}

/* "now", "now+2hours", "2026-11-20", "2026-11-20T18:00", "2026-11-20T18:00:30", "18:00" (the next
 * one). */
static int moment(const struct setter *s, time_t *out)
{
    time_t now = time(NULL);
    struct tm tm = { 0 };
    const char *end;
    char *unit;

    if (strcmp(s->value, "now") == 0) {
        *out = now;
        return 0;
    }
    if (strncmp(s->value, "now+", 4) == 0) {
        long count = strtol(s->value + 4, &unit, 10);
        double seconds = unit_s(unit);

        if (unit == s->value + 4 || count < 0 || seconds == 0)
            return bad(s, "a time such as now+2hours");
        *out = now + (time_t)(seconds * (double)count);
        return 0;
    }
    tm.tm_isdst = -1;
    if (((end = strptime(s->value, "%Y-%m-%dT%H:%M:%S", &tm)) && !*end) ||
        ((end = strptime(s->value, "%Y-%m-%dT%H:%M", &tm)) && !*end) ||
        ((end = strptime(s->value, "%Y-%m-%d", &tm)) && !*end)) {
        tm.tm_isdst = -1;
        *out = mktime(&tm);
        return 0;
    }
    localtime_r(&now, &tm);
    tm.tm_sec = 0;
    tm.tm_isdst = -1;
    if (!(end = strptime(s->value, "%H:%M", &tm)) || *end)
        return bad(s, "a time such as now+2hours, 18:00 or 2026-11-20T18:00");
    *out = mktime(&tm);
    if (*out < now) {
        tm.tm_mday++;
        tm.tm_isdst = -1;
        *out = mktime(&tm);
    }
    return 0;
}

/* ---- one setter per option ---- */

#define TEXT_SETTER(name, field)                  \
    static int set_##name(const struct setter *s) \
    {                                             \
        s->desc->field = s->value;                \
        return 0;                                 \
    }
#define NUMBER_SETTER(name, field, min, max)       \
    static int set_##name(const struct setter *s)  \
    {                                              \
        long long v;                               \
                                                   \
        if (number(s, s->value, min, max, &v) < 0) \
            return -1;                             \
        s->desc->field = v;                        \
        return 0;                                  \
    }

TEXT_SETTER(exclude, exc_nodes)
TEXT_SETTER(nodelist, req_nodes)
TEXT_SETTER(dependency, dependency)
TEXT_SETTER(mail_user, mail_user)
TEXT_SETTER(wckey, wckey)
TEXT_SETTER(network, network)
TEXT_SETTER(container, container)
TEXT_SETTER(prefer, prefer)
TEXT_SETTER(gpu_freq, tres_freq)
NUMBER_SETTER(threads_per_core, threads_per_core, 1, 1024)
NUMBER_SETTER(cores_per_socket, cores_per_socket, 1, 65000)
NUMBER_SETTER(sockets_per_node, sockets_per_node, 1, 65000)
NUMBER_SETTER(ntasks_per_core, ntasks_per_core, 1, 1024)
NUMBER_SETTER(core_spec, core_spec, 0, 65000)
NUMBER_SETTER(mincpus, pn_min_cpus, 1, 65000)
NUMBER_SETTER(priority, priority, 0, 4294967293)

static int set_exclusive(const struct setter *s)
{
    if (!s->value)
        s->desc->shared = JOB_SHARED_NONE;
    else if (strcasecmp(s->value, "user") == 0)
        s->desc->shared = JOB_SHARED_USER;
    else if (strcasecmp(s->value, "mcs") == 0)
        s->desc->shared = JOB_SHARED_MCS;
    else
        return bad(s, "user or mcs");
    return 0;
}

static int set_oversubscribe(const struct setter *s)
{
    s->desc->shared = JOB_SHARED_OK;
    return 0;
}

static int set_contiguous(const struct setter *s)
{
    s->desc->contiguous = 1;
    return 0;
}

static int set_no_kill(const struct setter *s)
{
    s->desc->kill_on_node_fail = 0;
    return 0;
}

static int set_hold(const struct setter *s)
{
    s->desc->priority = 0;
    return 0;
}

static int set_nice(const struct setter *s)
{
    long long v = 100;

    if (s->value && number(s, s->value, -2147483645, 2147483645, &v) < 0)
        return -1;
    s->desc->nice = (uint32_t)(NICE_OFFSET + v);
    return 0;
}

static int set_begin(const struct setter *s)
{
    return moment(s, &s->desc->begin_time);
}

static int set_deadline(const struct setter *s)
{
    return moment(s, &s->desc->deadline);
}

static int set_time_min(const struct setter *s)
{
    long long m = 0;

    if (minutes(s, &m) < 0)
        return -1;
    s->desc->time_min = (uint32_t)m;
    return 0;
}

/* Slurm's sizes: a bare number is MiB. */
static int mebibytes(const struct setter *s, unsigned long long *out)
{
    char *end;
    unsigned long long v = 0;

    errno = 0;
    v = strtoull(s->value, &end, 10);
    if (end == s->value || errno || s->value[0] == '-' || v > (1ull << 40))
        return bad(s, "a size");
    if (strcasecmp(end, "K") == 0 || strcasecmp(end, "KB") == 0)
        v = (v + 1023) / 1024;
    else if (strcasecmp(end, "G") == 0 || strcasecmp(end, "GB") == 0)
        v *= 1024;
    else if (strcasecmp(end, "T") == 0 || strcasecmp(end, "TB") == 0)
        v *= 1024 * 1024;
    else if (*end && strcasecmp(end, "M") != 0 && strcasecmp(end, "MB") != 0)
        return bad(s, "a size");
    *out = v;
    return 0;
}

static int set_mem_per_cpu(const struct setter *s)
{
    unsigned long long v = 0;

    if (s->desc->pn_min_memory != NO_VAL64)
        return hg_err_set(s->err, HG_E_REFUSED,
                          "--mem-per-cpu: the job asks for memory per node, too");
    if (mebibytes(s, &v) < 0)
        return -1;
    s->desc->pn_min_memory = v | MEM_PER_CPU;
    return 0;
}

static int set_tmp(const struct setter *s)
{
    unsigned long long v = 0;

    if (mebibytes(s, &v) < 0)
        return -1;
    s->desc->pn_min_tmp_disk = (uint32_t)v;
    return 0;
}

static int set_mem_per_gpu(const struct setter *s)
{
    unsigned long long v = 0;

    if (mebibytes(s, &v) < 0)
        return -1;
    s->desc->mem_per_tres =
        hg_agent_keep(s->keeper, hg_str_printf(HG_AGENT_GRES "gpu:%llu", v), s->err);
    return s->desc->mem_per_tres ? 0 : -1;
}

static int set_cpus_per_gpu(const struct setter *s)
{
    long long v = 0;

    if (number(s, s->value, 1, 65000, &v) < 0)
        return -1;
    s->desc->cpus_per_tres =
        hg_agent_keep(s->keeper, hg_str_printf(HG_AGENT_GRES "gpu:%lld", v), s->err);
    return s->desc->cpus_per_tres ? 0 : -1;
}

static int set_gpu_bind(const struct setter *s)
{
    s->desc->tres_bind =
        hg_agent_keep(s->keeper, hg_str_printf(HG_AGENT_GRES "gpu:%s", s->value), s->err);
    return s->desc->tres_bind ? 0 : -1;
}

/* COUNT or COUNT@TIME */
static int set_switches(const struct setter *s)
{
    char *at = strchr(s->value, '@');
    struct setter wait = { .option = s->option, .value = at ? at + 1 : NULL, .err = s->err };
    long long v = 0, m = 0;
    char count[16];

    snprintf(count, sizeof count, "%.*s", (int)(at ? at - s->value : 15), s->value);
    if (number(s, count, 0, 1000000, &v) < 0 || (at && minutes(&wait, &m) < 0))
        return -1;
    s->desc->req_switch = (uint32_t)v;
    if (at)
        s->desc->wait4switch = (uint32_t)(m * 60);
    return 0;
}

static int set_mail_type(const struct setter *s)
{
    static const struct {
        const char *name;
        uint16_t bits;
    } kinds[] = {
        { "NONE", 0 },
        { "BEGIN", MAIL_JOB_BEGIN },
        { "END", MAIL_JOB_END },
        { "FAIL", MAIL_JOB_FAIL },
        { "REQUEUE", MAIL_JOB_REQUEUE },
        { "STAGE_OUT", MAIL_JOB_STAGE_OUT },
        { "TIME_LIMIT", MAIL_JOB_TIME100 },
        { "TIME_LIMIT_90", MAIL_JOB_TIME90 },
        { "TIME_LIMIT_80", MAIL_JOB_TIME80 },
        { "TIME_LIMIT_50", MAIL_JOB_TIME50 },
        { "ARRAY_TASKS", MAIL_ARRAY_TASKS },
        { "ALL",
          MAIL_JOB_BEGIN | MAIL_JOB_END | MAIL_JOB_FAIL | MAIL_JOB_REQUEUE | MAIL_JOB_STAGE_OUT },
    };
    uint16_t bits = 0;

    for (const char *p = s->value; *p;) {
        size_t n = strcspn(p, ","), k = 0;

        while (k < sizeof kinds / sizeof *kinds &&
               (strlen(kinds[k].name) != n || strncasecmp(kinds[k].name, p, n) != 0))
            k++;
        if (k == sizeof kinds / sizeof *kinds)
            return bad(
                s, "a list of BEGIN END FAIL REQUEUE STAGE_OUT TIME_LIMIT ARRAY_TASKS ALL NONE");
        bits |= kinds[k].bits;
        p += n + (p[n] == ',');
    }
    s->desc->mail_type = bits;
    return 0;
}

/* ---- the table ---- */

enum { NO_VALUE, MAY_HAVE_VALUE, HAS_VALUE };

struct option {
    const char *name;
    char letter;
    int value;
    int (*set)(const struct setter *s); /* NULL: refused, instead says what to use */
    const char *instead;
};

static const struct option options[] = {
    { "begin", 'b', HAS_VALUE, set_begin, NULL },
    { "container", 0, HAS_VALUE, set_container, NULL },
    { "contiguous", 0, NO_VALUE, set_contiguous, NULL },
    { "core-spec", 'S', HAS_VALUE, set_core_spec, NULL },
    { "cores-per-socket", 0, HAS_VALUE, set_cores_per_socket, NULL },
    { "cpus-per-gpu", 0, HAS_VALUE, set_cpus_per_gpu, NULL },
    { "deadline", 0, HAS_VALUE, set_deadline, NULL },
    { "dependency", 'd', HAS_VALUE, set_dependency, NULL },
    { "exclude", 'x', HAS_VALUE, set_exclude, NULL },
    { "exclusive", 0, MAY_HAVE_VALUE, set_exclusive, NULL },
    { "gpu-bind", 0, HAS_VALUE, set_gpu_bind, NULL },
    { "gpu-freq", 0, HAS_VALUE, set_gpu_freq, NULL },
    { "hold", 'H', NO_VALUE, set_hold, NULL },
    { "mail-type", 0, HAS_VALUE, set_mail_type, NULL },
    { "mail-user", 0, HAS_VALUE, set_mail_user, NULL },
    { "mem-per-cpu", 0, HAS_VALUE, set_mem_per_cpu, NULL },
    { "mem-per-gpu", 0, HAS_VALUE, set_mem_per_gpu, NULL },
    { "mincpus", 0, HAS_VALUE, set_mincpus, NULL },
    { "network", 0, HAS_VALUE, set_network, NULL },
    { "nice", 0, MAY_HAVE_VALUE, set_nice, NULL },
    { "no-kill", 'k', NO_VALUE, set_no_kill, NULL },
    { "nodelist", 'w', HAS_VALUE, set_nodelist, NULL },
    { "ntasks-per-core", 0, HAS_VALUE, set_ntasks_per_core, NULL },
    { "oversubscribe", 's', NO_VALUE, set_oversubscribe, NULL },
    { "prefer", 0, HAS_VALUE, set_prefer, NULL },
    { "priority", 0, HAS_VALUE, set_priority, NULL },
    { "sockets-per-node", 0, HAS_VALUE, set_sockets_per_node, NULL },
    { "switches", 0, HAS_VALUE, set_switches, NULL },
    { "threads-per-core", 0, HAS_VALUE, set_threads_per_core, NULL },
    { "time-min", 0, HAS_VALUE, set_time_min, NULL },
    { "tmp", 0, HAS_VALUE, set_tmp, NULL },
    { "wckey", 0, HAS_VALUE, set_wckey, NULL },
    /* Refused by name: they have a place of their own, or would break the sweep. */
    { "account", 'A', HAS_VALUE, NULL, "use \"account\" of the site" },
    { "array", 'a', HAS_VALUE, NULL, "the matrix makes the array" },
    { "chdir", 'D', HAS_VALUE, NULL, "use \"cwd\" of the workload" },
    { "clusters", 'M', HAS_VALUE, NULL, "run hpcgrid on that cluster" },
    { "comment", 0, HAS_VALUE, NULL, "hpcgrid keeps the submission's key there" },
    { "constraint", 'C', HAS_VALUE, NULL, "use \"constraint\" of the site's hardware" },
    { "cpus-per-task", 'c', HAS_VALUE, NULL, "use \"cpus_per_task\"" },
    { "error", 'e', HAS_VALUE, NULL, "hpcgrid keeps each attempt's output" },
    { "export", 0, HAS_VALUE, NULL, "use \"env\" of the workload or of the site" },
    { "export-file", 0, HAS_VALUE, NULL, "use \"env\" of the workload or of the site" },
    { "get-user-env", 0, MAY_HAVE_VALUE, NULL, "use \"env\" or \"modules\" of the site" },
    { "gpus", 'G', HAS_VALUE, NULL, "use \"gpus_per_node\"" },
    { "gpus-per-node", 0, HAS_VALUE, NULL, "use \"gpus_per_node\"" },
    { "gpus-per-task", 0, HAS_VALUE, NULL, "use \"gpus_per_node\"" },
    { "gres", 0, HAS_VALUE, NULL, "use \"gpus_per_node\", and \"gres\" of the site's hardware" },
    { "job-name", 'J', HAS_VALUE, NULL, "use \"name\" of the matrix" },
    { "licenses", 'L', HAS_VALUE, NULL, "use \"licenses\" of the site" },
    { "mem", 0, HAS_VALUE, NULL, "use \"mem\"" },
    { "nodes", 'N', HAS_VALUE, NULL, "use \"nodes\"" },
    { "no-requeue", 0, NO_VALUE, NULL, "use \"retry\" of the matrix" },
    { "ntasks", 'n', HAS_VALUE, NULL, "use \"tasks_per_node\"" },
    { "ntasks-per-node", 0, HAS_VALUE, NULL, "use \"tasks_per_node\"" },
    { "open-mode", 0, HAS_VALUE, NULL, "output is always appended to" },
    { "output", 'o', HAS_VALUE, NULL, "hpcgrid keeps each attempt's output" },
    { "parsable", 0, NO_VALUE, NULL, "use `hpcgrid submit --json`" },
    { "partition", 'p', HAS_VALUE, NULL, "use \"partition\" of the site's hardware" },
    { "qos", 'q', HAS_VALUE, NULL, "use \"qos\" of the site" },
    { "requeue", 0, NO_VALUE, NULL, "use \"retry\" of the matrix" },
    { "reservation", 0, HAS_VALUE, NULL, "use \"reservation\" of the site" },
    { "signal", 0, HAS_VALUE, NULL, "use \"signal_lead_s\" of the site" },
    { "test-only", 0, NO_VALUE, NULL, "use `hpcgrid plan`" },
    { "time", 't', HAS_VALUE, NULL, "use \"time\"" },
    { "wait", 'W', NO_VALUE, NULL, "use `hpcgrid run`" },
    { "wrap", 0, HAS_VALUE, NULL, "use \"command\" of the workload" },
};
#define N_OPTIONS (sizeof options / sizeof *options)

static int unknown(const char *word, size_t n, struct hg_err *err)
{
    const char *names[N_OPTIONS];
    char name[64];
    size_t n_names = 0;
    const char *near;

    for (size_t i = 0; i < N_OPTIONS; i++)
        if (options[i].set)
            names[n_names++] = options[i].name;
    snprintf(name, sizeof name, "%.*s", (int)n, word);
    hg_err_set(err, HG_E_REFUSED, "sbatch option --%s is not available here", name);
    if ((near = hg_text_nearest(name, names, n_names)))
        hg_err_hint(err, "did you mean --%s?", near);
    return -1;
}

/* The option that a word names; *value: what stands behind it in the same word, or NULL. */
static const struct option *find_option(char *word, char **value, struct hg_err *err)
{
    size_t n;

    *value = NULL;
    if (word[0] == '-' && word[1] && word[1] != '-') {
        for (size_t i = 0; i < N_OPTIONS; i++)
            if (options[i].letter == word[1]) {
                *value = word[2] ? word + 2 : NULL;
                return &options[i];
            }
        hg_err_set(err, HG_E_REFUSED, "sbatch option %s is not available here", word);
        return NULL;
    }
    if (strncmp(word, "--", 2) != 0 || !word[2]) {
        hg_err_set(err, HG_E_REFUSED, "\"%s\" is no sbatch option", word);
        return NULL;
    }
    word += 2;
    n = strcspn(word, "=");
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (strlen(options[i].name) == n && strncmp(options[i].name, word, n) == 0) {
            *value = word[n] ? word + n + 1 : NULL;
            return &options[i];
        }
    unknown(word, n, err);
    return NULL;
}

int hg_agent_extra(job_desc_msg_t *desc, char *const *words, struct hg_agent_keeper *keeper,
                   struct hg_err *err)
{
    for (size_t i = 0; words && words[i]; i++) {
        char *value;
        const struct option *o = find_option(words[i], &value, err);

        if (!o)
            return -1;
        if (!o->set)
            return hg_err_set(err, HG_E_REFUSED, "sbatch option --%s: %s", o->name, o->instead);
        if (o->value == NO_VALUE && value)
            return hg_err_set(err, HG_E_REFUSED, "sbatch option --%s takes no value", o->name);
        if (o->value == HAS_VALUE && !value && !(value = words[++i]))
            return hg_err_set(err, HG_E_REFUSED, "sbatch option --%s needs a value", o->name);
        if (o->set(&(struct setter){ desc, keeper, o->name, value, err }) < 0)
            return -1;
    }
    return 0;
}
