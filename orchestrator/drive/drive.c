/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/drive.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/ranges.h"
#include "base/text.h"
#include "base/vec.h"
#include "drive/drive_parts.h"
#include "rundir/identity.h"

#define LOCK_TRIES 10 /* lost races against other takers */
#define LIMITS_TRIES 3
#define PROBES_MAX 64   /* batches that are asked about before the first submission */
#define POLL_SHARE 50.0 /* between two polls pass so many times the CPU time of the last one */
#define AWAY_SAY_S 60.0 /* a controller restarts in less: no reason to speak of it */

/* ---- Small things the parts share ---- */

double hg_drive_now(const struct hg_drive *d)
{
    return d->o.io.now ? d->o.io.now(d->o.io.context) : hg_clock_wall_s();
}

double hg_drive_mono(const struct hg_drive *d)
{
    return d->o.io.mono ? d->o.io.mono(d->o.io.context) : hg_clock_mono_s();
}

bool hg_drive_stopped(const struct hg_drive *d)
{
    return d->o.stop && *d->o.stop;
}

const struct hg_submission *hg_drive_submission(const struct hg_drive *d, uint32_t number)
{
    return &hg_journal_state(d->journal)->submissions.items[number - 1];
}

const struct hg_run_state *hg_drive_state(const struct hg_drive *d)
{
    return hg_journal_state(d->journal);
}

const char *hg_drive_refusal(const struct hg_drive *d, int batch)
{
    return d->refusals[batch - 1] ? d->refusals[batch - 1] : "";
}

/* ---- The journal ---- */

/* Requests made since the last line that counted them. */
static void attach_receipt(struct hg_drive *d, json_t *members)
{
    unsigned now[3];

    d->o.executor->receipt(d->o.exec, &now[0], &now[1], &now[2]);
    if (now[0] == d->counted[0] && now[1] == d->counted[1] && now[2] == d->counted[2])
        return;
    json_object_set_new(members, "rpc",
                        json_pack("[I,I,I]", (json_int_t)(now[0] - d->counted[0]),
                                  (json_int_t)(now[1] - d->counted[1]),
                                  (json_int_t)(now[2] - d->counted[2])));
    memcpy(d->counted, now, sizeof now);
}

int hg_drive_say(struct hg_drive *d, const char *kind, json_t *members, struct hg_err *err)
{
    if (members)
        attach_receipt(d, members);
    return hg_journal_add(d->journal, hg_drive_now(d), kind, members, err);
}

int hg_drive_commit(struct hg_drive *d, struct hg_err *err)
{
    if (!hg_journal_is_empty(d->journal))
        d->changed_s = hg_drive_mono(d);
    return hg_journal_commit(d->journal, err);
}

int hg_drive_tell(struct hg_drive *d, const char *kind, const struct hg_submission *sub,
                  uint32_t index, const char *word, uint32_t restarts, const char *text,
                  struct hg_err *err)
{
    char *copy = text && *text ? strdup(text) : NULL;
    struct hg_drive_news *news = (text && *text && !copy) ? NULL : HG_VEC_PUSH(&d->news);

    if (!news) {
        free(copy);
        return hg_err_oom(err);
    }
    *news = (struct hg_drive_news){
        .kind = kind, .text = copy, .submission = sub->number, .restarts = restarts, .index = index
    };
    snprintf(news->word, sizeof news->word, "%s", word);
    return 0;
}

/* Everything but the index. */
static int compare_kinds(const struct hg_drive_news *a, const struct hg_drive_news *b)
{
    int by;

    if (a->submission != b->submission)
        return a->submission < b->submission ? -1 : 1;
    by = strcmp(a->kind, b->kind);
    if (by == 0)
        by = strcmp(a->word, b->word);
    if (by == 0)
        by = strcmp(a->text ? a->text : "", b->text ? b->text : "");
    return by ? by : (a->restarts > b->restarts) - (a->restarts < b->restarts);
}

static int compare_news(const void *pa, const void *pb)
{
    const struct hg_drive_news *a = pa, *b = pb;
    int by = compare_kinds(a, b);

    return by ? by : (a->index > b->index) - (a->index < b->index);
}

static int say_group(struct hg_drive *d, const struct hg_drive_news *news, size_t n,
                     struct hg_err *err)
{
    struct hg_ranges set = HG_RANGES_INIT;
    struct hg_buf tasks = HG_BUF_INIT;
    json_t *members;

