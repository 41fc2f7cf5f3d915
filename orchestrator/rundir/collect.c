/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "plan/cells.h"
#include "plan/files.h"
#include "results/results.h"
#include "rundir/attempt.h"
#include "rundir/attempts.h"
#include "rundir/resultfile.h"
#include "rundir/runstate.h"

struct collect {
    struct hg_attempt_group group; /* of the run */
    const char *run_key;
    hg_verdict_fn verdict;
    void *context;
    int batch;
    struct hg_ranges removed; /* its lines of cells that the matrix has no more */
    size_t at;                /* the range at or behind the current line */
    bool is_removed;          /* the current line's cell */
    hg_collect_fn take;
    void *take_context;
    bool curves;
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
    if (c->is_removed)
        json_object_set_new(entry, "removed", json_true());
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

/* An entry has what the plan says already; what its job requested is the result's. */
static void copy_result(json_t *entry, json_t *result)
{
    static const char *const left_out[] = { "schema", "crc", "run_key" };

    json_object_set_new(
        entry, "cell",
        hg_resultfile_cell(json_object_get(entry, "cell"), json_object_get(result, "cell")));
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        json_object_del(result, left_out[i]);
    json_object_update_missing(entry, result);
}

static bool is_open(const char *status)
{
    return strcmp(status, "pending") == 0 || strcmp(status, "running") == 0;
}

/* exec received TERM and did not know why; the journal has the scheduler's reason. */
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
    struct hg_err err = HG_ERR_INIT;
    json_t *result = hg_resultfile_read(&c->group, f, c->run_key, json_object_get(line, "cell"),
                                        c->curves, &err);
    json_t *entry;

    *kind = '-';
    if (err.code == HG_E_NOTFOUND)
        return 0;
    entry = new_entry(c, line, f);
    *kind = 'i';
    if (result) {
        *kind = strcmp(json_string_value(json_object_get(result, "status")), "ok") == 0 ? 'o' : 'f';
        copy_result(entry, result);
        if (*kind == 'f' && end)
            correct(entry, end);
        c->count->attempts++;
    } else {
        set_status(entry, "invalid", err.text);
        c->count->invalid++;
    }
    json_decref(result);
    return c->take(c->take_context, entry,
                   *kind == 'i' ? NULL : hg_attempt_path(&c->group, f, "result.json"), c->err);
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
    return c->take(c->take_context, entry, NULL, c->err);
}

/* A cell without a result that counts: what the journal knows of it. */
static int tell_verdict(struct collect *c, const json_t *line, const struct hg_attempt_list *list,
                        const struct hg_verdict *v)
{
    json_t *entry = new_entry(c, line, list->n ? &list->items[list->n - 1] : NULL);

    if (strcmp(v->status, "ok") == 0)
        set_status(entry, "invalid", "it was ok, and its result is gone");
    else
        set_status(entry,
                   hg_resultfile_is_status(v->status) || is_open(v->status) ? v->status
                                                                            : "cancelled",
                   v->reason);
    return c->take(c->take_context, entry, NULL, c->err);
}

static int collect_cell(size_t number, const json_t *line, void *context)
{
    struct collect *c = context;
    const char *id = json_string_value(json_object_get(line, "id"));
    struct hg_attempt_list list;
    bool ok = false, valid = false, invalid = false;
    struct hg_verdict v;
    int rc = hg_attempt_list(&c->group, c->batch, number, id ? id : "", &list, c->err);

    while (c->at < c->removed.n && c->removed.items[c->at].last < number)
        c->at++;
    c->is_removed = c->at < c->removed.n && c->removed.items[c->at].first <= number;
    get_verdict(c, number, rc == 0 && list.n > 0, &v);
    if (rc == 0 && !list.n &&
        (c->is_removed || strcmp(v.status, hg_cell_state_names[HG_CELL_UNNEEDED]) == 0))
        return 0;
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        bool judged = i + 1 == list.n && c->verdict && hg_resultfile_is_status(v.status) &&
                      strcmp(v.status, "ok");
        char kind;

        rc = add_attempt(c, &list.items[i], line, judged ? &v : NULL, &kind);
        ok |= kind == 'o';
        valid |= kind == 'o' || kind == 'f';
        invalid |= kind == 'i';
    }
    if (!c->verdict && (valid || invalid))
        snprintf(v.status, sizeof v.status,
                 "failed"); /* no journal says that it is still running */
    else if (rc == 0 && !valid && !invalid && c->group.walk.damaged)
        rc = tell_damage(c, line);
    else if (rc == 0 && !ok && (!valid || is_open(v.status)) &&
             !(invalid && strcmp(v.status, "ok") == 0))
        rc = tell_verdict(c, line, &list, &v);
    count_cell(c, ok, is_open(v.status));
    return rc;
}

