/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-slurm: libslurm behind a pipe. agents/README.md has the protocol. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agents/agent.h"
#include "agents/slurm_jobs.h"
#include "base/fs.h"
#include "base/json.h"

#define PROTOCOL 1
#define CREDENTIAL_LIFE_S 300 /* munge's, unless AuthInfo says otherwise */

struct op {
    const char *name;
    int (*run)(struct hg_agent_call *call);
    bool needs_slurm;
};

static int answers = -1; /* the real stdout */

/* ---- slurm.conf ---- */

/* The file that libslurm will read, or NULL: then its first call would hang for a minute looking
 * for a server of configurations. */
static char *find_conf(void)
{
    static const char *const places[] = { "/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf",
                                          "/etc/slurm-llnl/slurm.conf",
                                          "/usr/local/etc/slurm.conf" };
    const char *named = getenv("SLURM_CONF");
    Dl_info library;

    if (named)
        return access(named, R_OK) == 0 ? strdup(named) : NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (access(places[i], R_OK) == 0)
            return strdup(places[i]);
    /* PREFIX/lib/libslurm.so reads PREFIX/etc/slurm.conf. */
    if (dladdr((void *)slurm_init_job_desc_msg, &library) && library.dli_fname) {
        char *lib = hg_fs_dirname(library.dli_fname);
        char *conf = lib ? hg_fs_join(lib, "../etc/slurm.conf") : NULL;

        free(lib);
        if (conf && access(conf, R_OK) == 0)
            return conf;
        free(conf);
    }
    return NULL;
}

/* ---- munge ---- */

static char munge_socket[sizeof((struct sockaddr_un *)0)->sun_path]; /* "": not known */

/* Where slurm.conf puts munge's socket: "AuthInfo=...socket=PATH", else munge's own place if it is
 * there. Other kinds of authentication have none. */
static void find_munge(const char *conf)
{
    static const char usual[] = "/run/munge/munge.socket.2";
    FILE *f = conf ? fopen(conf, "re") : NULL;
    char line[4096], *at;

    while (f && fgets(line, sizeof line, f)) {
        if (strncasecmp(line, "AuthInfo", 8) == 0 && (at = strstr(line, "socket="))) {
            at += strlen("socket=");
            at[strcspn(at, ", \t\r\n")] = 0;
            snprintf(munge_socket, sizeof munge_socket, "%.*s", (int)sizeof munge_socket - 1, at);
        } else if (strncasecmp(line, "AuthType", 8) == 0 && !strstr(line, "munge")) {
            munge_socket[0] = 0;
            fclose(f);
            return;
        }
    }
    if (f)
        fclose(f);
    if (!munge_socket[0] && access(usual, F_OK) == 0)
        snprintf(munge_socket, sizeof munge_socket, "%s", usual);
}

static int check_munge(struct hg_agent_call *call)
{
    return munge_socket[0] ? hg_agent_check_munge(call, munge_socket) : 0;
}

static int need_slurm(struct hg_agent_call *call)
{
    static bool ready;
    const char *named = getenv("SLURM_CONF");
    char *conf;

    if (ready)
        return check_munge(call);
    conf = find_conf();
    if (!conf && !getenv("SLURM_CONF_SERVER")) {
        if (named)
            hg_err_set(&call->err, HG_E_ENV, "SLURM_CONF names %s: %s", named, strerror(errno));
        else
            hg_err_set(&call->err, HG_E_ENV, "no slurm.conf found: SLURM_CONF is not set");
        return hg_err_hint(&call->err, "export SLURM_CONF=PATH, or start a private Slurm: hpcgrid "
                                       "box up");
    }
    find_munge(conf);
    free(conf);
    if (check_munge(call) < 0)
        return -1;
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(22, 5, 0)
    slurm_init(NULL);
#endif
    ready = true;
    return 0;
}

/* ---- small operations ---- */