    for (size_t i = 0; i < n; i++)
        if (hg_ranges_add(&set, news[i].index) < 0)
            tasks.failed = true;
    hg_ranges_format(&set, &tasks);
    hg_ranges_done(&set);
    members = tasks.failed ? NULL
                           : json_pack("{s:I,s:s}", "submission", (json_int_t)news->submission,
                                       "tasks", hg_buf_str(&tasks));
    hg_buf_done(&tasks);
    if (members && *news->word)
        json_object_set_new(members, strcmp(news->kind, "state") == 0 ? "state" : "status",
                            hg_json_text(news->word));
    if (members && news->restarts)
        json_object_set_new(members, "restarts", json_integer(news->restarts));
    if (members && news->text)
        json_object_set_new(members, "text", hg_json_text(news->text));
    return hg_drive_say(d, news->kind, members, err);
}

static void drop_news(struct hg_drive *d)
{
    for (size_t i = 0; i < d->news.n; i++)
        free(d->news.items[i].text);
    d->news.n = 0;
}

int hg_drive_flush(struct hg_drive *d, struct hg_err *err)
{
    struct hg_drive_news *items = d->news.items;
    int rc = 0;

    if (d->news.n)
        qsort(items, d->news.n, sizeof *items, compare_news);
    for (size_t i = 0, n; i < d->news.n && rc == 0; i += n) {
        for (n = 1; i + n < d->news.n && compare_kinds(&items[i], &items[i + n]) == 0;)
            n++;
        rc = say_group(d, &items[i], n, err);
    }
    drop_news(d);
    return rc < 0 ? -1 : hg_drive_commit(d, err);
}

/* ---- Opening ---- */

/* File systems of several machines show a new name late. */
static double default_visible_s(const char *path)
{
    static const long shared[] = { 0x6969 /* NFS */,      0x0bd00bd0 /* Lustre */,
                                   0x47504653 /* GPFS */, 0x19830326 /* BeeGFS */,
                                   0x65735546 /* FUSE */, 0x00c36400 /* Ceph */,
                                   0x517b /* SMB */,      (long)0xff534d42 /* CIFS */ };
    struct statfs fs;

    if (statfs(path, &fs) < 0)
        return 60;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if ((long)fs.f_type == shared[i])
            return 60;
    return 2;
}

static int read_fence(const struct hg_rundir *rd, uint32_t *fence, struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;
    struct hg_run_state *seen = hg_run_state_load(rd->path, &why);

    *fence = seen ? seen->fence : 0;
    if (!seen && why.code != HG_E_NOTFOUND) {
        *err = why;
        return -1;
    }
    hg_run_state_free(seen);
    return 0;
}

struct hg_lock *hg_drive_lock(const struct hg_rundir *rd, const char *command, bool steal,
                              struct hg_err *err)
{
    uint32_t fence;

    if (read_fence(rd, &fence, err) < 0)
        return NULL;
    for (int i = 0; i < LOCK_TRIES; i++) {
        struct hg_lock *lock = hg_lock_take(rd->path, command, steal, fence, err);

        if (!lock)
            return NULL;
        /* Between the look and the lock another holder may have come and gone. */
        if (read_fence(rd, &fence, err) < 0) {
            hg_lock_release(lock);
            return NULL;
        }
        if (fence < hg_lock_number(lock))
            return lock;
        hg_lock_release(lock);
    }
    hg_err_set(err, HG_E_ENV, "%s: too many processes want its lock", rd->path);
    return NULL;
}

static int open_journal(struct hg_drive *d, struct hg_err *err)
{
    d->lock = d->o.lock
                  ? d->o.lock
                  : hg_drive_lock(&d->rd, d->o.command ? d->o.command : "hpcgrid", d->o.steal, err);
    if (!d->lock)
        return -1;
    d->journal = hg_journal_open(d->rd.path, hg_lock_number(d->lock), hg_lock_check, d->lock, err);
    return d->journal ? 0 : -1;
}

