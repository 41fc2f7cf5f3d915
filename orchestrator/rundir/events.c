/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/events.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/ranges.h"
#include "base/seal.h"
#include "base/vec.h"
#include "rundir/reasons.h"

#define JOURNAL_MAX ((size_t)1 << 30)
#define BATCHES_MAX 1000000
#define CELLS_MAX 100000000

/* A record while it is folded. */
struct fold {
    struct hg_run_state *state;
    const json_t *record;
    const char *kind;
    double t;
    struct hg_submission *sub; /* that the record is about; NULL: none */
    uint32_t text;             /* index of the record's text, for its cells */
    struct hg_err *err;
};

typedef void (*cell_fn)(const struct fold *f, struct hg_run_cell *cell);

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

/* The index of a text, which is kept once. Most cells of a poll share theirs, so only the newest ones are compared. */
static uint32_t intern(struct hg_run_state *s, const char *text)
{
    if (!*text)
        return 0;
    for (size_t i = s->texts.n, looked = 0; i > 1 && looked < 64; i--, looked++)
        if (strcmp(s->texts.items[i - 1], text) == 0)
            return (uint32_t)(i - 1);
    *HG_VEC_PUSH(&s->texts) = hg_strdup(text);
    return (uint32_t)(s->texts.n - 1);
}

static void set_state(struct hg_run_state *s, struct hg_run_cell *cell, enum hg_cell_state state)
{
    s->counts[cell->state]--;
    s->counts[state]++;
    cell->state = (uint8_t)state;
}

/* Back to the start, unless a person requested to cancel it, or the matrix has it no more. */
static void set_waiting(struct hg_run_state *s, struct hg_run_cell *cell)
{
    set_state(s, cell,
              cell->cancel    ? HG_CELL_CANCELLED
              : cell->removed ? HG_CELL_REMOVED
                              : HG_CELL_WAITING);
    cell->restarts = 0;
}

/* A cell that the matrix has no more is not one that failed. If it comes back, it runs again with a claim of its own. */
static void end_removed(struct hg_run_state *s, struct hg_run_cell *cell)
{
    if (!cell->removed || !hg_cell_is_bad(cell))
        return;
    set_state(s, cell, HG_CELL_REMOVED);
    cell->claim = 0;
    cell->guessed = false;
}

/* Call fn for every cell of an index set, all of which must exist. */
static int each_cell(struct fold *f, int batch, uint32_t offset, const char *set, cell_fn fn)
{
    struct hg_ranges ranges = HG_RANGES_INIT;
    int rc = 0;

    f->text = intern(f->state, get_text(f, "text"));
    if (hg_ranges_parse(set, UINT32_MAX - 1, &ranges, f->err) < 0)
        return -1;
    for (size_t i = 0; i < ranges.n && rc == 0; i++) {
        for (uint64_t k = ranges.items[i].first; k <= ranges.items[i].last && rc == 0; k++) {
            struct hg_run_cell *cell =
                k + offset < UINT32_MAX ? hg_run_cell_find(f->state, batch, (uint32_t)(k + offset))
                                        : NULL;

            if (cell)
                fn(f, cell);
            else
                rc = contradiction(f, "a cell outside its batch");
        }
    }
    hg_ranges_done(&ranges);
    return rc;
}

/* The record's tasks of its submission; without "tasks" all of them. */
static int each_task(struct fold *f, cell_fn fn)
{
    const char *tasks = get_text(f, "tasks");

    return each_cell(f, f->sub->batch, f->sub->offset, *tasks ? tasks : f->sub->tasks, fn);
}

static int each_line(struct fold *f, cell_fn fn)
{
    return each_cell(f, (int)get_number(f, "batch"), 0, get_text(f, "lines"), fn);
}

/* ---- The kinds of records ---- */

static int fold_open(struct fold *f)
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
    if (n < batch->n || n > CELLS_MAX)
        return contradiction(f, "a batch shrinks");
    if (n == batch->n)
        return 0;
    batch->cells = hg_realloc(batch->cells, n * sizeof *batch->cells);
    memset(batch->cells + batch->n, 0, (n - batch->n) * sizeof *batch->cells);
    for (size_t i = batch->n; i < n; i++)
        batch->cells[i].held = f->state->held;
    f->state->counts[HG_CELL_WAITING] += n - batch->n;
    f->state->cells += n - batch->n;
    batch->n = n;
    return 0;
}

