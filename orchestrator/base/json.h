/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_JSON_H
#define HG_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* ---- Documents: JSON that remembers its text, so that errors can name line and column ---- */

#define HG_JSON_FILE_MAX ((size_t)16 << 20)

struct hg_json_doc {
    json_t *root;
    char *file; /* as given by the user, for messages */
    char *text;
    size_t len;
};
#define HG_JSON_DOC_INIT \
    {                    \
        0                \
    }

/* Read and parse a file ("-": standard input). Duplicate members, trailing text, NaN, invalid
 * UTF-8, NUL and files above HG_JSON_FILE_MAX are refused: INPUT with file, line and column. */
int hg_json_load(const char *path, struct hg_json_doc *doc, struct hg_err *err);

/* The same for a long list of things that are much alike, of at most max bytes: values that are equal
 * may be one, so nothing in the tree may be changed. */
int hg_json_load_shared(const char *path, size_t max, struct hg_json_doc *doc, struct hg_err *err);

/* The same for text in memory; file is the name for messages. */
int hg_json_parse(const char *file, const char *text, size_t len, struct hg_json_doc *doc,
                  struct hg_err *err);

void hg_json_doc_done(struct hg_json_doc *doc);

/* Add an INPUT error about the value at an RFC 6901 pointer ("" is the whole document): file, line,
 * column and pointer are filled. Returns the error, for hg_err_hint. */
struct hg_err *hg_json_error(const struct hg_json_doc *doc, const char *pointer,
                             struct hg_errs *errs, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The same, pointing at the member's name instead of its value. */
struct hg_err *hg_json_error_key(const struct hg_json_doc *doc, const char *pointer,
                                 struct hg_errs *errs, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Append "/" and a reference token to a pointer, "~" and "/" escaped. */
void hg_json_pointer_push(struct hg_buf *pointer, const char *token);

/* ---- Writing ---- */

enum {
    HG_JSON_COMPACT = 0,
    HG_JSON_SORT =
        1, /* members by UTF-16 code units: with COMPACT this is RFC 8785, the canonical form */
    HG_JSON_INDENT = 2, /* two spaces; lists of scalars fill their lines */
};

/* Append the text. Numbers have the shortest digits that read back the same; 1.0 is written 1,
 * but one of 2^63 or more keeps a .0 (not with SORT), as parsers refuse integers so large.
 * A value that is NULL, because memory was gone when it was made, marks out failed. */
void hg_json_dump(const json_t *value, unsigned flags, struct hg_buf *out);

/* The same with INDENT of a value that stands depth levels deep in a document of which this is a piece. */
void hg_json_dump_piece(const json_t *value, int depth, struct hg_buf *out);

/* Order of two member names in the canonical form: below, at or above 0. */
int hg_json_compare_keys(const char *a, const char *b);

/* Append a JSON string with its quotes. */
void hg_json_dump_string(const char *s, size_t n, struct hg_buf *out);

/* Indented, newline at the end, replaced as a whole (hg_fs_replace), mode 0644. */
int hg_json_save(const char *path, const json_t *value, struct hg_err *err);

/* A string of any bytes, such as a message that was cut or a file name: those that are no UTF-8
 * become U+FFFD, because JSON has no others. A new reference; NULL only when memory is gone. */
json_t *hg_json_text(const char *text);

/* A path that somebody will open, where U+FFFD would name another one. A new reference, or NULL with
 * err set: ENV if it is no UTF-8. */
json_t *hg_json_path(const char *path, struct hg_err *err);

/* A finite number, or null where it is NaN or infinite: JSON has no other way to say it. */
json_t *hg_json_number(double v);

/* Equal by value: 1 is 1.0, but neither true nor "1"; members in any order. */
bool hg_json_equal(const json_t *a, const json_t *b);

/* ---- Field tables: one table gives decoding, errors, the JSON Schema and the reference page ----
 */

enum hg_field_kind {
    HG_J_END = 0,
    HG_J_INT,     /* long long */
    HG_J_REAL,    /* double; an integer is taken too */
    HG_J_BOOL,    /* bool */
    HG_J_STRING,  /* char *, yours (hg_json_release) */
    HG_J_STRINGS, /* char **, NULL-terminated, yours */
    HG_J_OBJECT,  /* an embedded struct, decoded by .fields */
    HG_J_JSON,    /* json_t *, a new reference; .schema says what it may be, .check judges it */
};

enum {
    HG_J_REQUIRED = 1,
    HG_J_REFUSED = 2, /* known, always an error: .doc says why */
    HG_J_IGNORED = 4, /* accepted, stored nowhere ($schema) */
};

struct hg_field {
    const char *name;
    enum hg_field_kind kind;
    size_t offset;
    unsigned flags;
    double min, max;               /* INT, REAL: inclusive; both 0 = any */
    const char *const *words;      /* STRING: the allowed ones, NULL-terminated */
    const struct hg_field *fields; /* OBJECT */
    const char *schema;            /* JSON: its JSON Schema, as text */
    const char *doc;               /* one sentence for schema and reference */
    /* Further rules. Adds to errs what is wrong with the value at the pointer. May be NULL. */
    void (*check)(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                  struct hg_errs *errs);
};

/* Decode an object found at pointer of doc into the struct at out (zeroed by the caller, or filled
 * with defaults). Every problem is added to errs: wrong type, out of range, missing, unknown member
 * with a suggestion. Members that begin with "_" are notes and ignored when notes is true. Returns
 * 0, or -1 if anything was added. */
int hg_json_decode(const struct hg_json_doc *doc, const json_t *object, const char *pointer,
                   const struct hg_field *fields, bool notes, void *out, struct hg_errs *errs);

/* Free what a decoded struct owns; the struct may be half filled. */
void hg_json_release(const struct hg_field *fields, void *out);

/* The JSON Schema (draft 2020-12) of an object with these fields; a new reference, NULL when memory
 * is gone. */
json_t *hg_json_schema(const struct hg_field *fields, bool notes);

/* Append a Markdown table: member, type, default or "required", meaning. */
void hg_json_reference(const struct hg_field *fields, struct hg_buf *out);

/* "a string", "an integer", "true or false": for messages. */
const char *hg_json_type_name(const json_t *value);

#endif
