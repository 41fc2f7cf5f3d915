/* SPDX-License-Identifier: Apache-2.0 */
/* matrix.json, site.json, plan.json and the batches: do they go together? */
#include "inspect/fsck_plan.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bar.h"
#include "base/buf.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "contract/keys.h"
#include "plan/batch.h"
#include "plan/cells.h"
#include "plan/files.h"
#include "rundir/identity.h"

#define RESTORE "restore it from a backup, or begin a new run: hpcgrid run MATRIX --new"

/* ---- Sources ---- */

/* A JSON object below the run; NULL if it is not one, which is a finding. */
static json_t *read_object(struct hg_fsck_pass *c, const char *file, const char *next)
{
    char *path = hg_rundir_path(c->rd, "%s", file);
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_err why = HG_ERR_INIT;
    int plain = hg_fsck_is_plain(c, file);
    json_t *root = NULL;

    if (plain == 0)
        hg_fsck_found(c, HG_FSCK_ERROR, "missing", file, 0, next, "is not there");
    else if (plain == 1 && hg_json_load(path, &doc, &why) < 0)
        hg_fsck_found(c, HG_FSCK_ERROR, "json", file, (size_t)why.line, next, "cannot be read: %s",
                      why.text);
    else if (plain == 1 && !json_is_object(doc.root))
        hg_fsck_found(c, HG_FSCK_ERROR, "json", file, 1, next, "is not a JSON object");
    else if (plain == 1)
        root = json_incref(doc.root);
    hg_json_doc_done(&doc);
    free(path);
    return root;
}

static void check_sources(struct hg_fsck_pass *c)
{
    json_t *matrix = read_object(c, "matrix.json", "hpcgrid run MATRIX writes it again");
    json_t *site = read_object(c, "site.json", "hpcgrid run MATRIX writes it again");
    const char *name = json_string_value(json_object_get(matrix, "name"));
    const char *planned = json_string_value(json_object_get(c->plan, "name"));

    if (matrix && json_integer_value(json_object_get(matrix, "hpcgrid")) != 1)
        hg_fsck_found(c, HG_FSCK_ERROR, "matrix", "matrix.json", 1,
                      "hpcgrid run MATRIX writes it again", "is not a matrix of format 1");
    /* one that runs in a box for another site has a name of its own */
    if (name && planned && strncmp(name, planned, strlen(name) < 58 ? strlen(name) : 58) != 0)
        hg_fsck_found(c, HG_FSCK_WARNING, "name", "matrix.json", 0,
                      "was it copied from another run?",
                      "has the name \"%s\", plan.json has \"%s\"", name, planned);
    json_decref(matrix);
    json_decref(site);
}

/* ---- Cells ---- */

static bool is_in_id(const char *key)
{
    return key[0] != '_' && !hg_key_has_role(key, HG_ROLE_LOOSE);
}

/* The twelve digits at the end of a cell's id, from its members and the workload. */
static void hash_cell(const json_t *cell, const json_t *workload, char digits[static 13])
{
    static const char *const parts[] = { "program", "command", "launch", "env", "files" };
    json_t *members = json_object(), *work = json_object(), *value;
    json_t *whole = json_pack("{s:o,s:o}", "cell", members, "workload", work);
    struct hg_buf text = HG_BUF_INIT;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)cell, key, value) {
        if (is_in_id(key))
            json_object_set(members, key, value);
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (json_object_get(workload, parts[i]))
            json_object_set(work, parts[i], json_object_get(workload, parts[i]));
    hg_json_dump(whole, HG_JSON_COMPACT | HG_JSON_SORT, &text);
    snprintf(digits, 13, "%012" PRIx64, hg_hash64(hg_buf_str(&text), text.len) >> 16);
    hg_buf_done(&text);
    json_decref(whole);
}

