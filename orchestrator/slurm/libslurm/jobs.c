/* SPDX-License-Identifier: Apache-2.0 */
/* What the controller and the accounting database know about jobs: poll and history. */
#include "slurm/libslurm/jobs.h"

#include <slurm/slurm.h>
#include <slurm/slurmdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "slurm/common/records.h"
#include "slurm/libslurm/capture.h"

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

/* Of a run that was requeued when the database knows no later one. */
static const char *past_state(uint32_t state)
{
    return state & JOB_REQUEUE ? "REQUEUED" : state_name(state);
}

static int exit_status(uint32_t exit_code)
{
    return exit_code == NO_VAL ? 0 : (int)exit_code;
}

static bool has_ended(uint32_t state)
{
    return (state & JOB_STATE_BASE) > JOB_SUSPENDED;
}

/* The index set of a record. "" for a job that is not an array, and for what stays of an array whose waiting
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
    if (task_str && !hg_agent_plain_set(task_str, out))
        return hg_err_set(err, HG_E_BUG, "job %u: cannot read the index set \"%s\"", array_job_id,
                          task_str);
    return 0;
}

/* ---- poll ---- */

/* COMPLETING is added to the reason: the job is not done on all its nodes. */
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
    char key[HG_AGENT_KEY_DIGITS + 1];
    int rc = 0;

    if (!hg_agent_find_key(j->comment, key) && !hg_agent_find_key(j->name, key) &&
        !hg_agent_find_key(j->std_out, key))
        return 0;
    rc = task_set(j->array_job_id, j->array_task_id, j->array_task_str, &tasks, err);
    if (rc == 0)
        json_array_append_new(jobs, hg_agent_record_encode(&(struct hg_agent_record){
                                        .key = key,
                                        .tasks = hg_buf_str(&tasks),
                                        .reason = reason_of(j, &reason),
                                        .nodes = j->nodes,
                                        .job_id = j->array_job_id ? j->array_job_id : j->job_id,
                                        .state = state_name(j->job_state),
                                        .restarts = j->restart_cnt,
                                        .exit_status = exit_status(j->exit_code),
                                        .submit = j->submit_time,
                                        .start = j->start_time,
                                        .end = j->end_time,
                                    }));
    hg_buf_done(&tasks);
    hg_buf_done(&reason);
    return rc;
}

