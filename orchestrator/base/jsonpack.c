/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsonpack.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/jsonpool.h"
#include "base/jsontext.h"
#include "base/map.h"
#include "base/vec.h"

#define SHARED_MAX 512 /* bytes of an object that may be shared */
#define SEEN 65536     /* a power of two */

/* A value is one byte that says what it is, and what follows. Numbers of shared values are written in 7 bits a byte, the lowest first. */
enum tag {
    TAG_NULL,
    TAG_TRUE,
    TAG_FALSE,
    TAG_INTEGER, /* zigzag */
    TAG_REAL,    /* 8 bytes */
    TAG_SHARED,  /* which */
    TAG_OBJECT,  /* name (which shared value, from 1) and value of each member, then 0 */
    TAG_LIST,    /* its items, then TAG_END */
    TAG_END,
};

struct hg_jsonpack {
    struct hg_buf bytes; /* all values, one behind the other */
    /* of a string behind a quote, or of a value's bytes: which shared value it is */
    struct hg_map index;
    struct {
        json_t **items;
        size_t n, cap;
    } shared;
    uint64_t seen[SEEN]; /* hashes of objects that came once */
    struct hg_buf text;  /* room */
    bool varied;         /* what is being written has numbers that hardly come again */
};

struct hg_jsonpack *hg_jsonpack_create(void)
{
    return calloc(1, sizeof(struct hg_jsonpack));
}

void hg_jsonpack_free(struct hg_jsonpack *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->shared.n; i++)
        json_decref(p->shared.items[i]);
    HG_VEC_DONE(&p->shared);
    hg_map_done(&p->index);
    hg_buf_done(&p->bytes);
    hg_buf_done(&p->text);
    free(p);
}

/* ---- Reading ---- */

static uint64_t take_count(const unsigned char **at)
{
    uint64_t n = 0;
    unsigned shift = 0;

    do {
        n |= (uint64_t)(**at & 0x7f) << shift;
        shift += 7;
    } while (*(*at)++ & 0x80);
    return n;
}

static json_t *take_value(const struct hg_jsonpack *p, const unsigned char **at);

static json_t *take_object(const struct hg_jsonpack *p, const unsigned char **at)
{
    json_t *object = json_object();
    uint64_t which;

    while ((which = take_count(at)) != 0)
        json_object_set_new_nocheck(object, json_string_value(p->shared.items[which - 1]),
                                    take_value(p, at));
    return object;
}

static json_t *take_list(const struct hg_jsonpack *p, const unsigned char **at)
{
    json_t *list = json_array();

    while (**at != TAG_END)
        json_array_append_new(list, take_value(p, at));
    ++*at;
    return list;
}

static json_t *take_value(const struct hg_jsonpack *p, const unsigned char **at)
{
    enum tag tag = (enum tag) * (*at)++;
    uint64_t n;
    double v;

    switch (tag) {
    case TAG_TRUE:
        return json_true();
    case TAG_FALSE:
        return json_false();
    case TAG_INTEGER:
        n = take_count(at);
        return json_integer((json_int_t)(n >> 1 ^ (n & 1 ? UINT64_MAX : 0)));
    case TAG_REAL:
        memcpy(&v, *at, sizeof v);
        *at += sizeof v;
        return json_real(v);
    case TAG_SHARED:
        return json_incref(p->shared.items[take_count(at)]);
    case TAG_OBJECT:
        return take_object(p, at);
    case TAG_LIST:
        return take_list(p, at);
    default:
        return json_null();
    }
}

static void skip_value(const unsigned char **at)
{
    enum tag tag = (enum tag) * (*at)++;

    if (tag == TAG_REAL) {
        *at += sizeof(double);
    } else if (tag == TAG_INTEGER || tag == TAG_SHARED) {
        take_count(at);
    } else if (tag == TAG_OBJECT) {
        while (take_count(at) != 0)
            skip_value(at);
    } else if (tag == TAG_LIST) {
        while (**at != TAG_END)
            skip_value(at);
        ++*at;
    }
}

static const unsigned char *bytes_at(const struct hg_jsonpack *p, size_t handle)
{
    return (const unsigned char *)p->bytes.data + handle;
}

json_t *hg_jsonpack_load(const struct hg_jsonpack *p, size_t handle)
{
    const unsigned char *at = bytes_at(p, handle);

    return take_value(p, &at);
}

/* Where the value of an object's member stands; NULL: there is none. */
static const unsigned char *find_member(const struct hg_jsonpack *p, const unsigned char *at,
                                        const char *name)
{
    uint64_t which;

    if (*at++ != TAG_OBJECT)
        return NULL;
    while ((which = take_count(&at)) != 0) {
        if (strcmp(json_string_value(p->shared.items[which - 1]), name) == 0)
            return at;
        skip_value(&at);
    }
    return NULL;
}

