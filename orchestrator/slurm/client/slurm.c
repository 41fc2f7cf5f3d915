/* SPDX-License-Identifier: Apache-2.0 */
/* Executor "slurm": chooses an agent (transport.h), asks it through the pipe (pipe.h), reads its answers (slurm/README.md). */
#include "slurm/client/executor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
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
static int take_answer(struct hg_executor_session *x, const char *op, const json_t *answer,
                       json_t **ok, struct hg_err *err)
{
    const json_t *error = json_object_get(answer, "error");
    json_t *value = json_object_get(answer, "ok");

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
        return hg_pipe_no_answer(&x->pipe, op, false, err);
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
    x->facts.cpu_s = json_number_value(json_object_get(answer, "cpu_s"));
    if (rpcs)
        *rpcs += (unsigned)json_integer_value(json_object_get(answer, "rpcs"));
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
    json_t *ok;

    if (ask(x, "limits", json_object(), &x->facts.counts.polls, &ok, err) < 0)
        return -1;
    *limits = (struct hg_executor_limits){
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

static void decode_job(const json_t *item, struct hg_executor_job *job)
{
    const char *tasks = json_string_value(json_object_get(item, "tasks"));

    *job = (struct hg_executor_job){
        .job_id = get_u32(item, "job_id"),
        .tasks = hg_strdup(tasks ? tasks : ""),
        .restarts = get_u32(item, "restarts"),
        .exit_status = (int)json_integer_value(json_object_get(item, "exit_status")),
        .submit_s = json_number_value(json_object_get(item, "submit_s")),
        .start_s = json_number_value(json_object_get(item, "start_s")),
        .expected_s = json_number_value(json_object_get(item, "expected_s")),
        .end_s = json_number_value(json_object_get(item, "end_s")),
    };
    get_text(item, "key", job->key, sizeof job->key);
    get_text(item, "state", job->state, sizeof job->state);
    get_text(item, "reason", job->reason, sizeof job->reason);
    get_text(item, "nodes", job->nodes, sizeof job->nodes);
}

/* The answer's reference is taken. */
static void decode_jobs(json_t *ok, struct hg_executor_jobs *jobs)
{
    const json_t *list = json_object_get(ok, "jobs"), *item;
    size_t i;

    json_array_foreach(list, i, item)
        decode_job(item, HG_VEC_PUSH(jobs));
    json_decref(ok);
}

static int slurm_poll(struct hg_executor_session *x, struct hg_executor_jobs *jobs,
                      struct hg_err *err)
{
    json_t *ok;

    *jobs = (struct hg_executor_jobs){ 0 };
    if (ask(x, "poll", json_object(), &x->facts.counts.polls, &ok, err) < 0)
        return -1;
    decode_jobs(ok, jobs);
    return 0;
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
    decode_jobs(ok, jobs);
    return 0;
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
