/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-slurm: libslurm behind a pipe. slurm/README.md has the protocol. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "slurm/common/codes.h"
#include "slurm/common/conf.h"
#include "slurm/common/munge.h"
#include "slurm/common/serve.h"
#include "slurm/libslurm/capture.h"
#include "slurm/libslurm/desc.h"
#include "slurm/libslurm/jobs.h"

static char *prefix_of_library(void)
{
    Dl_info library;
    char *lib, *prefix;

    if (!dladdr((void *)slurm_init_job_desc_msg, &library) || !library.dli_fname)
        return NULL;
    lib = hg_fs_dirname(library.dli_fname); /* PREFIX/lib/libslurm.so reads PREFIX/etc/slurm.conf */
    prefix = hg_fs_join(lib, "..");
    free(lib);
    return prefix;
}

static char *find_conf(void)
{
    char *prefix = prefix_of_library(), *conf = hg_agent_find_conf(prefix);

    free(prefix);
    return conf;
}

static int need_slurm(struct hg_agent_call *call)
{
    static bool ready;
    static char *conf;

    if (!ready)
        conf = find_conf();
    if (!ready && !conf && !getenv("SLURM_CONF_SERVER"))
        return hg_agent_no_conf(call);
    if (hg_agent_check_auth(call, conf) < 0)
        return -1;
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(22, 5, 0)
    if (!ready)
        slurm_init(NULL);
#endif
    ready = true;
    return 0;
}

/* ---- small operations ---- */

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
#define slurm_free_ctl_conf slurm_free_conf
#endif

/* The Slurm that this program was built with: its library fits no other. */
static const char *built_with(void)
{
    static char text[32];

    snprintf(text, sizeof text, "libslurm %d.%02d.%d", SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
             SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER), SLURM_VERSION_NUMBER & 0xff);
    return text;
}

static int op_hello(struct hg_agent_call *call)
{
    char *conf = find_conf();

    hg_agent_add(call, "library", json_string(strchr(built_with(), ' ') + 1));
    hg_agent_add(call, "conf", conf ? hg_agent_text(conf) : json_null());
    free(conf);
    return 0;
}

static int op_limits(struct hg_agent_call *call)
{
    slurm_conf_t *c = NULL;
    int rc;

    call->rpcs++;
    rc = slurm_load_ctl_conf(0, &c);
    if (rc != SLURM_SUCCESS)
        return hg_agent_fail(call, rc, "cannot read the configuration");
    hg_agent_add(call, "max_array_size", json_integer(c->max_array_sz));
    hg_agent_add(call, "max_jobs", json_integer(c->max_job_cnt));
    hg_agent_add(call, "min_job_age_s", json_integer(c->min_job_age));
    hg_agent_add(call, "ambiguous_s", json_integer(hg_agent_credential_life_s(c->authinfo)));
    hg_agent_add(call, "message_timeout_s", json_integer(c->msg_timeout));
    hg_agent_add(
        call, "accounting",
        json_boolean(c->accounting_storage_type && strstr(c->accounting_storage_type, "slurmdbd")));
    hg_agent_add(call, "version", hg_agent_text(c->version));
    hg_agent_add(call, "cluster", hg_agent_text(c->cluster_name));
    slurm_free_ctl_conf(c);
    return 0;
}

/* ---- submit, probe, cancel, hold ---- */

static uint32_t answered_id(const submit_response_msg_t *answer)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
    return answer->step_id.job_id;
#else
    return answer->job_id;
#endif
}

static int op_submit(struct hg_agent_call *call, struct hg_agent_job *job, const char *what)
{
    struct hg_agent_desc desc;
    submit_response_msg_t *answer = NULL;
    int rc;

    if (hg_agent_desc_fill(&desc, job, true, &call->err) < 0) {
        hg_agent_desc_done(&desc);
        return -1;
    }
    call->rpcs++;
    rc = slurm_submit_batch_job(&desc.msg, &answer);
    if (rc != SLURM_SUCCESS) {
        hg_agent_fail(call, rc, "%s", what);
    } else if (!answer || !answered_id(answer)) {
        rc = hg_err_set(&call->err, HG_E_AMBIGUOUS,
                        "slurmctld accepted the job but returned no job id");
    } else {
        hg_agent_collect(&call->site);
        if (answer->job_submit_user_msg)
            hg_buf_printf(&call->site, "%s%s", call->site.len ? "\n" : "",
                          answer->job_submit_user_msg);
        hg_agent_add(call, "job_id", json_integer(answered_id(answer)));
        hg_agent_add(call, "site", hg_agent_text(hg_buf_str(&call->site)));
    }
    if (answer)
        slurm_free_submit_response_response_msg(answer);
    hg_agent_desc_done(&desc);
    return rc == SLURM_SUCCESS ? 0 : -1;
}

