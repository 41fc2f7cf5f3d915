/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/rounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/ranges.h"
#include "base/text.h"
#include "base/vec.h"
#include "drive/news.h"
#include "results/adaptive.h"
#include "results/result.h"
#include "rundir/resultfile.h"

/* ---- The configurations of a plan ---- */

static int compare_places(const void *pa, const void *pb)
{
    const struct hg_drive_place *a = pa, *b = pb;

    if (a->turn.configuration != b->turn.configuration)
        return a->turn.configuration < b->turn.configuration ? -1 : 1;
    return (a->turn.run > b->turn.run) - (a->turn.run < b->turn.run);
}

static bool has_turns(const struct hg_plan *plan)
{
    for (size_t b = 0; b < plan->n; b++)
        if (plan->items[b].turns)
            return true;
    return false;
}

/* All runs, one configuration after the other. */
static void list_places(struct hg_drive *d)
{
    struct hg_drive_rounds *r = &d->rounds;

    r->places = hg_alloc_zeroed(d->plan->cells + 1, sizeof *r->places);
    for (size_t b = 0; b < d->plan->n; b++)
        for (size_t i = 0; i < d->plan->items[b].n && d->plan->items[b].turns; i++)
            if (d->plan->items[b].turns[i].configuration)
                r->places[r->n++] =
                    (struct hg_drive_place){ d->plan->items[b].turns[i], (int)b + 1, (uint32_t)i };
    qsort(r->places, r->n, sizeof *r->places, compare_places);
    r->judged = hg_alloc_zeroed(r->n + 1, sizeof *r->judged);
}

json_t *hg_drive_spare_lines(const struct hg_drive *d)
{
    json_t *list = json_array();

    if (!hg_repeats_are_adaptive(&d->o.repeats) || !has_turns(d->plan)) {
        json_decref(list);
        return NULL;
    }
    for (size_t b = 0; b < d->plan->n; b++) {
        const struct hg_batch *batch = &d->plan->items[b];
        size_t known = b < d->state->batches.n ? d->state->batches.items[b].n : 0;
        struct hg_ranges set = HG_RANGES_INIT;
        struct hg_buf text = HG_BUF_INIT;

        for (size_t i = 0; i < batch->n && batch->turns; i++)
            if ((i >= known || d->state->batches.items[b].cells[i].removed) &&
                batch->turns[i].run > d->o.repeats.min)
                hg_ranges_add(&set, (uint32_t)i);
        hg_ranges_format(&set, &text);
        json_array_append_new(list, json_string(hg_buf_str(&text)));
        hg_ranges_done(&set);
        hg_buf_done(&text);
    }
    return list;
}

/* ---- One configuration ---- */

struct runs {
    struct hg_drive_place *items;
    size_t n, asked, good;
    bool open, cancelled;
};

static const struct hg_run_cell *cell_at(const struct hg_drive *d, const struct hg_drive_place *p)
{
    return hg_run_cell_find(d->state, p->batch, p->line);
}

static struct runs count_runs(const struct hg_drive *d, size_t first)
{
    struct hg_drive_place *all = d->rounds.places;
    struct runs r = { .items = all + first };

    for (; first + r.n < d->rounds.n &&
           r.items[r.n].turn.configuration == r.items->turn.configuration;
         r.n++) {
        const struct hg_run_cell *cell = cell_at(d, &r.items[r.n]);

        r.asked += cell->state != HG_CELL_UNNEEDED;
        r.good += cell->state == HG_CELL_OK;
        r.open = r.open || !hg_cell_is_over(cell);
        r.cancelled = r.cancelled || cell->cancel;
    }
    return r;
}

/* The result of a good run; NULL with err set. */
static json_t *read_result(struct hg_drive *d, const struct hg_drive_place *p, struct hg_err *err)
{
    const struct hg_run_cell *cell = cell_at(d, p);
    struct hg_attempt_list list;
    struct hg_attempt a;

    if (d->o.io.result)
        return d->o.io.result(d->o.io.context, p->batch, p->line);
    if (hg_drive_find_attempt(d, p->batch, p->line, cell->claim, &a, err) < 0 ||
        hg_attempt_list(&d->group, p->batch, p->line, d->plan->items[p->batch - 1].ids[p->line],
                        &list, err) < 0)
        return NULL;
    for (size_t i = 0; i < list.n; i++)
        if (list.items[i].submission == a.submission && list.items[i].restarts == a.restarts)
            return hg_resultfile_read(&d->group, &list.items[i], d->plan->run_key, NULL, false,
                                      err);
    hg_err_set(err, HG_E_NOTFOUND, "no result");
    return NULL;
}

/* The metric of the good runs: of the report, else the time of training if all have it, else the wall time. Returns how many; a
 * result that cannot be read does not count. */
static size_t read_values(struct hg_drive *d, const struct runs *r, double *values)
{
    double *wall = hg_alloc_zeroed(r->n, sizeof *wall);
    const char *metric = d->o.metric ? d->o.metric : "train_s";
    size_t n = 0, lacking = 0;

    for (size_t i = 0; i < r->n; i++) {
        struct hg_err ignored = HG_ERR_INIT;
        json_t *result = cell_at(d, &r->items[i])->state == HG_CELL_OK
                             ? read_result(d, &r->items[i], &ignored)
                             : NULL;

        if (!result)
            continue;
        wall[n] = hg_result_number(&(struct hg_result){ .entry = result }, "wall_s");
        values[n] = hg_result_number(&(struct hg_result){ .entry = result }, metric);
        lacking += isnan(values[n++]);
        json_decref(result);
    }
    if (lacking && !d->o.metric)
        memcpy(values, wall, n * sizeof *values);
    free(wall);
    return n;
}

