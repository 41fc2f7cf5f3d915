/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fs.h"
#include "base/jsonmem.h"
#include "base/jsonpool.h"
#include "base/jsontext.h"
#include "base/text.h"

/* ---- Documents ---- */

static const char *syntax_problem(enum json_error_code code)
{
    switch (code) {
    case json_error_stack_overflow:
        return "nested too deeply";
    case json_error_invalid_utf8:
        return "bytes that are not valid UTF-8";
    case json_error_premature_end_of_input:
        return "the file ends in the middle of a value";
    case json_error_end_of_input_expected:
        return "text after the end of the document";
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return "a NUL character in a string";
    case json_error_duplicate_key:
        return "this member is given twice in one object";
    case json_error_numeric_overflow:
        return "a number too large to hold (write it as a string)";
    default:
        return "not valid JSON";
    }
}

/* jansson ends its text with "near '<token>'"; the token is worth keeping, the sentence is not. */
static const char *near_part(const json_error_t *je)
{
    const char *near = strstr(je->text, " near ");

    return near ? near : "";
}

/* jansson stands behind the token that it names: people look for its beginning. */
static int token_column(const json_error_t *je)
{
    const char *token = near_part(je), *end = strrchr(token, '\'');
    int column = je->column > 0 ? je->column : 1, n = 0;

    if (strncmp(token, " near '", 7) != 0)
        return column;
    for (token += 7; token < end; token++)
        n += ((unsigned char)*token & 0xc0) != 0x80;
    return n > 0 && n <= column ? column - n + 1 : column;
}

/* What people coming from other formats write; NULL if it is none of that. */
static const char *syntax_hint(const char *text, const json_error_t *je)
{
    const char *near = near_part(je);

    if (memcmp(text, "\xef\xbb\xbf", strnlen(text, 3)) == 0 && text[0])
        return "the file begins with a byte order mark: save it as UTF-8 without one";
    if (strncmp(near, " near '/", 8) == 0 || strncmp(near, " near '#", 8) == 0)
        return "JSON has no comments: a member that begins with _ can hold one";
    if (strncasecmp(near, " near 'nan", 10) == 0 || strncasecmp(near, " near 'inf", 10) == 0 ||
        strncasecmp(near, " near '-", 8) == 0)
        return "JSON has no such number: null stands for what is none";
    if (near[0] && near[7] == 39) /* the token is a single quote */
        return "JSON has double quotes only";
    if (strncmp(near, " near '}", 8) == 0 || strncmp(near, " near ']", 8) == 0)
        return "is there a comma too many before it?";
    return NULL;
}

static int say_syntax(const struct hg_json_doc *doc, const json_error_t *je, struct hg_err *err)
{
    enum json_error_code code = json_error_code(je);

    hg_err_set(err, HG_E_INPUT, "%s%s", syntax_problem(code), near_part(je));
    hg_err_at(err, doc->file, NULL);
    if (code == json_error_invalid_syntax && syntax_hint(doc->text, je))
        hg_err_hint(err, "%s", syntax_hint(doc->text, je));
    if (err && err->line == 0) {
        err->line = je->line > 0 ? je->line : 1;
        err->column = token_column(je);
    }
    return -1;
}

/* Parse text that is ours already; it goes into the document or is freed. */
static int parse_owned(const char *file, char *text, size_t len, bool shared,
                       struct hg_json_doc *doc, struct hg_err *err)
{
    struct hg_json_doc made = { .file = strdup(file), .text = text, .len = len };
    bool short_of_memory = !made.file || !made.text;
    json_error_t je;

    if (!short_of_memory && shared)
        made.root = hg_json_parse_shared(made.text, len);
    if (!short_of_memory && !made.root)
        made.root = hg_json_read(made.text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je,
                                 &short_of_memory);
    if (!made.root) {
        if (short_of_memory)
            hg_err_oom(err);
        else
            say_syntax(&made, &je, err);
        hg_json_doc_done(&made);
        return -1;
    }
    *doc = made;
    return 0;
}

int hg_json_parse(const char *file, const char *text, size_t len, struct hg_json_doc *doc,
                  struct hg_err *err)
{
    char *copy = malloc(len + 1);

