/* SPDX-License-Identifier: Apache-2.0 */
/* sbatch options as typed, for all agents. */
#include "contract/sbatch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/vec.h"

/* One option that is being understood. */
struct reader {
    struct hg_sbatch_option *o;
    long long min, max;
    struct hg_err *err;
};

static int bad(const struct reader *r, const char *wanted)
{
    return hg_err_set(r->err, HG_E_REFUSED, "--%s: \"%s\" is not %s", r->o->name,
                      r->o->text ? r->o->text : "", wanted);
}

static int read_text(const struct reader *r)
{
    (void)r;
    return 0;
}

/* A decimal number in [min, max], all of the text. */
static int read_count(const struct reader *r, const char *text)
{
    char *end;

    errno = 0;
    r->o->number = strtoll(text, &end, 10);
    if (end == text || *end || errno || r->o->number < r->min || r->o->number > r->max)
        return bad(r, "a number that Slurm accepts here");
    return 0;
}

static int read_number(const struct reader *r)
{
    return read_count(r, r->o->text);
}

static int read_nice(const struct reader *r)
{
    r->o->number = 100;
    return r->o->text ? read_count(r, r->o->text) : 0;
}

static int read_exclusive(const struct reader *r)
{
    const char *text = r->o->text;

    return !text || strcasecmp(text, "user") == 0 || strcasecmp(text, "mcs") == 0
               ? 0
               : bad(r, "user or mcs");
}

/* ---- time ---- */

/* Slurm's time limits: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S. Minutes, rounded up. */
static int read_minutes(const struct reader *r, const char *text, long long *out)
{
    long long d = 0, a = 0, b = 0, c = 0, seconds;
    const char *dash = strchr(text, '-');
    const char *rest = dash ? dash + 1 : text;
    int n = 0, used = 0;

    if (dash && (sscanf(text, "%lld-%n", &d, &used) != 1 || text + used != rest))
        return bad(r, "a time");
    used = 0;
    n = sscanf(rest, "%lld%n:%lld%n:%lld%n", &a, &used, &b, &used, &c, &used);
    if (n < 1 || rest[used] || d < 0 || a < 0 || b < 0 || c < 0 || d > 36500 || a > 1000000)
        return bad(r, "a time");
    if (dash || n == 3)
        seconds = d * 86400 + a * 3600 + b * 60 + c;
    else
        seconds = a * 60 + b;
    *out = (seconds + 59) / 60;
    return 0;
}

static int read_limit(const struct reader *r)
{
    return read_minutes(r, r->o->text, &r->o->number);
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
static int read_moment(const struct reader *r)
{
    time_t now = time(NULL), then;
    const char *text = r->o->text;
    struct tm tm = { 0 };
    const char *end;
    char *unit;

    if (strcmp(text, "now") == 0) {
        r->o->number = now;
        return 0;
    }
    if (strncmp(text, "now+", 4) == 0) {
        long count = strtol(text + 4, &unit, 10);
        double seconds = unit_s(unit);

        if (unit == text + 4 || count < 0 || seconds == 0)
            return bad(r, "a time such as now+2hours");
        r->o->number = now + (time_t)(seconds * (double)count);
        return 0;
    }
    tm.tm_isdst = -1;
    if (((end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm)) && !*end) ||
        ((end = strptime(text, "%Y-%m-%dT%H:%M", &tm)) && !*end) ||
        ((end = strptime(text, "%Y-%m-%d", &tm)) && !*end)) {
        tm.tm_isdst = -1;
        r->o->number = mktime(&tm);
        return 0;
    }
    localtime_r(&now, &tm);
    tm.tm_sec = 0;
    tm.tm_isdst = -1;
    if (!(end = strptime(text, "%H:%M", &tm)) || *end)
        return bad(r, "a time such as now+2hours, 18:00 or 2026-11-20T18:00");
    then = mktime(&tm);
    if (then < now) {
        tm.tm_mday++;
        tm.tm_isdst = -1;
        then = mktime(&tm);
    }
    r->o->number = then;
    return 0;
}

/* ---- sizes and lists ---- */

