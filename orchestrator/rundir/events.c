/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/events.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/ranges.h"
#include "base/seal.h"
#include "base/vec.h"
#include "rundir/reasons.h"

#define JOURNAL_MAX ((size_t)1 << 30)
#define BATCHES_MAX 1000000
#define CELLS_MAX 100000000

const char *const hg_cell_state_names[HG_CELL_STATES] = {
    "waiting", "intended", "ambiguous", "pending",   "running",   "ended", "ok",
    "failed",  "timeout",  "oom",       "node_fail", "cancelled", "lost",  "refused",
};

/* The state that a result's or verdict's status word stands for; FAILED for one that is not known. */
static enum hg_cell_state cell_state_of_status(const char *status)
{
    for (int s = HG_CELL_OK; s < HG_CELL_STATES; s++)
        if (strcmp(status, hg_cell_state_names[s]) == 0)
            return (enum hg_cell_state)s;
    return HG_CELL_FAILED;
}

bool hg_cell_is_over(const struct hg_run_cell *cell)
{
    return cell->state >= HG_CELL_OK;
}

bool hg_cell_is_held(const struct hg_run_cell *cell)
{
    return cell->held && cell->state <= HG_CELL_PENDING;
}

size_t hg_run_count_held(const struct hg_run_state *state)
{
    size_t n = 0;

    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++)
            n += hg_cell_is_held(&state->batches.items[b].cells[i]);
    return n;
}

/* ---- The state ---- */

struct hg_run_state *hg_run_state_create(struct hg_err *err)
{
    struct hg_run_state *state = calloc(1, sizeof *state);
    char **none = state ? HG_VEC_PUSH(&state->texts) : NULL;

    if (none)
        *none = strdup("");
    if (!none || !*none) {
        hg_run_state_free(state);
        hg_err_oom(err);
        return NULL;
    }
    return state;
}

void hg_run_state_free(struct hg_run_state *state)
{
    if (!state)
        return;
    for (size_t i = 0; i < state->batches.n; i++)
        free(state->batches.items[i].cells);
    for (size_t i = 0; i < state->submissions.n; i++)
        free(state->submissions.items[i].tasks);
    for (size_t i = 0; i < state->texts.n; i++)
        free(state->texts.items[i]);
    HG_VEC_DONE(&state->batches);
    HG_VEC_DONE(&state->submissions);
    HG_VEC_DONE(&state->texts);
    free(state);
}

struct hg_run_cell *hg_run_cell_find(const struct hg_run_state *state, int batch, uint32_t line)
{
    if (batch < 1 || (size_t)batch > state->batches.n || line >= state->batches.items[batch - 1].n)
        return NULL;
    return &state->batches.items[batch - 1].cells[line];
}

const struct hg_submission *hg_run_submission_find(const struct hg_run_state *state,
                                                   const char *key)
{
    for (size_t i = state->submissions.n; i > 0; i--) /* the newest are asked for most */
        if (strcmp(state->submissions.items[i - 1].key, key) == 0)
            return &state->submissions.items[i - 1];
    return NULL;
}

const char *hg_run_text(const struct hg_run_state *state, const struct hg_run_cell *cell)
{
    return cell->text < state->texts.n ? state->texts.items[cell->text] : "";
}

/* ---- Folding one record ---- */

struct fold {
    struct hg_run_state *state;
    const json_t *record;
    double t;
    struct hg_err *err;
};

static int contradiction(const struct fold *f, const char *what)
{
    return hg_err_set(f->err, HG_E_INPUT, "the record contradicts those before it: %s", what);
}

static uint64_t get_number(const struct fold *f, const char *name)
{
    json_int_t v = json_integer_value(json_object_get(f->record, name));

    return v > 0 ? (uint64_t)v : 0;
}

static const char *get_text(const struct fold *f, const char *name)
{
    const char *text = json_string_value(json_object_get(f->record, name));

    return text ? text : "";
}