/* libslurm exports this but older headers lack it. */
extern void slurm_free_will_run_response_msg(will_run_response_msg_t *msg);

static int op_probe(struct hg_agent_call *call, struct hg_agent_job *job, const char *what)
{
    struct hg_agent_desc desc;
    will_run_response_msg_t *answer = NULL;
    int rc;

    if (hg_agent_desc_fill(&desc, job, false, &call->err) < 0) {
        hg_agent_desc_done(&desc);
        return -1;
    }
    call->rpcs++;
    rc = slurm_job_will_run2(&desc.msg, &answer);
    if (rc != SLURM_SUCCESS) {
        hg_agent_fail(call, rc, "%s", what);
    } else {
        hg_agent_add(call, "start_s", json_integer(answer ? answer->start_time : 0));
        hg_agent_add(call, "nodes", hg_agent_text(answer ? answer->node_list : NULL));
    }
    if (answer)
        slurm_free_will_run_response_msg(answer);
    hg_agent_desc_done(&desc);
    return rc == SLURM_SUCCESS ? 0 : -1;
}

static int op_cancel(struct hg_agent_call *call, long long job_id, const char *tasks)
{
    char *id = hg_agent_name_tasks(job_id, tasks);
    int rc, number;

    call->rpcs++;
    rc = slurm_kill_job2(id, SIGKILL, 0, NULL);
    number = rc == SLURM_ERROR ? errno : rc;
    free(id);
    if (rc != SLURM_SUCCESS && number != ESLURM_ALREADY_DONE && number != ESLURM_INVALID_JOB_ID)
        return hg_agent_fail(call, number, "cancel");
    hg_agent_add(call, "gone",
                 json_boolean(rc != SLURM_SUCCESS && number == ESLURM_INVALID_JOB_ID));
    return 0;
}

/* What has ended cannot be held, and need not be. */
static bool is_past_holding(int number)
{
    return number == ESLURM_ALREADY_DONE || number == ESLURM_JOB_FINISHED ||
           number == ESLURM_JOB_NOT_PENDING || number == ESLURM_TRANSITION_STATE_NO_UPDATE;
}

/* The first error of a task that counts; SLURM_SUCCESS if there is none. */
static int worst_of(const job_array_resp_msg_t *resp)
{
    for (uint32_t i = 0; resp && i < resp->job_array_count; i++) {
        int number = (int)resp->error_code[i];

        if (number != SLURM_SUCCESS && number != ESLURM_INVALID_JOB_ID && !is_past_holding(number))
            return number;
    }
    return SLURM_SUCCESS;
}

static int op_hold(struct hg_agent_call *call, long long job_id, const char *tasks, bool held)
{
    job_array_resp_msg_t *resp = NULL;
    job_desc_msg_t desc;
    int rc, number;

    slurm_init_job_desc_msg(&desc);
    desc.job_id_str = hg_agent_name_tasks(job_id, tasks);
    desc.priority = held ? 0 : INFINITE;
    desc.alloc_sid = held ? ALLOC_SID_USER_HOLD : 0; /* its user may release it */
    call->rpcs++;
    rc = slurm_update_job2(&desc, &resp);
    free(desc.job_id_str);
    number = rc == SLURM_ERROR ? errno : rc;
    if (number == SLURM_SUCCESS)
        number = worst_of(resp);
    if (resp)
        slurm_free_job_array_resp(resp);
    if (number == SLURM_SUCCESS || is_past_holding(number) || number == ESLURM_INVALID_JOB_ID) {
        hg_agent_add(call, "gone", json_boolean(number == ESLURM_INVALID_JOB_ID));
        return 0;
    }
    return hg_agent_fail(call, number, "%s", held ? "hold" : "release");
}

/* ---- partitions and nodes ---- */

static json_t *minutes_to_s(uint32_t minutes)
{
    return minutes == INFINITE || minutes == NO_VAL ? json_null()
                                                    : json_integer((json_int_t)minutes * 60);
}

static json_t *encode_partition(const partition_info_t *p)
{
    json_t *o = json_object();

    json_object_set_new(o, "name", hg_agent_text(p->name));
    json_object_set_new(o, "default", json_boolean(p->flags & PART_FLAG_DEFAULT));
    json_object_set_new(o, "up", json_boolean(p->state_up == PARTITION_UP));
    json_object_set_new(o, "max_time_s", minutes_to_s(p->max_time));
    json_object_set_new(o, "default_time_s", minutes_to_s(p->default_time));
    json_object_set_new(o, "max_nodes",
                        p->max_nodes == INFINITE ? json_null() : json_integer(p->max_nodes));
    json_object_set_new(o, "nodes", hg_agent_text(p->nodes));
    json_object_set_new(o, "total_nodes", json_integer(p->total_nodes));
    json_object_set_new(o, "total_cpus", json_integer(p->total_cpus));
    json_object_set_new(o, "allow_accounts", hg_agent_text(p->allow_accounts));
    json_object_set_new(o, "allow_qos", hg_agent_text(p->allow_qos));
    return o;
}

