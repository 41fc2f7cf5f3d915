/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-sbatch: Slurm's own commands behind a pipe. slurm/README.md has the protocol. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/proc.h"
#include "slurm/cli/jobs.h"
#include "slurm/cli/lists.h"
#include "slurm/cli/run.h"
#include "slurm/cli/submit.h"
#include "slurm/common/conf.h"
#include "slurm/common/munge.h"
#include "slurm/common/serve.h"
#include "slurm/common/codes.h"

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

/* "slurm-wlm 22.05.8" -> "22.05.8", appended to out. False: sbatch is absent, or finds no slurm.conf: it reads
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

/* Add the number of a line to the answer. AGAIN: the line is not there, so the output is damaged. */
static int add_number(struct hg_agent_call *call, const char *name, const char *text,
                      const char *key)
{
    char value[512];

    if (!isdigit((unsigned char)*config_value(text, key, value)))
        return hg_err_set(&call->err, HG_E_AGAIN,
                          "cannot read what scontrol prints: its configuration has no %s", key);
    hg_agent_add(call, name, json_integer(strtoll(value, NULL, 10)));
    return 0;
}

static int add_limits(struct hg_agent_call *call, const char *config)
{
    char value[512];

    if (add_number(call, "max_array_size", config, "MaxArraySize") < 0 ||
        add_number(call, "max_jobs", config, "MaxJobCount") < 0 ||
        add_number(call, "min_job_age_s", config, "MinJobAge") < 0)
        return -1;
    hg_agent_add(call, "ambiguous_s",
                 json_integer(hg_agent_credential_life_s(config_value(config, "AuthInfo", value))));
    if (add_number(call, "message_timeout_s", config, "MessageTimeout") < 0)
        return -1;
    config_value(config, "AccountingStorageType", value);
    hg_agent_add(call, "accounting", json_boolean(strstr(value, "slurmdbd") != NULL));
    hg_agent_add(call, "version", hg_agent_text(config_value(config, "SLURM_VERSION", value)));
    hg_agent_add(call, "cluster", hg_agent_text(config_value(config, "ClusterName", value)));
    return 0;
}

static int op_limits(struct hg_agent_call *call)
{
    struct hg_agent_said said;
    int rc = hg_agent_run_well(call, (const char *const[]){ "scontrol", "show", "config", NULL },
                               &said, "cannot read the configuration");

    if (rc == 0)
        rc = add_limits(call, hg_buf_str(&said.out));
    hg_agent_said_done(&said);
    return rc;
}

/* ---- cancel and hold ---- */

enum { NOT_KNOWN = 2017 };

/* The task has ended, or cannot be held any more: nothing to do. */
static bool is_past(int number)
{
    static const int past[] = { 2020, 2021, 2073, 2083, 2084 };

    for (size_t i = 0; i < sizeof past / sizeof *past; i++)
        if (number == past[i])
            return true;
    return false;
}

/* The worst error number of what a command printed, 0 if there is none. Lines without an error, or with "No error", do
 * not count; neither does "17_4: Invalid job id specified", of one task among others. */
static int worst_of(const char *text)
{
    int worst = 0;

    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = hg_strndup(text, n);
        int number = hg_agent_number_of(line);

        if (number == NOT_KNOWN && isdigit((unsigned char)*line))
            number = 0;
        free(line);
        if (number && !is_past(number) && (!worst || worst == NOT_KNOWN))
            worst = number;
        text += n + (text[n] == '\n');
    }
    return worst;
}

/* Did it print an unknown error, or end abnormally? Then it is not known whether it was done. */
static bool is_strange(const struct hg_agent_said *said)
{
    const char *text = hg_buf_str(&said->err);
    bool strange = !*text || !WIFEXITED(said->status) || WEXITSTATUS(said->status) > 1;

    if (!said->status)
        return false;
    while (*text && !strange) {
        size_t n = strcspn(text, "\n");
        char *line = hg_strndup(text, n);

        strange = strstr(line, "error: ") && !strstr(line, "No error") && !hg_agent_number_of(line);
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
        return hg_agent_say(call, said, what);
    hg_agent_add(call, "gone", json_boolean(worst == NOT_KNOWN));
    return 0;
}

/* Run a command on the tasks. */
static int change(struct hg_agent_call *call, const char *program, const char *word,
                  long long job_id, const char *tasks, const char *what)
{
    char *id = hg_agent_name_tasks(job_id, tasks);
    const char *const argv[] = { program, word, id, NULL };
    struct hg_agent_said said;
    int rc = hg_agent_run(call, argv, &said);

    if (rc == 0)
        rc = answer_gone(call, &said, what);
    hg_agent_said_done(&said);
    free(id);
    return rc;
}

static int op_cancel(struct hg_agent_call *call, long long job_id, const char *tasks)
{
    /* -v: otherwise it does not mention that a job is unknown */
    return change(call, "scancel", "-v", job_id, tasks, "cancel");
}

static int op_hold(struct hg_agent_call *call, long long job_id, const char *tasks, bool held)
{
    return change(call, "scontrol", held ? "uhold" : "release", job_id, tasks,
                  held ? "hold" : "release");
}

static int begin(const char *argument, struct hg_err *err)
{
    int answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

    (void)argument;
    return answers < 0 ? hg_err_sys(err, "cannot use stdout") : answers;
}

int main(int argc, char **argv)
{
    static const struct hg_agent agent = {
        .program = "hpcgrid-sbatch",
        .library = "Slurm",
        .usage =
            "\n\nAnswers requests of hpcgrid, JSON lines on stdin, with sbatch, squeue, sacct, "
            "scancel\nand scontrol.",
        .begin = begin,
        .need_slurm = need_slurm,
        .hello = op_hello,
        .limits = op_limits,
        .submit = hg_agent_submit,
        .probe = hg_agent_probe,
        .poll = hg_agent_poll,
        .history = hg_agent_history,
        .cancel = op_cancel,
        .hold = op_hold,
        .partitions = hg_agent_partitions,
        .nodes = hg_agent_nodes,
        .accounts = hg_agent_accounts,
    };

    return hg_agent_main(&agent, argc, argv);
}
