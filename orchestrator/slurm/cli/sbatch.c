/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-sbatch: Slurm's own commands behind a pipe. slurm/README.md has the protocol. */
#include "slurm/cli/sbatch.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/proc.h"

#define VERSION_S 5.0 /* for a program that only says its version */

/* ---- where Slurm is ---- */

/* PREFIX of PREFIX/bin/sbatch, which reads PREFIX/etc/slurm.conf; NULL: not found. */
static char *find_prefix(void)
{
    char *sbatch = hg_fs_find_program("sbatch", getenv("PATH"));
    char *real = sbatch ? realpath(sbatch, NULL) : NULL;
    char *bin = real ? hg_fs_dirname(real) : NULL;
    char *prefix = bin ? hg_fs_dirname(bin) : NULL;

    free(sbatch);
    free(real);
    free(bin);
    return prefix;
}

static char *find_conf(void)
{
    char *prefix = find_prefix(), *conf = hg_agent_find_conf(prefix);

    free(prefix);
    return conf;
}

/* "slurm-wlm 22.05.8" -> "22.05.8" behind out. False: sbatch is absent, or finds no slurm.conf: it reads
 * that first, and may look for it for a minute. */
static bool ask_version(const char *conf, struct hg_buf *out)
{
    static const char *const argv[] = { "sbatch", "--version", NULL };
    struct hg_buf said = HG_BUF_INIT;
    const char *version;
    int status = -1;
    bool ok = (conf || !getenv("SLURM_CONF")) &&
              hg_proc_capture(argv, VERSION_S, &said, NULL, &status, NULL) == 0 && status == 0;

    version = hg_buf_str(&said);
    while (*version && !isdigit((unsigned char)*version))
        version++;
    if (ok)
        hg_buf_append(out, version, strcspn(version, " \n"));
    hg_buf_done(&said);
    return ok;
}

static int need_slurm(struct hg_agent_call *call)
{
    static bool ready;
    static char *conf;
    struct hg_buf version = HG_BUF_INIT;

    if (!ready) {
        conf = find_conf();
        ready = conf || ask_version(conf, &version);
        hg_buf_done(&version);
    }
    return ready ? hg_agent_check_auth(call, conf) : hg_agent_no_conf(call);
}

static int op_hello(struct hg_agent_call *call)
{
    struct hg_buf version = HG_BUF_INIT;
    char *conf = find_conf();
    bool found = ask_version(conf, &version);

    hg_agent_add(call, "protocol", json_integer(HG_AGENT_PROTOCOL));
    hg_agent_add(call, "agent", json_string(HG_AGENT_PROGRAM " " HPCGRID_VERSION));
    hg_agent_add(call, "library", hg_agent_text(hg_buf_str(&version)));
    hg_agent_add(call, "conf",
                 found ? hg_agent_text(conf ? conf : "where sbatch looks for it") : json_null());
    hg_buf_done(&version);
    free(conf);
    return 0;
}

/* ---- limits ---- */

/* The value in a line "Key   = value" of `scontrol show config`, "" if there is none. */
static const char *config_value(const char *text, const char *key, char out[static 512])
{
    size_t n = strlen(key);

    out[0] = '\0';
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0 && (line[n] == ' ' || line[n] == '=')) {
            const char *value = line + strcspn(line, "=");

            value += strspn(value, "= ");
            snprintf(out, 512, "%.*s", (int)strcspn(value, "\n"), value);
            break;
        }
    }
    return out;
}

static json_t *config_number(const char *text, const char *key)
{
    char value[512];

    return json_integer(strtoll(config_value(text, key, value), NULL, 10));
}

static int ask_config(struct hg_agent_call *call, struct hg_agent_said *said)
{
    return hg_agent_run_well(call, (const char *const[]){ "scontrol", "show", "config", NULL },
                             said, "cannot ask for the configuration");
}

static bool keeps_accounting(const char *config)
{
    char value[512];

    return strstr(config_value(config, "AccountingStorageType", value), "slurmdbd") != NULL;
}

