/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/matrix.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "base/fs.h"
#include "base/pattern.h"
#include "base/text.h"
#include "matrix/grid.h"
#include "results/result_keys.h"
#include "matrix/select.h"
#include "matrix/tables.h"

#define PROGRAM "hpcgrid-worker"

/* ---- Field tables ---- */

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

static void check_object(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                         struct hg_errs *errs)
{
    if (!json_is_object(value))
        hg_json_error(doc, pointer, errs, "expected an object, found %s", hg_json_type_name(value));
}

static void check_list(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                       struct hg_errs *errs)
{
    if (!json_is_array(value))
        hg_json_error(doc, pointer, errs, "expected a list, found %s", hg_json_type_name(value));
}

static void check_texts(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                        struct hg_errs *errs)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *key;
    json_t *text;

    check_object(doc, value, pointer, errs);
    json_object_foreach((json_t *)value, key, text) {
        hg_buf_clear(&path);
        hg_buf_puts(&path, pointer);
        hg_json_pointer_push(&path, key);
        if (!json_is_string(text))
            hg_json_error(doc, hg_buf_str(&path), errs, "expected a string, found %s",
                          hg_json_type_name(text));
    }
    hg_buf_done(&path);
}

static bool is_variable_name(const char *s)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

    return *s && !(*s >= '0' && *s <= '9') && s[strspn(s, letters)] == '\0';
}

/* Set for every rank after the workload's own variables: those would be lost. */
static bool is_own_variable(const char *name)
{
    static const char *const ours[] = { "HPCGRID_CELL",    "HPCGRID_RESULT", "HPCGRID_RUN",
                                        "HPCGRID_ATTEMPT", "RANK",           "LOCAL_RANK",
                                        "WORLD_SIZE" };

    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(name, ours[i]) == 0)
            return true;
    return false;
}

static void check_env(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                      struct hg_errs *errs)
{
    const char *key;
    json_t *text;

    check_texts(doc, value, pointer, errs);
    json_object_foreach((json_t *)value, key, text) {
        if (!is_variable_name(key))
            hg_err_hint(hg_json_error(doc, pointer, errs,
                                      "\"%.70s\" cannot be the name of a variable", key),
                        "use letters, digits and _, not beginning with a digit");
        else if (is_own_variable(key))
            hg_err_hint(hg_json_error(doc, pointer, errs, "%s is set by hpcgrid itself", key),
                        "choose another variable");
    }
}

bool hg_matrix_is_own_file(const char *name)
{
    static const char *const ours[] = { "claim.json",    "claim.taken.json", "left.json",
                                        "cell.json",     "out.log",          "err.log",
                                        "workload.json", "result.json" };
    size_t digits = strncmp(name, "rank.", 5) == 0 ? strspn(name + 5, "0123456789") : 0;

    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(name, ours[i]) == 0)
            return true;
    return digits && strcmp(name + 5 + digits, ".json") == 0;
}

/* Files lie beside hpcgrid's own in the attempt's folder. */
static void check_files(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                        struct hg_errs *errs)
{
    const char *key;
    json_t *text;

    check_texts(doc, value, pointer, errs);
    json_object_foreach((json_t *)value, key, text) {
        if (hg_matrix_is_own_file(key))
            hg_json_error(doc, pointer, errs, "\"%s\" is a file of hpcgrid's own there", key);
        else if (!hg_text_is_name(key))
            hg_err_hint(
                hg_json_error(doc, pointer, errs, "\"%.70s\" cannot be a file's name here", key),
                "files are written into the attempt's folder, {{dir}}: up to 64 letters, "
                "digits, ., _ and -, not beginning with . or -");
    }
}

static void check_inner_words(const struct hg_json_doc *doc, const json_t *list,
                              const char *pointer, struct hg_errs *errs)
{
    struct hg_buf path = HG_BUF_INIT;
    json_t *word;
    size_t i;

    json_array_foreach((json_t *)list, i, word) {
        hg_buf_clear(&path);
        hg_buf_printf(&path, "%s/%zu", pointer, i);
        if (!json_is_string(word))
            hg_json_error(doc, hg_buf_str(&path), errs, "expected a string, found %s",
                          hg_json_type_name(word));
    }
    hg_buf_done(&path);
}