    if (copy) {
        if (len)
            memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return parse_owned(file, copy, len, false, doc, err);
}

static int load(const char *path, size_t max, bool shared, struct hg_json_doc *doc,
                struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;
    size_t len;
    char *owned;

    if (hg_fs_read(path, max, &text, err) < 0) {
        hg_buf_done(&text);
        return -1;
    }
    len = text.len;
    owned = len ? hg_buf_detach(&text) : strdup("");
    hg_buf_done(&text);
    return parse_owned(path, owned, len, shared, doc, err);
}

int hg_json_load_shared(const char *path, size_t max, struct hg_json_doc *doc, struct hg_err *err)
{
    return load(path, max, true, doc, err);
}

int hg_json_load(const char *path, struct hg_json_doc *doc, struct hg_err *err)
{
    return load(path, HG_JSON_FILE_MAX, false, doc, err);
}

void hg_json_doc_done(struct hg_json_doc *doc)
{
    json_decref(doc->root);
    free(doc->file);
    free(doc->text);
    *doc = (struct hg_json_doc)HG_JSON_DOC_INIT;
}

/* ---- From pointer to place: a second scan of text that is known to be valid JSON ---- */

static const char *skip_string(const char *p) /* p at the opening quote */
{
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && p[1])
            p++;
    return *p ? p + 1 : p;
}

static const char *skip_value(const char *p)
{
    int depth = 0;

    do {
        p = hg_json_blanks_skip(p);
        if (*p == '"') {
            p = skip_string(p);
        } else if (*p == '{' || *p == '[') {
            depth++;
            p++;
        } else if (*p == '}' || *p == ']') {
            depth--;
            p++;
        } else if (*p == ',' || *p == ':') {
            p++;
        } else {
            p += strcspn(p, " \t\r\n,:]}");
        }
    } while (depth > 0 && *p);
    return p;
}

/* Does the JSON string at p (opening quote) spell this reference token? */
static bool string_is(const char *p, const char *token, size_t n)
{
    const char *end = skip_string(p);
    json_t *value = json_loadb(p, (size_t)(end - p), JSON_DECODE_ANY, NULL);
    bool same =
        value && json_string_length(value) == n && memcmp(json_string_value(value), token, n) == 0;

    json_decref(value);
    return same;
}

static const char *step_into(const char *p, const char *token, size_t n, bool want_key)
{
    size_t index = strtoul(token, NULL, 10);
    bool object = *p == '{';

    if (*p != '{' && *p != '[')
        return NULL;
    p = hg_json_blanks_skip(p + 1);
    for (size_t i = 0; *p && *p != '}' && *p != ']'; i++) {
        const char *key = p;

        if (object) {
            p = hg_json_blanks_skip(hg_json_blanks_skip(skip_string(p)) + 1); /* over ':' */
            if (string_is(key, token, n))
                return want_key ? key : p;
        } else if (i == index) {
            return p;
        }
        p = hg_json_blanks_skip(skip_value(p));
        if (*p == ',')
            p = hg_json_blanks_skip(p + 1);
    }
    return NULL;
}

static size_t unescape_token(const char *token, size_t n, char *out)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        if (token[i] == '~' && i + 1 < n)
            out[len++] = token[++i] == '1' ? '/' : '~';
        else
            out[len++] = token[i];
    }
    out[len] = '\0';
    return len;
}

static const char *find_pointer(const char *text, const char *pointer, bool want_key)
{
    const char *p = hg_json_blanks_skip(text);

    while (p && *pointer == '/') {
        size_t n = strcspn(pointer + 1, "/");
        char *token = malloc(n + 1);
        bool last = pointer[1 + n] == '\0';
        size_t len;

        if (!token)
            return NULL;
        len = unescape_token(pointer + 1, n, token);
        p = step_into(p, token, len, want_key && last);
        free(token);
        pointer += 1 + n;
    }
    return p;
}

