/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-rest: slurmrestd behind a pipe. slurm/README.md has the protocol. */
#include "slurm/rest/rest.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fields.h"
#include "base/fs.h"
#include "base/ranges.h"

#define PROGRAM "hpcgrid-rest"

/* Slurm's numbers that are looked at here. */
#define NO_JOB 2017
#define ALREADY_DONE 2021
#define NO_PARTITION 2000
#define NO_NODES 2014

/* What Slurm has where slurm.conf says nothing: slurmrestd does not tell its configuration. */
#define MAX_JOBS 10000
#define MIN_JOB_AGE_S 300

/* ---- hello, limits ---- */

static int op_hello(struct hg_agent_call *call)
{
    hg_agent_add(call, "protocol", json_integer(HG_AGENT_PROTOCOL));
    hg_agent_add(call, "agent", json_string(PROGRAM " " HPCGRID_VERSION));
    hg_agent_add(call, "library", json_null());
    hg_agent_add(call, "conf", hg_rest.url ? hg_agent_text(hg_rest.url) : json_null());
    return 0;
}

static void add_limit(struct hg_agent_call *call, const char *name, long long said, long long usual)
{
    hg_agent_add(call, name, json_integer(said ? said : usual));
}

/* v0.0.38 does not say whether there is accounting, nor the cluster's name: ask for the clusters in it. */
static int look_for_accounts(struct hg_agent_call *call)
{
    json_t *answer, *clusters;

    if (!hg_rest.plain || !hg_rest.has_accounts)
        return 0;
    if (hg_rest_ask(call, "GET", HG_REST_DATABASE, "/clusters", NULL, &answer) < 0)
        return -1;
    clusters = json_object_get(answer, "clusters");
    hg_rest.has_accounts = json_array_size(clusters) > 0;
    if (json_array_size(clusters) == 1)
        snprintf(hg_rest.cluster, sizeof hg_rest.cluster, "%s",
                 hg_rest_text(json_object_get(json_array_get(clusters, 0), "name")));
    json_decref(answer);
    return 0;
}

static int op_limits(struct hg_agent_call *call)
{
    const struct hg_rest_config *c = &hg_rest.config;

    if (look_for_accounts(call) < 0)
        return -1;
    hg_agent_add(call, "max_array_size", json_integer(hg_rest_max_array_size()));
    add_limit(call, "max_jobs", c->max_jobs, MAX_JOBS);
    add_limit(call, "min_job_age_s", c->min_job_age_s, MIN_JOB_AGE_S);
    hg_agent_add(call, "ambiguous_s", json_integer(hg_rest_ambiguous_s()));
    /* the client waits for two of them */
    add_limit(call, "message_timeout_s", (long long)(hg_rest_timeout_s() + 1) / 2, 0);
    hg_agent_add(call, "accounting", json_boolean(hg_rest.has_accounts));
    hg_agent_add(call, "version", hg_agent_text(hg_rest.release));
    hg_agent_add(call, "cluster", hg_agent_text(hg_rest.cluster));
    return 0;
}

static int op_history(struct hg_agent_call *call)
{
    if (hg_agent_check_history(call) < 0 || look_for_accounts(call) < 0)
        return -1;
    if (!hg_rest.has_accounts)
        return hg_err_set(&call->err, HG_E_ENV, "this cluster keeps no accounting");
    return hg_rest_history(call);
}

/* ---- submit, probe ---- */

/* Nodes that have not registered since slurmctld started. */
static void excuse_unregistered(struct hg_agent_call *call)
{
    const json_t *nodes, *node;
    size_t i, unknown = 0;
    json_t *answer;
    struct hg_agent_call side = { .request = call->request };

    if (call->number != NO_NODES ||
        hg_rest_get(&side, HG_REST_SLURM, "/nodes", "cannot ask for nodes", &answer) < 0)
        return;
    call->rpcs += side.rpcs;
    nodes = json_object_get(answer, "nodes");
    json_array_foreach(nodes, i, node)
        unknown += hg_rest_has(json_object_get(node, "state"), "UNKNOWN");
    hg_agent_excuse(call, unknown, json_array_size(nodes));
    json_decref(answer);
}

/* The words of a site's plugin, where the job was taken with some. */
static void add_site(struct hg_agent_call *call, const json_t *answer)
{
    const char *said = hg_rest_text(json_object_get(answer, "job_submit_user_msg"));

    if (!*said)
        said =
            hg_rest_text(json_object_get(json_object_get(answer, "result"), "job_submit_user_msg"));
    hg_buf_puts(&call->site, said);
    hg_agent_add(call, "site", hg_agent_text(said));
}

