/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-rest: slurmrestd behind a pipe. slurm/README.md has the protocol. */
#include <curl/curl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/ranges.h"
#include "slurm/common/serve.h"
#include "slurm/rest/ask.h"
#include "slurm/rest/jobs.h"
#include "slurm/rest/lists.h"
#include "slurm/rest/server.h"
#include "slurm/rest/submit.h"
#include "slurm/rest/values.h"
#include "slurm/rest/version.h"

/* Slurm's numbers that are looked at here. */
#define NO_JOB 2017
#define ALREADY_DONE 2021
#define NO_PARTITION 2000
#define NO_NODES 2014

/* ---- hello, limits ---- */

static int op_hello(struct hg_agent_call *call)
{
    hg_agent_add(call, "library", json_null());
    hg_agent_add(call, "conf", hg_rest.url ? hg_agent_text(hg_rest.url) : json_null());
    return 0;
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
    hg_agent_add(call, "max_array_size", json_integer(c->max_array_size));
    hg_agent_add(call, "max_jobs", json_integer(c->max_jobs));
    hg_agent_add(call, "min_job_age_s", json_integer(c->min_job_age_s));
    hg_agent_add(call, "ambiguous_s", json_integer(c->ambiguous_s));
    /* the client waits for two of them */
    hg_agent_add(call, "message_timeout_s", json_integer((json_int_t)(c->timeout_s + 1) / 2));
    hg_agent_add(call, "accounting", json_boolean(hg_rest.has_accounts));
    hg_agent_add(call, "version", hg_agent_text(hg_rest.release));
    hg_agent_add(call, "cluster", hg_agent_text(hg_rest.cluster));
    return 0;
}

/* ---- submit, probe ---- */

/* The message of a site's plugin for an accepted job, if any. */
static void add_site(struct hg_agent_call *call, const json_t *answer)
{
    const char *said = hg_rest_text(json_object_get(answer, "job_submit_user_msg"));

    if (!*said)
        said =
            hg_rest_text(json_object_get(json_object_get(answer, "result"), "job_submit_user_msg"));
    hg_buf_puts(&call->site, said);
    hg_agent_add(call, "site", hg_agent_text(said));
}

/* A job that has an id was submitted, even if there are "errors" as well: v0.0.38 reports a held job as an
 * error. */
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
    return hg_err_set(&call->err, HG_E_AMBIGUOUS,
                      "slurmrestd accepted the job but returned no job id");
}

