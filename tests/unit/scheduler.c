/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ranges.h"
#include "base/vec.h"

#define EPOCH_S 1000000.0 /* where its time starts */

enum task_phase { TASK_PENDING, TASK_RUNNING, TASK_ENDED };

struct task {
    uint32_t index, line, restarts;
    uint32_t number; /* of its attempt: restarts, or the next free one */
    enum task_phase phase;
    double next_s; /* starts or ends then; INFINITY: never */
    double start_s, end_s;
    const json_t *action;
    const char *state, *reason;
    bool twin;                         /* found its attempt claimed */
    bool late;                         /* it has ended, the table does not know yet */
    bool hidden;                       /* gone from the table, known to history */
    bool held;                         /* by its user */
    bool ghost;                        /* at work, and forgotten by the controller */
    bool twice;                        /* that has happened to it */
    uint32_t lines[MOCK_TOGETHER_MAX]; /* that share it, one after another; `line` is lines[at] */
    size_t n, at;
    bool failed; /* one of them */
};

struct job {
    char key[33];
    uint32_t id, claim, running_max;
    int batch;
    double appears_s, lost_s, submit_s;
    struct task *tasks;
    size_t n;
};

struct attempt {
    int batch;
    uint32_t line, claim, restarts;
    double visible_s; /* INFINITY: no result */
    char status[16];
    bool left; /* a copy left because of it */
};

struct hg_executor_session {
    json_t *config;
    struct hg_executor_limits limits;
    double now_s;
    uint32_t next_id;
    size_t n_submits, n_polls; /* calls, for the scripts */
    struct hg_executor_facts facts;
    unsigned doubles, most_running;
    struct {
        struct job *items;
        size_t n, cap;
    } jobs;
    struct {
        struct attempt *items;
        size_t n, cap;
    } attempts;
};

/* ---- The script ---- */

static const char *word_of(const struct hg_executor_session *x, const char *list, size_t i)
{
    const char *word = json_string_value(json_array_get(json_object_get(x->config, list), i));

    return word ? word : "ok";
}

static bool is_down(const struct hg_executor_session *x)
{
    const json_t *list = json_object_get(x->config, "down"), *pair;
    size_t i;

    json_array_foreach(list, i, pair)
        if (x->now_s - EPOCH_S >= json_number_value(json_array_get(pair, 0)) &&
            x->now_s - EPOCH_S < json_number_value(json_array_get(pair, 1)))
            return true;
    return false;
}

unsigned mock_runs(const struct hg_executor_session *x, int batch, uint32_t line)
{
    unsigned n = 0;

    for (size_t i = 0; i < x->attempts.n; i++)
        n += x->attempts.items[i].batch == batch && x->attempts.items[i].line == line;
    return n;
}

static uint32_t together_of(const struct hg_executor_session *x, int batch)
{
    json_int_t n = json_integer_value(
        json_array_get(json_object_get(x->config, "together"), (size_t)batch - 1));

    return n > 1 ? (uint32_t)n : 1;
}

static const json_t *action_of(const struct hg_executor_session *x, int batch, uint32_t line)
{
    char name[32];
    const json_t *action;

    snprintf(name, sizeof name, "%d:%u", batch, line);
    action = json_array_get(json_object_get(json_object_get(x->config, "tasks"), name),
                            mock_runs(x, batch, line));
    return action ? action : json_object_get(x->config, "default");
}

static double action_number(const json_t *action, const char *name, double otherwise)
{
    const json_t *value = json_object_get(action, name);

    return value ? json_number_value(value) : otherwise;
}

static bool action_flag(const json_t *action, const char *name)
{
    return json_is_true(json_object_get(action, name));
}

/* ---- Time ---- */

static struct attempt *find_attempt(const struct hg_executor_session *x, const struct job *job,
                                    const struct task *t)
{
    for (size_t i = 0; i < x->attempts.n; i++) {
        struct attempt *a = &x->attempts.items[i];

        if (a->batch == job->batch && a->line == t->line && a->claim == job->claim &&
            a->restarts == t->number)
            return a;
    }
    return NULL;
}