/* Keep a text once; most cells of a poll share theirs, so the newest ones are looked at first. */
static int intern(const struct fold *f, const char *text, uint32_t *index)
{
    struct hg_run_state *s = f->state;
    char **slot, *copy;

    *index = 0;
    if (!*text)
        return 0;
    for (size_t i = s->texts.n, looked = 0; i > 1 && looked < 64; i--, looked++)
        if (strcmp(s->texts.items[i - 1], text) == 0) {
            *index = (uint32_t)(i - 1);
            return 0;
        }
    copy = strdup(text);
    slot = copy ? HG_VEC_PUSH(&s->texts) : NULL;
    if (!slot) {
        free(copy);
        return hg_err_oom(f->err);
    }
    *slot = copy;
    *index = (uint32_t)(s->texts.n - 1);
    return 0;
}

static void set_state(struct hg_run_state *s, struct hg_run_cell *cell, enum hg_cell_state state)
{
    s->counts[cell->state]--;
    s->counts[state]++;
    cell->state = (uint8_t)state;
}

/* Back to the start of the line, unless a person wants no more of it. */
static void set_waiting(struct hg_run_state *s, struct hg_run_cell *cell)
{
    set_state(s, cell, cell->cancel ? HG_CELL_CANCELLED : HG_CELL_WAITING);
    cell->restarts = 0;
}

static struct hg_submission *get_submission(const struct fold *f)
{
    uint64_t number = get_number(f, "submission");

    if (number < 1 || number > f->state->submissions.n) {
        contradiction(f, "unknown submission");
        return NULL;
    }
    return &f->state->submissions.items[number - 1];
}

typedef void (*cell_fn)(const struct fold *f, struct hg_run_cell *cell, struct hg_submission *sub,
                        uint32_t text);

/* Call fn for every cell of an index set, all of which must exist. */
static int each_cell(const struct fold *f, int batch, uint32_t offset, const char *set,
                     struct hg_submission *sub, cell_fn fn)
{
    struct hg_ranges ranges = HG_RANGES_INIT;
    uint32_t text;
    int rc = -1;

    if (intern(f, get_text(f, "text"), &text) < 0 ||
        hg_ranges_parse(set, UINT32_MAX - 1, &ranges, f->err) < 0)
        return -1;
    for (size_t i = 0; i < ranges.n; i++) {
        for (uint64_t k = ranges.items[i].first; k <= ranges.items[i].last; k++) {
            struct hg_run_cell *cell =
                k + offset < UINT32_MAX ? hg_run_cell_find(f->state, batch, (uint32_t)(k + offset))
                                        : NULL;

            if (!cell) {
                contradiction(f, "a cell outside its batch");
                goto out;
            }
            fn(f, cell, sub, text);
        }
    }
    rc = 0;
out:
    hg_ranges_done(&ranges);
    return rc;
}

static int each_task(const struct fold *f, cell_fn fn)
{
    struct hg_submission *sub = get_submission(f);
    const char *tasks = get_text(f, "tasks");

    if (!sub)
        return -1;
    return each_cell(f, sub->batch, sub->offset, *tasks ? tasks : sub->tasks, sub, fn);
}

static int fold_open(const struct fold *f)
{
    const char *schema = get_text(f, "schema");

    if (strcmp(schema, "hpcgrid-events/1") != 0)
        return hg_err_set(f->err, HG_E_INPUT, "journal of another form: \"%.40s\"", schema);
    snprintf(f->state->transport, sizeof f->state->transport, "%s", get_text(f, "transport"));
    if (*get_text(f, "cluster"))
        snprintf(f->state->cluster, sizeof f->state->cluster, "%s", get_text(f, "cluster"));
    return 0;
}

static int grow_batch(const struct fold *f, struct hg_run_batch *batch, size_t n)
{
    struct hg_run_cell *grown;

    if (n < batch->n || n > CELLS_MAX)
        return contradiction(f, "a batch shrinks");
    if (n == batch->n)
        return 0;
    grown = realloc(batch->cells, n * sizeof *grown);
    if (!grown)
        return hg_err_oom(f->err);
    memset(grown + batch->n, 0, (n - batch->n) * sizeof *grown);
    for (size_t i = batch->n; i < n; i++)
        grown[i].held = f->state->held;
    f->state->counts[HG_CELL_WAITING] += n - batch->n;
    f->state->cells += n - batch->n;
    batch->cells = grown;
    batch->n = n;
    return 0;
}

