/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "matrix/cell.h"
#include "plan/cells.h"
#include "plan/files.h"
#include "results/contrast.h"
#include "rundir/attempt_find.h"
#include "rundir/events.h"
#include "cmd/options.h"

#define RUNS_READ 10     /* earlier ones */
#define RESULTS_ALL 2000 /* read of all of them */
#define RESULTS_EACH 10  /* of one configuration; in the run that goes on so many times OWN more */
#define OWN 3
#define LOOK_RESULTS 100
#define DUTY 50 /* computing is followed by so many times its duration without */

/* ---- The times of one run ---- */

struct reading {
    struct hg_forecast *f;
    const struct hg_run_state *state;
    const char *run_key;
    struct hg_attempt_group group;
    int batch;
    size_t budget, each, taken;
    double sum; /* of their seconds */
};

/* The time of a good cell, if its configuration needs more of them. */
static void read_time(struct reading *r, int batch, size_t line, const char *id, size_t number)
{
    struct hg_attempt a = { 0 };

    if (!r->budget || hg_forecast_runs(r->f, number) >= r->each)
        return;
    r->budget--;
    if (hg_attempt_find(&r->group, batch, line, id, 0, r->run_key, &a, NULL) < 0 || !a.done ||
        strcmp(a.status, "ok") != 0 || !(a.wall_s > 0))
        return;
    hg_forecast_measure(r->f, number, a.wall_s);
    r->taken++;
    r->sum += a.wall_s;
}

static int read_cell(size_t line, const json_t *record, void *context)
{
    struct reading *r = context;
    const struct hg_run_cell *cell =
        r->state ? hg_run_cell_find(r->state, r->batch, (uint32_t)line) : NULL;
    const json_t *members = json_object_get(record, "cell");
    const char *id = json_string_value(json_object_get(record, "id"));

    /* without a journal, as after sbatch by hand, only the attempts can tell */
    if (r->budget && id && (r->state ? cell && cell->state == HG_CELL_OK : members != NULL))
        read_time(r, r->batch, line, id,
                  hg_forecast_configuration(r->f, members, hg_cell_devices(members)));
    return 0;
}

/* How cells followed each other after a time, as the journal tells it. A start that it missed was `mean` seconds before the end. */
static struct hg_pace pace_of(const struct hg_run_state *state, double mean, double from,
                              long long most)
{
    double *starts = hg_alloc((state->cells + 1) * sizeof *starts),
           *ends = hg_alloc((state->cells + 1) * sizeof *ends);
    struct hg_pace pace;
    size_t n = 0, n_ends = 0;

    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++) {
            const struct hg_run_cell *c = &state->batches.items[b].cells[i];
            bool runs = c->state == HG_CELL_RUNNING, ok = c->state == HG_CELL_OK;

            if (!(runs && c->start_s > 0) && !(ok && c->end_s > 0 && c->end_s >= from))
                continue;
            starts[n++] = c->start_s > 0 ? c->start_s : c->end_s - mean;
            if (ok)
                ends[n_ends++] = c->end_s;
        }
    pace = hg_forecast_pace(starts, n, ends, n_ends, most > 0 ? (size_t)most : 0);
    free(starts);
    free(ends);
    return pace;
}

/* limits.running of a run's matrix; 0: none. */
static long long limit_of(const struct hg_rundir *rd)
{
    char *path = hg_rundir_path(rd, "matrix.json");
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    long long running = 0;

    if (hg_json_load(path, &doc, NULL) == 0)
        running =
            json_integer_value(json_object_get(json_object_get(doc.root, "limits"), "running"));
    hg_json_doc_done(&doc);
    free(path);
    return running;
}