/* How many runs it should have been asked for in all. A failed one is not replaced: it is one of max. */
static size_t runs_wanted(struct hg_drive *d, const struct runs *r)
{
    const struct hg_repeats *rule = &d->o.repeats;
    double *values;
    size_t n, more;

    if (!hg_repeats_are_adaptive(rule)) /* it was when the run began */
        return r->n;
    if (r->asked < (size_t)rule->min)
        return (size_t)rule->min;
    values = hg_alloc_zeroed(r->n, sizeof *values);
    n = read_values(d, r, values);
    more = hg_adaptive_want(values, n, rule) - n;
    free(values);
    return r->asked + more < (size_t)rule->max ? r->asked + more : (size_t)rule->max;
}

/* ---- A round ---- */

/* GPU-hours by the time limits of all cells asked for so far. */
static double hours_asked(const struct hg_drive *d)
{
    double hours = 0;

    for (size_t i = 0; i < d->rounds.n; i++) {
        const struct hg_batch *b = &d->plan->items[d->rounds.places[i].batch - 1];

        if (b->gpu && cell_at(d, &d->rounds.places[i])->state != HG_CELL_UNNEEDED)
            hours += hg_batch_device_hours(b) / (double)b->n;
    }
    return hours;
}

/* May one more run start within limits.gpu_hours? */
static bool take_budget(struct hg_drive *d, const struct hg_drive_place *p)
{
    const struct hg_batch *b = &d->plan->items[p->batch - 1];
    double hours = b->gpu ? hg_batch_device_hours(b) / (double)b->n : 0;

    if (d->o.gpu_hours > 0 && d->rounds.hours + hours > d->o.gpu_hours * (1 + 1e-9)) {
        if (!d->rounds.told)
            hg_warn("limits.gpu_hours (%.4g) ends the adaptive repeats", d->o.gpu_hours);
        d->rounds.told = true;
        return false;
    }
    d->rounds.hours += hours;
    return true;
}

static int compare_lines(const void *pa, const void *pb)
{
    const struct hg_drive_place *a = pa, *b = pb;

    if (a->batch != b->batch)
        return a->batch - b->batch;
    return (a->line > b->line) - (a->line < b->line);
}

/* Journal what the round asks for, a record for each batch. */
static void say_needs(struct hg_drive *d)
{
    struct hg_drive_place *items = d->rounds.needs.items;

    if (d->rounds.needs.n)
        qsort(items, d->rounds.needs.n, sizeof *items, compare_lines);
    for (size_t i = 0; i < d->rounds.needs.n;) {
        struct hg_ranges set = HG_RANGES_INIT;
        struct hg_buf lines = HG_BUF_INIT;
        int batch = items[i].batch;

        for (; i < d->rounds.needs.n && items[i].batch == batch; i++)
            hg_ranges_add(&set, items[i].line);
        hg_ranges_format(&set, &lines);
        hg_drive_say(d, "need",
                     json_pack("{s:i,s:s}", "batch", batch, "lines", hg_buf_str(&lines)));
        hg_ranges_done(&set);
        hg_buf_done(&lines);
    }
}

/* Returns how many runs are asked for. */
static size_t judge(struct hg_drive *d, struct runs *r)
{
    uint32_t *judged = &d->rounds.judged[r->items - d->rounds.places];
    size_t want, n = 0;

    if (r->asked == r->n || r->open || r->cancelled || *judged == 1 + r->asked + r->good)
        return 0;
    *judged = (uint32_t)(1 + r->asked + r->good); /* both only grow */
    want = runs_wanted(d, r);
    for (size_t i = 0; i < r->n && r->asked + n < want; i++)
        if (cell_at(d, &r->items[i])->state == HG_CELL_UNNEEDED) {
            if (!take_budget(d, &r->items[i]))
                break;
            *HG_VEC_PUSH(&d->rounds.needs) = r->items[i];
            n++;
        }
    return n;
}

int hg_drive_rounds(struct hg_drive *d, struct hg_err *err)
{
    size_t configurations = 0, runs = 0;

    if (!d->state->counts[HG_CELL_UNNEEDED])
        return 0;
    if (!d->rounds.places)
        list_places(d);
    hg_attempt_group_forget(&d->group);
    d->rounds.hours = hours_asked(d);
    d->rounds.needs.n = 0;
    for (size_t i = 0; i < d->rounds.n;) {
        struct runs r = count_runs(d, i);
        size_t n = judge(d, &r);

        configurations += n > 0;
        runs += n;
        i += r.n;
    }
    say_needs(d);
    if (runs && hg_repeats_are_adaptive(&d->o.repeats))
        hg_info("%zu configuration%s not within ±%.3g %% yet: %zu more run%s", configurations,
                configurations == 1 ? " is" : "s are", 100 * d->o.repeats.until, runs,
                hg_text_s(runs));
    return hg_drive_commit(d, err);
}

void hg_drive_rounds_done(struct hg_drive *d)
{
    free(d->rounds.places);
    free(d->rounds.judged);
    HG_VEC_DONE(&d->rounds.needs);
}
