/* SPDX-License-Identifier: Apache-2.0 */
/* What squeue and sacct know about jobs: poll and history. */
#include "slurm/cli/jobs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/map.h"
#include "base/ranges.h"
#include "base/vec.h"
#include "slurm/cli/run.h"
#include "slurm/common/records.h"

#define FIELDS_MAX 16
#define TASK_MAX 4000001u /* no Slurm takes more */

/* ---- rows ---- */

/* Both programs print a table in which each value is followed by a delimiter and each row by a line end. A
 * value may contain line ends, so rows are told apart by their number of values. */
struct rows {
    char *next;
    const char *delimiter;
    size_t n; /* values of a row */
};

/* A random delimiter, new for each call: no value can contain it. */
static void make_delimiter(char out[static 20])
{
    unsigned long long number = 0;

    if (getrandom(&number, sizeof number, 0) != sizeof number)
        number = (unsigned long long)time(NULL);
    snprintf(out, 20, "@%016llx@", number);
}

/* 1: values filled (they point into the text), 0: the end, -1: not a row. */
static int next_row(struct rows *r, char *values[FIELDS_MAX])
{
    if (!*r->next)
        return 0;
    for (size_t i = 0; i < r->n; i++) {
        char *end = strstr(r->next, r->delimiter);

        if (!end)
            return -1;
        *end = '\0';
        values[i] = r->next;
        r->next = end + strlen(r->delimiter);
    }
    if (*r->next == '\n')
        r->next++;
    return 1;
}

/* Call each for every row of what a command printed. */
static int read_rows(struct hg_agent_call *call, const char *program, struct hg_buf *text,
                     const char *delimiter, size_t n,
                     int (*each)(struct hg_agent_call *call, void *context, char *v[FIELDS_MAX]),
                     void *context)
{
    struct rows rows = { .next = text->data, .delimiter = delimiter, .n = n };
    char *values[FIELDS_MAX];
    int got = 0, rc = 0;

    while (rc == 0 && text->len && (got = next_row(&rows, values)) == 1)
        rc = each(call, context, values);
    if (rc == 0 && got < 0) /* an incomplete table says nothing about missing jobs */
        rc = hg_err_set(&call->err, HG_E_AGAIN, "cannot read what %s prints: \"%.80s\"", program,
                        rows.next);
    return rc;
}

