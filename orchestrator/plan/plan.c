/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "matrix/cell.h"
#include "matrix/names.h"
#include "matrix/pointer.h"
#include "matrix/rehearse.h"
#include "matrix/together.h"
#include "plan/batch.h"
#include "plan/fit.h"
#include "plan/hazards.h"
#include "plan/rehearse.h"
#include "plan/shape.h"
#include "plan/template.h"
#include "plan/together.h"

#define SKIPPED_KEPT 20 /* cells that the plan names */

/* What the unfinished cells of a known batch request today: the longest time and the most memory of any; the rest
 * must be the same for all, since one array has one request. */
struct fresh {
    bool any;
    struct hg_shape shape; /* of the first, with those two */
    struct hg_buf rest;    /* its key without them */
    char *id, *other,
        *other_rest; /* the first cell, and one that requests something else; NULL: none */
    /* Cells that share jobs: the sum of their limits, by job, finished ones included. */
    double *job_s;
    bool endless;        /* one of them has none */
    struct hg_batch old; /* what the batch requested before */
};

struct make {
    const struct hg_matrix *m;
    const struct hg_selector *select;
    const struct hg_plan *past; /* NULL: none */
    struct hg_plan *plan;
    struct hg_fit *fit; /* what fits its device */
    struct hg_hazards *hazards;
    json_t *known;       /* id: index of its batch among known ones << 32 | its line */
    json_t *unseen;      /* the ids of known that the walk has not come to */
    struct fresh *fresh; /* for each known batch */
    size_t n_fresh;
    json_t *by_shape;          /* shape: index of its new batch */
    json_t *longest;           /* hardware: longest time requested, in seconds */
    json_t *longest_job;       /* the same of jobs that cells share */
    struct hg_parties parties; /* new cells, if the matrix wants them to share jobs */
    bool has_turns;            /* the matrix has adaptive repeats, or had them when the run began */
    struct hg_map turn_of, configurations; /* by cell id, by fingerprint */
    struct {
        struct hg_turn *items;
        size_t n, cap;
    } turns;
    struct {
        uint32_t *items;
        size_t n, cap;
    } runs; /* of each configuration */
    size_t selected;
    size_t visited;               /* cells of the walk so far */
    size_t skipped[SKIPPED_KEPT]; /* their numbers in it */
    struct hg_errs *errs;
    struct hg_err err;
};

static void note_longest(json_t *longest, const char *hardware, double time_s)
{
    if (time_s > json_real_value(json_object_get(longest, hardware)))
        json_object_set_new(longest, hardware, json_real(time_s));
}

/* First walk: the longest time on each hardware. */
static int survey_cell(const struct hg_cell *cell, void *context)
{
    struct make *mk = context;
    const char *hardware = json_string_value(json_object_get(cell->members, "hardware"));

    if (hardware)
        note_longest(mk->longest, hardware, hg_cell_time_s(cell->members));
    return 0;
}

static char **copy_strings(const struct hg_words *words)
{
    char **copy = hg_alloc_zeroed(words->n + 1, sizeof *copy);

    for (size_t i = 0; i < words->n; i++)
        copy[i] = hg_strdup(words->items[i]);
    return copy;
}

/* Everything of a batch that follows from its cells' shape. */
static void fill_batch(const struct make *mk, const struct hg_shape *shape, const char *key,
                       int number, unsigned together, struct hg_batch *b)
{
    char name[128];

    *b = (struct hg_batch){ .number = number, .together = together };
    snprintf(name, sizeof name, "%s-%d", mk->plan->name, number);
    b->job = hg_shape_job(shape, mk->m->site, name, mk->m->workload.program != NULL);
    b->places = hg_shape_places(shape);
    b->time_s = shape->time_s;
    b->auto_time = shape->auto_time;
    b->time_max_s = shape->auto_time ? shape->hw->max_time_s : 0;
    b->gpu = shape->hw->gpus_per_node > 0;
    b->devices = shape->nodes *
                 (b->gpu ? shape->gpus_per_node : shape->tasks_per_node * shape->cpus_per_task);
    b->hardware = hg_strdup(shape->hw->name);
    b->backend = shape->hw->backend ? hg_strdup(shape->hw->backend) : NULL;
    b->modules = copy_strings(&shape->modules);
    b->shape = hg_strdup(key);
    hg_batch_set_request(b);
}

