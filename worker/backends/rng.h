/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based randomness: a number is a function of what it is for, never of what was drawn
 * before. So results do not depend on the number of ranks or threads, and backward can make a
 * forward's dropout mask again instead of storing it.
 *
 * The function is Philox4x32 with 10 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers:
 * as easy as 1, 2, 3"). */
#ifndef WK_BACKENDS_RNG_H
#define WK_BACKENDS_RNG_H

#include <stdint.h>

/* What numbers are for: the second counter word, with the layer or tensor in its low half. */
enum wk_site {
    WK_SITE_INIT = 1 << 16,  /* + parameter; counter: element, 0, 0 */
    WK_SITE_ORDER = 2 << 16, /* counter: position, epoch, 0 */
    WK_SITE_DROPOUT =
        3 << 16, /* + place in the model; counter: eight elements of the sample, sample, step */
};

struct wk_rng {
    uint64_t seed;
    uint32_t site, step;
};

/* Four numbers for one counter. */
static inline void wk_philox(uint64_t seed, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3,
                             uint32_t out[4])
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xd2511f53u * c0, b = (uint64_t)0xcd9e8d57u * c2;

        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Dropout takes 16 bits for an element: counter e / 8 of a sample has those of element e in word e % 8 / 2, in its low half if e is even. The
 * element is dropped if they are below this, so a drop rate is a multiple of 2^-16; it is less than 0.99999. Checkpoints say the bits. */
#define WK_DROP_BITS 16

static inline uint32_t wk_drop_limit(double drop)
{
    return (uint32_t)(drop * (1 << WK_DROP_BITS) + 0.5);
}

/* Uniform in (0, 1), never 0 or 1. */
static inline double wk_rng_unit(uint32_t bits)
{
    return (bits + 0.5) * 0x1p-32;
}

#endif