static int op_partitions(struct hg_agent_call *call, json_t *list)
{
    partition_info_msg_t *msg = NULL;
    int rc;

    call->rpcs++;
    rc = slurm_load_partitions(0, &msg, SHOW_ALL);
    if (rc != SLURM_SUCCESS)
        return hg_agent_fail(call, rc, "cannot list partitions");
    for (uint32_t i = 0; i < msg->record_count; i++)
        json_array_append_new(list, encode_partition(&msg->partition_array[i]));
    slurm_free_partition_info_msg(msg);
    return 0;
}

static json_t *node_state(uint32_t state)
{
    static const char *const base[] = { "UNKNOWN", "DOWN",  "IDLE",  "ALLOCATED",
                                        "ERROR",   "MIXED", "FUTURE" };
    static const struct {
        uint32_t bit;
        const char *name;
    } flags[] = {
        { NODE_STATE_DRAIN, "DRAIN" },
        { NODE_STATE_COMPLETING, "COMPLETING" },
        { NODE_STATE_NO_RESPOND, "NOT_RESPONDING" },
        { NODE_STATE_FAIL, "FAIL" },
        { NODE_STATE_MAINT, "MAINT" },
        { NODE_STATE_RES, "RESERVED" },
        { NODE_STATE_INVALID_REG, "INVALID_REG" },
    };
    struct hg_buf text = HG_BUF_INIT;
    uint32_t b = state & NODE_STATE_BASE;
    json_t *value;

    hg_buf_puts(&text, b < sizeof base / sizeof *base ? base[b] : "UNKNOWN");
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (state & flags[i].bit)
            hg_buf_printf(&text, "+%s", flags[i].name);
    value = json_string(hg_buf_str(&text));
    hg_buf_done(&text);
    return value;
}

static json_t *encode_node(const node_info_t *n)
{
    json_t *o = json_object();

    json_object_set_new(o, "name", hg_agent_text(n->name));
    json_object_set_new(o, "state", node_state(n->node_state));
    json_object_set_new(o, "reason", hg_agent_text(n->reason));
    json_object_set_new(o, "cpus", json_integer(n->cpus));
    json_object_set_new(o, "mem_mib", json_integer((json_int_t)n->real_memory));
    json_object_set_new(o, "gres", hg_agent_text(n->gres));
    json_object_set_new(o, "features", hg_agent_text(n->features));
    json_object_set_new(o, "version", hg_agent_text(n->version));
    return o;
}

static int op_nodes(struct hg_agent_call *call, json_t *list)
{
    node_info_msg_t *msg = NULL;
    int rc;

    call->rpcs++;
    rc = slurm_load_node(0, &msg, SHOW_ALL);
    if (rc != SLURM_SUCCESS)
        return hg_agent_fail(call, rc, "cannot list nodes");
    for (uint32_t i = 0; i < msg->record_count; i++)
        if (msg->node_array[i].name)
            json_array_append_new(list, encode_node(&msg->node_array[i]));
    slurm_free_node_info_msg(msg);
    return 0;
}

static int begin(const char *argument, struct hg_err *err)
{
    int answers = hg_agent_capture();

    (void)argument;
    setenv("SLURM_BITSTR_LEN", "0", 1); /* index sets are never cut short */
    return answers < 0 ? hg_err_sys(err, "cannot redirect the output") : answers;
}

int main(int argc, char **argv)
{
    static const struct hg_agent agent = {
        .program = "hpcgrid-slurm",
        .library = "libslurm",
        .usage = "\n\nAnswers requests of hpcgrid, JSON lines on stdin, about the Slurm that "
                 "slurm.conf names.",
        .built_with = built_with,
        .begin = begin,
        .need_slurm = need_slurm,
        .collect = hg_agent_collect,
        .hello = op_hello,
        .limits = op_limits,
        .submit = op_submit,
        .probe = op_probe,
        .poll = hg_agent_poll,
        .history = hg_agent_history,
        .cancel = op_cancel,
        .hold = op_hold,
        .partitions = op_partitions,
        .nodes = op_nodes,
        .accounts = hg_agent_accounts,
    };

    return hg_agent_main(&agent, argc, argv);
}