/* Words of a command: strings, and lists of strings that are left out as a whole. */
static void check_words(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                        struct hg_errs *errs)
{
    struct hg_buf path = HG_BUF_INIT;
    json_t *word;
    size_t i;

    if (!json_is_array(value))
        hg_err_hint(hg_json_error(doc, pointer, errs, "expected a list of words, found %s",
                                  hg_json_type_name(value)),
                    "no shell reads a command: write [\"python\", \"train.py\", \"{{args}}\"]");
    json_array_foreach((json_t *)value, i, word) {
        hg_buf_clear(&path);
        hg_buf_printf(&path, "%s/%zu", pointer, i);
        if (json_is_array(word))
            check_inner_words(doc, word, hg_buf_str(&path), errs);
        else if (!json_is_string(word))
            hg_json_error(doc, hg_buf_str(&path), errs,
                          "expected a string or a list of strings, found %s",
                          hg_json_type_name(word));
    }
    hg_buf_done(&path);
}

static void check_command(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                          struct hg_errs *errs)
{
    check_words(doc, value, pointer, errs);
    if (json_is_array(value) &&
        (json_array_size(value) == 0 || (json_is_string(json_array_get(value, 0)) &&
                                         json_string_length(json_array_get(value, 0)) == 0)))
        hg_err_hint(hg_json_error(doc, pointer, errs, "an empty command"),
                    "the first word is the program to start");
}

/* A number from the output can only become a key that holds one and that is not ours. */
static void check_result_key(const struct hg_json_doc *doc, const char *key, const char *pointer,
                             struct hg_errs *errs)
{
    const char *type = hg_result_key_type(key);

    if (hg_result_key_is_own(key))
        hg_err_hint(hg_json_error(doc, pointer, errs, "\"%s\" is measured by hpcgrid itself", key),
                    "choose another name for what the output says");
    else if (type && strcmp(type, "a number") != 0)
        hg_err_hint(hg_json_error(doc, pointer, errs, "\"%s\" is %s, not one number", key, type),
                    "choose another name for what the output says");
}

static void check_results(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                          struct hg_errs *errs)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *key;
    json_t *text;

    check_texts(doc, value, pointer, errs);
    json_object_foreach((json_t *)value, key, text) {
        struct hg_err err = HG_ERR_INIT;
        struct hg_pattern *p =
            json_is_string(text) ? hg_pattern_compile(json_string_value(text), &err) : NULL;

        hg_buf_clear(&path);
        hg_buf_puts(&path, pointer);
        hg_json_pointer_push(&path, key);
        check_result_key(doc, key, hg_buf_str(&path), errs);
        if (err.code)
            hg_err_hint(hg_json_error(doc, hg_buf_str(&path), errs, "%s", err.text), "%s",
                        err.hint);
        hg_pattern_free(p);
    }
    hg_buf_done(&path);
}

static const char *const programs[] = { PROGRAM, NULL };

#define WORDS_SCHEMA                                                                    \
    "{\"type\": \"array\", \"items\": {\"anyOf\": [{\"type\": \"string\"}, {\"type\": " \
    "\"array\", \"items\": {\"type\": \"string\"}}]}}"
#define TEXTS_SCHEMA "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"string\"}}"

