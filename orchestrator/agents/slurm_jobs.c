/* SPDX-License-Identifier: Apache-2.0 */
/* What the controller and the accounting database know about jobs: poll and history. */
#include "agents/slurm_jobs.h"

#include <slurm/slurmdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"

#define KEY_DIGITS 32
#define INDEX_MAX 4000001L /* no Slurm takes more */

/* libslurm exports one of the two, depending on its age, and declares neither. */
extern const char *slurm_job_reason_string(int reason) __attribute__((weak));
extern const char *slurm_job_state_reason_string(int reason) __attribute__((weak));

static const char *reason_name(int reason)
{
    const char *name = slurm_job_state_reason_string ? slurm_job_state_reason_string(reason)
                       : slurm_job_reason_string     ? slurm_job_reason_string(reason)
                                                     : "None";

    return name && strcmp(name, "None") != 0 ? name : "";
}

static const char *state_name(uint32_t state)
{
    static const char *const names[] = {
        "PENDING", "RUNNING",   "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED",
        "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY",
    };

    state &= JOB_STATE_BASE;
    return state < sizeof names / sizeof *names ? names[state] : "UNKNOWN";
}

static bool has_ended(uint32_t state)
{
    return (state & JOB_STATE_BASE) > JOB_SUSPENDED;
}

static bool find_key(const char *text, char key[static KEY_DIGITS + 1])
{
    for (const char *p = text; p && (p = strstr(p, "hg-")); p++)
        if (strspn(p + 3, "0123456789abcdef") == KEY_DIGITS) {
            snprintf(key, KEY_DIGITS + 1, "%.*s", KEY_DIGITS, p + 3);
            return true;
        }
    return false;
}

/* Slurm's text of an index set, "1,3-5,10-20:2%4" or "[1-3]", as "1,3-5,10,12,...". False if it was
 * cut short or cannot be read. */
static bool plain_set(const char *text, struct hg_buf *out)
{
    for (const char *p = text; *p && *p != '%';) {
        long first, last, step = 1;
        char *end;

        if (*p == '[' || *p == ']' || *p == ',') {
            p++;
            continue;
        }
        first = last = strtol(p, &end, 10);
        if (end == p)
            return false;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (*end == ':')
            step = strtol(end + 1, &end, 10);
        if (first < 0 || last < first || last > INDEX_MAX || step < 1)
            return false;
        if (step == 1 && last > first)
            hg_buf_printf(out, "%s%ld-%ld", out->len ? "," : "", first, last);
        else
            for (long i = first; i <= last; i += step)
                hg_buf_printf(out, "%s%ld", out->len ? "," : "", i);
        p = end;
    }
    return true;
}

/* The index set of a record. "" for a job that is no array, and for what stays of an array whose waiting
 * part was cancelled as a whole. */
static int task_set(uint32_t array_job_id, uint32_t task_id, const char *task_str,
                    struct hg_buf *out, struct hg_err *err)
{
    hg_buf_clear(out);
    if (!array_job_id)
        return 0;
    if (task_id != NO_VAL) {
        hg_buf_printf(out, "%u", task_id);
        return 0;
    }
    if (task_str && (!plain_set(task_str, out) || out->failed))
        return hg_err_set(err, HG_E_BUG, "job %u: cannot read the index set \"%s\"", array_job_id,
                          task_str);
    return 0;
}

static void add(json_t *object, const char *name, json_t *value)
{
    json_object_set_new(object, name, value);
}

struct record {
    bool requeued; /* this run ended so, and the database knows no other */
    const char *key, *tasks, *reason, *nodes;
    uint32_t job_id, state, restarts, exit_code;
    time_t submit, start, end;
};

static json_t *encode(const struct record *r)
{
    bool ended = has_ended(r->state), started = (r->state & JOB_STATE_BASE) != JOB_PENDING;
    json_t *o = json_object();

    add(o, "key", json_string(r->key));
    add(o, "job_id", json_integer(r->job_id));
    add(o, "tasks", json_string(r->tasks));
    add(o, "state", json_string(r->requeued ? "REQUEUED" : state_name(r->state)));
    add(o, "reason", hg_json_text(r->reason ? r->reason : ""));
    add(o, "nodes", hg_json_text(r->nodes ? r->nodes : ""));
    add(o, "restarts", json_integer(r->restarts));
    add(o, "exit_status", json_integer(ended && r->exit_code != NO_VAL ? r->exit_code : 0));
    add(o, "submit_s", json_integer(r->submit));
    add(o, "start_s", json_integer(started ? r->start : 0));
    add(o, "end_s", json_integer(ended ? r->end : 0));
    return o;
}

/* ---- poll ---- */

/* A job that is completing says so beside its reason: its nodes have not had their last word. */
static const char *reason_of(const slurm_job_info_t *j, struct hg_buf *both)
{
    const char *reason =
        j->state_desc && j->state_desc[0] ? j->state_desc : reason_name(j->state_reason);

    if (!(j->job_state & JOB_COMPLETING) || (*reason && !has_ended(j->job_state)))
        return reason;
    hg_buf_printf(both, "%s%sCOMPLETING", reason, *reason ? "," : "");
    return hg_buf_str(both);
}