static void read_run(struct hg_measured *m, const struct hg_rundir *rd, size_t *budget)
{
    json_t *plan = hg_plan_read(rd->path, NULL);
    struct hg_run_state *state = plan ? hg_run_state_load(rd->path, NULL) : NULL;
    struct reading r = {
        .f = m->forecast, .state = state, .budget = *budget, .each = RESULTS_EACH
    };

    r.group.rd = rd;
    r.run_key = json_string_value(json_object_get(plan, "run_key"));
    if (!plan || json_object_get(json_object_get(plan, "site"), "rehearsal"))
        goto out;
    for (size_t b = 0; b < json_array_size(json_object_get(plan, "batches")); b++) {
        r.batch = (int)b + 1;
        hg_plan_each_cell(rd->path, r.batch, read_cell, &r, NULL);
    }
    if (r.taken)
        hg_buf_printf(&m->from, "%s%03d", m->runs++ ? ", " : "", rd->number);
    if (r.taken && state && !m->pace.slots)
        m->pace = pace_of(state, r.sum / (double)r.taken, 0, limit_of(rd));
    *budget = r.budget;
out:
    hg_attempt_group_forget(&r.group);
    hg_run_state_free(state);
    json_decref(plan);
}

char *hg_measured_root(const struct hg_rundir *rd)
{
    char *folder = hg_fs_dirname(rd->path), *root = hg_fs_dirname(folder);

    free(folder);
    return root;
}

/* How much another run differs from the mean of these. */
static double between_sd(const struct hg_measured *m)
{
    return HG_BETWEEN_DEFAULT * sqrt(1 + 1 / (double)m->runs);
}

void hg_measured_read(struct hg_measured *m, const char *reports, const char *name, int before)
{
    const char *root = hg_options_reports(reports);
    struct hg_rundir newest = { 0 };
    size_t budget = RESULTS_ALL;
    int last;

    *m = (struct hg_measured){ .forecast = hg_forecast_create() };
    if (hg_rundir_newest(root, name, &newest, NULL) < 0)
        return;
    last = before && before <= newest.number ? before - 1 : newest.number;
    for (int i = last; i > 0 && i > last - RUNS_READ && budget; i--) {
        char *word = hg_str_printf("%s/%03d", name, i);
        struct hg_rundir rd = { 0 };

        if (hg_rundir_find(root, word, &rd, NULL) == 0)
            read_run(m, &rd, &budget);
        hg_rundir_done(&rd);
        free(word);
    }
    hg_rundir_done(&newest);
    if (m->runs)
        hg_forecast_set_between(m->forecast, between_sd(m));
}

void hg_measured_append_runs(const struct hg_measured *m, struct hg_buf *out)
{
    if (m->runs)
        hg_buf_printf(out, " (run %s)", hg_buf_str(&m->from));
}

void hg_measured_done(struct hg_measured *m)
{
    hg_forecast_free(m->forecast);
    hg_buf_done(&m->from);
    *m = (struct hg_measured){ 0 };
}

/* ---- A plan ---- */

static void list_batch(struct hg_forecast *f, const struct hg_batch *b,
                       const struct hg_repeats *repeats, struct hg_forecast_work *list, size_t *n)
{
    const char *p = hg_buf_str(&b->cells);

    for (size_t i = 0; *p; i++) {
        size_t len = strcspn(p, "\n");
        json_t *record = json_loadb(p, len, 0, NULL);
        const json_t *cell = json_object_get(record, "cell");

        if (cell && !(b->turns && b->turns[i].run > (uint32_t)repeats->min))
            list[(*n)++] = (struct hg_forecast_work){
                .configuration = hg_forecast_configuration(f, cell, hg_cell_devices(cell)),
                .n = 1,
                .devices = (double)b->devices,
                .limit_s = b->time_s / hg_batch_together(b),
                .elapsed_s = NAN,
            };
        json_decref(record);
        p += len + (p[len] != '\0');
    }
}

void hg_forecast_plan(const struct hg_measured *m, const struct hg_plan *plan, struct hg_pace pace,
                      struct hg_outlook *out)
{
    struct hg_forecast_work *list = hg_alloc((plan->cells + 1) * sizeof *list);
    size_t n = 0;

    for (size_t i = 0; i < plan->n; i++)
        list_batch(m->forecast, &plan->items[i], &plan->repeats, list, &n);
    hg_forecast_look(m->forecast, list, n, pace, out);
    free(list);
}

/* ---- A run that goes on ---- */

struct eta_batch {
    uint32_t *configuration; /* by line */
    char **ids;
    bool *read; /* its time was looked for */
    size_t n, cap;
    double devices, limit_s;
};

