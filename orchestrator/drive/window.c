/* SPDX-License-Identifier: Apache-2.0 */
/* Submissions: job arrays as large as the limits allow, each journalled before it is sent. */
#include "drive/window.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/log.h"
#include "base/ranges.h"
#include "base/text.h"
#include "base/vec.h"
#include "drive/check.h"
#include "drive/news.h"
#include "plan/batch.h"

#define BURST 20.0      /* requests at once ... */
#define RATE_PER_S 2.0  /* ... and then so many a second: the usual limit of sites */
#define TABLE_SHARE 0.9 /* of the controller's job table, at most */
#define PARTS_MAX 4000  /* of a set that is an argument of the job script, 128 KiB at most */

/* Waiting cells that are submitted as one array. */
struct chunk {
    int batch;
    uint32_t claim; /* that they share; 0: new */
    uint32_t offset;
    struct hg_ranges tasks; /* of cells */
    uint32_t n;             /* tasks of the array */
    uint8_t raises;         /* of their time limit */
};

struct chunks {
    struct chunk *items;
    size_t n, cap;
};

static void free_chunks(struct chunks *list)
{
    for (size_t i = 0; i < list->n; i++)
        hg_ranges_done(&list->items[i].tasks);
    HG_VEC_DONE(list);
}

/* ---- How much may be submitted ---- */

/* By submission - 1: its tasks that have not ended. Yours. *sum: of all. */
static uint32_t *count_open(const struct hg_run_state *state, size_t *sum)
{
    uint32_t *open = hg_alloc_zeroed(state->submissions.n + 1, sizeof *open);

    *sum = 0;
    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &state->batches.items[b].cells[i];

            if (cell->state < HG_CELL_INTENDED || cell->state > HG_CELL_RUNNING ||
                !hg_run_is_first(state, (int)b + 1, (uint32_t)i))
                continue;
            open[cell->submission - 1]++;
            ++*sum;
        }
    return open;
}

static size_t room_left(const struct hg_drive *d, size_t queued)
{
    size_t table = (size_t)((double)d->limits.max_jobs * TABLE_SHARE);
    size_t held = d->table_tasks > queued ? d->table_tasks : queued;
    size_t room = held < table ? table - held : 0;

    if (d->o.max_queued > 0) {
        size_t wanted = (size_t)d->o.max_queued;

        wanted = queued < wanted ? wanted - queued : 0;
        room = wanted < room ? wanted : room;
    }
    return room;
}

/* limits.running holds over all arrays together, Slurm's %N over one: what the live arrays may still use is taken. */
static long long running_left(const struct hg_drive *d, const uint32_t *open)
{
    long long left = d->o.running;

    for (size_t s = 0; s < d->state->submissions.n; s++) {
        uint32_t most = d->state->submissions.items[s].running_max;

        left -= most && most < open[s] ? most : open[s];
    }
    return left;
}

/* ---- What is submitted ---- */

/* The next waiting cells from line *line on that can share one array. n is 0 after the last one. */
static void next_chunk(const struct hg_drive *d, int batch, size_t *line, size_t max,
                       struct chunk *c)
{
    const struct hg_run_batch *cells = &d->state->batches.items[batch - 1];
    uint32_t together = hg_batch_together(&d->plan->items[batch - 1]), last = 0;

    *c = (struct chunk){ .batch = batch };
    for (; *line < cells->n; ++*line) {
        const struct hg_run_cell *cell = &cells->cells[*line];
        uint32_t task;

        if (cell->state != HG_CELL_WAITING || cell->held)
            continue;
        if (!c->n) {
            c->offset = (uint32_t)(*line - *line % together);
            c->claim = cell->claim;
            c->raises = hg_drive_raises(d, batch, cell);
        }
        task = ((uint32_t)*line - c->offset) / together;
        if (c->n && (cell->claim != c->claim || task >= d->limits.max_array_size ||
                     hg_drive_raises(d, batch, cell) != c->raises))
            break;
        if ((!c->n || task != last) && (c->n == max || (together > 1 && c->tasks.n > PARTS_MAX)))
            break;
        c->n += !c->n || task != last;
        last = task;
        hg_ranges_add(&c->tasks, (uint32_t)*line - c->offset);
    }
}