/* Batches are for jobs of one shape and number of cells. */
static void batch_key(const struct hg_shape *shape, unsigned together, struct hg_buf *out)
{
    hg_shape_key(shape, out);
    if (together > 1)
        hg_buf_printf(out, " together=%u", together);
}

/* The new batch for such jobs, which may be there already. */
static struct hg_batch *need_batch(struct make *mk, const struct hg_shape *shape, unsigned together)
{
    struct hg_buf key = HG_BUF_INIT;
    const json_t *at;
    struct hg_batch *b;

    batch_key(shape, together, &key);
    at = json_object_get(mk->by_shape, hg_buf_str(&key));
    b = at ? &mk->plan->items[json_integer_value(at)] : HG_VEC_PUSH(mk->plan);
    if (!at) {
        fill_batch(mk, shape, hg_buf_str(&key), (int)mk->plan->n, together, b);
        json_object_set_new(mk->by_shape, hg_buf_str(&key),
                            json_integer((json_int_t)mk->plan->n - 1));
    }
    hg_buf_done(&key);
    return b;
}

/* A line of a cells file. */
static void write_cell(const struct hg_cell *cell, struct hg_buf *out)
{
    hg_buf_printf(out, "{\"id\":\"%s\",\"baseline\":", cell->id);
    hg_buf_printf(out, cell->baseline[0] ? "\"%s\"" : "null", cell->baseline);
    hg_buf_printf(out, ",\"added\":%s,\"cell\":", cell->added ? "true" : "false");
    hg_json_dump(cell->members, HG_JSON_COMPACT, out);
    hg_buf_puts(out, "}\n");
}

double hg_plan_round_time(double time_s, double most_s)
{
    static const double minutes[] = {
        1,    2,    3,    5,    10,    15,    20,    30,    45,    60,   90,
        120,  180,  240,  360,  480,   720,   960,   1200,  1440,  2160, 2880,
        4320, 5760, 7200, 8640, 10080, 14400, 20160, 30240, 40320,
    };

    for (size_t i = 0; i < sizeof minutes / sizeof *minutes; i++)
        if (time_s <= minutes[i] * 60)
            return minutes[i] * 60 < most_s ? minutes[i] * 60 : most_s;
    return time_s;
}

double hg_plan_auto_s(const struct hg_hardware *hw, double bound_s)
{
    double most = hw && hw->max_time_s > 0 ? hw->max_time_s : INFINITY;

    return bound_s > 0 ? hg_plan_round_time(fmin(fmax(bound_s, HG_AUTO_FLOOR_S), most), most) : 0;
}

/* What a job needs for this cell: its "time"; where that is "auto", the forecast's bound; 0: not known. */
static double need_s(const struct hg_matrix *m, const json_t *members)
{
    if (!hg_cell_time_is_auto(members))
        return hg_cell_time_s(members);
    return m->auto_times.bound_s ? m->auto_times.bound_s(m->auto_times.context, members) : 0;
}

/* Make a job's limit of the sum of what its cells need. longest: by hardware. */
static void round_time(const json_t *longest, struct hg_shape *shape)
{
    double most = json_real_value(json_object_get(longest, shape->hw->name));

    if (shape->auto_time)
        shape->time_s = hg_plan_auto_s(shape->hw, shape->time_s);
    else if (shape->time_s > 0)
        shape->time_s =
            hg_plan_round_time(shape->time_s, most > shape->time_s ? most : shape->time_s);
}