const struct hg_field hg_workload_fields[] = {
    { "program", HG_J_STRING, offsetof(struct hg_workload, program), .words = programs,
      .doc = "the program that comes with hpcgrid: `hpcgrid-worker`" },
    { "command", HG_J_JSON, offsetof(struct hg_workload, words), .check = check_command,
      .schema = WORDS_SCHEMA,
      .doc =
          "any other program: a list of words that no shell reads; a list inside the list is left "
          "out as a whole when a placeholder in it has no value" },
    { "launch", HG_J_JSON, offsetof(struct hg_workload, launch), .check = check_words,
      .schema = WORDS_SCHEMA,
      .doc = "words instead of the site's launcher; `[]`: once, on the first node" },
    { "env", HG_J_JSON, offsetof(struct hg_workload, env), .check = check_env,
      .schema = TEXTS_SCHEMA, .doc = "environment variables: name and text, with placeholders" },
    { "files", HG_J_JSON, offsetof(struct hg_workload, files), .check = check_files,
      .schema = TEXTS_SCHEMA,
      .doc = "files to write before the start: name and text, with placeholders" },
    { "cwd", HG_J_STRING, offsetof(struct hg_workload, cwd),
      .doc = "folder to run in; absent: the matrix's own folder" },
    { "results", HG_J_JSON, offsetof(struct hg_workload, results), .check = check_results,
      .schema = TEXTS_SCHEMA,
      .doc = "result key and regular expression: group 1 of the last match in the output is the "
             "number" },
    { 0 },
};

static const char *const better_words[] = { "lower", "higher", NULL };

struct report {
    char **rows, **columns, **group, **work;
    char *metric, *where, *better;
};

const struct hg_field hg_report_fields[] = {
    { "rows", HG_J_STRINGS, offsetof(struct report, rows), .doc = "keys that make the rows" },
    { "columns", HG_J_STRINGS, offsetof(struct report, columns),
      .doc = "keys that make the columns" },
    { "group", HG_J_STRINGS, offsetof(struct report, group),
      .doc = "keys that give a table each, whether or not they have to" },
    { "metric", HG_J_STRING, offsetof(struct report, metric),
      .doc = "result key to tabulate; one ending in `_per_s` is a rate, the higher the better" },
    { "where", HG_J_STRING, offsetof(struct report, where), .doc = "a selector: only these cells" },
    { "better", HG_J_STRING, offsetof(struct report, better), .words = better_words,
      .doc = "`higher` makes the metric a rate" },
    { "work", HG_J_STRINGS, offsetof(struct report, work),
      .doc = "keys whose product is the work of a cell: tells strong from weak scaling" },
    { 0 },
};

struct limits {
    long long running;
    double gpu_hours;
};

const struct hg_field hg_limits_fields[] = {
    { "running", HG_J_INT, offsetof(struct limits, running), .min = 1, .max = 1000000,
      .doc = "cells that may run at the same time" },
    { "gpu_hours", HG_J_REAL, offsetof(struct limits, gpu_hours), .min = 0.001, .max = 1e9,
      .doc =
          "GPU-hours that all cells may cost by their time limits, retries left out; a larger plan is "
          "refused" },
    { 0 },
};

/* What decoding fills; taken apart into struct hg_matrix afterwards. */
struct top {
    long long format, repeats, shuffle;
    char *name;
    json_t *site, *workload, *axes, *include, *exclude, *derive, *baseline, *report, *limits,
        *retry;
};

#define ANY_OBJECT "{\"type\": \"object\"}"
#define ANY_OBJECTS "{\"type\": \"array\", \"items\": {\"type\": \"object\"}}"

