/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/matrix.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/text.h"
#include "contract/keys.h"
#include "matrix/compile.h"
#include "matrix/grid.h"
#include "matrix/placeholder.h"
#include "matrix/pointer.h"
#include "matrix/report.h"
#include "matrix/together.h"

/* Where a text with placeholders stands: {{args}} and {{key...}} become words of a command only. */
enum place { IN_WORDS, IN_TEXT, IN_MEMBER };

/* Can this value stand for the placeholder? {{key...}} wants a list, {{key?text}} true or false. */
static bool suits(const struct hg_matrix *m, const struct hg_placeholder *p, hg_value value)
{
    json_t *json = hg_pool_json(m->grid->pool, value);
    bool fits = !json || (p->several ? json_is_array(json) : json_is_boolean(json));

    json_decref(json);
    return fits;
}

/* The first value of a column in a product that does not suit the placeholder; ABSENT: all do. */
static hg_value find_unfit(const struct hg_matrix *m, const struct hg_placeholder *p,
                           const struct hg_product *product, int column)
{
    hg_value found = HG_VALUE_ABSENT;

    for (size_t i = 0; i < product->n; i++)
        for (size_t k = 0; k < product->items[i].n && hg_value_is_absent(found); k++) {
            const struct hg_alt *alt = &product->items[i].items[k];

            if (alt->kind == HG_ALT_PRODUCT)
                found = find_unfit(m, p, alt->product, column);
            else if (product->items[i].column == column &&
                     (alt->kind != HG_ALT_VALUE || !suits(m, p, alt->value)))
                found = alt->kind == HG_ALT_VALUE ? alt->value : hg_value_of_number(alt->first);
        }
    return found;
}

/* Values that the matrix gives are judged here; what "derive" makes, cell by cell (fate.c). */
static void check_values(const struct hg_matrix *m, const struct hg_placeholder *p,
                         const char *pointer, struct hg_errs *errs)
{
    int column = hg_grid_column(m->grid, p->key);
    struct hg_column *c = &m->grid->columns.items[column];
    hg_value wrong = suits(m, p, c->start) ? HG_VALUE_ABSENT : c->start;
    json_t *json;

    c->list |= p->several;
    c->flag |= p->text != NULL;
    for (size_t i = 0; i < m->grid->sources.n && hg_value_is_absent(wrong); i++)
        wrong = find_unfit(m, p, &m->grid->sources.items[i].product, column);
    json = hg_pool_json(m->grid->pool, wrong);
    if (json)
        hg_json_error(&m->doc, pointer, errs, "{{%s%s}}: \"%s\" is %s in some cells, not %s",
                      p->key, p->several ? "..." : "?...", p->key, hg_json_type_name(json),
                      p->several ? "a list" : "true or false");
    json_decref(json);
}

static void check_placeholder(const struct hg_matrix *m, const struct hg_placeholder *p,
                              const char *pointer, struct hg_errs *errs)
{
    if (p->key[0] == '_')
        hg_json_error(&m->doc, pointer, errs, "{{%s}}: a note does not reach the workload", p->key);
    else if (hg_key_is_reserved(p->key) && (p->several || p->text))
        hg_json_error(&m->doc, pointer, errs,
                      "{{%s%s}}: \"%s\" is neither a list nor true or false", p->key,
                      p->several ? "..." : "?...", p->key);
    else if (!hg_key_is_reserved(p->key) && !hg_grid_has_key(m->grid, p->key))
        hg_grid_suggest(
            m->grid, p->key,
            hg_json_error(&m->doc, pointer, errs, "{{%s}}: no cell has \"%s\"", p->key, p->key));
    else if (p->several || p->text)
        check_values(m, p, pointer, errs);
}

