/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsonpack.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/map.h"
#include "base/vec.h"

#define SHARED_MAX 1024 /* bytes of text of an object that may be shared */
#define SEEN 65536      /* a power of two */

/* A value is one byte that says what it is, and what follows. Counts and places of shared values are written in 7 bits a byte, the
 * lowest first. */
enum tag {
    TAG_NULL,
    TAG_TRUE,
    TAG_FALSE,
    TAG_INTEGER, /* zigzag */
    TAG_REAL,    /* 8 bytes */
    TAG_SHARED,  /* which */
    TAG_OBJECT,  /* how many, then name (shared) and value of each */
    TAG_LIST,    /* how many, then each */
};

struct hg_jsonpack {
    struct hg_buf bytes; /* all values, one behind the other */
    struct hg_map index; /* canonical text of a shared value: which */
    struct {
        json_t **items;
        size_t n, cap;
    } shared;
    uint64_t seen[SEEN]; /* hashes of objects that came once */
    struct hg_buf text;  /* room */
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

/* ---- Sharing ---- */

/* Which shared value it is, p->text being its text. */
static size_t share_text(struct hg_jsonpack *p, const json_t *value)
{
    size_t which = hg_map_put(&p->index, hg_buf_str(&p->text), p->text.len, p->shared.n);
    json_t **slot;

    if (which != p->shared.n)
        return which;
    slot = HG_VEC_PUSH(&p->shared);
    if (!slot)
        return HG_MAP_NONE;
    *slot = json_incref((json_t *)value);
    return which;
}

static size_t share(struct hg_jsonpack *p, const json_t *value)
{
    hg_buf_clear(&p->text);
    hg_json_dump(value, HG_JSON_COMPACT, &p->text); /* members of another order are another value */
    return p->text.failed ? HG_MAP_NONE : share_text(p, value);
}

const json_t *hg_jsonpack_share(struct hg_jsonpack *p, const json_t *value)
{
    size_t which = share(p, value);

    return which == HG_MAP_NONE ? NULL : p->shared.items[which];
}

/* An object worth a look: small, without numbers that never come again. */
static bool may_be_shared(const json_t *value)
{
    const char *name;
    json_t *member;

    if (!json_is_object(value) || json_object_size(value) > 48)
        return false;
    json_object_foreach((json_t *)value, name, member) {
        if (json_is_real(member) || json_is_object(member))
            return false;
    }
    return true;
}

/* Which shared value an object is; HG_MAP_NONE: it came for the first time, or is too long. */
static size_t find_shared(struct hg_jsonpack *p, const json_t *value)
{
    uint64_t hash, *slot;

    hg_buf_clear(&p->text);
    hg_json_dump(value, HG_JSON_COMPACT, &p->text);
    if (p->text.failed || p->text.len > SHARED_MAX)
        return HG_MAP_NONE;
    hash = hg_hash64(p->text.data, p->text.len);
    slot = &p->seen[hash & (SEEN - 1)];
    if (*slot == hash)
        return share_text(p, value);
    *slot = hash;
    return HG_MAP_NONE;
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
    put_count(&p->bytes, which);
}

static void put_value(struct hg_jsonpack *p, const json_t *value);

/* Where a name is kept: as a string whose text begins with what no JSON begins with. */
static size_t share_name(struct hg_jsonpack *p, const char *name)
{
    json_t *word;
    size_t at;

    hg_buf_clear(&p->text);
    hg_buf_append(&p->text, "", 1);
    hg_buf_puts(&p->text, name);
    at = hg_map_find(&p->index, p->text.data, p->text.len);
    if (at != HG_MAP_NONE)
        return at;
    word = json_string_nocheck(name);
    at = word ? share_text(p, word) : HG_MAP_NONE;
    json_decref(word);
    return at;
}

static void put_object(struct hg_jsonpack *p, const json_t *object)
{
    size_t which = may_be_shared(object) ? find_shared(p, object) : HG_MAP_NONE;
    const char *name;
    json_t *value;

    if (which != HG_MAP_NONE) {
        put_tag(&p->bytes, TAG_SHARED);
        put_shared(p, which);
        return;
    }
    put_tag(&p->bytes, TAG_OBJECT);
    put_count(&p->bytes, json_object_size(object));
    json_object_foreach((json_t *)object, name, value) {
        size_t at = share_name(p, name);

        put_shared(p, at);
        put_value(p, value);
    }
}

static void put_list(struct hg_jsonpack *p, const json_t *list)
{
    json_t *value;
    size_t i;

    put_tag(&p->bytes, TAG_LIST);
    put_count(&p->bytes, json_array_size(list));
    json_array_foreach(list, i, value)
        put_value(p, value);
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
        put_tag(&p->bytes, TAG_SHARED);
        put_shared(p, share(p, value));
        break;
    case JSON_INTEGER:
        put_tag(&p->bytes, TAG_INTEGER);
        put_count(&p->bytes, (uint64_t)n << 1 ^ (n < 0 ? UINT64_MAX : 0));
        break;
    case JSON_REAL:
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
    uint64_t n = take_count(at);

    for (uint64_t i = 0; i < n; i++) {
        const char *name = json_string_value(p->shared.items[take_count(at)]);

        json_object_set_new_nocheck(object, name, take_value(p, at));
    }
    return object;
}

static json_t *take_list(const struct hg_jsonpack *p, const unsigned char **at)
{
    json_t *list = json_array();
    uint64_t n = take_count(at);

    for (uint64_t i = 0; i < n; i++)
        json_array_append_new(list, take_value(p, at));
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
    uint64_t n = 0;

    if (tag == TAG_REAL)
        *at += sizeof(double);
    else if (tag >= TAG_INTEGER)
        n = take_count(at);
    for (uint64_t i = 0; i < n && tag >= TAG_OBJECT; i++) {
        if (tag == TAG_OBJECT)
            take_count(at);
        skip_value(at);
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

json_t *hg_jsonpack_member(const struct hg_jsonpack *p, size_t handle, const char *name)
{
    const unsigned char *at = bytes_at(p, handle);
    enum tag tag = (enum tag) * at++;
    uint64_t n = tag >= TAG_SHARED ? take_count(&at) : 0;

    if (tag == TAG_SHARED)
        return json_incref(json_object_get(p->shared.items[n], name));
    for (uint64_t i = 0; i < n && tag == TAG_OBJECT; i++) {
        const char *own = json_string_value(p->shared.items[take_count(&at)]);

        if (strcmp(own, name) == 0)
            return take_value(p, &at);
        skip_value(&at);
    }
    return NULL;
}
