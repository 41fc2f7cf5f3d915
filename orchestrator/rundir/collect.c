/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/jsonmem.h"
#include "base/jsonpool.h"
#include "base/vec.h"
#include "results/result.h"
#include "plan/cells.h"
#include "plan/files.h"
#include "rundir/attempt.h"
#include "rundir/outcome.h"

/* exec adds to what the workload wrote, so its file may be somewhat larger. */
#define RESULT_FILE_MAX (2 * HG_RESULT_MAX)

/* ---- One result ---- */

static bool is_status(const char *word)
{
    static const char *const words[] = {
        "ok", "failed", "timeout", "oom", "cancelled", "node_fail"
    };

    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

static int expect(const json_t *result, const char *key, const char *wanted, struct hg_err *err)
{
    const char *is = json_string_value(json_object_get(result, key));

    if (!wanted || (is && strcmp(is, wanted) == 0))
        return 0;
    return hg_err_set(err, HG_E_INPUT, "its \"%s\" is \"%s\", wanted \"%s\"", key, is ? is : "",
                      wanted);
}

/* Does this result belong here? */
static int check_place(const json_t *result, const char *run_key, const char *id, const char *name,
                       struct hg_err *err)
{
    if (expect(result, "schema", HG_RESULT_SCHEMA, err) < 0 ||
        expect(result, "run_key", run_key, err) < 0 || expect(result, "id", id, err) < 0 ||
        expect(result, "attempt", name, err) < 0)
        return -1;
    if (!is_status(json_string_value(json_object_get(result, "status"))))
        return hg_err_set(err, HG_E_INPUT, "its \"status\" is none");
    return 0;
}

/* The same, and is it whole and as exec wrote it? */
static int check_result(const json_t *result, const char *run_key, const char *id, const char *name,
                        const json_t *cell, struct hg_err *err)
{
    char sum[9];

    if (check_place(result, run_key, id, name, err) < 0)
        return -1;
    if (hg_outcome_checksum(result, sum) < 0)
        return hg_err_oom(err);
    if (expect(result, "crc32c", sum, err) < 0)
        return hg_err_wrap(err, "it was changed after it was written");
    if (cell && !hg_json_equal(cell, json_object_get(result, "cell")))
        return hg_err_set(err, HG_E_INPUT, "it is of another cell");
    return 0;
}

/* What reading needs again and again. */
struct room {
    struct hg_buf text, part, rest, cell;
    struct hg_json_canonical canonical;
};

static void room_done(struct room *room)
{
    hg_buf_done(&room->text);
    hg_buf_done(&room->part);
    hg_buf_done(&room->rest);
    hg_buf_done(&room->cell);
    hg_json_canonical_done(&room->canonical);
}

static bool is_value(const struct room *room, const char *name, const struct hg_buf *wanted)
{
    const struct hg_json_member *m = hg_json_canonical_find(&room->canonical, name);

    return m && m->end - m->value == wanted->len &&
           memcmp(room->canonical.text.data + m->value, wanted->data, wanted->len) == 0;
}

/* Is the checksum of the text in order, and the cell the planned one? */
static bool is_as_written(struct room *room, const json_t *cell)
{
    char sum[9];

    if (!hg_json_canonical_read(&room->canonical, hg_buf_str(&room->text), room->text.len))
        return false;
    hg_outcome_checksum_text(&room->canonical, sum);
    hg_buf_clear(&room->part);
    hg_buf_printf(&room->part, "\"%s\"", sum);
    hg_buf_clear(&room->cell);
    hg_json_dump(cell, HG_JSON_COMPACT | HG_JSON_SORT, &room->cell);
    return !room->part.failed && !room->cell.failed && is_value(room, "crc32c", &room->part) &&
           is_value(room, "cell", &room->cell);
}

static int compare_places(const void *a, const void *b)
{
    const struct hg_json_member *m = a, *n = b;

    return (m->from > n->from) - (m->from < n->from);
}

/* What is left in the text of a result that is as exec wrote it. */
struct skim {
    const char *text; /* lent by the room; NULL: the tree has all but the loss curve */
    char *loss_file;  /* the file, if it has a loss curve */
};

static bool is_word(const char *const *words, const char *name, size_t len)
{
    while (*words && (strlen(*words) != len || memcmp(*words, name, len) != 0))
        words++;
    return *words != NULL;
}

/* The loss curve is long, and the cell is known. */
static bool is_small(const char *name, size_t len)
{
    static const char *const left_out[] = { "cell", "loss", NULL };

    return !is_word(left_out, name, len);
}

static bool is_of_place(const char *name, size_t len)
{
    static const char *const words[] = { "schema", "run_key", "id", "attempt", NULL };

    return is_word(words, name, len);
}

static bool is_looked_at(const char *name, size_t len)
{
    return is_of_place(name, len) || hg_result_looks_at(name, len);
}

/* Those that stand in an entry anyway are not among them. */
static bool is_told(const char *name, size_t len)
{
    static const char *const known[] = { "crc32c", "baseline_id", "added", "attempt_in", NULL };

    return is_small(name, len) && !is_of_place(name, len) && !is_word(known, name, len);
}

/* The wanted members as the text of an object, in the order of the file. */
static void copy_members(const struct room *room, bool (*wanted)(const char *name, size_t len),
                         struct hg_buf *out)
{
    const struct hg_json_canonical *c = &room->canonical;

    hg_buf_clear(out);
    hg_buf_puts(out, "{");
    for (size_t i = 0; i < c->n; i++) {
        const struct hg_json_member *m = &c->items[i];

        if (!wanted(c->text.data + m->name, m->name_len))
            continue;
        hg_buf_puts(out, out->len > 1 ? "," : "");
        hg_buf_append(out, room->text.data + m->from, m->to - m->from);
    }
    hg_buf_puts(out, "}");
}

static bool is_plain(const struct hg_json_canonical *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct hg_json_member *m = &c->items[i];
        const char *name = c->text.data + m->name;

        if (is_told(name, m->name_len) &&
            !hg_result_member_is_plain(name, m->name_len, c->text.data + m->value))
            return false;
    }
    return true;
}

