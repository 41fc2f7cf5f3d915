/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

#define FIELDS_MAX 96

struct decode {
    const struct hg_json_doc *doc;
    const char *pointer;
    struct hg_errs *errs;
};

static void wrong_type(const struct decode *d, const json_t *value, const char *wanted)
{
    hg_json_error(d->doc, d->pointer, d->errs, "expected %s, found %s", wanted,
                  hg_json_type_name(value));
}

static void decode_number(const struct decode *d, const struct hg_field *f, const json_t *value,
                          void *slot)
{
    double v = json_number_value(value);
    struct hg_err err = HG_ERR_INIT;
    bool whole = json_is_integer(value) || (json_is_real(value) && v == floor(v) && fabs(v) < 9e15);

    if (f->kind == HG_J_INT ? !whole : !json_is_number(value)) {
        wrong_type(d, value, f->kind == HG_J_INT ? "an integer" : "a number");
    } else if ((f->min != 0 || f->max != 0) && (v < f->min || v > f->max)) {
        hg_text_out_of_range(v, f->min, f->max, &err);
        hg_json_error(d->doc, d->pointer, d->errs, "%s", err.text);
    } else if (f->kind == HG_J_INT) {
        *(long long *)slot = (long long)v;
    } else {
        *(double *)slot = v;
    }
}

static size_t count_words(const char *const *words)
{
    size_t n = 0;

    while (words && words[n])
        n++;
    return n;
}

static void decode_string(const struct decode *d, const struct hg_field *f, const json_t *value,
                          char **slot)
{
    const char *text = json_string_value(value);
    size_t n_words = count_words(f->words);

    if (!text) {
        wrong_type(d, value, "a string");
        return;
    }
    for (size_t i = 0; i < n_words; i++)
        if (strcmp(text, f->words[i]) == 0)
            n_words = 0;
    if (n_words) {
        struct hg_err *err =
            hg_json_error(d->doc, d->pointer, d->errs, "unknown %s \"%s\"", f->name, text);

        hg_text_suggest(err, text, f->words, n_words);
        return;
    }
    free(*slot);
    *slot = hg_strdup(text);
}

static void free_strings(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free(list);
}

static void decode_strings(const struct decode *d, const json_t *value, char ***slot)
{
    size_t n = json_array_size(value);
    char **list;

    if (!json_is_array(value)) {
        wrong_type(d, value, "a list of strings");
        return;
    }
    list = hg_alloc_zeroed(n + 1, sizeof *list);
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(value, i));

        if (!text) {
            char *pointer = hg_str_printf("%s/%zu", d->pointer, i);

            hg_json_error(d->doc, pointer, d->errs, "expected a string, found %s",
                          hg_json_type_name(json_array_get(value, i)));
            free(pointer);
            break;
        }
        list[i] = hg_strdup(text);
    }
    free_strings(*slot);
    *slot = list;
}

static void decode_value(const struct decode *d, const struct hg_field *f, const json_t *value,
                         void *slot)
{
    switch (f->kind) {
    case HG_J_INT:
    case HG_J_REAL:
        decode_number(d, f, value, slot);
        break;
    case HG_J_BOOL:
        if (json_is_boolean(value))
            *(bool *)slot = json_is_true(value);
        else
            wrong_type(d, value, "true or false");
        break;
    case HG_J_STRING:
        decode_string(d, f, value, slot);
        break;
    case HG_J_STRINGS:
        decode_strings(d, value, slot);
        break;
    case HG_J_OBJECT:
        hg_json_decode(d->doc, value, d->pointer, f->fields, true, slot, d->errs);
        break;
    case HG_J_JSON:
        json_decref(*(json_t **)slot);
        *(json_t **)slot = json_incref((json_t *)value);
        break;
    case HG_J_END:
        break;
    }
}

static void decode_field(const struct decode *d, const struct hg_field *f, const json_t *value,
                         void *out)
{
    if (f->flags & HG_J_IGNORED)
        return;
    if (f->check) {
        size_t before = d->errs->n + d->errs->dropped;

        f->check(d->doc, value, d->pointer, d->errs);
        if (d->errs->n + d->errs->dropped != before)
            return;
    }
    decode_value(d, f, value, (char *)out + f->offset);
}

static const struct hg_field *find_field(const struct hg_field *fields, const char *name)
{
    for (; fields->kind != HG_J_END; fields++)
        if (strcmp(fields->name, name) == 0)
            return fields;
    return NULL;
}

static void unknown_member(const struct decode *d, const struct hg_field *fields, const char *key)
{
    const char *names[FIELDS_MAX];
    size_t n = 0;

    for (; fields->kind != HG_J_END && n < FIELDS_MAX; fields++)
        if (!(fields->flags & HG_J_IGNORED))
            names[n++] = fields->name;
    hg_text_suggest(hg_json_error_key(d->doc, d->pointer, d->errs, "unknown member \"%s\"", key),
                    key, names, n);
}