static int journal_opening(struct hg_drive *d, struct hg_err *err)
{
    const char *transport = d->o.executor->transport ? d->o.executor->transport(d->o.exec) : NULL;
    const char *cluster = d->o.cluster && *d->o.cluster ? d->o.cluster : NULL;
    char host[65] = "";
    json_t *sizes = json_array();
    bool grown = hg_drive_state(d)->batches.n != d->plan->n;

    gethostname(host, sizeof host - 1);
    for (size_t b = 0; b < d->plan->n; b++) {
        if (d->plan->items[b].number != (int)b + 1) {
            json_decref(sizes);
            return hg_err_set(err, HG_E_BUG, "batch %zu of the plan has number %d", b + 1,
                              d->plan->items[b].number);
        }
        grown = grown || hg_drive_state(d)->batches.items[b].n != d->plan->items[b].n;
        json_array_append_new(sizes, json_integer((json_int_t)d->plan->items[b].n));
    }
    if (hg_drive_say(d, "open",
                     json_pack("{s:s,s:o,s:o,s:I,s:s*,s:s*}", "schema", "hpcgrid-events/1",
                               "command", hg_json_text(d->o.command ? d->o.command : ""), "host",
                               hg_json_text(host), "pid", (json_int_t)getpid(), "transport",
                               transport, "cluster", cluster),
                     err) < 0 ||
        (grown && hg_drive_say(d, "plan", json_pack("{s:O}", "batches", sizes), err) < 0)) {
        json_decref(sizes);
        return -1;
    }
    json_decref(sizes);
    return hg_drive_commit(d, err);
}

static int make_tasks(struct hg_drive *d, struct hg_err *err)
{
    size_t n = d->plan->n;

    d->tasks = calloc(n + 1, sizeof *d->tasks);
    d->refusals = calloc(n + 1, sizeof *d->refusals);
    if (!d->tasks || !d->refusals)
        return hg_err_oom(err);
    for (size_t b = 0; b < n; b++) {
        d->tasks[b] = calloc(d->plan->items[b].n + 1, sizeof **d->tasks);
        if (!d->tasks[b])
            return hg_err_oom(err);
    }
    return 0;
}

static int make_log_folder(const struct hg_drive *d, struct hg_err *err)
{
    char *path = hg_rundir_path(&d->rd, "logs");
    int rc = path ? hg_fs_mkdirs(path, 0755, err) : hg_err_oom(err);

    free(path);
    return rc;
}

struct hg_drive *hg_drive_open(const struct hg_rundir *rd, const struct hg_plan *plan,
                               const struct hg_drive_options *options, struct hg_err *err)
{
    struct hg_drive *d = calloc(1, sizeof *d);

    if (!d) {
        hg_lock_release(options->lock);
        hg_err_oom(err);
        return NULL;
    }
    d->rd = *rd;
    d->group.rd = &d->rd;
    d->group.locked = true;
    d->plan = plan;
    d->o = *options;
    d->lock = options->lock;
    d->chunk_max = UINT32_MAX;
    d->tokens = 20;
    d->started_s = d->changed_s = d->tokens_s = hg_drive_mono(d);
    if (d->o.visible_s < 0)
        d->o.visible_s = default_visible_s(rd->path);
    if (open_journal(d, err) < 0 ||
        hg_identity_check_cluster(rd->path, hg_drive_state(d), d->o.cluster, err) < 0 ||
        journal_opening(d, err) < 0 || make_tasks(d, err) < 0 || make_log_folder(d, err) < 0 ||
        hg_drive_again(d, 1u << HG_CELL_REFUSED, NULL, NULL, err) < 0) {
        hg_drive_close(d);
        return NULL;
    }
    return d;
}

void hg_drive_close(struct hg_drive *d)
{
    if (!d)
        return;
    for (size_t b = 0; b < d->plan->n; b++) {
        if (d->tasks)
            free(d->tasks[b]);
        if (d->refusals)
            free(d->refusals[b]);
    }
    free(d->tasks);
    free(d->refusals);
    free(d->shown);
    drop_news(d);
    HG_VEC_DONE(&d->news);
    HG_VEC_DONE(&d->orders);
    hg_journal_close(d->journal);
    hg_lock_release(d->lock);
    hg_attempt_group_forget(&d->group);
    free(d);
}

int hg_drive_finish(struct hg_drive *d, struct hg_err *err)
{
    json_t *members = json_object();

    if (members)
        attach_receipt(d, members);
    if (members && !json_object_size(members)) {
        json_decref(members);
        return 0;
    }
    if (hg_journal_add(d->journal, hg_drive_now(d), "receipt", members, err) < 0)
        return -1;
    return hg_journal_commit(d->journal, err);
}