static int op_limits(struct hg_agent_call *call)
{
    struct hg_agent_said said;
    int rc = ask_config(call, &said);
    const char *c = hg_buf_str(&said.out);
    char value[512];

    if (rc == 0) {
        hg_agent_add(call, "max_array_size", config_number(c, "MaxArraySize"));
        hg_agent_add(call, "max_jobs", config_number(c, "MaxJobCount"));
        hg_agent_add(call, "min_job_age_s", config_number(c, "MinJobAge"));
        hg_agent_add(call, "ambiguous_s",
                     json_integer(hg_agent_credential_life_s(config_value(c, "AuthInfo", value))));
        hg_agent_add(call, "message_timeout_s", config_number(c, "MessageTimeout"));
        hg_agent_add(call, "accounting", json_boolean(keeps_accounting(c)));
        hg_agent_add(call, "version", hg_agent_text(config_value(c, "SLURM_VERSION", value)));
        hg_agent_add(call, "cluster", hg_agent_text(config_value(c, "ClusterName", value)));
    }
    hg_agent_said_done(&said);
    return rc;
}

static int op_history(struct hg_agent_call *call)
{
    static int known = -1; /* a site does not change this under a running agent */
    struct hg_agent_said said;
    int rc = hg_agent_check_history(call);

    if (rc == 0 && known < 0) {
        rc = ask_config(call, &said);
        known = rc == 0 ? keeps_accounting(hg_buf_str(&said.out)) : -1;
        hg_agent_said_done(&said);
    }
    if (rc < 0)
        return -1;
    if (!known)
        return hg_err_set(&call->err, HG_E_ENV, "this cluster keeps no accounting");
    return hg_agent_history(call);
}

/* ---- cancel and hold ---- */

/* "17" or "17_[0-9,12]" from "job_id" and "tasks"; yours to free. */
static char *name_tasks(struct hg_agent_call *call, const char *op)
{
    long long job_id;
    const char *set;
    char *id;

    if (hg_agent_which(call, op, &job_id, &set) < 0)
        return NULL;
    id = set ? hg_str_printf("%lld_[%s]", job_id, set) : hg_str_printf("%lld", job_id);
    if (!id)
        hg_err_oom(&call->err);
    return id;
}

enum { NOT_KNOWN = 2017 };

/* Nothing is left to be done to what has ended, or cannot be held any more. */
static bool is_past(int number)
{
    static const int past[] = { 2020, 2021, 2073, 2083, 2084 };

    for (size_t i = 0; i < sizeof past / sizeof *past; i++)
        if (number == past[i])
            return true;
    return false;
}

/* What a command said: the number of the worst, 0 if all is well. Lines that name no error, or "No error", do
 * not count; neither does "17_4: Invalid job id specified", of one task among others. */
static int worst_of(const char *text)
{
    int worst = 0;

    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = strndup(text, n);
        int number = line ? hg_agent_number_of(line) : 0;

        if (number == NOT_KNOWN && isdigit((unsigned char)*line))
            number = 0;
        free(line);
        if (number && !is_past(number) && (!worst || worst == NOT_KNOWN))
            worst = number;
        text += n + (text[n] == '\n');
    }
    return worst;
}

/* Did it complain, or end, in a way that is not known here? Then nothing says that it was done. */
static bool is_strange(const struct hg_agent_said *said)
{
    const char *text = hg_buf_str(&said->err);
    bool strange = !*text || !WIFEXITED(said->status) || WEXITSTATUS(said->status) > 1;

    if (!said->status)
        return false;
    while (*text && !strange) {
        size_t n = strcspn(text, "\n");
        char *line = strndup(text, n);

        strange = !line || (strstr(line, "error: ") && !strstr(line, "No error") &&
                            !hg_agent_number_of(line));
        free(line);
        text += n + (text[n] == '\n');
    }
    return strange;
}