static int fold_plan(const struct fold *f)
{
    const json_t *list = json_object_get(f->record, "batches"), *count;
    size_t i;

    if (json_array_size(list) > BATCHES_MAX)
        return contradiction(f, "too many batches");
    json_array_foreach(list, i, count) {
        json_int_t n = json_integer_value(count);

        if (i == f->state->batches.n) {
            struct hg_run_batch *batch = HG_VEC_PUSH(&f->state->batches);

            if (!batch)
                return hg_err_oom(f->err);
            *batch = (struct hg_run_batch){ 0 };
        }
        if (grow_batch(f, &f->state->batches.items[i], n > 0 ? (size_t)n : 0) < 0)
            return -1;
    }
    return 0;
}

static void cell_intended(const struct fold *f, struct hg_run_cell *cell, struct hg_submission *sub,
                          uint32_t text)
{
    (void)text;
    set_state(f->state, cell, HG_CELL_INTENDED);
    cell->submission = sub->number;
    cell->claim = sub->claim;
    cell->restarts = 0;
    cell->text = 0;
    cell->let_go = false;
}

static int fold_intent(const struct fold *f)
{
    struct hg_ranges set = HG_RANGES_INIT;
    struct hg_submission made = {
        .number = (uint32_t)get_number(f, "submission"),
        .claim = (uint32_t)get_number(f, "claim"),
        .batch = (int)get_number(f, "batch"),
        .offset = (uint32_t)get_number(f, "offset"),
        .running_max = (uint32_t)get_number(f, "running_max"),
        .t = f->t,
        .until_s = json_number_value(json_object_get(f->record, "until")),
    };
    struct hg_submission *slot;

    if (made.number != f->state->submissions.n + 1 || !made.claim)
        return contradiction(f, "submission numbers");
    if (hg_ranges_parse(get_text(f, "tasks"), UINT32_MAX - 1, &set, f->err) < 0)
        return -1;
    made.n_tasks = (uint32_t)hg_ranges_count(&set);
    hg_ranges_done(&set);
    snprintf(made.key, sizeof made.key, "%s", get_text(f, "key"));
    made.tasks = strdup(get_text(f, "tasks"));
    slot = made.tasks ? HG_VEC_PUSH(&f->state->submissions) : NULL;
    if (!slot) {
        free(made.tasks);
        return hg_err_oom(f->err);
    }
    *slot = made;
    return each_task(f, cell_intended);
}

static void cell_submitted(const struct fold *f, struct hg_run_cell *cell,
                           struct hg_submission *sub, uint32_t text)
{
    (void)text;
    if (cell->submission == sub->number &&
        (cell->state == HG_CELL_INTENDED || cell->state == HG_CELL_AMBIGUOUS))
        set_state(f->state, cell, HG_CELL_PENDING);
}

static int fold_submitted(const struct fold *f)
{
    struct hg_submission *sub = get_submission(f);

    if (!sub)
        return -1;
    sub->state = HG_SUB_SUBMITTED;
    sub->job_id = (uint32_t)get_number(f, "job");
    return each_task(f, cell_submitted);
}

static void cell_ambiguous(const struct fold *f, struct hg_run_cell *cell,
                           struct hg_submission *sub, uint32_t text)
{
    if (cell->submission != sub->number || cell->state != HG_CELL_INTENDED)
        return;
    set_state(f->state, cell, HG_CELL_AMBIGUOUS);
    cell->text = text;
}

static int fold_ambiguous(const struct fold *f)
{
    struct hg_submission *sub = get_submission(f);

    if (!sub)
        return -1;
    sub->state = HG_SUB_AMBIGUOUS;
    sub->until_s = json_number_value(json_object_get(f->record, "until"));
    return each_task(f, cell_ambiguous);
}

static void cell_rejected(const struct fold *f, struct hg_run_cell *cell, struct hg_submission *sub,
                          uint32_t text)
{
    if (cell->submission != sub->number || cell->state != HG_CELL_INTENDED)
        return;
    if (sub->claim == sub->number) /* no job ever had this claim */
        cell->claim = 0;
    set_waiting(f->state, cell);
    if (cell->state == HG_CELL_WAITING && !json_is_true(json_object_get(f->record, "again")))
        set_state(f->state, cell, HG_CELL_REFUSED);
    cell->text = text;
}

static int fold_rejected(const struct fold *f)
{
    struct hg_submission *sub = get_submission(f);

    if (!sub)
        return -1;
    sub->state = HG_SUB_REJECTED;
    return each_task(f, cell_rejected);
}