static void note_request(struct fresh *f, const struct hg_cell *cell, struct hg_shape *shape)
{
    double time_s = shape->time_s;
    long long mem_mib = shape->mem_mib;
    bool auto_time = shape->auto_time;
    struct hg_buf rest = HG_BUF_INIT;

    shape->time_s = 0;
    shape->auto_time = false;
    shape->mem_mib = 0;
    hg_shape_key(shape, &rest);
    if (!f->any) {
        f->any = true;
        f->id = hg_strdup(cell->id);
        f->rest = rest;
        rest = (struct hg_buf)HG_BUF_INIT;
        f->shape = *shape;
        f->shape.time_s = time_s;
        f->shape.mem_mib = mem_mib;
        f->shape.auto_time = auto_time;
        *shape = (struct hg_shape){ 0 };
    } else if (strcmp(hg_buf_str(&rest), hg_buf_str(&f->rest)) == 0) {
        /* 0: as the partition has it, which may be more than any number */
        bool endless = time_s <= 0 || f->shape.time_s <= 0;

        f->shape.time_s = endless ? 0 : time_s > f->shape.time_s ? time_s : f->shape.time_s;
        f->shape.mem_mib = mem_mib > f->shape.mem_mib ? mem_mib : f->shape.mem_mib;
        f->shape.auto_time = f->shape.auto_time || auto_time;
    } else if (!f->other) {
        f->other = hg_strdup(cell->id);
        f->other_rest = hg_buf_detach(&rest);
    }
    hg_buf_done(&rest);
}

/* A finished cell counts, too: else jobs that wait would be recalled whenever one ends. */
static void note_job_time(struct fresh *f, const struct hg_batch *b, size_t line, double time_s)
{
    if (!f->job_s)
        f->job_s = hg_alloc_zeroed(hg_batch_jobs(b, b->n) + 1, sizeof *f->job_s);
    f->job_s[line / b->together] += time_s;
    f->endless = f->endless || time_s <= 0;
}