static void check_template(const struct hg_matrix *m, const char *text, enum place place,
                           const char *pointer, struct hg_errs *errs)
{
    struct hg_placeholder p;

    for (const char *at = text; (at = strstr(at, "{{")); at = strstr(at, "}}") + 2) {
        if (!strstr(at, "}}")) {
            hg_json_error(&m->doc, pointer, errs, "{{ without }}");
            return;
        }
        if (!hg_placeholder_parse(at, &p)) {
            hg_json_error(&m->doc, pointer, errs, "\"%.*s\" is not a placeholder",
                          (int)(strstr(at, "}}") + 2 - at), at);
            continue;
        }
        if (place == IN_WORDS
                ? (p.several || strcmp(p.key, "args") == 0) && !hg_placeholder_is_whole(&p, text)
                : p.several)
            hg_err_hint(hg_json_error(&m->doc, pointer, errs, "{{%s%s}} stands for several words",
                                      p.key, p.several ? "..." : ""),
                        "give it a word of its own%s", place == IN_WORDS ? "" : " in the command");
        check_placeholder(m, &p, pointer, errs);
    }
}

/* Every string in a value, however deep. */
static void check_templates(const struct hg_matrix *m, const json_t *value, enum place place,
                            const char *pointer, struct hg_errs *errs)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *key;
    json_t *inner;
    size_t i;

    if (json_is_string(value))
        check_template(m, json_string_value(value), place, pointer, errs);
    json_array_foreach((json_t *)value, i, inner) {
        check_templates(m, inner, place, hg_item_pointer(&path, pointer, i), errs);
    }
    json_object_foreach((json_t *)value, key, inner) {
        if (place != IN_MEMBER || key[0] != '_')
            check_templates(m, inner, place, hg_member_pointer(&path, pointer, key), errs);
    }
    hg_buf_done(&path);
}

/* Does each {{key}} of the workload name a key that some cell has? hpcgrid-worker gets them in its parameters. */
static void check_placeholders(const struct hg_matrix *m, struct hg_errs *errs)
{
    const struct hg_workload *w = &m->workload;

    check_templates(m, w->words, IN_WORDS, "/workload/command", errs);
    check_templates(m, w->launch, IN_WORDS, "/workload/launch", errs);
    check_templates(m, w->env, IN_TEXT, "/workload/env", errs);
    check_templates(m, w->files, IN_TEXT, "/workload/files", errs);
    if (!m->grid->worker)
        return;
    check_templates(m, w->start, IN_MEMBER, "/workload", errs);
    check_templates(m, m->axes, IN_MEMBER, "/axes", errs);
    check_templates(m, m->include, IN_MEMBER, "/include", errs);
}

static void check_name(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                       struct hg_errs *errs)
{
    const char *name = json_string_value(value);

    if (name && !hg_text_is_name(name))
        hg_err_hint(hg_json_error(doc, pointer, errs, "\"%.70s\" cannot be a name", name),
                    "a name becomes a folder: up to 64 letters, digits, ., _ and -, not beginning "
                    "with . or -");
}

static void check_format(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                         struct hg_errs *errs)
{
    if (json_is_number(value) && json_number_value(value) != 1)
        hg_json_error(doc, pointer, errs, "format %.15g is not known; this hpcgrid reads format 1",
                      json_number_value(value));
}

static void check_list(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                       struct hg_errs *errs)
{
    if (!json_is_array(value))
        hg_json_error(doc, pointer, errs, "expected a list, found %s", hg_json_type_name(value));
}

const struct hg_field hg_limits_fields[] = {
    { "running", HG_J_INT, offsetof(struct hg_matrix, running), .min = 1, .max = 1000000,
      .doc = "cells that may run at the same time" },
    { "gpu_hours", HG_J_REAL, offsetof(struct hg_matrix, gpu_hours), .min = 0.001, .max = 1e9,
      .doc =
          "GPU-hours that all cells may cost by their time limits, retries left out; a larger plan is "
          "refused, adaptive repeats beyond the first round end there" },
    { 0 },
};