/* What is known of a batch's cells file while it is read. */
struct batch {
    int number;
    char file[40];
    size_t lines, wrong, first_wrong; /* wrong: lines whose id is not the hash of their members */
    uint64_t size;                    /* of the lines read so far */
    struct hg_buf index;              /* as it has to be */
};

static void check_cell(struct hg_fsck_pass *c, struct batch *b, const json_t *record)
{
    const char *id = json_string_value(json_object_get(record, "id"));
    const json_t *cell = json_object_get(record, "cell");
    size_t n = id ? strlen(id) : 0;
    char digits[13];

    c->f->cells++;
    if (n < 13 || !json_is_object(cell)) {
        hg_fsck_found(c, HG_FSCK_ERROR, "cell", b->file, b->lines, RESTORE,
                      "has no id, or no members");
        return;
    }
    if (hg_map_find(&c->ids, id, n) != HG_MAP_NONE) {
        hg_fsck_found(c, HG_FSCK_ERROR, "cell-twice", b->file, b->lines, RESTORE,
                      "the cell is in the plan twice: it would run twice");
        return;
    }
    hg_map_put(&c->ids, id, n, hg_fsck_place(b->number, b->lines - 1));
    hash_cell(cell, json_object_get(c->plan, "workload"), digits);
    if (strcmp(id + n - 12, digits) != 0 && !b->wrong++)
        b->first_wrong = b->lines;
}

/* Some lines were edited; or all of them are of a workload that the matrix no longer has. */
static void check_ids(struct hg_fsck_pass *c, const struct batch *b)
{
    if (b->wrong && b->wrong < b->lines)
        hg_fsck_found(c, HG_FSCK_ERROR, "cell-id", b->file, b->first_wrong, RESTORE,
                      "the id is not the hash of the cell's members: the line was changed (as were "
                      "%zu of %zu lines)",
                      b->wrong, b->lines);
    else if (b->wrong)
        hg_fsck_found(c, HG_FSCK_WARNING, "cell-id", b->file, 0,
                      "cells of another command belong in a new run: hpcgrid "
                      "run MATRIX --new",
                      "no id is the hash of its cell and plan.json's workload: the workload has "
                      "changed since, or the file");
}

static void check_line(struct hg_fsck_pass *c, struct batch *b, const char *text, size_t n)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_err why = HG_ERR_INIT;

    if (hg_json_parse(b->file, text, n - (n && text[n - 1] == '\n'), &doc, &why) < 0)
        hg_fsck_found(c, HG_FSCK_ERROR, "cell", b->file, b->lines, RESTORE,
                      "the line is damaged: %s", why.text);
    else
        check_cell(c, b, doc.root);
    hg_json_doc_done(&doc);
}

static void read_cells(struct hg_fsck_pass *c, struct batch *b)
{
    char *path = hg_rundir_path(c->rd, "%s", b->file);
    FILE *f = fopen(path, "re");
    char *text = NULL;
    size_t cap = 0;
    ssize_t n;

    if (!f)
        hg_fsck_found(c, HG_FSCK_ERROR, "missing", b->file, 0, RESTORE, "cannot be opened");
    while (f && (n = getline(&text, &cap, f)) > 0) {
        hg_bar_step();
        b->lines++;
        b->size += (uint64_t)n;
        hg_plan_index_add(&b->index, b->size);
        check_line(c, b, text, (size_t)n);
    }
    if (f)
        fclose(f);
    free(text);
    free(path);
}

