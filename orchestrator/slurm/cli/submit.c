/* SPDX-License-Identifier: Apache-2.0 */
/* sbatch as a child. It may be killed, or be a wrapper of the site: unless it is certain that nothing was submitted,
 * the answer is "ambiguous". */
#include "slurm/cli/submit.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/proc.h"
#include "slurm/cli/run.h"
#include "slurm/common/codes.h"
#include "slurm/common/conf.h"

#define SBATCH_S 45.0   /* below the deadline of the client */
#define WORD_MAX 131000 /* Linux's limit for one argument */
#define FAILED "Batch job submission failed: "
#define NAP_S 0.9 /* sbatch sleeps a second before it tries again */

/* ---- words ---- */

static void push_option(struct hg_agent_words *w, const char *name, const char *value)
{
    if (value)
        hg_agent_words_take(w, hg_str_printf("--%s=%s", name, value));
}

static void push_number(struct hg_agent_words *w, const char *name, long long value)
{
    hg_agent_words_take(w, hg_str_printf("--%s=%lld", name, value));
}

static void push_places(struct hg_agent_words *w, const struct hg_agent_job *job)
{
    push_option(w, "job-name", job->name);
    push_option(w, "comment", job->comment);
    push_option(w, "chdir", job->f.work_dir);
    push_option(w, "output", job->f.output);
    push_option(w, "open-mode", "append");
}

static void push_size(struct hg_agent_words *w, const struct hg_agent_fields *f)
{
    push_number(w, "nodes", f->nodes);
    push_number(w, "ntasks", f->nodes * f->tasks_per_node);
    push_number(w, "ntasks-per-node", f->tasks_per_node);
    push_number(w, "cpus-per-task", f->cpus_per_task);
    push_option(w, "gres", f->gres && f->gres[0] ? f->gres : NULL);
    if (f->mem_mib >= 0)
        hg_agent_words_take(w, hg_str_printf("--mem=%lldM", f->mem_mib));
    if (f->time_s > 0)
        push_number(w, "time", hg_agent_job_minutes(f));
}

static void push_rest(struct hg_agent_words *w, const struct hg_agent_fields *f)
{
    push_option(w, "partition", f->partition);
    push_option(w, "account", f->account);
    push_option(w, "qos", f->qos);
    push_option(w, "constraint", f->constraint);
    push_option(w, "reservation", f->reservation);
    push_option(w, "licenses", f->licenses);
    if (f->signal_lead_s)
        hg_agent_words_take(w, hg_str_printf("--signal=USR1@%lld", f->signal_lead_s));
    if (f->requeue_is_said)
        hg_agent_words_take(w, hg_strdup(f->requeue ? "--requeue" : "--no-requeue"));
}

static void push_array(struct hg_agent_words *w, const struct hg_agent_fields *f)
{
    if (f->array && f->running_max)
        hg_agent_words_take(w, hg_str_printf("--array=%s%%%lld", f->array, f->running_max));
    else
        push_option(w, "array", f->array);
}

static void push_options(struct hg_agent_words *w, const struct hg_sbatch_options *options)
{
    for (size_t i = 0; i < options->n; i++) {
        const struct hg_sbatch_option *o = &options->items[i];

        hg_agent_words_take(w, o->text ? hg_str_printf("--%s=%s", o->name, o->text)
                                       : hg_str_printf("--%s", o->name));
    }
}

/* The script comes from stdin: see hand_script. */
static int make_words(struct hg_agent_words *w, const struct hg_agent_job *job, const char *mode,
                      bool for_array, struct hg_err *err)
{
    hg_agent_words_take(w, hg_strdup("sbatch"));
    hg_agent_words_take(w, hg_strdup(mode));
    push_places(w, job);
    push_size(w, &job->f);
    push_rest(w, &job->f);
    if (for_array)
        push_array(w, &job->f);
    push_options(w, &job->options);
    hg_agent_words_take(w, hg_strdup("/dev/stdin"));
    for (char **arg = job->f.args; arg && *arg; arg++)
        hg_agent_words_take(w, hg_strdup(*arg));
    for (size_t i = 0; i < w->n; i++)
        if (strlen(w->items[i]) > WORD_MAX)
            return hg_err_set(err, HG_E_REFUSED,
                              "%.20s...: longer than a command can take (%d bytes)", w->items[i],
                              WORD_MAX);
    hg_agent_words_take(w, NULL);
    return 0;
}