/* Slurm's sizes: a bare number is MiB. */
static int read_mebibytes(const struct reader *r)
{
    char *end;
    unsigned long long v = 0;

    errno = 0;
    v = strtoull(r->o->text, &end, 10);
    if (end == r->o->text || errno || r->o->text[0] == '-' || v > (1ull << 40))
        return bad(r, "a size");
    if (strcasecmp(end, "K") == 0 || strcasecmp(end, "KB") == 0)
        v = (v + 1023) / 1024;
    else if (strcasecmp(end, "G") == 0 || strcasecmp(end, "GB") == 0)
        v *= 1024;
    else if (strcasecmp(end, "T") == 0 || strcasecmp(end, "TB") == 0)
        v *= 1024 * 1024;
    else if (*end && strcasecmp(end, "M") != 0 && strcasecmp(end, "MB") != 0)
        return bad(r, "a size");
    r->o->number = (long long)v;
    return 0;
}

/* COUNT or COUNT@TIME */
static int read_switches(const struct reader *r)
{
    const char *at = strchr(r->o->text, '@');
    char count[16];

    snprintf(count, sizeof count, "%.*s", (int)(at ? at - r->o->text : 15), r->o->text);
    if (read_count(r, count) < 0)
        return -1;
    return at ? read_minutes(r, at + 1, &r->o->wait_min) : 0;
}

const char *const hg_sbatch_mail_kinds[] = {
    "BEGIN",         "END",           "FAIL",          "REQUEUE",     "STAGE_OUT", "TIME_LIMIT",
    "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS", NULL
};
#define MAIL_ALL 0x1f

static long long find_mail_kind(const char *word, size_t n)
{
    if (n == 4 && strncasecmp(word, "NONE", n) == 0)
        return 0;
    if (n == 3 && strncasecmp(word, "ALL", n) == 0)
        return MAIL_ALL;
    for (int i = 0; hg_sbatch_mail_kinds[i]; i++)
        if (strlen(hg_sbatch_mail_kinds[i]) == n &&
            strncasecmp(hg_sbatch_mail_kinds[i], word, n) == 0)
            return 1LL << i;
    return -1;
}

static int read_mail_type(const struct reader *r)
{
    for (const char *p = r->o->text; *p;) {
        size_t n = strcspn(p, ",");
        long long bits = find_mail_kind(p, n);

        if (bits < 0)
            return bad(
                r, "a list of BEGIN END FAIL REQUEUE STAGE_OUT TIME_LIMIT ARRAY_TASKS ALL NONE");
        r->o->number |= bits;
        p += n + (p[n] == ',');
    }
    return 0;
}

/* ---- the table ---- */

enum { NO_VALUE, MAY_HAVE_VALUE, HAS_VALUE };

struct option {
    const char *name;
    char letter;
    int value;
    int (*read)(const struct reader *r); /* NULL: refused, instead says what to use */
    const char *instead;
    long long min, max; /* of a number */
};

