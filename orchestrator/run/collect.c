/* SPDX-License-Identifier: Apache-2.0 */
#include "run/collect.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/vec.h"
#include "run/attempt.h"
#include "run/outcome.h"

/* exec adds to what the workload wrote, so its file may be somewhat larger. */
#define RESULT_FILE_MAX (2 * HG_RESULT_MAX)

/* ---- Folders ---- */

/* What lies in an attempt's folder. */
struct found {
    unsigned submission, restarts;
    bool claim, result;
};

struct attempts {
    struct found *items;
    size_t n, cap;
};

static int newer(const struct found *a, const struct found *b)
{
    if (a->submission != b->submission)
        return a->submission < b->submission ? -1 : 1;
    return (a->restarts > b->restarts) - (a->restarts < b->restarts);
}

static int by_age(const void *a, const void *b)
{
    return newer(a, b);
}

/* Names by listing: a network file system may go on denying a path that it once found absent. */
static void list_attempt(const char *cell_dir, const char *name, struct found *f)
{
    char *path = hg_fs_join(cell_dir, name);
    DIR *d = path ? opendir(path) : NULL;
    struct dirent *entry;

    while (d && (entry = readdir(d))) {
        f->claim |= strcmp(entry->d_name, "claim.json") == 0;
        f->result |= strcmp(entry->d_name, "result.json") == 0;
    }
    if (d)
        closedir(d);
    free(path);
}

/* All attempts of a cell, oldest first. A cell without a folder has none. */
static int list_attempts(const char *cell_dir, struct attempts *list, struct hg_err *err)
{
    DIR *d = opendir(cell_dir);
    struct dirent *entry;
    int rc = 0;

    if (!d)
        return errno == ENOENT ? 0 : hg_err_sys(err, "cannot read folder %s", cell_dir);
    while (rc == 0 && (entry = readdir(d))) {
        struct found f = { 0 };
        struct found *slot;

        if (!hg_attempt_parse(entry->d_name, &f.submission, &f.restarts))
            continue;
        list_attempt(cell_dir, entry->d_name, &f);
        slot = HG_VEC_PUSH(list);
        if (slot)
            *slot = f;
        else
            rc = hg_err_oom(err);
    }
    closedir(d);
    if (list->n)
        qsort(list->items, list->n, sizeof *list->items, by_age);
    return rc;
}

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

/* Does this result belong here, whole and as exec wrote it? */
static int check_result(const json_t *result, const char *run_key, const char *id, const char *name,
                        const json_t *cell, struct hg_err *err)
{
    char sum[9];

    if (expect(result, "schema", HG_RESULT_SCHEMA, err) < 0 ||
        expect(result, "run_key", run_key, err) < 0 || expect(result, "id", id, err) < 0 ||
        expect(result, "attempt", name, err) < 0)
        return -1;
    if (!is_status(json_string_value(json_object_get(result, "status"))))
        return hg_err_set(err, HG_E_INPUT, "its \"status\" is none");
    if (hg_outcome_checksum(result, sum) < 0)
        return hg_err_oom(err);
    if (expect(result, "crc32c", sum, err) < 0)
        return hg_err_wrap(err, "it was changed after it was written");
    if (cell && !hg_json_equal(cell, json_object_get(result, "cell")))
        return hg_err_set(err, HG_E_INPUT, "it is of another cell");
    return 0;
}

/* Read and judge one result.json. cell: as planned, NULL: not compared. A new reference, or NULL
 * with err saying what is wrong with it. */
