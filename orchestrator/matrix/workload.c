/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/workload.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/pattern.h"
#include "base/text.h"
#include "matrix/pointer.h"
#include "results/result_keys.h"

static bool is_variable_name(const char *s)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

    return *s && !(*s >= '0' && *s <= '9') && s[strspn(s, letters)] == '\0';
}

/* Set for every rank after the workload's own variables: those would be lost. */
const char *const hg_workload_own_variables[] = {
    "HPCGRID_CELL", "HPCGRID_RESULT",    "HPCGRID_RUN", "HPCGRID_ATTEMPT", "RANK", "LOCAL_RANK",
    "WORLD_SIZE",   "HPCGRID_REHEARSAL", NULL
};

static void check_env(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                      struct hg_errs *errs)
{
    const char *key;
    json_t *text;

    hg_check_texts(doc, value, pointer, errs);
    json_object_foreach((json_t *)value, key, text) {
        if (!is_variable_name(key))
            hg_err_hint(hg_json_error(doc, pointer, errs,
                                      "\"%.70s\" cannot be the name of a variable", key),
                        "use letters, digits and _, not beginning with a digit");
        else if (hg_text_is_one_of(key, strlen(key), hg_workload_own_variables))
            hg_err_hint(hg_json_error(doc, pointer, errs, "%s is set by hpcgrid itself", key),
                        "choose another variable");
    }
}

const char *const hg_workload_own_files[] = { "claim.json",    "claim.taken.json", "left.json",
                                              "cell.json",     "out.log",          "err.log",
                                              "workload.json", "result.json",      NULL };

bool hg_workload_is_own_file(const char *name)
{
    size_t digits = strncmp(name, "rank.", 5) == 0 ? strspn(name + 5, "0123456789") : 0;

    return hg_text_is_one_of(name, strlen(name), hg_workload_own_files) ||
           (digits && strcmp(name + 5 + digits, ".json") == 0);
}

