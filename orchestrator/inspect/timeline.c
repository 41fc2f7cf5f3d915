/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/timeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/vec.h"
#include "drive/overlay.h"
#include "plan/batch.h"
#include "plan/cells.h"
#include "plan/files.h"
#include "rundir/collect.h"
#include "rundir/resultfile.h"

#define CLAIM_MOST_S 10.0
#define CLAIM_MAX ((size_t)1 << 20)

struct loader {
    struct hg_attempt_group group; /* of the run */
    const struct hg_run_state *state;
    struct hg_selector *select;
    const char *run_key;
    int batch;
    struct hg_timeline *t;
    struct hg_err *err;
};

static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return hg_strdup(text ? text : "");
}

/* ---- One attempt ---- */

/* The submission that has its number begins a claim; a later one of the same claim replaces what was lost. */
static double submitted_s(const struct loader *l, unsigned submission)
{
    const struct hg_run_state *state = l->state;

    if (!state || submission < 1 || submission > state->submissions.n ||
        state->submissions.items[submission - 1].batch != l->batch)
        return 0;
    return state->submissions.items[submission - 1].t;
}

/* One that is damaged says nothing; one that cannot be read could say anything. */
static int read_claim(const struct loader *l, const struct hg_attempt_files *f,
                      struct hg_timeline_attempt *a)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err why = HG_ERR_INIT;
    double claimed_s = NAN;
    int rc = hg_attempt_read(&l->group, f, "claim.json", CLAIM_MAX, &text, &why);

    if (rc == 0 && hg_json_parse("claim.json", hg_buf_str(&text), text.len, &doc, NULL) == 0) {
        claimed_s = number_of(doc.root, "claimed_s");
        a->job_id = json_integer_value(json_object_get(doc.root, "array_job_id"));
        if (!a->job_id)
            a->job_id = json_integer_value(json_object_get(doc.root, "job_id"));
        free(a->nodes);
        a->nodes = text_of(doc.root, "nodes");
    }
    if (isfinite(claimed_s))
        a->begin_s = claimed_s;
    hg_json_doc_done(&doc);
    hg_buf_done(&text);
    if (why.code != HG_E_ENV)
        return 0;
    *l->err = why;
    return -1;
}

static void read_ranks(const json_t *result, struct hg_timeline_attempt *a)
{
    const json_t *ranks = json_object_get(result, "ranks"), *rank;
    size_t i;

    json_array_foreach(ranks, i, rank) {
        double start_s = number_of(rank, "start_s"), end_s = number_of(rank, "end_s");

        if (isfinite(start_s) && (!a->work_s || start_s < a->work_s))
            a->work_s = start_s;
        if (isfinite(end_s) && end_s > a->worked_s)
            a->worked_s = end_s;
    }
}

static void read_result(const json_t *result, struct hg_timeline_attempt *a)
{
    const json_t *error = json_object_get(result, "error");

    snprintf(a->status, sizeof a->status, "%s",
             json_string_value(json_object_get(result, "status")));
    a->good = strcmp(a->status, "ok") == 0;
    a->begin_s -= json_number_value(json_object_get(result, "clock_ahead_s"));
    a->wall_s = json_number_value(json_object_get(result, "wall_s"));
    a->init_s = number_of(result, "init_s");
    a->train_s = number_of(result, "train_s");
    free(a->error);
    a->error = text_of(error, "message");
    read_ranks(result, a);
}

/* A file of the worker's profiler? */
static void count_trace(void *context, const char *name)
{
    unsigned *n = context, rank;
    int end = 0;

    *n += sscanf(name, "trace.%9u.json.gz%n", &rank, &end) == 1 && end && !name[end];
}

/* The state of an attempt without a result that counts. */
static void judge_open(const struct loader *l, size_t line, bool newest,
                       struct hg_timeline_attempt *a)
{
    struct hg_verdict v = { .status = "" };

    if (newest && l->state)
        hg_drive_verdict((void *)(uintptr_t)l->state, l->batch, line, &v);
    a->open = strcmp(v.status, "running") == 0;
    snprintf(a->status, sizeof a->status, "%s",
             v.status[0] && strcmp(v.status, "pending") != 0 ? v.status : "no result");
    if (v.reason[0]) {
        free(a->error);
        a->error = hg_strdup(v.reason);
    }
}

/* wall_s counts from after the claim, which is slow on a network file system: the end of the last rank tells how slow, unless its
 * host's clock is far off. */
static void fit_wall(struct hg_timeline_attempt *a)
{
    double end_s = a->begin_s + a->wall_s;

    if (a->worked_s > end_s && a->worked_s < end_s + CLAIM_MOST_S)
        end_s = a->worked_s;
    a->end_s = end_s;
    a->begin_s = end_s - a->wall_s;
}

