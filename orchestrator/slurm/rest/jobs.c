/* SPDX-License-Identifier: Apache-2.0 */
/* What slurmrestd says about jobs: poll and history. */
#include "slurm/rest/jobs.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/ranges.h"
#include "base/text.h"
#include "slurm/common/records.h"
#include "slurm/rest/ask.h"
#include "slurm/rest/server.h"
#include "slurm/rest/token.h"
#include "slurm/rest/values.h"

#define INDEX_MAX 4000001

static const json_t *get(const json_t *object, const char *name)
{
    return json_object_get(object, name);
}

/* ---- states ---- */

static const char *find_base(const char *word)
{
    return hg_agent_base_state(word, strlen(word));
}

/* v0.0.38 has one word, and a flag hides the state under it: a job that waits again was requeued or held, any
 * other still has its nodes. */
static const char *state_under(const char *flag)
{
    if (hg_agent_is_waiting(flag))
        return "PENDING";
    return *flag && strcmp(flag, "UNKNOWN") != 0 ? "RUNNING" : "UNKNOWN";
}

static const char *read_state(const json_t *value)
{
    const char *base = NULL;
    const json_t *item;
    size_t i;

    json_array_foreach(value, i, item)
        if (!base)
            base = find_base(hg_rest_text(item));
    if (!base && !json_is_array(value))
        base = find_base(hg_rest_text(value));
    return base ? base : state_under(hg_rest_text(value));
}

/* As in hpcgrid-slurm: COMPLETING is added to the reason. */
static const char *read_reason(const json_t *job, const char *state, struct hg_buf *both)
{
    const char *said = hg_rest_text(get(job, "state_description"));
    const char *reason = *said ? said : hg_rest_text(get(job, "state_reason"));

    if (strcmp(reason, "None") == 0)
        reason = "";
    if (!hg_rest_has(get(job, "job_state"), "COMPLETING") ||
        (*reason && !hg_agent_has_ended(state)))
        return reason;
    hg_buf_printf(both, "%s%sCOMPLETING", reason, *reason ? "," : "");
    return hg_buf_str(both);
}

/* A wait status. Versions since v0.0.40 take it apart. */
static int read_exit(const json_t *value)
{
    const json_t *signal = get(value, "signal");
    json_int_t number;

    if (json_is_number(value))
        return (int)json_integer_value(value);
    number = hg_rest_number(get(signal, get(signal, "id") ? "id" : "signal_id"), 0);
    return (int)((hg_rest_number(get(value, "return_code"), 0) & 0xff) << 8 | (number & 0x7f));
}

/* ---- index sets ---- */

/* slurmrestd cuts an index set after some 60 characters, "0,2,4,1...", unless its own environment has
 * SLURM_BITSTR_LEN=0. What the comment says the array was, above the last index that is whole and without the tasks that
 * have records of their own, is the rest. */
struct array {
    const json_t *jobs; /* all of the answer */
    json_int_t id;
    const char *comment; /* "hg-KEY 0-9,12" */
};

static bool *own_records(const struct array *a)
{
    bool *own = hg_alloc_zeroed(INDEX_MAX, sizeof *own);
    const json_t *job;
    size_t i;

    json_array_foreach(a->jobs, i, job) {
        json_int_t task = hg_rest_number(get(job, "array_task_id"), -1);

        if (task >= 0 && task < INDEX_MAX && !*hg_rest_text(get(job, "array_task_string")) &&
            hg_rest_number(get(job, "array_job_id"), 0) == a->id)
            own[task] = true;
    }
    return own;
}

static void add_rest(const struct array *a, const struct hg_ranges *known,
                     const struct hg_ranges *submitted, struct hg_ranges *all)
{
    bool *own = own_records(a);
    uint32_t from = known->n ? known->items[known->n - 1].last + 1 : 0;

    for (size_t i = 0; i < known->n; i++)
        for (uint32_t k = known->items[i].first; k <= known->items[i].last; k++)
            hg_ranges_add(all, k);
    for (size_t i = 0; i < submitted->n; i++)
        for (uint32_t k = submitted->items[i].first; k <= submitted->items[i].last; k++)
            if (k >= from && !own[k])
                hg_ranges_add(all, k);
    free(own);
}

static int cut_short(const struct array *a, struct hg_err *err)
{
    hg_err_set(err, HG_E_ENV, "slurmrestd returns only some of the tasks of job %lld",
               (long long)a->id);
    return hg_err_hint(err, "it needs SLURM_BITSTR_LEN=0 in its own environment");
}

