/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of device memory that are used again: asking the driver for memory waits for the device, and strategies take and give
 * back the same sizes in every step. All work on a device is in one order, so a block can be given away as soon as it is given
 * back. Independent of CUDA: the owner provides the two functions that get and release memory. */
#ifndef WK_BACKENDS_CUDA_CACHE_H
#define WK_BACKENDS_CUDA_CACHE_H

#include <stdbool.h>
#include <stddef.h>

struct wk_cache_block {
    void *data;
    size_t bytes; /* as requested from the driver */
    bool used;
};

struct wk_cache {
    void *(*get)(void *context, size_t bytes); /* NULL when there is none left */
    void (*release)(void *context, void *data);
    void *context;
    struct {
        struct wk_cache_block *items;
        size_t n, cap;
    } blocks;
    size_t used_bytes, held_bytes; /* of blocks in use; of all */
    long hits, misses;
};

/* Memory of at least so many bytes (0 counts as 1): a free block that is at most an eighth too large, else a new one; when the
 * driver has none, free blocks go back to it first. NULL when that is not enough either. */
void *wk_cache_take(struct wk_cache *c, size_t bytes);
/* Give it back; NULL is nothing. */
void wk_cache_give(struct wk_cache *c, void *data);
/* Bytes of the block that begins there. */
size_t wk_cache_size(const struct wk_cache *c, const void *data);
/* Free blocks go back to the driver. */
void wk_cache_trim(struct wk_cache *c);
/* All blocks do, also those in use. */
void wk_cache_done(struct wk_cache *c);

#endif
