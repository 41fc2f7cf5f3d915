/* SPDX-License-Identifier: Apache-2.0 */
/* plan.json and the batches' files. */
#include "plan/batch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "plan/template.h"

#define SCHEMA "hpcgrid-plan/3" /* 3: results end with their checksum (hpcgrid-result/2) */
#define CELLS_FILE_MAX ((size_t)4 << 30)
#define PLACE_DIGITS 15

/* ---- Saving ---- */

static json_t *encode_batch(const struct hg_batch *b)
{
    json_t *job = json_copy(b->job);
    json_t *out = json_object();
    json_t *modules = json_array();

    /* where the run lies is no part of the plan */
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
    json_object_set_new(out, "job", job);
    if (b->places)
        json_object_set(out, "places", b->places);
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
    return out;
}

static int replace_below(const char *dir, const char *name, const struct hg_buf *text, mode_t mode,
                         struct hg_err *err)
{
    char *path = hg_fs_join(dir, name);
    int rc = path && !text->failed ? hg_fs_replace(path, hg_buf_str(text), text->len, mode, err)
                                   : hg_err_oom(err);

    free(path);
    return rc;
}

void hg_plan_index_add(struct hg_buf *index, uint64_t place)
{
    hg_buf_printf(index, "%0*" PRIu64 "\n", PLACE_DIGITS, place);
}

/* Where each line begins, and the end of the last one. */
static int save_index(const struct hg_batch *b, const char *dir, struct hg_err *err)
{
    const char *text = b->cells.data, *end = text + b->cells.len;
    struct hg_buf index = HG_BUF_INIT;
    char name[64];
    int rc;

    hg_plan_index_add(&index, 0);
    for (const char *nl = text; (nl = memchr(nl, '\n', (size_t)(end - nl))); nl++)
        hg_plan_index_add(&index, (uint64_t)(nl + 1 - text));
    snprintf(name, sizeof name, "batches/%d.cells.idx", b->number);
    rc = replace_below(dir, name, &index, 0600, err);
    hg_buf_done(&index);
    return rc;
}

static int save_batch(const struct hg_plan *plan, struct hg_batch *b, const char *dir,
                      struct hg_err *err)
{
    struct hg_buf script = HG_BUF_INIT;
    char name[64];
    int rc = -1;

    if (!b->cells.len && !b->renewed)
        return 0;
    snprintf(name, sizeof name, "batches/%d.cells.jsonl", b->number);
    if (b->cells.len &&
        (replace_below(dir, name, &b->cells, 0600, err) < 0 || save_index(b, dir, err) < 0))
        goto out;
    snprintf(name, sizeof name, "batches/%d.sh", b->number);
    if (hg_plan_script(plan, b, dir, &script, err) < 0 ||
        replace_below(dir, name, &script, 0700, err) < 0)
        goto out;
    hg_buf_done(&b->cells);
    b->renewed = false;
    rc = 0;
out:
    hg_buf_done(&script);
    return rc;
}

/* The job's script and folder, once the plan has a place. */
static int place_batch(struct hg_batch *b, const char *dir, struct hg_err *err)
{
    json_t *folder = hg_json_path(dir, err);
    char *script = folder ? hg_str_printf("%s/batches/%d.sh", dir, b->number) : NULL;
    int rc = -1;

    if (script && json_object_set_new(b->job, "script", json_string(script)) == 0 &&
        json_object_set(b->job, "work_dir", folder) == 0)
        rc = 0;
    free(script);
    json_decref(folder);
    return rc < 0 ? hg_err_oom(err) : 0; /* unless an error is set already */
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

    if (!batches) {
        hg_err_oom(err);
        goto out;
    }
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
    if (journal && hg_fs_exists(journal))
        hg_err_hint(err, "restore it from a backup, or begin a new run: hpcgrid run MATRIX --new");
    else
        hg_err_hint(err, "whoever began it was stopped: `hpcgrid run MATRIX` begins again");
    free(journal);
}

json_t *hg_plan_read(const char *dir, struct hg_err *err)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    char *path = hg_fs_join(dir, "plan.json");
    const char *schema;
    json_t *root = NULL;

    if (!path) {
        hg_err_oom(err);
        return NULL;
    }
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

    return text ? strdup(text) : NULL;
}

static int decode_modules(const json_t *list, struct hg_batch *b)
{
    struct hg_words words = HG_WORDS_INIT;
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item)
        if (!json_is_string(item) || hg_words_push(&words, json_string_value(item)) < 0) {
            hg_words_done(&words);
            return -1;
        }
    b->modules = words.n ? words.items : calloc(1, sizeof *b->modules);
    return b->modules ? 0 : -1;
}

