/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_SEEN_H
#define HG_MATRIX_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of 64-bit fingerprints whose upper 48 bits are shown to people (as 12 hex digits): two
 * different ones with the same 48 bits are distinguished and reported, never merged. Eight bytes an
 * entry, at most two thirds full. The lowest bit of a fingerprint is used for a mark. */
struct hg_seen {
    uint64_t *slots; /* 0: free */
    size_t n, cap;   /* cap: a power of two */
};

enum hg_seen_result { HG_SEEN_NEW, HG_SEEN_AGAIN, HG_SEEN_CLASH };

/* Make room for n fingerprints without growing. */
void hg_seen_reserve(struct hg_seen *s, size_t n);

enum hg_seen_result hg_seen_add(struct hg_seen *s, uint64_t fingerprint);
bool hg_seen_has(const struct hg_seen *s, uint64_t fingerprint);

/* Mark a fingerprint that is in the set. Returns true the first time. */
bool hg_seen_mark(struct hg_seen *s, uint64_t fingerprint);

void hg_seen_done(struct hg_seen *s);

#endif