const struct hg_field hg_matrix_fields[] = {
    { "$schema", HG_J_JSON, 0, HG_J_IGNORED, .schema = "{\"type\": \"string\"}",
      .doc = "for editors; ignored" },
    { "hpcgrid", HG_J_INT, offsetof(struct top, format), HG_J_REQUIRED, .min = 1, .max = 1,
      .check = check_format, .doc = "number of the format: 1" },
    { "name", HG_J_STRING, offsetof(struct top, name), HG_J_REQUIRED, .check = check_name,
      .schema = "{\"pattern\": \"^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$\"}",
      .doc = "name of the experiment; runs are kept in `reports/NAME`" },
    { "site", HG_J_JSON, offsetof(struct top, site),
      .schema = "{\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"object\"}]}",
      .doc = "where it runs: a name from `templates/sites`, a path, or an object; absent: `box`" },
    { "workload", HG_J_JSON, offsetof(struct top, workload), HG_J_REQUIRED, .check = check_object,
      .schema = ANY_OBJECT, .doc = "what runs in every cell, and the members cells start with" },
    { "axes", HG_J_JSON, offsetof(struct top, axes), .check = check_object, .schema = ANY_OBJECT,
      .doc = "lists of values that are multiplied; the first varies slowest" },
    { "include", HG_J_JSON, offsetof(struct top, include), .check = check_list,
      .schema = ANY_OBJECTS, .doc = "further products, written like `axes`" },
    { "exclude", HG_J_JSON, offsetof(struct top, exclude), .check = check_list,
      .schema = "{\"type\": \"array\", \"items\": {\"type\": [\"object\", \"string\"]}}",
      .doc = "rules that remove cells: objects that match, or jq expressions" },
    { "derive", HG_J_JSON, offsetof(struct top, derive), .check = check_object,
      .schema = TEXTS_SCHEMA, .doc = "jq expressions for members that a cell lacks, in order" },
    { "repeats", HG_J_INT, offsetof(struct top, repeats), .min = 1, .max = 100000,
      .doc = "how many times every cell is run; absent: 1" },
    { "shuffle", HG_J_INT, offsetof(struct top, shuffle), .min = 0, .max = 999999999999999,
      .doc = "a seed: the cells of each round are mixed" },
    { "together", HG_J_STRINGS, 0, HG_J_REFUSED, .doc = "hpcgrid does not run cells together" },
    { "baseline", HG_J_JSON, offsetof(struct top, baseline), .check = check_object,
      .schema = ANY_OBJECT,
      .doc = "members that, put over a cell, give the cell it is compared with" },
    { "limits", HG_J_JSON, offsetof(struct top, limits), .schema = ANY_OBJECT,
      .doc = "bounds of a run" },
    { "retry", HG_J_JSON, offsetof(struct top, retry), .schema = ANY_OBJECT,
      .doc = "how often a cell is run again that ended badly, by cause" },
    { "report", HG_J_JSON, offsetof(struct top, report), .check = check_object,
      .schema = ANY_OBJECT, .doc = "the tables wanted" },
    { 0 },
};

/* ---- The workload ---- */

static bool is_own_word(const char *name)
{
    for (const struct hg_field *f = hg_workload_fields; f->kind != HG_J_END; f++)
        if (strcmp(f->name, name) == 0)
            return true;
    return false;
}

/* Own words are decoded by the table, the others are where cells start. */
static int split_workload(const json_t *object, json_t **own, json_t **start)
{
    const char *name;
    json_t *value;

    *own = json_object();
    *start = json_object();
    if (!*own || !*start)
        return -1;
    json_object_foreach((json_t *)object, name, value) {
        if (json_object_set(is_own_word(name) ? *own : *start, name, value) < 0)
            return -1;
    }
    return 0;
}

static size_t count_plain(const json_t *words)
{
    json_t *word;
    size_t i, n = 0;

    json_array_foreach((json_t *)words, i, word)
        n += json_is_string(word);
    return n;
}

/* The words that are always there, for those who only want to name the program. */
static int fill_command(struct hg_workload *w)
{
    json_t *word;
    size_t i, n = 0;

    if (!w->words)
        return 0;
    w->command = calloc(count_plain(w->words) + 1, sizeof *w->command);
    if (!w->command)
        return -1;
    json_array_foreach(w->words, i, word) {
        if (json_is_string(word) && !(w->command[n++] = strdup(json_string_value(word))))
            return -1;
    }
    return 0;
}

static void decode_workload(struct hg_matrix *m, const json_t *object, struct hg_errs *errs)
{
    json_t *own = NULL;

    if (split_workload(object, &own, &m->workload.start) < 0) {
        hg_err_oom(hg_errs_next(errs));
    } else if (hg_json_decode(&m->doc, own, "/workload", hg_workload_fields, false, &m->workload,
                              errs) == 0) {
        if (m->workload.program && m->workload.words)
            hg_json_error(&m->doc, "/workload", errs,
                          "\"program\" and \"command\" cannot stand together");
        else if (!m->workload.program && !m->workload.words)
            hg_json_error(&m->doc, "/workload", errs,
                          "\"program\" (hpcgrid-worker) or \"command\" is missing");
        else if (fill_command(&m->workload) < 0)
            hg_err_oom(hg_errs_next(errs));
    }
    json_decref(own);
}