int hg_agent_poll(struct hg_agent_call *call, json_t *jobs)
{
    job_info_msg_t *msg = NULL;
    int rc;

    call->rpcs++;
    /* Arrays run on the cluster that they were submitted to, in a federation, too. Without SHOW_LOCAL libslurm asks
     * for the federation before each question. */
    rc = slurm_load_job_user(&msg, getuid(), SHOW_ALL | SHOW_DETAIL | SHOW_LOCAL);
    if (rc != SLURM_SUCCESS)
        return hg_agent_fail(call, rc, "cannot list jobs");
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

static int add_past(json_t *latest, const json_t *wanted, const slurmdb_job_rec_t *j,
                    struct hg_err *err)
{
    struct hg_buf tasks = HG_BUF_INIT;
    char key[HG_AGENT_KEY_DIGITS + 1], id[64];
    int rc;

    if (!hg_agent_find_key(j->jobname, key) || !json_object_get(wanted, key))
        return 0;
    rc = task_set(j->array_job_id, j->array_task_id, j->array_task_str, &tasks, err);
    if (rc == 0) {
        snprintf(id, sizeof id, "%u/%u/%s", j->jobid, j->array_task_id, key + 8);
        hg_agent_keep_latest(latest, id,
                             hg_agent_record_encode(&(struct hg_agent_record){
                                 .key = key,
                                 .tasks = hg_buf_str(&tasks),
                                 .reason = "",
                                 .nodes = j->nodes,
                                 .job_id = j->array_job_id ? j->array_job_id : j->jobid,
                                 .state = past_state(j->state),
                                 .exit_status = exit_status((uint32_t)j->exitcode),
                                 .submit = j->submit,
                                 .start = j->state & JOB_STATE_BASE ? j->start : 0,
                                 .end = has_ended(j->state) ? j->end : 0,
                             }));
    }
    hg_buf_done(&tasks);
    return rc;
}

static void *connect_database(struct hg_agent_call *call)
{
    uint16_t flags = 0;
    void *connection = slurmdb_connection_get(&flags);

    if (!connection)
        hg_agent_fail(call, SLURM_ERROR, "cannot reach the accounting daemon");
    return connection;
}

static job_list ask(struct hg_agent_call *call, time_t since)
{
    slurmdb_job_cond_t cond = { .flags = JOBCOND_FLAG_DUP | JOBCOND_FLAG_NO_STEP,
                                .db_flags = SLURMDB_JOB_FLAG_NOTSET,
                                .usage_start = since };
    void *connection = connect_database(call);
    job_list users, found;
    char uid[16];

    if (!connection)
        return NULL;
    users = slurm_list_create(NULL);
    snprintf(uid, sizeof uid, "%u", getuid());
    slurm_list_append(users, uid);
    cond.userid_list = users;
    call->rpcs++;
    found = slurmdb_jobs_get(connection, &cond);
    if (!found)
        hg_agent_fail(call, SLURM_ERROR, "cannot list jobs of the accounting database");
    slurm_list_destroy(users);
    slurmdb_connection_close(&connection);
    return found;
}

int hg_agent_history(struct hg_agent_call *call, const json_t *keys, double since_s, json_t *latest)
{
    job_list found = ask(call, (time_t)since_s);
    const slurmdb_job_rec_t *j;
    job_walk walk;
    int rc = 0;

    if (!found)
        return -1;
    walk = slurm_list_iterator_create(found);
    while (rc == 0 && (j = slurm_list_next(walk)))
        rc = add_past(latest, keys, j, &call->err);
    slurm_list_iterator_destroy(walk);
    slurm_list_destroy(found);
    return rc;
}

/* ---- accounts ---- */

static const char *qos_name(job_list all, uint32_t id)
{
    const slurmdb_qos_rec_t *q;
    job_walk walk = slurm_list_iterator_create(all);
    const char *name = "";

    while ((q = slurm_list_next(walk)))
        if (q->id == id)
            name = q->name;
    slurm_list_iterator_destroy(walk);
    return name;
}

static json_t *encode_account(const slurmdb_assoc_rec_t *a, job_list all_qos)
{
    return json_pack("{s:o, s:o, s:o, s:b}", "cluster", hg_agent_text(a->cluster), "account",
                     hg_agent_text(a->acct), "qos",
                     hg_agent_text(all_qos ? qos_name(all_qos, a->def_qos_id) : ""), "default",
                     a->is_def != 0);
}

int hg_agent_accounts(struct hg_agent_call *call, const char *user, json_t *list)
{
    void *connection = connect_database(call);
    job_list users, found, all_qos;
    slurmdb_assoc_cond_t cond = { 0 };
    slurmdb_qos_cond_t every = { 0 };
    const slurmdb_assoc_rec_t *a;
    job_walk walk;

    if (!connection)
        return -1;
    users = slurm_list_create(NULL);
    slurm_list_append(users, (char *)user);
    cond.user_list = users;
    call->rpcs += 2;
    found = slurmdb_associations_get(connection, &cond);
    all_qos = slurmdb_qos_get(connection, &every);
    slurm_list_destroy(users);
    slurmdb_connection_close(&connection);
    if (found) {
        walk = slurm_list_iterator_create(found);
        while ((a = slurm_list_next(walk)))
            json_array_append_new(list, encode_account(a, all_qos));
        slurm_list_iterator_destroy(walk);
        slurm_list_destroy(found);
    }
    if (all_qos)
        slurm_list_destroy(all_qos);
    return found ? 0 : hg_agent_fail(call, SLURM_ERROR, "cannot read the user's accounts");
}
