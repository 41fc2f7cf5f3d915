/* SPDX-License-Identifier: Apache-2.0 */
/* Executor "slurm": chooses an agent (transport.h), asks it through the pipe (pipe.h), reads its answers (slurm/README.md). */
#include "slurm/client/executor.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/ranges.h"
#include "base/text.h"
#include "base/vec.h"
#include "slurm/client/pipe.h"
#include "slurm/client/transport.h"

#define NO_PARTITION 2000 /* ESLURM_INVALID_PARTITION_NAME, in every version */
#define NAMES_MAX 256

struct hg_executor_session {
    const struct hg_transport *transport;
    bool automatic; /* this transport was not requested: another one may be used */
    json_t *site;   /* NULL: none */
    struct hg_pipe pipe;
    struct hg_executor_facts facts;
    json_int_t last_errno; /* Slurm's number of the last error */
    bool unfit;            /* the last error: this agent does not fit this Slurm */
};

/* ---- Answers ---- */

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
    return strcmp(op, "submit") == 0 ? HG_E_AMBIGUOUS : HG_E_AGAIN; /* an unknown word */
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
        site = NULL; /* libslurm only repeats the name */
    plain_message(message ? message : "unknown error", op, &text);
    hg_err_set(err, error_code(json_string_value(json_object_get(error, "code")), op), "%s%s%s",
               hg_buf_str(&text), site && *site ? ": " : "", site ? site : "");
    hg_buf_done(&text);
    if (hint && *hint)
        hg_err_hint(err, "%s", hint);
    return -1;
}

#define INDEX_MAX 4000001 /* no Slurm takes more */
#define SECONDS_MAX 9e15  /* since 1970: more is not a time */

/* A number that is not there or not of this kind is not a number: false. */
static bool read_u32(const json_t *object, const char *name, uint32_t least, uint32_t *out)
{
    const json_t *value = json_object_get(object, name);
    json_int_t n = json_integer_value(value);

    if (!json_is_integer(value) || n < least || n > UINT32_MAX)
        return false;
    *out = (uint32_t)n;
    return true;
}

/* Of what may be absent: 0 then. */
static uint32_t get_u32(const json_t *object, const char *name)
{
    uint32_t n = 0;

    read_u32(object, name, 0, &n);
    return n;
}

/* A time that may be absent. */
static bool read_time(const json_t *object, const char *name, double *out)
{
    const json_t *value = json_object_get(object, name);

    *out = json_number_value(value);
    return !value || (json_is_number(value) && fabs(*out) < SECONDS_MAX);
}

static void get_text(const json_t *object, const char *name, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(object, name));

    snprintf(out, size, "%s", text ? text : "");
}

/* An answer that is not as the protocol has it says nothing: least of all that there are no jobs. */
static int unreadable(struct hg_executor_session *x, const char *op, struct hg_err *err)
{
    hg_pipe_no_answer(&x->pipe, op, false, NULL);
    hg_err_set(err, strcmp(op, "submit") == 0 ? HG_E_AMBIGUOUS : HG_E_AGAIN,
               "cannot read the answer of %s to \"%s\"", x->pipe.program, op);
    return hg_err_hint(err, "is it the %s of this hpcgrid? `hpcgrid doctor` shows it",
                       x->pipe.program);
}

/* The answer's "ok" object, a new reference, or its error. */
static int take_answer(struct hg_executor_session *x, const char *op, const json_t *answer,
                       json_t **ok, struct hg_err *err)
{
    const json_t *error = json_object_get(answer, "error");
    json_t *value = json_object_get(answer, "ok");

    if (error && (value || !json_is_object(error)))
        return unreadable(x, op, err);
    if (error) {
        enum hg_err_code code = error_code(json_string_value(json_object_get(error, "code")), op);

        x->last_errno = json_integer_value(json_object_get(error, "errno"));
        x->unfit = json_is_true(json_object_get(error, "unfit"));
        x->facts.doubt_s = get_u32(error, "ambiguous_s");
        get_text(error, "about", x->facts.about, sizeof x->facts.about);
        /* something that is missing here has no error number */
        x->facts.away = !x->unfit && (code == HG_E_AGAIN || (code == HG_E_ENV && x->last_errno));
        return take_error(error, op, err);
    }
    if (!json_is_object(value))
        return unreadable(x, op, err);
    *ok = json_incref(value);
    return 0;
}

