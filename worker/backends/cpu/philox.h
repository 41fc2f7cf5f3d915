/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10 (see backends/rng.h) for many counters side by side: 32-bit words in 64-bit lanes, where one instruction multiplies
 * them whole. */
#ifndef WK_BACKENDS_CPU_PHILOX_H
#define WK_BACKENDS_CPU_PHILOX_H

#include "backends/cpu/vec.h"
#include "backends/rng.h"

typedef uint64_t uvec __attribute__((vector_size(VEC_BYTES)));
#define UVEC_LANES ((int)(VEC_BYTES / sizeof(uint64_t)))

/* Products of the low halves of the lanes; the high halves may hold anything. */
INLINE uvec uvec_mul32(uvec a, uint32_t b)
{
#if defined(__AVX512F__)
    return (uvec)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(b));
#elif defined(__AVX2__)
    return (uvec)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#else
    return (a & (uint64_t)UINT32_MAX) * (uint64_t)b;
#endif
}

/* In: counters, four words each. Out: their numbers, with anything in the high halves of the lanes. */
INLINE void philox_lanes(uint64_t seed, uvec c[4])
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        uvec a = uvec_mul32(c[0], 0xd2511f53u), b = uvec_mul32(c[2], 0xcd9e8d57u);

        c[0] = (b >> 32) ^ c[1] ^ (uint64_t)k0;
        c[1] = b;
        c[2] = (a >> 32) ^ c[3] ^ (uint64_t)k1;
        c[3] = a;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
}

/* Lanes' own numbers: 0, 1, ... */
INLINE uvec uvec_count(uint64_t first)
{
#if VEC_BYTES == 64
    return (uvec){ 0, 1, 2, 3, 4, 5, 6, 7 } + first;
#elif VEC_BYTES == 32
    return (uvec){ 0, 1, 2, 3 } + first;
#else
    return (uvec){ 0, 1 } + first;
#endif
}

#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (uvec){ __VA_ARGS__ })
#endif

/* All words of UVEC_LANES counters, counter by counter. */
INLINE void philox_store(const uvec c[4], uint32_t *out)
{
    uvec a = (c[0] & (uint64_t)UINT32_MAX) | c[1] << 32,
         b = (c[2] & (uint64_t)UINT32_MAX) | c[3] << 32;
    uvec low, high;

#if VEC_BYTES == 64
    low = SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    high = SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#elif VEC_BYTES == 32
    low = SHUFFLE(a, b, 0, 4, 1, 5);
    high = SHUFFLE(a, b, 2, 6, 3, 7);
#else
    low = SHUFFLE(a, b, 0, 2);
    high = SHUFFLE(a, b, 1, 3);
#endif
    memcpy(out, &low, sizeof low);
    memcpy(out + 2 * UVEC_LANES, &high, sizeof high);
}

#endif