static void cell_spare(const struct fold *f, struct hg_run_cell *cell)
{
    if (cell->state == HG_CELL_WAITING)
        set_state(f->state, cell, HG_CELL_UNNEEDED);
}

/* What has a good result keeps it, what runs goes on. A cell that comes back keeps its claim as long as a copy of it may
 * appear. */
static void mark_removed(struct hg_run_state *s, struct hg_run_cell *cell, bool removed)
{
    if (cell->removed == removed)
        return;
    cell->removed = removed;
    if (!removed && cell->state == HG_CELL_REMOVED)
        set_waiting(s, cell);
    else if (removed && (cell->state == HG_CELL_WAITING || cell->state >= HG_CELL_REFUSED))
        set_state(s, cell, HG_CELL_REMOVED);
    else if (removed)
        end_removed(s, cell);
}

/* The lines of one batch that the matrix has no more, out of all that it has. */
static int fold_removed(struct fold *f, struct hg_run_batch *batch, const char *lines)
{
    struct hg_ranges set = HG_RANGES_INIT;
    size_t at = 0;

    if (hg_ranges_parse(lines ? lines : "", UINT32_MAX - 1, &set, f->err) < 0)
        return -1;
    for (size_t i = 0; i < batch->n; i++) {
        while (at < set.n && set.items[at].last < i)
            at++;
        mark_removed(f->state, &batch->cells[i], at < set.n && set.items[at].first <= i);
    }
    hg_ranges_done(&set);
    return 0;
}

static int fold_plan(struct fold *f)
{
    const json_t *list = json_object_get(f->record, "batches"), *count;
    const json_t *spare = json_object_get(f->record, "spare"), *lines;
    const json_t *removed = json_object_get(f->record, "removed");
    size_t i;

    if (json_array_size(list) > BATCHES_MAX)
        return contradiction(f, "too many batches");
    json_array_foreach(list, i, count) {
        json_int_t n = json_integer_value(count);

        if (i == f->state->batches.n)
            *HG_VEC_PUSH(&f->state->batches) = (struct hg_run_batch){ 0 };
        if (grow_batch(f, &f->state->batches.items[i], n > 0 ? (size_t)n : 0) < 0)
            return -1;
    }
    json_array_foreach(removed, i, lines)
        if (i < f->state->batches.n &&
            fold_removed(f, &f->state->batches.items[i], json_string_value(lines)) < 0)
            return -1;
    json_array_foreach(spare, i, lines)
        if (json_string_length(lines) &&
            each_cell(f, (int)i + 1, 0, json_string_value(lines), cell_spare) < 0)
            return -1;
    return 0;
}

static void cell_need(const struct fold *f, struct hg_run_cell *cell)
{
    if (cell->state == HG_CELL_UNNEEDED && !cell->cancel)
        set_state(f->state, cell, HG_CELL_WAITING);
}

static void cell_intended(const struct fold *f, struct hg_run_cell *cell)
{
    set_state(f->state, cell, HG_CELL_INTENDED);
    cell->submission = f->sub->number;
    cell->claim = f->sub->claim;
    cell->restarts = 0;
    cell->text = 0;
    cell->let_go = false;
}

static int fold_intent(struct fold *f)
{
    struct hg_ranges set = HG_RANGES_INIT;
    struct hg_submission made = {
        .number = (uint32_t)get_number(f, "submission"),
        .claim = (uint32_t)get_number(f, "claim"),
        .batch = (int)get_number(f, "batch"),
        .offset = (uint32_t)get_number(f, "offset"),
        .together =
            json_object_get(f->record, "together") ? (uint32_t)get_number(f, "together") : 1,
        .running_max = (uint32_t)get_number(f, "running_max"),
        .time_s = (double)get_number(f, "time_s"),
        .t = f->t,
        .until_s = json_number_value(json_object_get(f->record, "until")),
    };

    if (made.number != f->state->submissions.n + 1 || !made.claim || !made.together)
        return contradiction(f, "submission numbers");
    if (hg_ranges_parse(get_text(f, "tasks"), UINT32_MAX - 1, &set, f->err) < 0)
        return -1;
    made.n_tasks = (uint32_t)hg_ranges_count(&set);
    hg_ranges_done(&set);
    snprintf(made.key, sizeof made.key, "%s", get_text(f, "key"));
    snprintf(made.request, sizeof made.request, "%s", get_text(f, "request"));
    made.tasks = hg_strdup(get_text(f, "tasks"));
    f->sub = HG_VEC_PUSH(&f->state->submissions);
    *f->sub = made;
    return each_task(f, cell_intended);
}