json_t *hg_jsonpack_member(const struct hg_jsonpack *p, size_t handle, const char *name)
{
    const unsigned char *at = bytes_at(p, handle);

    if (*at == TAG_SHARED) {
        at++;
        return json_incref(json_object_get(p->shared.items[take_count(&at)], name));
    }
    at = find_member(p, at, name);
    return at ? take_value(p, &at) : NULL;
}

json_t *hg_jsonpack_first(const struct hg_jsonpack *p, size_t handle, const char *name)
{
    const unsigned char *at = find_member(p, bytes_at(p, handle), name);

    return at && *at++ == TAG_LIST && *at != TAG_END ? take_value(p, &at) : NULL;
}

/* ---- Sharing ---- */

/* Takes the value over. Which it is, HG_MAP_NONE when it is NULL or memory is gone. */
static size_t keep(struct hg_jsonpack *p, const void *key, size_t len, json_t *value)
{
    size_t which = p->shared.n;
    json_t **slot = value ? HG_VEC_PUSH(&p->shared) : NULL;

    if (!slot) {
        json_decref(value);
        return HG_MAP_NONE;
    }
    *slot = value;
    return hg_map_put(&p->index, key, len, which);
}

static size_t share_string(struct hg_jsonpack *p, const char *string, size_t len)
{
    size_t which;

    hg_buf_clear(&p->text);
    hg_buf_append(&p->text, "\"", 1); /* no other value begins so */
    hg_buf_append(&p->text, string, len);
    if (p->text.failed)
        return HG_MAP_NONE;
    which = hg_map_find(&p->index, p->text.data, p->text.len);
    return which != HG_MAP_NONE ? which
                                : keep(p, p->text.data, p->text.len, json_stringn(string, len));
}

/* ---- Writing ---- */

static void put_count(struct hg_buf *out, uint64_t n)
{
    unsigned char bytes[10];
    size_t len = 0;

    do {
        bytes[len] = (unsigned char)(n & 0x7f) | (n > 0x7f ? 0x80 : 0);
        len++;
        n >>= 7;
    } while (n);
    hg_buf_append(out, bytes, len);
}

static void put_tag(struct hg_buf *out, enum tag tag)
{
    unsigned char byte = (unsigned char)tag;

    hg_buf_append(out, &byte, 1);
}

static void put_shared(struct hg_jsonpack *p, size_t which)
{
    if (which == HG_MAP_NONE)
        p->bytes.failed = true;
    put_tag(&p->bytes, TAG_SHARED);
    put_count(&p->bytes, which);
}

static void put_name(struct hg_jsonpack *p, const char *name, size_t len)
{
    size_t which = share_string(p, name, len);

    if (which == HG_MAP_NONE)
        p->bytes.failed = true;
    put_count(&p->bytes, which + 1);
}

/* Returns where it begins. */
static size_t open_object(struct hg_jsonpack *p)
{
    p->varied = false;
    put_tag(&p->bytes, TAG_OBJECT);
    return p->bytes.len - 1;
}

/* One that came before, and is small and without numbers that hardly come again, is there once. */
static void close_object(struct hg_jsonpack *p, size_t start)
{
    size_t len, which;
    uint64_t hash, *slot;

    put_count(&p->bytes, 0);
    len = p->bytes.len - start;
    if (p->varied || p->bytes.failed || len > SHARED_MAX)
        return;
    hash = hg_hash64(p->bytes.data + start, len);
    slot = &p->seen[hash & (SEEN - 1)];
    if (*slot != hash) {
        *slot = hash;
        return;
    }
    which = hg_map_find(&p->index, p->bytes.data + start, len);
    if (which == HG_MAP_NONE)
        which = keep(p, p->bytes.data + start, len, hg_jsonpack_load(p, start));
    p->bytes.len = start;
    put_shared(p, which);
}

static void put_value(struct hg_jsonpack *p, const json_t *value);

static void put_members(struct hg_jsonpack *p, const json_t *object)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)object, name, value) {
        put_name(p, name, strlen(name));
        put_value(p, value);
    }
}

static void put_object(struct hg_jsonpack *p, const json_t *object)
{
    size_t start = open_object(p);

    put_members(p, object);
    close_object(p, start);
    p->varied = true; /* no object with objects in it is looked for */
}

static void put_list(struct hg_jsonpack *p, const json_t *list)
{
    json_t *value;
    size_t i;

    put_tag(&p->bytes, TAG_LIST);
    json_array_foreach(list, i, value)
        put_value(p, value);
    put_tag(&p->bytes, TAG_END);
}

