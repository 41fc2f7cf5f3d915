/* SPDX-License-Identifier: Apache-2.0 */
/* Executor "slurm": the client of an agent, which speaks JSON lines (slurm/README.md). Which agent: transport.h.
 *
 * The agent is started when the first answer is wanted and again whenever it has died. Each call
 * has a deadline; an agent that has not answered by then is killed, because its answer would come
 * between the next question and its own. What a death or a silence means depends on the question
 * alone: after "submit" nobody knows (AMBIGUOUS), after anything else nothing happened (AGAIN).
 */
#include "slurm/client/executor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "base/vec.h"
#include "slurm/client/transport.h"

#define ANSWER_MAX ((size_t)256 << 20) /* a poll of a million tasks */
#define STDERR_KEEP 2048
#define NO_PARTITION 2000 /* ESLURM_INVALID_PARTITION_NAME, in every version */
#define NAMES_MAX 256

struct hg_exec {
    const struct hg_transport *transport;
    bool automatic;        /* nobody asked for this transport: another may do */
    json_t *site;          /* NULL: none */
    char *path, *argument; /* of the agent */
    double deadline_s;
    struct hg_proc proc; /* pid 0: not running */
    struct hg_buf in;    /* bytes of the answer read so far */
    char last_words[STDERR_KEEP];
    size_t n_last_words;
    json_int_t next_id;
    unsigned submits, polls, cancels;
    double cpu_s;          /* of the agent, when it answered last */
    json_int_t last_errno; /* Slurm's number of the last error */
    char about[96];        /* members of the job that the last refusal was about */
    bool unfit;            /* the last error: this agent does not go with this Slurm */
    uint32_t
        doubt_s; /* the last error, of a submission: so long it may still appear; 0: not said */
    bool away;   /* ... it does, but Slurm does not answer */
};

/* ---- The process ---- */

static void stop_agent(struct hg_exec *x, int signal_number)
{
    int status;

    if (x->proc.pid <= 0)
        return;
    close(x->proc.in); /* an agent that waits for work ends by itself */
    if (signal_number)
        kill(x->proc.pid, signal_number);
    if (hg_proc_wait(x->proc.pid, 2.0, &status, NULL) == 1) {
        kill(x->proc.pid, SIGKILL);
        hg_proc_wait(x->proc.pid, -1, &status, NULL);
    }
    close(x->proc.out);
    close(x->proc.err);
    x->proc.pid = 0;
    hg_buf_clear(&x->in);
}

static int start_agent(struct hg_exec *x, struct hg_err *err)
{
    const char *const argv[] = { x->path, x->argument, NULL };
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;

    if (x->proc.pid > 0)
        return 0;
    spec.argv = argv;
    spec.in = spec.out = spec.err = HG_PROC_PIPE;
    spec.new_session = true; /* Ctrl-C is ours: a submission under way is finished first */
    spec.death_signal = SIGKILL;
    if (hg_proc_start(&spec, &x->proc, err) < 0) {
        x->proc.pid = 0;
        if (err && err->code == HG_E_NOTFOUND)
            err->code = HG_E_ENV;
        return -1;
    }
    fcntl(x->proc.in, F_SETFL, O_NONBLOCK);
    fcntl(x->proc.out, F_SETFL, O_NONBLOCK);
    fcntl(x->proc.err, F_SETFL, O_NONBLOCK);
    x->n_last_words = 0;
    hg_buf_clear(&x->in);
    return 0;
}

/* Keep the end of what the agent prints on stderr. */
static void read_stderr(struct hg_exec *x)
{
    char chunk[1024];
    ssize_t n;

    while ((n = read(x->proc.err, chunk, sizeof chunk)) > 0) {
        size_t len = (size_t)n, over;

        if (len + x->n_last_words >= STDERR_KEEP) {
            over = len + x->n_last_words - (STDERR_KEEP - 1);
            memmove(x->last_words, x->last_words + over, x->n_last_words - over);
            x->n_last_words -= over;
        }
        memcpy(x->last_words + x->n_last_words, chunk, len);
        x->n_last_words += len;
    }
    x->last_words[x->n_last_words] = '\0';
    while (x->n_last_words && x->last_words[x->n_last_words - 1] == '\n')
        x->last_words[--x->n_last_words] = '\0';
}