static void cell_submitted(const struct fold *f, struct hg_run_cell *cell)
{
    if (cell->submission == f->sub->number &&
        (cell->state == HG_CELL_INTENDED || cell->state == HG_CELL_AMBIGUOUS))
        set_state(f->state, cell, HG_CELL_PENDING);
}

static int fold_submitted(struct fold *f)
{
    f->sub->state = HG_SUB_SUBMITTED;
    f->sub->job_id = (uint32_t)get_number(f, "job");
    return each_task(f, cell_submitted);
}

static void cell_ambiguous(const struct fold *f, struct hg_run_cell *cell)
{
    if (cell->submission != f->sub->number || cell->state != HG_CELL_INTENDED)
        return;
    set_state(f->state, cell, HG_CELL_AMBIGUOUS);
    cell->text = f->text;
}

static int fold_ambiguous(struct fold *f)
{
    f->sub->state = HG_SUB_AMBIGUOUS;
    f->sub->until_s = json_number_value(json_object_get(f->record, "until"));
    return each_task(f, cell_ambiguous);
}

static void cell_rejected(const struct fold *f, struct hg_run_cell *cell)
{
    if (cell->submission != f->sub->number || cell->state != HG_CELL_INTENDED)
        return;
    if (f->sub->claim == f->sub->number) /* no job ever had this claim */
        cell->claim = 0;
    set_waiting(f->state, cell);
    if (cell->state == HG_CELL_WAITING && !json_is_true(json_object_get(f->record, "again")))
        set_state(f->state, cell, HG_CELL_REFUSED);
    cell->text = f->text;
}

static int fold_rejected(struct fold *f)
{
    f->sub->state = HG_SUB_REJECTED;
    return each_task(f, cell_rejected);
}

/* A job that was given up may appear after all: its cells belong to it again unless another job has
 * begun a new attempt of theirs. */
static void cell_found(const struct fold *f, struct hg_run_cell *cell)
{
    if (cell->claim != f->sub->claim ||
        !(cell->state == HG_CELL_WAITING ||
          (cell->submission == f->sub->number && cell->state < HG_CELL_PENDING)))
        return;
    cell->submission = f->sub->number;
    cell->text = 0;
    set_state(f->state, cell, HG_CELL_PENDING);
}

/* The claim stays with the cell: if the job appears after all, only one of the two runs it. */
static void cell_absent(const struct fold *f, struct hg_run_cell *cell)
{
    if (cell->submission != f->sub->number || cell->state >= HG_CELL_PENDING)
        return;
    set_waiting(f->state, cell);
    cell->text = 0;
}

static int fold_settled(struct fold *f)
{
    bool found = json_is_true(json_object_get(f->record, "found"));

    f->sub->state = found ? HG_SUB_SUBMITTED : HG_SUB_ABSENT;
    if (get_number(f, "job"))
        f->sub->job_id = (uint32_t)get_number(f, "job");
    return each_task(f, found ? cell_found : cell_absent);
}

/* The state for Slurm's base state. */
static enum hg_cell_state cell_state_of_slurm(const char *word)
{
    if (strcmp(word, "PENDING") == 0)
        return HG_CELL_PENDING;
    return strcmp(word, "RUNNING") == 0 || strcmp(word, "SUSPENDED") == 0 ? HG_CELL_RUNNING
                                                                          : HG_CELL_ENDED;
}

static void cell_moved(const struct fold *f, struct hg_run_cell *cell)
{
    enum hg_cell_state next = cell_state_of_slurm(get_text(f, "state"));

    if (cell->submission != f->sub->number || hg_cell_is_over(cell))
        return;
    if (next == HG_CELL_RUNNING && get_number(f, "start"))
        cell->start_s = (double)get_number(f, "start");
    else if (next == HG_CELL_RUNNING &&
             (cell->state != next || cell->restarts != get_number(f, "restarts")))
        cell->start_s = f->t;
    set_state(f->state, cell, next);
    cell->restarts = (uint32_t)get_number(f, "restarts");
    cell->text = f->text;
    if (next != HG_CELL_PENDING || !hg_reason_is_hold(hg_run_text(f->state, cell)))
        cell->let_go = false;
}

