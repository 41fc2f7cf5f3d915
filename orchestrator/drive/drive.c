/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/drive.h"

#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/ranges.h"
#include "base/vec.h"
#include "drive/again.h"
#include "drive/check.h"
#include "drive/news.h"
#include "drive/orders.h"
#include "drive/queue.h"
#include "drive/requests.h"
#include "drive/rounds.h"
#include "drive/settle.h"
#include "drive/window.h"
#include "rundir/identity.h"
#include "rundir/lock.h"
#include "rundir/events.h"

#define LOCK_TRIES 10   /* lost races against other takers */
#define POLL_SHARE 50.0 /* between two polls pass so many times the CPU time of the last one */

/* ---- Opening ---- */

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
    hg_err_set(err, HG_E_ENV, "%s: too many processes are trying to take its lock", rd->path);
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
    if (!d->journal) {
        struct hg_err taken = HG_ERR_INIT;

        if (hg_lock_check(d->lock, &taken) < 0 && err) /* and whoever has it wrote already */
            *err = taken;
        return -1;
    }
    d->state = hg_journal_state(d->journal);
    return 0;
}

/* Of each batch the lines of cells that the matrix has no more. */
static json_t *removed_lines(const struct hg_drive *d)
{
    json_t *list = json_array();

    for (size_t b = 0; b < d->plan->n; b++) {
        struct hg_buf text = HG_BUF_INIT;

        hg_ranges_format(&d->plan->items[b].removed, &text);
        json_array_append_new(list, json_string(hg_buf_str(&text)));
        hg_buf_done(&text);
    }
    return list;
}

/* Are they other ones than the journal knows? */
static bool is_removal_new(const struct hg_drive *d)
{
    for (size_t b = 0; b < d->plan->n; b++) {
        const struct hg_ranges *set = &d->plan->items[b].removed;
        size_t known = b < d->state->batches.n ? d->state->batches.items[b].n : 0, at = 0;

        for (size_t i = 0; i < known; i++) {
            while (at < set->n && set->items[at].last < i)
                at++;
            if (d->state->batches.items[b].cells[i].removed !=
                (at < set->n && set->items[at].first <= i))
                return true;
        }
    }
    return false;
}

static int journal_opening(struct hg_drive *d, struct hg_err *err)
{
    const char *transport = d->o.executor->facts(d->o.session)->transport;
    const char *cluster = d->o.cluster && *d->o.cluster ? d->o.cluster : NULL;
    char host[65] = "";
    json_t *sizes = json_array();
    bool grown = d->state->batches.n != d->plan->n || is_removal_new(d);

    gethostname(host, sizeof host - 1);
    for (size_t b = 0; b < d->plan->n; b++) {
        if (d->plan->items[b].number != (int)b + 1) {
            json_decref(sizes);
            return hg_err_set(err, HG_E_BUG, "batch %zu of the plan has number %d", b + 1,
                              d->plan->items[b].number);
        }
        grown = grown || d->state->batches.items[b].n != d->plan->items[b].n;
        json_array_append_new(sizes, json_integer((json_int_t)d->plan->items[b].n));
    }
    hg_drive_say(d, "open",
                 json_pack("{s:s,s:o,s:o,s:I,s:s*,s:s*}", "schema", "hpcgrid-events/1", "command",
                           hg_json_text(d->o.command ? d->o.command : ""), "host",
                           hg_json_text(host), "pid", (json_int_t)getpid(), "transport", transport,
                           "cluster", cluster));
    if (grown)
        hg_drive_say(d, "plan",
                     json_pack("{s:O,s:o,s:o*}", "batches", sizes, "removed", removed_lines(d),
                               "spare", hg_drive_spare_lines(d)));
    json_decref(sizes);
    return hg_drive_commit(d, err);
}

static void make_tasks(struct hg_drive *d)
{
    size_t n = d->plan->n;

    d->tasks = hg_alloc_zeroed(n + 1, sizeof *d->tasks);
    d->refusals = hg_alloc_zeroed(n + 1, sizeof *d->refusals);
    for (size_t b = 0; b < n; b++)
        d->tasks[b] = hg_alloc_zeroed(d->plan->items[b].n + 1, sizeof **d->tasks);
}

static int make_log_folder(const struct hg_drive *d, struct hg_err *err)
{
    char *path = hg_rundir_path(&d->rd, "logs");
    int rc = hg_fs_mkdirs(path, 0700, err);

    free(path);
    return rc;
}

struct hg_drive *hg_drive_open(const struct hg_rundir *rd, const struct hg_plan *plan,
                               const struct hg_drive_options *options, struct hg_err *err)
{
    struct hg_drive *d = hg_alloc_zeroed(1, sizeof *d);

    d->rd = *rd;
    d->group.rd = &d->rd;
    d->group.locked = true;
    d->plan = plan;
    d->o = *options;
    d->lock = options->lock;
    d->chunk_max = UINT32_MAX;
    d->tokens = 20;
    make_tasks(d);
    d->started_s = d->changed_s = d->tokens_s = hg_drive_mono(d);
    if (d->o.visible_s < 0)
        d->o.visible_s = hg_fs_late_s(rd->path);
    if (open_journal(d, err) < 0 ||
        hg_identity_check_cluster(rd->path, d->state, d->o.cluster, err) < 0 ||
        journal_opening(d, err) < 0 || make_log_folder(d, err) < 0 ||
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
        free(d->tasks[b]);
        free(d->refusals[b]);
    }
    free(d->tasks);
    free(d->refusals);
    free(d->shown);
    hg_drive_drop_news(d);
    HG_VEC_DONE(&d->news);
    HG_VEC_DONE(&d->orders);
    hg_drive_rounds_done(d);
    hg_journal_close(d->journal);
    hg_lock_release(d->lock);
    hg_attempt_group_forget(&d->group);
    free(d);
}