/* A result that is as exec wrote it: what is looked at as a tree, all else as text where nothing can be wrong with it. NULL: it is not,
 * and has to be looked at closely. */
static json_t *skim_result(struct room *room, const json_t *cell, struct skim *skim)
{
    struct hg_json_canonical *c = &room->canonical;
    bool plain, short_of_memory;
    json_t *tree;

    if (!is_as_written(room, cell))
        return NULL;
    plain = is_plain(c);
    qsort(c->items, c->n, sizeof *c->items, compare_places);
    copy_members(room, plain ? is_looked_at : is_small, &room->part);
    if (plain)
        copy_members(room, is_told, &room->rest);
    if (room->part.failed || room->rest.failed)
        return NULL;
    skim->text = plain ? room->rest.data : NULL;
    tree = hg_json_parse_fresh(room->part.data, room->part.len);
    return tree ? tree : hg_json_read(room->part.data, room->part.len, 0, NULL, &short_of_memory);
}

/* Judge the text in room. cell: as planned, NULL: not compared. skim, if it is not NULL, gets what may be left out of the tree. */
static json_t *judge_text(const struct hg_attempt_files *f, const char *path, const char *run_key,
                          const json_t *cell, struct room *room, struct skim *skim,
                          struct hg_err *err)
{
    json_t *result = skim ? skim_result(room, cell, skim) : NULL;
    bool diverged = false, skimmed = result != NULL;
    char name[HG_ATTEMPT_NAME_MAX];

    hg_attempt_name(f->submission, f->restarts, name);
    if (!skimmed)
        result = hg_outcome_parse(path, hg_buf_str(&room->text), room->text.len, &diverged, err);
    if (result && (skimmed ? check_place(result, run_key, f->id, name, err)
                           : check_result(result, run_key, f->id, name, cell, err)) < 0) {
        json_decref(result);
        result = NULL;
    }
    if (result && skimmed && hg_json_canonical_find(&room->canonical, "loss"))
        skim->loss_file = strdup(path);
    return result;
}

/* Read and judge one result.json. *none: the file is absent; may be NULL, and then that is an error. A new reference, or NULL
 * with err saying what is wrong with it. */
