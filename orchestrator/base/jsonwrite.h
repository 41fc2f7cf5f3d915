/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_JSONWRITE_H
#define HG_BASE_JSONWRITE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Writing JSON, and values that may be written. */

enum {
    HG_JSON_COMPACT = 0,
    HG_JSON_SORT =
        1, /* members by UTF-16 code units: with COMPACT this is RFC 8785, the canonical form */
    HG_JSON_INDENT = 2, /* two spaces; lists of scalars fill their lines */
};

/* Append the text. Numbers have the shortest digits that read back the same; 1.0 is written 1,
 * but one of 2^63 or more keeps a .0 (not with SORT), as parsers refuse integers so large. */
void hg_json_dump(const json_t *value, unsigned flags, struct hg_buf *out);

/* The same with INDENT of a value that stands depth levels deep in a document of which this is a piece. */
void hg_json_dump_piece(const json_t *value, int depth, struct hg_buf *out);

/* Order of two member names in the canonical form: below, at or above 0. */
int hg_json_compare_keys(const char *a, const char *b);

/* Append a JSON string with its quotes. In every form but the canonical one all that could steer a terminal (hg_text_control) is
 * written as \uXXXX, however it is shown. */
void hg_json_dump_string(const char *s, size_t n, struct hg_buf *out);

/* Indented, newline at the end, replaced as a whole (hg_fs_replace), mode 0600. */
int hg_json_save(const char *path, const json_t *value, struct hg_err *err);

/* A string of any bytes, such as a message that was cut or a file name: those that are not UTF-8
 * become U+FFFD, because JSON has no others. A new reference. */
json_t *hg_json_text(const char *text);

/* A path that somebody will open, where U+FFFD would name another one. A new reference, or NULL with
 * err set: ENV if it is not UTF-8. */
json_t *hg_json_path(const char *path, struct hg_err *err);

/* A finite number, or null where it is NaN or infinite: JSON has no other way to say it. */
json_t *hg_json_number(double v);

/* Equal by value: 1 is 1.0, but neither true nor "1"; members in any order. */
bool hg_json_equal(const json_t *a, const json_t *b);

#endif