static unsigned count_running(const struct job *job)
{
    unsigned n = 0;

    for (size_t i = 0; i < job->n; i++)
        n += job->tasks[i].phase == TASK_RUNNING;
    return n;
}

static void queue_task(const struct hg_executor_session *x, const struct job *job, struct task *t,
                       double at_s)
{
    t->phase = TASK_PENDING;
    t->late = t->failed = false;
    t->at = 0;
    t->line = t->lines[0];
    t->action = action_of(x, job->batch, t->line);
    t->state = "PENDING";
    t->reason = json_string_value(json_object_get(t->action, "reason"));
    t->next_s =
        action_flag(t->action, "held") ? INFINITY : at_s + action_number(t->action, "start_s", 1);
}

static bool is_alive(const struct hg_executor_session *x, const struct attempt *a)
{
    for (size_t i = 0; i < x->jobs.n; i++)
        for (size_t k = 0; k < x->jobs.items[i].n; k++) {
            const struct job *job = &x->jobs.items[i];
            const struct task *t = &job->tasks[k];

            if (t->phase == TASK_RUNNING && !t->twin && !t->late && job->batch == a->batch &&
                t->line == a->line && job->claim == a->claim && t->number == a->restarts)
                return true;
        }
    return false;
}

/* Is there a reason not to begin its line? Else it has the number of a free attempt. *busy: another copy is running it. */
static bool find_twin(struct hg_executor_session *x, const struct job *job, struct task *t,
                      bool *busy)
{
    struct attempt *a;

    *busy = false;
    for (t->number = 0; (a = find_attempt(x, job, t)) || t->number < t->restarts; t->number++) {
        if (!a)
            continue;
        a->left = *busy = is_alive(x, a);
        if (*busy || (t->number >= t->restarts && a->visible_s < INFINITY &&
                      strcmp(a->status, "cancelled") != 0))
            return true;
    }
    return false;
}

/* Does its line need no run? Asked only where lines share a task: else the scripts mean the table, not the node. */
static bool is_good(const struct hg_executor_session *x, const struct job *job,
                    const struct task *t)
{
    bool good = false;

    for (size_t i = 0; i < x->attempts.n && together_of(x, job->batch) > 1; i++) {
        const struct attempt *a = &x->attempts.items[i];

        good = good || (a->batch == job->batch && a->line == t->line && a->visible_s < INFINITY &&
                        strcmp(a->status, "ok") == 0);
    }
    return good;
}

/* What Slurm says of a copy that never begins; NULL: it begins. */
static const char *refusal(const struct task *t)
{
    return t->twice && !t->ghost ? json_string_value(json_object_get(t->action, "refused")) : NULL;
}

/* Begin its line, or the next one that has a reason to run; none: the copy leaves. */
static void begin_line(struct hg_executor_session *x, struct job *job, struct task *t)
{
    double twice_s;
    bool busy = false, leave = refusal(t);

    t->twin = true; /* while it looks it is not at work */
    while (!leave && (is_good(x, job, t) || find_twin(x, job, t, &busy))) {
        leave = busy || t->at + 1 == t->n;
        if (!leave)
            t->line = t->lines[++t->at];
    }
    t->twin = leave;
    t->action = action_of(x, job->batch, t->line);
    twice_s = action_number(t->action, "twice_s", 0);
    t->next_s += t->twin                ? 0.1
                 : twice_s && !t->twice ? twice_s
                                        : action_number(t->action, "run_s", 2);
    if (!t->twin)
        *HG_VEC_PUSH(&x->attempts) = (struct attempt){ .batch = job->batch,
                                                       .line = t->line,
                                                       .claim = job->claim,
                                                       .restarts = t->number,
                                                       .visible_s = INFINITY };
}

static void start_task(struct hg_executor_session *x, struct job *job, struct task *t)
{
    unsigned running = 0;

    t->phase = TASK_RUNNING;
    t->state = "RUNNING";
    t->reason = NULL;
    t->start_s = t->next_s;
    begin_line(x, job, t);
    for (size_t i = 0; i < x->jobs.n; i++)
        running += count_running(&x->jobs.items[i]);
    if (running > x->most_running)
        x->most_running = running;
}