/* A cell that the run knows keeps its place; what it is, and would request, today is noted. */
static void note_known(struct make *mk, const json_t *at, const struct hg_cell *cell)
{
    size_t i = (size_t)(json_integer_value(at) >> 32),
           line = (size_t)(json_integer_value(at) & UINT32_MAX);
    struct hg_batch *b = &mk->plan->items[i];
    struct hg_shape shape;

    const struct hg_batch *past = &mk->past->items[i];
    const uint64_t *saved = past->saved;
    size_t from = b->cells.len;
    bool keeps = hg_cell_time_is_auto(cell->members) && past->auto_time;
    /* what waits is not sent again for each new forecast */
    double time_s = keeps ? past->time_s : need_s(mk->m, cell->members);

    write_cell(cell, &b->cells);
    if (saved && hg_hash64(b->cells.data + from, b->cells.len - from) == saved[line])
        b->cells.data[b->cells.len = from] = '\0'; /* as it is saved */
    else
        b->at[line] = from + 1;
    if (b->together > 1)
        note_job_time(&mk->fresh[i], b, line, time_s);
    if (hg_ranges_has(&past->done, (uint32_t)line))
        return;
    hg_shape_make(mk->m->site, cell->members, &shape);
    shape.time_s = time_s;
    if (!keeps)
        round_time(mk->longest, &shape);
    note_request(&mk->fresh[i], cell, &shape);
    hg_shape_done(&shape);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Of a known batch whose cells share jobs. */
static double longest_job(const struct make *mk, size_t i)
{
    const struct hg_batch *b = &mk->plan->items[i];
    double longest = 0;

    for (size_t k = 0; k < hg_batch_jobs(b, b->n); k++)
        longest = mk->fresh[i].job_s[k] > longest ? mk->fresh[i].job_s[k] : longest;
    return longest;
}

/* The old request is freed with the others. */
static void renew_batch(struct make *mk, size_t i)
{
    struct hg_batch *b = &mk->plan->items[i], *old = &mk->fresh[i].old, now;
    struct hg_buf key = HG_BUF_INIT;
    bool keeps = mk->fresh[i].shape.auto_time && b->auto_time; /* its limit */

    if (b->together > 1 && !keeps) {
        mk->fresh[i].shape.time_s = mk->fresh[i].endless ? 0 : longest_job(mk, i);
        round_time(mk->longest_job, &mk->fresh[i].shape);
    }
    batch_key(&mk->fresh[i].shape, b->together, &key);
    fill_batch(mk, &mk->fresh[i].shape, hg_buf_str(&key), (int)i + 1, b->together, &now);
    hg_buf_done(&key);
    now.renewed = strcmp(now.request, b->request) != 0 || !same_text(now.backend, b->backend) ||
                  now.gpu != b->gpu || now.devices != b->devices;
    now.ids = b->ids;
    now.n = b->n;
    now.cap = b->cap;
    now.cells = b->cells;
    now.at = b->at;
    *old = *b;
    *b = now;
    old->ids = NULL; /* the new one has them */
    old->n = old->cap = 0;
    old->cells = (struct hg_buf)HG_BUF_INIT;
    old->at = NULL;
}

static int cannot_renew(const struct make *mk, size_t i, struct hg_errs *errs)
{
    const struct fresh *f = &mk->fresh[i];
    const char *a = hg_buf_str(&f->rest), *b = f->other_rest;
    struct hg_err *err = hg_errs_next(errs);
    size_t same = hg_shape_key_same(a, b);

    hg_err_set(err, HG_E_INPUT,
               "batch %zu of this run is one job array, and its cells now request different "
               "resources: %s%s, %s%s",
               i + 1, f->id, a[same] ? a + same : " no more", f->other,
               b[same] ? b + same : " no more");
    hg_err_at(err, mk->m->doc.file, NULL);
    return hg_err_hint(
        err, "only \"time\" and \"mem\" may differ, then all get the most; give these cells the "
             "same, or begin a new run: hpcgrid run MATRIX --new");
}

/* The walk is over: a batch whose cells request something else gets it. */
static int renew_batches(struct make *mk, struct hg_errs *errs)
{
    int rc = 0;

    for (size_t i = 0; i < mk->n_fresh; i++)
        if (mk->fresh[i].other)
            rc = cannot_renew(mk, i, errs);
        else if (mk->fresh[i].any)
            renew_batch(mk, i);
    return rc;
}

/* The run's report names what has no result because it cannot have one. */
static void note_skipped(struct make *mk, const struct hg_cell *cell, const char *why)
{
    struct hg_plan *plan = mk->plan;
    json_t *cells, *n;

    if (!plan->skipped)
        plan->skipped = json_pack("{s:i, s:[]}", "n", 0, "cells");
    n = json_object_get(plan->skipped, "n");
    cells = json_object_get(plan->skipped, "cells");
    json_integer_set(n, json_integer_value(n) + 1);
    if (json_array_size(cells) == SKIPPED_KEPT)
        return;
    mk->skipped[json_array_size(cells)] = mk->visited - 1;
    json_array_append_new(cells, json_pack("{s:s, s:o}", "id", cell->id, "why", hg_json_text(why)));
}

/* time_s: what it needs; the shape has the limit that a job of its own gets. */
static int place_cell(struct make *mk, const struct hg_cell *cell, const struct hg_shape *shape,
                      double time_s)
{
    char no_room[160] = "";
    struct hg_buf line = HG_BUF_INIT;
    struct hg_batch *b;
    const char *why;

    if (mk->m->site->rehearsal)
        hg_rehearse_why(shape, no_room);
    why = no_room[0] ? no_room : hg_fit_why(mk->fit, cell->members);
    if (why[0]) {
        hg_skips_add(&mk->plan->skips, cell->id, why, mk->visited - 1);
        note_skipped(mk, cell, why);
        return 0;
    }
    mk->plan->added++;
    if (mk->past && mk->past->closed)
        return 0;
    mk->plan->cells++;
    if (hg_matrix_has_together(mk->m)) {
        write_cell(cell, &line);
        return hg_parties_add(&mk->parties, cell, time_s, hg_buf_detach(&line), mk->errs);
    }
    b = need_batch(mk, shape, 1);
    hg_batch_push(b, hg_strdup(cell->id));
    write_cell(cell, &b->cells);
    return 0;
}

/* ---- Cells that share jobs ---- */

static void find_longest_jobs(struct make *mk)
{
    for (size_t i = 0; i < mk->n_fresh; i++)
        if (mk->fresh[i].job_s && !mk->fresh[i].endless && !mk->fresh[i].shape.auto_time)
            note_longest(mk->longest_job, mk->plan->items[i].hardware, longest_job(mk, i));
    for (size_t i = 0; i < mk->parties.n; i++)
        if (mk->parties.items[i].n > 1 && !mk->parties.items[i].shape.auto_time)
            note_longest(mk->longest_job, mk->parties.items[i].shape.hw->name,
                         mk->parties.items[i].shape.time_s);
}

static void place_party(struct make *mk, struct hg_party *party)
{
    struct hg_batch *b;

    round_time(party->n > 1 ? mk->longest_job : mk->longest, &party->shape);
    b = need_batch(mk, &party->shape, (unsigned)party->n);
    for (size_t i = 0; i < party->n; i++) {
        hg_batch_push(b, party->items[i].id);
        hg_buf_puts(&b->cells, party->items[i].line);
        party->items[i].id = NULL;
    }
}

/* The walk is over. */
static int place_parties(struct make *mk)
{
    bool any = false;

    if (hg_parties_order(&mk->parties, mk->errs) < 0)
        return -1;
    for (size_t i = 0; i < mk->parties.n; i++) {
        any = any || mk->parties.items[i].n > 1;
        place_party(mk, &mk->parties.items[i]);
    }
    if (mk->parties.n && !any && json_is_array(mk->m->together)) {
        char *place = hg_pointer_place(&mk->m->doc, "/together", "warning");

        hg_cells_count_warn(
            &mk->plan->count,
            hg_str_printf("%s: no two cells differ in these keys only, so each has its own job; a "
                          "key that goes with them has to be listed, too",
                          place));
        free(place);
    }
    return 0;
}

/* ---- Adaptive repeats ---- */

static void note_turn(struct make *mk, const struct hg_cell *cell)
{
    uint64_t key = cell->configuration;
    size_t known = mk->configurations.n, number;

    if (!mk->has_turns)
        return;
    number = hg_map_put(&mk->configurations, &key, sizeof key, known);
    if (number == known)
        *HG_VEC_PUSH(&mk->runs) = 0;
    hg_map_put(&mk->turn_of, cell->id, strlen(cell->id), mk->turns.n);
    *HG_VEC_PUSH(&mk->turns) = (struct hg_turn){
        .configuration = (uint32_t)number + 1,
        .run = ++mk->runs.items[number],
    };
}

/* The walk is over: every line's turn, also of cells that an earlier plan has. */
static void place_turns(struct make *mk)
{
    for (size_t b = 0; b < mk->plan->n && mk->has_turns; b++) {
        struct hg_batch *batch = &mk->plan->items[b];

        free(batch->turns);
        batch->turns = hg_alloc_zeroed(batch->n + 1, sizeof *batch->turns);
        for (size_t i = 0; i < batch->n; i++) {
            size_t at = hg_map_find(&mk->turn_of, batch->ids[i], strlen(batch->ids[i]));

            if (at != HG_MAP_NONE)
                batch->turns[i] = mk->turns.items[at];
        }
    }
}

/* What a rehearsal of this cell does without. */
static void note_missing(struct make *mk, const struct hg_cell *cell, const struct hg_shape *shape)
{
    json_t *rehearsal = json_object_get(mk->plan->site, "rehearsal");
    const json_t *container = json_object_get(cell->members, "container");

    if (shape->gpus_per_node)
        hg_rehearsal_add(rehearsal, "GPUs (the CPU computes)");
    if (json_is_string(container))
        hg_rehearsal_add(rehearsal, "container %s", json_string_value(container));
    for (size_t i = 0; i < shape->lost.n; i++)
        hg_rehearsal_add(rehearsal, "%s", shape->lost.items[i]);
    if (!mk->m->workload.program)
        return;
    json_decref(hg_rehearse_cell(rehearsal, cell->members, NULL));
    if (json_is_true(json_object_get(rehearsal, "shrink")) &&
        shape->nodes * shape->tasks_per_node > HG_REHEARSE_MPI_RANKS)
        hg_rehearsal_add(rehearsal, "MPI between more than %d ranks (TCP instead)",
                         HG_REHEARSE_MPI_RANKS);
}

static int plan_cell(const struct hg_cell *cell, void *context)
{
    struct make *mk = context;
    const json_t *known = cell->skip ? NULL : json_object_get(mk->known, cell->id);
    struct hg_shape shape;
    double time_s;
    int rc = hg_selector_match(mk->select, cell->id, cell->members, &mk->err);

    mk->visited++;
    if (!cell->skip) {
        json_object_del(mk->unseen, cell->id);
        if (rc > 0 || (rc == 0 && known))
            note_turn(mk, cell);
    }
    mk->selected += rc > 0;
    if (rc >= 0 && known) /* selected or not: the matrix is corrected for all of them */
        note_known(mk, known, cell);
    if (rc <= 0 || known)
        return rc < 0 ? -1 : 0;
    if (cell->skip) {
        note_skipped(mk, cell, cell->skip);
        return 0;
    }
    hg_shape_make(mk->m->site, cell->members, &shape);
    time_s = need_s(mk->m, cell->members);
    if (shape.auto_time)
        shape.time_s = hg_plan_auto_s(shape.hw, time_s);
    hg_hazards_see(mk->hazards, cell, &shape);
    if (mk->m->site->rehearsal)
        note_missing(mk, cell, &shape);
    round_time(mk->longest, &shape);
    rc = place_cell(mk, cell, &shape, time_s);
    hg_shape_done(&shape);
    return rc;
}

/* ---- What the node side needs ---- */

static json_t *split_words(const char *text)
{
    json_t *list = json_array();

    for (const char *p = text + strspn(text, " \t"); *p; p += strspn(p, " \t")) {
        size_t n = strcspn(p, " \t");

        json_array_append_new(list, json_stringn(p, n));
        p += n;
    }
    return list;
}

static json_t *workload_of(const struct hg_matrix *m, struct hg_err *err)
{
    const struct hg_workload *w = &m->workload;
    json_t *out = json_object();
    char *cwd = hg_fs_join(m->dir, w->cwd ? w->cwd : ".");
    char *absolute = hg_fs_absolute(cwd, NULL), *file = NULL;
    json_t *folder = hg_json_path(absolute ? absolute : m->dir, err);

    if (w->program)
        json_object_set_new(out, "program", json_string(w->program));
    json_object_set(out, "command", w->words);
    json_object_set(out, "launch", w->launch);
    json_object_set(out, "env", w->env);
    json_object_set(out, "files", w->files);
    json_object_set(out, "results", w->results);
    json_object_set_new(out, "cwd", folder);
    if (m->doc.file && (file = hg_fs_absolute(m->doc.file, NULL)))
        json_object_set_new(out, "matrix",
                            hg_json_text(file)); /* not part of the code under test */
    free(absolute);
    free(file);
    free(cwd);
    if (folder)
        return out;
    json_decref(out);
    return NULL;
}

static json_t *site_of(const struct hg_matrix *m)
{
    const struct hg_site *site = m->site;
    json_t *out = json_object(), *container = json_array(), *networks = json_object();

    json_object_set_new(out, "name", json_string(site->name));
    if (m->site_given)
        json_object_set_new(out, "given", hg_json_text(m->site_given));
    json_object_set_new(out, "heartbeat_s", json_integer(site->heartbeat_s));
    json_object_set_new(out, "launcher", split_words(site->launcher ? site->launcher : "srun"));
    for (size_t i = 0; site->container && site->container[i]; i++)
        json_array_append_new(container, json_string(site->container[i]));
    json_object_set_new(out, "container", container);
    json_object_set(out, "env", site->env);
    for (size_t i = 0; i < site->n_hardware; i++)
        if (site->hardware[i].network_gbit_s > 0)
            json_object_set_new(networks, site->hardware[i].name,
                                json_real(site->hardware[i].network_gbit_s));
    if (json_object_size(networks))
        json_object_set(out, "network_gbit_s", networks);
    json_decref(networks);
    if (site->rehearsal)
        json_object_set_new(out, "rehearsal", json_deep_copy(site->rehearsal));
    return out;
}

static void copy_known(struct make *mk, const struct hg_plan *known)
{
    for (size_t i = 0; i < known->n; i++) {
        const struct hg_batch *from = &known->items[i];
        struct hg_batch *b = HG_VEC_PUSH(mk->plan);
        struct hg_words modules = { .items = from->modules };

        while (modules.items && modules.items[modules.n])
            modules.n++;
        *b = (struct hg_batch){ .number = from->number,
                                .job = json_incref(from->job),
                                .places = json_incref(from->places),
                                .time_s = from->time_s,
                                .auto_time = from->auto_time,
                                .time_max_s = from->time_max_s,
                                .devices = from->devices,
                                .gpu = from->gpu,
                                .together = from->together };
        mk->has_turns = mk->has_turns || from->turns;
        b->hardware = hg_strdup(from->hardware);
        b->backend = from->backend ? hg_strdup(from->backend) : NULL;
        b->shape = hg_strdup(from->shape);
        b->modules = copy_strings(&modules);
        memcpy(b->request, from->request, sizeof b->request);
        for (size_t j = 0; j < from->n; j++) {
            hg_batch_push(b, hg_strdup(from->ids[j]));
            json_object_set_new(mk->known, from->ids[j], json_integer((json_int_t)(i << 32 | j)));
            json_object_set_new(mk->unseen, from->ids[j], json_true());
        }
        b->at = hg_alloc_zeroed(b->n + 1, sizeof *b->at);
    }
    mk->fresh = hg_alloc_zeroed(known->n, sizeof *mk->fresh);
    mk->n_fresh = known->n;
    mk->plan->cells = known->cells;
    memcpy(mk->plan->run_key, known->run_key, sizeof known->run_key);
}

static void note_removed(struct make *mk)
{
    for (size_t i = 0; i < mk->n_fresh; i++) {
        struct hg_batch *b = &mk->plan->items[i];

        for (size_t j = 0; j < b->n; j++)
            if (json_object_get(mk->unseen, b->ids[j]))
                hg_ranges_add(&b->removed, (uint32_t)j);
        mk->plan->removed += (size_t)hg_ranges_count(&b->removed);
    }
}

/* Another walk, if there is something to name. */
static int name_skipped(struct make *mk, struct hg_errs *errs)
{
    const json_t *cells = json_object_get(mk->plan->skipped, "cells");
    struct hg_names *names =
        mk->plan->skipped ? hg_names_of_matrix(mk->m, HG_CELLS_SKIPPED, errs) : NULL;

    if (mk->plan->skipped && !names)
        return -1;
    hg_skips_name(&mk->plan->skips, names);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        struct hg_buf name = HG_BUF_INIT;

        hg_names_append(names, mk->skipped[i], &name);
        json_object_set_new(json_array_get(cells, i), "name", hg_json_text(hg_buf_str(&name)));
        hg_buf_done(&name);
    }
    hg_names_free(names);
    return 0;
}