static void free_workload(struct hg_workload *w)
{
    for (char **word = w->command; word && *word; word++)
        free(*word);
    free(w->command);
    hg_json_release(hg_workload_fields, w);
    json_decref(w->start);
}

/* ---- What needs the cells' keys: report and placeholders ---- */

static void check_report_keys(const struct hg_matrix *m, const char *list, struct hg_errs *errs)
{
    const json_t *keys = json_object_get(m->report, list);
    json_t *key;
    size_t i;

    json_array_foreach((json_t *)keys, i, key) {
        char *pointer = hg_str_printf("/report/%s/%zu", list, i);
        const char *name = json_string_value(key);

        if (pointer && name && !hg_grid_has_key(m->grid, name))
            hg_grid_suggest(m->grid, name,
                            hg_json_error(&m->doc, pointer, errs, "no cell has \"%s\"", name));
        free(pointer);
    }
}

static void check_report(const struct hg_matrix *m, struct hg_errs *errs)
{
    struct report r = { 0 };

    if (!m->report)
        return;
    if (hg_json_decode(&m->doc, m->report, "/report", hg_report_fields, true, &r, errs) == 0) {
        struct hg_err err = HG_ERR_INIT;
        struct hg_selector *where = r.where ? hg_selector_parse(r.where, &err) : NULL;

        if (r.where && (!where || hg_selector_check(where, m, &err) < 0))
            hg_err_hint(hg_json_error(&m->doc, "/report/where", errs, "%s", err.text), "%s",
                        err.hint);
        hg_selector_free(where);
        check_report_keys(m, "rows", errs);
        check_report_keys(m, "columns", errs);
        check_report_keys(m, "group", errs);
        check_report_keys(m, "work", errs);
    }
    hg_json_release(hg_report_fields, &r);
}

static bool is_special(const char *name, size_t n)
{
    static const char *const words[] = { "args", "cell", "dir", "head", "id", "result" };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n && memcmp(words[i], name, n) == 0)
            return true;
    return false;
}

static void check_placeholder(const struct hg_matrix *m, const char *name, size_t n,
                              const char *pointer, struct hg_errs *errs)
{
    char *key = strndup(name, n);

    if (!key) {
        hg_err_oom(hg_errs_next(errs));
    } else if (key[0] == '_') {
        hg_json_error(&m->doc, pointer, errs, "{{%s}}: a note does not reach the workload", key);
    } else if (!is_special(name, n) && !hg_grid_has_key(m->grid, key)) {
        hg_grid_suggest(
            m->grid, key,
            hg_json_error(&m->doc, pointer, errs, "{{%s}}: no cell has \"%s\"", key, key));
    }
    free(key);
}

static void check_template(const struct hg_matrix *m, const json_t *text, const char *pointer,
                           struct hg_errs *errs)
{
    const char *p = json_string_value(text), *end;

    while (p && (p = strstr(p, "{{"))) {
        end = strstr(p, "}}");
        if (!end) {
            hg_json_error(&m->doc, pointer, errs, "{{ without }}");
            return;
        }
        check_placeholder(m, p + 2, (size_t)(end - p - 2), pointer, errs);
        p = end + 2;
    }
}

/* Every string in a value, however deep. */
static void check_templates(const struct hg_matrix *m, const json_t *value, const char *pointer,
                            struct hg_errs *errs)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *key;
    json_t *inner;
    size_t i;

    if (json_is_string(value))
        check_template(m, value, pointer, errs);
    json_array_foreach((json_t *)value, i, inner) {
        hg_buf_clear(&path);
        hg_buf_printf(&path, "%s/%zu", pointer, i);
        check_templates(m, inner, hg_buf_str(&path), errs);
    }
    json_object_foreach((json_t *)value, key, inner) {
        hg_buf_clear(&path);
        hg_buf_puts(&path, pointer);
        hg_json_pointer_push(&path, key);
        check_templates(m, inner, hg_buf_str(&path), errs);
    }
    hg_buf_done(&path);
}

