/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/cache.h"

#include "base/vec.h"

#define GRAIN ((size_t)512) /* what the driver aligns to */

static size_t rounded(size_t bytes)
{
    return bytes ? (bytes + GRAIN - 1) / GRAIN * GRAIN : GRAIN;
}

static struct wk_cache_block *best(const struct wk_cache *c, size_t bytes)
{
    struct wk_cache_block *found = NULL;

    for (size_t i = 0; i < c->blocks.n; i++) {
        struct wk_cache_block *b = &c->blocks.items[i];

        if (!b->used && b->bytes >= bytes && b->bytes - bytes <= bytes / 8 &&
            (!found || b->bytes < found->bytes))
            found = b;
    }
    return found;
}

static struct wk_cache_block *make(struct wk_cache *c, size_t bytes)
{
    struct wk_cache_block *b;
    void *data = c->get(c->context, bytes);

    if (!data) {
        wk_cache_trim(c);
        data = c->get(c->context, bytes);
    }
    if (!data)
        return NULL;
    b = HG_VEC_PUSH(&c->blocks);
    *b = (struct wk_cache_block){ .data = data, .bytes = bytes };
    c->held_bytes += bytes;
    c->misses++;
    return b;
}

void *wk_cache_take(struct wk_cache *c, size_t bytes)
{
    struct wk_cache_block *b = best(c, rounded(bytes));

    if (b)
        c->hits++;
    else
        b = make(c, rounded(bytes));
    if (!b)
        return NULL;
    b->used = true;
    c->used_bytes += b->bytes;
    return b->data;
}

static struct wk_cache_block *find(const struct wk_cache *c, const void *data)
{
    for (size_t i = 0; i < c->blocks.n; i++)
        if (c->blocks.items[i].data == data)
            return &c->blocks.items[i];
    return NULL;
}

void wk_cache_give(struct wk_cache *c, void *data)
{
    struct wk_cache_block *b = data ? find(c, data) : NULL;

    if (!b || !b->used)
        return;
    b->used = false;
    c->used_bytes -= b->bytes;
}

size_t wk_cache_size(const struct wk_cache *c, const void *data)
{
    const struct wk_cache_block *b = find(c, data);

    return b ? b->bytes : 0;
}

static void remove_blocks(struct wk_cache *c, bool used_too)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->blocks.n; i++) {
        struct wk_cache_block b = c->blocks.items[i];

        if (b.used && !used_too) {
            c->blocks.items[kept++] = b;
            continue;
        }
        c->release(c->context, b.data);
        c->held_bytes -= b.bytes;
    }
    c->blocks.n = kept;
}

void wk_cache_trim(struct wk_cache *c)
{
    remove_blocks(c, false);
}

void wk_cache_done(struct wk_cache *c)
{
    remove_blocks(c, true);
    HG_VEC_DONE(&c->blocks);
    c->used_bytes = 0;
}