static int add_job(json_t *jobs, const slurm_job_info_t *j, struct hg_err *err)
{
    struct hg_buf tasks = HG_BUF_INIT, reason = HG_BUF_INIT;
    char key[KEY_DIGITS + 1];
    int rc = 0;

    if (!find_key(j->comment, key) && !find_key(j->name, key) && !find_key(j->std_out, key))
        return 0;
    rc = task_set(j->array_job_id, j->array_task_id, j->array_task_str, &tasks, err);
    if (rc == 0)
        json_array_append_new(jobs, encode(&(struct record){
                                        .key = key,
                                        .tasks = hg_buf_str(&tasks),
                                        .reason = reason_of(j, &reason),
                                        .nodes = j->nodes,
                                        .job_id = j->array_job_id ? j->array_job_id : j->job_id,
                                        .state = j->job_state,
                                        .restarts = j->restart_cnt,
                                        .exit_code = j->exit_code,
                                        .submit = j->submit_time,
                                        .start = j->start_time,
                                        .end = j->end_time,
                                    }));
    hg_buf_done(&tasks);
    hg_buf_done(&reason);
    return rc;
}

int hg_agent_poll(struct hg_agent_call *call)
{
    job_info_msg_t *msg = NULL;
    json_t *jobs = json_array();
    int rc;

    add(call->ok, "jobs", jobs);
    call->rpcs++;
    rc = slurm_load_job_user(&msg, getuid(), SHOW_ALL | SHOW_DETAIL);
    if (rc != SLURM_SUCCESS)
        return hg_agent_fail(call, rc, "cannot ask for jobs");
    for (uint32_t i = 0; rc == 0 && i < msg->record_count; i++)
        rc = add_job(jobs, &msg->job_array[i], &call->err);
    slurm_free_job_info_msg(msg);
    return rc;
}

/* ---- history ---- */

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
typedef list_t *job_list;
typedef list_itr_t *job_walk;
#else
typedef List job_list;
typedef ListIterator job_walk;
#endif

/* The keys asked for, as a set. */
static json_t *wanted_keys(const json_t *request)
{
    json_t *list = json_object_get(request, "keys"), *set = json_object(), *key;
    size_t i;

    json_array_foreach(list, i, key)
        if (json_is_string(key))
            json_object_set_new(set, json_string_value(key), json_true());
    return set;
}

/* The database has a record for each run of a requeued job: keep the last, count the others. */
static void keep_latest(json_t *latest, const char *id, json_t *record)
{
    json_t *other = json_object_get(latest, id), *first = record, *second = other;

    if (!other) {
        json_object_set_new(latest, id, record);
        return;
    }
    if (json_integer_value(json_object_get(other, "submit_s")) <=
        json_integer_value(json_object_get(record, "submit_s"))) {
        first = other;
        second = record;
    }
    json_object_set_new(second, "restarts",
                        json_integer(json_integer_value(json_object_get(first, "restarts")) + 1));
    if (second == record)
        json_object_set_new(latest, id, record);
    else
        json_decref(record);
}

static int add_past(json_t *latest, const json_t *wanted, const slurmdb_job_rec_t *j,
                    struct hg_err *err)
{
    struct hg_buf tasks = HG_BUF_INIT;
    char key[KEY_DIGITS + 1], id[64];
    int rc;

    if (!find_key(j->jobname, key) || !json_object_get(wanted, key))
        return 0;
    rc = task_set(j->array_job_id, j->array_task_id, j->array_task_str, &tasks, err);
    if (rc == 0) {
        snprintf(id, sizeof id, "%u/%u/%s", j->jobid, j->array_task_id, key + 8);
        keep_latest(latest, id,
                    encode(&(struct record){
                        .key = key,
                        .tasks = hg_buf_str(&tasks),
                        .reason = "",
                        .nodes = j->nodes,
                        .job_id = j->array_job_id ? j->array_job_id : j->jobid,
                        .state = j->state,
                        .requeued = j->state & JOB_REQUEUE,
                        .exit_code = (uint32_t)j->exitcode,
                        .submit = j->submit,
                        .start = j->start,
                        .end = j->end,
                    }));
    }
    hg_buf_done(&tasks);
    return rc;
}

static job_list ask(struct hg_agent_call *call, time_t since)
{
    slurmdb_job_cond_t cond = { .flags = JOBCOND_FLAG_DUP | JOBCOND_FLAG_NO_STEP,
                                .db_flags = SLURMDB_JOB_FLAG_NOTSET,
                                .usage_start = since };
    uint16_t flags = 0;
    void *connection = slurmdb_connection_get(&flags);
    job_list users, found;
    char uid[16];

    if (!connection) {
        hg_agent_fail(call, SLURM_ERROR, "cannot reach the accounting daemon");
        return NULL;
    }
    users = slurm_list_create(NULL);
    snprintf(uid, sizeof uid, "%u", getuid());
    slurm_list_append(users, uid);
    cond.userid_list = users;
    call->rpcs++;
    found = slurmdb_jobs_get(connection, &cond);
    if (!found)
        hg_agent_fail(call, SLURM_ERROR, "cannot ask the accounting database for jobs");
    slurm_list_destroy(users);
    slurmdb_connection_close(&connection);
    return found;
}

int hg_agent_history(struct hg_agent_call *call)
{
    const json_t *request = call->request->root;
    json_t *wanted = wanted_keys(request), *latest = json_object(), *jobs = json_array(), *record;
    double since = json_number_value(json_object_get(request, "since_s"));
    job_list found = ask(call, (time_t)since);
    const slurmdb_job_rec_t *j;
    const char *id;
    int rc = found ? 0 : -1;

    add(call->ok, "jobs", jobs);
    if (found) {
        job_walk walk = slurm_list_iterator_create(found);

        while (rc == 0 && (j = slurm_list_next(walk)))
            rc = add_past(latest, wanted, j, &call->err);
        slurm_list_iterator_destroy(walk);
        slurm_list_destroy(found);
    }
    json_object_foreach(latest, id, record)
        json_array_append(jobs, record);
    json_decref(latest);
    json_decref(wanted);
    return rc;
}