static int nothing_fits(const struct hg_plan *plan, struct hg_errs *errs)
{
    for (size_t i = 0; i < plan->skips.n; i++)
        hg_err_set(hg_errs_next(errs), HG_E_INPUT, "cell %s: %s", plan->skips.items[i].name,
                   plan->skips.items[i].why);
    return hg_err_set(hg_errs_next(errs), HG_E_INPUT,
                      "nothing is left to run: every cell is skipped");
}

static int fill_plan(struct make *mk, const struct hg_plan *known, struct hg_errs *errs)
{
    const struct hg_matrix *m = mk->m;
    unsigned origins = json_is_array(m->together) ? HG_CELLS_ORIGINS : 0;

    if (hg_matrix_check_chosen(m, &mk->err) < 0)
        return -1;
    mk->plan->name = hg_strdup(m->name);
    mk->plan->repeats = m->repeats;
    mk->has_turns = hg_repeats_are_adaptive(&m->repeats);
    mk->plan->workload = workload_of(m, &mk->err);
    mk->plan->site = site_of(m);
    hg_text_random_hex(16, mk->plan->run_key);
    if (!mk->plan->workload)
        return -1;
    if (known)
        copy_known(mk, known);
    mk->hazards = hg_hazards_create(m);
    mk->fit = hg_fit_make(m, mk->select, errs);
    if (!mk->fit)
        return -1;
    if (hg_cells_walk(m, HG_CELLS_MEMBERS, survey_cell, mk, NULL, errs) < 0)
        return -1;
    if (hg_cells_walk(m, HG_CELLS_MEMBERS | HG_CELLS_SKIPPED | origins, plan_cell, mk,
                      &mk->plan->count, errs) < 0)
        return -1;
    if (mk->select && !mk->selected)
        return hg_selector_refuse(mk->select, m, HG_CELLS_SKIPPED, errs);
    hg_hazards_list(mk->hazards, &mk->plan->count);
    find_longest_jobs(mk);
    if (renew_batches(mk, errs) < 0 || place_parties(mk) < 0)
        return -1;
    note_removed(mk);
    place_turns(mk);
    if (name_skipped(mk, errs) < 0)
        return -1;
    return mk->plan->cells || !mk->plan->skips.n ? 0 : nothing_fits(mk->plan, errs);
}