static void list_chunks(const struct hg_drive *d, size_t room, struct chunks *list)
{
    const struct hg_run_state *state = d->state;

    for (size_t b = 0; b < state->batches.n && room; b++) {
        for (size_t line = 0; line < state->batches.items[b].n && room && !d->refusals[b];) {
            struct chunk c;

            next_chunk(d, (int)b + 1, &line, room < d->chunk_max ? room : d->chunk_max, &c);
            if (!c.n)
                break;
            *HG_VEC_PUSH(list) = c;
            room -= c.n;
        }
    }
}

/* ---- Sending ---- */

/* Tasks of the array: one for so many cells. A new reference. */
static json_t *array_of(const struct hg_submission *sub)
{
    struct hg_ranges cells = HG_RANGES_INIT, set = HG_RANGES_INIT;
    struct hg_buf text = HG_BUF_INIT;
    json_t *array;

    hg_ranges_parse(sub->tasks, UINT32_MAX - 1, &cells, NULL); /* folding has done it before */
    for (size_t i = 0; i < cells.n; i++)
        for (uint32_t k = cells.items[i].first / sub->together;
             k <= cells.items[i].last / sub->together; k++)
            hg_ranges_add(&set, k);
    hg_ranges_format(&set, &text);
    array = json_string(hg_buf_str(&text));
    hg_ranges_done(&cells);
    hg_ranges_done(&set);
    hg_buf_done(&text);
    return array;
}

json_t *hg_drive_make_job(const struct hg_drive *d, const struct hg_submission *sub)
{
    json_t *job = json_deep_copy(d->plan->items[sub->batch - 1].job), *args;
    char *output = hg_rundir_path(&d->rd, "logs/hg-%s.out", sub->key);
    char claim[16], offset[16];

    snprintf(claim, sizeof claim, "%u", sub->claim);
    snprintf(offset, sizeof offset, "%u", sub->offset);
    json_object_set_new(job, "key", json_string(sub->key));
    json_object_set_new(job, "output", json_string(output));
    json_object_set_new(job, "array", array_of(sub));
    args = json_pack("[s,s,s,s,s,s]", "--submission", claim, "--offset", offset, "--request",
                     d->plan->items[sub->batch - 1].request);
    if (sub->together > 1) { /* its jobs may have other cells that are not to run now */
        json_array_append_new(args, json_string("--cells"));
        json_array_append_new(args, json_string(sub->tasks));
    }
    json_object_set_new(job, "args", args);
    if (sub->time_s > 0)
        json_object_set_new(job, "time_s", json_integer((json_int_t)sub->time_s));
    if (sub->running_max)
        json_object_set_new(job, "running_max", json_integer(sub->running_max));
    free(output);
    return job;
}

/* The raised limit of its jobs, in whole minutes; 0: as their batch. A limit that nobody knows was as long as their cells ran. */
static int raise_time(struct hg_drive *d, const struct chunk *c, double *time_s, struct hg_err *err)
{
    const struct hg_batch *b = &d->plan->items[c->batch - 1];
    struct hg_attempt a;
    uint32_t task = 0;
    double job_s = 0;

    *time_s = c->raises ? ldexp(b->time_s, c->raises) : 0;
    for (size_t i = 0; i < c->tasks.n && c->raises && b->time_s <= 0; i++)
        for (uint32_t k = c->tasks.items[i].first; k <= c->tasks.items[i].last; k++) {
            if (hg_drive_find_attempt(d, c->batch, c->offset + k, 0, &a, err) < 0)
                return -1;
            job_s = k / hg_batch_together(b) == task ? job_s + 2 * a.wall_s : 2 * a.wall_s;
            task = k / hg_batch_together(b);
            *time_s = fmax(*time_s, job_s);
        }
    if (b->time_max_s > 0 && *time_s > b->time_max_s)
        *time_s = b->time_max_s;
    *time_s = 60 * ceil(*time_s / 60);
    return 0;
}

