/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_JSONTEXT_H
#define HG_BASE_JSONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Behind the blanks that JSON has at p. In the header because every reader does it between any two tokens. */
static inline const char *hg_json_blanks_skip(const char *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

enum hg_json_number {
    HG_JSON_WHOLE, /* at most 18 digits */
    HG_JSON_REAL,  /* surely finite */
    HG_JSON_UNUSUAL, /* none, or with so many digits that only reading it tells whether it can be held */
};

/* What number stands at *at, by JSON's syntax; *at is moved behind it, or to where it is none. */
enum hg_json_number hg_json_number_skip(const char **at);

/* The canonical form (RFC 8785) of JSON text without reading its numbers: members sorted, blanks left out, numbers and strings checked and
 * copied as they are. It is right for text whose numbers are canonical already, as those of hg_json_dump are; whoever compares a checksum of it
 * learns whether they were. Ten times as fast as parsing and dumping. */

/* A member of the outermost object, as places in the canonical text. */
struct hg_json_member {
    size_t from, to;       /* where name and value stand in the text that was read */
    size_t name, name_len; /* without the quotes */
    size_t begin, end;     /* from the name's opening quote to behind the value */
    size_t value;          /* where the value begins */
};

struct hg_json_canonical {
    struct hg_buf text;
    struct hg_json_member *items; /* in the order of the text */
    size_t n, cap;
};
#define HG_JSON_CANONICAL_INIT  \
    {                           \
        HG_BUF_INIT, NULL, 0, 0 \
    }

/* Fill it from the text of an object, which ends with a NUL behind len bytes; what was in it is forgotten, its memory used again. false
 * where a parser has to look: text that is no JSON object or is nested deep, names that are no plain ASCII or come twice, no memory.
 * true: json_loadb reads it, too. */
bool hg_json_canonical_read(struct hg_json_canonical *c, const char *text, size_t len);

/* NULL: there is none of this name. */
const struct hg_json_member *hg_json_canonical_find(const struct hg_json_canonical *c,
                                                    const char *name);

void hg_json_canonical_done(struct hg_json_canonical *c);

#endif