#define ANY_OBJECT "{\"type\": \"object\"}"
#define ANY_OBJECTS "{\"type\": \"array\", \"items\": {\"type\": \"object\"}}"

const struct hg_field hg_matrix_fields[] = {
    { "$schema", HG_J_JSON, 0, HG_J_IGNORED, .schema = "{\"type\": \"string\"}",
      .doc = "for editors; ignored" },
    { "hpcgrid", HG_J_INT, offsetof(struct hg_matrix, format), HG_J_REQUIRED, .min = 1, .max = 1,
      .check = check_format, .doc = "number of the format: 1" },
    { "name", HG_J_STRING, offsetof(struct hg_matrix, name), HG_J_REQUIRED, .check = check_name,
      .schema = "{\"pattern\": \"" HG_TEXT_NAME_PATTERN "\"}",
      .doc = "name of the experiment; runs are kept in `reports/NAME`" },
    { "site", HG_J_JSON, offsetof(struct hg_matrix, site_json),
      .schema = "{\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"object\"}]}",
      .doc =
          "where it runs: a name from `templates/sites`, a path, or an object; absent: what the axis `site` names, else `box`" },
    { "workload", HG_J_JSON, offsetof(struct hg_matrix, workload_json), HG_J_REQUIRED,
      .check = hg_check_object, .schema = ANY_OBJECT,
      .doc = "what runs in every cell, and the members cells start with" },
    { "axes", HG_J_JSON, offsetof(struct hg_matrix, axes), .check = hg_check_object,
      .schema = ANY_OBJECT,
      .doc = "lists of values that are multiplied; the first varies slowest" },
    { "include", HG_J_JSON, offsetof(struct hg_matrix, include), .check = check_list,
      .schema = ANY_OBJECTS, .doc = "further products, written like `axes`" },
    { "exclude", HG_J_JSON, offsetof(struct hg_matrix, exclude), .check = check_list,
      .schema = "{\"type\": \"array\", \"items\": {\"type\": [\"object\", \"string\"]}}",
      .doc = "rules that remove cells: objects that match, or jq expressions" },
    { "derive", HG_J_JSON, offsetof(struct hg_matrix, derive), .check = hg_check_object,
      .schema = "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"string\"}}",
      .doc = "jq expressions for members that a cell lacks, in order" },
    { "repeats", HG_J_JSON, offsetof(struct hg_matrix, repeats_json), .check = hg_repeats_check,
      .schema = "{\"anyOf\": [{\"type\": \"integer\"}, {\"type\": \"object\"}]}",
      .doc = "how many times every cell is run, 1 to 100000, or until when; absent: 1" },
    { "shuffle", HG_J_INT, offsetof(struct hg_matrix, shuffle), .min = 0, .max = 999999999999999,
      .doc = "a seed: the cells of each round are mixed" },
    { "together", HG_J_JSON, offsetof(struct hg_matrix, together), .check = hg_together_check,
      .schema =
          "{\"anyOf\": [{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000}, {\"type\": "
          "\"array\", \"minItems\": 1, \"items\": {\"type\": \"string\"}}]}",
      .doc =
          "cells that run one after another in one job, on the same nodes: those that differ in these "
          "keys only, or so many of equal request" },
    { "baseline", HG_J_JSON, offsetof(struct hg_matrix, baseline), .check = hg_check_object,
      .schema = ANY_OBJECT,
      .doc = "overrides that select a cell's baseline, the cell it is compared with" },
    { "limits", HG_J_OBJECT, 0, .fields = hg_limits_fields, .doc = "bounds of a run" },
    { "retry", HG_J_OBJECT, offsetof(struct hg_matrix, retry), .fields = hg_retry_fields,
      .doc = "how often a failed cell is run again, by cause" },
    { "report", HG_J_JSON, offsetof(struct hg_matrix, report), .check = hg_check_object,
      .schema = ANY_OBJECT, .doc = "the tables to make" },
    { 0 },
};