/* ---- Before anything is submitted ---- */

/* A request that got lost, with its agent perhaps, is made again. */
static int ask_limits(struct hg_drive *d, struct hg_err *err)
{
    double start = hg_drive_mono(d);

    for (int i = 0; i < LIMITS_TRIES; i++) {
        struct hg_err why = HG_ERR_INIT;

        if (d->o.executor->limits(d->o.exec, &d->limits, &why) == 0)
            return 0;
        if (why.code != HG_E_AGAIN || i == LIMITS_TRIES - 1 ||
            hg_drive_mono(d) - start > d->o.deadline_s / 4) {
            *err = why;
            return -1;
        }
    }
    return -1;
}

static int load_limits(struct hg_drive *d, struct hg_err *err)
{
    if (d->has_limits)
        return 0;
    if (ask_limits(d, err) < 0)
        return -1;
    if (!d->limits.max_array_size || !d->limits.max_jobs)
        return hg_err_set(err, HG_E_REFUSED,
                          "%s takes no job arrays (MaxArraySize %u, MaxJobCount "
                          "%u)",
                          d->o.executor->name, d->limits.max_array_size, d->limits.max_jobs);
    if (!d->limits.min_job_age_s) /* MinJobAge=0: nothing is ever purged */
        d->limits.min_job_age_s = UINT32_MAX;
    d->has_limits = true;
    return 0;
}

static bool was_submitted(const struct hg_run_state *state, int batch)
{
    for (size_t i = 0; i < state->submissions.n; i++)
        if (state->submissions.items[i].batch == batch)
            return true;
    return false;
}

/* The first waiting cell of the batch as a job of its own. */
static json_t *probe_job(const struct hg_drive *d, int batch, struct hg_err *err)
{
    char tasks[] = "0";
    struct hg_submission sub = { .number = 1, .claim = 1, .batch = batch, .tasks = tasks };

    hg_text_random_hex(16, sub.key);
    return hg_drive_make_job(d, &sub, err);
}

/* "partition cpus (hardware.cpu.partition of the site)" */
static void name_member(const struct hg_batch *b, const char *name, bool absent_too,
                        struct hg_buf *out)
{
    const char *place = json_string_value(json_object_get(b->places, name));
    const json_t *value = json_object_get(b->job, name);

    if (!place || (!value && !absent_too))
        return;
    hg_buf_puts(out, out->len ? ", " : "it asks for ");
    if (json_is_string(value))
        hg_buf_printf(out, "%s %s (%s)", name, json_string_value(value), place);
    else if (value)
        hg_buf_printf(out, "%s %lld (%s)", name, (long long)json_integer_value(value), place);
    else
        hg_buf_printf(out, "no %s (%s)", name, place);
}

/* What Slurm says no to, and where that stands; all that could be meant where it does not say. */
static void name_members(const struct hg_batch *b, const char *about, struct hg_buf *out)
{
    const char *name;
    json_t *place;

    for (const char *p = about; *p;) {
        size_t n = strcspn(p, ",");
        char member[32];

        snprintf(member, sizeof member, "%.*s", (int)n, p);
        name_member(b, member, !about[n], out);
        p += n + (p[n] == ',');
    }
    if (!*about)
        json_object_foreach(b->places, name, place)
            name_member(b, name, false, out);
}

/* Which cells, and where it stands what they ask for. */
static void explain_refusal(const struct hg_drive *d, int batch, struct hg_err *why)
{
    const struct hg_batch *b = &d->plan->items[batch - 1];
    const char *site = json_string_value(json_object_get(d->plan->site, "name"));
    const char *about = d->o.executor->about ? d->o.executor->about(d->o.exec) : "";
    char where[256] = "", hint[sizeof why->hint];
    struct hg_buf asked = HG_BUF_INIT;

    if (b->hardware)
        snprintf(where, sizeof where, ", hardware %s%s%s", b->hardware, site ? " of site " : "",
                 site ? site : "");
    hg_err_wrap(why, "batch %d (%zu cell%s%.200s) would be refused", batch, b->n, hg_text_s(b->n),
                where);
    name_members(b, about, &asked);
    memcpy(hint, why->hint, sizeof hint);
    if (asked.len)
        hg_err_hint(why, "%.200s%s%.300s", hint, *hint ? "\n" : "", hg_buf_str(&asked));
    hg_buf_done(&asked);
}