static struct hg_err *add_error(const struct hg_json_doc *doc, const char *pointer, bool at_key,
                                struct hg_errs *errs, const char *fmt, va_list ap)
{
    struct hg_err *err = hg_errs_next(errs);
    bool kept = errs->n && err == &errs->items[errs->n - 1]; /* else only counted */
    const char *place = doc->text && kept ? find_pointer(doc->text, pointer, at_key) : NULL;
    struct hg_buf text = HG_BUF_INIT;

    hg_buf_vprintf(&text, fmt, ap);
    hg_err_set(err, HG_E_INPUT, "%s", hg_buf_str(&text));
    hg_err_at(err, doc->file ? doc->file : "", pointer);
    if (place) {
        err->line = 1;
        err->column = 1;
        for (const char *p = doc->text; p < place; p++) {
            err->column++;
            if (*p == '\n') {
                err->line++;
                err->column = 1;
            }
        }
    }
    hg_buf_done(&text);
    return err;
}

struct hg_err *hg_json_error(const struct hg_json_doc *doc, const char *pointer,
                             struct hg_errs *errs, const char *fmt, ...)
{
    struct hg_err *err;
    va_list ap;

    va_start(ap, fmt);
    err = add_error(doc, pointer, false, errs, fmt, ap);
    va_end(ap);
    return err;
}

struct hg_err *hg_json_error_key(const struct hg_json_doc *doc, const char *pointer,
                                 struct hg_errs *errs, const char *fmt, ...)
{
    struct hg_err *err;
    va_list ap;

    va_start(ap, fmt);
    err = add_error(doc, pointer, true, errs, fmt, ap);
    va_end(ap);
    return err;
}

void hg_json_pointer_push(struct hg_buf *pointer, const char *token)
{
    hg_buf_puts(pointer, "/");
    for (; *token; token++) {
        if (*token == '~')
            hg_buf_puts(pointer, "~0");
        else if (*token == '/')
            hg_buf_puts(pointer, "~1");
        else
            hg_buf_append(pointer, token, 1);
    }
}

/* ---- Writing ---- */

static void dump_special(unsigned char c, struct hg_buf *out)
{
    static const char short_names[] = "btn.fr"; /* 8 to 13; 11 has none */

    if (c == '"' || c == '\\')
        hg_buf_printf(out, "\\%c", c);
    else if (c >= 8 && c <= 13 && c != 11)
        hg_buf_printf(out, "\\%c", short_names[c - 8]);
    else
        hg_buf_printf(out, "\\u%04x", c);
}

void hg_json_dump_string(const char *s, size_t n, struct hg_buf *out)
{
    size_t plain = 0; /* characters before i that stand for themselves, not yet appended */

    hg_buf_append(out, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];

        if (c >= 0x20 && c != '"' && c != '\\') {
            plain++;
            continue;
        }
        hg_buf_append(out, s + i - plain, plain);
        plain = 0;
        dump_special(c, out);
    }
    hg_buf_append(out, s + n - plain, plain);
    hg_buf_append(out, "\"", 1);
}

/* UTF-16 order of two UTF-8 strings: as bytes, but that U+E000..U+FFFF (lead bytes EE, EF) sort
 * behind the supplementary planes (lead bytes F0..F4), whose surrogates begin with D8. */
int hg_json_compare_keys(const char *ka, const char *kb)
{
    const unsigned char *a = (const unsigned char *)ka, *b = (const unsigned char *)kb;

    while (*a && *a == *b) {
        a++;
        b++;
    }
    if ((*a >= 0xee && *b >= 0xee) && ((*a >= 0xf0) != (*b >= 0xf0)))
        return *a >= 0xf0 ? -1 : 1;
    return *a - *b;
}

static int compare_utf16(const void *a, const void *b)
{
    return hg_json_compare_keys(*(const char *const *)a, *(const char *const *)b);
}

#define DUMP_WIDTH 98 /* columns of an indented list of scalars */

struct dump {
    struct hg_buf *out;
    unsigned flags;
};

static void dump_value(const struct dump *d, const json_t *value, int depth);

static void dump_newline(const struct dump *d, int depth)
{
    if (d->flags & HG_JSON_INDENT)
        hg_buf_printf(d->out, "\n%*s", depth * 2, "");
}