static int complete(const struct array *a, const char *text, struct hg_buf *out, struct hg_err *err)
{
    struct hg_ranges known = HG_RANGES_INIT, submitted = HG_RANGES_INIT, all = HG_RANGES_INIT;
    const char *said = a->comment ? strchr(a->comment, ' ') : NULL;
    size_t whole = strcspn(text, ".");
    char *head;
    int rc = 0;

    while (whole && text[whole - 1] != ',') /* the last one may lack digits */
        whole--;
    head = hg_str_printf("%.*s", (int)(whole ? whole - 1 : 0), text);
    if (said && hg_ranges_parse(said + 1, INDEX_MAX - 1, &submitted, NULL) == 0 &&
        hg_ranges_parse(head, INDEX_MAX - 1, &known, NULL) == 0)
        add_rest(a, &known, &submitted, &all);
    else
        rc = cut_short(a, err);
    hg_ranges_format(&all, out);
    free(head);
    hg_ranges_done(&known);
    hg_ranges_done(&submitted);
    hg_ranges_done(&all);
    return rc;
}

static int read_tasks(const struct array *a, json_int_t task, const char *text, struct hg_buf *out,
                      struct hg_err *err)
{
    if (!a->id)
        return 0;
    if (strstr(text, ".."))
        return complete(a, text, out, err);
    if (*text) {
        if (hg_agent_plain_set(text, out))
            return 0;
        return hg_err_set(err, HG_E_AGAIN, "job %lld: cannot read the index set \"%.200s\"",
                          (long long)a->id, text);
    }
    if (task >= 0)
        hg_buf_printf(out, "%lld", (long long)task);
    return 0;
}

/* ---- poll ---- */

/* Whose jobs count. "" if only slurmrestd knows. */
static void our_name(char out[static 128])
{
    const struct passwd *pw = getpwuid(getuid());
    struct hg_token token;

    snprintf(out, 128, "%s", hg_rest.config.user ? hg_rest.config.user : pw ? pw->pw_name : "");
    if (hg_rest.config.user || hg_token_load(hg_rest.config.token_file, &token, NULL) < 0)
        return;
    if (token.text)
        snprintf(out, 128, "%s", token.user);
    hg_token_done(&token);
}

/* The number of an array or of a job that is none; 0 with err set: it has none. */
static uint32_t read_id(json_int_t array, json_int_t job, struct hg_err *err)
{
    json_int_t id = array ? array : job;

    if (id > 0 && id < UINT32_MAX)
        return (uint32_t)id;
    hg_err_set(err, HG_E_AGAIN, "slurmrestd returns a job with the number %lld", (long long)id);
    return 0;
}

static json_t *encode_job(const json_t *jobs, const json_t *job, const char *key,
                          struct hg_err *err)
{
    struct array array = { jobs, hg_rest_number(get(job, "array_job_id"), 0),
                           json_string_value(get(job, "comment")) };
    const char *state = read_state(get(job, "job_state"));
    uint32_t id = read_id(array.id, hg_rest_number(get(job, "job_id"), 0), err);
    struct hg_buf tasks = HG_BUF_INIT, reason = HG_BUF_INIT;
    json_t *o = NULL;

    if (id && read_tasks(&array, hg_rest_number(get(job, "array_task_id"), -1),
                         hg_rest_text(get(job, "array_task_string")), &tasks, err) == 0)
        o = hg_agent_record_encode(&(struct hg_agent_record){
            .key = key,
            .tasks = hg_buf_str(&tasks),
            .state = state,
            .reason = read_reason(job, state, &reason),
            .nodes = hg_rest_text(get(job, "nodes")),
            .job_id = id,
            .restarts = (uint32_t)hg_rest_number(get(job, "restart_cnt"), 0),
            .exit_status = read_exit(get(job, "exit_code")),
            .submit = (time_t)hg_rest_number(get(job, "submit_time"), 0),
            .start = (time_t)hg_rest_number(get(job, "start_time"), 0),
            .end = (time_t)hg_rest_number(get(job, "end_time"), 0),
        });
    hg_buf_done(&tasks);
    hg_buf_done(&reason);
    return o;
}