/* A job that was given up may turn up after all: its cells are its own again if no other job of
 * theirs has begun a new attempt. */
static void cell_found(const struct fold *f, struct hg_run_cell *cell, struct hg_submission *sub,
                       uint32_t text)
{
    (void)text;
    if (cell->claim != sub->claim ||
        !(cell->state == HG_CELL_WAITING ||
          (cell->submission == sub->number && cell->state < HG_CELL_PENDING)))
        return;
    cell->submission = sub->number;
    cell->text = 0;
    set_state(f->state, cell, HG_CELL_PENDING);
}

/* The claim stays with the cell: should the job come after all, only one of the two works. */
static void cell_absent(const struct fold *f, struct hg_run_cell *cell, struct hg_submission *sub,
                        uint32_t text)
{
    (void)text;
    if (cell->submission != sub->number || cell->state >= HG_CELL_PENDING)
        return;
    set_waiting(f->state, cell);
    cell->text = 0;
}

static int fold_settled(const struct fold *f)
{
    struct hg_submission *sub = get_submission(f);
    bool found = json_is_true(json_object_get(f->record, "found"));

    if (!sub)
        return -1;
    sub->state = found ? HG_SUB_SUBMITTED : HG_SUB_ABSENT;
    if (get_number(f, "job"))
        sub->job_id = (uint32_t)get_number(f, "job");
    return each_task(f, found ? cell_found : cell_absent);
}

/* Slurm's base state as one of ours. */
static enum hg_cell_state cell_state_of_slurm(const char *word)
{
    static const char *const running[] = { "RUNNING", "SUSPENDED" };

    if (strcmp(word, "PENDING") == 0)
        return HG_CELL_PENDING;
    for (size_t i = 0; i < sizeof running / sizeof *running; i++)
        if (strcmp(word, running[i]) == 0)
            return HG_CELL_RUNNING;
    return HG_CELL_ENDED;
}

static void cell_moved(const struct fold *f, struct hg_run_cell *cell, struct hg_submission *sub,
                       uint32_t text)
{
    enum hg_cell_state next = cell_state_of_slurm(get_text(f, "state"));

    if (cell->submission != sub->number || hg_cell_is_over(cell))
        return;
    set_state(f->state, cell, next);
    cell->restarts = (uint32_t)get_number(f, "restarts");
    cell->text = text;
    if (next != HG_CELL_PENDING || !hg_reason_is_hold(hg_run_text(f->state, cell)))
        cell->let_go = false;
}

static int fold_state(const struct fold *f)
{
    return each_task(f, cell_moved);
}

/* Results come from the cell's claim, whichever job wrote them. A good one is never replaced. */
static void cell_result(const struct fold *f, struct hg_run_cell *cell, struct hg_submission *sub,
                        uint32_t text)
{
    if (cell->state == HG_CELL_OK || cell->claim != sub->claim)
        return;
    set_state(f->state, cell, cell_state_of_status(get_text(f, "status")));
    cell->guessed = strcmp(get_text(f, "kind"), "verdict") == 0;
    if (get_number(f, "restarts"))
        cell->restarts = (uint32_t)get_number(f, "restarts");
    cell->text = text;
}

static int fold_result(const struct fold *f)
{
    return each_task(f, cell_result);
}

static void cell_lost(const struct fold *f, struct hg_run_cell *cell, struct hg_submission *sub,
                      uint32_t text)
{
    if (cell->submission != sub->number || hg_cell_is_over(cell))
        return;
    set_waiting(f->state, cell);
    if (cell->losses < UINT8_MAX)
        cell->losses++;
    cell->text = text;
}

static int fold_lost(const struct fold *f)
{
    return each_task(f, cell_lost);
}

static void cell_cancel(const struct fold *f, struct hg_run_cell *cell, struct hg_submission *sub,
                        uint32_t text)
{
    (void)sub;
    (void)text;
    if (hg_cell_is_over(cell) && cell->state != HG_CELL_REFUSED)
        return;
    cell->cancel = true;
    if (cell->state == HG_CELL_WAITING || cell->state == HG_CELL_REFUSED)
        set_state(f->state, cell, HG_CELL_CANCELLED);
}