/* "baseline", "report" and adaptive "repeats" as the user wrote them. */
static int copy_settings(const struct hg_rundir *rd, json_t *doc, struct hg_err *err)
{
    const json_t *repeats;
    char *path = hg_rundir_path(rd, "matrix.json");
    struct hg_json_doc matrix = HG_JSON_DOC_INIT;
    int rc = hg_json_load(path, &matrix, err);

    if (rc == 0 && json_object_get(matrix.root, "baseline"))
        json_object_set(doc, "baseline", json_object_get(matrix.root, "baseline"));
    if (rc == 0 && json_object_get(matrix.root, "report"))
        json_object_set(doc, "report", json_object_get(matrix.root, "report"));
    repeats = rc == 0 ? json_object_get(matrix.root, "repeats") : NULL;
    if (json_is_object(repeats))
        json_object_set(doc, "repeats", (json_t *)repeats);
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

    if (hg_json_load(path, &site, &ignored) == 0) {
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

/* Lines of a batch in plan.json. */
static void read_removed(const json_t *batch, struct hg_ranges *out)
{
    const char *text = json_string_value(json_object_get(batch, "removed"));

    hg_ranges_parse(text ? text : "", UINT32_MAX - 1, out, NULL);
}

static int collect_all(struct collect *c, const json_t *plan)
{
    size_t i;
    json_t *batch;

    json_array_foreach(json_object_get(plan, "batches"), i, batch) {
        c->batch = (int)json_integer_value(json_object_get(batch, "number"));
        hg_ranges_done(&c->removed);
        read_removed(batch, &c->removed);
        c->at = 0;
        if (hg_plan_each_cell(c->group.rd->path, c->batch, collect_cell, c, c->err) != 0)
            return -1;
    }
    return 0;
}

/* What the results of the run are not: those of all its matrix's cells, and of no others. */
static void copy_changes(const json_t *plan, json_t *doc)
{
    json_int_t n = 0;
    size_t i;
    json_t *batch;

    json_array_foreach(json_object_get(plan, "batches"), i, batch) {
        struct hg_ranges removed = HG_RANGES_INIT;

        read_removed(batch, &removed);
        n += (json_int_t)hg_ranges_count(&removed);
        hg_ranges_done(&removed);
    }
    if (n)
        json_object_set_new(doc, "removed", json_pack("{s:I}", "n", n));
    json_object_set(doc, "skipped", json_object_get(plan, "skipped"));
}

static json_t *make_head(const struct hg_rundir *rd, const json_t *plan, struct hg_err *err)
{
    const char *folder = strrchr(rd->path, '/');
    json_t *doc = json_object();
    char run[16];

    snprintf(run, sizeof run, "%03d", rd->number);
    folder = folder ? folder + 1 : rd->path;
    json_object_set_new(doc, "schema", json_string(HG_RESULTS_SCHEMA));
    json_object_set(doc, "name", json_object_get(plan, "name"));
    json_object_set_new(doc, "run", hg_json_text(rd->number ? run : folder));
    copy_prices(rd, doc);
    copy_changes(plan, doc);
    if (copy_settings(rd, doc, err) == 0)
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

int hg_collect_each(const struct hg_rundir *rd, hg_verdict_fn verdict, void *verdict_context,
                    hg_collect_fn take, void *context, bool curves, struct hg_collect_count *count,
                    struct hg_err *err)
{
    struct hg_collect_count unused;
    struct collect c = { .group = { .rd = rd },
                         .verdict = verdict,
                         .context = verdict_context,
                         .take = take,
                         .take_context = context,
                         .curves = curves,
                         .count = count ? count : &unused,
                         .err = err };
    json_t *plan = hg_plan_read(rd->path, err);
    int rc;

    if (!plan)
        return -1;
    *c.count = (struct hg_collect_count){ 0 };
    c.run_key = json_string_value(json_object_get(plan, "run_key"));
    rc = collect_all(&c, plan);
    hg_attempt_group_forget(&c.group);
    hg_ranges_done(&c.removed);
    json_decref(plan);
    return rc;
}