static void write_result(struct hg_executor_session *x, const struct job *job, const struct task *t)
{
    const json_t *result = json_object_get(t->action, "result");
    struct attempt *a = find_attempt(x, job, t);

    if (!a || json_is_null(result))
        return;
    snprintf(a->status, sizeof a->status, "%s", result ? json_string_value(result) : "ok");
    a->visible_s = t->next_s + action_number(t->action, "result_delay_s", 0);
}

/* The controller forgets that it is at work: the process goes on as a ghost, the task is pending again. */
static void forget_task(const struct hg_executor_session *x, struct job *job, struct task *t)
{
    struct task *ghost = &job->tasks[job->n++];

    *ghost = *t;
    ghost->ghost = ghost->twice = true;
    ghost->next_s =
        x->now_s - action_number(t->action, "twice_s", 0) + action_number(t->action, "run_s", 2);
    if (json_object_get(t->action, "dies_s"))
        ghost->next_s = x->now_s + action_number(t->action, "dies_s", 0);
    t->twice = true;
    t->restarts += action_flag(t->action, "requeued");
    queue_task(x, job, t, x->now_s);
}

static void end_task(struct hg_executor_session *x, struct job *job, struct task *t)
{
    const char *state = json_string_value(json_object_get(t->action, "state"));
    double late_s = action_number(t->action, "late_s", 0);

    if (!t->twin && !t->twice && json_object_get(t->action, "twice_s")) {
        forget_task(x, job, t);
        return;
    }
    if (t->ghost && json_object_get(t->action, "dies_s")) {
        t->phase = TASK_ENDED;
        t->next_s = INFINITY;
        return;
    }
    if (!t->twin && !t->late && late_s > 0 && t->at + 1 == t->n) {
        write_result(x, job, t);
        t->late = true;
        t->next_s += late_s;
        return;
    }
    if (!t->twin && action_flag(t->action, "requeue")) {
        t->restarts++;
        queue_task(x, job, t, t->next_s);
        return;
    }
    if (!t->twin && !t->late)
        write_result(x, job, t);
    t->failed = t->failed || (!t->twin && state);
    if (!t->twin && t->at + 1 < t->n && !action_flag(t->action, "vanish") &&
        (!state || strcmp(state, "FAILED") == 0)) {
        t->line = t->lines[++t->at];
        begin_line(x, job, t);
        return;
    }
    t->phase = TASK_ENDED;
    t->state = refusal(t)          ? refusal(t)
               : state && !t->twin ? state
               : t->failed         ? "FAILED"
                                   : "COMPLETED";
    t->end_s = t->next_s;
    t->hidden = !t->twin && action_flag(t->action, "vanish");
    t->next_s = INFINITY;
}

/* A job that the controller has forgotten starts nothing any more; what runs, runs on. */
static bool may_move(const struct hg_executor_session *x, const struct job *job,
                     const struct task *t)
{
    if (t->phase == TASK_ENDED || job->appears_s > x->now_s)
        return false;
    if (t->phase == TASK_RUNNING)
        return true;
    if (t->held)
        return false;
    if (fmax(t->next_s, x->now_s) >= job->lost_s)
        return false;
    return !job->running_max || count_running(job) < job->running_max;
}

/* The next thing that happens until the given time; NULL if nothing does. */
static struct task *next_event(const struct hg_executor_session *x, double until_s,
                               struct job **job)
{
    struct task *next = NULL;

    for (size_t i = 0; i < x->jobs.n; i++) {
        for (size_t k = 0; k < x->jobs.items[i].n; k++) {
            struct task *t = &x->jobs.items[i].tasks[k];

            if (t->next_s > until_s || (next && t->next_s >= next->next_s) ||
                !may_move(x, &x->jobs.items[i], t))
                continue;
            next = t;
            *job = &x->jobs.items[i];
        }
    }
    return next;
}