struct hg_eta {
    struct hg_rundir rd; /* a copy */
    char *run_key;
    struct hg_measured measured; /* in earlier runs; then in this one, too */
    struct eta_batch *batches;
    size_t n, at; /* at: the batch that is read in */
    long long running;
    size_t taken;
    double sum;
    uint64_t seq;        /* of the journal, when the figures were computed */
    double due_s, own_s; /* monotonic; next computation */
    struct hg_left left;
};

static int add_cell(size_t line, const json_t *record, void *context)
{
    struct hg_eta *e = context;
    struct eta_batch *b = &e->batches[e->at];
    const json_t *members = json_object_get(record, "cell");
    const char *id = json_string_value(json_object_get(record, "id"));

    if (line >= b->cap || !members || !id)
        return 0;
    b->ids[line] = hg_strdup(id);
    b->configuration[line] = (uint32_t)hg_forecast_configuration(e->measured.forecast, members,
                                                                 hg_cell_devices(members));
    b->n = line + 1;
    return 0;
}

static int add_batches(struct hg_eta *e, const json_t *plan, struct hg_err *err)
{
    const json_t *list = json_object_get(plan, "batches"), *item;
    size_t i;

    e->batches = hg_alloc_zeroed(json_array_size(list) + 1, sizeof *e->batches);
    json_array_foreach(list, i, item) {
        struct eta_batch *b = &e->batches[i];
        json_int_t cells = json_integer_value(json_object_get(item, "cells"));

        e->at = i;
        e->n = i + 1;
        b->cap = cells > 0 ? (size_t)cells : 0;
        b->configuration = hg_alloc_zeroed(b->cap + 1, sizeof *b->configuration);
        b->ids = hg_alloc_zeroed(b->cap + 1, sizeof *b->ids);
        b->read = hg_alloc_zeroed(b->cap + 1, sizeof *b->read);
        b->devices = json_number_value(json_object_get(item, "devices"));
        b->limit_s = json_number_value(json_object_get(json_object_get(item, "job"), "time_s"));
        if (json_object_get(item, "together"))
            b->limit_s /= json_number_value(json_object_get(item, "together"));
        if (hg_plan_each_cell(e->rd.path, (int)i + 1, add_cell, e, err) < 0)
            return -1;
    }
    return 0;
}

struct hg_eta *hg_eta_open(const struct hg_rundir *rd, struct hg_err *err)
{
    json_t *plan = hg_plan_read(rd->path, err);
    const char *key = json_string_value(json_object_get(plan, "run_key"));
    struct hg_eta *e;
    char *root;

    if (!plan)
        return NULL;
    e = hg_alloc_zeroed(1, sizeof *e);
    e->rd = (struct hg_rundir){ hg_strdup(rd->path), hg_strdup(rd->name), rd->number };
    e->run_key = key ? hg_strdup(key) : NULL;
    e->running = limit_of(rd);
    root = hg_measured_root(rd);
    hg_measured_read(&e->measured, root, rd->name, rd->number);
    free(root);
    if (add_batches(e, plan, err) < 0) {
        hg_eta_free(e);
        e = NULL;
    }
    json_decref(plan);
    return e;
}

void hg_eta_free(struct hg_eta *e)
{
    if (!e)
        return;
    for (size_t b = 0; b < e->n; b++) {
        for (size_t i = 0; i < e->batches[b].n; i++)
            free(e->batches[b].ids[i]);
        free(e->batches[b].ids);
        free(e->batches[b].configuration);
        free(e->batches[b].read);
    }
    free(e->batches);
    free(e->run_key);
    hg_measured_done(&e->measured);
    hg_rundir_done(&e->rd);
    free(e);
}

/* Read the times of cells that have become good. */
static void read_new(struct hg_eta *e, const struct hg_run_state *state, size_t budget)
{
    struct reading r = { .f = e->measured.forecast,
                         .state = state,
                         .run_key = e->run_key,
                         .budget = budget,
                         .each = (1 + OWN) * RESULTS_EACH };

    r.group.rd = &e->rd;
    for (size_t b = 0; b < e->n && b < state->batches.n; b++)
        for (size_t i = 0; i < e->batches[b].n && i < state->batches.items[b].n && r.budget; i++) {
            if (state->batches.items[b].cells[i].state != HG_CELL_OK || e->batches[b].read[i])
                continue;
            e->batches[b].read[i] = true;
            read_time(&r, (int)b + 1, i, e->batches[b].ids[i], e->batches[b].configuration[i]);
        }
    e->taken += r.taken;
    e->sum += r.sum;
    if (e->measured.runs) /* own results tell how this sweep differs */
        hg_forecast_set_between(
            e->measured.forecast,
            between_sd(&e->measured) *
                (1 - (double)e->taken / (double)hg_forecast_measured(e->measured.forecast)));
    hg_attempt_group_forget(&r.group);
}