/* Ask this agent. */
static int ask_once(struct hg_executor_session *x, const char *op, json_t *request, unsigned *rpcs,
                    json_t **ok, struct hg_err *err)
{
    json_t *answer;
    int rc;

    x->unfit = false;
    x->facts.doubt_s = 0;
    answer = hg_pipe_ask(&x->pipe, op, request, &x->facts.away, err);
    if (!answer)
        return -1;
    if (!read_time(answer, "cpu_s", &x->facts.cpu_s))
        x->facts.cpu_s = 0;
    if (rpcs)
        *rpcs += get_u32(answer, "rpcs");
    rc = take_answer(x, op, answer, ok, err);
    json_decref(answer);
    return rc;
}

/* ---- Which agent ---- */

static void leave_agent(struct hg_executor_session *x)
{
    hg_pipe_stop(&x->pipe);
    free(x->pipe.path);
    free(x->pipe.argument);
    x->pipe.path = x->pipe.argument = NULL;
}

static int take_transport(struct hg_executor_session *x, const struct hg_transport *t,
                          struct hg_err *err)
{
    leave_agent(x);
    x->transport = t;
    x->facts.transport = t->name;
    x->pipe.program = t->program;
    x->pipe.path = hg_transport_find(t, x->site, err);
    x->pipe.argument = hg_transport_argument(t, x->site);
    return x->pipe.path ? 0 : -1;
}

/* Does its agent start, and find a Slurm? Slurm itself is not contacted. */
static bool is_usable(struct hg_executor_session *x, const struct hg_transport *t,
                      struct hg_err *why)
{
    json_t *ok = NULL;
    bool usable;

    if (take_transport(x, t, why) < 0 || ask_once(x, "hello", json_object(), NULL, &ok, why) < 0)
        return false;
    usable = !json_is_null(json_object_get(ok, "conf"));
    if (!usable)
        hg_err_set(why, HG_E_ENV, "%s does not find a Slurm that it fits", t->program);
    json_decref(ok);
    return usable;
}

/* The first usable transport from t on. -1 with ENV and why each of them is not. */
static int choose(struct hg_executor_session *x, const struct hg_transport *t, struct hg_err *err)
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
    hg_err_set(err, HG_E_ENV, "no transport works here (%s)", hg_buf_str(&why));
    hg_buf_done(&why);
    return hg_err_hint(err, "`hpcgrid doctor` shows what each of them needs");
}

/* If none works, the errors of the first agent that is installed help most. */
static int choose_any(struct hg_executor_session *x, struct hg_err *err)
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

/* Replace the unfit one; if there is no other, it stays. */
static int choose_next(struct hg_executor_session *x)
{
    const struct hg_transport *unfit = x->transport;

    if (choose(x, unfit + 1, NULL) == 0)
        return 0;
    take_transport(x, unfit, NULL);
    return -1;
}

static int open_transport(struct hg_executor_session *x, struct hg_err *err)
{
    const struct hg_transport *wanted;
    const char *by;

    if (hg_transport_wanted(x->site, &wanted, &by, err) < 0)
        return -1;
    if (!wanted)
        return choose_any(x, err);
    if (take_transport(x, wanted, err) == 0)
        return 0;
    return hg_err_wrap(err, "transport %s, requested by %s", wanted->name, by);
}

/* ---- Methods ---- */

/* Ask; *ok is the answer's "ok" object, a new reference. request is consumed. An agent that does not fit
 * this Slurm has done nothing, so another one may be tried. */
static int ask(struct hg_executor_session *x, const char *op, json_t *request, unsigned *rpcs,
               json_t **ok, struct hg_err *err)
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

static void slurm_close(struct hg_executor_session *x)
{
    if (!x)
        return;
    leave_agent(x);
    hg_buf_done(&x->pipe.in);
    json_decref(x->site);
    free(x);
}

static struct hg_executor_session *slurm_open(const json_t *config, double deadline_s,
                                              struct hg_err *err)
{
    struct hg_executor_session *x = hg_alloc_zeroed(1, sizeof *x);