static uint32_t number(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

/* A job's number, up to this end; 0: it is not one. */
static uint32_t job_number(const char *text, const char *ends)
{
    char *end;
    unsigned long n = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;

    return n && n < UINT32_MAX && (!*end || strchr(ends, *end)) ? (uint32_t)n : 0;
}

/* What is printed is damaged, say by a program in between: the next time may be better. */
static int strange(struct hg_agent_call *call, const char *program, const char *what,
                   const char *text)
{
    return hg_err_set(&call->err, HG_E_AGAIN, "cannot read what %s prints: %s \"%.80s\"", program,
                      what, text);
}

/* Seconds since 1970; 0 for N/A, Unknown, None. */
static time_t moment(const char *text)
{
    return (time_t)strtoll(text, NULL, 10);
}

/* "3:0" and "0:9", or the number itself as squeue 22.05 prints it, as a wait status. */
static int wait_status(const char *text)
{
    int code = 0, signal_number = 0;

    if (sscanf(text, "%6d:%6d", &code, &signal_number) == 2)
        return (code & 0xff) << 8 | (signal_number & 0x7f);
    return code & 0xffff;
}

/* Slurm's commands print one word for a state with its flags. A word that is not a base state is a transition
 * between two; *passing is true then. */
static const char *base_state(const char *text, bool *passing)
{
    size_t n = strcspn(text, " "); /* "CANCELLED by 1000" */
    const char *base = hg_agent_base_state(text, n);

    *passing = !base && strcmp(text, "REQUEUED") != 0;
    if (!*passing)
        return base ? base : "REQUEUED";
    return hg_agent_is_waiting(text) ? "PENDING" : "RUNNING";
}

/* ---- poll ---- */

enum {
    Q_JOB,
    Q_ARRAY,
    Q_TASKS,
    Q_STATE,
    Q_EXIT,
    Q_RESTARTS,
    Q_SUBMIT,
    Q_START,
    Q_END,
    Q_REASON,
    Q_NODES,
    Q_COMMENT,
    Q_NAME,
    Q_OUT,
    Q_N
};

static const char *const queue_fields[Q_N] = {
    "JobID",     "ArrayJobID", "ArrayTaskID", "State",    "exit_code", "RestartCnt", "SubmitTime",
    "StartTime", "EndTime",    "Reason",      "NodeList", "Comment",   "Name",       "StdOut",
};

/* "Resources", and for a job that is completing "TimeLimit,COMPLETING". */
static const char *reason_of(const char *reason, const char *state, bool passing,
                             struct hg_buf *both)
{
    hg_buf_clear(both);
    if (strcmp(reason, "None") != 0)
        hg_buf_puts(both, reason);
    if (passing && (strcmp(state, "COMPLETING") == 0 || !both->len))
        hg_buf_printf(both, "%s%s", both->len ? "," : "", state);
    return hg_buf_str(both);
}

/* Tasks that have not started and are alike: one record. */
struct group {
    json_t *record;
    struct {
        uint32_t *items;
        size_t n, cap;
    } tasks;
};

struct groups {
    struct group *items;
    size_t n, cap;
    struct hg_map by_signature; /* array, state and reason in words: which item */
};

struct seen {
    uint32_t array, task;
};

/* What one poll has read. */
struct queue {
    json_t *jobs;
    struct groups groups;
    struct {
        struct seen *items; /* every task, whatever its state */
        size_t n, cap;
    } seen;
};

static void queue_done(struct queue *q)
{
    for (size_t i = 0; i < q->groups.n; i++) {
        json_decref(q->groups.items[i].record);
        HG_VEC_DONE(&q->groups.items[i].tasks);
    }
    HG_VEC_DONE(&q->groups);
    hg_map_done(&q->groups.by_signature);
    HG_VEC_DONE(&q->seen);
}

/* The group of a row, made if it is the first. */
static struct group *find_group(struct groups *groups, char *v[FIELDS_MAX],
                                const struct hg_agent_record *r)
{
    struct hg_buf signature = HG_BUF_INIT;
    size_t at;

    hg_buf_printf(&signature, "%s %s %s %s %s", v[Q_ARRAY], v[Q_RESTARTS], v[Q_SUBMIT], v[Q_STATE],
                  v[Q_REASON]);
    at = hg_map_put(&groups->by_signature, signature.data, signature.len, groups->n);
    hg_buf_done(&signature);
    if (at == groups->n)
        *HG_VEC_PUSH(groups) = (struct group){ .record = hg_agent_record_encode(r) };
    return &groups->items[at];
}

static int compare_tasks(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static void sort_group(struct group *g)
{
    if (g->tasks.n)
        qsort(g->tasks.items, g->tasks.n, sizeof *g->tasks.items, compare_tasks);
}

static void append_groups(struct queue *q)
{
    for (size_t i = 0; i < q->groups.n; i++) {
        struct group *g = &q->groups.items[i];
        struct hg_ranges set = HG_RANGES_INIT;
        struct hg_buf text = HG_BUF_INIT;

        sort_group(g);
        for (size_t k = 0; k < g->tasks.n; k++)
            hg_ranges_add(&set, g->tasks.items[k]);
        hg_ranges_format(&set, &text);
        json_object_set_new(g->record, "tasks", json_string(hg_buf_str(&text)));
        json_array_append(q->jobs, g->record);
        hg_ranges_done(&set);
        hg_buf_done(&text);
    }
}

static int add_record(struct hg_agent_call *call, struct queue *q, char *v[FIELDS_MAX],
                      struct hg_agent_record *r, const char *tasks)
{
    struct hg_ranges set = HG_RANGES_INIT;
    struct group *group = NULL;

    if (hg_ranges_parse(tasks, TASK_MAX, &set, NULL) < 0)
        return strange(call, "squeue", "the index set", tasks);
    r->tasks = tasks;
    if (!set.n || *v[Q_NODES]) /* it has started */
        json_array_append_new(q->jobs, hg_agent_record_encode(r));
    else
        group = find_group(&q->groups, v, r);
    for (size_t i = 0; i < set.n; i++)
        for (uint32_t task = set.items[i].first; task <= set.items[i].last; task++) {
            *HG_VEC_PUSH(&q->seen) = (struct seen){ r->job_id, task };
            if (group)
                *HG_VEC_PUSH(&group->tasks) = task;
        }
    hg_ranges_done(&set);
    return 0;
}

static int add_job(struct hg_agent_call *call, void *context, char *v[FIELDS_MAX])
{
    struct hg_buf tasks = HG_BUF_INIT, reason = HG_BUF_INIT;
    char key[HG_AGENT_KEY_DIGITS + 1];
    const char *state;
    bool passing, array = strcmp(v[Q_TASKS], "N/A") != 0;
    struct hg_agent_record r;
    int rc;

    if (!hg_agent_find_key(v[Q_COMMENT], key) && !hg_agent_find_key(v[Q_NAME], key) &&
        !hg_agent_find_key(v[Q_OUT], key))
        return 0;
    state = base_state(v[Q_STATE], &passing);
    r = (struct hg_agent_record){
        .key = key,
        .state = state,
        .reason = reason_of(v[Q_REASON], v[Q_STATE], passing, &reason),
        .nodes = v[Q_NODES],
        .job_id = job_number(array ? v[Q_ARRAY] : v[Q_JOB], ""),
        .restarts = number(v[Q_RESTARTS]),
        .exit_status = wait_status(v[Q_EXIT]),
        .submit = moment(v[Q_SUBMIT]),
        .start = moment(v[Q_START]),
        .end = moment(v[Q_END]),
    };
    if (!r.job_id)
        rc = strange(call, "squeue", "the job", array ? v[Q_ARRAY] : v[Q_JOB]);
    else if (array && !hg_agent_plain_set(v[Q_TASKS], &tasks))
        rc = strange(call, "squeue", "the index set", v[Q_TASKS]);
    else
        rc = add_record(call, context, v, &r, hg_buf_str(&tasks));
    hg_buf_done(&tasks);
    hg_buf_done(&reason);
    return rc;
}

/* squeue, with these fields. mode: "-r" or "-a" (again). */
static int ask_queue(struct hg_agent_call *call, const char *mode, const char *const *fields,
                     size_t n, const char *delimiter, struct hg_agent_said *said)
{
    struct hg_buf format = HG_BUF_INIT;
    char uid[16];
    int rc;

    snprintf(uid, sizeof uid, "%u", getuid());
    for (size_t i = 0; i < n; i++) /* width 0: as it is */
        hg_buf_printf(&format, "%s%s:0%s", i ? "," : "", fields[i], delimiter);
    rc = hg_agent_run_well(call,
                           (const char *const[]){ "squeue", "-h", "-a", mode, "--local", "-u", uid,
                                                  "-t", "all", "-O", hg_buf_str(&format), NULL },
                           said, "cannot list jobs");
    hg_buf_done(&format);
    return rc;
}

/* ---- what squeue -r leaves out ---- */

/* Without -r squeue merges the waiting tasks of an array, whatever they wait for. With -r it loses the
 * last one if a set has a step, "0-98:2" (22.05 to 24.11 at least). So sets that may have lost one
 * are looked up without -r, too. */

static bool may_lack_one(struct group *g)
{
    sort_group(g);
    return g->tasks.n < 2 || g->tasks.items[g->tasks.n - 1] - g->tasks.items[0] != g->tasks.n - 1;
}

static int compare_seen(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;

    if (x->array != y->array)
        return x->array < y->array ? -1 : 1;
    return compare_tasks(&x->task, &y->task);
}

/* Would this task be the next of the group's, all at one distance? */
static bool continues(const struct group *g, uint32_t task)
{
    const uint32_t *t = g->tasks.items;
    size_t n = g->tasks.n;

    for (size_t i = 2; i < n; i++)
        if (t[i] - t[i - 1] != t[1] - t[0])
            return false;
    return n == 1 ? task > t[0] : task > t[n - 1] && task - t[n - 1] == t[1] - t[0];
}

/* The group that a task belongs to which squeue -r has left out: one of its array in its state, best one
 * that it continues. NULL: there is none. */
static struct group *group_of_lost(struct queue *q, const struct seen *lost, const char *state)
{
    struct group *found = NULL;

    for (size_t i = 0; i < q->groups.n; i++) {
        struct group *g = &q->groups.items[i];

        if (json_integer_value(json_object_get(g->record, "job_id")) != lost->array ||
            strcmp(json_string_value(json_object_get(g->record, "state")), state) != 0)
            continue;
        sort_group(g);
        if (continues(g, lost->task))
            return g;
        if (!found || g->tasks.n > found->tasks.n)
            found = g;
    }
    return found;
}

enum { L_ARRAY, L_TASKS, L_STATE, L_N };

static int add_lost(struct hg_agent_call *call, void *context, char *v[FIELDS_MAX])
{
    struct queue *q = context;
    struct hg_buf text = HG_BUF_INIT;
    struct hg_ranges set = HG_RANGES_INIT;
    bool passing;
    const char *state = base_state(v[L_STATE], &passing);

    (void)call;
    if (strcmp(v[L_TASKS], "N/A") != 0 && hg_agent_plain_set(v[L_TASKS], &text))
        hg_ranges_parse(hg_buf_str(&text), TASK_MAX, &set, NULL);
    for (size_t i = 0; i < set.n; i++)
        for (uint32_t task = set.items[i].first; task <= set.items[i].last; task++) {
            struct seen key = { number(v[L_ARRAY]), task };
            struct group *g;

            if (bsearch(&key, q->seen.items, q->seen.n, sizeof key, compare_seen))
                continue;
            g = group_of_lost(q, &key, state);
            if (g)
                *HG_VEC_PUSH(&g->tasks) = task;
        }
    hg_buf_done(&text);
    hg_ranges_done(&set);
    return 0;
}

static int find_lost(struct hg_agent_call *call, struct queue *q, const char *delimiter)
{
    static const char *const fields[L_N] = { "ArrayJobID", "ArrayTaskID", "State" };
    struct hg_agent_said said;
    int rc = ask_queue(call, "-a", fields, L_N, delimiter, &said);

    qsort(q->seen.items, q->seen.n, sizeof *q->seen.items, compare_seen);
    if (rc == 0)
        rc = read_rows(call, "squeue", &said.out, delimiter, L_N, add_lost, q);
    hg_agent_said_done(&said);
    return rc;
}

int hg_agent_poll(struct hg_agent_call *call, json_t *jobs)
{
    struct queue q = { .jobs = jobs };
    struct hg_agent_said said;
    char delimiter[20];
    int rc;

    make_delimiter(delimiter);
    rc = ask_queue(call, "-r", queue_fields, Q_N, delimiter, &said);
    if (rc == 0)
        rc = read_rows(call, "squeue", &said.out, delimiter, Q_N, add_job, &q);
    hg_agent_said_done(&said);
    for (size_t i = 0; rc == 0 && i < q.groups.n; i++)
        if (may_lack_one(&q.groups.items[i])) {
            rc = find_lost(call, &q, delimiter);
            break;
        }
    if (rc == 0)
        append_groups(&q);
    queue_done(&q);
    return rc;
}

/* ---- history ---- */

enum { H_RAW, H_JOB, H_NAME, H_STATE, H_EXIT, H_SUBMIT, H_START, H_END, H_NODES, H_N };
#define HISTORY_FIELDS "JobIDRaw,JobID,JobName,State,ExitCode,Submit,Start,End,NodeList"

struct past {
    const json_t *keys;
    json_t *latest;
};

static int add_past(struct hg_agent_call *call, void *context, char *v[FIELDS_MAX])
{
    const struct past *past = context;
    struct hg_buf tasks = HG_BUF_INIT;
    const char *set = strchr(v[H_JOB], '_');
    char key[HG_AGENT_KEY_DIGITS + 1];
    const char *state;
    bool passing;
    int rc = 0;

    if (!hg_agent_find_key(v[H_NAME], key) || !json_object_get(past->keys, key))
        return 0;
    state = base_state(v[H_STATE], &passing);
    if (!job_number(v[H_JOB], "_+") || (set && !hg_agent_plain_set(set + 1, &tasks)))
        rc = strange(call, "sacct", "the job", v[H_JOB]);
    else
        hg_agent_keep_latest(past->latest, v[H_RAW],
                             hg_agent_record_encode(&(struct hg_agent_record){
                                 .key = key,
                                 .tasks = hg_buf_str(&tasks),
                                 .state = state,
                                 .reason = "",
                                 .nodes = v[H_NODES],
                                 .job_id = number(v[H_JOB]),
                                 .exit_status = wait_status(v[H_EXIT]),
                                 .submit = moment(v[H_SUBMIT]),
                                 .start = moment(v[H_START]),
                                 .end = moment(v[H_END]),
                             }));
    hg_buf_done(&tasks);
    return rc;
}

int hg_agent_history(struct hg_agent_call *call, const json_t *keys, double since_s, json_t *latest)
{
    char uid[16], start[32], delimiter[20], option[40];
    struct hg_agent_said said;
    int rc;

    if (since_s > (double)time(NULL)) /* sacct does not accept a time in the future */
        return 0;
    make_delimiter(delimiter);
    snprintf(option, sizeof option, "--delimiter=%s", delimiter);
    snprintf(uid, sizeof uid, "%u", getuid());
    snprintf(start, sizeof start, "uts%lld", (long long)since_s);
    rc = hg_agent_run_well(call,
                           (const char *const[]){ "sacct", "-X", "-D", "-n", "-p", option, "-u",
                                                  uid, "-S", start, "-E", "now", "-o",
                                                  HISTORY_FIELDS, NULL },
                           &said, "cannot list jobs of the accounting database");
    if (rc == 0)
        rc = read_rows(call, "sacct", &said.out, delimiter, H_N, add_past,
                       &(struct past){ keys, latest });
    hg_agent_said_done(&said);
    return rc;
}
