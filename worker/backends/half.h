/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit floating point in bits: bfloat16 (8 exponent bits, 7 of fraction) and IEEE half precision (5 and 10). Rounding is to the
 * nearest, ties to even, as GPUs do; what is too large becomes infinity, NaN stays NaN. */
#ifndef WK_BACKENDS_HALF_H
#define WK_BACKENDS_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t wk_float_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float wk_bits_float(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float wk_bf16_decode(uint16_t x)
{
    return wk_bits_float((uint32_t)x << 16);
}

static inline uint16_t wk_bf16_encode(float x)
{
    uint32_t bits = wk_float_bits(x);

    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40); /* NaN, whatever its low bits */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float wk_f16_decode(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, exponent = x >> 10 & 31, fraction = x & 1023;

    if (exponent == 31)
        return wk_bits_float(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) /* fraction / 2^24 */
        return wk_bits_float(sign | wk_float_bits((float)fraction * 0x1p-24f));
    return wk_bits_float(sign | (exponent + 112) << 23 | fraction << 13);
}

static inline uint16_t wk_f16_encode(float x)
{
    uint32_t bits = wk_float_bits(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;

    if (size > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (size >= 0x477ff000) /* rounds to 65536 or more */
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000) { /* below 2^-14: adding 2^-1 leaves the bits of 2^-24 at the end */
        uint32_t sum = wk_float_bits(wk_bits_float(size) + 0.5f);

        return (uint16_t)(sign | (sum - 0x3f000000));
    }
    return (uint16_t)(sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
}

#endif