int hg_drive_finish(struct hg_drive *d, struct hg_err *err)
{
    return hg_drive_has_uncounted(d) ? hg_drive_record(d, "receipt", json_object(), err) : 0;
}

const struct hg_run_state *hg_drive_state(const struct hg_drive *d)
{
    return d->state;
}

size_t hg_drive_whys(const struct hg_drive *d, struct hg_run_why *whys, size_t max)
{
    size_t n = d->n_whys < max ? d->n_whys : max;

    for (size_t i = 0; i < n; i++)
        whys[i] = (struct hg_run_why){ d->whys[i].reason, d->whys[i].n };
    return n;
}

const struct hg_err *hg_drive_refusal(const struct hg_drive *d, int batch)
{
    return d->refusals[batch - 1];
}

/* ---- A pass ---- */

static bool wants_queue(const struct hg_drive *d)
{
    const struct hg_run_state *state = d->state;

    if (d->crowded) /* ended jobs leave the table too */
        return true;
    for (int s = HG_CELL_INTENDED; s <= HG_CELL_ENDED; s++)
        if (state->counts[s])
            return true;
    return false;
}

/* Seconds since the last submission, or since this driver began, whichever is longer. */
static double queue_age_s(const struct hg_drive *d)
{
    const struct hg_run_state *state = d->state;
    size_t n = state->submissions.n;
    double age = n ? hg_drive_now(d) - state->submissions.items[n - 1].t : 0;

    return fmax(age, hg_drive_mono(d) - d->started_s);
}

/* Old queues are polled rarely: news are late by at most a tenth of the queue's age, and reading a large table does not take more
 * than a fiftieth of a core. A job must not appear and be purged between two polls. */
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
    double theirs = d->o.executor->facts(d->o.session)->cpu_s;
    struct timespec t;

    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0
               ? theirs + (double)t.tv_sec + (double)t.tv_nsec * 1e-9
               : theirs;
}

static int poll_queue(struct hg_drive *d, struct hg_err *err)
{
    struct hg_executor_jobs jobs;
    struct hg_err why = HG_ERR_INIT;
    double wall_s = hg_drive_now(d), mono = hg_drive_mono(d), before_s = cpu_s(d);
    int rc;

    if (d->o.executor->poll(d->o.session, &jobs, &why) < 0) {
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
    rc = hg_drive_read_queue(d, &jobs, err);
    hg_executor_jobs_done(&jobs);
    malloc_trim(0); /* gives back what the answer took, some 2 KB a job */
    d->poll_cost_s = d->o.io.mono ? 0 : fmax(cpu_s(d) - before_s, 0);
    return rc;
}

static int maybe_poll(struct hg_drive *d, struct hg_err *err)
{
    double mono = hg_drive_mono(d);

    if (d->away_since_s) {
        if (mono < d->retry_due_s)
            return 0;
    } else if (!wants_queue(d) || (d->polls && mono < d->poll_due_s)) {
        return 0;
    }
    return poll_queue(d, err);
}

/* Submissions in doubt are settled by the first poll after their time. */
static double next_doubt_s(const struct hg_drive *d)
{
    const struct hg_run_state *state = d->state;
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
    const struct hg_run_state *state = d->state;
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
    if (wants_queue(d))
        due = d->poll_due_s;
    if (d->awaited)
        due = fmin(due, d->look_due_s);
    if (waiting && d->send_due_s > mono)
        due = fmin(due, d->send_due_s);
    if (d->sending)
        due = fmin(due, mono + 0.5);
    if (d->away_since_s)
        due = d->retry_due_s;
    pass->over = !waiting && !held && !wants_queue(d);
    pass->sending = d->sending && !d->away_since_s;
    pass->away_s = d->away_since_s ? fmax(mono - d->away_since_s, 0.001) : 0;
    pass->wait_s = isfinite(due) ? fmax(due - mono, 0) : 1;
}

int hg_drive_pass(struct hg_drive *d, struct hg_drive_pass *pass, struct hg_err *err)
{
    uint64_t seq = d->state->seq;

    *pass = (struct hg_drive_pass){ 0 };
    d->fresh = false;
    /* one that has nothing to write would not notice */
    if (hg_lock_check(d->lock, err) < 0)
        return -1;
    if (hg_drive_read_requests(d, err) < 0 || hg_drive_load_limits(d, err) < 0 ||
        maybe_poll(d, err) < 0)
        return -1;
    if (hg_drive_settle(d, err) < 0 ||
        (!d->o.send_nothing && (hg_drive_retry(d, err) < 0 || hg_drive_rounds(d, err) < 0)))
        return -1;
    if (!hg_drive_stopped(d) && hg_drive_give_orders(d, err) < 0)
        return -1;
    if (!hg_drive_stopped(d) && !d->o.send_nothing && hg_drive_send(d, err) < 0)
        return -1;
    pass->news = d->state->seq != seq;
    plan_next(d, pass);
    return 0;
}
