/* SPDX-License-Identifier: Apache-2.0 */
/* The agents' side of the pipe: README.md has the protocol. */
#include "slurm/common/serve.h"

#include <signal.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/resource.h>

#include "base/fs.h"
#include "base/text.h"
#include "slurm/common/codes.h"
#include "slurm/common/records.h"

static const struct hg_agent *agent;
static int answers = -1; /* where answers go */

/* ---- answers ---- */

static const char *code_name(enum hg_err_code code)
{
    switch (code) {
    case HG_E_AGAIN:
        return "again";
    case HG_E_AMBIGUOUS:
        return "ambiguous";
    case HG_E_REFUSED:
        return "refused";
    case HG_E_ENV:
        return "env";
    case HG_E_NOTFOUND:
        return "notfound";
    default:
        return "bug";
    }
}

static json_t *encode_error(const struct hg_agent_call *call)
{
    const char *about = hg_agent_about(call->number);
    json_t *o = json_object();

    json_object_set_new(o, "code", json_string(code_name(call->err.code)));
    json_object_set_new(o, "errno", json_integer(call->number));
    json_object_set_new(o, "message", hg_agent_text(call->err.text));
    if (call->err.hint[0])
        json_object_set_new(o, "hint", hg_agent_text(call->err.hint));
    json_object_set_new(o, "site", hg_agent_text(hg_buf_str(&call->site)));
    if (call->err.code == HG_E_REFUSED && about)
        json_object_set_new(o, "about", json_string(about));
    if (call->unfit)
        json_object_set_new(o, "unfit", json_true());
    if (call->err.code == HG_E_AMBIGUOUS && call->doubt_s)
        json_object_set_new(o, "ambiguous_s", json_integer(call->doubt_s));
    return o;
}

/* Commands that have ended are included. */
static double cpu_s(void)
{
    struct rusage own, commands;

    if (getrusage(RUSAGE_SELF, &own) < 0 || getrusage(RUSAGE_CHILDREN, &commands) < 0)
        return 0;
    return (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec + commands.ru_utime.tv_sec +
                    commands.ru_stime.tv_sec) +
           1e-6 * (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec + commands.ru_utime.tv_usec +
                           commands.ru_stime.tv_usec);
}

static int answer(const struct hg_agent_call *call)
{
    json_t *id = call->request ? json_object_get(call->request->root, "id") : NULL;
    json_t *o = json_object();
    struct hg_buf line = HG_BUF_INIT;
    int rc;

    json_object_set(o, "id", id ? id : json_null());
    if (call->err.code)
        json_object_set_new(o, "error", encode_error(call));
    else
        json_object_set(o, "ok", call->ok);
    json_object_set_new(o, "rpcs", json_integer(call->rpcs));
    json_object_set_new(o, "cpu_s", json_real(cpu_s()));
    hg_json_dump(o, HG_JSON_COMPACT, &line);
    hg_buf_puts(&line, "\n");
    rc = hg_fs_write_all(answers, line.data, line.len);
    hg_buf_done(&line);
    json_decref(o);
    return rc;
}

static void collect(struct hg_buf *site)
{
    if (agent->collect)
        agent->collect(site);
}

/* libslurm ends the program if slurm.conf is broken: answer before that. */
static struct hg_agent_call *current;

static void last_words(void)
{
    struct hg_agent_call *call = current;

    if (!call)
        return;
    current = NULL;
    collect(&call->site);
    if (call->submitting)
        hg_err_set(&call->err, HG_E_AMBIGUOUS, "%s ended the program during a submission",
                   agent->library);
    else
        hg_err_set(&call->err, HG_E_ENV, "%s does not work: %.300s", agent->library,
                   hg_buf_str(&call->site));
    call->unfit = !call->submitting;
    answer(call);
}

/* ---- operations ---- */

/* "job_id" and "tasks" of cancel and hold. *tasks NULL: the whole array. */
static int read_tasks(struct hg_agent_call *call, const char *op, long long *job_id,
                      const char **tasks)
{
    const json_t *id = json_object_get(call->request->root, "job_id");
    const json_t *set = json_object_get(call->request->root, "tasks");

    *tasks = json_string_value(set);
    *job_id = json_integer_value(id);
    if (!json_is_integer(id) || *job_id <= 0)
        return hg_err_set(&call->err, HG_E_BUG, "%s needs a positive \"job_id\"", op);
    if (set && !json_is_null(set) &&
        (!*tasks || !**tasks || strspn(*tasks, "0123456789,-") != strlen(*tasks)))
        return hg_err_set(&call->err, HG_E_BUG, "%s: \"tasks\" is not an index set", op);
    return 0;
}