static void dump_member(const struct dump *d, const char *key, const json_t *value, int depth,
                        bool first)
{
    if (!first)
        hg_buf_puts(d->out, ",");
    dump_newline(d, depth);
    hg_json_dump_string(key, strlen(key), d->out);
    hg_buf_puts(d->out, d->flags & HG_JSON_INDENT ? ": " : ":");
    dump_value(d, value, depth);
}

static void dump_sorted(const struct dump *d, const json_t *object, int depth)
{
    size_t n = json_object_size(object), i = 0;
    const char **keys = malloc((n ? n : 1) * sizeof *keys);
    const char *key;
    json_t *value;

    if (!keys) {
        d->out->failed = true;
        return;
    }
    json_object_foreach((json_t *)object, key, value)
        keys[i++] = key;
    qsort(keys, n, sizeof *keys, compare_utf16);
    for (i = 0; i < n; i++)
        dump_member(d, keys[i], json_object_get(object, keys[i]), depth + 1, i == 0);
    free(keys);
}

static void dump_object(const struct dump *d, const json_t *object, int depth)
{
    bool first = true;
    const char *key;
    json_t *value;

    hg_buf_puts(d->out, "{");
    if (d->flags & HG_JSON_SORT) {
        dump_sorted(d, object, depth);
    } else {
        json_object_foreach((json_t *)object, key, value) {
            dump_member(d, key, value, depth + 1, first);
            first = false;
        }
    }
    if (json_object_size(object))
        dump_newline(d, depth);
    hg_buf_puts(d->out, "}");
}

static bool has_only_scalars(const json_t *array)
{
    json_t *value;
    size_t i;

    json_array_foreach(array, i, value)
        if (json_is_object(value) || json_is_array(value))
            return false;
    return true;
}

/* Lists of numbers and words fill their lines; a value starts a new line when it would pass WIDTH. */
static void dump_flat_array(const struct dump *d, const json_t *array, int depth)
{
    const struct dump compact = { .out = d->out, .flags = d->flags & ~(unsigned)HG_JSON_INDENT };
    bool indented = d->flags & HG_JSON_INDENT;
    json_t *value;
    size_t i;

    json_array_foreach(array, i, value) {
        size_t start = d->out->len;
        const char *newline;

        hg_buf_puts(d->out, i == 0 ? "" : indented ? ", " : ",");
        dump_value(&compact, value, depth);
        if (!indented || i == 0 || d->out->failed)
            continue;
        newline = memrchr(d->out->data, '\n', start);
        if (d->out->len - (newline ? (size_t)(newline + 1 - d->out->data) : 0) > DUMP_WIDTH) {
            d->out->len = start;
            hg_buf_puts(d->out, ",");
            dump_newline(d, depth + 1);
            dump_value(&compact, value, depth);
        }
    }
}

static void dump_array(const struct dump *d, const json_t *array, int depth)
{
    size_t i;
    json_t *value;

    hg_buf_puts(d->out, "[");
    if (has_only_scalars(array)) {
        dump_flat_array(d, array, depth);
    } else {
        json_array_foreach(array, i, value) {
            hg_buf_puts(d->out, i ? "," : "");
            dump_newline(d, depth + 1);
            dump_value(d, value, depth + 1);
        }
        dump_newline(d, depth);
    }
    hg_buf_puts(d->out, "]");
}

/* Whole numbers from 2^63 on would read back as integers, and most readers know none so large. The
 * canonical form has no choice. */
static void dump_real(const struct dump *d, double v)
{
    char number[32];

    hg_buf_append(d->out, number, hg_text_number_format(v, number));
    if (!(d->flags & HG_JSON_SORT) && fabs(v) >= 0x1p63 && !strchr(number, 'e'))
        hg_buf_puts(d->out, ".0");
}

static void dump_integer(const struct dump *d, json_int_t v)
{
    char number[32];

    hg_buf_append(d->out, number, hg_text_integer_format(v, number));
}