/* ---- One question, one answer ---- */

/* 1: ready, 0: time is up, -1: broken. events: POLLIN of the answer or POLLOUT of the question. */
static int wait_for(struct hg_exec *x, short events, double end)
{
    for (;;) {
        bool reading = events == POLLIN;
        struct pollfd fds[2] = { { .fd = reading ? x->proc.out : x->proc.in, .events = events },
                                 { .fd = x->proc.err, .events = POLLIN } };
        int left_ms = (int)((end - hg_clock_mono_s()) * 1000);

        if (left_ms <= 0)
            return 0;
        if (poll(fds, 2, left_ms) < 0 && errno != EINTR)
            return -1;
        if (fds[1].revents & POLLIN)
            read_stderr(x);
        else if (fds[1].revents)
            hg_clock_sleep_s(0.001); /* its stderr is closed: its end shows on stdout, too */
        if (fds[0].revents & events)
            return 1;
        if (fds[0].revents)
            return -1;
    }
}

static int send_line(struct hg_exec *x, const struct hg_buf *line, double end)
{
    size_t sent = 0;

    while (sent < line->len) {
        ssize_t n = write(x->proc.in, line->data + sent, line->len - sent);
        int rc;

        if (n > 0) {
            sent += (size_t)n;
        } else if (errno == EAGAIN) {
            rc = wait_for(x, POLLOUT, end);
            if (rc <= 0)
                return rc;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return 1;
}

/* Read up to the end of a line; x->in holds it without the newline. */
static int read_line(struct hg_exec *x, double end)
{
    hg_buf_clear(&x->in);
    for (;;) {
        ssize_t n;
        int rc = wait_for(x, POLLIN, end);

        if (rc <= 0)
            return rc;
        if (hg_buf_reserve(&x->in, 65536) < 0 || x->in.len > ANSWER_MAX)
            return -1;
        n = read(x->proc.out, x->in.data + x->in.len, 65536);
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
            return -1;
        if (n <= 0)
            continue;
        x->in.len += (size_t)n;
        x->in.data[x->in.len] = '\0';
        if (x->in.data[x->in.len - 1] == '\n') { /* one question at a time: nothing follows it */
            x->in.data[--x->in.len] = '\0';
            return 1;
        }
    }
}

/* No answer: say why, with the code that the question gives it. */
static int no_answer(struct hg_exec *x, const char *op, bool silent, struct hg_err *err)
{
    enum hg_err_code code = strcmp(op, "submit") == 0 ? HG_E_AMBIGUOUS : HG_E_AGAIN;

    read_stderr(x);
    stop_agent(x, SIGKILL);
    x->away = silent;
    if (silent)
        hg_err_set(err, code, "no answer to \"%s\" from %s within %g s", op, x->transport->program,
                   x->deadline_s);
    else
        hg_err_set(err, code, "%s ended without an answer to \"%s\"", x->transport->program, op);
    if (x->n_last_words)
        hg_err_hint(err, "its last words: %.400s", x->last_words);
    return -1;
}

static enum hg_err_code error_code(const char *word, const char *op)
{
    static const struct {
        const char *word;
        enum hg_err_code code;
    } codes[] = {
        { "again", HG_E_AGAIN }, { "ambiguous", HG_E_AMBIGUOUS }, { "refused", HG_E_REFUSED },
        { "env", HG_E_ENV },     { "notfound", HG_E_NOTFOUND },   { "bug", HG_E_BUG },
    };

    for (size_t i = 0; word && i < sizeof codes / sizeof *codes; i++)
        if (strcmp(word, codes[i].word) == 0)
            return codes[i].code;
    return strcmp(op, "submit") == 0 ? HG_E_AMBIGUOUS : HG_E_AGAIN; /* not a word we know */
}

/* "probe (partition x): Invalid partition (2000)" reads better as "Invalid partition (partition x)". */
static void plain_message(const char *message, const char *op, struct hg_buf *out)
{
    size_t n = strlen(op);
    const char *details = strncmp(message, op, n) == 0 && message[n] == ' ' ? message + n + 1 : "";
    const char *rest = *details == '(' ? strstr(details, "): ") : NULL;
    const char *number = rest ? strrchr(rest, '(') : NULL;

    if (!rest) {
        hg_buf_puts(out, message);
        return;
    }
    rest += 3;
    if (number && number > rest && strspn(number + 1, "0123456789") == strlen(number + 1) - 1)
        hg_buf_append(out, rest, (size_t)(number - rest));
    else
        hg_buf_printf(out, "%s ", rest);
    hg_buf_append(out, details, (size_t)(rest - 2 - details));
}

static int take_error(const json_t *error, const char *op, struct hg_err *err)
{
    const char *message = json_string_value(json_object_get(error, "message"));
    const char *site = json_string_value(json_object_get(error, "site"));
    const char *hint = json_string_value(json_object_get(error, "hint"));
    struct hg_buf text = HG_BUF_INIT;

    if (json_integer_value(json_object_get(error, "errno")) == NO_PARTITION)
        site = NULL; /* libslurm only says the name again */
    plain_message(message ? message : "unknown error", op, &text);
    hg_err_set(err, error_code(json_string_value(json_object_get(error, "code")), op), "%s%s%s",
               hg_buf_str(&text), site && *site ? ": " : "", site ? site : "");
    hg_buf_done(&text);
    if (hint && *hint)
        hg_err_hint(err, "%s", hint);
    return -1;
}

/* The request as a line; its id goes into it. */
static int make_line(struct hg_exec *x, const char *op, json_t *request, struct hg_buf *line,
                     struct hg_err *err)
{
    if (!request || json_object_set_new(request, "id", json_integer(++x->next_id)) < 0 ||
        json_object_set_new(request, "op", json_string(op)) < 0)
        return hg_err_oom(err);
    hg_json_dump(request, HG_JSON_COMPACT, line);
    hg_buf_puts(line, "\n");
    return line->failed ? hg_err_oom(err) : 0;
}

/* The answer to a line, a new reference. NULL: none came in time, or another's; err is set. */
static json_t *exchange(struct hg_exec *x, const char *op, const struct hg_buf *line,
                        struct hg_err *err)
{
    double end = hg_clock_mono_s() + x->deadline_s;
    json_t *answer = NULL;
    int got;

    if (start_agent(x, err) < 0)
        return NULL;
    got = send_line(x, line, end);
    if (got == 1)
        got = read_line(x, end);
    if (got == 1)
        answer = json_loadb(x->in.data, x->in.len, JSON_REJECT_DUPLICATES, NULL);
    if (answer && json_integer_value(json_object_get(answer, "id")) == x->next_id)
        return answer;
    no_answer(x, op, got == 0, err);
    json_decref(answer);
    return NULL;
}

static uint32_t get_u32(const json_t *object, const char *name)
{
    return (uint32_t)json_integer_value(json_object_get(object, name));
}

static void get_text(const json_t *object, const char *name, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(object, name));

    snprintf(out, size, "%s", text ? text : "");
}

/* The answer's "ok" object, a new reference, or its error. */
static int take_answer(struct hg_exec *x, const char *op, const json_t *answer, json_t **ok,
                       struct hg_err *err)
{
    const json_t *error = json_object_get(answer, "error");
    json_t *value = json_object_get(answer, "ok");

    if (error) {
        enum hg_err_code code = error_code(json_string_value(json_object_get(error, "code")), op);

        x->last_errno = json_integer_value(json_object_get(error, "errno"));
        x->unfit = json_is_true(json_object_get(error, "unfit"));
        x->doubt_s = get_u32(error, "ambiguous_s");
        get_text(error, "about", x->about, sizeof x->about);
        /* what is missing here has no number of Slurm's, nor of a connection that failed */
        x->away = !x->unfit && (code == HG_E_AGAIN || (code == HG_E_ENV && x->last_errno));
        return take_error(error, op, err);
    }
    if (!json_is_object(value))
        return no_answer(x, op, false, err);
    *ok = json_incref(value);
    return 0;
}

/* Ask this agent. request gets an id. */
static int ask_once(struct hg_exec *x, const char *op, json_t *request, unsigned *rpcs, json_t **ok,
                    struct hg_err *err)
{
    struct hg_buf line = HG_BUF_INIT;
    json_t *answer = NULL;
    int rc = -1;

    x->unfit = x->away = false;
    x->doubt_s = 0;
    if (make_line(x, op, request, &line, err) == 0)
        answer = exchange(x, op, &line, err);
    if (answer) {
        x->cpu_s = json_number_value(json_object_get(answer, "cpu_s"));
        if (rpcs)
            *rpcs += (unsigned)json_integer_value(json_object_get(answer, "rpcs"));
        rc = take_answer(x, op, answer, ok, err);
    }
    json_decref(answer);
    hg_buf_done(&line);
    return rc;
}

/* ---- Which agent ---- */

static void leave_agent(struct hg_exec *x)
{
    stop_agent(x, 0);
    free(x->path);
    free(x->argument);
    x->path = x->argument = NULL;
}

static int take_transport(struct hg_exec *x, const struct hg_transport *t, struct hg_err *err)
{
    leave_agent(x);
    x->transport = t;
    x->path = hg_transport_find(t, x->site, err);
    x->argument = hg_transport_argument(t, x->site);
    return x->path ? 0 : -1;
}

/* Does its agent start, and know a Slurm? Nobody else is asked. */
static bool is_usable(struct hg_exec *x, const struct hg_transport *t, struct hg_err *why)
{
    json_t *ok = NULL;
    bool usable;

    if (take_transport(x, t, why) < 0 || ask_once(x, "hello", json_object(), NULL, &ok, why) < 0)
        return false;
    usable = !json_is_null(json_object_get(ok, "conf"));
    if (!usable)
        hg_err_set(why, HG_E_ENV, "%s finds no Slurm that it belongs to", t->program);
    json_decref(ok);
    return usable;
}

/* The first usable transport from t on. -1 with ENV and why each of them is not. */
static int choose(struct hg_exec *x, const struct hg_transport *t, struct hg_err *err)
{
    struct hg_buf why = HG_BUF_INIT;

    for (; t->name; t++) {
        struct hg_err reason = HG_ERR_INIT;

        if (is_usable(x, t, &reason)) {
            hg_buf_done(&why);
            return 0;
        }
        hg_buf_printf(&why, "%s%s: %s", why.len ? "; " : "", t->name, reason.text);
    }
    leave_agent(x);
    hg_err_set(err, HG_E_ENV, "no way to a Slurm from here (%s)", hg_buf_str(&why));
    hg_buf_done(&why);
    return hg_err_hint(err, "`hpcgrid doctor` says what each of them needs");
}

/* Where none works, the first agent that is there says best what is missing. */
static int choose_any(struct hg_exec *x, struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;

    x->automatic = true;
    if (choose(x, hg_transports, &why) == 0)
        return 0;
    for (const struct hg_transport *t = hg_transports; t->name; t++)
        if (take_transport(x, t, NULL) == 0)
            return 0;
    if (err)
        *err = why;
    return -1;
}

/* Another instead of the one that is unfit; where there is none it stays. */
static int choose_next(struct hg_exec *x)
{
    const struct hg_transport *unfit = x->transport;

    if (choose(x, unfit + 1, NULL) == 0)
        return 0;
    take_transport(x, unfit, NULL);
    return -1;
}

static int open_transport(struct hg_exec *x, struct hg_err *err)
{
    const struct hg_transport *wanted;
    const char *by;

    if (hg_transport_wanted(x->site, &wanted, &by, err) < 0)
        return -1;
    if (!wanted)
        return choose_any(x, err);
    if (take_transport(x, wanted, err) == 0)
        return 0;
    return hg_err_wrap(err, "transport %s, asked for by %s", wanted->name, by);
}

/* ---- Methods ---- */

/* Ask; *ok is the answer's "ok" object, a new reference. request is consumed. An agent that does not go with
 * this Slurm has done nothing, so another may be asked the same. */
static int ask(struct hg_exec *x, const char *op, json_t *request, unsigned *rpcs, json_t **ok,
               struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;
    int rc = ask_once(x, op, request, rpcs, ok, &why);

    while (rc < 0 && x->unfit && (why.code == HG_E_ENV || why.code == HG_E_AGAIN) && x->automatic &&
           choose_next(x) == 0) {
        why = (struct hg_err)HG_ERR_INIT;
        rc = ask_once(x, op, request, rpcs, ok, &why);
    }
    if (rc < 0 && err)
        *err = why;
    json_decref(request);
    return rc;
}

static double agent_cpu_s(const struct hg_exec *x)
{
    return x->cpu_s;
}

static void agent_close(struct hg_exec *x)
{
    if (!x)
        return;
    leave_agent(x);
    hg_buf_done(&x->in);
    json_decref(x->site);
    free(x);
}

static struct hg_exec *agent_open(const json_t *config, double deadline_s, struct hg_err *err)
{
    struct hg_exec *x = calloc(1, sizeof *x);

    if (!x) {
        hg_err_oom(err);
        return NULL;
    }
    x->deadline_s = deadline_s;
    x->site = json_incref((json_t *)config);
    if (open_transport(x, err) < 0) {
        agent_close(x);
        return NULL;
    }
    return x;
}

static bool agent_away(const struct hg_exec *x)
{
    return x->away;
}

static const char *agent_transport(const struct hg_exec *x)
{
    return x->transport->name;
}

static const char *agent_about(const struct hg_exec *x)
{
    return x->about;
}

static uint32_t agent_doubt_s(const struct hg_exec *x)
{
    return x->doubt_s;
}

static int agent_limits(struct hg_exec *x, struct hg_exec_limits *limits, struct hg_err *err)
{
    json_t *ok;

    if (ask(x, "limits", json_object(), &x->polls, &ok, err) < 0)
        return -1;
    *limits = (struct hg_exec_limits){
        .max_array_size = get_u32(ok, "max_array_size"),
        .max_jobs = get_u32(ok, "max_jobs"),
        .ambiguous_s = get_u32(ok, "ambiguous_s"),
        .min_job_age_s = get_u32(ok, "min_job_age_s"),
        .call_s = 2 * get_u32(ok, "message_timeout_s"), /* two controllers */
        .accounting = json_is_true(json_object_get(ok, "accounting")),
    };
    get_text(ok, "version", limits->version, sizeof limits->version);
    get_text(ok, "cluster", limits->cluster, sizeof limits->cluster);
    json_decref(ok);
    return 0;
}

static int agent_submit(struct hg_exec *x, const json_t *job, uint32_t *job_id, struct hg_err *err)
{
    json_t *ok;
    const char *site;

    if (ask(x, "submit", json_pack("{s:O}", "job", (json_t *)job), &x->submits, &ok, err) < 0)
        return -1;
    *job_id = get_u32(ok, "job_id");
    if (!*job_id) {
        json_decref(ok);
        return hg_err_set(err, HG_E_AMBIGUOUS, "%s submitted the job but named no id",
                          x->transport->program);
    }
    site = json_string_value(json_object_get(ok, "site"));
    if (site && *site)
        hg_info("the site says: %s", site);
    json_decref(ok);
    return 0;
}

/* Which partitions are there instead? */
static void suggest_partition(struct hg_exec *x, const char *wanted, struct hg_err *err)
{
    const char *names[NAMES_MAX];
    const json_t *list, *item;
    size_t n = 0, i;
    json_t *ok;

    if (!wanted || ask(x, "partitions", json_object(), &x->polls, &ok, NULL) < 0)
        return;
    list = json_object_get(ok, "partitions");
    json_array_foreach(list, i, item)
        if (n < NAMES_MAX && json_is_string(json_object_get(item, "name")))
            names[n++] = json_string_value(json_object_get(item, "name"));
    hg_text_suggest(err, wanted, names, n);
    json_decref(ok);
}

static int agent_probe(struct hg_exec *x, const json_t *job, struct hg_err *err)
{
    json_t *ok;

    x->last_errno = 0;
    x->about[0] = '\0';
    if (ask(x, "probe", json_pack("{s:O}", "job", (json_t *)job), &x->polls, &ok, err) < 0) {
        if (x->last_errno == NO_PARTITION)
            suggest_partition(x, json_string_value(json_object_get(job, "partition")), err);
        return -1;
    }
    json_decref(ok);
    return 0;
}

static int decode_job(const json_t *item, struct hg_exec_job *job)
{
    const char *tasks = json_string_value(json_object_get(item, "tasks"));

    *job = (struct hg_exec_job){
        .job_id = get_u32(item, "job_id"),
        .restarts = get_u32(item, "restarts"),
        .exit_status = (int)json_integer_value(json_object_get(item, "exit_status")),
        .submit_s = json_number_value(json_object_get(item, "submit_s")),
        .start_s = json_number_value(json_object_get(item, "start_s")),
        .end_s = json_number_value(json_object_get(item, "end_s")),
    };
    get_text(item, "key", job->key, sizeof job->key);
    get_text(item, "state", job->state, sizeof job->state);
    get_text(item, "reason", job->reason, sizeof job->reason);
    get_text(item, "nodes", job->nodes, sizeof job->nodes);
    if (tasks && strlen(tasks) >= sizeof job->tasks) {
        job->wide_tasks = strdup(tasks);
        return job->wide_tasks ? 0 : -1;
    }
    snprintf(job->tasks, sizeof job->tasks, "%s", tasks ? tasks : "");
    return 0;
}

static int decode_jobs(json_t *ok, struct hg_exec_jobs *jobs, struct hg_err *err)
{
    const json_t *list = json_object_get(ok, "jobs"), *item;
    size_t i;
    int rc = 0;

    json_array_foreach(list, i, item) {
        struct hg_exec_job *job = HG_VEC_PUSH(jobs);

        if (!job || decode_job(item, job) < 0) {
            hg_exec_jobs_done(jobs);
            rc = hg_err_oom(err);
            break;
        }
    }
    json_decref(ok);
    return rc;
}

static int agent_poll(struct hg_exec *x, struct hg_exec_jobs *jobs, struct hg_err *err)
{
    json_t *ok;

    *jobs = (struct hg_exec_jobs){ 0 };
    if (ask(x, "poll", json_object(), &x->polls, &ok, err) < 0)
        return -1;
    return decode_jobs(ok, jobs, err);
}

static int agent_history(struct hg_exec *x, const char *const *keys, size_t n_keys, double since_s,
                         struct hg_exec_jobs *jobs, struct hg_err *err)
{
    json_t *list = json_array(), *ok;

    *jobs = (struct hg_exec_jobs){ 0 };
    for (size_t i = 0; i < n_keys; i++)
        json_array_append_new(list, json_string(keys[i]));
    if (ask(x, "history", json_pack("{s:o,s:I}", "keys", list, "since_s", (json_int_t)since_s),
            &x->polls, &ok, err) < 0)
        return -1;
    return decode_jobs(ok, jobs, err);
}

static int agent_cancel(struct hg_exec *x, uint32_t job_id, const char *tasks, struct hg_err *err)
{
    json_t *request = json_pack("{s:I,s:s*}", "job_id", (json_int_t)job_id, "tasks", tasks), *ok;

    if (ask(x, "cancel", request, &x->cancels, &ok, err) < 0)
        return -1;
    json_decref(ok);
    return 0;
}

static int agent_hold(struct hg_exec *x, uint32_t job_id, const char *tasks, bool held,
                      struct hg_err *err)
{
    json_t *request =
        json_pack("{s:I,s:s*,s:b}", "job_id", (json_int_t)job_id, "tasks", tasks, "held", held);
    json_t *ok;

    if (ask(x, "hold", request, &x->cancels, &ok, err) < 0)
        return -1;
    json_decref(ok);
    return 0;
}

static void agent_receipt(const struct hg_exec *x, unsigned *submits, unsigned *polls,
                          unsigned *cancels)
{
    *submits = x->submits;
    *polls = x->polls;
    *cancels = x->cancels;
}

const struct hg_executor hg_executor_slurm = {
    .name = "slurm",
    .summary = "Slurm through an agent, a process of its own",
    .open = agent_open,
    .limits = agent_limits,
    .submit = agent_submit,
    .doubt_s = agent_doubt_s,
    .about = agent_about,
    .probe = agent_probe,
    .poll = agent_poll,
    .history = agent_history,
    .cancel = agent_cancel,
    .hold = agent_hold,
    .away = agent_away,
    .transport = agent_transport,
    .receipt = agent_receipt,
    .cpu_s = agent_cpu_s,
    .close = agent_close,
};