static json_t *read_result(const char *cell_dir, const struct found *f, const char *run_key,
                           const char *id, const json_t *cell, struct hg_err *err)
{
    char name[HG_ATTEMPT_NAME_MAX];
    struct hg_buf text = HG_BUF_INIT;
    bool diverged = false;
    json_t *result = NULL;
    char *path;

    hg_attempt_name(f->submission, f->restarts, name);
    path = hg_str_printf("%s/%s/result.json", cell_dir, name);
    if (!path)
        hg_err_oom(err);
    else if (hg_fs_read_file(path, RESULT_FILE_MAX, &text, err) == 0)
        result = hg_outcome_parse(path, hg_buf_str(&text), text.len, &diverged, err);
    if (result && check_result(result, run_key, id, name, cell, err) < 0) {
        json_decref(result);
        result = NULL;
    }
    if (!result)
        hg_err_wrap(err, "%s", path ? path : id);
    hg_buf_done(&text);
    free(path);
    return result;
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

static void take_attempt(const char *cell_dir, const struct found *f, const char *run_key,
                         const char *id, struct hg_attempt *a)
{
    struct hg_err err = HG_ERR_INIT;
    json_t *result = f->result ? read_result(cell_dir, f, run_key, id, NULL, &err) : NULL;

    *a = (struct hg_attempt){ .submission = f->submission,
                              .restarts = f->restarts,
                              .claimed = f->claim || f->result };
    if (result)
        take_result(result, a);
    else
        snprintf(a->error, sizeof a->error, "%.255s", err.text);
    json_decref(result);
}

static bool is_better(const struct hg_attempt *a, const struct hg_attempt *than)
{
    bool ok = a->done && strcmp(a->status, "ok") == 0;
    bool than_ok = than->done && strcmp(than->status, "ok") == 0;

    if (ok != than_ok)
        return ok;
    if (a->done != than->done)
        return a->done;
    if (a->claimed != than->claimed)
        return a->claimed;
    return true; /* they come oldest first */
}

int hg_attempt_find(const struct hg_rundir *rd, const char *cell_id, unsigned submission,
                    const char *run_key, struct hg_attempt *a, struct hg_err *err)
{
    char *dir = hg_rundir_path(rd, "cells/%s", cell_id);
    struct attempts list = { 0 };
    int rc = dir ? list_attempts(dir, &list, err) : hg_err_oom(err);

    *a = (struct hg_attempt){ 0 };
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        struct hg_attempt other;

        if (submission && list.items[i].submission != submission)
            continue;
        take_attempt(dir, &list.items[i], run_key, cell_id, &other);
        if (is_better(&other, a))
            *a = other;
    }
    HG_VEC_DONE(&list);
    free(dir);
    return rc;
}

/* ---- The whole run ---- */

struct collect {
    const struct hg_rundir *rd;
    const char *run_key;
    hg_verdict_fn verdict;
    void *context;
    int batch;
    json_t *results;
    struct hg_collect_count *count;
    struct hg_err *err;
};

/* An entry with what the plan says of the cell. */
static json_t *new_entry(const json_t *line, const struct found *f)
{
    json_t *entry = json_object();
    char name[HG_ATTEMPT_NAME_MAX];

    json_object_set(entry, "id", json_object_get(line, "id"));
    json_object_set(entry, "cell", json_object_get(line, "cell"));
    json_object_set(entry, "baseline_id", json_object_get(line, "baseline"));
    json_object_set(entry, "added", json_object_get(line, "added"));
    if (f)
        hg_attempt_name(f->submission, f->restarts, name);
    json_object_set_new(entry, "attempt", f ? json_string(name) : json_null());
    return entry;
}

static void set_status(json_t *entry, const char *status, const char *message)
{
    json_object_set_new(entry, "status", json_string(status));
    if (message[0])
        json_object_set_new(entry, "error", json_pack("{s: o}", "message", hg_json_text(message)));
}