static void check_workload(const struct hg_matrix *m, struct hg_errs *errs)
{
    const struct hg_workload *w = &m->workload;

    if (w->words)
        check_templates(m, w->words, "/workload/command", errs);
    if (w->launch)
        check_templates(m, w->launch, "/workload/launch", errs);
    if (w->env)
        check_templates(m, w->env, "/workload/env", errs);
    if (w->files)
        check_templates(m, w->files, "/workload/files", errs);
}

/* ---- Loading ---- */

static void take(struct hg_matrix *m, struct top *top)
{
    m->name = top->name;
    m->axes = top->axes;
    m->include = top->include;
    m->exclude = top->exclude;
    m->derive = top->derive;
    m->baseline = top->baseline;
    m->report = top->report;
    m->repeats = top->repeats;
    m->shuffle = top->shuffle;
    m->has_shuffle = json_object_get(m->doc.root, "shuffle") != NULL;
}

static void decode_limits(struct hg_matrix *m, const json_t *object, struct hg_errs *errs)
{
    struct limits limits = { 0 };

    if (object &&
        hg_json_decode(&m->doc, object, "/limits", hg_limits_fields, true, &limits, errs) == 0) {
        m->running = limits.running;
        m->gpu_hours = limits.gpu_hours;
    }
}

static void decode_retry(struct hg_matrix *m, const json_t *object, struct hg_errs *errs)
{
    if (object)
        hg_json_decode(&m->doc, object, "/retry", hg_retry_fields, true, &m->retry, errs);
}

static char *folder_of(const char *path, struct hg_err *err)
{
    char *absolute = hg_fs_absolute(strcmp(path, "-") == 0 ? "./-" : path, err);
    char *dir = absolute ? hg_fs_dirname(absolute) : NULL;

    if (absolute && !dir)
        hg_err_oom(err);
    free(absolute);
    return dir;
}

static void decode(struct hg_matrix *m, const char *site, struct hg_errs *errs)
{
    struct top top = { .repeats = 1 };

    hg_json_decode(&m->doc, m->doc.root, "", hg_matrix_fields, true, &top, errs);
    take(m, &top);
    m->site = site ? hg_site_find(site, errs)
                   : hg_site_from_value(&m->doc, top.site, "/site", m->dir, errs);
    if (top.workload)
        decode_workload(m, top.workload, errs);
    decode_limits(m, top.limits, errs);
    decode_retry(m, top.retry, errs);
    /* Cells, report and placeholders are judged even when a member elsewhere is wrong: all problems
     * are reported. */
    if (m->site && m->workload.start && (m->workload.program || m->workload.words)) {
        m->grid = hg_grid_create(m, errs);
        if (m->grid) {
            check_report(m, errs);
            check_workload(m, errs);
        }
    }
    json_decref(top.site);
    json_decref(top.workload);
    json_decref(top.limits);
    json_decref(top.retry);
}

struct hg_matrix *hg_matrix_load(const char *path, const char *site, struct hg_errs *errs)
{
    size_t before = errs->n + errs->dropped;
    struct hg_matrix *m = calloc(1, sizeof *m);
    struct hg_err err = HG_ERR_INIT;

    if (!m) {
        hg_err_oom(hg_errs_next(errs));
        return NULL;
    }
    m->dir = folder_of(path, &err);
    if (m->dir && hg_json_load(path, &m->doc, &err) == 0)
        decode(m, site, errs);
    hg_errs_add(errs, &err);
    if (errs->n + errs->dropped == before)
        return m;
    hg_matrix_free(m);
    return NULL;
}

void hg_matrix_free(struct hg_matrix *m)
{
    if (!m)
        return;
    hg_grid_free(m->grid);
    hg_site_free(m->site);
    free_workload(&m->workload);
    json_decref(m->axes);
    json_decref(m->include);
    json_decref(m->exclude);
    json_decref(m->derive);
    json_decref(m->baseline);
    json_decref(m->report);
    free(m->name);
    free(m->dir);
    hg_json_doc_done(&m->doc);
    free(m);
}