double mock_now(const struct hg_executor_session *x)
{
    return x->now_s;
}

void mock_advance(struct hg_executor_session *x, double seconds)
{
    double until_s = x->now_s + seconds;
    struct job *job = NULL;
    struct task *t;

    while ((t = next_event(x, until_s, &job))) {
        if (t->next_s < x->now_s)
            t->next_s = x->now_s; /* it waited for its turn in the array */
        x->now_s = t->next_s;
        if (t->phase == TASK_PENDING)
            start_task(x, job, t);
        else
            end_task(x, job, t);
    }
    x->now_s = until_s;
}

void mock_attempt(const struct hg_executor_session *x, int batch, uint32_t line, uint32_t claim,
                  struct mock_attempt *attempt)
{
    *attempt = (struct mock_attempt){ 0 };
    for (size_t i = 0; i < x->attempts.n; i++) {
        const struct attempt *a = &x->attempts.items[i];

        bool done = a->visible_s <= x->now_s, ok = done && strcmp(a->status, "ok") == 0;

        if (a->batch != batch || a->line != line || (claim && a->claim != claim && !ok) ||
            (attempt->claimed && a->restarts < attempt->restarts && !ok) ||
            (strcmp(attempt->status, "ok") == 0 && !ok))
            continue;
        *attempt = (struct mock_attempt){
            .claimed = true, .restarts = a->restarts, .alive = is_alive(x, a), .left = a->left
        };
        snprintf(attempt->status, sizeof attempt->status, "%s", done ? a->status : "");
    }
}

unsigned mock_doubles(const struct hg_executor_session *x)
{
    return x->doubles;
}

unsigned mock_most_running(const struct hg_executor_session *x)
{
    return x->most_running;
}

/* ---- Methods ---- */

static void mock_close(struct hg_executor_session *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->jobs.n; i++)
        free(x->jobs.items[i].tasks);
    HG_VEC_DONE(&x->jobs);
    HG_VEC_DONE(&x->attempts);
    json_decref(x->config);
    free(x);
}

static uint32_t config_u32(const json_t *config, const char *name, uint32_t otherwise)
{
    const json_t *value = json_object_get(config, name);

    return value ? (uint32_t)json_integer_value(value) : otherwise;
}

static struct hg_executor_session *mock_open(const json_t *config, double deadline_s,
                                             struct hg_err *err)
{
    struct hg_executor_session *x = hg_alloc_zeroed(1, sizeof *x);

    (void)deadline_s;
    (void)err;
    x->config = config ? json_deep_copy(config) : json_object();
    x->now_s = EPOCH_S;
    x->next_id = 1;
    x->limits = (struct hg_executor_limits){
        .max_array_size = config_u32(config, "max_array_size", 1001),
        .max_jobs = config_u32(config, "max_jobs", 10000),
        .ambiguous_s = config_u32(config, "ambiguous_s", 10),
        .min_job_age_s = config_u32(config, "min_job_age_s", 300),
        .accounting = json_is_true(json_object_get(config, "accounting")),
        .version = "mock",
        .cluster = "mock",
    };
    return x;
}

static int answer(const struct hg_executor_session *x, const char *word, struct hg_err *err)
{
    if (strcmp(word, "env") == 0 || is_down(x))
        return hg_err_set(err, HG_E_ENV, "the controller is down");
    if (strcmp(word, "again") == 0)
        return hg_err_set(err, HG_E_AGAIN, "the controller is busy");
    return 0;
}

static int mock_limits(struct hg_executor_session *x, struct hg_executor_limits *limits,
                       struct hg_err *err)
{
    x->facts.counts.polls++;
    if (answer(x, "ok", err) < 0)
        return -1;
    *limits = x->limits;
    return 0;
}

static bool is_known(const struct hg_executor_session *x, const struct job *job)
{
    return job->appears_s <= x->now_s && job->lost_s > x->now_s;
}