int hg_json_decode(const struct hg_json_doc *doc, const json_t *object, const char *pointer,
                   const struct hg_field *fields, bool notes, void *out, struct hg_errs *errs)
{
    size_t before = errs->n + errs->dropped;
    struct hg_buf path = HG_BUF_INIT;
    const char *key;
    json_t *value;

    if (!json_is_object(object)) {
        hg_json_error(doc, pointer, errs, "expected an object, found %s",
                      hg_json_type_name(object));
        return -1;
    }
    json_object_foreach((json_t *)object, key, value) {
        const struct hg_field *f = find_field(fields, key);
        struct decode d = { .doc = doc, .errs = errs };

        hg_buf_clear(&path);
        hg_buf_puts(&path, pointer);
        hg_json_pointer_push(&path, key);
        d.pointer = hg_buf_str(&path);
        if (f)
            decode_field(&d, f, value, out);
        else if (!(notes && key[0] == '_'))
            unknown_member(&d, fields, key);
    }
    for (const struct hg_field *f = fields; f->kind != HG_J_END; f++)
        if (f->flags & HG_J_REQUIRED && !json_object_get(object, f->name))
            hg_json_error(doc, pointer, errs, "\"%s\" is missing: %s", f->name, f->doc);
    hg_buf_done(&path);
    return errs->n + errs->dropped == before ? 0 : -1;
}

void hg_json_release(const struct hg_field *fields, void *out)
{
    for (; fields->kind != HG_J_END; fields++) {
        void *slot = (char *)out + fields->offset;

        if (fields->flags & HG_J_IGNORED)
            continue;
        if (fields->kind == HG_J_STRING) {
            free(*(char **)slot);
            *(char **)slot = NULL;
        } else if (fields->kind == HG_J_STRINGS) {
            free_strings(*(char ***)slot);
            *(char ***)slot = NULL;
        } else if (fields->kind == HG_J_JSON) {
            json_decref(*(json_t **)slot);
            *(json_t **)slot = NULL;
        } else if (fields->kind == HG_J_OBJECT) {
            hg_json_release(fields->fields, slot);
        }
    }
}

static json_t *schema_of_field(const struct hg_field *f)
{
    static const char *const types[] = {
        [HG_J_INT] = "integer",
        [HG_J_REAL] = "number",
        [HG_J_BOOL] = "boolean",
        [HG_J_STRING] = "string",
    };
    json_t *s;

    if (f->kind == HG_J_JSON || (f->flags & HG_J_IGNORED))
        s = f->schema ? json_loads(f->schema, JSON_DECODE_ANY, NULL) : json_object();
    else if (f->kind == HG_J_OBJECT)
        s = hg_json_schema(f->fields, true);
    else if (f->kind == HG_J_STRINGS)
        s = json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "string");
    else
        s = json_pack("{s:s}", "type", types[f->kind]);
    if (f->schema && f->kind != HG_J_JSON) { /* further rules of a scalar */
        json_t *more = json_loads(f->schema, 0, NULL);

        json_object_update(s, more);
        json_decref(more);
    }
    if ((f->kind == HG_J_INT || f->kind == HG_J_REAL) && (f->min != 0 || f->max != 0)) {
        json_object_set_new(s, "minimum", hg_json_number(f->min));
        if (f->max < 1e15)
            json_object_set_new(s, "maximum", hg_json_number(f->max));
    }
    if (f->words) {
        json_t *list = json_array();

        for (const char *const *w = f->words; *w; w++)
            json_array_append_new(list, json_string(*w));
        json_object_set_new(s, "enum", list);
    }
    if (f->doc && json_is_object(s))
        json_object_set_new(s, "description", json_string(f->doc));
    return s;
}

json_t *hg_json_schema(const struct hg_field *fields, bool notes)
{
    json_t *properties = json_object(), *required = json_array();
    json_t *s = json_pack("{s:s}", "type", "object");

    for (; fields->kind != HG_J_END; fields++) {
        json_object_set_new(properties, fields->name, schema_of_field(fields));
        if (fields->flags & HG_J_REQUIRED)
            json_array_append_new(required, json_string(fields->name));
    }
    json_object_set_new(s, "properties", properties);
    if (json_array_size(required))
        json_object_set(s, "required", required);
    json_decref(required);
    if (notes)
        json_object_set_new(s, "patternProperties", json_pack("{s:{}}", "^_"));
    json_object_set_new(s, "additionalProperties", json_false());
    return s;
}