static void add(struct hg_agent_call *call, const char *name, json_t *value)
{
    json_object_set_new(call->ok, name, value);
}

static json_t *text_or_empty(const char *s)
{
    return hg_json_text(s ? s : "");
}

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
    add(call, "protocol", json_integer(PROTOCOL));
    add(call, "agent", json_string(HG_AGENT_PROGRAM " " HPCGRID_VERSION));
    add(call, "library", json_string(version));
    add(call, "conf", conf ? text_or_empty(conf) : json_null());
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

static long credential_life_s(const char *auth_info)
{
    const char *ttl = auth_info ? strstr(auth_info, "ttl=") : NULL;
    long life = ttl ? strtol(ttl + 4, NULL, 10) : 0;

    return life > 0 ? life : CREDENTIAL_LIFE_S;
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
    add(call, "max_array_size", json_integer(c->max_array_sz));
    add(call, "max_jobs", json_integer(c->max_job_cnt));
    add(call, "min_job_age_s", json_integer(c->min_job_age));
    add(call, "ambiguous_s", json_integer(credential_life_s(c->authinfo)));
    add(call, "message_timeout_s", json_integer(c->msg_timeout));
    add(call, "accounting", json_boolean(keeps_accounting(c)));
    add(call, "version", text_or_empty(c->version));
    add(call, "cluster", text_or_empty(c->cluster_name));
    slurm_free_ctl_conf(c);
    return 0;
}

static int op_history(struct hg_agent_call *call)
{
    static int known = -1; /* a site does not change this under a running agent */
    slurm_conf_t *c = NULL;

    if (!json_is_array(json_object_get(call->request->root, "keys")) ||
        !json_is_number(json_object_get(call->request->root, "since_s")))
        return hg_err_set(&call->err, HG_E_BUG, "history needs \"keys\" and \"since_s\"");
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

/* A controller that has just started knows nothing of a node until that has registered: what it refuses
 * for its lack of nodes, it may take in a moment. */
static void excuse_unregistered(struct hg_agent_call *call)
{
    node_info_msg_t *msg = NULL;
    uint32_t n = 0;

    if (call->number != ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE)
        return;
    call->rpcs++;
    if (slurm_load_node(0, &msg, SHOW_ALL) != SLURM_SUCCESS)
        return;
    for (uint32_t i = 0; i < msg->record_count; i++)
        n += msg->node_array[i].name &&
             (msg->node_array[i].node_state & NODE_STATE_BASE) == NODE_STATE_UNKNOWN;
    if (n) {
        call->err = (struct hg_err)HG_ERR_INIT;
        hg_err_set(&call->err, HG_E_AGAIN,
                   "nodes that have not registered since slurmctld started: %u of %u", n,
                   msg->record_count);
    }
    slurm_free_node_info_msg(msg);
}

/* What a controller's refusal is most likely about; its own words do not say. */
static void name_request(const job_desc_msg_t *d, char out[static 256])
{
    const struct {
        const char *what, *value;
    } parts[] = {
        { "partition", d->partition },
        { "account", d->account },
        { "qos", d->qos },
        { "gres", d->tres_per_node },
        { "constraint", d->features },
        { "licenses", d->licenses },
        { "reservation", d->reservation },
    };
    int n = 0;

    out[0] = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].value && n < 255)
            n += snprintf(out + n, (size_t)(256 - n), "%s%s %s", n ? ", " : " (", parts[i].what,
                          parts[i].value);
    if (n && n < 255)
        snprintf(out + n, (size_t)(256 - n), ")");
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
    struct hg_agent_job *job = hg_agent_job_create(call, true);
    submit_response_msg_t *answer = NULL;
    char request[256];
    int rc;

    if (!job)
        return -1;
    name_request(hg_agent_job_desc(job), request);
    call->rpcs++;
    call->submitting = true;
    rc = slurm_submit_batch_job(hg_agent_job_desc(job), &answer);
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
        add(call, "job_id", json_integer(answered_id(answer)));
        add(call, "site", text_or_empty(hg_buf_str(&call->site)));
    }
    if (answer)
        slurm_free_submit_response_response_msg(answer);
    call->submitting = false;
    hg_agent_job_free(job);
    return rc == SLURM_SUCCESS ? 0 : -1;
}