static const struct option options[] = {
    { "begin", 'b', HAS_VALUE, read_moment, NULL, 0, 0 },
    { "container", 0, HAS_VALUE, read_text, NULL, 0, 0 },
    { "contiguous", 0, NO_VALUE, read_text, NULL, 0, 0 },
    { "core-spec", 'S', HAS_VALUE, read_number, NULL, 0, 65000 },
    { "cores-per-socket", 0, HAS_VALUE, read_number, NULL, 1, 65000 },
    { "cpus-per-gpu", 0, HAS_VALUE, read_number, NULL, 1, 65000 },
    { "deadline", 0, HAS_VALUE, read_moment, NULL, 0, 0 },
    { "dependency", 'd', HAS_VALUE, read_text, NULL, 0, 0 },
    { "exclude", 'x', HAS_VALUE, read_text, NULL, 0, 0 },
    { "exclusive", 0, MAY_HAVE_VALUE, read_exclusive, NULL, 0, 0 },
    { "gpu-bind", 0, HAS_VALUE, read_text, NULL, 0, 0 },
    { "gpu-freq", 0, HAS_VALUE, read_text, NULL, 0, 0 },
    { "hold", 'H', NO_VALUE, read_text, NULL, 0, 0 },
    { "mail-type", 0, HAS_VALUE, read_mail_type, NULL, 0, 0 },
    { "mail-user", 0, HAS_VALUE, read_text, NULL, 0, 0 },
    { "mem-per-cpu", 0, HAS_VALUE, read_mebibytes, NULL, 0, 0 },
    { "mem-per-gpu", 0, HAS_VALUE, read_mebibytes, NULL, 0, 0 },
    { "mincpus", 0, HAS_VALUE, read_number, NULL, 1, 65000 },
    { "network", 0, HAS_VALUE, read_text, NULL, 0, 0 },
    { "nice", 0, MAY_HAVE_VALUE, read_nice, NULL, -2147483645, 2147483645 },
    { "no-kill", 'k', NO_VALUE, read_text, NULL, 0, 0 },
    { "nodelist", 'w', HAS_VALUE, read_text, NULL, 0, 0 },
    { "ntasks-per-core", 0, HAS_VALUE, read_number, NULL, 1, 1024 },
    { "oversubscribe", 's', NO_VALUE, read_text, NULL, 0, 0 },
    { "prefer", 0, HAS_VALUE, read_text, NULL, 0, 0 },
    { "priority", 0, HAS_VALUE, read_number, NULL, 0, 4294967293 },
    { "sockets-per-node", 0, HAS_VALUE, read_number, NULL, 1, 65000 },
    { "switches", 0, HAS_VALUE, read_switches, NULL, 0, 1000000 },
    { "threads-per-core", 0, HAS_VALUE, read_number, NULL, 1, 1024 },
    { "time-min", 0, HAS_VALUE, read_limit, NULL, 0, 0 },
    { "tmp", 0, HAS_VALUE, read_mebibytes, NULL, 0, 0 },
    { "wckey", 0, HAS_VALUE, read_text, NULL, 0, 0 },
    /* Refused: they have a member of their own, or would break the sweep. */
    { "account", 'A', HAS_VALUE, NULL, "use \"account\" of the site", 0, 0 },
    { "array", 'a', HAS_VALUE, NULL, "the matrix makes the array", 0, 0 },
    { "chdir", 'D', HAS_VALUE, NULL, "use \"cwd\" of the workload", 0, 0 },
    { "clusters", 'M', HAS_VALUE, NULL, "run hpcgrid on that cluster", 0, 0 },
    { "comment", 0, HAS_VALUE, NULL, "hpcgrid keeps the submission's key there", 0, 0 },
    { "constraint", 'C', HAS_VALUE, NULL, "use \"constraint\" of the site's hardware", 0, 0 },
    { "cpus-per-task", 'c', HAS_VALUE, NULL, "use \"cpus_per_task\"", 0, 0 },
    { "error", 'e', HAS_VALUE, NULL, "hpcgrid keeps each attempt's output", 0, 0 },
    { "export", 0, HAS_VALUE, NULL, "use \"env\" of the workload or of the site", 0, 0 },
    { "export-file", 0, HAS_VALUE, NULL, "use \"env\" of the workload or of the site", 0, 0 },
    { "get-user-env", 0, MAY_HAVE_VALUE, NULL, "use \"env\" or \"modules\" of the site", 0, 0 },
    { "gpus", 'G', HAS_VALUE, NULL, "use \"gpus_per_node\"", 0, 0 },
    { "gpus-per-node", 0, HAS_VALUE, NULL, "use \"gpus_per_node\"", 0, 0 },
    { "gpus-per-task", 0, HAS_VALUE, NULL, "use \"gpus_per_node\"", 0, 0 },
    { "gres", 0, HAS_VALUE, NULL, "use \"gpus_per_node\", and \"gres\" of the site's hardware", 0,
      0 },
    { "job-name", 'J', HAS_VALUE, NULL, "use \"name\" of the matrix", 0, 0 },
    { "licenses", 'L', HAS_VALUE, NULL, "use \"licenses\" of the site", 0, 0 },
    { "mem", 0, HAS_VALUE, NULL, "use \"mem\"", 0, 0 },
    { "nodes", 'N', HAS_VALUE, NULL, "use \"nodes\"", 0, 0 },
    { "no-requeue", 0, NO_VALUE, NULL, "use \"retry\" of the matrix", 0, 0 },
    { "ntasks", 'n', HAS_VALUE, NULL, "use \"tasks_per_node\"", 0, 0 },
    { "ntasks-per-node", 0, HAS_VALUE, NULL, "use \"tasks_per_node\"", 0, 0 },
    { "open-mode", 0, HAS_VALUE, NULL, "output is always appended to", 0, 0 },
    { "output", 'o', HAS_VALUE, NULL, "hpcgrid keeps each attempt's output", 0, 0 },
    { "parsable", 0, NO_VALUE, NULL, "use `hpcgrid submit --json`", 0, 0 },
    { "partition", 'p', HAS_VALUE, NULL, "use \"partition\" of the site's hardware", 0, 0 },
    { "qos", 'q', HAS_VALUE, NULL, "use \"qos\" of the site", 0, 0 },
    { "requeue", 0, NO_VALUE, NULL, "use \"retry\" of the matrix", 0, 0 },
    { "reservation", 0, HAS_VALUE, NULL, "use \"reservation\" of the site", 0, 0 },
    { "signal", 0, HAS_VALUE, NULL, "use \"signal_lead_s\" of the site, or --signal=USR1@SECONDS",
      0, 0 },
    { "test-only", 0, NO_VALUE, NULL, "use `hpcgrid plan`", 0, 0 },
    { "time", 't', HAS_VALUE, NULL, "use \"time\"", 0, 0 },
    { "wait", 'W', NO_VALUE, NULL, "use `hpcgrid run`", 0, 0 },
    { "wrap", 0, HAS_VALUE, NULL, "use \"command\" of the workload", 0, 0 },
};
#define N_OPTIONS (sizeof options / sizeof *options)