/* The pace of the last minutes; before, what there is. */
static void find_pace(struct hg_eta *e, const struct hg_run_state *state, double now_s)
{
    size_t running = state->counts[HG_CELL_RUNNING];
    double mean = e->taken ? e->sum / (double)e->taken : 0;
    struct hg_pace pace = { .slots = running, .gap_s = e->measured.pace.gap_s };

    e->left.pace_from = "as now";
    if (mean > 0 && state->counts[HG_CELL_OK] > 3) {
        pace = pace_of(state, mean, now_s - fmax(60, 10 * mean), e->running);
        e->left.pace_from = "as in the last minutes";
    } else if (e->running > 0) {
        pace.slots = (size_t)e->running;
        e->left.pace_from = "limits.running";
    } else if (!running && e->measured.pace.slots) {
        pace = e->measured.pace;
        e->left.pace_from = "as in the last run";
    }
    if (!pace.slots) {
        pace.slots = 1;
        e->left.pace_from = "nothing runs yet";
    }
    e->left.pace = pace;
}

static bool is_left(const struct hg_run_cell *cell)
{
    return cell->state <= HG_CELL_RUNNING;
}

/* Neighbours that wait, of one configuration and with one limit, are one entry. */
static size_t list_work(struct hg_eta *e, const struct hg_run_state *state, double now_s,
                        struct hg_forecast_work *list)
{
    size_t n = 0;

    e->left.cells = e->left.held = 0;
    for (size_t b = 0; b < e->n && b < state->batches.n; b++)
        for (size_t i = 0; i < e->batches[b].n && i < state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &state->batches.items[b].cells[i];
            size_t number = e->batches[b].configuration[i];
            bool runs = cell->state == HG_CELL_RUNNING;

            if (!is_left(cell))
                continue;
            e->left.cells++;
            e->left.held += hg_cell_is_held(cell);
            if (hg_cell_is_held(cell))
                continue;
            if (!runs && n && list[n - 1].configuration == number &&
                list[n - 1].limit_s == e->batches[b].limit_s && isnan(list[n - 1].elapsed_s))
                list[n - 1].n++;
            else
                list[n++] = (struct hg_forecast_work){
                    .configuration = number,
                    .n = 1,
                    .devices = e->batches[b].devices,
                    .limit_s = e->batches[b].limit_s,
                    .elapsed_s = !runs               ? NAN
                                 : cell->start_s > 0 ? fmax(0, now_s - cell->start_s)
                                                     : 0,
                };
        }
    return n;
}

const struct hg_left *hg_eta_look(struct hg_eta *e, const struct hg_run_state *state, double now_s,
                                  bool thorough)
{
    double began_s = hg_clock_mono_s();
    struct hg_forecast_work *list;
    size_t n;

    if (!thorough && e->left.at_s > 0 && (e->seq == state->seq || began_s < e->due_s))
        return &e->left;
    e->seq = state->seq;
    read_new(e, state, thorough ? RESULTS_ALL : LOOK_RESULTS);
    find_pace(e, state, now_s);
    list = hg_alloc((state->cells + 1) * sizeof *list);
    n = list_work(e, state, now_s, list);
    hg_forecast_look(e->measured.forecast, list, n, e->left.pace, &e->left.outlook);
    free(list);
    e->left.at_s = now_s;
    e->due_s = hg_clock_mono_s() + DUTY * (hg_clock_mono_s() - began_s);
    return &e->left;
}

void hg_eta_append(const struct hg_eta *e, double now_s, struct hg_buf *out)
{
    if (e->left.cells == e->left.held)
        return;
    hg_outlook_append_time(&e->left.outlook, now_s - e->left.at_s, out);
    hg_buf_printf(out, ", %zu at a time (%s): ", e->left.pace.slots, e->left.pace_from);
    hg_outlook_append_sources(e->measured.forecast, &e->left.outlook, out);
}
