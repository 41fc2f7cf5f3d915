/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/vec.h"
#include "plan/batch.h"
#include "plan/cells.h"
#include "plan/script.h"
#include "plan/template.h"

#define SCHEMA "hpcgrid-plan/3" /* 3: results end with their checksum (hpcgrid-result/2) */

/* ---- Saving ---- */

/* [[configuration, run], ...] by line. */
static json_t *encode_turns(const struct hg_batch *b)
{
    json_t *list = json_array();

    for (size_t i = 0; i < b->n; i++)
        json_array_append_new(list, json_pack("[I,I]", (json_int_t)b->turns[i].configuration,
                                              (json_int_t)b->turns[i].run));
    return list;
}

static json_t *encode_batch(const struct hg_batch *b)
{
    json_t *job = json_copy(b->job);
    json_t *out = json_object();
    json_t *modules = json_array();

    /* the location of the run is not part of the plan */
    json_object_del(job, "script");
    json_object_del(job, "work_dir");
    for (char **m = b->modules; m && *m; m++)
        json_array_append_new(modules, json_string(*m));
    json_object_set_new(out, "number", json_integer(b->number));
    json_object_set_new(out, "cells", json_integer((json_int_t)b->n));
    json_object_set_new(out, "hardware", json_string(b->hardware));
    json_object_set_new(out, "backend", b->backend ? json_string(b->backend) : json_null());
    json_object_set_new(out, "gpu", json_boolean(b->gpu));
    json_object_set_new(out, "devices", json_integer(b->devices));
    json_object_set_new(out, "modules", modules);
    json_object_set_new(out, "shape", json_string(b->shape));
    json_object_set_new(out, "request",
                        json_string(b->request)); /* jobs compare it with their own */
    json_object_set_new(out, "job", job);
    if (b->auto_time)
        json_object_set_new(out, "auto_time",
                            json_pack("{s:I}", "most_s", (json_int_t)b->time_max_s));
    if (b->places)
        json_object_set(out, "places", b->places);
    if (b->removed.n) {
        struct hg_buf text = HG_BUF_INIT;

        hg_ranges_format(&b->removed, &text);
        json_object_set_new(out, "removed", json_string(hg_buf_str(&text)));
        hg_buf_done(&text);
    }
    if (b->turns)
        json_object_set_new(out, "turns", encode_turns(b));
    return out;
}

static json_t *encode(const struct hg_plan *plan, const char *dir, struct hg_err *err)
{
    json_t *folder = hg_json_path(dir, err), *out, *batches;

    if (!folder)
        return NULL;
    out = json_object();
    batches = json_array();
    for (size_t i = 0; i < plan->n; i++)
        json_array_append_new(batches, encode_batch(&plan->items[i]));
    json_object_set_new(out, "schema", json_string(SCHEMA));
    json_object_set_new(out, "hpcgrid", json_string(HPCGRID_VERSION));
    json_object_set_new(out, "name", json_string(plan->name));
    json_object_set_new(out, "run_key", json_string(plan->run_key));
    json_object_set_new(out, "folder", folder); /* its jobs work there: rundir/identity.h */
    json_object_set(out, "workload", plan->workload);
    json_object_set(out, "site", plan->site);
    json_object_set_new(out, "batches", batches);
    if (plan->skipped)
        json_object_set(out, "skipped", plan->skipped);
    return out;
}

static int replace_below(const char *dir, const char *name, const struct hg_buf *text, mode_t mode,
                         struct hg_err *err)
{
    char *path = hg_fs_join(dir, name);
    int rc = hg_fs_replace(path, hg_buf_str(text), text->len, mode, err);

    free(path);
    return rc;
}

static int save_batch(const struct hg_plan *plan, struct hg_batch *b, const char *dir,
                      struct hg_err *err)
{
    bool is_new = b->cells.len && !b->at;
    struct hg_buf script = HG_BUF_INIT;
    char name[64];
    int rc = -1;