/* A job that has an id was submitted, whatever "errors" there are beside it: v0.0.38 calls it an error that a job
 * is held. */
static int take_submission(struct hg_agent_call *call, const json_t *answer, const char *what)
{
    json_int_t id = hg_rest_number(json_object_get(answer, "job_id"), 0);
    const char *text;
    int number = hg_rest_errno(answer, &text);

    if (id > 0 && id < UINT32_MAX) {
        hg_agent_add(call, "job_id", json_integer(id));
        add_site(call, answer);
        return 0;
    }
    if (number)
        return hg_rest_fail(call, number, text, what);
    return hg_err_set(&call->err, HG_E_AMBIGUOUS, "slurmrestd took the job but named no id");
}

static int submit(struct hg_agent_call *call, struct hg_agent_job *job)
{
    json_t *body = hg_rest_submission(call, job), *answer = NULL;
    char request[256], what[300];
    int rc = -1;

    if (!body)
        return -1;
    hg_agent_job_name_request(&job->f, request);
    snprintf(what, sizeof what, "submit%s", request);
    call->submitting = true;
    if (hg_rest_ask(call, "POST", HG_REST_SLURM, "/job/submit", body, &answer) == 0)
        rc = take_submission(call, answer, what);
    call->submitting = false;
    if (rc < 0)
        excuse_unregistered(call);
    json_decref(answer);
    return rc;
}

static int op_submit(struct hg_agent_call *call)
{
    struct hg_agent_job job = { 0 };
    int rc = hg_agent_job_read(&job, call);

    if (rc == 0)
        rc = submit(call, &job);
    hg_agent_job_done(&job);
    return rc;
}

static const json_t *find_partition(const json_t *all, const char *name)
{
    const json_t *p;
    size_t i;

    json_array_foreach(all, i, p)
        if (name ? strcmp(hg_rest_text(json_object_get(p, "name")), name) == 0
                 : json_is_true(json_object_get(p, "default")))
            return p;
    return NULL;
}

/* slurmrestd has no test of Slurm's own. What can be known without one: the request is sound, there is such a
 * partition, and it has so many nodes. */
static int check_partition(struct hg_agent_call *call, const struct hg_agent_fields *f)
{
    json_t *all;
    const json_t *p;
    char request[256], what[300];

    if (hg_rest_partitions(call) < 0)
        return -1;
    hg_agent_job_name_request(f, request);
    snprintf(what, sizeof what, "probe%s", request);
    all = json_incref(json_object_get(call->ok, "partitions"));
    json_object_clear(call->ok);
    p = f->partition && strchr(f->partition, ',') ? NULL : find_partition(all, f->partition);
    if (!p && f->partition && !strchr(f->partition, ','))
        hg_rest_fail(call, NO_PARTITION, "Invalid partition name specified", what);
    else if (p && f->nodes > json_integer_value(json_object_get(p, "total_nodes")))
        hg_rest_fail(call, NO_NODES, "Requested node configuration is not available", what);
    json_decref(all);
    return call->err.code ? -1 : 0;
}

static int op_probe(struct hg_agent_call *call)
{
    struct hg_agent_job job = { 0 };
    json_t *body = NULL;
    int rc = hg_agent_job_read(&job, call);

    if (rc == 0)
        rc = (body = hg_rest_submission(call, &job)) ? check_partition(call, &job.f) : -1;
    if (rc == 0) {
        hg_agent_add(call, "start_s", json_integer(0));
        hg_agent_add(call, "nodes", json_string(""));
    }
    json_decref(body);
    hg_agent_job_done(&job);
    return rc;
}

/* ---- cancel, hold ---- */

/* "/job/17" or "/job/17_%5B0-9%2C12%5D"; yours */
static char *task_path(long long job_id, const char *tasks)
{
    struct hg_buf path = HG_BUF_INIT;

    hg_buf_printf(&path, "/job/%lld", job_id);
    for (const char *p = tasks ? tasks : ""; *p; p++)
        hg_buf_printf(&path, *p == ',' ? "%s%%2C" : "%s%c", p == tasks ? "_%5B" : "", *p);
    if (tasks)
        hg_buf_puts(&path, "%5D");
    return hg_buf_detach(&path);
}

static int add_gone(struct hg_agent_call *call, bool gone)
{
    hg_agent_add(call, "gone", json_boolean(gone));
    return 0;
}

