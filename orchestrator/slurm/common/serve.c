/* SPDX-License-Identifier: Apache-2.0 */
/* The agents' side of the pipe: README.md has the protocol. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "slurm/common/agent.h"
#include "base/fs.h"
#include "base/json.h"

static const struct hg_agent *agent;
static int answers = -1; /* where answers go */

void hg_agent_add(struct hg_agent_call *call, const char *name, json_t *value)
{
    json_object_set_new(call->ok, name, value);
}

json_t *hg_agent_text(const char *s)
{
    return hg_json_text(s ? s : "");
}

int hg_agent_which(struct hg_agent_call *call, const char *op, long long *job_id,
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
        return hg_err_set(&call->err, HG_E_BUG, "%s: \"tasks\" is no index set", op);
    return 0;
}

int hg_agent_check_history(struct hg_agent_call *call)
{
    if (json_is_array(json_object_get(call->request->root, "keys")) &&
        json_is_number(json_object_get(call->request->root, "since_s")))
        return 0;
    return hg_err_set(&call->err, HG_E_BUG, "history needs \"keys\" and \"since_s\"");
}

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

/* Commands that have ended are counted, too. */
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
    rc = line.failed ? -1 : hg_fs_write_all(answers, line.data, line.len);
    hg_buf_done(&line);
    json_decref(o);
    return rc;
}

static void collect(struct hg_buf *site)
{
    if (agent->collect)
        agent->collect(site);
}

/* libslurm ends the program where slurm.conf is broken: say so before it is over. */
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
        hg_err_set(&call->err, HG_E_ENV, "%s cannot work: %.300s", agent->library,
                   hg_buf_str(&call->site));
    call->unfit = !call->submitting;
    answer(call);
}

static int dispatch(struct hg_agent_call *call)
{
    const char *name = json_string_value(json_object_get(call->request->root, "op"));

    if (!name)
        return hg_err_set(&call->err, HG_E_BUG, "the request has no \"op\"");
    if (strcmp(name, "quit") == 0)
        return 0;
    for (const struct hg_agent_op *op = agent->ops; op->name; op++)
        if (strcmp(op->name, name) == 0) {
            int rc = 0;

            if (op->needs_slurm && agent->need_slurm)
                rc = agent->need_slurm(call);
            if (rc == 0)
                rc = op->run(call);
            if (rc == 0 && call->rpcs)
                hg_agent_understood();
            return rc;
        }
    return hg_err_set(&call->err, HG_E_BUG, "unknown operation \"%.64s\"", name);
}

static bool is_quit(const struct hg_json_doc *doc)
{
    const char *name = json_string_value(json_object_get(doc->root, "op"));

    return name && strcmp(name, "quit") == 0;
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
        hg_err_set(&call.err, HG_E_BUG, "the request is no JSON object");
    } else {
        call.request = &doc;
        current = &call;
        dispatch(&call);
        current = NULL;
        more = !is_quit(&doc);
    }
    collect(&call.site);
    if (answer(&call) < 0)
        more = false;
    json_decref(call.ok);
    hg_buf_done(&call.site);
    hg_json_doc_done(&doc);
    return more;
}

int hg_agent_serve(const struct hg_agent *served, int out)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;

    agent = served;
    answers = out;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for hpcgrid, which closes the pipe */
    atexit(last_words);
    while ((len = getline(&line, &cap, stdin)) > 0)
        if (!serve(line, (size_t)len))
            break;
    free(line);
    return 0;
}