/* Files are written to the attempt's folder, which also holds hpcgrid's own. */
static void check_files(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                        struct hg_errs *errs)
{
    const char *key;
    json_t *text;

    hg_check_texts(doc, value, pointer, errs);
    json_object_foreach((json_t *)value, key, text) {
        if (hg_workload_is_own_file(key))
            hg_json_error(doc, pointer, errs, "\"%s\" is a file of hpcgrid itself there", key);
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
        json_t *number = hg_number_text(word);

        if (number)
            json_array_set_new((json_t *)list, i, number);
        else if (!json_is_string(word))
            hg_json_error(doc, hg_item_pointer(&path, pointer, i), errs,
                          "expected a string or a number, found %s", hg_json_type_name(word));
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
        const char *at = hg_item_pointer(&path, pointer, i);
        json_t *number = hg_number_text(word);

        if (number)
            json_array_set_new((json_t *)value, i, number);
        else if (json_is_array(word))
            check_inner_words(doc, word, at, errs);
        else if (!json_is_string(word))
            hg_json_error(doc, at, errs, "expected a string, a number or a list of them, found %s",
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

    hg_check_texts(doc, value, pointer, errs);
    json_object_foreach((json_t *)value, key, text) {
        struct hg_err err = HG_ERR_INIT;
        struct hg_pattern *p =
            json_is_string(text) ? hg_pattern_compile(json_string_value(text), &err) : NULL;
        const char *at = hg_member_pointer(&path, pointer, key);

        check_result_key(doc, key, at, errs);
        if (err.code)
            hg_err_hint(hg_json_error(doc, at, errs, "%s", err.text), "%s", err.hint);
        hg_pattern_free(p);
    }
    hg_buf_done(&path);
}

static const char *const programs[] = { "hpcgrid-worker", NULL };

/* {{ without }}, or around a note; {{args}} or {{key...}} with other text in a word */
#define WORD_SCHEMA                                                                     \
    "\"type\": [\"string\", \"number\"], \"not\": {\"type\": \"string\", \"pattern\": " \
    "\"[{][{](?!(.|\\n)*[}][}])|[{][{]_|(.|\\n)[{][{] *(args|[^}?]*[.]{3}) *[}]|"       \
    "[{][{] *(args|[^}?]*[.]{3}) *[}][}](.|\\n)\"}"
#define WORDS_SCHEMA                                             \
    "\"type\": \"array\", \"items\": {\"anyOf\": [{" WORD_SCHEMA \
    "}, {\"type\": \"array\", \"items\": {" WORD_SCHEMA "}}]}"

const struct hg_field hg_workload_fields[] = {
    { "program", HG_J_STRING, offsetof(struct hg_workload, program), .words = programs,
      .doc = "the program that comes with hpcgrid: `hpcgrid-worker`" },
    { "command", HG_J_JSON, offsetof(struct hg_workload, words), .check = check_command,
      .schema =
          "{" WORDS_SCHEMA
          ", \"minItems\": 1, \"prefixItems\": [{\"type\": [\"string\", \"number\", \"array\"], \"minLength\": 1}], \"examples\": [[\"python\", \"train.py\", \"{{args}}\"]]}",
      .doc =
          "any other program: a list of words (numbers, too) that no shell reads; a list inside the list is left "
          "out as a whole when a placeholder in it has no value" },
    { "launch", HG_J_JSON, offsetof(struct hg_workload, launch), .check = check_words,
      .schema = "{" WORDS_SCHEMA "}",
      .doc = "words instead of the site's launcher; `[]`: once, on the first node" },
    { "env", HG_J_JSON, offsetof(struct hg_workload, env), .check = check_env,
      .schema = HG_TEXTS_SCHEMA,
      .doc = "environment variables: name and text (or a number), with placeholders" },
    { "files", HG_J_JSON, offsetof(struct hg_workload, files), .check = check_files,
      .schema = HG_TEXTS_SCHEMA,
      .doc = "files to write before the start: name and text, with placeholders" },
    { "cwd", HG_J_STRING, offsetof(struct hg_workload, cwd),
      .doc = "folder to run in; absent: the matrix's own folder" },
    { "results", HG_J_JSON, offsetof(struct hg_workload, results), .check = check_results,
      .schema = HG_TEXTS_SCHEMA,
      .doc = "result key and regular expression: group 1 of the last match in the output is the "
             "number" },
    { 0 },
};

static bool is_own_word(const char *name)
{
    for (const struct hg_field *f = hg_workload_fields; f->kind != HG_J_END; f++)
        if (strcmp(f->name, name) == 0)
            return true;
    return false;
}

/* Own words are decoded by the table, the others are where cells start. */
static void split_workload(const json_t *object, json_t *own, json_t *start)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)object, name, value)
        json_object_set(is_own_word(name) ? own : start, name, value);
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
static void fill_command(struct hg_workload *w)
{
    json_t *word;
    size_t i, n = 0;

    w->command = hg_alloc_zeroed(count_plain(w->words) + 1, sizeof *w->command);
    json_array_foreach(w->words, i, word) {
        if (json_is_string(word))
            w->command[n++] = hg_strdup(json_string_value(word));
    }
}

void hg_workload_decode(const struct hg_json_doc *doc, const json_t *object, struct hg_workload *w,
                        struct hg_errs *errs)
{
    json_t *own = json_object();

    w->start = json_object();
    split_workload(object, own, w->start);
    if (hg_json_decode(doc, own, "/workload", hg_workload_fields, false, w, errs) == 0) {
        if (w->program && w->words)
            hg_json_error(doc, "/workload", errs,
                          "\"program\" and \"command\" cannot stand together");
        else if (!w->program && !w->words)
            hg_json_error(doc, "/workload", errs,
                          "\"program\" (hpcgrid-worker) or \"command\" is missing");
        else if (w->words)
            fill_command(w);
    }
    json_decref(own);
}

void hg_workload_done(struct hg_workload *w)
{
    for (char **word = w->command; word && *word; word++)
        free(*word);
    free(w->command);
    hg_json_release(hg_workload_fields, w);
    json_decref(w->start);
}
