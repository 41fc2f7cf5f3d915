/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_JSON_H
#define HG_BASE_JSON_H

#include <stdbool.h>
#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonwrite.h"

/* JSON documents that remember their text, so that errors can name line and column. */

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

/* The same for text in memory; file is the name for messages. */
int hg_json_parse(const char *file, const char *text, size_t len, struct hg_json_doc *doc,
                  struct hg_err *err);

/* In two steps: the text of a file of at most max bytes, into doc->text; and doc->root from it. */
int hg_json_load_text(const char *path, size_t max, struct hg_json_doc *doc, struct hg_err *err);
int hg_json_parse_text(struct hg_json_doc *doc, struct hg_err *err);

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

/* "a string", "an integer", "true or false": for messages. */
const char *hg_json_type_name(const json_t *value);

#endif