static char *folder_of(const char *path, struct hg_err *err)
{
    char *absolute = hg_fs_absolute(strcmp(path, "-") == 0 ? "./-" : path, err);
    char *dir = absolute ? hg_fs_dirname(absolute) : NULL;

    free(absolute);
    return dir;
}

/* ---- Sites ---- */

int hg_matrix_choose(struct hg_matrix *m, struct hg_several_site *here, struct hg_errs *errs)
{
    const char *name = json_string_value(json_object_get(m->doc.root, "name"));
    struct hg_buf pointer = HG_BUF_INIT;
    int rc = hg_site_take_account(here->site, &m->doc,
                                  hg_matrix_pointer(m, "site", here->word, &pointer), errs);

    if (rc < 0)
        hg_err_hint(&errs->items[errs->n - 1],
                    "set SBATCH_ACCOUNT, or name a file instead that has {\"extends\": \"%s\", "
                    "\"account\": \"...\"}",
                    here->word);
    hg_buf_done(&pointer);
    m->several.here = m->site = here->site;
    free(m->site_given);
    m->site_given = hg_strdup(here->site->name);
    if (m->several.n > 1) {
        free(m->name);
        m->name = hg_str_printf("%s.%s", name ? name : "", here->site->name);
    }
    return rc;
}

int hg_matrix_check_chosen(const struct hg_matrix *m, struct hg_err *err)
{
    if (!m->several.n || m->several.here)
        return 0;
    hg_err_set(err, HG_E_USAGE, "the matrix has %zu sites: which one is this?", m->several.n);
    hg_err_at(err, m->doc.file, NULL);
    return hg_several_hint(&m->several, "; --site NAME or HPCGRID_SITE tells", err);
}

const struct hg_site *hg_matrix_site(const struct hg_matrix *m, const char *name)
{
    const struct hg_several_site *found;

    if (!m->several.n)
        return m->site;
    found = name ? hg_several_find(&m->several, name) : NULL;
    return found ? found->site : NULL;
}

const struct hg_hardware *hg_matrix_hardware(const struct hg_matrix *m, const json_t *members)
{
    const char *name = json_string_value(json_object_get(members, "hardware"));
    const struct hg_site *site =
        hg_matrix_site(m, json_string_value(json_object_get(members, "site")));

    return site && name ? hg_site_find_hardware(site, name) : NULL;
}

/* `wanted` is --site; $HPCGRID_SITE may name a site that this matrix does not have. */
static void choose_site(struct hg_matrix *m, const char *wanted, struct hg_errs *errs)
{
    const char *set = getenv("HPCGRID_SITE"), *word = wanted ? wanted : set ? set : "";
    struct hg_several_site *here = hg_several_find(&m->several, word);

    m->site = m->several.items[0].site;
    if (m->several.n == 1 && !wanted)
        here = m->several.items;
    if (here) {
        hg_matrix_choose(m, here, errs);
    } else if (wanted) {
        struct hg_err *err = hg_errs_next(errs);

        hg_err_set(err, HG_E_USAGE, "--site: the matrix has no site \"%.70s\"", wanted);
        hg_several_hint(&m->several, "", err);
    }
}

static void find_sites(struct hg_matrix *m, const char *site, struct hg_errs *errs)
{
    size_t before = errs->n + errs->dropped;

    if (!m->site_json) {
        hg_several_add(&m->several, &m->doc, m->axes, "/axes", m->dir, errs);
        hg_several_add(&m->several, &m->doc, m->include, "/include", m->dir, errs);
    }
    if (m->several.n)
        choose_site(m, site, errs);
    else if (errs->n + errs->dropped == before)
        m->site = site ? hg_site_find(site, errs)
                       : hg_site_from_value(&m->doc, m->site_json, "/site", m->dir, errs);
}