static void put_value(struct hg_jsonpack *p, const json_t *value)
{
    json_int_t n = json_integer_value(value);
    double v = json_real_value(value);

    switch (json_typeof(value)) {
    case JSON_OBJECT:
        put_object(p, value);
        break;
    case JSON_ARRAY:
        put_list(p, value);
        break;
    case JSON_STRING:
        put_shared(p, share_string(p, json_string_value(value), json_string_length(value)));
        break;
    case JSON_INTEGER:
        put_tag(&p->bytes, TAG_INTEGER);
        put_count(&p->bytes, (uint64_t)n << 1 ^ (n < 0 ? UINT64_MAX : 0));
        break;
    case JSON_REAL:
        p->varied = true;
        put_tag(&p->bytes, TAG_REAL);
        hg_buf_append(&p->bytes, &v, sizeof v);
        break;
    case JSON_TRUE:
        put_tag(&p->bytes, TAG_TRUE);
        break;
    case JSON_FALSE:
        put_tag(&p->bytes, TAG_FALSE);
        break;
    case JSON_NULL:
        put_tag(&p->bytes, TAG_NULL);
        break;
    }
}

size_t hg_jsonpack_add(struct hg_jsonpack *p, const json_t *value)
{
    size_t handle = p->bytes.len;

    put_value(p, value);
    return p->bytes.failed ? HG_MAP_NONE : handle;
}

const json_t *hg_jsonpack_share(struct hg_jsonpack *p, const json_t *value)
{
    size_t start = p->bytes.len, len, which;
    const unsigned char *at;

    put_value(p, value);
    if (p->bytes.failed)
        return NULL;
    at = bytes_at(p, start);
    len = p->bytes.len - start;
    p->bytes.len = start;
    if (*at++ == TAG_SHARED)
        return p->shared.items[take_count(&at)];
    which = hg_map_find(&p->index, p->bytes.data + start, len);
    if (which == HG_MAP_NONE)
        which = keep(p, p->bytes.data + start, len, json_incref((json_t *)value));
    return which == HG_MAP_NONE ? NULL : p->shared.items[which];
}

/* ---- Writing text ---- */

static const char *put_text(struct hg_jsonpack *p, const char *at);

/* Over what stands behind a value: a comma or nothing. */
static const char *skip_comma(const char *at)
{
    at = hg_json_blanks_skip(at);
    return *at == ',' ? hg_json_blanks_skip(at + 1) : at;
}

static const char *put_text_string(struct hg_jsonpack *p, const char *at)
{
    const char *end = at + 1;
    json_t *value = NULL;
    size_t which;

    while (*end != '"')
        end += *end == '\\' ? 2 : 1;
    if (!memchr(at, '\\', (size_t)(end - at))) {
        which = share_string(p, at + 1, (size_t)(end - at) - 1);
    } else {
        value = json_loadb(at, (size_t)(end + 1 - at), JSON_DECODE_ANY, NULL);
        which = value ? share_string(p, json_string_value(value), json_string_length(value))
                      : HG_MAP_NONE;
    }
    put_shared(p, which);
    json_decref(value);
    return end + 1;
}

static const char *put_text_word(struct hg_jsonpack *p, const char *at)
{
    json_t *value = hg_json_parse_word(&at);

    if (value)
        put_value(p, value);
    else
        p->bytes.failed = true;
    json_decref(value);
    return at;
}

static const char *put_text_members(struct hg_jsonpack *p, const char *at)
{
    for (at = hg_json_blanks_skip(at + 1); *at != '}'; at = skip_comma(at)) {
        const char *name = at + 1, *end = strchr(name, '"');

        put_name(p, name, (size_t)(end - name));
        at = hg_json_blanks_skip(end + 1); /* the colon */
        at = put_text(p, hg_json_blanks_skip(at + 1));
    }
    return at + 1;
}

static const char *put_text_object(struct hg_jsonpack *p, const char *at)
{
    size_t start = open_object(p);

    at = put_text_members(p, at);
    close_object(p, start);
    p->varied = true;
    return at;
}

static const char *put_text_list(struct hg_jsonpack *p, const char *at)
{
    put_tag(&p->bytes, TAG_LIST);
    for (at = hg_json_blanks_skip(at + 1); *at != ']'; at = skip_comma(at))
        at = put_text(p, at);
    put_tag(&p->bytes, TAG_END);
    return at + 1;
}

static const char *put_text(struct hg_jsonpack *p, const char *at)
{
    return *at == '{'   ? put_text_object(p, at)
           : *at == '[' ? put_text_list(p, at)
           : *at == '"' ? put_text_string(p, at)
                        : put_text_word(p, at);
}

size_t hg_jsonpack_add_text(struct hg_jsonpack *p, const json_t *first, const char *text)
{
    size_t handle = p->bytes.len;

    put_tag(&p->bytes, TAG_OBJECT);
    put_members(p, first);
    put_text_members(p, hg_json_blanks_skip(text));
    put_count(&p->bytes, 0);
    return p->bytes.failed ? HG_MAP_NONE : handle;
}
