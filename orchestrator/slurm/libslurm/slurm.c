/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-slurm: libslurm behind a pipe. slurm/README.md has the protocol. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slurm/libslurm/slurm.h"
#include "slurm/libslurm/slurm_jobs.h"
#include "base/fs.h"
#include "base/json.h"

static char *prefix_of_library(void)
{
    Dl_info library;
    char *lib, *prefix;

    if (!dladdr((void *)slurm_init_job_desc_msg, &library) || !library.dli_fname)
        return NULL;
    lib = hg_fs_dirname(library.dli_fname); /* PREFIX/lib/libslurm.so reads PREFIX/etc/slurm.conf */
    prefix = lib ? hg_fs_join(lib, "..") : NULL;
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

int hg_agent_fail(struct hg_agent_call *call, int rc, const char *fmt, ...)
{
    /* Up to 24.05 functions return -1 and set errno, later ones may return the number. */
    int number = rc == SLURM_ERROR || rc == SLURM_SUCCESS ? errno : rc;
    char what[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    hg_agent_collect(&call->site);
    return hg_agent_fail_number(call, number, slurm_strerror(number), "%s", what);
}

/* ---- small operations ---- */

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
#define slurm_free_ctl_conf slurm_free_conf
#endif

/* The Slurm that this program was built with: its library goes with no other. */
static void format_version(char out[static 16])
{
    snprintf(out, 16, "%d.%02d.%d", SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
             SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER), SLURM_VERSION_NUMBER & 0xff);
}

static int op_hello(struct hg_agent_call *call)
{
    char *conf = find_conf();
    char version[16];

    format_version(version);
    hg_agent_add(call, "protocol", json_integer(HG_AGENT_PROTOCOL));
    hg_agent_add(call, "agent", json_string(HG_AGENT_PROGRAM " " HPCGRID_VERSION));
    hg_agent_add(call, "library", json_string(version));
    hg_agent_add(call, "conf", conf ? hg_agent_text(conf) : json_null());
    free(conf);
    return 0;
}

static int load_conf(struct hg_agent_call *call, slurm_conf_t **conf)
{
    int rc;

    call->rpcs++;
    rc = slurm_load_ctl_conf(0, conf);
    return rc == SLURM_SUCCESS ? 0 : hg_agent_fail(call, rc, "cannot ask for the configuration");
}

static bool keeps_accounting(const slurm_conf_t *c)
{
    return c->accounting_storage_type && strstr(c->accounting_storage_type, "slurmdbd");
}

static int op_limits(struct hg_agent_call *call)
{
    slurm_conf_t *c = NULL;

    if (load_conf(call, &c) < 0)
        return -1;
    hg_agent_add(call, "max_array_size", json_integer(c->max_array_sz));
    hg_agent_add(call, "max_jobs", json_integer(c->max_job_cnt));
    hg_agent_add(call, "min_job_age_s", json_integer(c->min_job_age));
    hg_agent_add(call, "ambiguous_s", json_integer(hg_agent_credential_life_s(c->authinfo)));
    hg_agent_add(call, "message_timeout_s", json_integer(c->msg_timeout));
    hg_agent_add(call, "accounting", json_boolean(keeps_accounting(c)));
    hg_agent_add(call, "version", hg_agent_text(c->version));
    hg_agent_add(call, "cluster", hg_agent_text(c->cluster_name));
    slurm_free_ctl_conf(c);
    return 0;
}

static int op_history(struct hg_agent_call *call)
{
    static int known = -1; /* a site does not change this under a running agent */
    slurm_conf_t *c = NULL;

    if (hg_agent_check_history(call) < 0)
        return -1;
    if (known < 0) {
        if (load_conf(call, &c) < 0)
            return -1;
        known = keeps_accounting(c);
        slurm_free_ctl_conf(c);
    }
    if (!known)
        return hg_err_set(&call->err, HG_E_ENV, "this cluster keeps no accounting");
    return hg_agent_history(call);
}

/* ---- submit, probe, cancel, hold ---- */

static void excuse_unregistered(struct hg_agent_call *call)
{
    node_info_msg_t *msg = NULL;
    uint32_t n = 0;

    if (call->number != HG_AGENT_NO_NODES)
        return;
    call->rpcs++;
    if (slurm_load_node(0, &msg, SHOW_ALL) != SLURM_SUCCESS)
        return;
    for (uint32_t i = 0; i < msg->record_count; i++)
        n += msg->node_array[i].name &&
             (msg->node_array[i].node_state & NODE_STATE_BASE) == NODE_STATE_UNKNOWN;
    hg_agent_excuse(call, n, msg->record_count);
    slurm_free_node_info_msg(msg);
}

static uint32_t answered_id(const submit_response_msg_t *answer)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
    return answer->step_id.job_id;
#else
    return answer->job_id;
#endif
}