static void cell_again(const struct fold *f, struct hg_run_cell *cell, struct hg_submission *sub,
                       uint32_t text)
{
    int cause = hg_retry_find(get_text(f, "cause"));
    struct hg_run_cell fresh = { .state = HG_CELL_WAITING, .held = cell->held };

    (void)sub;
    (void)text;
    if (!hg_cell_is_over(cell))
        return;
    if (cell->state == HG_CELL_REFUSED) { /* an earlier copy of it may still come */
        cell->cancel = false;
        set_state(f->state, cell, HG_CELL_WAITING);
        return;
    }
    set_state(f->state, cell, HG_CELL_WAITING);
    if (cause >= 0) {
        memcpy(fresh.retries, cell->retries, sizeof fresh.retries);
        fresh.retries[cause]++;
    }
    *cell = fresh;
}

static int fold_lines(const struct fold *f, cell_fn fn)
{
    return each_cell(f, (int)get_number(f, "batch"), 0, get_text(f, "lines"), NULL, fn);
}

static int fold_cancel(const struct fold *f)
{
    return fold_lines(f, cell_cancel);
}

static void cell_hold(const struct fold *f, struct hg_run_cell *cell, struct hg_submission *sub,
                      uint32_t text)
{
    (void)f;
    (void)sub;
    (void)text;
    cell->held = true;
    cell->let_go = false;
}

static void cell_release(const struct fold *f, struct hg_run_cell *cell, struct hg_submission *sub,
                         uint32_t text)
{
    (void)f;
    (void)sub;
    (void)text;
    cell->held = false;
    cell->let_go = cell->state >= HG_CELL_INTENDED && cell->state <= HG_CELL_PENDING;
}

/* Some cells, or all that are and will be. */
static int fold_held(const struct fold *f, bool held)
{
    if (json_object_get(f->record, "lines"))
        return fold_lines(f, held ? cell_hold : cell_release);
    f->state->held = held;
    for (size_t b = 0; b < f->state->batches.n; b++)
        for (size_t i = 0; i < f->state->batches.items[b].n; i++)
            (held ? cell_hold : cell_release)(f, &f->state->batches.items[b].cells[i], NULL, 0);
    return 0;
}

static int fold_hold(const struct fold *f)
{
    return fold_held(f, true);
}

static int fold_release(const struct fold *f)
{
    return fold_held(f, false);
}

static int fold_again(const struct fold *f)
{
    return fold_lines(f, cell_again);
}

static void cell_adopted(const struct fold *f, struct hg_run_cell *cell, struct hg_submission *sub,
                         uint32_t text)
{
    (void)sub;
    (void)text;
    if (cell->state == HG_CELL_WAITING)
        set_state(f->state, cell, HG_CELL_OK);
}

/* Good results of jobs that nobody here submitted. */
static int fold_adopted(const struct fold *f)
{
    return fold_lines(f, cell_adopted);
}

static int fold_nothing(const struct fold *f)
{
    (void)f;
    return 0;
}

static const struct {
    const char *kind;
    int (*fold)(const struct fold *f);
} kinds[] = {
    { "state", fold_state },       { "result", fold_result },       { "verdict", fold_result },
    { "intent", fold_intent },     { "submitted", fold_submitted }, { "ambiguous", fold_ambiguous },
    { "rejected", fold_rejected }, { "settled", fold_settled },     { "lost", fold_lost },
    { "cancel", fold_cancel },     { "again", fold_again },         { "plan", fold_plan },
    { "open", fold_open },         { "receipt", fold_nothing },     { "adopted", fold_adopted },
    { "hold", fold_hold },         { "release", fold_release },
};

static int fold_kind(const struct fold *f, const char *kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kind, kinds[i].kind) == 0)
            return kinds[i].fold(f);
    return hg_err_set(f->err, HG_E_INPUT, "unknown kind \"%.40s\"", kind);
}

int hg_run_state_apply(struct hg_run_state *state, const char *kind, json_t *members,
                       struct hg_err *err)
{
    struct fold f = { .state = state, .record = members, .t = state->last_t, .err = err };
    int rc = members ? fold_kind(&f, kind) : hg_err_oom(err);

    json_decref(members);
    return rc;
}