/* Every "status" has an error of its own: the first that counts. Where no job was known, all of them say so. */
static int judge_list(struct hg_agent_call *call, const json_t *answer)
{
    const json_t *all = json_object_get(answer, "status"), *item;
    size_t i, gone = 0;

    json_array_foreach(all, i, item) {
        const json_t *error = json_object_get(item, "error");
        int number = (int)json_integer_value(json_object_get(error, "code"));

        gone += number == NO_JOB;
        if (number && number != NO_JOB && number != ALREADY_DONE)
            return hg_rest_fail(call, number, hg_rest_text(json_object_get(error, "string")),
                                "cancel");
    }
    return add_gone(call, gone && gone == json_array_size(all));
}

static int judge(struct hg_agent_call *call, const json_t *answer, const char *what)
{
    const char *text;
    int number = hg_rest_errno(answer, &text);

    if (!number || number == ALREADY_DONE || number == NO_JOB)
        return add_gone(call, number == NO_JOB);
    return hg_rest_fail(call, number, text, what);
}

static int op_cancel(struct hg_agent_call *call)
{
    long long job_id;
    const char *tasks;
    json_t *answer = NULL, *body = NULL;
    char *path = NULL;
    int rc = -1;

    if (hg_agent_which(call, "cancel", &job_id, &tasks) < 0)
        return -1;
    if (hg_rest.kills_lists) {
        path = strdup("/jobs/");
        body = tasks ? json_pack("{s:[o]}", "jobs", json_sprintf("%lld_[%s]", job_id, tasks))
                     : json_pack("{s:[o]}", "jobs", json_sprintf("%lld", job_id));
    } else {
        path = task_path(job_id, tasks);
    }
    if (!path || (hg_rest.kills_lists && !body))
        hg_err_oom(&call->err);
    else if (hg_rest_ask(call, "DELETE", HG_REST_SLURM, path, body, &answer) == 0)
        rc = json_object_get(answer, "status") && !hg_rest_errno(answer, NULL)
                 ? judge_list(call, answer)
                 : judge(call, answer, "cancel");
    json_decref(answer);
    free(path);
    return rc;
}

/* 22.05 calls every update of an array an error without a number, also when it was done. So look. */
static int look_whether_held(struct hg_agent_call *call, long long job_id, const char *tasks,
                             bool held, const char *text)
{
    struct hg_ranges asked = HG_RANGES_INIT;
    const json_t *job;
    json_t *answer;
    size_t i, wrong = 0, seen = 0;

    if (hg_rest_get(call, HG_REST_SLURM, "/jobs", "cannot ask for jobs", &answer) < 0)
        return -1;
    if (tasks)
        hg_ranges_parse(tasks, UINT32_MAX - 1, &asked, NULL);
    json_array_foreach(json_object_get(answer, "jobs"), i, job) {
        const char *reason = hg_rest_text(json_object_get(job, "state_reason"));
        json_int_t task = hg_rest_number(json_object_get(job, "array_task_id"), -1);
        bool meant = !tasks;

        if (hg_rest_number(json_object_get(job, "array_job_id"), 0) != job_id &&
            hg_rest_number(json_object_get(job, "job_id"), 0) != job_id)
            continue;
        seen++;
        for (size_t k = 0; k < asked.n && task >= 0; k++)
            meant = meant || (asked.items[k].first <= task && task <= asked.items[k].last);
        if (meant && hg_rest_has(json_object_get(job, "job_state"), "PENDING"))
            wrong += (strncmp(reason, "JobHeld", 7) == 0) != held;
    }
    hg_ranges_done(&asked);
    json_decref(answer);
    if (wrong)
        return hg_rest_fail(call, -1, text, held ? "hold" : "release");
    return add_gone(call, !seen);
}

static int op_hold(struct hg_agent_call *call)
{
    const json_t *value = json_object_get(call->request->root, "held");
    bool held = json_is_true(value);
    const char *what = held ? "hold" : "release", *tasks, *text;
    long long job_id;
    json_t *answer = NULL;
    char *path;
    int rc;

    if (!json_is_boolean(value))
        return hg_err_set(&call->err, HG_E_BUG, "hold needs \"held\", true or false");
    if (hg_agent_which(call, "hold", &job_id, &tasks) < 0)
        return -1;
    if (tasks && !hg_rest.plain) {
        hg_err_set(&call->err, HG_E_REFUSED, "%s: slurmrestd (%s) knows whole arrays only", what,
                   hg_rest.api);
        return hg_err_hint(&call->err, "scontrol %s \"%lld_[%s]\"", held ? "uhold" : what, job_id,
                           tasks);
    }
    path = task_path(job_id, tasks);
    if (!path)
        return hg_err_oom(&call->err);
    rc = hg_rest_ask(call, "POST", HG_REST_SLURM, path, json_pack("{s:b}", "hold", held), &answer);
    if (rc == 0 && hg_rest.plain && hg_rest_errno(answer, &text) == -1)
        rc = look_whether_held(call, job_id, tasks, held, text);
    else if (rc == 0)
        rc = judge(call, answer, what);
    json_decref(answer);
    free(path);
    return rc;
}

