/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsonlist.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/hash.h"

/* Objects and lists are taken apart here; jansson reads names and plain values. Most of these came before in the same words: one that is
 * still known is not read again, which is what makes this quick. */

#define KNOWN 4096    /* by their hash; a power of two */
#define KNOWN_TEXT 48 /* bytes; longer ones seldom come again */

struct known {
    char text[KNOWN_TEXT];
    size_t len;
    json_t *value;
};

struct reader {
    FILE *file;
    int next;           /* character that is not used yet, or EOF */
    struct hg_buf text; /* of a name or a plain value, as it stands in the file */
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

static bool ends_word(int c)
{
    return is_blank(c) || c == ',' || c == ':' || c == ']' || c == '}' || c == EOF;
}

/* The next character that is not blank. */
static int peek(struct reader *r)
{
    while (is_blank(r->next))
        r->next = getc_unlocked(r->file);
    return r->next;
}

static bool accept(struct reader *r, int wanted)
{
    if (peek(r) != wanted)
        return false;
    r->next = getc_unlocked(r->file);
    return true;
}

static inline void copy_next(struct reader *r)
{
    if (r->text.len + 1 >= r->text.cap)
        hg_buf_reserve(&r->text, KNOWN_TEXT);
    r->text.data[r->text.len++] = (char)r->next;
    r->next = getc_unlocked(r->file);
}

static void copy_string(struct reader *r)
{
    bool escaped = false;

    do {
        escaped = r->next == '\\' && !escaped;
        copy_next(r);
    } while (r->next != EOF && (escaped || r->next != '"'));
    if (r->next != EOF)
        copy_next(r);
}

/* A number or a word: its end is what follows. */
static void copy_word(struct reader *r)
{
    while (!ends_word(r->next))
        copy_next(r);
}

/* A number as most are written; NULL: another form. jansson reads these the same, in more time. */
static json_t *read_decimal(const char *text, size_t len)
{
    static const char digits[] = "0123456789";
    size_t sign = text[0] == '-', whole = strspn(text + sign, digits), part;
    const char *point = text + sign + whole;

    if (whole == 0 || whole > 15 || (whole > 1 && text[sign] == '0'))
        return NULL;
    if (point == text + len)
        return json_integer(strtoll(text, NULL, 10));
    part = *point == '.' ? strspn(point + 1, digits) : 0;
    return part > 0 && point + 1 + part == text + len ? json_real(strtod(text, NULL)) : NULL;
}

static json_t *read_plain(struct reader *r)
{
    struct known *k;
    json_t *value;

    r->text.len = 0;
    if (peek(r) == '"')
        copy_string(r);
    else
        copy_word(r);
    if (r->text.len == 0)
        return NULL;
    k = &r->known[hg_hash64(r->text.data, r->text.len) % KNOWN];
    if (k->len == r->text.len && memcmp(k->text, r->text.data, k->len) == 0)
        return json_incref(k->value);
    r->text.data[r->text.len] = '\0';
    value = read_decimal(r->text.data, r->text.len);
    if (!value)
        value = json_loadb(r->text.data, r->text.len, JSON_DECODE_ANY, NULL);
    if (value && r->text.len <= KNOWN_TEXT) {
        json_decref(k->value);
        memcpy(k->text, r->text.data, r->text.len);
        k->len = r->text.len;
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
                        .next = ' ',
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