static int fold_record(struct hg_run_state *state, const json_t *record, struct hg_err *err)
{
    struct fold f = { .state = state, .record = record, .err = err };
    uint64_t seq = get_number(&f, "seq"), fence = get_number(&f, "fence");
    const json_t *rpc = json_object_get(record, "rpc");

    if (fence < state->fence) { /* its writer had been deposed and did not know it yet */
        state->deposed++;
        return 0;
    }
    if (seq != state->seq + 1)
        return hg_err_set(err, HG_E_INPUT, "line %" PRIu64 " follows line %" PRIu64, seq,
                          state->seq);
    f.t = json_number_value(json_object_get(record, "t"));
    if (!state->first_t)
        state->first_t = f.t;
    state->last_t = f.t;
    state->seq = seq;
    state->fence = (uint32_t)fence;
    state->submits += (unsigned)json_integer_value(json_array_get(rpc, 0));
    state->polls += (unsigned)json_integer_value(json_array_get(rpc, 1));
    state->cancels += (unsigned)json_integer_value(json_array_get(rpc, 2));
    return fold_kind(&f, get_text(&f, "kind"));
}

/* ---- Lines ---- */

/* A line's JSON when its checksum is right, else NULL. */
static json_t *decode_line(const char *line, size_t len)
{
    return hg_seal_holds(line, len) ? json_loadb(line, len, 0, NULL) : NULL;
}

bool hg_run_line_is_whole(const char *line, size_t len)
{
    json_t *record = decode_line(line, len);

    json_decref(record);
    return record != NULL;
}

static int line_error(const char *path, size_t line, struct hg_err *err)
{
    hg_err_at(err, path, NULL);
    if (err) {
        err->line = (int)line;
        err->column = 1;
    }
    return -1;
}

static int damaged(const char *path, size_t line, struct hg_err *err)
{
    hg_err_set(err, HG_E_INPUT, "the line is damaged: its checksum does not match");
    return line_error(path, line, err);
}

/* A write that was cut short leaves the front of a line. A whole line and something else that is
 * no newline is damage. */
static bool is_torn(const char *tail, size_t len)
{
    bool whole = len > 1 && hg_run_line_is_whole(tail, len - 1);

    return !whole && (!len || tail[0] == '{');
}

int hg_run_state_fold(struct hg_run_state *state, const char *path, const char *text, size_t len,
                      size_t *used, struct hg_err *err)
{
    size_t line = 0;

    *used = 0;
    while (*used < len) {
        const char *start = text + *used;
        const char *end = memchr(start, '\n', len - *used);
        json_t *record;
        int rc;

        line++;
        if (!end) {
            state->torn = is_torn(start, len - *used);
            return state->torn ? 0 : damaged(path, line, err);
        }
        record = decode_line(start, (size_t)(end - start));
        if (!record)
            return damaged(path, line, err);
        rc = fold_record(state, record, err);
        json_decref(record);
        if (rc < 0)
            return line_error(path, line, err);
        *used += (size_t)(end - start) + 1;
    }
    return 0;
}

static int load_file(struct hg_run_state *state, const char *path, size_t *used, struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;
    int rc;

    *used = 0;
    rc = hg_fs_read(path, JOURNAL_MAX, &text, err);
    if (rc == 0)
        rc = hg_run_state_fold(state, path, hg_buf_str(&text), text.len, used, err);
    hg_buf_done(&text);
    return rc;
}

struct hg_run_state *hg_run_state_load(const char *run_dir, struct hg_err *err)
{
    char *path = hg_fs_join(run_dir, "events.jsonl");
    struct hg_run_state *state = hg_run_state_create(err);
    size_t used;

    if (!path || !state || !hg_fs_exists(path)) {
        if (path && state)
            hg_err_set(err, HG_E_NOTFOUND, "nothing was submitted in %s yet", run_dir);
        hg_err_oom(err);
        goto fail;
    }
    if (load_file(state, path, &used, err) < 0)
        goto fail;
    free(path);
    return state;
fail:
    free(path);
    hg_run_state_free(state);
    return NULL;
}

/* ---- Writing ---- */

struct hg_journal {
    struct hg_run_state *state;
    char *path;
    int fd;
    uint32_t fence;
    uint64_t seq; /* of the last line queued */
    off_t size;   /* of the file */
    struct hg_buf queue;
    int (*guard)(void *context, struct hg_err *err);
    void *context;
    bool broken;
};

const struct hg_run_state *hg_journal_state(const struct hg_journal *j)
{
    return j->state;
}

bool hg_journal_is_empty(const struct hg_journal *j)
{
    return j->queue.len == 0;
}