/* ---- the script ---- */

/* The job is what the request says: options in the script's header are for submitting it by hand, and
 * must have no effect here. In lower case they are comments. */
static void hide_headers(struct hg_buf *script)
{
    static const char *const words[] = { "#SBATCH", "#PBS", "#BSUB" };

    for (char *line = script->data; line && *line;) {
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strncmp(line, words[i], strlen(words[i])) == 0)
                for (size_t k = 1; k < strlen(words[i]); k++)
                    line[k] = (char)tolower((unsigned char)line[k]);
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
}

/* A file without a name that holds the script; -1 with err set. */
static int hand_script(struct hg_agent_job *job, struct hg_err *err)
{
    int fd = memfd_create("script", MFD_CLOEXEC);

    hide_headers(&job->script);
    if (fd >= 0 && hg_fs_write_all(fd, job->script.data, job->script.len) == 0 &&
        lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    hg_err_sys(err, "cannot hand the script to sbatch");
    if (fd >= 0)
        close(fd);
    return -1;
}

/* ---- one sbatch ---- */

/* If the job table is full, sbatch prints that, sleeps a second and tries again, up to fifteen times. We kill it
 * while it sleeps, when no request is in flight. */
struct nap {
    double looked_s; /* when we looked last but one: it had not said so by then */
    double now_s;
    bool asleep;
};

static bool is_asleep(const struct hg_buf *errout, void *context)
{
    struct nap *nap = context;

    nap->asleep = strstr(hg_buf_str(errout), "sleeping and retrying") ||
                  strstr(hg_buf_str(errout), "temporarily disabled, retrying");
    if (!nap->asleep) {
        nap->looked_s = nap->now_s;
        nap->now_s = hg_clock_mono_s();
    }
    return nap->asleep;
}

struct attempt {
    struct hg_agent_said said;
    bool napped;  /* it was ended because it would try again */
    bool certain; /* and was dead before it could have */
};

static int run_sbatch(struct hg_agent_call *call, struct hg_agent_job *job,
                      const struct hg_agent_words *w, struct attempt *a)
{
    struct nap nap = { .looked_s = hg_clock_mono_s(), .now_s = hg_clock_mono_s() };
    struct hg_proc_watching watch = { .limit_s = SBATCH_S, .enough = is_asleep, .context = &nap };
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;
    int rc, fd = hand_script(job, &call->err);

    if (fd < 0)
        return -1;
    hg_agent_words_take(&job->env, NULL);
    spec.argv = (const char *const *)w->items;
    spec.env = (const char *const *)job->env.items; /* the job inherits it */
    spec.cwd = job->f.work_dir;
    spec.in = fd;
    spec.new_session = true; /* a site's own sbatch is ended with what it started */
    spec.death_signal = SIGKILL;
    call->rpcs++;
    rc = hg_proc_watch(&spec, &watch, &a->said.out, &a->said.err, &a->said.status, &call->err);
    close(fd);
    if (rc < 0) {
        call->rpcs--;
        call->err.code = HG_E_ENV;
        return hg_err_hint(&call->err, "Slurm's commands must be in PATH");
    }
    a->said.late = watch.late;
    a->napped = nap.asleep && !watch.late;
    a->certain = watch.alone && hg_clock_mono_s() - nap.looked_s < NAP_S;
    return 0;
}

/* ---- errors ---- */

/* "17" or "17;cluster" in a line of its own: the last such line. 0: none. */
static unsigned long find_id(const char *out)
{
    unsigned long id = 0;

    while (*out) {
        size_t n = strcspn(out, "\n");
        char *end;
        unsigned long found = isdigit((unsigned char)*out) ? strtoul(out, &end, 10) : 0;

        if (found && found <= UINT32_MAX && (*end == '\n' || *end == ';' || !*end))
            id = found;
        out += n + (out[n] == '\n');
    }
    return id;
}

/* The id that sbatch printed. 0: none, or sbatch also printed that the submission failed. */
static unsigned long take_id(const struct attempt *a)
{
    bool failed = a->said.status && strstr(hg_buf_str(&a->said.err), FAILED);

    return failed ? 0 : find_id(hg_buf_str(&a->said.out));
}

/* The last line that is not empty. */
static const char *last_line(const char *text, size_t *n)
{
    const char *last = "";

    *n = 0;
    while (*text) {
        size_t len = strcspn(text, "\n");

        if (len) {
            last = text;
            *n = len;
        }
        text += len + (text[len] == '\n');
    }
    return last;
}

/* sbatch failed before it sent anything: its last line and exit code show it. */
static bool ended_before_sending(const struct hg_agent_said *said)
{
    static const char *const starts[] = { "sbatch: error: ", "sbatch: fatal: ",
                                          "sbatch: unrecognized option", "Try \"sbatch --help\"" };
    size_t n;
    const char *last = last_line(hg_buf_str(&said->err), &n);

    if (!WIFEXITED(said->status) ||
        (WEXITSTATUS(said->status) != 1 && WEXITSTATUS(said->status) != 255))
        return false;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (n >= strlen(starts[i]) && strncmp(last, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/* What follows the last of these words on its line, as a new string; NULL: they are not there. */
static char *text_after(const char *text, const char *words)
{
    const char *at = NULL;

    for (const char *p = text; (p = strstr(p, words)); p += strlen(words))
        at = p + strlen(words);
    return at ? hg_strndup(at, strcspn(at, "\n")) : NULL;
}

/* sbatch's reason for its failure. A wrapper of the site may have called it more than once: the first reason that
 * is ambiguous, else the last. Yours; NULL: none. */
static char *find_failure(const char *text)
{
    char *found = NULL;
    bool open = false;

    for (const char *p = text; !open && (p = strstr(p, FAILED));) {
        p += strlen(FAILED);
        free(found);
        found = hg_strndup(p, strcspn(p, "\n"));
        open = hg_agent_classify(hg_agent_number_of(found), "") == HG_E_AMBIGUOUS;
    }
    return found;
}

/* Slurm named a reason. */
static int fail_by_words(struct hg_agent_call *call, const char *words, const char *what)
{
    int number = hg_agent_number_of(words);

    if (number)
        return hg_agent_fail_number(call, number, words, "%s", what);
    return hg_err_set(&call->err, call->submitting ? HG_E_AMBIGUOUS : HG_E_REFUSED,
                      "%s: %s (unknown error)", what, words);
}

/* sbatch itself refused, perhaps in the controller's words. If they are about a lost message, one was
 * sent. */
static int fail_before_sending(struct hg_agent_call *call, const char *what)
{
    int number = hg_agent_number_of(hg_buf_str(&call->site));
    enum hg_err_code code = hg_agent_classify(number, "");

    if (code == HG_E_REFUSED || (code == HG_E_AMBIGUOUS && hg_agent_knows(number)))
        return hg_agent_fail_number(call, number, "sbatch rejected it", "%s", what);
    return hg_err_set(&call->err, HG_E_REFUSED, "%s: sbatch rejected it", what);
}

static int fail_submit(struct hg_agent_call *call, const struct attempt *a, const char *what)
{
    const char *said = hg_buf_str(&a->said.err);
    char *words = find_failure(said), ended[64];
    int rc;

    hg_agent_add_lines(said, FAILED, &call->site);
    hg_proc_status_format(a->said.status, ended);
    if (a->said.late)
        rc = hg_err_set(&call->err, HG_E_AMBIGUOUS, "submit: sbatch had no answer within %g s",
                        SBATCH_S);
    else if (a->napped)
        rc = a->certain ? hg_agent_fail_number(call, EAGAIN, "", "%s", what)
                        : hg_err_set(&call->err, HG_E_AMBIGUOUS,
                                     "submit: sbatch may have tried again before it was stopped");
    else if (WIFSIGNALED(a->said.status))
        rc = hg_err_set(&call->err, HG_E_AMBIGUOUS, "submit: sbatch was ended by %s", ended);
    else if (words && find_id(hg_buf_str(&a->said.out)))
        rc = hg_err_set(&call->err, HG_E_AMBIGUOUS,
                        "submit: sbatch printed a job id and an error: %s", words);
    else if (words)
        rc = fail_by_words(call, words, what);
    else if (strstr(said, "Could not establish a configuration source"))
        rc = hg_agent_no_conf(call);
    else if (ended_before_sending(&a->said))
        rc = fail_before_sending(call, what);
    else
        rc = hg_err_set(&call->err, HG_E_AMBIGUOUS,
                        "submit: sbatch ended with %s and printed no reason", ended);
    free(words);
    return rc;
}

static int send(struct hg_agent_call *call, struct hg_agent_job *job, const char *mode,
                bool for_array, struct attempt *a)
{
    struct hg_agent_words w = { 0 };
    int rc = make_words(&w, job, mode, for_array, &call->err);

    if (rc == 0)
        rc = run_sbatch(call, job, &w, a);
    hg_agent_words_done(&w);
    return rc;
}

int hg_agent_submit(struct hg_agent_call *call, struct hg_agent_job *job, const char *what)
{
    struct attempt a = { .said = { .out = HG_BUF_INIT, .err = HG_BUF_INIT } };
    int rc = send(call, job, "--parsable", true, &a);
    unsigned long id = rc == 0 ? take_id(&a) : 0;

    if (id) {
        hg_agent_add_lines(hg_buf_str(&a.said.err), NULL, &call->site);
        hg_agent_add(call, "job_id", json_integer((json_int_t)id));
        hg_agent_add(call, "site", hg_agent_text(hg_buf_str(&call->site)));
    } else if (rc == 0) {
        rc = fail_submit(call, &a, what);
    }
    hg_agent_said_done(&a.said);
    return rc;
}

/* ---- probe ---- */

/* "sbatch: Job 4 to start at 1795328799 using 1 processors on nodes a100-1 in partition a100"; where its
 * environment has no SLURM_TIME_FORMAT, a time as people read it. */
static void add_estimate(struct hg_agent_call *call, const char *said)
{
    char *start = text_after(said, " to start at "), *nodes = text_after(said, " on nodes ");
    struct tm tm = { .tm_isdst = -1 };
    char *end = start ? strptime(start, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;

    if (nodes)
        nodes[strcspn(nodes, " ")] = '\0';
    hg_agent_add(call, "start_s", json_integer(end ? (json_int_t)mktime(&tm) : 0));
    hg_agent_add(call, "nodes", hg_agent_text(nodes));
    free(start);
    free(nodes);
}

int hg_agent_probe(struct hg_agent_call *call, struct hg_agent_job *job, const char *what)
{
    struct attempt a = { .said = { .out = HG_BUF_INIT, .err = HG_BUF_INIT } };
    int rc = send(call, job, "--test-only", false, &a);
    const char *said = hg_buf_str(&a.said.err);
    char *words = NULL;

    if (rc == 0 && !a.said.late && a.said.status == 0) {
        add_estimate(call, said);
    } else if (rc == 0 && (words = text_after(said, "allocation failure: "))) {
        hg_agent_add_lines(said, "allocation failure: ", &call->site);
        rc = fail_by_words(call, words, what);
    } else if (rc == 0 && !a.said.late && ended_before_sending(&a.said)) {
        hg_agent_add_lines(said, NULL, &call->site);
        rc = fail_before_sending(call, what);
    } else if (rc == 0) {
        rc = hg_agent_say(call, &a.said, what);
    }
    free(words);
    hg_agent_said_done(&a.said);
    return rc;
}