static json_t *read_result(const struct hg_attempt_group *g, struct hg_attempt_files *f,
                           const char *run_key, const json_t *cell, struct room *room,
                           struct skim *skim, bool *none, struct hg_err *err)
{
    char *path = hg_attempt_path(g, f, "result.json");
    size_t shortages = hg_json_shortages();
    json_t *result = NULL;
    int rc = -1;

    hg_buf_clear(&room->text);
    if (!path)
        hg_err_oom(err);
    else
        rc = hg_attempt_read_result(g, f, RESULT_FILE_MAX, &room->text, err);
    if (none)
        *none = rc == HG_ATTEMPT_NONE;
    if (rc == 0)
        result = judge_text(f, path, run_key, cell, room, skim, err);
    else if (rc == HG_ATTEMPT_NONE && !none)
        hg_err_set(err, HG_E_INPUT, "the file is absent");
    if (!result && hg_json_shortages() != shortages) { /* whatever was said of it */
        *err = (struct hg_err)HG_ERR_INIT;
        hg_err_oom(err);
    }
    if (!result && err && err->code)
        hg_err_wrap(err, "%s", path ? path : f->id);
    free(path);
    return result;
}

json_t *hg_collect_result(const struct hg_attempt_group *g, struct hg_attempt_files *files,
                          const char *run_key, const json_t *cell, struct hg_err *err)
{
    struct room room = { 0 };
    json_t *result = read_result(g, files, run_key, cell, &room, NULL, NULL, err);

    room_done(&room);
    return result;
}

int hg_collect_status(const struct hg_attempt_group *g, struct hg_attempt_files *files,
                      const char *run_key, const json_t *cell, char status[static 16],
                      struct hg_err *err)
{
    struct room room = { 0 };
    struct skim skim = { 0 };
    json_t *result = read_result(g, files, run_key, cell, &room, &skim, NULL, err);
    int rc = result ? 0 : -1;

    if (result)
        snprintf(status, 16, "%s", json_string_value(json_object_get(result, "status")));
    json_decref(result);
    free(skim.loss_file);
    room_done(&room);
    return rc;
}

/* ---- One cell, for the driver ---- */

static void take_result(const json_t *result, struct hg_attempt *a)
{
    const char *message =
        json_string_value(json_object_get(json_object_get(result, "error"), "message"));

    a->done = true;
    snprintf(a->status, sizeof a->status, "%s",
             json_string_value(json_object_get(result, "status")));
    snprintf(a->error, sizeof a->error, "%s", message ? message : "");
    a->wall_s = json_number_value(json_object_get(result, "wall_s"));
}

/* ended: it has a result that nobody writes again. */
static void take_claim(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                       bool ended, struct hg_attempt *a)
{
    char *dir = hg_attempt_path(g, f, "");

    a->open = dir && hg_claim_read(dir, &a->claim) && !a->claim.taken && !ended;
    a->left = a->claim.left;
    free(dir);
}

static int take_attempt(const struct hg_attempt_group *g, struct hg_attempt_files *f,
                        const char *run_key, struct hg_attempt *a, struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;
    struct room room = { 0 };
    bool none;
    json_t *result = read_result(g, f, run_key, NULL, &room, NULL, &none, &why);

    *a = (struct hg_attempt){ .submission = f->submission,
                              .restarts = f->restarts,
                              .claimed = f->claim || f->result };
    if (result)
        take_result(result, a);
    else
        snprintf(a->error, sizeof a->error, "%.255s", why.text);
    if (!g->quick && (!result || strcmp(a->status, "ok") != 0))
        take_claim(g, f, f->result && !json_is_true(json_object_get(result, "ending")), a);
    room_done(&room);
    json_decref(result);
    return why.memory ? hg_err_oom(err) : 0;
}

static bool is_ok(const struct hg_attempt *a)
{
    return a->done && strcmp(a->status, "ok") == 0;
}

static bool is_better(const struct hg_attempt *a, const struct hg_attempt *than)
{
    bool ok = is_ok(a), than_ok = is_ok(than);

    if (ok != than_ok)
        return ok;
    if (a->done != than->done)
        return a->done;
    if (a->claimed != than->claimed)
        return a->claimed;
    return true; /* they come oldest first */
}