int hg_drive_check(struct hg_drive *d, struct hg_errs *errs)
{
    const struct hg_run_state *state = hg_drive_state(d);
    struct hg_err err = HG_ERR_INIT;
    size_t before = errs->n;
    int asked = 0;

    if (load_limits(d, &err) < 0)
        return hg_errs_add(errs, &err);
    for (int batch = 1; (size_t)batch <= state->batches.n && asked < PROBES_MAX; batch++) {
        struct hg_err why = HG_ERR_INIT;
        json_t *job;
        int rc;

        if (!d->o.executor->probe || was_submitted(state, batch))
            continue;
        job = probe_job(d, batch, &err);
        if (!job)
            return hg_errs_add(errs, &err);
        rc = d->o.executor->probe(d->o.exec, job, &why);
        json_decref(job);
        asked++;
        if (rc == 0 || why.code == HG_E_AGAIN || why.code == HG_E_AMBIGUOUS)
            continue;
        if (why.code == HG_E_REFUSED)
            explain_refusal(d, batch, &why);
        hg_errs_add(errs, &why);
        if (why.code == HG_E_ENV)
            break;
    }
    return errs->n > before ? -1 : 0;
}

/* ---- A pass ---- */

void hg_drive_away(struct hg_drive *d, const struct hg_err *why)
{
    double mono = hg_drive_mono(d), step = 1;
    unsigned char random[2];
    char hex[5];

    if (!d->away_since_s) {
        d->away_since_s = mono;
        d->said_away = false;
        hg_debug("no answer: %s", why->text);
    } else if (!d->said_away && mono - d->away_since_s > AWAY_SAY_S) {
        hg_warn("no answer from Slurm for %.0f s (%s); jobs go on, and so does the waiting",
                mono - d->away_since_s, why->text);
        d->said_away = true;
    }
    for (unsigned i = 0; i < d->failures && step < 60; i++)
        step *= 2;
    d->failures++;
    hg_text_random_hex(2, hex);
    random[0] = (unsigned char)strtoul(hex, NULL, 16);
    step = (step < 60 ? step : 60) * (0.75 + 0.5 * random[0] / 255.0); /* not all at once */
    d->retry_due_s = mono + step;
}

static bool wants_table(const struct hg_drive *d)
{
    const struct hg_run_state *state = hg_drive_state(d);

    if (d->crowded) /* ended jobs leave the table, too */
        return true;
    for (int s = HG_CELL_INTENDED; s <= HG_CELL_ENDED; s++)
        if (state->counts[s])
            return true;
    return false;
}

/* Seconds since the last submission, or since this driver began, whichever is longer. */
static double queue_age_s(const struct hg_drive *d)
{
    const struct hg_run_state *state = hg_drive_state(d);
    size_t n = state->submissions.n;
    double age = n ? hg_drive_now(d) - state->submissions.items[n - 1].t : 0;

    return fmax(age, hg_drive_mono(d) - d->started_s);
}

/* Old queues are asked after seldom: news are at most a tenth of their age late, and a large table does not take more than a fiftieth
 * of a core to read. A job must not come and be purged between two polls. */
static double poll_interval(const struct hg_drive *d)
{
    double quiet = hg_drive_mono(d) - d->changed_s;
    double low = fmin(fmax(queue_age_s(d) / 10, 1), 30);
    double high = fmax(1, d->limits.min_job_age_s / 2.0);
    double interval = fmin(fmax(quiet / 10, low), 60);

    if (d->o.near)
        interval = fmin(fmax(quiet / 4, 0.4), 2);
    return fmin(fmax(interval, POLL_SHARE * d->poll_cost_s), high);
}

/* Of this process and of the executor's. */
static double cpu_s(const struct hg_drive *d)
{
    double theirs = d->o.executor->cpu_s ? d->o.executor->cpu_s(d->o.exec) : 0;
    struct timespec t;

    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0
               ? theirs + (double)t.tv_sec + (double)t.tv_nsec * 1e-9
               : theirs;
}