static size_t count_table(const struct hg_executor_session *x)
{
    size_t n = 0;

    for (size_t i = 0; i < x->jobs.n; i++)
        for (size_t k = 0; is_known(x, &x->jobs.items[i]) && k < x->jobs.items[i].n; k++) {
            const struct task *t = &x->jobs.items[i].tasks[k];

            n += !t->hidden && !t->ghost &&
                 (t->phase != TASK_ENDED || t->end_s + x->limits.min_job_age_s > x->now_s);
        }
    return n;
}

/* Of those that have not ended. */
static bool have_common_line(const struct task *a, const struct task *b)
{
    for (size_t i = a->at; i < a->n; i++)
        for (size_t k = 0; k < b->n; k++)
            if (a->lines[i] == b->lines[k])
                return true;
    return false;
}

static void count_doubles(struct hg_executor_session *x, const struct job *made)
{
    for (size_t i = 0; i < x->jobs.n; i++) {
        const struct job *job = &x->jobs.items[i];

        if (job == made || job->batch != made->batch || job->lost_s < INFINITY)
            continue;
        for (size_t a = 0; a < job->n; a++)
            for (size_t b = 0; b < made->n; b++)
                x->doubles += job->tasks[a].phase != TASK_ENDED && !job->tasks[a].ghost &&
                              have_common_line(&job->tasks[a], &made->tasks[b]);
    }
}

/* What stands behind an option in the job's args; NULL: it is not there. */
static const char *arg_text(const json_t *job, const char *option)
{
    const json_t *args = json_object_get(job, "args"), *word;
    size_t i;

    json_array_foreach(args, i, word)
        if (strcmp(json_string_value(word), option) == 0)
            return json_string_value(json_array_get(args, i + 1));
    return NULL;
}