/* limits.gpu_hours is a promise, so cells without a time limit break it. */
static int check_gpu_hours(const struct hg_matrix *m, const struct hg_plan *plan,
                           struct hg_errs *errs)
{
    struct hg_err *err;
    double hours = 0;
    bool endless = false;

    for (size_t i = 0; i < plan->n; i++)
        if (plan->items[i].gpu) {
            hours += hg_batch_first_hours(&plan->items[i], &plan->repeats);
            endless = endless || plan->items[i].time_s <= 0;
        }
    if (!m->gpu_hours || (!endless && hours <= m->gpu_hours))
        return 0;
    err = hg_json_error(&m->doc, "/limits/gpu_hours", errs,
                        endless ? "cells without a time limit may cost any number of GPU-hours"
                        : hg_repeats_are_adaptive(&m->repeats)
                            ? "the first round may cost %.4g GPU-hours, the limit is %.4g"
                            : "the cells may cost %.4g GPU-hours, the limit is %.4g",
                        hours, m->gpu_hours);
    hg_err_hint(err, endless ? "give the workload a \"time\""
                             : "fewer cells, a shorter \"time\", or a higher limit");
    return -1;
}

static void fresh_done(struct fresh *f)
{
    hg_shape_done(&f->shape);
    hg_buf_done(&f->rest);
    free(f->id);
    free(f->other);
    free(f->other_rest);
    free(f->job_s);
    hg_batch_done(&f->old);
}