static int op_submit(struct hg_agent_call *call)
{
    struct hg_agent_desc *job = hg_agent_desc_create(call, true);
    submit_response_msg_t *answer = NULL;
    char request[256];
    int rc;

    if (!job)
        return -1;
    hg_agent_desc_name_request(job, request);
    call->rpcs++;
    call->submitting = true;
    rc = slurm_submit_batch_job(hg_agent_desc_msg(job), &answer);
    if (rc != SLURM_SUCCESS) {
        hg_agent_fail(call, rc, "submit%s", request);
        excuse_unregistered(call);
    } else if (!answer || !answered_id(answer)) {
        rc = hg_err_set(&call->err, HG_E_AMBIGUOUS, "slurmctld took the job but named no id");
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
    call->submitting = false;
    hg_agent_desc_free(job);
    return rc == SLURM_SUCCESS ? 0 : -1;
}

/* libslurm exports this but older headers lack it. */
extern void slurm_free_will_run_response_msg(will_run_response_msg_t *msg);

static int op_probe(struct hg_agent_call *call)
{
    struct hg_agent_desc *job = hg_agent_desc_create(call, false);
    will_run_response_msg_t *answer = NULL;
    char request[256];
    int rc;

    if (!job)
        return -1;
    hg_agent_desc_name_request(job, request);
    call->rpcs++;
    rc = slurm_job_will_run2(hg_agent_desc_msg(job), &answer);
    if (rc != SLURM_SUCCESS) {
        hg_agent_fail(call, rc, "probe%s", request);
        excuse_unregistered(call);
    } else {
        hg_agent_add(call, "start_s", json_integer(answer ? answer->start_time : 0));
        hg_agent_add(call, "nodes", hg_agent_text(answer ? answer->node_list : NULL));
    }
    if (answer)
        slurm_free_will_run_response_msg(answer);
    hg_agent_desc_free(job);
    return rc == SLURM_SUCCESS ? 0 : -1;
}

/* "17" or "17_[0-9,12]" from "job_id" and "tasks"; yours to free. */
static int name_tasks(struct hg_agent_call *call, const char *op, char **id)
{
    long long job_id;
    const char *set;

    if (hg_agent_which(call, op, &job_id, &set) < 0)
        return -1;
    *id = set ? hg_str_printf("%lld_[%s]", job_id, set) : hg_str_printf("%lld", job_id);
    return *id ? 0 : hg_err_oom(&call->err);
}

static int op_cancel(struct hg_agent_call *call)
{
    char *id = NULL;
    int rc, number;

    if (name_tasks(call, "cancel", &id) < 0)
        return -1;
    call->rpcs++;
    rc = slurm_kill_job2(id, SIGKILL, 0, NULL);
    free(id);
    number = rc == SLURM_ERROR ? errno : rc;
    if (rc == SLURM_SUCCESS || number == ESLURM_ALREADY_DONE || number == ESLURM_INVALID_JOB_ID) {
        hg_agent_add(call, "gone",
                     json_boolean(rc != SLURM_SUCCESS && number == ESLURM_INVALID_JOB_ID));
        return 0;
    }
    return hg_agent_fail(call, rc, "cancel");
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

static int op_hold(struct hg_agent_call *call)
{
    const json_t *held = json_object_get(call->request->root, "held");
    const char *what = json_is_true(held) ? "hold" : "release";
    job_array_resp_msg_t *resp = NULL;
    job_desc_msg_t desc;
    int rc, number;

    slurm_init_job_desc_msg(&desc);
    if (!json_is_boolean(held))
        return hg_err_set(&call->err, HG_E_BUG, "hold needs \"held\", true or false");
    if (name_tasks(call, "hold", &desc.job_id_str) < 0)
        return -1;
    desc.priority = json_is_true(held) ? 0 : INFINITE;
    desc.alloc_sid = json_is_true(held) ? ALLOC_SID_USER_HOLD : 0; /* its user may let it go */
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
    return hg_agent_fail(call, number, "%s", what);
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

static int op_partitions(struct hg_agent_call *call)
{
    partition_info_msg_t *msg = NULL;
    json_t *list = json_array();
    int rc;

    hg_agent_add(call, "partitions", list);
    call->rpcs++;
    rc = slurm_load_partitions(0, &msg, SHOW_ALL);
    if (rc != SLURM_SUCCESS)
        return hg_agent_fail(call, rc, "cannot ask for partitions");
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

static int op_nodes(struct hg_agent_call *call)
{
    node_info_msg_t *msg = NULL;
    json_t *list = json_array();
    int rc;

    hg_agent_add(call, "nodes", list);
    call->rpcs++;
    rc = slurm_load_node(0, &msg, SHOW_ALL);
    if (rc != SLURM_SUCCESS)
        return hg_agent_fail(call, rc, "cannot ask for nodes");
    for (uint32_t i = 0; i < msg->record_count; i++)
        if (msg->node_array[i].name)
            json_array_append_new(list, encode_node(&msg->node_array[i]));
    slurm_free_node_info_msg(msg);
    return 0;
}

static const struct hg_agent_op ops[] = {
    { "hello", op_hello, false },
    { "limits", op_limits, true },
    { "submit", op_submit, true },
    { "probe", op_probe, true },
    { "poll", hg_agent_poll, true },
    { "history", op_history, true },
    { "cancel", op_cancel, true },
    { "hold", op_hold, true },
    { "nodes", op_nodes, true },
    { "partitions", op_partitions, true },
    { 0 },
};

static int usage(const char *word)
{
    char version[16];

    if (strcmp(word, "--version") == 0) {
        format_version(version);
        printf(HG_AGENT_PROGRAM " " HPCGRID_VERSION " (libslurm %s)\n", version);
        return 0;
    }
    fputs("usage: " HG_AGENT_PROGRAM
          "\n\nAnswers requests of hpcgrid, JSON lines on stdin, about the Slurm "
          "that slurm.conf names.\n",
          strcmp(word, "--help") == 0 ? stdout : stderr);
    return strcmp(word, "--help") == 0 ? 0 : 2;
}

int main(int argc, char **argv)
{
    const struct hg_agent agent = {
        .library = "libslurm", .ops = ops, .need_slurm = need_slurm, .collect = hg_agent_collect
    };
    int answers;

    if (argc > 1)
        return usage(argv[1]);
    if ((answers = hg_agent_capture()) < 0) {
        fputs(HG_AGENT_PROGRAM ": cannot redirect its output\n", stderr);
        return 4;
    }
    setenv("SLURM_BITSTR_LEN", "0", 1); /* index sets are never cut short */
    return hg_agent_serve(&agent, answers);
}