static bool is_ours(const json_t *job, const char *user, char key[static HG_AGENT_KEY_DIGITS + 1])
{
    const char *name = hg_rest_text(get(job, "user_name"));

    return (!*name || !*user || strcmp(name, user) == 0) &&
           (hg_agent_find_key(json_string_value(get(job, "comment")), key) ||
            hg_agent_find_key(json_string_value(get(job, "name")), key) ||
            hg_agent_find_key(json_string_value(get(job, "standard_output")), key));
}

int hg_rest_poll(struct hg_agent_call *call, json_t *jobs)
{
    json_t *answer, *record;
    char user[128], key[HG_AGENT_KEY_DIGITS + 1];
    const json_t *all, *job;
    size_t i;
    int rc = 0;

    if (hg_rest_get(call, HG_REST_SLURM, "/jobs", "cannot list jobs", &answer) < 0)
        return -1;
    our_name(user);
    all = get(answer, "jobs");
    json_array_foreach(all, i, job) {
        if (rc < 0 || !is_ours(job, user, key))
            continue;
        record = encode_job(all, job, key, &call->err);
        rc = record ? 0 : -1;
        json_array_append_new(jobs, record);
    }
    json_decref(answer);
    return rc;
}

/* ---- history ---- */

static json_t *encode_past(const json_t *job, uint32_t id, const char *key, const char *tasks)
{
    const json_t *state = get(get(job, "state"), "current"), *time = get(job, "time");

    return hg_agent_record_encode(&(struct hg_agent_record){
        .key = key,
        .tasks = tasks,
        .state = hg_rest_has(state, "REQUEUED") ? "REQUEUED" : read_state(state),
        .reason = "",
        .nodes = hg_rest_text(get(job, "nodes")),
        .job_id = id,
        .exit_status = read_exit(get(job, "exit_code")),
        .submit = (time_t)hg_rest_number(get(time, "submission"), 0),
        .start = (time_t)hg_rest_number(get(time, "start"), 0),
        .end = (time_t)hg_rest_number(get(time, "end"), 0),
    });
}

static int add_past(json_t *latest, const json_t *wanted, const json_t *job, struct hg_err *err)
{
    const json_t *array = get(job, "array");
    struct array a = { .id = hg_rest_number(get(array, "job_id"), 0) };
    json_int_t task = hg_rest_number(get(array, "task_id"), -1);
    struct hg_buf tasks = HG_BUF_INIT;
    char key[HG_AGENT_KEY_DIGITS + 1], id[96];
    uint32_t number;
    int rc;

    if (!hg_agent_find_key(json_string_value(get(job, "name")), key) || !get(wanted, key))
        return 0;
    number = read_id(a.id, hg_rest_number(get(job, "job_id"), 0), err);
    rc = number ? read_tasks(&a, task, hg_rest_text(get(array, "task")), &tasks, err) : -1;
    if (rc == 0) {
        snprintf(id, sizeof id, "%lld/%lld/%s", (long long)hg_rest_number(get(job, "job_id"), 0),
                 (long long)task, key + 8);
        hg_agent_keep_latest(latest, id, encode_past(job, number, key, hg_buf_str(&tasks)));
    }
    hg_buf_done(&tasks);
    return rc;
}

/* v0.0.38 knows neither users nor runs before the last. slurmrestd 23.11 finds no job at all where one of the two flags is set; without them it
 * tells a job's last run, with its steps. */
static void make_query(double since_s, char out[static 256])
{
    char user[128];
    int n = snprintf(out, 256, "/jobs?start_time=uts%lld", (long long)since_s);

    our_name(user);
    if (hg_rest.plain)
        return;
    if (strncmp(hg_rest.release, "23.11.", 6) != 0)
        n += snprintf(out + n, (size_t)(256 - n), "&show_duplicates=true&skip_steps=true");
    if (*user && hg_text_is_name(user))
        snprintf(out + n, (size_t)(256 - n), "&users=%s", user);
}

int hg_rest_history(struct hg_agent_call *call, const json_t *keys, double since_s, json_t *latest)
{
    const json_t *job;
    json_t *answer;
    char query[256];
    size_t i;
    int rc = 0;

    make_query(since_s, query);
    if (hg_rest_get(call, HG_REST_DATABASE, query, "cannot list jobs of the accounting database",
                    &answer) < 0)
        return -1;
    json_array_foreach(get(answer, "jobs"), i, job)
        if (rc == 0)
            rc = add_past(latest, keys, job, &call->err);
    json_decref(answer);
    return rc;
}