int hg_attempt_find(struct hg_attempt_group *g, int batch, size_t line, const char *cell_id,
                    unsigned submission, const char *run_key, struct hg_attempt *a,
                    struct hg_err *err)
{
    struct hg_attempt_list list;
    struct hg_claim claim = { 0 };
    bool open = false, left = false;
    int rc = hg_attempt_list(g, batch, line, cell_id, &list, err);

    *a = (struct hg_attempt){ 0 };
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        struct hg_attempt other;

        rc = take_attempt(g, &list.items[i], run_key, &other, err);
        left = other.claimed ? other.left : left;
        if (rc == 0 && other.open) { /* the newest */
            open = true;
            claim = other.claim;
        }
        if (rc == 0 && (!submission || list.items[i].submission == submission || is_ok(&other)) &&
            is_better(&other, a))
            *a = other;
    }
    a->open = open;
    a->claim = claim;
    a->left = left;
    for (size_t i = 0; rc == 0 && i < list.n; i++)
        a->superseded |= (list.items[i].claim || list.items[i].result) &&
                         list.items[i].submission == a->submission &&
                         list.items[i].restarts > a->restarts;
    return rc;
}

/* ---- The whole run ---- */

struct collect {
    struct hg_attempt_group group; /* of the run */
    const char *run_key;
    hg_verdict_fn verdict;
    void *context;
    int batch;
    hg_collect_fn take;
    void *take_context;
    bool whole; /* with loss curves */
    struct room room;
    struct hg_collect_count *count;
    struct hg_err *err;
};

/* An entry with what the plan says of the cell. */
static json_t *new_entry(const struct collect *c, const json_t *line,
                         const struct hg_attempt_files *f)
{
    json_t *entry = json_object();
    char name[HG_ATTEMPT_NAME_MAX], group[HG_GROUP_NAME_MAX];

    json_object_set(entry, "id", json_object_get(line, "id"));
    json_object_set(entry, "cell", json_object_get(line, "cell"));
    json_object_set(entry, "baseline_id", json_object_get(line, "baseline"));
    json_object_set(entry, "added", json_object_get(line, "added"));
    if (f)
        hg_attempt_name(f->submission, f->restarts, name);
    json_object_set_new(entry, "attempt", f ? json_string(name) : json_null());
    if (f) {
        hg_attempt_group_name(c->batch, c->group.number * HG_GROUP_LINES, group);
        strcat(group, f->parts ? ".tar" : "");
        json_object_set_new(entry, "attempt_in", json_string(group));
    }
    return entry;
}

static void set_status(json_t *entry, const char *status, const char *message)
{
    json_object_set_new(entry, "status", json_string(status));
    if (message[0])
        json_object_set_new(entry, "error", json_pack("{s: o}", "message", hg_json_text(message)));
}

/* An entry has what the plan says already. */
static void copy_result(json_t *entry, const json_t *result)
{
    static const char *const left_out[] = { "schema", "crc32c", "run_key", NULL };
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)result, key, value)
        if (!is_word(left_out, key, strlen(key)) && !json_object_get(entry, key))
            json_object_set(entry, key, value);
}

static bool is_open(const char *status)
{
    return strcmp(status, "pending") == 0 || strcmp(status, "running") == 0;
}

/* exec was told to end and did not know what for; the scheduler's word for it is in the journal. */
static void correct(json_t *entry, const struct hg_verdict *end)
{
    if (strcmp(json_string_value(json_object_get(entry, "status")), end->status) != 0)
        set_status(entry, end->status, end->reason);
}

/* One attempt's entry, if it has a result. end: what the journal says of the cell's last attempt, if that has failed, else NULL.
 * *kind: 'o' for a good one, 'f' for another, 'i' for one that does not count, '-' for none. */