/* Journal that we are about to send it. */
static int intend(struct hg_drive *d, const struct chunk *c, uint32_t running_max,
                  struct hg_err *err)
{
    uint32_t number = (uint32_t)d->state->submissions.n + 1;
    double call_s = d->limits.call_s ? d->limits.call_s : d->o.deadline_s;
    struct hg_buf tasks = HG_BUF_INIT;
    char key[33];
    json_t *members;
    double time_s;

    if (raise_time(d, c, &time_s, err) < 0)
        return -1;
    hg_text_random_hex(16, key);
    hg_ranges_format(&c->tasks, &tasks);
    members =
        json_pack("{s:I,s:I,s:s,s:I,s:I,s:s,s:f,s:s}", "submission", (json_int_t)number, "claim",
                  (json_int_t)(c->claim ? c->claim : number), "key", key, "batch",
                  (json_int_t)c->batch, "offset", (json_int_t)c->offset, "tasks",
                  hg_buf_str(&tasks), "until", hg_drive_now(d) + call_s + d->limits.ambiguous_s,
                  "request", d->plan->items[c->batch - 1].request);
    if (running_max)
        json_object_set_new(members, "running_max", json_integer(running_max));
    if (hg_batch_together(&d->plan->items[c->batch - 1]) > 1)
        json_object_set_new(members, "together",
                            json_integer(d->plan->items[c->batch - 1].together));
    if (time_s > 0)
        json_object_set_new(members, "time_s", json_integer((json_int_t)time_s));
    hg_buf_done(&tasks);
    if (hg_drive_record(d, "intent", members, err) < 0)
        return -1;
    for (size_t i = 0; i < c->tasks.n; i++)
        for (uint32_t k = c->tasks.items[i].first; k <= c->tasks.items[i].last; k++)
            d->tasks[c->batch - 1][c->offset + k] = (struct hg_drive_task){ 0 };
    return 0;
}

/* A site's words may have several lines; the journal's are shown in tables. */
static int journal_rejected(struct hg_drive *d, const struct hg_submission *sub, bool again,
                            const char *text, struct hg_err *err)
{
    char *line = hg_strdup(text);
    int rc;

    for (char *p = line; (p = strpbrk(p, "\r\n"));)
        *p = ' ';
    rc = hg_drive_record(d, "rejected",
                         json_pack("{s:I,s:b,s:o}", "submission", (json_int_t)sub->number, "again",
                                   again, "text", hg_json_text(line)),
                         err);
    free(line);
    return rc;
}

/* Certainly not submitted, but worth another try: less at a time, and later each time. */
static int on_again(struct hg_drive *d, const struct hg_submission *sub, const struct hg_err *why,
                    struct hg_err *err)
{
    double step = d->o.near ? 0.5 : 5;

    if (why->code == HG_E_ENV) {
        hg_drive_away(d, why);
    } else {
        if (!d->send_failures)
            hg_info("Slurm accepts no more jobs for now (%s); the rest waits%s%s", why->text,
                    *why->hint ? "\n  " : "", why->hint);
        for (unsigned i = 0; i < d->send_failures && step < 60; i++)
            step *= 2;
        d->send_failures++;
        d->send_due_s = hg_drive_mono(d) + step;
        d->chunk_max = sub->n_tasks / sub->together > 1 ? sub->n_tasks / sub->together / 2 : 1;
    }
    return journal_rejected(d, sub, true, why->text, err);
}

static int on_ambiguous(struct hg_drive *d, const struct hg_submission *sub,
                        const struct hg_err *why, struct hg_err *err)
{
    uint32_t said_s = d->o.executor->facts(d->o.session)->doubt_s;
    uint32_t doubt_s = said_s ? said_s : d->limits.ambiguous_s;
    double until_s = hg_drive_now(d) + doubt_s;

    hg_info(
        "submission %u (%u cell%s): no certain answer (%s); looking for the job for at most %u s",
        sub->number, sub->n_tasks, hg_text_s(sub->n_tasks), why->text, doubt_s);
    return hg_drive_record(d, "ambiguous",
                           json_pack("{s:I,s:f,s:o}", "submission", (json_int_t)sub->number,
                                     "until", until_s, "text", hg_json_text(why->text)),
                           err);
}