static int decode_batch(const json_t *from, size_t index, const char *dir, struct hg_batch *b,
                        struct hg_err *err)
{
    *b = (struct hg_batch){ .number = (int)json_integer_value(json_object_get(from, "number")) };
    b->job = json_incref(json_object_get(from, "job"));
    b->places = json_incref(json_object_get(from, "places"));
    b->hardware = copy_text(from, "hardware");
    b->backend = copy_text(from, "backend");
    b->shape = copy_text(from, "shape");
    b->gpu = json_is_true(json_object_get(from, "gpu"));
    b->devices = json_integer_value(json_object_get(from, "devices"));
    b->time_s = (double)json_integer_value(json_object_get(b->job, "time_s"));
    if (b->number != (int)index + 1 || !json_is_object(b->job) || !b->hardware || !b->shape)
        return -1;
    return decode_modules(json_object_get(from, "modules"), b) < 0 ? -1 : place_batch(b, dir, err);
}

/* The id at the start of a line of a cells file: {"id":"...",  */
static char *id_of_line(const char *line, size_t n)
{
    static const char start[] = "{\"id\":\"";
    const char *end;

    if (n < sizeof start || memcmp(line, start, sizeof start - 1) != 0)
        return NULL;
    line += sizeof start - 1;
    n -= sizeof start - 1;
    end = memchr(line, '"', n);
    return end && end > line ? strndup(line, (size_t)(end - line)) : NULL;
}

/* Jobs find their cells by it: one that does not fit is found before they are submitted. */
static int check_index(const struct hg_batch *b, const char *dir, struct hg_err *err)
{
    char *path = hg_str_printf("%s/batches/%d.cells.idx", dir, b->number);
    const off_t wanted = (off_t)(b->n + 1) * HG_PLAN_INDEX_LINE;
    struct stat st;
    int rc = path ? 0 : hg_err_oom(err);

    if (path && stat(path, &st) < 0)
        rc = hg_err_sys(err, "cannot read %s", path);
    else if (path && st.st_size != wanted)
        rc = hg_err_set(err, HG_E_INPUT, "%s has %lld bytes, wanted %lld for %zu cell%s", path,
                        (long long)st.st_size, (long long)wanted, b->n, hg_text_s(b->n));
    free(path);
    return rc;
}

static int load_ids(struct hg_batch *b, size_t cells, const char *dir, struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;
    char *path = hg_str_printf("%s/batches/%d.cells.jsonl", dir, b->number);
    int rc = -1;

    if (!path) {
        hg_err_oom(err);
        goto out;
    }
    if (hg_fs_read(path, CELLS_FILE_MAX, &text, err) < 0)
        goto out;
    for (const char *p = hg_buf_str(&text), *end = p + text.len, *nl; p < end; p = nl + 1) {
        nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl || hg_batch_push(b, id_of_line(p, (size_t)(nl - p))) < 0) {
            hg_err_set(err, HG_E_INPUT, "%s: line %zu is no cell", path, b->n + 1);
            goto out;
        }
    }
    rc = b->n == cells ? check_index(b, dir, err)
                       : hg_err_set(err, HG_E_INPUT, "%s has %zu cell%s, plan.json says %zu", path,
                                    b->n, hg_text_s(b->n), cells);
out:
    hg_buf_done(&text);
    free(path);
    return rc;
}

static int decode(const json_t *root, const char *dir, struct hg_plan *plan, struct hg_err *err)
{
    const char *key = json_string_value(json_object_get(root, "run_key"));
    size_t i;
    json_t *item;

    plan->name = copy_text(root, "name");
    plan->workload = json_incref(json_object_get(root, "workload"));
    plan->site = json_incref(json_object_get(root, "site"));
    if (!plan->name || !key || strlen(key) != 32 || !plan->workload || !plan->site)
        return hg_err_set(err, HG_E_INPUT, "%s/plan.json is not complete", dir);
    memcpy(plan->run_key, key, 33);
    json_array_foreach(json_object_get(root, "batches"), i, item) {
        struct hg_batch *b = HG_VEC_PUSH(plan);
        json_int_t cells = json_integer_value(json_object_get(item, "cells"));

        if (!b)
            return hg_err_oom(err);
        if (decode_batch(item, i, dir, b, err) < 0)
            return hg_err_set(err, HG_E_INPUT, "%s/plan.json: batch %zu is not complete", dir,
                              i + 1);
        if (load_ids(b, (size_t)cells, dir, err) < 0)
            return -1;
        plan->cells += b->n;
    }
    return 0;
}

struct hg_plan *hg_plan_load(const char *dir, struct hg_err *err)
{
    char *absolute = hg_fs_absolute(dir, err);
    json_t *root = absolute ? hg_plan_read(absolute, err) : NULL;
    struct hg_plan *plan = root ? calloc(1, sizeof *plan) : NULL;

    if (root && !plan)
        hg_err_oom(err);
    if (plan && decode(root, absolute, plan, err) < 0) {
        hg_plan_free(plan);
        plan = NULL;
    }
    json_decref(root);
    free(absolute);
    return plan;
}

