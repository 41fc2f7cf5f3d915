/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

/* Open addressing with linear probing; at most half full. */
struct hg_map_slot {
    uint64_t hash;
    size_t key, len; /* offset into keys; len + 1, so that 0 marks a free slot */
    size_t value;
};

static struct hg_map_slot *find_slot(const struct hg_map *m, const void *key, size_t len,
                                     uint64_t hash)
{
    size_t i = hash & (m->n_slots - 1);

    while (m->slots[i].len && (m->slots[i].hash != hash || m->slots[i].len != len + 1 ||
                               (len && memcmp(m->keys + m->slots[i].key, key, len) != 0)))
        i = (i + 1) & (m->n_slots - 1);
    return &m->slots[i];
}

size_t hg_map_find(const struct hg_map *m, const void *key, size_t len)
{
    const struct hg_map_slot *slot;

    if (m->n_slots == 0)
        return HG_MAP_NONE;
    slot = find_slot(m, key, len, hg_hash64(key, len));
    return slot->len ? slot->value : HG_MAP_NONE;
}

static void grow_slots(struct hg_map *m)
{
    size_t n_slots = m->n_slots ? m->n_slots * 2 : 64;
    struct hg_map_slot *slots = hg_alloc_zeroed(n_slots, sizeof *slots);

    for (size_t i = 0; i < m->n_slots; i++) {
        size_t at = m->slots[i].hash & (n_slots - 1);

        if (!m->slots[i].len)
            continue;
        while (slots[at].len)
            at = (at + 1) & (n_slots - 1);
        slots[at] = m->slots[i];
    }
    free(m->slots);
    m->slots = slots;
    m->n_slots = n_slots;
}

static void keep_key(struct hg_map *m, const void *key, size_t len)
{
    if (m->keys_len + len > m->keys_cap) {
        m->keys_cap = (m->keys_cap ? m->keys_cap * 2 : 1024) + len;
        m->keys = hg_realloc(m->keys, m->keys_cap);
    }
    if (len)
        memcpy(m->keys + m->keys_len, key, len);
    m->keys_len += len;
}

size_t hg_map_put(struct hg_map *m, const void *key, size_t len, size_t value)
{
    uint64_t hash = hg_hash64(key, len);
    struct hg_map_slot *slot;

    if ((m->n + 1) * 2 > m->n_slots)
        grow_slots(m);
    slot = find_slot(m, key, len, hash);
    if (slot->len)
        return slot->value;
    keep_key(m, key, len);
    *slot = (struct hg_map_slot){ hash, m->keys_len - len, len + 1, value };
    m->n++;
    return value;
}

void hg_map_done(struct hg_map *m)
{
    free(m->slots);
    free(m->keys);
    *m = (struct hg_map)HG_MAP_INIT;
}