/* Where a job looks its cell up. */
static void check_index(struct hg_fsck_pass *c, const struct batch *b)
{
    const struct hg_buf *want = &b->index;
    struct hg_buf is = HG_BUF_INIT;
    char file[40], *path;
    size_t same = 0;
    int plain;

    snprintf(file, sizeof file, "batches/%d.cells.idx", b->number);
    path = hg_rundir_path(c->rd, "%s", file);
    plain = hg_fsck_is_plain(c, file);
    if (plain == 0) {
        hg_fsck_found(c, HG_FSCK_ERROR, "missing", file, 0, RESTORE,
                      "is missing: no job of the batch can find its cell");
    } else if (plain == 1 && hg_fs_read_file(path, 2 * want->len, &is, NULL) < 0) {
        hg_fsck_found(c, HG_FSCK_ERROR, "index", file, 0, RESTORE,
                      "cannot be read, or is too long for %zu cells", b->lines);
    } else if (plain == 1 && (is.len != want->len || memcmp(is.data, want->data, is.len) != 0)) {
        while (same < is.len && same < want->len && is.data[same] == want->data[same])
            same++;
        hg_fsck_found(c, HG_FSCK_ERROR, "index", file, same / HG_PLAN_INDEX_LINE + 1, RESTORE,
                      "does not match the lines of %d.cells.jsonl: jobs would not find "
                      "their cells",
                      b->number);
    }
    hg_buf_done(&is);
    free(path);
}

/* ---- The script ---- */

static void check_script(struct hg_fsck_pass *c, int number)
{
    char file[40], *folder;
    int plain;

    snprintf(file, sizeof file, "batches/%d.sh", number);
    plain = hg_fsck_is_plain(c, file);
    folder = plain == 1 ? hg_identity_script_folder(c->rd->path, number) : NULL;
    if (plain == 0)
        hg_fsck_found(c, HG_FSCK_ERROR, "missing", file, 0, RESTORE,
                      "is missing: the batch cannot be submitted");
    else if (plain == 1 && !folder)
        hg_fsck_found(c, HG_FSCK_ERROR, "script", file, 0, RESTORE,
                      "does not end in `hpcgrid exec`");
    free(folder);
}

/* ---- Batches ---- */

static void check_batch(struct hg_fsck_pass *c, size_t index, const json_t *batch)
{
    struct batch b = { .number = (int)json_integer_value(json_object_get(batch, "number")) };
    json_int_t cells = json_integer_value(json_object_get(batch, "cells"));
    int plain;

    if (b.number != (int)index + 1 || !json_is_object(json_object_get(batch, "job"))) {
        hg_fsck_found(c, HG_FSCK_ERROR, "plan", "plan.json", 0, RESTORE,
                      "batch %zu is not complete", index + 1);
        return;
    }
    snprintf(b.file, sizeof b.file, "batches/%d.cells.jsonl", b.number);
    plain = hg_fsck_is_plain(c, b.file);
    if (plain == 0)
        hg_fsck_found(c, HG_FSCK_ERROR, "missing", b.file, 0, RESTORE,
                      "is missing: the batch's cells are not known");
    if (plain == 1) {
        hg_plan_index_add(&b.index, 0);
        read_cells(c, &b);
        check_ids(c, &b);
        check_index(c, &b);
        hg_buf_done(&b.index);
        if (b.lines != (size_t)cells)
            hg_fsck_found(c, HG_FSCK_ERROR, "cells", b.file, b.lines, RESTORE,
                          "has %zu lines, plan.json says %lld", b.lines, (long long)cells);
    }
    check_script(c, b.number);
}

static void check_extra(struct hg_fsck_pass *c, const char *file, const char *name,
                        const struct stat *st)
{
    size_t batches = json_array_size(json_object_get(c->plan, "batches"));
    unsigned long number = strtoul(name, NULL, 10);

    if (S_ISREG(st->st_mode) && !strstr(name, ".tmp.") && (number < 1 || number > batches))
        hg_fsck_found(c, HG_FSCK_NOTE, "batch-other", file, 0,
                      "hpcgrid run MATRIX writes it again when it is needed",
                      "belongs to no batch in plan.json: planning was interrupted");
}

