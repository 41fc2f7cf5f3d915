/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_MAP_H
#define HG_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

/* From byte strings (text, or any plain data without padding) to a number each. Keys are copied.
 * Nothing is ever removed. Start it as HG_MAP_INIT. */
struct hg_map {
    struct hg_map_slot *slots;
    size_t n, n_slots; /* n_slots is 0 or a power of two */
    char *keys;        /* all keys, one behind the other */
    size_t keys_len, keys_cap;
};
#define HG_MAP_INIT \
    {               \
        0           \
    }

/* What find and put return when there is nothing to give. */
#define HG_MAP_NONE SIZE_MAX

/* The number stored under a key, or HG_MAP_NONE. */
size_t hg_map_find(const struct hg_map *m, const void *key, size_t len);

/* Store value under a key that is not there yet. Returns what is stored now: value, or the number
 * that was there before. value must not be HG_MAP_NONE. */
size_t hg_map_put(struct hg_map *m, const void *key, size_t len, size_t value);

void hg_map_done(struct hg_map *m);

#endif