/* libslurm exports this but older headers lack it. */
extern void slurm_free_will_run_response_msg(will_run_response_msg_t *msg);

static int op_probe(struct hg_agent_call *call)
{
    struct hg_agent_job *job = hg_agent_job_create(call, false);
    will_run_response_msg_t *answer = NULL;
    char request[256];
    int rc;

    if (!job)
        return -1;
    name_request(hg_agent_job_desc(job), request);
    call->rpcs++;
    rc = slurm_job_will_run2(hg_agent_job_desc(job), &answer);
    if (rc != SLURM_SUCCESS) {
        hg_agent_fail(call, rc, "probe%s", request);
        excuse_unregistered(call);
    } else {
        add(call, "start_s", json_integer(answer ? answer->start_time : 0));
        add(call, "nodes", text_or_empty(answer ? answer->node_list : NULL));
    }
    if (answer)
        slurm_free_will_run_response_msg(answer);
    hg_agent_job_free(job);
    return rc == SLURM_SUCCESS ? 0 : -1;
}

/* "17" or "17_[0-9,12]" from "job_id" and "tasks"; yours to free. */
static int name_tasks(struct hg_agent_call *call, const char *op, char **id)
{
    const json_t *job_id = json_object_get(call->request->root, "job_id");
    const json_t *tasks = json_object_get(call->request->root, "tasks");
    const char *set = json_string_value(tasks);

    if (!json_is_integer(job_id) || json_integer_value(job_id) <= 0)
        return hg_err_set(&call->err, HG_E_BUG, "%s needs a positive \"job_id\"", op);
    if (tasks && !json_is_null(tasks) &&
        (!set || !*set || strspn(set, "0123456789,-") != strlen(set)))
        return hg_err_set(&call->err, HG_E_BUG, "%s: \"tasks\" is no index set", op);
    *id = set ? hg_str_printf("%lld_[%s]", (long long)json_integer_value(job_id), set)
              : hg_str_printf("%lld", (long long)json_integer_value(job_id));
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
        add(call, "gone", json_boolean(rc != SLURM_SUCCESS && number == ESLURM_INVALID_JOB_ID));
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
        add(call, "gone", json_boolean(number == ESLURM_INVALID_JOB_ID));
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

    json_object_set_new(o, "name", text_or_empty(p->name));
    json_object_set_new(o, "default", json_boolean(p->flags & PART_FLAG_DEFAULT));
    json_object_set_new(o, "up", json_boolean(p->state_up == PARTITION_UP));
    json_object_set_new(o, "max_time_s", minutes_to_s(p->max_time));
    json_object_set_new(o, "default_time_s", minutes_to_s(p->default_time));
    json_object_set_new(o, "max_nodes",
                        p->max_nodes == INFINITE ? json_null() : json_integer(p->max_nodes));
    json_object_set_new(o, "nodes", text_or_empty(p->nodes));
    json_object_set_new(o, "total_nodes", json_integer(p->total_nodes));
    json_object_set_new(o, "total_cpus", json_integer(p->total_cpus));
    json_object_set_new(o, "allow_accounts", text_or_empty(p->allow_accounts));
    json_object_set_new(o, "allow_qos", text_or_empty(p->allow_qos));
    return o;
}