/* ---- One cell ---- */

/* 0, 1 where the file ends before, or -1. */
static int read_at(int fd, char *out, size_t n, uint64_t at)
{
    while (n) {
        ssize_t got = pread(fd, out, n, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -1 : 1;
        out += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return 0;
}

/* A line of the index: 15 digits and a newline. */
static bool parse_place(const char *line, uint64_t *place)
{
    *place = 0;
    for (size_t i = 0; i < PLACE_DIGITS; i++) {
        if (line[i] < '0' || line[i] > '9')
            return false;
        *place = *place * 10 + (uint64_t)(line[i] - '0');
    }
    return line[PLACE_DIGITS] == '\n';
}

/* Where a line of the cells file begins and ends. */
static int find_line(const char *dir, int batch, size_t line, uint64_t place[static 2],
                     struct hg_err *err)
{
    char *path = hg_str_printf("%s/batches/%d.cells.idx", dir, batch);
    int fd = path ? hg_fs_open_file(path, err) : hg_err_oom(err);
    int got = -1;
    char text[2 * HG_PLAN_INDEX_LINE];
    int rc = -1;

    if (fd >= 0 && (got = read_at(fd, text, sizeof text, (uint64_t)line * HG_PLAN_INDEX_LINE)) < 0)
        hg_err_sys(err, "cannot read %s", path);
    else if (got > 0)
        hg_err_set(err, HG_E_NOTFOUND, "%s/batches/%d.cells.jsonl has no line %zu", dir, batch,
                   line + 1);
    else if (got == 0 &&
             (!parse_place(text, &place[0]) || !parse_place(text + HG_PLAN_INDEX_LINE, &place[1]) ||
              place[0] >= place[1] || place[1] > CELLS_FILE_MAX))
        hg_err_set(err, HG_E_INPUT, "%s:%zu: no place of a cell", path, line + 1);
    else if (got == 0)
        rc = 0;
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

/* Is it one whole line? text begins with the byte before it, where there is one. */
static bool is_line(const char *text, size_t n, bool has_before)
{
    if (has_before && *text++ != '\n')
        return false;
    n -= has_before;
    return memchr(text, '\n', n) == text + n - 1;
}

json_t *hg_plan_read_cell(const char *dir, int batch, size_t line, struct hg_err *err)
{
    char *path = hg_str_printf("%s/batches/%d.cells.jsonl", dir, batch), *text = NULL;
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    int fd = path ? hg_fs_open_file(path, err) : hg_err_oom(err), got;
    uint64_t place[2];
    json_t *root = NULL;
    size_t n, before;
    struct stat st;

    if (fd < 0 || find_line(dir, batch, line, place, err) < 0)
        goto out;
    before = place[0] > 0;
    n = place[1] - place[0] + before;
    if (fstat(fd, &st) == 0 && (uint64_t)st.st_size < place[1]) {
        hg_err_set(err, HG_E_INPUT, "%s ends before its line %zu does", path, line + 1);
        goto out;
    }
    text = malloc(n);
    got = text ? read_at(fd, text, n, place[0] - before) : hg_err_oom(err);
    if (got < 0)
        hg_err_sys(err, "cannot read %s", path);
    else if (got > 0 || !is_line(text, n, before))
        hg_err_set(err, HG_E_INPUT, "%s:%zu: not where %d.cells.idx says", path, line + 1, batch);
    else if (hg_json_parse(path, text + before, n - before - 1, &doc, err) == 0)
        root = json_incref(doc.root);
    hg_json_doc_done(&doc);
out:
    if (fd >= 0)
        close(fd);
    free(text);
    free(path);
    return root;
}

int hg_plan_each_cell(const char *dir, int batch,
                      int (*visit)(size_t line, const json_t *cell, void *context), void *context,
                      struct hg_err *err)
{
    char *path = hg_str_printf("%s/batches/%d.cells.jsonl", dir, batch);
    FILE *f = path ? fopen(path, "re") : NULL;
    char *text = NULL;
    size_t cap = 0;
    ssize_t n;
    int rc = f ? 0 : path ? hg_err_sys(err, "cannot read %s", path) : hg_err_oom(err);

    for (size_t line = 0; rc == 0 && (n = getline(&text, &cap, f)) > 0; line++) {
        struct hg_json_doc doc = HG_JSON_DOC_INIT;

        rc = hg_json_parse(path, text, (size_t)n - (text[n - 1] == '\n'), &doc, err);
        if (rc == 0)
            rc = visit(line, doc.root, context);
        hg_json_doc_done(&doc);
    }
    if (f && rc == 0 && !feof(f))
        rc = hg_err_sys(err, "cannot read %s", path);
    if (f)
        fclose(f);
    free(text);
    free(path);
    return rc;
}