    x->pipe.deadline_s = deadline_s;
    x->site = json_incref((json_t *)config);
    if (open_transport(x, err) < 0) {
        slurm_close(x);
        return NULL;
    }
    return x;
}

static int slurm_limits(struct hg_executor_session *x, struct hg_executor_limits *limits,
                        struct hg_err *err)
{
    struct hg_executor_limits l = { 0 };
    bool whole;
    json_t *ok;

    if (ask(x, "limits", json_object(), &x->facts.counts.polls, &ok, err) < 0)
        return -1;
    whole = read_u32(ok, "max_array_size", 1, &l.max_array_size) &&
            read_u32(ok, "max_jobs", 1, &l.max_jobs) &&
            read_u32(ok, "ambiguous_s", 0, &l.ambiguous_s) &&
            read_u32(ok, "min_job_age_s", 0, &l.min_job_age_s) &&
            (!json_object_get(ok, "message_timeout_s") ||
             read_u32(ok, "message_timeout_s", 0, &l.call_s)) &&
            l.call_s <= UINT32_MAX / 2;
    l.call_s *= 2; /* two controllers */
    l.accounting = json_is_true(json_object_get(ok, "accounting"));
    get_text(ok, "version", l.version, sizeof l.version);
    get_text(ok, "cluster", l.cluster, sizeof l.cluster);
    json_decref(ok);
    if (!whole)
        return unreadable(x, "limits", err);
    *limits = l;
    return 0;
}

static int slurm_submit(struct hg_executor_session *x, const json_t *job, uint32_t *job_id,
                        struct hg_err *err)
{
    json_t *ok;
    const char *site;

    if (ask(x, "submit", json_pack("{s:O}", "job", (json_t *)job), &x->facts.counts.submits, &ok,
            err) < 0)
        return -1;
    *job_id = get_u32(ok, "job_id");
    if (!*job_id) {
        json_decref(ok);
        return hg_err_set(err, HG_E_AMBIGUOUS, "%s submitted the job but returned no job id",
                          x->transport->program);
    }
    site = json_string_value(json_object_get(ok, "site"));
    if (site && *site)
        hg_info("the site says: %s", site);
    json_decref(ok);
    return 0;
}

/* Which partitions are there instead? */
static void suggest_partition(struct hg_executor_session *x, const char *wanted, struct hg_err *err)
{
    const char *names[NAMES_MAX];
    const json_t *list, *item;
    size_t n = 0, i;
    json_t *ok;

    if (!wanted || ask(x, "partitions", json_object(), &x->facts.counts.polls, &ok, NULL) < 0)
        return;
    list = json_object_get(ok, "partitions");
    json_array_foreach(list, i, item)
        if (n < NAMES_MAX && json_is_string(json_object_get(item, "name")))
            names[n++] = json_string_value(json_object_get(item, "name"));
    hg_text_suggest(err, wanted, names, n);
    json_decref(ok);
}

static int slurm_probe(struct hg_executor_session *x, const json_t *job, struct hg_err *err)
{
    json_t *ok;

    x->last_errno = 0;
    x->facts.about[0] = '\0';
    if (ask(x, "probe", json_pack("{s:O}", "job", (json_t *)job), &x->facts.counts.polls, &ok,
            err) < 0) {
        if (x->last_errno == NO_PARTITION)
            suggest_partition(x, json_string_value(json_object_get(job, "partition")), err);
        return -1;
    }
    json_decref(ok);
    return 0;
}

void hg_executor_jobs_done(struct hg_executor_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++)
        free(jobs->items[i].tasks);
    HG_VEC_DONE(jobs);
}

static bool is_set(const char *tasks)
{
    struct hg_ranges set = HG_RANGES_INIT;
    bool is = tasks && hg_ranges_parse(tasks, INDEX_MAX, &set, NULL) == 0;

    hg_ranges_done(&set);
    return is;
}

