/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's commands as children: never through a shell, always with a time limit. */
#include "slurm/cli/run.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/proc.h"
#include "slurm/common/codes.h"

#define COMMAND_S 45.0 /* below the deadline of the client; Slurm's own is usually 10 s */
#define OUTPUT_MAX ((size_t)1 << 30) /* squeue has a line for each task */
#define ENV_MAX 4096

extern char **environ;

void hg_agent_said_done(struct hg_agent_said *said)
{
    hg_buf_done(&said->out);
    hg_buf_done(&said->err);
}

/* Variables that change what the commands request or print. */
static bool changes_output(const char *assignment)
{
    static const char *const prefixes[] = { "SQUEUE_",   "SACCT_", "SBATCH_", "SCANCEL_",
                                            "SCONTROL_", "SINFO_", "SALLOC_", "SLURM_",
                                            "LC_",       "LANG" };
    static const char *const kept[] = { "SLURM_CONF=", "SLURM_CONF_SERVER=", "SLURM_JWT=" };

    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strncmp(assignment, kept[i], strlen(kept[i])) == 0)
            return false;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(assignment, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static void make_env(const char *env[static ENV_MAX + 4])
{
    size_t n = 0;

    for (char **e = environ; *e && n < ENV_MAX; e++)
        if (!changes_output(*e))
            env[n++] = *e;
    env[n++] = "LC_ALL=C";
    env[n++] = "SLURM_TIME_FORMAT=%s";
    env[n++] = "SLURM_BITSTR_LEN=0"; /* index sets are never cut short */
    env[n] = NULL;
}

int hg_agent_run(struct hg_agent_call *call, const char *const *argv, struct hg_agent_said *said)
{
    const char *env[ENV_MAX + 4];
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;
    struct hg_proc_watching watch = { .limit_s = COMMAND_S, .most = OUTPUT_MAX };

    *said = (struct hg_agent_said){ .out = HG_BUF_INIT, .err = HG_BUF_INIT };
    make_env(env);
    spec.argv = argv;
    spec.env = env;
    spec.in = HG_PROC_NULL;
    spec.new_session = true;
    spec.death_signal = SIGKILL;
    call->rpcs++;
    if (hg_proc_watch(&spec, &watch, &said->out, &said->err, &said->status, &call->err) < 0) {
        call->rpcs--;
        call->err.code = HG_E_ENV;
        return hg_err_hint(&call->err, "Slurm's commands must be in PATH");
    }
    said->late = watch.late;
    if (said->out.len >= OUTPUT_MAX)
        return hg_err_set(&call->err, HG_E_AGAIN, "%s prints more than %zu MiB", argv[0],
                          OUTPUT_MAX >> 20);
    return 0;
}

/* The error number of the last line that has one, and that line's text after its last colon and blank. */
static int find_number(const char *lines, struct hg_buf *words)
{
    int number = 0;

    while (*lines) {
        size_t n = strcspn(lines, "\n");
        char *line = hg_strndup(lines, n);
        int found = hg_agent_number_of(line);

        if (found) {
            const char *colon = strrchr(line, ':');

            number = found;
            hg_buf_clear(words);
            hg_buf_puts(words, colon && colon[1] == ' ' ? colon + 2 : line);
        }
        free(line);
        lines += n + (lines[n] == '\n');
    }
    return number;
}

int hg_agent_say(struct hg_agent_call *call, const struct hg_agent_said *said, const char *what)
{
    struct hg_buf words = HG_BUF_INIT;
    char ended[64];
    int number;

    hg_agent_add_lines(hg_buf_str(&said->err), NULL, &call->site);
    number = find_number(hg_buf_str(&call->site), &words);
    hg_proc_status_format(said->status, ended);
    if (number)
        hg_agent_fail_number(call, number, hg_buf_str(&words), "%s", what);
    else if (said->late)
        hg_err_set(&call->err, HG_E_AGAIN, "%s: no answer within %g s", what, COMMAND_S);
    else if (strstr(hg_buf_str(&said->err), ": fatal: ")) /* before any request was sent */
        hg_err_set(&call->err, HG_E_ENV, "%s: Slurm's commands do not work here", what);
    else
        hg_err_set(&call->err, HG_E_AGAIN, "%s: %s", what, ended);
    hg_buf_done(&words);
    return -1;
}

/* A wrapper of the site may have lost its exit code: no output is not the same as no jobs. */
static bool lost_its_status(const struct hg_agent_said *said)
{
    int number = hg_agent_number_of(hg_buf_str(&said->err));
    enum hg_err_code code = hg_agent_classify(number, "");

    return !said->out.len && hg_agent_knows(number) &&
           (code == HG_E_ENV || code == HG_E_AMBIGUOUS || code == HG_E_AGAIN);
}

int hg_agent_run_well(struct hg_agent_call *call, const char *const *argv,
                      struct hg_agent_said *said, const char *what)
{
    if (hg_agent_run(call, argv, said) < 0)
        return -1;
    return said->late || said->status || lost_its_status(said) ? hg_agent_say(call, said, what) : 0;
}