static int op_partitions(struct hg_agent_call *call)
{
    partition_info_msg_t *msg = NULL;
    json_t *list = json_array();
    int rc;

    add(call, "partitions", list);
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

    json_object_set_new(o, "name", text_or_empty(n->name));
    json_object_set_new(o, "state", node_state(n->node_state));
    json_object_set_new(o, "reason", text_or_empty(n->reason));
    json_object_set_new(o, "cpus", json_integer(n->cpus));
    json_object_set_new(o, "mem_mib", json_integer((json_int_t)n->real_memory));
    json_object_set_new(o, "gres", text_or_empty(n->gres));
    json_object_set_new(o, "features", text_or_empty(n->features));
    json_object_set_new(o, "version", text_or_empty(n->version));
    return o;
}

static int op_nodes(struct hg_agent_call *call)
{
    node_info_msg_t *msg = NULL;
    json_t *list = json_array();
    int rc;

    add(call, "nodes", list);
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

static int op_quit(struct hg_agent_call *call)
{
    (void)call;
    return 0;
}

static const struct op ops[] = {
    { "hello", op_hello, false },    { "limits", op_limits, true },
    { "submit", op_submit, true },   { "probe", op_probe, true },
    { "poll", hg_agent_poll, true }, { "history", op_history, true },
    { "cancel", op_cancel, true },   { "hold", op_hold, true },
    { "nodes", op_nodes, true },     { "partitions", op_partitions, true },
    { "quit", op_quit, false },
};
#define N_OPS (sizeof ops / sizeof *ops)

/* ---- the pipe ---- */

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
    json_t *o = json_object();

    json_object_set_new(o, "code", json_string(code_name(call->err.code)));
    json_object_set_new(o, "errno", json_integer(call->number));
    json_object_set_new(o, "message", text_or_empty(call->err.text));
    if (call->err.hint[0])
        json_object_set_new(o, "hint", text_or_empty(call->err.hint));
    json_object_set_new(o, "site", text_or_empty(hg_buf_str(&call->site)));
    if (call->unfit)
        json_object_set_new(o, "unfit", json_true());
    return o;
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
    hg_json_dump(o, HG_JSON_COMPACT, &line);
    hg_buf_puts(&line, "\n");
    rc = line.failed ? -1 : hg_fs_write_all(answers, line.data, line.len);
    hg_buf_done(&line);
    json_decref(o);
    return rc;
}

/* libslurm ends the program where slurm.conf is broken: say so before it is over. */
static struct hg_agent_call *current;

static void last_words(void)
{
    struct hg_agent_call *call = current;

    if (!call)
        return;
    current = NULL;
    hg_agent_collect(&call->site);
    if (call->submitting)
        hg_err_set(&call->err, HG_E_AMBIGUOUS, "libslurm ended the program during a submission");
    else
        hg_err_set(&call->err, HG_E_ENV, "libslurm cannot work: %.300s", hg_buf_str(&call->site));
    call->unfit = !call->submitting;
    answer(call);
}

static int dispatch(struct hg_agent_call *call)
{
    const char *name = json_string_value(json_object_get(call->request->root, "op"));

    if (!name)
        return hg_err_set(&call->err, HG_E_BUG, "the request has no \"op\"");
    for (size_t i = 0; i < N_OPS; i++)
        if (strcmp(ops[i].name, name) == 0) {
            if (ops[i].needs_slurm && need_slurm(call) < 0)
                return -1;
            return ops[i].run(call);
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
    hg_agent_collect(&call.site);
    if (answer(&call) < 0)
        more = false;
    json_decref(call.ok);
    hg_buf_done(&call.site);
    hg_json_doc_done(&doc);
    return more;
}

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
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;

    if (argc > 1)
        return usage(argv[1]);
    if ((answers = hg_agent_capture()) < 0) {
        fputs(HG_AGENT_PROGRAM ": cannot redirect its output\n", stderr);
        return 4;
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN);            /* Ctrl-C is for hpcgrid, which closes the pipe */
    setenv("SLURM_BITSTR_LEN", "0", 1); /* index sets are never cut short */
    atexit(last_words);
    while ((len = getline(&line, &cap, stdin)) > 0)
        if (!serve(line, (size_t)len))
            break;
    free(line);
    return 0;
}