/* ---- the program ---- */

static const struct hg_agent_op ops[] = {
    { "hello", op_hello, false },
    { "limits", op_limits, true },
    { "submit", op_submit, true },
    { "probe", op_probe, true },
    { "poll", hg_rest_poll, true },
    { "history", op_history, true },
    { "cancel", op_cancel, true },
    { "hold", op_hold, true },
    { "nodes", hg_rest_nodes, true },
    { "partitions", hg_rest_partitions, true },
    { 0 },
};

/* "~/x" is a path below the home. */
static int expand_home(char **path, struct hg_err *err)
{
    const char *home = getenv("HOME");
    char *full;

    if (!*path || strncmp(*path, "~/", 2) != 0)
        return 0;
    full = hg_fs_join(home ? home : "/", *path + 2);
    if (!full)
        return hg_err_oom(err);
    free(*path);
    *path = full;
    return 0;
}

/* The one argument: the site's "rest". */
static int read_config(const char *text, struct hg_err *err)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_errs errs = HG_ERRS_INIT;
    int rc = -1;

    if (!text)
        return 0;
    if (hg_json_parse("argument", text, strlen(text), &doc, err) == 0)
        rc = hg_json_decode(&doc, doc.root, "", hg_rest_fields, true, &hg_rest.config, &errs);
    if (errs.n)
        *err = errs.items[0];
    if (rc == 0 && (expand_home(&hg_rest.config.token_file, err) < 0 ||
                    expand_home(&hg_rest.config.ca_file, err) < 0))
        rc = -1;
    hg_errs_done(&errs);
    hg_json_doc_done(&doc);
    return rc;
}

/* $SLURMRESTD_URL stands where the site names none; a socket is spoken to as http://localhost. */
static int read_url(struct hg_err *err)
{
    static const char unix_prefix[] = "unix:";
    const char *url = hg_rest.config.url ? hg_rest.config.url : getenv("SLURMRESTD_URL");
    size_t n;

    if (!url || !*url)
        return 0;
    if (hg_rest_url_check(url, err) < 0)
        return -1;
    hg_rest.url = strdup(url);
    if (strncmp(url, unix_prefix, sizeof unix_prefix - 1) == 0) {
        url += sizeof unix_prefix - 1;
        url += strspn(url, "/") - 1; /* unix:///path, too */
        hg_rest.socket = strdup(url);
        hg_rest.base = strdup("http://localhost");
        return hg_rest.url && hg_rest.socket && hg_rest.base ? 0 : hg_err_oom(err);
    }
    n = strlen(url);
    while (n && url[n - 1] == '/')
        n--;
    hg_rest.base = hg_str_printf("%.*s", (int)n, url);
    return hg_rest.url && hg_rest.base ? 0 : hg_err_oom(err);
}

static int usage(FILE *out)
{
    fputs(
        "usage: " PROGRAM " [JSON]\n\n"
        "Answers requests of hpcgrid, JSON lines on stdin, about the Slurm behind the slurmrestd that \"url\" of\n"
        "the JSON (member \"rest\" of a site) or SLURMRESTD_URL names. The token comes from SLURM_JWT or\n"
        "\"token_file\".\n",
        out);
    return out == stdout ? 0 : 2;
}

/* A token is held: no core files. */
static int run(const char *argument)
{
    static const struct hg_agent agent = { "libcurl", ops, hg_rest_ready, NULL };
    struct hg_err err = HG_ERR_INIT;
    struct hg_buf text = HG_BUF_INIT;
    int answers;

    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    if (read_config(argument, &err) < 0 || read_url(&err) < 0) {
        hg_err_format(&err, &text);
        fputs(hg_buf_str(&text), stderr);
        hg_buf_done(&text);
        return 3;
    }
    answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (answers < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
        curl_global_init(CURL_GLOBAL_DEFAULT)) {
        fputs(PROGRAM ": cannot begin\n", stderr);
        return 4;
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for hpcgrid, which closes the pipe */
    return hg_agent_serve(&agent, answers);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf(PROGRAM " " HPCGRID_VERSION " (%s)\n", curl_version());
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--help") == 0)
        return usage(stdout);
    if (argc > 2)
        return usage(stderr);
    return run(argc > 1 ? argv[1] : NULL);
}