/* The whole of it is an error at the end; whoever waits for other cells hears of it now. */
static int on_refused(struct hg_drive *d, const struct hg_submission *sub, const struct hg_err *why,
                      struct hg_err *err)
{
    struct hg_err **kept = &d->refusals[sub->batch - 1];

    if (!*kept)
        *kept = hg_alloc_zeroed(1, sizeof **kept);
    **kept = *why;
    hg_drive_explain_refusal(d, sub->batch, "was refused", *kept);
    if (d->plan->n > 1 || d->state->counts[HG_CELL_PENDING] || d->state->counts[HG_CELL_RUNNING])
        hg_warn("batch %d was refused: %s", sub->batch, why->text);
    return journal_rejected(d, sub, false, why->text, err);
}

static int send_chunk(struct hg_drive *d, const struct chunk *c, uint32_t running_max,
                      struct hg_err *err)
{
    const struct hg_submission *sub;
    struct hg_err why = HG_ERR_INIT;
    uint32_t job_id = 0;
    json_t *job;
    int rc;

    if (intend(d, c, running_max, err) < 0)
        return -1;
    sub = hg_drive_submission(d, (uint32_t)d->state->submissions.n);
    job = hg_drive_make_job(d, sub);
    rc = d->o.executor->submit(d->o.session, job, &job_id, &why);
    json_decref(job);
    d->changed_s = hg_drive_mono(d);
    if (rc < 0 && (why.code == HG_E_AGAIN || why.code == HG_E_ENV))
        return on_again(d, sub, &why, err);
    if (rc < 0 && why.code == HG_E_AMBIGUOUS)
        return on_ambiguous(d, sub, &why, err);
    if (rc < 0)
        return on_refused(d, sub, &why, err);
    d->send_failures = 0;
    d->chunk_max = d->chunk_max < UINT32_MAX / 2 ? d->chunk_max * 2 : UINT32_MAX;
    return hg_drive_record(
        d, "submitted",
        json_pack("{s:I,s:I}", "submission", (json_int_t)sub->number, "job", (json_int_t)job_id),
        err);
}

/* A token bucket. */
static bool take_token(struct hg_drive *d)
{
    double mono = hg_drive_mono(d);

    if (d->o.near)
        return true;
    d->tokens += (mono - d->tokens_s) * RATE_PER_S;
    d->tokens_s = mono;
    if (d->tokens > BURST)
        d->tokens = BURST;
    if (d->tokens < 1)
        return false;
    d->tokens -= 1;
    return true;
}

/* Submit them one after another, and divide among them what is left of limits.running. */
static int send_chunks(struct hg_drive *d, const struct chunks *list, long long left,
                       struct hg_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct chunk *c = &list->items[i];
        long long share = 0;

        if (hg_drive_stopped(d) || d->away_since_s || d->send_due_s > hg_drive_mono(d))
            return 0;
        if (d->refusals[c->batch - 1])
            continue;
        if (d->o.running > 0) {
            share = left / (long long)(list->n - i);
            share = share > 1 ? share : 1;
            share = share < c->n ? share : c->n;
            if (left < 1)
                return 0;
            left -= share;
        }
        if (!take_token(d)) {
            d->sending = true;
            return 0;
        }
        if (send_chunk(d, c, (uint32_t)share, err) < 0)
            return -1;
    }
    return 0;
}

static bool is_any_waiting(const struct hg_run_state *state)
{
    if (!state->counts[HG_CELL_WAITING])
        return false;
    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &state->batches.items[b].cells[i];

            if (cell->state == HG_CELL_WAITING && !cell->held)
                return true;
        }
    return false;
}

int hg_drive_send(struct hg_drive *d, struct hg_err *err)
{
    struct chunks list = { 0 };
    size_t queued, room;
    uint32_t *open;
    int rc = 0;

    d->sending = d->crowded = false;
    if (!is_any_waiting(d->state))
        return 0;
    open = count_open(d->state, &queued);
    room = room_left(d, queued);
    d->crowded = !room;
    if (room && !d->away_since_s && d->send_due_s <= hg_drive_mono(d)) {
        list_chunks(d, room, &list);
        rc = send_chunks(d, &list, running_left(d, open), err);
        free_chunks(&list);
    }
    free(open);
    return rc;
}