static int unknown(const char *word, size_t n, struct hg_err *err)
{
    const char *names[N_OPTIONS];
    char name[64];
    size_t n_names = 0;
    const char *near;

    for (size_t i = 0; i < N_OPTIONS; i++)
        if (options[i].read)
            names[n_names++] = options[i].name;
    snprintf(name, sizeof name, "%.*s", (int)n, word);
    hg_err_set(err, HG_E_REFUSED, "sbatch option --%s is not available here", name);
    if ((near = hg_text_nearest(name, names, n_names)))
        hg_err_hint(err, "did you mean --%s?", near);
    return -1;
}

/* The option that a word names; *value: the value in the same word, or NULL. */
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
        hg_err_set(err, HG_E_REFUSED, "\"%s\" is not an sbatch option", word);
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

static int read_option(const struct option *o, char *value, struct hg_sbatch_option *out,
                       struct hg_err *err)
{
    if (!o->read)
        return hg_err_set(err, HG_E_REFUSED, "sbatch option --%s: %s", o->name, o->instead);
    if (o->value == NO_VALUE && value)
        return hg_err_set(err, HG_E_REFUSED, "sbatch option --%s does not take a value", o->name);
    if (o->value == HAS_VALUE && !value)
        return hg_err_set(err, HG_E_REFUSED, "sbatch option --%s needs a value", o->name);
    *out = (struct hg_sbatch_option){ .name = o->name, .text = value, .wait_min = -1 };
    return o->read(&(struct reader){ out, o->min, o->max, err });
}

int hg_sbatch_read(char *const *words, struct hg_sbatch_options *all, struct hg_err *err)
{
    for (size_t i = 0; words && words[i]; i++) {
        char *value;
        const struct option *o = find_option(words[i], &value, err);

        if (!o)
            return -1;
        if (o->value == HAS_VALUE && !value && words[i + 1])
            value = words[++i];
        if (read_option(o, value, HG_VEC_PUSH(all), err) < 0)
            return -1;
    }
    return 0;
}

long hg_sbatch_signal_lead(const char *word)
{
    unsigned lead;
    int end = 0;

    return sscanf(word, "--signal=USR1@%5u%n", &lead, &end) == 1 && word[end] == '\0' ? (long)lead
                                                                                      : -1;
}

char *hg_sbatch_pattern(void)
{
    struct hg_buf b = HG_BUF_INIT;

    hg_buf_puts(&b, "^\\s*($|--signal=USR1@[0-9]");
    for (size_t i = 0; i < N_OPTIONS; i++) {
        if (options[i].read)
            hg_buf_printf(&b, "|--%s(=|\\s|$)", options[i].name);
        if (options[i].read && options[i].letter)
            hg_buf_printf(&b, "|-%c", options[i].letter);
    }
    hg_buf_puts(&b, ")");
    return hg_buf_detach(&b);
}