    if (hg_plan_save_cells(b, dir, err) < 0)
        return -1;
    hg_buf_done(&b->cells);
    if (!is_new && !b->renewed)
        return 0;
    snprintf(name, sizeof name, "batches/%d.sh", b->number);
    if (hg_plan_script(plan, b, dir, &script, err) == 0)
        rc = replace_below(dir, name, &script, 0700, err);
    if (rc == 0)
        b->renewed = false;
    hg_buf_done(&script);
    return rc;
}

/* The job's script and folder, once the plan has a place. */
static int place_batch(struct hg_batch *b, const char *dir, struct hg_err *err)
{
    json_t *folder = hg_json_path(dir, err);

    if (!folder)
        return -1;
    json_object_set_new(b->job, "script", json_sprintf("%s/batches/%d.sh", dir, b->number));
    json_object_set_new(b->job, "work_dir", folder);
    return 0;
}

static int save_sources(const struct hg_matrix *m, const char *dir, struct hg_err *err)
{
    struct hg_buf text = { .data = m->doc.text, .len = m->doc.len };
    struct hg_buf site = HG_BUF_INIT;
    int rc;

    hg_json_dump(m->site->json, HG_JSON_INDENT, &site);
    hg_buf_puts(&site, "\n");
    rc = replace_below(dir, "matrix.json", &text, 0600, err);
    if (rc == 0)
        rc = replace_below(dir, "site.json", &site, 0600, err);
    hg_buf_done(&site);
    return rc;
}

static int save_all(struct hg_plan *plan, const struct hg_matrix *m, const char *dir,
                    struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;
    char *batches = hg_fs_join(dir, "batches");
    json_t *root = NULL;
    int rc = -1;

    for (size_t i = 0; i < plan->n; i++) /* nothing is written to a folder that no job would find */
        if (place_batch(&plan->items[i], dir, err) < 0)
            goto out;
    if (hg_fs_mkdirs(batches, 0700, err) < 0 || save_sources(m, dir, err) < 0)
        goto out;
    for (size_t i = 0; i < plan->n; i++)
        if (save_batch(plan, &plan->items[i], dir, err) < 0)
            goto out;
    root = encode(plan, dir, err);
    if (!root)
        goto out;
    hg_json_dump(root, HG_JSON_INDENT, &text);
    hg_buf_puts(&text, "\n");
    rc = replace_below(dir, "plan.json", &text, 0600, err);
out:
    json_decref(root);
    hg_buf_done(&text);
    free(batches);
    return rc;
}

int hg_plan_save(struct hg_plan *plan, const struct hg_matrix *m, const char *dir,
                 struct hg_err *err)
{
    char *absolute = hg_fs_absolute(dir, err);
    int rc = absolute ? save_all(plan, m, absolute, err) : -1;

    free(absolute);
    return rc;
}

/* ---- Loading ---- */

/* Without a journal nothing can have been submitted. */
static void set_missing(const char *dir, struct hg_err *err)
{
    char *journal = hg_fs_join(dir, "events.jsonl");

    hg_err_set(err, HG_E_NOTFOUND, "%s has no plan.json", dir);
    if (hg_fs_exists(journal))
        hg_err_hint(err, "restore it from a backup, or begin a new run: hpcgrid run MATRIX --new");
    else
        hg_err_hint(
            err,
            "it was interrupted before anything was submitted: `hpcgrid run MATRIX` starts it again");
    free(journal);
}

json_t *hg_plan_read(const char *dir, struct hg_err *err)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    char *path = hg_fs_join(dir, "plan.json");
    const char *schema;
    json_t *root = NULL;

    if (!hg_fs_exists(path)) {
        set_missing(dir, err);
    } else if (hg_json_load(path, &doc, err) == 0) {
        schema = json_string_value(json_object_get(doc.root, "schema"));
        if (!schema || strcmp(schema, SCHEMA) != 0)
            hg_err_set(err, HG_E_INPUT,
                       "%s has schema \"%s\", this hpcgrid reads \"" SCHEMA
                       "\": what is saved in the run's tables/ stays readable (hpcgrid report "
                       "tables/results.json), and `hpcgrid run MATRIX --new` begins another run",
                       path, schema ? schema : "");
        else
            root = json_incref(doc.root);
    }
    hg_json_doc_done(&doc);
    free(path);
    return root;
}