/* The state for the status word of a result or verdict; FAILED for an unknown word. */
static enum hg_cell_state cell_state_of_status(const char *status)
{
    for (int s = HG_CELL_OK; s < HG_CELL_STATES; s++)
        if (strcmp(status, hg_cell_state_names[s]) == 0)
            return (enum hg_cell_state)s;
    return HG_CELL_FAILED;
}

/* Results come from the cell's claim, whichever job wrote them. A good one is never replaced. */
static void cell_result(const struct fold *f, struct hg_run_cell *cell)
{
    if (cell->state == HG_CELL_OK || cell->claim != f->sub->claim)
        return;
    set_state(f->state, cell, cell_state_of_status(get_text(f, "status")));
    cell->end_s = f->t;
    cell->guessed = strcmp(f->kind, "verdict") == 0;
    if (get_number(f, "restarts"))
        cell->restarts = (uint32_t)get_number(f, "restarts");
    cell->text = f->text;
    end_removed(f->state, cell);
}

/* "lost" and "recalled": the next one gets the same claim, so of the two copies only one works. */
static void cell_lost(const struct fold *f, struct hg_run_cell *cell)
{
    if (cell->submission != f->sub->number || hg_cell_is_over(cell))
        return;
    set_waiting(f->state, cell);
    if (cell->losses < UINT8_MAX && strcmp(f->kind, "lost") == 0)
        cell->losses++;
    cell->text = f->text;
}

static void cell_cancel(const struct fold *f, struct hg_run_cell *cell)
{
    if (hg_cell_is_over(cell) && cell->state < HG_CELL_REFUSED)
        return;
    cell->cancel = true;
    if (cell->state == HG_CELL_WAITING || cell->state == HG_CELL_REFUSED)
        set_state(f->state, cell, HG_CELL_CANCELLED);
}

static void cell_again(const struct fold *f, struct hg_run_cell *cell)
{
    int cause = hg_retry_find(get_text(f, "cause"));
    struct hg_run_cell fresh = { .state = HG_CELL_WAITING, .held = cell->held };

    if (!hg_cell_is_over(cell) || cell->removed)
        return;
    if (cell->state == HG_CELL_REFUSED) { /* an earlier copy of it may still start */
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

static void cell_hold(const struct fold *f, struct hg_run_cell *cell)
{
    (void)f;
    cell->held = true;
    cell->let_go = false;
}

static void cell_release(const struct fold *f, struct hg_run_cell *cell)
{
    (void)f;
    cell->held = false;
    cell->let_go = cell->state >= HG_CELL_INTENDED && cell->state <= HG_CELL_PENDING;
}

/* Some cells; or all that are there and will be added. */
static int fold_held(struct fold *f)
{
    bool held = strcmp(f->kind, "hold") == 0;
    cell_fn fn = held ? cell_hold : cell_release;

    if (json_object_get(f->record, "lines"))
        return each_line(f, fn);
    f->state->held = held;
    for (size_t b = 0; b < f->state->batches.n; b++)
        for (size_t i = 0; i < f->state->batches.items[b].n; i++)
            fn(f, &f->state->batches.items[b].cells[i]);
    return 0;
}

static void cell_adopted(const struct fold *f, struct hg_run_cell *cell)
{
    if (cell->state == HG_CELL_WAITING)
        set_state(f->state, cell, HG_CELL_OK);
}

/* ---- Folding ---- */

static const struct kind {
    const char *name;
    bool of_submission;          /* f->sub is the record's submission */
    int (*fold)(struct fold *f); /* NULL: nothing to do but for the cells */
    cell_fn cell; /* for each of the submission's tasks, or of the record's lines; NULL: nothing */
} kinds[] = {
    { "state", true, NULL, cell_moved },         { "result", true, NULL, cell_result },
    { "verdict", true, NULL, cell_result },      { "intent", false, fold_intent, NULL },
    { "submitted", true, fold_submitted, NULL }, { "ambiguous", true, fold_ambiguous, NULL },
    { "rejected", true, fold_rejected, NULL },   { "settled", true, fold_settled, NULL },
    { "lost", true, NULL, cell_lost },           { "cancel", false, NULL, cell_cancel },
    { "again", false, NULL, cell_again },        { "plan", false, fold_plan, NULL },
    { "open", false, fold_open, NULL },          { "receipt", false, NULL, NULL },
    { "adopted", false, NULL, cell_adopted },    { "hold", false, fold_held, NULL },
    { "release", false, fold_held, NULL },       { "need", false, NULL, cell_need },
    { "recalled", true, NULL, cell_lost },
};

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(name, kinds[i].name) == 0)
            return &kinds[i];
    return NULL;
}