static int answer_gone(struct hg_agent_call *call, const struct hg_agent_said *said,
                       const char *what)
{
    int worst = worst_of(hg_buf_str(&said->err));

    if (said->late || (worst && worst != NOT_KNOWN) || is_strange(said))
        return hg_agent_say(call, said, "%s", what);
    hg_agent_add(call, "gone", json_boolean(worst == NOT_KNOWN));
    return 0;
}

static int op_cancel(struct hg_agent_call *call)
{
    char *id = name_tasks(call, "cancel");
    struct hg_agent_said said;
    int rc = -1;

    if (!id)
        return -1;
    /* -v: that a job is unknown is not worth a word otherwise */
    if (hg_agent_run(call, (const char *const[]){ "scancel", "-v", id, NULL }, &said) == 0)
        rc = answer_gone(call, &said, "cancel");
    hg_agent_said_done(&said);
    free(id);
    return rc;
}

static int op_hold(struct hg_agent_call *call)
{
    const json_t *held = json_object_get(call->request->root, "held");
    const char *word = json_is_true(held) ? "uhold" : "release";
    struct hg_agent_said said;
    char *id;
    int rc = -1;

    if (!json_is_boolean(held))
        return hg_err_set(&call->err, HG_E_BUG, "hold needs \"held\", true or false");
    id = name_tasks(call, "hold");
    if (!id)
        return -1;
    if (hg_agent_run(call, (const char *const[]){ "scontrol", word, id, NULL }, &said) == 0)
        rc = answer_gone(call, &said, json_is_true(held) ? "hold" : "release");
    hg_agent_said_done(&said);
    free(id);
    return rc;
}

/* ---- partitions and nodes ---- */

static const char *member(const char *line, const char *key, struct hg_buf *scratch)
{
    hg_agent_member(line, key, scratch);
    return hg_buf_str(scratch);
}

static json_t *text_of(const char *line, const char *key, struct hg_buf *scratch)
{
    return hg_agent_text(member(line, key, scratch));
}

static json_t *number_of(const char *line, const char *key, struct hg_buf *scratch)
{
    return json_integer(strtoll(member(line, key, scratch), NULL, 10));
}

/* "1-02:03:04", "02:03:04"; null for UNLIMITED and NONE */
static json_t *seconds_of(const char *line, const char *key, struct hg_buf *scratch)
{
    const char *text = member(line, key, scratch), *clock = strchr(text, '-');
    long long days = clock ? strtoll(text, NULL, 10) : 0, h = 0, m = 0, s = 0;

    if (sscanf(clock ? clock + 1 : text, "%lld:%lld:%lld", &h, &m, &s) != 3)
        return json_null();
    return json_integer(days * 86400 + h * 3600 + m * 60 + s);
}

static json_t *limit_of(const char *line, const char *key, struct hg_buf *scratch)
{
    const char *text = member(line, key, scratch);

    return isdigit((unsigned char)*text) ? json_integer(strtoll(text, NULL, 10)) : json_null();
}

/* "" for ALL */
static json_t *list_of(const char *line, const char *key, struct hg_buf *scratch)
{
    const char *text = member(line, key, scratch);

    return hg_agent_text(strcmp(text, "ALL") == 0 ? "" : text);
}

static json_t *encode_partition(const char *line, struct hg_buf *t)
{
    json_t *o = json_object();

    json_object_set_new(o, "name", text_of(line, "PartitionName", t));
    json_object_set_new(o, "default", json_boolean(strcmp(member(line, "Default", t), "YES") == 0));
    json_object_set_new(o, "up", json_boolean(strcmp(member(line, "State", t), "UP") == 0));
    json_object_set_new(o, "max_time_s", seconds_of(line, "MaxTime", t));
    json_object_set_new(o, "default_time_s", seconds_of(line, "DefaultTime", t));
    json_object_set_new(o, "max_nodes", limit_of(line, "MaxNodes", t));
    json_object_set_new(o, "nodes", text_of(line, "Nodes", t));
    json_object_set_new(o, "total_nodes", number_of(line, "TotalNodes", t));
    json_object_set_new(o, "total_cpus", number_of(line, "TotalCPUs", t));
    json_object_set_new(o, "allow_accounts", list_of(line, "AllowAccounts", t));
    json_object_set_new(o, "allow_qos", list_of(line, "AllowQos", t));
    return o;
}

