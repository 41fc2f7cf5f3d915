/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsonlist.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/text.h"

/* Objects and lists are taken apart here; jansson reads names and plain values. Most of these came before in the same words: one that is
 * still known is not read again, which is what makes this quick. */

#define KNOWN 4096    /* by their hash; a power of two */
#define KNOWN_TEXT 48 /* bytes; longer ones seldom come again */
#define CHUNK 65536   /* bytes that are read at a time */

struct known {
    char text[KNOWN_TEXT];
    size_t len;
    json_t *value;
};

struct reader {
    FILE *file;
    struct hg_buf text; /* a part of the file */
    size_t at;          /* the first character there that is not used yet */
    struct known *known;
    const char *list; /* member of the outermost object */
    bool had_list;
    int (*take)(void *context, json_t *item);
    void *context;
};

static bool is_blank(int c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Drop what was used, and read some more; false: there is no more. */
static bool read_on(struct reader *r)
{
    size_t n;

    r->text.len -= r->at;
    if (r->text.len)
        memmove(r->text.data, r->text.data + r->at, r->text.len);
    r->at = 0;
    hg_buf_reserve(&r->text, CHUNK);
    n = fread(r->text.data + r->text.len, 1, CHUNK, r->file);
    r->text.len += n;
    r->text.data[r->text.len] = '\0';
    return n > 0;
}

/* The character so many behind the first that is not used, or EOF. */
static inline int look(struct reader *r, size_t ahead)
{
    while (r->at + ahead >= r->text.len)
        if (!read_on(r))
            return EOF;
    return (unsigned char)r->text.data[r->at + ahead];
}

/* The next one that is not blank. */
static int peek(struct reader *r)
{
    while (is_blank(look(r, 0)))
        r->at++;
    return look(r, 0);
}

static bool accept(struct reader *r, int wanted)
{
    if (peek(r) != wanted)
        return false;
    r->at++;
    return true;
}

/* Bytes of the string that begins here; 0: it does not end. */
static size_t measure_string(struct reader *r)
{
    size_t n = 1;
    int c;

    while ((c = look(r, n)) != EOF && c != '"')
        n += c == '\\' ? 2 : 1;
    return c == EOF ? 0 : n + 1;
}

/* The same of a number or a word: its end is what follows. */
static size_t measure_word(struct reader *r)
{
    static const bool ends[256] = { [' '] = true, ['\n'] = true, ['\r'] = true, ['\t'] = true,
                                    [','] = true, [':'] = true,  [']'] = true,  ['}'] = true };
    size_t n = 0;
    int c;

    while ((c = look(r, n)) != EOF && !ends[c])
        n++;
    return n;
}

/* A number as most are written; NULL: another form. jansson reads these the same, in more time. */
static json_t *read_decimal(const char *text, size_t len)
{
    bool minus = text[0] == '-';
    const char *first = text + minus, *end = text + len, *point = end;
    uint64_t units = 0;

    for (const char *p = first; p < end; p++) {
        if (*p == '.' && point == end)
            point = p;
        else if (*p < '0' || *p > '9')
            return NULL;
        else
            units = 10 * units + (uint64_t)(*p - '0');
    }
    if (point == first || point - first > 15 || end - point == 1 ||
        (*first == '0' && point > first + 1))
        return NULL;
    if (point == end)
        return json_integer(minus ? -(json_int_t)units : (json_int_t)units);
    if (end - first > 16) /* more than 15 digits */
        return json_real(strtod(text, NULL));
    return json_real((minus ? -1 : 1) * hg_text_decimal(units, (int)(point + 1 - end)));
}

/* A string of plain ASCII, with its quotes, likewise. */
static json_t *read_ascii(const char *text, size_t len)
{
    for (size_t i = 1; i < len - 1; i++)
        if (text[i] < ' ' || text[i] > '~' || text[i] == '\\')
            return NULL;
    return json_stringn_nocheck(text + 1, len - 2);
}

static json_t *read_plain(struct reader *r)
{
    bool quoted = peek(r) == '"';
    size_t len = quoted ? measure_string(r) : measure_word(r);
    const char *text = r->text.data + r->at;
    struct known *k;
    json_t *value;

    if (len == 0)
        return NULL;
    r->at += len;
    k = &r->known[hg_hash64(text, len) % KNOWN];
    if (k->len == len && memcmp(k->text, text, len) == 0)
        return json_incref(k->value);
    value = quoted ? read_ascii(text, len) : read_decimal(text, len);
    if (!value)
        value = json_loadb(text, len, JSON_DECODE_ANY, NULL);
    if (value && len <= KNOWN_TEXT) {
        json_decref(k->value);
        memcpy(k->text, text, len);
        k->len = len;
        k->value = json_incref(value);
    }
    return value;
}

static json_t *read_value(struct reader *r, int depth);

static int read_list(struct reader *r, int depth, int (*take)(void *context, json_t *item),
                     void *context)
{
    if (!accept(r, '['))
        return -1;
    if (accept(r, ']'))
        return 0;
    do {
        json_t *item = read_value(r, depth);
        int rc = item ? take(context, item) : -1;

        json_decref(item);
        if (rc != 0)
            return -1;
    } while (accept(r, ','));
    return accept(r, ']') ? 0 : -1;
}

static int read_member(struct reader *r, int depth, json_t *object)
{
    json_t *name = peek(r) == '"' ? read_plain(r) : NULL;
    const char *key = json_string_value(name);
    size_t before = json_object_size(object);
    int rc = -1;

    if (!key || !accept(r, ':')) {
        rc = -1;
    } else if (depth > 1 || strcmp(key, r->list) != 0) {
        rc = json_object_set_new_nocheck(object, key, read_value(r, depth));
        if (json_object_size(object) == before) /* the name came before */
            rc = -1;
    } else if (!r->had_list) {
        r->had_list = true;
        rc = read_list(r, depth + 1, r->take, r->context);
    }
    json_decref(name);
    return rc;
}

static int read_object(struct reader *r, int depth, json_t *object)
{
    if (!accept(r, '{'))
        return -1;
    if (accept(r, '}'))
        return 0;
    do {
        if (read_member(r, depth, object) < 0)
            return -1;
    } while (accept(r, ','));
    return accept(r, '}') ? 0 : -1;
}

static int append(void *list, json_t *item)
{
    return json_array_append(list, item);
}

/* depth: of what it is in; jansson has the same limit. */
static json_t *read_value(struct reader *r, int depth)
{
    int c = peek(r), rc;
    json_t *value;

    if (c != '{' && c != '[')
        return read_plain(r);
    if (depth >= JSON_PARSER_MAX_DEPTH)
        return NULL;
    value = c == '{' ? json_object() : json_array();
    rc = c == '{' ? read_object(r, depth + 1, value) : read_list(r, depth + 1, append, value);
    if (rc == 0)
        return value;
    json_decref(value);
    return NULL;
}

int hg_json_each_item(FILE *file, const char *list, json_t *rest,
                      int (*take)(void *context, json_t *item), void *context)
{
    struct reader r = { .file = file,
                        .known = hg_alloc_zeroed(KNOWN, sizeof *r.known),
                        .list = list,
                        .take = take,
                        .context = context };
    int rc = read_object(&r, 1, rest);

    if (!r.had_list || peek(&r) != EOF || ferror(file))
        rc = -1;
    for (size_t i = 0; i < KNOWN; i++)
        json_decref(r.known[i].value);
    free(r.known);
    hg_buf_done(&r.text);
    return rc;
}

int hg_json_load_items(const char *path, size_t max, const char *list, struct hg_json_doc *doc,
                       int (*take)(void *context, json_t *item), void *context, struct hg_err *err)
{
    FILE *file;
    int rc = hg_json_load_text(path, max, doc, err);

    if (rc < 0)
        return -1;
    doc->root = json_object();
    file = fmemopen(doc->text, doc->len, "r"); /* NULL where there is no text */
    rc = file ? hg_json_each_item(file, list, doc->root, take, context) : -1;
    if (file)
        fclose(file);
    if (rc == 0)
        return 0;
    json_decref(doc->root);
    return hg_json_parse_text(doc, err) < 0 ? -1 : HG_JSON_WHOLE;
}
