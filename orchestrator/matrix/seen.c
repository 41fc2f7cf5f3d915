/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/seen.h"

#include <stdlib.h>

#include "base/alloc.h"

#define MARK UINT64_C(1)

/* Fingerprints are hashes already; their upper bits choose the slot, so that those with the same
 * visible part share one chain. */
static uint64_t *find(const struct hg_seen *s, uint64_t fingerprint)
{
    size_t mask = s->cap - 1;

    for (size_t i = (fingerprint >> 16) & mask;; i = (i + 1) & mask)
        if (!s->slots[i] || s->slots[i] >> 16 == fingerprint >> 16)
            return &s->slots[i];
}

static void grow(struct hg_seen *s, size_t cap)
{
    struct hg_seen bigger = { hg_alloc_zeroed(cap, sizeof *bigger.slots), s->n, cap };

    for (size_t i = 0; i < s->cap; i++)
        if (s->slots[i])
            *find(&bigger, s->slots[i]) = s->slots[i];
    free(s->slots);
    *s = bigger;
}

void hg_seen_reserve(struct hg_seen *s, size_t n)
{
    size_t cap = s->cap ? s->cap : 64;

    while (cap * 2 < n * 3)
        cap *= 2;
    if (cap > s->cap)
        grow(s, cap);
}

/* 0 marks a free slot, so the one fingerprint without upper bits gets another. */
static uint64_t clean(uint64_t fingerprint)
{
    fingerprint &= ~MARK;
    return fingerprint ? fingerprint : 2;
}

enum hg_seen_result hg_seen_add(struct hg_seen *s, uint64_t fingerprint)
{
    uint64_t *slot;

    fingerprint = clean(fingerprint);
    if (s->n * 3 >= s->cap * 2)
        hg_seen_reserve(s, s->n + s->n / 2 + 16);
    slot = find(s, fingerprint);
    if (*slot)
        return (*slot & ~MARK) == fingerprint ? HG_SEEN_AGAIN : HG_SEEN_CLASH;
    *slot = fingerprint;
    s->n++;
    return HG_SEEN_NEW;
}

bool hg_seen_has(const struct hg_seen *s, uint64_t fingerprint)
{
    return s->cap && (*find(s, clean(fingerprint)) & ~MARK) == clean(fingerprint);
}

bool hg_seen_mark(struct hg_seen *s, uint64_t fingerprint)
{
    uint64_t *slot = find(s, clean(fingerprint));
    bool first = !(*slot & MARK);

    *slot |= MARK;
    return first;
}

void hg_seen_done(struct hg_seen *s)
{
    free(s->slots);
    *s = (struct hg_seen){ 0 };
}