static void dump_value(const struct dump *d, const json_t *value, int depth)
{
    if (!value) {
        d->out->failed = true;
        return;
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        dump_object(d, value, depth);
        break;
    case JSON_ARRAY:
        dump_array(d, value, depth);
        break;
    case JSON_STRING:
        hg_json_dump_string(json_string_value(value), json_string_length(value), d->out);
        break;
    case JSON_INTEGER:
        dump_integer(d, json_integer_value(value));
        break;
    case JSON_REAL:
        dump_real(d, json_real_value(value));
        break;
    case JSON_TRUE:
        hg_buf_puts(d->out, "true");
        break;
    case JSON_FALSE:
        hg_buf_puts(d->out, "false");
        break;
    case JSON_NULL:
        hg_buf_puts(d->out, "null");
        break;
    }
}

void hg_json_dump(const json_t *value, unsigned flags, struct hg_buf *out)
{
    struct dump d = { .out = out, .flags = flags };

    dump_value(&d, value, 0);
}

void hg_json_dump_piece(const json_t *value, int depth, struct hg_buf *out)
{
    struct dump d = { .out = out, .flags = HG_JSON_INDENT };

    dump_value(&d, value, depth);
}

int hg_json_save(const char *path, const json_t *value, struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;
    int rc;

    hg_json_dump(value, HG_JSON_INDENT, &text);
    hg_buf_puts(&text, "\n");
    rc = text.failed ? hg_err_oom(err) : hg_fs_replace(path, text.data, text.len, 0644, err);
    hg_buf_done(&text);
    return rc;
}

json_t *hg_json_text(const char *text)
{
    json_t *value = json_string(text);
    struct hg_buf clean = HG_BUF_INIT;

    if (value)
        return value;
    while (*text) {
        uint32_t cp;
        size_t n = hg_text_utf8_next(text, &cp);

        hg_buf_append(&clean, cp == 0xfffd ? "\xef\xbf\xbd" : text, cp == 0xfffd ? 3 : n);
        text += n;
    }
    value = clean.failed ? NULL : json_string(hg_buf_str(&clean));
    hg_buf_done(&clean);
    return value;
}

json_t *hg_json_path(const char *path, struct hg_err *err)
{
    json_t *value = json_string(path);
    json_t *text = value ? NULL : hg_json_text(path);

    if (!value && !text) {
        hg_err_oom(err);
    } else if (!value) {
        hg_err_set(err, HG_E_ENV, "the folder %s cannot hold a run: its name is no UTF-8",
                   json_string_value(text));
        hg_err_hint(err, "jobs find their files by a plan in JSON, which has no other letters; "
                         "rename it, or work in another folder");
    }
    json_decref(text);
    return value;
}

json_t *hg_json_number(double v)
{
    if (!isfinite(v))
        return json_null();
    if (v == floor(v) && fabs(v) < 9007199254740992.0)
        return json_integer((json_int_t)v);
    return json_real(v);
}

bool hg_json_equal(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;
    size_t i;

    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    if (!a || !b || json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_array(a)) {
        if (json_array_size(a) != json_array_size(b))
            return false;
        json_array_foreach(a, i, value)
            if (!hg_json_equal(value, json_array_get(b, i)))
                return false;
        return true;
    }
    if (json_is_object(a)) {
        if (json_object_size(a) != json_object_size(b))
            return false;
        json_object_foreach((json_t *)a, key, value)
            if (!hg_json_equal(value, json_object_get(b, key)))
                return false;
        return true;
    }
    return json_equal(a, b);
}

const char *hg_json_type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        return "null";
    }
    return "nothing";
}

