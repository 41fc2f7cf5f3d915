/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_FIELDS_H
#define HG_BASE_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/json.h"

/* Field tables: one table gives decoding, errors, the JSON Schema and the reference page. */

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
    HG_J_IGNORED = 2, /* accepted, stored nowhere ($schema) */
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

/* The JSON Schema (draft 2020-12) of an object with these fields; a new reference. */
json_t *hg_json_schema(const struct hg_field *fields, bool notes);

#endif