void hg_journal_close(struct hg_journal *j)
{
    if (!j)
        return;
    if (j->fd >= 0)
        close(j->fd);
    hg_run_state_free(j->state);
    hg_buf_done(&j->queue);
    free(j->path);
    free(j);
}

static int open_file(struct hg_journal *j, const char *run_dir, struct hg_err *err)
{
    size_t used;

    j->fd = open(j->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (j->fd < 0)
        return hg_err_sys(err, "cannot write %s", j->path);
    if (load_file(j->state, j->path, &used, err) < 0)
        return -1;
    if (j->state->fence >= j->fence)
        return hg_err_set(err, HG_E_AGAIN, "the journal has seen lock %" PRIu32 " already",
                          j->state->fence);
    if (j->state->torn) {
        hg_warn("%s: the last line was cut short and is dropped", j->path);
        if (ftruncate(j->fd, (off_t)used) < 0 || fsync(j->fd) < 0)
            return hg_err_sys(err, "cannot repair %s", j->path);
        j->state->torn = false;
    }
    j->size = (off_t)used;
    j->seq = j->state->seq;
    return hg_fs_sync_dir(run_dir, err);
}

struct hg_journal *hg_journal_open(const char *run_dir, uint32_t fence,
                                   int (*guard)(void *context, struct hg_err *err), void *context,
                                   struct hg_err *err)
{
    struct hg_journal *j = calloc(1, sizeof *j);

    if (!j) {
        hg_err_oom(err);
        return NULL;
    }
    j->fd = -1;
    j->fence = fence;
    j->guard = guard;
    j->context = context;
    j->path = hg_fs_join(run_dir, "events.jsonl");
    j->state = hg_run_state_create(err);
    if (!j->path || !j->state || open_file(j, run_dir, err) < 0) {
        hg_err_oom(err);
        hg_journal_close(j);
        return NULL;
    }
    return j;
}

int hg_journal_add(struct hg_journal *j, double now_s, const char *kind, json_t *members,
                   struct hg_err *err)
{
    json_t *record = json_pack("{s:I,s:I,s:f,s:s}", "seq", (json_int_t)(j->seq + 1), "fence",
                               (json_int_t)j->fence, "t", round(now_s * 1000) / 1000, "kind", kind);
    int rc = -1;

    if (!record || !members || json_object_update(record, members) < 0)
        goto out;
    hg_seal_dump(record, HG_JSON_COMPACT, &j->queue);
    j->seq++;
    rc = 0;
out:
    json_decref(record);
    json_decref(members);
    return rc < 0 ? hg_err_oom(err) : 0;
}

/* The file must be as we left it: anything else means that two are writing. */
static int check_owner(struct hg_journal *j, struct hg_err *err)
{
    struct stat st;

    if (j->broken)
        return hg_err_set(err, HG_E_ENV, "%s could not be written before", j->path);
    if (j->guard && j->guard(j->context, err) < 0)
        return -1;
    if (fstat(j->fd, &st) < 0)
        return hg_err_sys(err, "cannot write %s", j->path);
    if (st.st_size != j->size || st.st_nlink == 0)
        return hg_err_set(err, HG_E_ENV, "%s was changed by somebody else", j->path);
    return 0;
}

static int write_queue(struct hg_journal *j, struct hg_err *err)
{
    if (check_owner(j, err) < 0)
        return -1;
    if (hg_fs_write_all(j->fd, j->queue.data, j->queue.len) < 0 || fsync(j->fd) < 0) {
        hg_err_sys(err, "cannot write %s", j->path);
        if (ftruncate(j->fd, j->size) < 0) /* a reader takes the rest for a torn line */
            j->broken = true;
        return -1;
    }
    j->size += (off_t)j->queue.len;
    return 0;
}

int hg_journal_commit(struct hg_journal *j, struct hg_err *err)
{
    size_t used;
    int rc = 0;

    if (j->queue.failed)
        rc = hg_err_oom(err);
    else if (j->queue.len)
        rc = write_queue(j, err);
    if (rc == 0 && j->queue.len)
        rc = hg_run_state_fold(j->state, j->path, j->queue.data, j->queue.len, &used, err);
    if (rc < 0)
        j->seq = j->state->seq;
    hg_buf_clear(&j->queue);
    return rc;
}