static int add_attempt(struct collect *c, struct hg_attempt_files *f, const json_t *line,
                       const struct hg_verdict *end, char *kind)
{
    size_t shortages = hg_json_shortages();
    struct hg_err err = HG_ERR_INIT;
    struct skim skim = { 0 };
    bool none;
    json_t *result = read_result(&c->group, f, c->run_key, json_object_get(line, "cell"), &c->room,
                                 c->whole || end ? NULL : &skim, &none, &err);
    json_t *entry;

    *kind = '-';
    if (none)
        return 0;
    entry = new_entry(c, line, f);
    *kind = 'i';
    if (result) {
        copy_result(entry, result);
        *kind = strcmp(json_string_value(json_object_get(result, "status")), "ok") == 0 ? 'o' : 'f';
        if (*kind == 'f' && end)
            correct(entry, end);
        c->count->attempts++;
    } else {
        set_status(entry, "invalid", err.text);
        skim.text = NULL;
        c->count->invalid++;
    }
    json_decref(result);
    if (err.memory || hg_json_shortages() != shortages) {
        json_decref(entry);
        free(skim.loss_file);
        return hg_err_oom(c->err);
    }
    return c->take(c->take_context, entry, skim.text, skim.loss_file, c->err);
}

/* What the journal says, or what the folder lets one guess. */
static void get_verdict(struct collect *c, size_t line, bool claimed, struct hg_verdict *v)
{
    *v = (struct hg_verdict){ 0 };
    if (c->verdict)
        c->verdict(c->context, c->batch, line, v);
    if (!v->status[0])
        snprintf(v->status, sizeof v->status, "%s", claimed ? "running" : "pending");
}

static void count_cell(struct collect *c, bool ok, bool open)
{
    c->count->cells++;
    c->count->ok += ok;
    c->count->open += !ok && open;
    c->count->failed += !ok && !open;
}

/* Its result may have been in a pack, of which a part cannot be read. */
static int tell_damage(struct collect *c, const json_t *line)
{
    json_t *entry = new_entry(c, line, NULL);
    char group[HG_GROUP_NAME_MAX], text[160];

    hg_attempt_group_name(c->batch, c->group.number * HG_GROUP_LINES, group);
    snprintf(text, sizeof text, "%s.tar: damaged at byte %llu; hpcgrid fsck says more", group,
             (unsigned long long)c->group.walk.where);
    set_status(entry, "invalid", text);
    c->count->invalid++;
    return c->take(c->take_context, entry, NULL, NULL, c->err);
}

static int collect_cell(size_t number, const json_t *line, void *context)
{
    struct collect *c = context;
    const char *id = json_string_value(json_object_get(line, "id"));
    struct hg_attempt_list list;
    bool ok = false, valid = false, invalid = false;
    struct hg_verdict v;
    int rc = hg_attempt_list(&c->group, c->batch, number, id ? id : "", &list, c->err);

    get_verdict(c, number, rc == 0 && list.n > 0, &v);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        bool told = i + 1 == list.n && c->verdict && is_status(v.status) && strcmp(v.status, "ok");
        char kind;

        rc = add_attempt(c, &list.items[i], line, told ? &v : NULL, &kind);
        ok |= kind == 'o';
        valid |= kind == 'o' || kind == 'f';
        invalid |= kind == 'i';
    }
    if (!c->verdict && (valid || invalid))
        snprintf(v.status, sizeof v.status, "failed"); /* nobody says that it goes on */
    else if (rc == 0 && !valid && !invalid && c->group.walk.damaged)
        rc = tell_damage(c, line);
    else if (rc == 0 && !ok && (!valid || is_open(v.status))) {
        json_t *entry = new_entry(c, line, list.n ? &list.items[list.n - 1] : NULL);

        set_status(entry, v.status, v.reason);
        rc = c->take(c->take_context, entry, NULL, NULL, c->err);
    }
    count_cell(c, ok, is_open(v.status));
    return rc;
}

/* "baseline" and "report" as the user wrote them. */
static int copy_wishes(const struct hg_rundir *rd, json_t *doc, struct hg_err *err)
{
    char *path = hg_rundir_path(rd, "matrix.json");
    struct hg_json_doc matrix = HG_JSON_DOC_INIT;
    int rc = path ? hg_json_load(path, &matrix, err) : hg_err_oom(err);

    if (rc == 0 && json_object_get(matrix.root, "baseline"))
        json_object_set(doc, "baseline", json_object_get(matrix.root, "baseline"));
    if (rc == 0 && json_object_get(matrix.root, "report"))
        json_object_set(doc, "report", json_object_get(matrix.root, "report"));
    hg_json_doc_done(&matrix);
    free(path);
    return rc;
}