static uint32_t arg_number(const json_t *job, const char *option)
{
    const char *text = arg_text(job, option);

    return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static int batch_of(const char *script)
{
    const char *slash = script ? strrchr(script, '/') : NULL;

    return atoi(slash ? slash + 1 : "0");
}

/* cells: "--cells" of the job; NULL: all. */
static void add_tasks(const struct hg_executor_session *x, struct job *made,
                      const struct hg_ranges *set, uint32_t offset, const char *cells)
{
    uint32_t together = together_of(x, made->batch);
    struct hg_ranges some = HG_RANGES_INIT;
    size_t room = 2 * hg_ranges_count(set) + 1; /* for ghosts, too */

    if (cells)
        hg_ranges_parse(cells, UINT32_MAX - 1, &some, NULL);
    made->tasks = hg_alloc_zeroed(room, sizeof *made->tasks);
    for (size_t i = 0; i < set->n; i++)
        for (uint32_t k = set->items[i].first; k <= set->items[i].last; k++) {
            struct task *t = &made->tasks[made->n++];

            t->index = k;
            for (uint32_t c = k * together; c < (k + 1) * together; c++)
                if (!cells || hg_ranges_has(&some, c))
                    t->lines[t->n++] = offset + c;
            queue_task(x, made, t, made->appears_s);
        }
    hg_ranges_done(&some);
}

static int create_job(struct hg_executor_session *x, const json_t *job, double delay_s,
                      double lost_s, uint32_t *job_id, struct hg_err *err)
{
    struct job made = { .id = x->next_id,
                        .claim = arg_number(job, "--submission"),
                        .running_max = config_u32(job, "running_max", 0),
                        .batch = batch_of(json_string_value(json_object_get(job, "script"))),
                        .appears_s = x->now_s + delay_s,
                        .lost_s = x->now_s + lost_s,
                        .submit_s = x->now_s };
    struct hg_ranges set = HG_RANGES_INIT;
    const char *array = json_string_value(json_object_get(job, "array"));
    struct job *slot;

    snprintf(made.key, sizeof made.key, "%s", json_string_value(json_object_get(job, "key")));
    if (hg_ranges_parse(array ? array : "0", x->limits.max_array_size - 1, &set, NULL) < 0)
        return hg_err_set(err, HG_E_REFUSED, "Invalid job array specification");
    if (count_table(x) + hg_ranges_count(&set) > x->limits.max_jobs) {
        hg_ranges_done(&set);
        return hg_err_set(err, HG_E_AGAIN, "the job table is full");
    }
    add_tasks(x, &made, &set, arg_number(job, "--offset"), arg_text(job, "--cells"));
    hg_ranges_done(&set);
    slot = HG_VEC_PUSH(&x->jobs);
    *slot = made;
    count_doubles(x, slot);
    *job_id = made.id;
    if (lost_s == INFINITY) /* else its id is given out again */
        x->next_id++;
    return 0;
}

static int mock_submit(struct hg_executor_session *x, const json_t *job, uint32_t *job_id,
                       struct hg_err *err)
{
    const char *word = word_of(x, "submits", x->n_submits++);
    double seconds = strchr(word, ':') ? strtod(strchr(word, ':') + 1, NULL) : 0;
    uint32_t id = 0;

    x->facts.counts.submits++;
    if (answer(x, word, err) < 0)
        return -1;
    if (strcmp(word, "refused") == 0)
        return hg_err_set(err, HG_E_REFUSED, "the site says no");
    if (strcmp(word, "absent") == 0)
        return hg_err_set(err, HG_E_AMBIGUOUS, "Socket timed out");
    if (create_job(x, job, strncmp(word, "late", 4) == 0 ? seconds : 0,
                   strncmp(word, "lost", 4) == 0 ? seconds : INFINITY, &id, err) < 0)
        return -1;
    if (strcmp(word, "created") == 0 || strncmp(word, "late", 4) == 0)
        return hg_err_set(err, HG_E_AMBIGUOUS, "Socket timed out");
    *job_id = id;
    return 0;
}

static int mock_probe(struct hg_executor_session *x, const json_t *job, struct hg_err *err)
{
    x->facts.counts.polls++;
    if (answer(x, "ok", err) < 0)
        return -1;
    if (json_object_get(job, "partition"))
        return hg_err_set(err, HG_E_REFUSED, "Invalid partition name specified");
    return 0;
}

/* Nothing is said where the state tells enough. */
static int exit_status(const struct task *t)
{
    if (strcmp(t->state, "FAILED") != 0)
        return 0;
    return refusal(t) ? 1 << 8 : (int)action_number(t->action, "signal", 0);
}

static void add_record(const struct job *job, const struct task *t, struct hg_executor_jobs *jobs)
{
    struct hg_executor_job *r = HG_VEC_PUSH(jobs);

    *r = (struct hg_executor_job){ .job_id = job->id,
                                   .restarts = t->restarts,
                                   .exit_status = exit_status(t),
                                   .submit_s = job->submit_s,
                                   .start_s = t->start_s,
                                   .end_s = t->end_s };
    memcpy(r->key, job->key, sizeof r->key);
    r->tasks = hg_str_printf("%u", t->index);
    snprintf(r->state, sizeof r->state, "%s", t->state);
    snprintf(r->reason, sizeof r->reason, "%s",
             t->held && t->phase == TASK_PENDING ? "JobHeldUser"
             : t->reason                         ? t->reason
                                                 : "");
}

static int mock_poll(struct hg_executor_session *x, struct hg_executor_jobs *jobs,
                     struct hg_err *err)
{
    *jobs = (struct hg_executor_jobs){ 0 };
    x->facts.counts.polls++;
    if (answer(x, word_of(x, "polls", x->n_polls++), err) < 0)
        return -1;
    for (size_t i = 0; i < x->jobs.n; i++) {
        const struct job *job = &x->jobs.items[i];

        for (size_t k = 0; is_known(x, job) && k < job->n; k++) {
            const struct task *t = &job->tasks[k];

            if (t->hidden || t->ghost ||
                (t->phase == TASK_ENDED && t->end_s + x->limits.min_job_age_s <= x->now_s))
                continue;
            add_record(job, t, jobs);
        }
    }
    return 0;
}

static int mock_history(struct hg_executor_session *x, const char *const *keys, size_t n_keys,
                        double since_s, struct hg_executor_jobs *jobs, struct hg_err *err)
{
    (void)since_s;
    *jobs = (struct hg_executor_jobs){ 0 };
    x->facts.counts.polls++;
    if (!x->limits.accounting)
        return hg_err_set(err, HG_E_ENV, "no accounting here");
    for (size_t i = 0; i < x->jobs.n; i++)
        for (size_t n = 0; n < n_keys; n++)
            for (size_t k = 0; strcmp(keys[n], x->jobs.items[i].key) == 0 && k < x->jobs.items[i].n;
                 k++)
                if (x->jobs.items[i].tasks[k].phase == TASK_ENDED &&
                    !x->jobs.items[i].tasks[k].ghost)
                    add_record(&x->jobs.items[i], &x->jobs.items[i].tasks[k], jobs);
    return 0;
}

static int cancel_task(const struct hg_executor_session *x, struct task *t, bool by_index)
{
    const char *word = t->phase == TASK_RUNNING
                           ? json_string_value(json_object_get(t->action, "cancelled"))
                           : NULL;

    t->state = word ? word : "CANCELLED";
    /* Slurm keeps no record of tasks that were cancelled before they began */
    t->hidden = (by_index && t->phase == TASK_PENDING) || strcmp(t->state, "GONE") == 0;
    t->phase = TASK_ENDED;
    t->end_s = x->now_s;
    t->next_s = INFINITY;
    return 0;
}

/* Call each for the tasks of a job that have not ended and are in the set (NULL: all). */
static int each_task(struct hg_executor_session *x, uint32_t job_id, const char *tasks,
                     int (*each)(const struct hg_executor_session *x, struct task *t, bool flag),
                     bool flag, struct hg_err *err)
{
    struct hg_ranges set = HG_RANGES_INIT;
    struct hg_range all = { 0, UINT32_MAX - 1 };
    int rc = 0;

    x->facts.counts.cancels++;
    if (answer(x, "ok", err) < 0 ||
        (tasks && hg_ranges_parse(tasks, UINT32_MAX - 1, &set, err) < 0))
        return -1;
    for (size_t i = 0; i < x->jobs.n; i++)
        for (size_t k = 0; x->jobs.items[i].id == job_id && is_known(x, &x->jobs.items[i]) &&
                           k < x->jobs.items[i].n;
             k++) {
            struct task *t = &x->jobs.items[i].tasks[k];

            for (size_t r = 0; r < (tasks ? set.n : 1); r++) {
                const struct hg_range *range = tasks ? &set.items[r] : &all;

                if (t->index >= range->first && t->index <= range->last && t->phase != TASK_ENDED &&
                    !t->ghost && each(x, t, flag) < 0)
                    rc = -1;
            }
        }
    hg_ranges_done(&set);
    return rc;
}

static int mock_cancel(struct hg_executor_session *x, uint32_t job_id, const char *tasks,
                       struct hg_err *err)
{
    return each_task(x, job_id, tasks, cancel_task, tasks != NULL, err);
}

static int hold_task(const struct hg_executor_session *x, struct task *t, bool held)
{
    (void)x;
    if (!held && t->reason && strcmp(t->reason, "JobHeldAdmin") == 0)
        return -1;
    t->held = held;
    return 0;
}

static int mock_hold(struct hg_executor_session *x, uint32_t job_id, const char *tasks, bool held,
                     struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;

    if (each_task(x, job_id, tasks, hold_task, held, &why) == 0)
        return 0;
    if (!why.code)
        hg_err_set(&why, HG_E_REFUSED, "Access/permission denied");
    if (err)
        *err = why;
    return -1;
}

static const struct hg_executor_facts *mock_facts(const struct hg_executor_session *x)
{
    return &x->facts;
}

const struct hg_executor mock_executor = {
    .name = "mock",
    .open = mock_open,
    .limits = mock_limits,
    .submit = mock_submit,
    .probe = mock_probe,
    .poll = mock_poll,
    .history = mock_history,
    .cancel = mock_cancel,
    .hold = mock_hold,
    .facts = mock_facts,
    .close = mock_close,
};