static char *copy_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? hg_strdup(text) : NULL;
}

static int decode_modules(const json_t *list, struct hg_batch *b)
{
    struct hg_words words = HG_WORDS_INIT;
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item)
        if (json_is_string(item))
            hg_words_push(&words, json_string_value(item));
    b->modules = words.n ? words.items : hg_alloc_zeroed(1, sizeof *b->modules);
    return words.n == json_array_size(list) ? 0 : -1;
}

static int decode_batch(const json_t *from, size_t index, const char *dir, struct hg_batch *b,
                        struct hg_err *err)
{
    const char *removed = json_string_value(json_object_get(from, "removed"));

    *b = (struct hg_batch){ .number = (int)json_integer_value(json_object_get(from, "number")) };
    b->job = json_incref(json_object_get(from, "job"));
    b->places = json_incref(json_object_get(from, "places"));
    b->hardware = copy_text(from, "hardware");
    b->backend = copy_text(from, "backend");
    b->shape = copy_text(from, "shape");
    b->gpu = json_is_true(json_object_get(from, "gpu"));
    b->devices = json_integer_value(json_object_get(from, "devices"));
    b->time_s = (double)json_integer_value(json_object_get(b->job, "time_s"));
    b->auto_time = json_object_get(from, "auto_time");
    b->time_max_s =
        json_number_value(json_object_get(json_object_get(from, "auto_time"), "most_s"));
    hg_ranges_parse(removed ? removed : "", UINT32_MAX - 1, &b->removed, NULL);
    if (b->number != (int)index + 1 || !json_is_object(b->job) || !b->hardware || !b->shape)
        return -1;
    if (decode_modules(json_object_get(from, "modules"), b) < 0)
        return -1;
    hg_batch_set_request(b);
    return place_batch(b, dir, err);
}

/* Once its ids are loaded. */
static void decode_turns(const json_t *list, struct hg_batch *b)
{
    size_t i;
    json_t *item;

    if (!list)
        return;
    b->turns = hg_alloc_zeroed(b->n + 1, sizeof *b->turns);
    json_array_foreach(list, i, item)
        if (i < b->n)
            b->turns[i] = (struct hg_turn){
                .configuration = (uint32_t)json_integer_value(json_array_get(item, 0)),
                .run = (uint32_t)json_integer_value(json_array_get(item, 1)),
            };
}

static int decode(const json_t *root, const char *dir, struct hg_plan *plan, struct hg_err *err)
{
    const char *key = json_string_value(json_object_get(root, "run_key"));
    size_t i;
    json_t *item;

    plan->name = copy_text(root, "name");
    plan->workload = json_incref(json_object_get(root, "workload"));
    plan->site = json_incref(json_object_get(root, "site"));
    plan->skipped = json_incref(json_object_get(root, "skipped"));
    if (!plan->name || !key || strlen(key) != 32 || !plan->workload || !plan->site)
        return hg_err_set(err, HG_E_INPUT, "%s/plan.json is not complete", dir);
    memcpy(plan->run_key, key, 33);
    json_array_foreach(json_object_get(root, "batches"), i, item) {
        struct hg_batch *b = HG_VEC_PUSH(plan);
        json_int_t cells = json_integer_value(json_object_get(item, "cells"));

        if (decode_batch(item, i, dir, b, err) < 0)
            return hg_err_set(err, HG_E_INPUT, "%s/plan.json: batch %zu is not complete", dir,
                              i + 1);
        if (hg_plan_load_ids(b, (size_t)cells, dir, err) < 0)
            return -1;
        decode_turns(json_object_get(item, "turns"), b);
        plan->cells += b->n;
    }
    return 0;
}

struct hg_plan *hg_plan_load(const char *dir, struct hg_err *err)
{
    char *absolute = hg_fs_absolute(dir, err);
    json_t *root = absolute ? hg_plan_read(absolute, err) : NULL;
    struct hg_plan *plan = root ? hg_alloc_zeroed(1, sizeof *plan) : NULL;

    if (plan && decode(root, absolute, plan, err) < 0) {
        hg_plan_free(plan);
        plan = NULL;
    }
    json_decref(root);
    free(absolute);
    return plan;
}
