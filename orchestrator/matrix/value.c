/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"

struct entry {
    json_t *json;
    char *text; /* canonical */
    size_t len;
    uint64_t hash;
};

struct hg_pool {
    struct entry *items;
    size_t n, cap;
    uint32_t *slots; /* index + 1 into items, 0 free; a power of two of them, at most half full */
    size_t n_slots;
};

double hg_value_number(hg_value v)
{
    double number = 0;

    if (hg_value_is_number(v))
        memcpy(&number, &v, sizeof number);
    return number;
}

hg_value hg_value_of_number(double number)
{
    hg_value v;

    number += 0.0; /* -0 becomes 0 */
    memcpy(&v, &number, sizeof v);
    return v;
}

double hg_value_round(double number)
{
    char text[40];

    if (number == floor(number) && fabs(number) <= 9007199254740992.0)
        return number;
    snprintf(text, sizeof text, "%.15g", number);
    return strtod(text, NULL);
}

struct hg_pool *hg_pool_create(void)
{
    struct hg_pool *pool = hg_alloc_zeroed(1, sizeof *pool);

    pool->n_slots = 64;
    pool->slots = hg_alloc_zeroed(pool->n_slots, sizeof *pool->slots);
    return pool;
}

void hg_pool_free(struct hg_pool *pool)
{
    if (!pool)
        return;
    for (size_t i = 0; i < pool->n; i++) {
        json_decref(pool->items[i].json);
        free(pool->items[i].text);
    }
    HG_VEC_DONE(pool);
    free(pool->slots);
    free(pool);
}

/* The slot that holds this text, or the free one where it belongs. */
static uint32_t *find_slot(const struct hg_pool *pool, const char *text, size_t len, uint64_t hash)
{
    size_t mask = pool->n_slots - 1;

    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        uint32_t *slot = &pool->slots[i];
        const struct entry *e = *slot ? &pool->items[*slot - 1] : NULL;

        if (!e || (e->hash == hash && e->len == len && memcmp(e->text, text, len) == 0))
            return slot;
    }
}

static void grow_slots(struct hg_pool *pool)
{
    free(pool->slots);
    pool->n_slots *= 2;
    pool->slots = hg_alloc_zeroed(pool->n_slots, sizeof *pool->slots);
    for (size_t i = 0; i < pool->n; i++) {
        const struct entry *e = &pool->items[i];

        *find_slot(pool, e->text, e->len, e->hash) = (uint32_t)i + 1;
    }
}

static void add_entry(struct hg_pool *pool, const json_t *json, struct hg_buf *text, uint64_t hash,
                      uint32_t *slot)
{
    struct entry *e = HG_VEC_PUSH(pool);

    e->len = text->len;
    e->hash = hash;
    e->json = json_incref((json_t *)json);
    e->text = hg_buf_detach(text);
    *slot = (uint32_t)pool->n;
    if (pool->n * 2 > pool->n_slots)
        grow_slots(pool);
}

hg_value hg_pool_add(struct hg_pool *pool, const json_t *json)
{
    struct hg_buf text = HG_BUF_INIT;
    uint32_t *slot, index;
    uint64_t hash;

    if (!json || json_is_null(json))
        return HG_VALUE_ABSENT;
    if (json_is_number(json))
        return hg_value_of_number(json_number_value(json));
    hg_json_dump(json, HG_JSON_SORT, &text);
    hash = hg_hash64(text.data, text.len);
    slot = find_slot(pool, text.data, text.len, hash);
    index = *slot ? *slot - 1 : (uint32_t)pool->n;
    if (!*slot)
        add_entry(pool, json, &text, hash, slot);
    hg_buf_done(&text);
    return HG_VALUE_POOLED | index;
}

hg_value hg_pool_add_string(struct hg_pool *pool, const char *text)
{
    json_t *json = json_string(text);
    hg_value value = hg_pool_add(pool, json);

    json_decref(json);
    return value;
}

bool hg_pool_has_string(const struct hg_pool *pool, const char *text)
{
    for (size_t i = 0; i < pool->n; i++)
        if (json_is_string(pool->items[i].json) &&
            strcmp(json_string_value(pool->items[i].json), text) == 0)
            return true;
    return false;
}

static const struct entry *entry_of(const struct hg_pool *pool, hg_value value)
{
    return (value & HG_VALUE_TAG) == HG_VALUE_POOLED ? &pool->items[value & ~HG_VALUE_TAG] : NULL;
}

json_t *hg_pool_json(const struct hg_pool *pool, hg_value value)
{
    const struct entry *e = entry_of(pool, value);

    if (e)
        return json_incref(e->json);
    return hg_value_is_number(value) ? hg_json_number(hg_value_number(value)) : NULL;
}

const char *hg_pool_string(const struct hg_pool *pool, hg_value value)
{
    const struct entry *e = entry_of(pool, value);

    return e ? json_string_value(e->json) : NULL;
}

/* Digits of a whole number, backwards from the end of scratch. */
static const char *whole_text(double number, char scratch[static 32], size_t *len)
{
    bool negative = number < 0;
    uint64_t rest = (uint64_t)(negative ? -number : number);
    char *p = scratch + 32;

    do {
        *--p = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (negative)
        *--p = '-';
    *len = (size_t)(scratch + 32 - p);
    return p;
}

const char *hg_pool_text(const struct hg_pool *pool, hg_value value, char scratch[static 32],
                         size_t *len)
{
    const struct entry *e = entry_of(pool, value);
    double number;

    if (e) {
        *len = e->len;
        return e->text;
    }
    number = hg_value_number(value);
    if (number == floor(number) && fabs(number) < 1e15)
        return whole_text(number, scratch, len);
    *len = hg_text_number_format(number, scratch);
    return scratch;
}