static int do_hello(struct hg_agent_call *call)
{
    hg_agent_add(call, "protocol", json_integer(HG_AGENT_PROTOCOL));
    hg_agent_add(call, "agent", json_sprintf("%s " HPCGRID_VERSION, agent->program));
    return agent->hello(call);
}

/* A controller that has just started does not know a node until it has registered: what it refuses for lack of nodes, it
 * may accept in a moment. */
static void excuse_unregistered(struct hg_agent_call *call)
{
    struct hg_agent_call side = { .request = call->request }; /* its errors do not count */
    json_t *nodes = json_array(), *node;
    size_t i, unregistered = 0;

    if (call->number == HG_AGENT_NO_NODES && agent->nodes(&side, nodes) == 0)
        json_array_foreach(nodes, i, node)
            unregistered +=
                strstr(json_string_value(json_object_get(node, "state")), "UNKNOWN") != NULL;
    if (unregistered) {
        call->err = (struct hg_err)HG_ERR_INIT;
        hg_err_set(&call->err, HG_E_AGAIN,
                   "nodes that have not registered since slurmctld started: %zu of %zu",
                   unregistered, json_array_size(nodes));
    }
    call->rpcs += side.rpcs;
    json_decref(nodes);
    hg_buf_done(&side.site);
}

static int do_job(struct hg_agent_call *call, const char *op)
{
    struct hg_agent_job job;
    char request[256], what[300];
    int rc = hg_agent_job_read(&job, call);

    if (rc == 0) {
        hg_agent_job_name_request(&job.f, request);
        snprintf(what, sizeof what, "%s%s", op, request);
        call->submitting = strcmp(op, "submit") == 0;
        rc = (call->submitting ? agent->submit : agent->probe)(call, &job, what);
        call->submitting = false;
        if (rc < 0)
            excuse_unregistered(call);
    }
    hg_agent_job_done(&job);
    return rc;
}

static json_t *add_list(struct hg_agent_call *call, const char *name)
{
    json_t *list = json_array();

    hg_agent_add(call, name, list);
    return list;
}

/* 1, 0, or -1 with call->err set. A site does not change this under a running agent. */
static int keeps_accounting(struct hg_agent_call *call)
{
    static int known = -1;

    if (known < 0 && agent->limits(call) == 0) {
        known = json_is_true(json_object_get(call->ok, "accounting"));
        json_object_clear(call->ok);
    }
    return known;
}

static int read_history(struct hg_agent_call *call, double since_s)
{
    json_t *keys = hg_agent_wanted_keys(call->request->root), *latest = json_object(), *record;
    json_t *jobs = add_list(call, "jobs");
    const char *id;
    int rc = agent->history(call, keys, since_s, latest);

    json_object_foreach(latest, id, record)
        json_array_append(jobs, record);
    json_decref(latest);
    json_decref(keys);
    return rc;
}

static int do_history(struct hg_agent_call *call)
{
    const json_t *since = json_object_get(call->request->root, "since_s");
    int kept;

    if (!json_is_array(json_object_get(call->request->root, "keys")) || !json_is_number(since))
        return hg_err_set(&call->err, HG_E_BUG, "history needs \"keys\" and \"since_s\"");
    kept = keeps_accounting(call);
    if (kept == 0)
        return hg_err_set(&call->err, HG_E_ENV, "this cluster has no accounting");
    return kept < 0 ? -1 : read_history(call, json_number_value(since));
}

static int do_cancel(struct hg_agent_call *call)
{
    long long job_id;
    const char *tasks;

    return read_tasks(call, "cancel", &job_id, &tasks) < 0 ? -1
                                                           : agent->cancel(call, job_id, tasks);
}

static int do_hold(struct hg_agent_call *call)
{
    const json_t *held = json_object_get(call->request->root, "held");
    long long job_id;
    const char *tasks;

    if (!json_is_boolean(held))
        return hg_err_set(&call->err, HG_E_BUG, "hold needs \"held\", true or false");
    if (read_tasks(call, "hold", &job_id, &tasks) < 0)
        return -1;
    return agent->hold(call, job_id, tasks, json_is_true(held));
}