/* False: it is not as the protocol has it. */
static bool decode_job(const json_t *item, struct hg_executor_job *job)
{
    const char *tasks = json_string_value(json_object_get(item, "tasks"));
    const json_t *status = json_object_get(item, "exit_status");
    json_int_t exit_status = json_integer_value(status);

    *job = (struct hg_executor_job){ .tasks = hg_strdup(tasks ? tasks : ""),
                                     .exit_status = (int)exit_status };
    get_text(item, "key", job->key, sizeof job->key);
    get_text(item, "state", job->state, sizeof job->state);
    get_text(item, "reason", job->reason, sizeof job->reason);
    get_text(item, "nodes", job->nodes, sizeof job->nodes);
    return is_set(tasks) && job->key[0] && job->state[0] &&
           read_u32(item, "job_id", 1, &job->job_id) &&
           (!json_object_get(item, "restarts") || read_u32(item, "restarts", 0, &job->restarts)) &&
           (!status || json_is_integer(status)) && exit_status >= 0 && exit_status <= INT_MAX &&
           read_time(item, "submit_s", &job->submit_s) &&
           read_time(item, "start_s", &job->start_s) &&
           read_time(item, "expected_s", &job->expected_s) && read_time(item, "end_s", &job->end_s);
}

/* The answer's reference is taken. A list that is missing, or a job that cannot be read, is no list without it. */
static int decode_jobs(struct hg_executor_session *x, const char *op, json_t *ok,
                       struct hg_executor_jobs *jobs, struct hg_err *err)
{
    const json_t *list = json_object_get(ok, "jobs"), *item;
    bool whole = json_is_array(list);
    size_t i;

    json_array_foreach(list, i, item)
        whole = decode_job(item, HG_VEC_PUSH(jobs)) && whole;
    json_decref(ok);
    if (whole)
        return 0;
    hg_executor_jobs_done(jobs);
    return unreadable(x, op, err);
}

static int slurm_poll(struct hg_executor_session *x, struct hg_executor_jobs *jobs,
                      struct hg_err *err)
{
    json_t *ok;

    *jobs = (struct hg_executor_jobs){ 0 };
    if (ask(x, "poll", json_object(), &x->facts.counts.polls, &ok, err) < 0)
        return -1;
    return decode_jobs(x, "poll", ok, jobs, err);
}

static int slurm_history(struct hg_executor_session *x, const char *const *keys, size_t n_keys,
                         double since_s, struct hg_executor_jobs *jobs, struct hg_err *err)
{
    json_t *list = json_array(), *ok;

    *jobs = (struct hg_executor_jobs){ 0 };
    for (size_t i = 0; i < n_keys; i++)
        json_array_append_new(list, json_string(keys[i]));
    if (ask(x, "history", json_pack("{s:o,s:I}", "keys", list, "since_s", (json_int_t)since_s),
            &x->facts.counts.polls, &ok, err) < 0)
        return -1;
    return decode_jobs(x, "history", ok, jobs, err);
}

static int slurm_cancel(struct hg_executor_session *x, uint32_t job_id, const char *tasks,
                        struct hg_err *err)
{
    json_t *request = json_pack("{s:I,s:s*}", "job_id", (json_int_t)job_id, "tasks", tasks), *ok;

    if (ask(x, "cancel", request, &x->facts.counts.cancels, &ok, err) < 0)
        return -1;
    json_decref(ok);
    return 0;
}

static int slurm_hold(struct hg_executor_session *x, uint32_t job_id, const char *tasks, bool held,
                      struct hg_err *err)
{
    json_t *request =
        json_pack("{s:I,s:s*,s:b}", "job_id", (json_int_t)job_id, "tasks", tasks, "held", held);
    json_t *ok;

    if (ask(x, "hold", request, &x->facts.counts.cancels, &ok, err) < 0)
        return -1;
    json_decref(ok);
    return 0;
}

static const struct hg_executor_facts *slurm_facts(const struct hg_executor_session *x)
{
    return &x->facts;
}

const struct hg_executor hg_executor_slurm = {
    .name = "slurm",
    .open = slurm_open,
    .limits = slurm_limits,
    .submit = slurm_submit,
    .probe = slurm_probe,
    .poll = slurm_poll,
    .history = slurm_history,
    .cancel = slurm_cancel,
    .hold = slurm_hold,
    .facts = slurm_facts,
    .close = slurm_close,
};
