/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsonpool.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/jsontext.h"

#define DEPTH_MAX 64
#define KEY_MAX 128
#define SHARED_MAX 256 /* bytes of text of a value that may be shared */
#define SLOTS 16384    /* a power of two */

/* A value by its text. A newer value with the same slot takes its place: what comes again, comes
 * again soon. */
struct slot {
    const char *text;
    size_t len;
    json_t *value;
};

struct pool {
    const char *at; /* what is read next */
    int depth;
    struct slot *slots; /* NULL: nothing is shared */
};

static json_t *read_value(struct pool *pool);

static void skip_space(struct pool *pool)
{
    pool->at = hg_json_blanks_skip(pool->at);
}

/* The end of a string, p at its opening quote; NULL if there is none, or if it has control
 * characters. */
static const char *string_end(const char *p)
{
    for (p++; (unsigned char)*p >= 0x20 && *p != '"'; p++)
        if (*p == '\\' && *++p == '\0')
            return NULL;
    return *p == '"' ? p + 1 : NULL;
}

/* ---- Sharing ---- */

/* Length of the text of the value at p, if it is at most SHARED_MAX; 0: too long, or broken. */
static size_t short_length(const char *p)
{
    const char *start = p;
    size_t depth = 0;

    do {
        if (*p == '"') {
            p = string_end(p);
            if (!p)
                return 0;
        } else if (*p == '{' || *p == '[') {
            depth++;
            p++;
        } else if (*p == '}' || *p == ']') {
            if (depth-- == 0)
                return 0;
            p++;
        } else if (strchr(",: \t\r\n", *p)) { /* NUL, too */
            if (*p == '\0' || depth == 0)
                return 0;
            p++;
        } else {
            p += strcspn(p, ",:]} \t\r\n\"{[");
        }
        if ((size_t)(p - start) > SHARED_MAX)
            return 0;
    } while (depth > 0);
    return (size_t)(p - start);
}

static struct slot *find_slot(struct pool *pool, const char *text, size_t len)
{
    return &pool->slots[hg_hash64(text, len) & (SLOTS - 1)];
}

static void keep(struct slot *slot, const char *text, size_t len, json_t *value)
{
    json_decref(slot->value);
    *slot = (struct slot){ text, len, json_incref(value) };
}

/* ---- Reading ---- */

static json_t *read_string(struct pool *pool)
{
    const char *start = pool->at, *end = string_end(start);

    if (!end)
        return NULL;
    pool->at = end;
    if (memchr(start, '\\', (size_t)(end - start)))
        return json_loadb(start, (size_t)(end - start), JSON_DECODE_ANY, NULL);
    return json_stringn(start + 1, (size_t)(end - start) - 2); /* NULL if it is no UTF-8 */
}

json_t *hg_json_parse_word(const char **at)
{
    const char *start = *at;

    switch (hg_json_number_skip(at)) {
    case HG_JSON_WHOLE:
        return json_integer(strtoll(start, NULL, 10));
    case HG_JSON_REAL:
        return json_real(strtod(start, NULL));
    default:
        *at = start + strcspn(start, ",:]} \t\r\n\"{[");
        return json_loadb(start, (size_t)(*at - start), JSON_DECODE_ANY, NULL);
    }
}

/* The next of a list's items: false at its end (`close`), or if something is wrong (*ok). */
static bool next_item(struct pool *pool, char close, bool first, bool *ok)
{
    skip_space(pool);
    if (*pool->at == close && first) {
        pool->at++;
        return false;
    }
    if (first)
        return true;
    if (*pool->at == close) {
        pool->at++;
        return false;
    }
    *ok = *pool->at == ',';
    if (*ok)
        pool->at++;
    skip_space(pool);
    return *ok;
}

static bool read_member(struct pool *pool, json_t *object)
{
    const char *text = pool->at, *end = *text == '"' ? string_end(text) : NULL;
    size_t n = end ? (size_t)(end - text) - 2 : 0;
    size_t before = json_object_size(object);
    char key[KEY_MAX];

    if (!end || n >= sizeof key || memchr(text, '\\', (size_t)(end - text)))
        return false;
    memcpy(key, text + 1, n);
    key[n] = '\0';
    pool->at = end;
    skip_space(pool);
    if (*pool->at++ != ':')
        return false;
    skip_space(pool);
    return json_object_set_new(object, key, read_value(pool)) == 0 &&
           json_object_size(object) == before + 1; /* no member twice */
}

static json_t *read_object(struct pool *pool)
{
    json_t *object = json_object();
    bool ok = object != NULL;

    pool->at++;
    for (bool first = true; ok && next_item(pool, '}', first, &ok); first = false)
        ok = read_member(pool, object);
    if (ok)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *read_array(struct pool *pool)
{
    json_t *array = json_array();
    bool ok = array != NULL;

    pool->at++;
    for (bool first = true; ok && next_item(pool, ']', first, &ok); first = false)
        ok = json_array_append_new(array, read_value(pool)) == 0;
    if (ok)
        return array;
    json_decref(array);
    return NULL;
}

static json_t *read_fresh(struct pool *pool)
{
    json_t *value;

    if (pool->depth == DEPTH_MAX)
        return NULL;
    pool->depth++;
    value = *pool->at == '{'   ? read_object(pool)
            : *pool->at == '[' ? read_array(pool)
            : *pool->at == '"' ? read_string(pool)
                               : hg_json_parse_word(&pool->at);
    pool->depth--;
    return value;
}

static json_t *read_value(struct pool *pool)
{
    const char *text = pool->at;
    size_t len = pool->slots ? short_length(text) : 0;
    struct slot *slot = len ? find_slot(pool, text, len) : NULL;
    json_t *value;

    if (slot && slot->len == len && memcmp(slot->text, text, len) == 0) {
        pool->at += len;
        return json_incref(slot->value);
    }
    value = read_fresh(pool);
    if (value && slot && (size_t)(pool->at - text) == len)
        keep(slot, text, len, value);
    return value;
}

static json_t *read_document(struct pool *pool, size_t len)
{
    const char *end = pool->at + len;
    json_t *root;

    skip_space(pool);
    root = read_value(pool);
    skip_space(pool);
    if (pool->at == end)
        return root;
    json_decref(root);
    return NULL;
}

json_t *hg_json_parse_fresh(const char *text, size_t len)
{
    struct pool pool = { .at = text };

    return read_document(&pool, len);
}

json_t *hg_json_parse_shared(const char *text, size_t len)
{
    struct pool pool = { .at = text, .slots = calloc(SLOTS, sizeof(struct slot)) };
    json_t *root = pool.slots ? read_document(&pool, len) : NULL;

    for (size_t i = 0; pool.slots && i < SLOTS; i++)
        json_decref(pool.slots[i].value);
    free(pool.slots);
    return root;
}