static int find_submission(struct fold *f)
{
    uint64_t number = get_number(f, "submission");

    if (number < 1 || number > f->state->submissions.n)
        return contradiction(f, "unknown submission");
    f->sub = &f->state->submissions.items[number - 1];
    return 0;
}

static int fold_kind(struct fold *f)
{
    const struct kind *kind = find_kind(f->kind);

    if (!kind)
        return hg_err_set(f->err, HG_E_INPUT, "unknown kind \"%.40s\"", f->kind);
    if (kind->of_submission && find_submission(f) < 0)
        return -1;
    if (kind->fold)
        return kind->fold(f);
    if (!kind->cell)
        return 0;
    return kind->of_submission ? each_task(f, kind->cell) : each_line(f, kind->cell);
}

int hg_run_state_apply(struct hg_run_state *state, const char *kind, json_t *members,
                       struct hg_err *err)
{
    struct fold f = {
        .state = state, .record = members, .kind = kind, .t = state->last_t, .err = err
    };
    int rc = members
                 ? fold_kind(&f)
                 : hg_err_set(err, HG_E_BUG, "a record \"%s\" holds text that is not UTF-8", kind);

    json_decref(members);
    return rc;
}

/* The next record of the journal. */
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
    f.kind = get_text(&f, "kind");
    return fold_kind(&f);
}

/* ---- One line ---- */

/* A line's JSON if its checksum is right, else NULL. */
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

/* ---- All of them ---- */

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

/* A write that was cut short leaves the first part of a line. A whole line followed by something other than
 * a newline is damage. */
static bool is_torn(const char *tail, size_t len)
{
    bool whole = len > 1 && hg_run_line_is_whole(tail, len - 1);

    return !whole && (!len || tail[0] == '{');
}

int hg_run_state_fold(struct hg_run_state *state, const char *path, const char *text, size_t len,
                      size_t *used, struct hg_err *err)
{
    size_t line = state->seq + state->deposed; /* those folded before */

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

int hg_run_state_read(struct hg_run_state *state, const char *path, size_t *used,
                      struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;
    int rc = hg_fs_read(path, JOURNAL_MAX, &text, err);

    *used = 0;
    if (rc == 0)
        rc = hg_run_state_fold(state, path, hg_buf_str(&text), text.len, used, err);
    hg_buf_done(&text);
    return rc;
}

struct hg_run_state *hg_run_state_load(const char *run_dir, struct hg_err *err)
{
    char *path = hg_fs_join(run_dir, "events.jsonl");
    struct hg_run_state *state = hg_run_state_create();
    size_t used;
    int rc;

    if (hg_fs_exists(path))
        rc = hg_run_state_read(state, path, &used, err);
    else
        rc = hg_err_set(err, HG_E_NOTFOUND, "nothing was submitted in %s yet", run_dir);
    free(path);
    if (rc == 0)
        return state;
    hg_run_state_free(state);
    return NULL;
}

int hg_run_state_follow(const char *run_dir, struct hg_run_state **state, size_t *used,
                        struct hg_err *err)
{
    char *path = hg_fs_join(run_dir, "events.jsonl");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct hg_buf text = HG_BUF_INIT;
    size_t more = 0;
    int rc;

    if (*state && fd >= 0 && lseek(fd, 0, SEEK_END) < (off_t)*used) { /* it was replaced */
        hg_run_state_free(*state);
        *state = NULL;
    }
    if (!*state) {
        *state = hg_run_state_create();
        *used = 0;
    }
    if (fd < 0 || lseek(fd, (off_t)*used, SEEK_SET) < 0)
        rc = hg_err_sys(err, "cannot read %s", path);
    else
        rc = hg_fs_read_open(fd, path, JOURNAL_MAX, &text, err);
    if (rc == 0)
        rc = hg_run_state_fold(*state, path, hg_buf_str(&text), text.len, &more, err);
    *used += more;
    hg_buf_done(&text);
    free(path);
    return rc;
}