static void decode(struct hg_matrix *m, const char *site, struct hg_errs *errs)
{
    hg_json_decode(&m->doc, m->doc.root, "", hg_matrix_fields, true, m, errs);
    m->repeats = hg_repeats_of(m->repeats_json);
    m->has_shuffle = json_object_get(m->doc.root, "shuffle") != NULL;
    find_sites(m, site, errs);
    if (m->workload_json)
        hg_workload_decode(&m->doc, m->workload_json, &m->workload, errs);
    /* Cells, report and placeholders are judged even when a member elsewhere, the site or the program is wrong: all
     * problems are reported. */
    if (m->workload.start) {
        m->grid = hg_grid_compile(m, errs);
        hg_report_check(m, errs);
        hg_together_check_keys(m, errs);
        check_placeholders(m, errs);
    }
}

struct hg_matrix *hg_matrix_load(const char *path, const char *site, struct hg_errs *errs)
{
    size_t before = errs->n + errs->dropped;
    struct hg_matrix *m = hg_alloc_zeroed(1, sizeof *m);
    struct hg_err err = HG_ERR_INIT;

    m->dir = folder_of(path, &err);
    if (site)
        m->site_given =
            strchr(site, '/') || hg_fs_exists(site) ? hg_fs_absolute(site, &err) : hg_strdup(site);
    if (m->dir && hg_json_load(path, &m->doc, &err) == 0)
        decode(m, site, errs);
    hg_errs_add(errs, &err);
    if (errs->n + errs->dropped == before)
        return m;
    hg_matrix_free(m);
    return NULL;
}

/* Is the text the value, or one of its list? NULL: any value is. */
static bool gives(const json_t *value, const char *text)
{
    json_t *item;
    size_t i;

    json_array_foreach((json_t *)value, i, item) {
        if (gives(item, text))
            return true;
    }
    return !text || (json_is_string(value) && strcmp(json_string_value(value), text) == 0);
}

/* Append the way from json to the first member `key` that gives the text, however deep. */
static bool find_member(const json_t *json, const char *key, const char *text,
                        struct hg_buf *pointer)
{
    const json_t *own = json_object_get(json, key);
    size_t start = pointer->len, i;
    const char *name;
    json_t *inner;

    if (own && gives(own, text)) {
        hg_json_pointer_push(pointer, key);
        return true;
    }
    json_object_foreach((json_t *)json, name, inner) {
        hg_json_pointer_push(pointer, name);
        if (find_member(inner, key, text, pointer))
            return true;
        pointer->len = start;
    }
    json_array_foreach((json_t *)json, i, inner) {
        hg_buf_printf(pointer, "/%zu", i);
        if (find_member(inner, key, text, pointer))
            return true;
        pointer->len = start;
    }
    return false;
}

const char *hg_matrix_pointer(const struct hg_matrix *m, const char *key, const char *text,
                              struct hg_buf *scratch)
{
    const struct {
        const char *pointer, *text;
        const json_t *json;
    } places[] = {
        { "/axes", text, m->axes },
        { "/include", text, m->include },
        { "/workload", text, m->workload.start },
        { "/derive", NULL, m->derive },
    };

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        hg_buf_clear(scratch);
        hg_buf_puts(scratch, places[i].pointer);
        if (find_member(places[i].json, key, places[i].text, scratch))
            return hg_buf_str(scratch);
    }
    hg_buf_clear(scratch);
    return "";
}

void hg_matrix_free(struct hg_matrix *m)
{
    if (!m)
        return;
    if (m->auto_times.free)
        m->auto_times.free(m->auto_times.context);
    hg_grid_free(m->grid);
    if (!m->several.n)
        hg_site_free(m->site);
    hg_several_done(&m->several);
    hg_workload_done(&m->workload);
    hg_json_release(hg_matrix_fields, m);
    free(m->dir);
    free(m->site_given);
    hg_json_doc_done(&m->doc);
    free(m);
}