/* ---- Field tables ---- */

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
    bool whole = json_is_integer(value) || (json_is_real(value) && v == floor(v) && fabs(v) < 9e15);

    if (f->kind == HG_J_INT ? !whole : !json_is_number(value)) {
        wrong_type(d, value, f->kind == HG_J_INT ? "an integer" : "a number");
    } else if ((f->min != 0 || f->max != 0) && (v < f->min || v > f->max)) {
        if (f->max >= 1e15)
            hg_json_error(d->doc, d->pointer, d->errs, "%.15g is too small; at least %.15g", v,
                          f->min);
        else
            hg_json_error(d->doc, d->pointer, d->errs, "%.15g is out of range; %.15g to %.15g", v,
                          f->min, f->max);
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
    *slot = strdup(text);
    if (!*slot)
        hg_err_oom(hg_errs_next(d->errs));
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
    list = calloc(n + 1, sizeof *list);
    for (size_t i = 0; list && i < n; i++) {
        const char *text = json_string_value(json_array_get(value, i));

        if (!text) {
            char *pointer = hg_str_printf("%s/%zu", d->pointer, i);

            hg_json_error(d->doc, pointer ? pointer : d->pointer, d->errs,
                          "expected a string, found %s",
                          hg_json_type_name(json_array_get(value, i)));
            free(pointer);
            break;
        }
        list[i] = strdup(text);
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
    if (f->flags & HG_J_REFUSED) {
        hg_json_error_key(d->doc, d->pointer, d->errs, "%s: %s", f->name, f->doc);
        return;
    }
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

        if (fields->flags & (HG_J_IGNORED | HG_J_REFUSED))
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
    if (s && f->schema && f->kind != HG_J_JSON) { /* further rules of a scalar */
        json_t *more = json_loads(f->schema, 0, NULL);

        json_object_update(s, more);
        json_decref(more);
    }
    if (s && (f->kind == HG_J_INT || f->kind == HG_J_REAL) && (f->min != 0 || f->max != 0)) {
        json_object_set_new(s, "minimum", hg_json_number(f->min));
        if (f->max < 1e15)
            json_object_set_new(s, "maximum", hg_json_number(f->max));
    }
    if (s && f->words) {
        json_t *list = json_array();

        for (const char *const *w = f->words; *w; w++)
            json_array_append_new(list, json_string(*w));
        json_object_set_new(s, "enum", list);
    }
    if (s && f->doc && json_is_object(s))
        json_object_set_new(s, "description", json_string(f->doc));
    return s;
}

json_t *hg_json_schema(const struct hg_field *fields, bool notes)
{
    json_t *properties = json_object(), *required = json_array();
    json_t *s = json_pack("{s:s}", "type", "object");

    for (; fields->kind != HG_J_END; fields++) {
        if (fields->flags & HG_J_REFUSED)
            continue;
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

static void reference_type(const json_t *schema, struct hg_buf *out)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    const json_t *any = json_object_get(schema, "anyOf");
    json_t *one;
    size_t i;

    if (type)
        hg_buf_puts(out, strcmp(type, "array") == 0 ? "list" : type);
    json_array_foreach((json_t *)any, i, one) {
        hg_buf_puts(out, i ? " or " : "");
        reference_type(one, out);
    }
}

/* What a JSON member may be, in a word, from its schema. */
static void reference_json(const struct hg_field *f, struct hg_buf *out)
{
    json_t *schema = f->schema ? json_loads(f->schema, JSON_DECODE_ANY, NULL) : NULL;

    if (schema)
        reference_type(schema, out);
    else
        hg_buf_puts(out, "any value");
    json_decref(schema);
}

void hg_json_reference(const struct hg_field *fields, struct hg_buf *out)
{
    static const char *const kinds[] = {
        [HG_J_INT] = "integer",
        [HG_J_REAL] = "number",
        [HG_J_BOOL] = "true/false",
        [HG_J_STRING] = "string",
        [HG_J_STRINGS] = "list of strings",
        [HG_J_OBJECT] = "object",
        [HG_J_JSON] = "",
    };

    hg_buf_puts(out, "| member | type | meaning |\n| --- | --- | --- |\n");
    for (; fields->kind != HG_J_END; fields++) {
        if (fields->flags & (HG_J_IGNORED | HG_J_REFUSED))
            continue;
        hg_buf_printf(out, "| `%s`%s | %s", fields->name,
                      fields->flags & HG_J_REQUIRED ? " (required)" : "", kinds[fields->kind]);
        if (fields->kind == HG_J_JSON)
            reference_json(fields, out);
        if ((fields->kind == HG_J_INT || fields->kind == HG_J_REAL) &&
            (fields->min != 0 || fields->max != 0)) {
            if (fields->max >= 1e15)
                hg_buf_printf(out, ", from %.15g", fields->min);
            else
                hg_buf_printf(out, ", %.15g to %.15g", fields->min, fields->max);
        }
        hg_buf_printf(out, " | %s |\n", fields->doc ? fields->doc : "");
    }
}