static void check_batches(struct hg_fsck_pass *c)
{
    const json_t *list = json_object_get(c->plan, "batches"), *batch;
    size_t i, before = c->f->by_severity[HG_FSCK_ERROR];
    struct hg_err why = HG_ERR_INIT;
    struct hg_plan *plan;

    json_array_foreach(list, i, batch)
        check_batch(c, i, batch);
    hg_fsck_each(c, "batches", check_extra);
    if (c->f->by_severity[HG_FSCK_ERROR] > before)
        return;
    plan = hg_plan_load(c->rd->path, &why); /* would a command take it? */
    c->complete = plan != NULL;
    hg_plan_free(plan);
    if (!c->complete)
        hg_fsck_found(c, HG_FSCK_ERROR, "plan", "plan.json", 0, RESTORE, "cannot be used: %s",
                      why.text);
}

/* ---- Other runs ---- */

/* A copy or a moved run, which commands refuse. */
static void check_home(struct hg_fsck_pass *c)
{
    struct hg_identity id;

    hg_identity_find(c->rd->path, &id);
    if (id.home != HG_HOME_HERE)
        hg_fsck_found(c, HG_FSCK_WARNING, id.home == HG_HOME_COPY ? "copy" : "script-folder",
                      id.file, 0, id.why.hint, "%s", id.why.text);
}

/* A copy of this run: results of one would count in the other. */
static void check_sibling(struct hg_fsck_pass *c, const char *parent, const char *name)
{
    char *dir = hg_fs_join(parent, name);
    json_t *plan =
        hg_fs_is_dir(dir) && strcmp(dir, c->rd->path) != 0 ? hg_plan_read(dir, NULL) : NULL;
    const char *key = json_string_value(json_object_get(plan, "run_key"));

    if (key && strcmp(key, c->run_key) == 0)
        hg_fsck_found(c, HG_FSCK_WARNING, "copy", "plan.json", 0,
                      "keep one of the two; the other may only be read",
                      "%s has the same run key: one is a copy of the other, and jobs of both "
                      "would be taken for one run's",
                      dir);
    json_decref(plan);
    free(dir);
}

static void check_siblings(struct hg_fsck_pass *c)
{
    char *parent = hg_fs_dirname(c->rd->path);
    DIR *d = opendir(parent);
    struct dirent *entry;

    while (d && (entry = readdir(d)))
        if (entry->d_name[0] != '.')
            check_sibling(c, parent, entry->d_name);
    if (d)
        closedir(d);
    free(parent);
}

/* As other commands read it. */
static void read_plan(struct hg_fsck_pass *c)
{
    struct hg_err why = HG_ERR_INIT;

    c->plan = hg_plan_read(c->rd->path, &why);
    c->run_key = json_string_value(json_object_get(c->plan, "run_key"));
    if (!c->plan)
        hg_fsck_found(c, HG_FSCK_ERROR, "plan", "plan.json", 0, RESTORE, "cannot be used: %s",
                      why.text);
    else if (!c->run_key || strlen(c->run_key) != 32) {
        hg_fsck_found(c, HG_FSCK_ERROR, "plan", "plan.json", 0, RESTORE,
                      "has no run key: no result can be matched to this run");
        c->run_key = NULL;
    }
}

void hg_fsck_plan(struct hg_fsck_pass *c)
{
    struct hg_err why = HG_ERR_INIT;
    int plain = hg_fsck_is_plain(c, "plan.json");

    if (plain == 0) { /* with the message of every other command */
        hg_plan_read(c->rd->path, &why);
        hg_fsck_found(c, HG_FSCK_ERROR, "missing", "plan.json", 0, why.hint, "%s", why.text);
    } else if (plain == 1) {
        c->plan = read_object(c, "plan.json", RESTORE);
    }
    check_sources(c);
    if (!c->plan)
        return;
    json_decref(c->plan);
    read_plan(c);
    if (!c->run_key)
        return;
    hg_bar_begin("cells", hg_plan_count_cells(c->plan));
    check_batches(c);
    hg_bar_end();
    check_home(c);
    check_siblings(c);
}