/* "prices" of the site's hardware, if it names any. A run whose site.json is gone has none. */
static void copy_prices(const struct hg_rundir *rd, json_t *doc)
{
    char *path = hg_rundir_path(rd, "site.json");
    struct hg_json_doc site = HG_JSON_DOC_INIT;
    struct hg_err ignored = HG_ERR_INIT;
    json_t *prices = json_object(), *hardware;
    const char *name;

    if (path && hg_json_load(path, &site, &ignored) == 0) {
        json_object_foreach(json_object_get(site.root, "hardware"), name, hardware) {
            json_object_set(prices, name, json_object_get(hardware, "price_per_hour"));
        }
        if (json_object_size(prices)) {
            json_object_set(doc, "prices", prices);
            json_object_set(doc, "currency", json_object_get(site.root, "currency"));
        }
    }
    hg_json_doc_done(&site);
    json_decref(prices);
    free(path);
}

static int collect_all(struct collect *c, const json_t *plan)
{
    size_t i;
    json_t *batch;

    json_array_foreach(json_object_get(plan, "batches"), i, batch) {
        c->batch = (int)json_integer_value(json_object_get(batch, "number"));
        if (hg_plan_each_cell(c->group.rd->path, c->batch, collect_cell, c, c->err) != 0)
            return -1;
    }
    return 0;
}

static json_t *make_head(const struct hg_rundir *rd, const json_t *plan, struct hg_err *err)
{
    const char *folder = strrchr(rd->path, '/');
    json_t *doc = json_object();
    char run[16];

    snprintf(run, sizeof run, "%03d", rd->number);
    folder = folder ? folder + 1 : rd->path;
    json_object_set_new(doc, "schema", json_string("hpcgrid-results/1"));
    json_object_set(doc, "name", json_object_get(plan, "name"));
    json_object_set_new(doc, "run", hg_json_text(rd->number ? run : folder));
    copy_prices(rd, doc);
    if (copy_wishes(rd, doc, err) == 0)
        return doc;
    json_decref(doc);
    return NULL;
}

json_t *hg_collect_head(const struct hg_rundir *rd, struct hg_err *err)
{
    json_t *plan = hg_plan_read(rd->path, err);
    json_t *doc = plan ? make_head(rd, plan, err) : NULL;

    json_decref(plan);
    return doc;
}

/* c: filled but for the count. */
static int collect(struct collect *c, struct hg_collect_count *count)
{
    json_t *plan = hg_plan_read(c->group.rd->path, c->err);
    struct hg_collect_count unused;
    int rc;

    if (!plan)
        return -1;
    c->count = count ? count : &unused;
    *c->count = (struct hg_collect_count){ 0 };
    c->run_key = json_string_value(json_object_get(plan, "run_key"));
    rc = collect_all(c, plan);
    hg_attempt_group_forget(&c->group);
    room_done(&c->room);
    json_decref(plan);
    return rc;
}

int hg_collect_each(const struct hg_rundir *rd, hg_verdict_fn verdict, void *verdict_context,
                    hg_collect_fn take, void *context, struct hg_collect_count *count,
                    struct hg_err *err)
{
    struct collect c = { .group = { .rd = rd },
                         .verdict = verdict,
                         .context = verdict_context,
                         .take = take,
                         .take_context = context,
                         .err = err };

    return collect(&c, count);
}

int hg_collect_each_whole(const struct hg_rundir *rd, hg_verdict_fn verdict, void *verdict_context,
                          hg_collect_fn take, void *context, struct hg_collect_count *count,
                          struct hg_err *err)
{
    struct collect c = { .group = { .rd = rd },
                         .verdict = verdict,
                         .context = verdict_context,
                         .take = take,
                         .take_context = context,
                         .whole = true,
                         .err = err };

    return collect(&c, count);
}