struct hg_plan *hg_plan_make(const struct hg_matrix *m, const struct hg_selector *select,
                             const struct hg_plan *known, struct hg_errs *errs)
{
    struct make mk = { .m = m,
                       .select = select,
                       .past = known,
                       .parties = { .m = m },
                       .plan = hg_alloc_zeroed(1, sizeof *mk.plan),
                       .known = json_object(),
                       .unseen = json_object(),
                       .by_shape = json_object(),
                       .longest = json_object(),
                       .longest_job = json_object(),
                       .errs = errs,
                       .err = HG_ERR_INIT };
    bool failed = fill_plan(&mk, known, errs) < 0 || check_gpu_hours(m, mk.plan, errs) < 0;

    hg_errs_add(errs, &mk.err);
    for (size_t i = 0; i < mk.n_fresh; i++)
        fresh_done(&mk.fresh[i]);
    free(mk.fresh);
    hg_fit_free(mk.fit);
    hg_hazards_free(mk.hazards);
    json_decref(mk.known);
    json_decref(mk.unseen);
    json_decref(mk.by_shape);
    json_decref(mk.longest);
    json_decref(mk.longest_job);
    hg_parties_done(&mk.parties);
    hg_map_done(&mk.turn_of);
    hg_map_done(&mk.configurations);
    HG_VEC_DONE(&mk.turns);
    HG_VEC_DONE(&mk.runs);
    if (failed || mk.err.code) {
        hg_plan_free(mk.plan);
        return NULL;
    }
    return mk.plan;
}