/* "Reason=fan is loud [root@2026-11-22T06:00:00]", the last but the comment */
static json_t *reason_of(const char *line)
{
    const char *at = strstr(line, " Reason="), *end = at ? strstr(at, " [") : NULL;
    char *text;
    json_t *reason;

    if (!at)
        return json_string("");
    at += strlen(" Reason=");
    text = strndup(at, end ? (size_t)(end - at) : strlen(at));
    reason = hg_agent_text(text);
    free(text);
    return reason;
}

static json_t *encode_node(const char *line, struct hg_buf *t)
{
    json_t *o = json_object();

    json_object_set_new(o, "name", text_of(line, "NodeName", t));
    json_object_set_new(o, "state", text_of(line, "State", t));
    json_object_set_new(o, "reason", reason_of(line));
    json_object_set_new(o, "cpus", number_of(line, "CPUTot", t));
    json_object_set_new(o, "mem_mib", number_of(line, "RealMemory", t));
    json_object_set_new(o, "gres", text_of(line, "Gres", t));
    json_object_set_new(o, "features", text_of(line, "AvailableFeatures", t));
    json_object_set_new(o, "version", text_of(line, "Version", t));
    return o;
}

/* `scontrol show WHAT`: one line for each. */
static int list(struct hg_agent_call *call, const char *what, const char *name,
                json_t *(*encode)(const char *line, struct hg_buf *scratch))
{
    struct hg_buf scratch = HG_BUF_INIT;
    json_t *all = json_array();
    struct hg_agent_said said;
    char *save = NULL;
    int rc;

    hg_agent_add(call, name, all);
    rc = hg_agent_run_well(
        call, (const char *const[]){ "scontrol", "-a", "-o", "show", what, NULL }, &said, what);
    for (char *line = rc == 0 && said.out.len ? strtok_r(said.out.data, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        if (strstr(line, "Name="))
            json_array_append_new(all, encode(line, &scratch));
    hg_buf_done(&scratch);
    hg_agent_said_done(&said);
    return rc;
}

static int op_partitions(struct hg_agent_call *call)
{
    return list(call, "partition", "partitions", encode_partition);
}

static int op_nodes(struct hg_agent_call *call)
{
    return list(call, "node", "nodes", encode_node);
}

static const struct hg_agent_op ops[] = {
    { "hello", op_hello, false },
    { "limits", op_limits, true },
    { "submit", hg_agent_submit, true },
    { "probe", hg_agent_probe, true },
    { "poll", hg_agent_poll, true },
    { "history", op_history, true },
    { "cancel", op_cancel, true },
    { "hold", op_hold, true },
    { "nodes", op_nodes, true },
    { "partitions", op_partitions, true },
    { 0 },
};

static int usage(const char *word)
{
    if (strcmp(word, "--version") == 0) {
        puts(HG_AGENT_PROGRAM " " HPCGRID_VERSION);
        return 0;
    }
    fputs("usage: " HG_AGENT_PROGRAM "\n\nAnswers requests of hpcgrid, JSON lines on stdin, with "
          "sbatch, squeue, sacct, scancel\nand scontrol.\n",
          strcmp(word, "--help") == 0 ? stdout : stderr);
    return strcmp(word, "--help") == 0 ? 0 : 2;
}

int main(int argc, char **argv)
{
    const struct hg_agent agent = { .library = "Slurm", .ops = ops, .need_slurm = need_slurm };
    int answers;

    if (argc > 1)
        return usage(argv[1]);
    answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (answers < 0) {
        fputs(HG_AGENT_PROGRAM ": it has no stdout\n", stderr);
        return 4;
    }
    return hg_agent_serve(&agent, answers);
}