static int poll_table(struct hg_drive *d, struct hg_err *err)
{
    struct hg_exec_jobs jobs;
    struct hg_err why = HG_ERR_INIT;
    double wall_s = hg_drive_now(d), mono = hg_drive_mono(d), before_s = cpu_s(d);
    int rc;

    if (d->o.executor->poll(d->o.exec, &jobs, &why) < 0) {
        if (why.code != HG_E_ENV && why.code != HG_E_AGAIN) {
            *err = why;
            return -1;
        }
        hg_drive_away(d, &why);
        return 0;
    }
    if (d->said_away)
        hg_info("Slurm answers again");
    d->away_since_s = 0;
    d->said_away = false;
    d->failures = 0;
    d->polls++;
    d->poll_wall_s = wall_s;
    d->poll_s = mono;
    d->fresh = true;
    rc = hg_drive_read_table(d, &jobs, err);
    hg_exec_jobs_done(&jobs);
    d->poll_cost_s = d->o.io.mono ? 0 : fmax(cpu_s(d) - before_s, 0);
    return rc;
}

static int maybe_poll(struct hg_drive *d, struct hg_err *err)
{
    double mono = hg_drive_mono(d);

    if (d->away_since_s) {
        if (mono < d->retry_due_s)
            return 0;
    } else if (!wants_table(d) || (d->polls && mono < d->poll_due_s)) {
        return 0;
    }
    return poll_table(d, err);
}

/* Submissions in doubt are settled by the first poll behind their time. */
static double next_doubt_s(const struct hg_drive *d)
{
    const struct hg_run_state *state = hg_drive_state(d);
    double next = INFINITY, now = hg_drive_now(d);

    for (size_t i = 0; i < state->submissions.n; i++) {
        const struct hg_submission *sub = &state->submissions.items[i];

        if (sub->state == HG_SUB_INTENDED || sub->state == HG_SUB_AMBIGUOUS)
            next = fmin(next, fmax(sub->until_s + 2 - now, 0) + 0.01);
    }
    return next;
}

static void plan_next(struct hg_drive *d, struct hg_drive_pass *pass)
{
    const struct hg_run_state *state = hg_drive_state(d);
    double mono = hg_drive_mono(d), due = INFINITY;
    size_t waiting = 0, held = 0;

    for (size_t b = 0; b < state->batches.n && !waiting; b++)
        for (size_t i = 0; i < state->batches.items[b].n && !d->refusals[b]; i++) {
            const struct hg_run_cell *cell = &state->batches.items[b].cells[i];

            waiting += cell->state == HG_CELL_WAITING && !cell->held;
            held += cell->state == HG_CELL_WAITING && cell->held;
        }
    if (d->fresh || !d->polls)
        d->poll_due_s = mono + fmin(poll_interval(d), next_doubt_s(d));
    if (wants_table(d))
        due = d->poll_due_s;
    if (d->awaited)
        due = fmin(due, d->look_due_s);
    if (waiting && d->send_due_s > mono)
        due = fmin(due, d->send_due_s);
    if (d->sending)
        due = fmin(due, mono + 0.5);
    if (d->away_since_s)
        due = d->retry_due_s;
    pass->over = !waiting && !held && !wants_table(d);
    pass->sending = d->sending && !d->away_since_s;
    pass->away_s = d->away_since_s ? fmax(mono - d->away_since_s, 0.001) : 0;
    pass->wait_s = isfinite(due) ? fmax(due - mono, 0) : 1;
}

int hg_drive_pass(struct hg_drive *d, struct hg_drive_pass *pass, struct hg_err *err)
{
    uint64_t seq = hg_drive_state(d)->seq;

    *pass = (struct hg_drive_pass){ 0 };
    d->fresh = false;
    if (hg_drive_read_requests(d, err) < 0 || load_limits(d, err) < 0 || maybe_poll(d, err) < 0)
        return -1;
    if (hg_drive_settle(d, err) < 0 || (!d->o.send_nothing && hg_drive_retry(d, err) < 0))
        return -1;
    if (!hg_drive_stopped(d) && hg_drive_give_orders(d, err) < 0)
        return -1;
    if (!hg_drive_stopped(d) && !d->o.send_nothing && hg_drive_send(d, err) < 0)
        return -1;
    pass->news = hg_drive_state(d)->seq != seq;
    plan_next(d, pass);
    return 0;
}