static int op_submit(struct hg_agent_call *call, struct hg_agent_job *job, const char *what)
{
    json_t *body = hg_rest_submission(call, job), *answer = NULL;
    int rc = -1;

    if (body && hg_rest_ask(call, "POST", HG_REST_SLURM, "/job/submit", body, &answer) == 0)
        rc = take_submission(call, answer, what);
    json_decref(answer);
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

/* slurmrestd has no --test-only. What can be checked without it: the request is valid, the partition exists and
 * has enough nodes. */
static int check_partition(struct hg_agent_call *call, const struct hg_agent_fields *f,
                           const char *what)
{
    bool several = f->partition && strchr(f->partition, ',');
    json_t *all = json_array();
    const json_t *p;
    int rc = hg_rest_partitions(call, all);

    p = several ? NULL : find_partition(all, f->partition);
    if (rc == 0 && !p && f->partition && !several)
        rc = hg_rest_fail(call, NO_PARTITION, "Invalid partition name specified", what);
    else if (rc == 0 && p && f->nodes > json_integer_value(json_object_get(p, "total_nodes")))
        rc = hg_rest_fail(call, NO_NODES, "Requested node configuration is not available", what);
    json_decref(all);
    return rc;
}

static int op_probe(struct hg_agent_call *call, struct hg_agent_job *job, const char *what)
{
    json_t *body = hg_rest_submission(call, job);
    int rc = body ? check_partition(call, &job->f, what) : -1;

    json_decref(body);
    hg_agent_add(call, "start_s", json_integer(0));
    hg_agent_add(call, "nodes", json_string(""));
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

/* Every "status" has an error of its own: the first that counts. If no job was known, all of them have that error. */
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

static int whole_arrays_only(struct hg_agent_call *call, const char *what, const char *command,
                             long long job_id, const char *tasks)
{
    hg_err_set(&call->err, HG_E_REFUSED, "%s: slurmrestd (%s) supports whole arrays only", what,
               hg_rest.api);
    return hg_err_hint(&call->err, "%s \"%lld_[%s]\"", command, job_id, tasks);
}

static int cancel(struct hg_agent_call *call, long long job_id, const char *tasks)
{
    char *id = hg_agent_name_tasks(job_id, tasks);
    char *path = hg_rest.kills_lists ? hg_strdup("/jobs/") : task_path(job_id, tasks);
    json_t *body = hg_rest.kills_lists ? json_pack("{s:[s]}", "jobs", id) : NULL, *answer = NULL;
    int rc = hg_rest_ask(call, "DELETE", HG_REST_SLURM, path, body, &answer);

    if (rc == 0)
        rc = json_object_get(answer, "status") && !hg_rest_errno(answer, NULL)
                 ? judge_list(call, answer)
                 : judge(call, answer, "cancel");
    json_decref(answer);
    free(path);
    free(id);
    return rc;
}

/* 23.11 cannot read a list of tasks, and cancels the whole array where one task is named without brackets. */
static int op_cancel(struct hg_agent_call *call, long long job_id, const char *tasks)
{
    if (tasks && strncmp(hg_rest.release, "23.11.", 6) == 0)
        return whole_arrays_only(call, "cancel", "scancel", job_id, tasks);
    return cancel(call, job_id, tasks);
}

/* 22.05 calls every update of an array an error without a number, also when it was done. So look. */
static int look_whether_held(struct hg_agent_call *call, long long job_id, const char *tasks,
                             bool held, const char *text)
{
    struct hg_ranges asked = HG_RANGES_INIT;
    const json_t *job;
    json_t *answer;
    size_t i, wrong = 0, seen = 0;

    if (hg_rest_get(call, HG_REST_SLURM, "/jobs", "cannot list jobs", &answer) < 0)
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

static int op_hold(struct hg_agent_call *call, long long job_id, const char *tasks, bool held)
{
    const char *what = held ? "hold" : "release", *text;
    json_t *answer = NULL;
    char *path;
    int rc;

    if (tasks && !hg_rest.plain)
        return whole_arrays_only(call, what, held ? "scontrol uhold" : "scontrol release", job_id,
                                 tasks);
    path = task_path(job_id, tasks);
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

/* It holds a token: no core files. */
static int begin(const char *argument, struct hg_err *err)
{
    int answers;

    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    if (hg_rest_configure(argument, err) < 0)
        return -1;
    answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (answers < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return hg_err_sys(err, "cannot use stdout");
    if (curl_global_init(CURL_GLOBAL_DEFAULT))
        return hg_err_set(err, HG_E_ENV, "libcurl does not start");
    return answers;
}

static const char *built_with(void)
{
    return curl_version();
}

int main(int argc, char **argv)
{
    static const struct hg_agent agent = {
        .program = "hpcgrid-rest",
        .library = "libcurl",
        .usage =
            " [JSON]\n\n"
            "Answers requests of hpcgrid, JSON lines on stdin, about the Slurm behind the slurmrestd that \"url\" of\n"
            "the JSON (member \"rest\" of a site) or SLURMRESTD_URL names. The token comes from SLURM_JWT or\n"
            "\"token_file\".",
        .has_argument = true,
        .built_with = built_with,
        .begin = begin,
        .need_slurm = hg_rest_ready,
        .hello = op_hello,
        .limits = op_limits,
        .submit = op_submit,
        .probe = op_probe,
        .poll = hg_rest_poll,
        .history = hg_rest_history,
        .cancel = op_cancel,
        .hold = op_hold,
        .partitions = hg_rest_partitions,
        .nodes = hg_rest_nodes,
        .accounts = hg_rest_accounts,
    };

    return hg_agent_main(&agent, argc, argv);
}