/* Its begin and end, as far as they are known. */
static void set_times(const struct loader *l, struct hg_timeline_attempt *a)
{
    if (!a->begin_s)
        a->begin_s = a->work_s;
    if (a->wall_s > 0 && a->begin_s > 0)
        fit_wall(a);
    else if (a->open)
        a->end_s = hg_clock_wall_s();
    else
        a->end_s = l->state ? l->state->last_t : a->begin_s;
    if (!(a->wall_s > 0))
        a->end_s = fmax(a->end_s, fmax(a->begin_s, a->worked_s));
}

static int add_attempt(struct loader *l, const json_t *record, size_t line,
                       struct hg_attempt_files *f, bool newest)
{
    struct hg_timeline_attempt *a = HG_VEC_PUSH(l->t);
    const json_t *cell = json_object_get(record, "cell");
    struct hg_buf text = HG_BUF_INIT;
    json_t *result = NULL;

    hg_json_dump(cell, HG_JSON_COMPACT, &text);
    *a = (struct hg_timeline_attempt){ .id = text_of(record, "id"),
                                       .nodes = hg_strdup(""),
                                       .error = hg_strdup(""),
                                       .cell = hg_buf_detach(&text),
                                       .folder = hg_attempt_path(&l->group, f, ""),
                                       .batch = l->batch,
                                       .queued_s = submitted_s(l, f->submission),
                                       .init_s = NAN,
                                       .train_s = NAN };
    hg_attempt_name(f->submission, f->restarts, a->name);
    if (hg_attempt_look(&l->group, f, count_trace, &a->traces, l->err) < 0)
        return -1;
    if (f->claim && read_claim(l, f, a) < 0)
        return -1;
    if (f->result)
        result = hg_resultfile_read(&l->group, f, l->run_key, cell, false, NULL);
    if (result)
        read_result(result, a);
    else
        judge_open(l, line, newest, a);
    l->t->damaged += f->result && !result;
    json_decref(result);
    set_times(l, a);
    return 0;
}

static void drop(struct hg_timeline_attempt *a)
{
    free(a->id);
    free(a->nodes);
    free(a->error);
    free(a->cell);
    free(a->folder);
}

/* ---- All of them ---- */

/* A requeued attempt waits from the end of the one before. */
static int add_cell(size_t line, const json_t *record, void *context)
{
    struct loader *l = context;
    const char *id = json_string_value(json_object_get(record, "id"));
    size_t number = hg_names_add(l->t->names, json_object_get(record, "cell"));
    struct hg_attempt_list list;
    int rc;

    hg_selector_see(l->select, json_object_get(record, "cell"));
    rc = hg_selector_match(l->select, id ? id : "", json_object_get(record, "cell"), l->err);

    if (rc < 1 || !id)
        return rc;
    l->t->cells++;
    rc = hg_attempt_list(&l->group, l->batch, line, id, &list, l->err);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        struct hg_timeline_attempt *a;

        rc = add_attempt(l, record, line, &list.items[i], i + 1 == list.n);
        a = &l->t->items[l->t->n - 1];
        a->number = number;
        if (i > 0 && list.items[i].restarts && a > l->t->items && strcmp(a[-1].id, id) == 0 &&
            list.items[i - 1].submission == list.items[i].submission)
            a->queued_s = a[-1].end_s;
        if (a->begin_s <= 0) {
            drop(a);
            l->t->n--;
            l->t->undated++;
        }
    }
    return rc;
}

static int by_begin(const void *pa, const void *pb)
{
    const struct hg_timeline_attempt *a = pa, *b = pb;
    int by = (a->begin_s > b->begin_s) - (a->begin_s < b->begin_s);

    return by ? by : strcmp(a->id, b->id);
}

static int load_batches(struct loader *l, const json_t *plan)
{
    const json_t *batch;
    size_t i;

    json_array_foreach(json_object_get(plan, "batches"), i, batch) {
        l->batch = (int)json_integer_value(json_object_get(batch, "number"));
        if (hg_plan_each_cell(l->group.rd->path, l->batch, add_cell, l, l->err) != 0)
            return -1;
    }
    return 0;
}

int hg_timeline_load(const struct hg_rundir *rd, const struct hg_run_state *state,
                     struct hg_selector *select, struct hg_timeline *t, struct hg_err *err)
{
    struct loader l = {
        .group = { .rd = rd }, .state = state, .select = select, .t = t, .err = err
    };
    json_t *plan = hg_plan_read(rd->path, err);
    int rc;

    *t = (struct hg_timeline){ 0 };
    if (!plan)
        return -1;
    t->names = hg_names_create();
    l.run_key = json_string_value(json_object_get(plan, "run_key"));
    rc = load_batches(&l, plan) < 0 ? -1 : hg_selector_check_seen(select, err);
    hg_attempt_group_forget(&l.group);
    if (t->n)
        qsort(t->items, t->n, sizeof *t->items, by_begin);
    json_decref(plan);
    return rc;
}

void hg_timeline_done(struct hg_timeline *t)
{
    for (size_t i = 0; i < t->n; i++)
        drop(&t->items[i]);
    HG_VEC_DONE(t);
    hg_names_free(t->names);
}