/* The default account and its default QOS on the request's cluster; "" where there is none, or no accounting. */
static int do_account(struct hg_agent_call *call)
{
    const json_t *cluster = json_object_get(call->request->root, "cluster");
    const struct passwd *user = getpwuid(getuid());
    json_t *rows = json_array(), *row, *chosen = NULL;
    int kept = keeps_accounting(call);
    int rc = kept > 0 && user ? agent->accounts(call, user->pw_name, rows) : kept < 0 ? -1 : 0;
    size_t i;

    json_array_foreach(rows, i, row)
        if (!chosen && json_is_true(json_object_get(row, "default")) &&
            (!cluster || json_equal(cluster, json_object_get(row, "cluster"))))
            chosen = row;
    hg_agent_add(call, "account",
                 chosen ? json_incref(json_object_get(chosen, "account")) : json_string(""));
    hg_agent_add(call, "qos",
                 chosen ? json_incref(json_object_get(chosen, "qos")) : json_string(""));
    json_decref(rows);
    return rc;
}

static int do_operation(struct hg_agent_call *call, const char *op)
{
    if (strcmp(op, "limits") == 0)
        return agent->limits(call);
    if (strcmp(op, "submit") == 0 || strcmp(op, "probe") == 0)
        return do_job(call, op);
    if (strcmp(op, "poll") == 0)
        return agent->poll(call, add_list(call, "jobs"));
    if (strcmp(op, "history") == 0)
        return do_history(call);
    if (strcmp(op, "cancel") == 0)
        return do_cancel(call);
    if (strcmp(op, "hold") == 0)
        return do_hold(call);
    if (strcmp(op, "account") == 0)
        return do_account(call);
    if (strcmp(op, "partitions") == 0)
        return agent->partitions(call, add_list(call, op));
    return agent->nodes(call, add_list(call, "nodes"));
}

static int dispatch(struct hg_agent_call *call)
{
    static const char *const known[] = { "limits",     "submit",  "probe", "poll",
                                         "history",    "cancel",  "hold",  "nodes",
                                         "partitions", "account", NULL };
    const char *op = json_string_value(json_object_get(call->request->root, "op"));

    if (!op)
        return hg_err_set(&call->err, HG_E_BUG, "the request has no \"op\"");
    if (strcmp(op, "hello") == 0)
        return do_hello(call);
    if (!hg_text_is_one_of(op, strlen(op), known))
        return hg_err_set(&call->err, HG_E_BUG, "unknown operation \"%.64s\"", op);
    if (agent->need_slurm(call) < 0 || do_operation(call, op) < 0)
        return -1;
    if (call->rpcs)
        hg_agent_understood();
    return 0;
}

/* One line in, one line out. Returns true while there is more to do. */
static bool serve(const char *line, size_t len)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_agent_call call = { .ok = json_object() };
    bool more = true;

    if (hg_json_parse("request", line, len, &doc, &call.err) < 0) {
        call.err.code = HG_E_BUG;
    } else if (!json_is_object(doc.root)) {
        hg_err_set(&call.err, HG_E_BUG, "the request is not a JSON object");
    } else {
        const char *op = json_string_value(json_object_get(doc.root, "op"));

        call.request = &doc;
        current = &call;
        more = !op || strcmp(op, "quit") != 0;
        if (more)
            dispatch(&call);
        current = NULL;
    }
    collect(&call.site);
    if (answer(&call) < 0)
        more = false;
    json_decref(call.ok);
    hg_buf_done(&call.site);
    hg_json_doc_done(&doc);
    return more;
}

static int serve_all(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for hpcgrid, which closes the pipe */
    atexit(last_words);
    while ((len = getline(&line, &cap, stdin)) > 0)
        if (!serve(line, (size_t)len))
            break;
    free(line);
    return 0;
}

/* ---- the command line ---- */

static int say_version(void)
{
    printf("%s " HPCGRID_VERSION, agent->program);
    if (agent->built_with)
        printf(" (%s)", agent->built_with());
    puts("");
    return 0;
}

static int say_usage(FILE *out)
{
    fprintf(out, "usage: %s%s\n", agent->program, agent->usage);
    return out == stdout ? 0 : 2;
}

int hg_agent_main(const struct hg_agent *served, int argc, char **argv)
{
    const char *argument = argc > 1 ? argv[1] : NULL;
    struct hg_err err = HG_ERR_INIT;
    struct hg_buf text = HG_BUF_INIT;

    agent = served;
    if (argument && strcmp(argument, "--version") == 0)
        return say_version();
    if (argument && strcmp(argument, "--help") == 0)
        return say_usage(stdout);
    if (argc > (agent->has_argument ? 2 : 1))
        return say_usage(stderr);
    answers = agent->begin(argument, &err);
    if (answers >= 0)
        return serve_all();
    hg_err_format(&err, &text);
    fputs(hg_buf_str(&text), stderr);
    hg_buf_done(&text);
    return hg_err_exit_code(err.code);
}
