/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/fs.h"

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

int hg_json_parse_text(struct hg_json_doc *doc, struct hg_err *err)
{
    json_error_t je;

    doc->root = json_loadb(doc->text, doc->len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je);
    if (doc->root)
        return 0;
    say_syntax(doc, &je, err);
    hg_json_doc_done(doc);
    return -1;
}

int hg_json_parse(const char *file, const char *text, size_t len, struct hg_json_doc *doc,
                  struct hg_err *err)
{
    *doc = (struct hg_json_doc){ .file = hg_strdup(file), .text = hg_alloc(len + 1), .len = len };
    if (len)
        memcpy(doc->text, text, len);
    doc->text[len] = '\0';
    return hg_json_parse_text(doc, err);
}

int hg_json_load_text(const char *path, size_t max, struct hg_json_doc *doc, struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;

    if (hg_fs_read(path, max, &text, err) < 0) {
        hg_buf_done(&text);
        return -1;
    }
    *doc = (struct hg_json_doc){ .file = hg_strdup(path), .len = text.len };
    doc->text = text.len ? hg_buf_detach(&text) : hg_strdup("");
    hg_buf_done(&text);
    return 0;
}

int hg_json_load(const char *path, struct hg_json_doc *doc, struct hg_err *err)
{
    return hg_json_load_text(path, HG_JSON_FILE_MAX, doc, err) < 0 ? -1
                                                                   : hg_json_parse_text(doc, err);
}

void hg_json_doc_done(struct hg_json_doc *doc)
{
    json_decref(doc->root);
    free(doc->file);
    free(doc->text);
    *doc = (struct hg_json_doc)HG_JSON_DOC_INIT;
}

/* ---- From pointer to place: a second scan of text that is known to be valid JSON ---- */

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

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
        p = skip_blanks(p);
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
    p = skip_blanks(p + 1);
    for (size_t i = 0; *p && *p != '}' && *p != ']'; i++) {
        const char *key = p;

        if (object) {
            p = skip_blanks(skip_blanks(skip_string(p)) + 1); /* over ':' */
            if (string_is(key, token, n))
                return want_key ? key : p;
        } else if (i == index) {
            return p;
        }
        p = skip_blanks(skip_value(p));
        if (*p == ',')
            p = skip_blanks(p + 1);
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
    const char *p = skip_blanks(text);

    while (p && *pointer == '/') {
        size_t n = strcspn(pointer + 1, "/");
        char *token = hg_alloc(n + 1);
        bool last = pointer[1 + n] == '\0';
        size_t len;

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