/* One attempt's entry. Returns 'o' for a good result, 'f' for another, 'i' for one that is none. */
static char add_attempt(struct collect *c, const char *dir, const struct found *f,
                        const json_t *line)
{
    struct hg_err err = HG_ERR_INIT;
    json_t *entry = new_entry(line, f);
    json_t *result = read_result(dir, f, c->run_key, json_string_value(json_object_get(line, "id")),
                                 json_object_get(line, "cell"), &err);
    const char *key;
    json_t *value;
    char kind = 'i';

    if (result) {
        json_object_foreach(result, key,
                            value) if (strcmp(key, "schema") != 0 && strcmp(key, "crc32c") != 0 &&
                                       strcmp(key, "run_key") != 0 && !json_object_get(entry, key))
            json_object_set(entry, key, value);
        kind = strcmp(json_string_value(json_object_get(result, "status")), "ok") == 0 ? 'o' : 'f';
        c->count->attempts++;
    } else {
        set_status(entry, "invalid", err.text);
        c->count->invalid++;
    }
    json_array_append_new(c->results, entry);
    json_decref(result);
    return kind;
}

static bool is_open(const char *status)
{
    return strcmp(status, "pending") == 0 || strcmp(status, "running") == 0;
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

static int collect_cell(size_t number, const json_t *line, void *context)
{
    struct collect *c = context;
    const char *id = json_string_value(json_object_get(line, "id"));
    char *dir = id ? hg_rundir_path(c->rd, "cells/%s", id) : NULL;
    struct attempts list = { 0 };
    bool ok = false, valid = false, invalid = false;
    struct hg_verdict v;
    int rc = dir ? list_attempts(dir, &list, c->err) : hg_err_oom(c->err);

    for (size_t i = 0; rc == 0 && i < list.n; i++)
        if (list.items[i].result) {
            char kind = add_attempt(c, dir, &list.items[i], line);

            ok |= kind == 'o';
            valid |= kind != 'i';
            invalid |= kind == 'i';
        }
    get_verdict(c, number, list.n > 0, &v);
    if (!c->verdict && (valid || invalid))
        snprintf(v.status, sizeof v.status, "failed"); /* nobody says that it goes on */
    else if (!ok && (!valid || is_open(v.status))) {
        json_t *entry = new_entry(line, list.n ? &list.items[list.n - 1] : NULL);

        set_status(entry, v.status, v.reason);
        json_array_append_new(c->results, entry);
    }
    count_cell(c, ok, is_open(v.status));
    HG_VEC_DONE(&list);
    free(dir);
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
        json_object_foreach(json_object_get(site.root, "hardware"), name, hardware)
        {
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

    json_array_foreach(json_object_get(plan, "batches"), i, batch)
    {
        c->batch = (int)json_integer_value(json_object_get(batch, "number"));
        if (hg_plan_each_cell(c->rd->path, c->batch, collect_cell, c, c->err) != 0)
            return -1;
    }
    return 0;
}

json_t *hg_collect_run(const struct hg_rundir *rd, hg_verdict_fn verdict, void *context,
                       struct hg_collect_count *count, struct hg_err *err)
{
    struct hg_collect_count unused;
    json_t *plan = hg_plan_read(rd->path, err);
    json_t *doc = plan ? json_object() : NULL;
    struct collect c = { .rd = rd, .verdict = verdict, .context = context, .err = err };
    char run[16];
    const char *folder = strrchr(rd->path, '/');

    if (!plan)
        return NULL;
    c.count = count ? count : &unused;
    *c.count = (struct hg_collect_count){ 0 };
    c.run_key = json_string_value(json_object_get(plan, "run_key"));
    c.results = json_array();
    snprintf(run, sizeof run, "%03d", rd->number);
    folder = folder ? folder + 1 : rd->path;
    json_object_set_new(doc, "schema", json_string("hpcgrid-results/1"));
    json_object_set(doc, "name", json_object_get(plan, "name"));
    json_object_set_new(doc, "run", json_string(rd->number ? run : folder));
    copy_prices(rd, doc);
    if (copy_wishes(rd, doc, err) < 0 || collect_all(&c, plan) < 0) {
        json_decref(doc);
        doc = NULL;
    }
    if (doc)
        json_object_set(doc, "results", c.results);
    json_decref(c.results);
    json_decref(plan);
    return doc;
}
