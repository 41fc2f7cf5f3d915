/* SPDX-License-Identifier: Apache-2.0 */
/* One vector of the instruction set that this file is compiled for, and the two functions that an
 * LSTM needs of it. */
#ifndef WK_BACKENDS_CPU_VEC_H
#define WK_BACKENDS_CPU_VEC_H

#include <stdint.h>
#include <string.h>

#include "backends/real.h"

#ifdef WK_REAL_F64
#define PRECISE(f64, f32) f64
#else
#define PRECISE(f64, f32) f32
#endif

#if defined(__AVX512F__)
#include <immintrin.h>
#define VEC_BYTES 64
#define VEC_X86(op) PRECISE(_mm512_##op##_pd, _mm512_##op##_ps)
typedef PRECISE(__m512d, __m512) native;
#define VEC_ROWS 6 /* rows x 4 accumulators + 4 loaded + 1 broadcast fit 32 registers */
#elif defined(__AVX__)
#include <immintrin.h>
#define VEC_BYTES 32
#define VEC_X86(op) PRECISE(_mm256_##op##_pd, _mm256_##op##_ps)
typedef PRECISE(__m256d, __m256) native;
#define VEC_ROWS 3
#else
#define VEC_BYTES 16
#define VEC_ROWS 2
#endif

#ifdef VEC_X86
#define VEC_MAX VEC_X86(max)
#define VEC_MIN VEC_X86(min)
#endif

#ifdef WK_REAL_F64
typedef int64_t wk_bits;
#define EXP_BIAS 1023
#define EXP_SHIFT 52
#define EXP_ROUND 0x1.8p52
#define EXP_LIMIT 700.0
#define TANH_LIMIT 40.0
#define LN2_HI 0x1.62e42fefa3800p-1
#define LN2_LO 0x1.ef35793c76730p-45
#define EXP_TERMS 14
#else
typedef int32_t wk_bits;
#define EXP_BIAS 127
#define EXP_SHIFT 23
#define EXP_ROUND 0x1.8p23f
#define EXP_LIMIT 40.0f
#define TANH_LIMIT 20.0f
#define LN2_HI 0x1.62e400p-1f
#define LN2_LO 0x1.7f7d1cp-20f
#define EXP_TERMS 7
#endif

typedef wk_real vec __attribute__((vector_size(VEC_BYTES)));
typedef wk_bits ivec __attribute__((vector_size(VEC_BYTES)));
#define LANES ((int)(VEC_BYTES / sizeof(wk_real)))
#define INLINE static inline __attribute__((always_inline))

INLINE vec vec_load(const wk_real *p)
{
    vec v;

    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void vec_store(wk_real *p, vec v)
{
    memcpy(p, &v, sizeof v);
}

INLINE vec vec_set(wk_real s)
{
    return s - (vec){ 0 };
}

/* x where it lies in [-limit, limit]; a NaN stays one: MAXPS and MINPS give their second operand then. */
INLINE vec vec_clamp(vec x, wk_real limit)
{
#ifdef VEC_MAX
    return (vec)VEC_MIN((native)vec_set(limit), VEC_MAX((native)vec_set(-limit), (native)x));
#else
    ivec low = x<-limit, high = x> limit, mask = low | high;
    ivec bound = (low & (ivec)vec_set(-limit)) | (high & (ivec)vec_set(limit));

    return (vec)((mask & bound) | (~mask & (ivec)x));
#endif
}

/* exp(y) = scale (1 + p): y = n ln 2 + r, scale = 2^n, p = e^r - 1 by its Taylor series, |r| <= ln
 * 2 / 2. */
INLINE void vec_exp_parts(vec y, vec *scale, vec *p)
{
    static const wk_real inverse[] = { 1.,
                                       1. / 2,
                                       1. / 6,
                                       1. / 24,
                                       1. / 120,
                                       1. / 720,
                                       1. / 5040,
                                       1. / 40320,
                                       1. / 362880,
                                       1. / 3628800,
                                       1. / 39916800,
                                       1. / 479001600,
                                       1. / 6227020800.,
                                       1. / 87178291200. };
    vec shifted = y * (wk_real)1.44269504088896340736 + (wk_real)EXP_ROUND;
    vec n = shifted - (wk_real)EXP_ROUND;
    vec r = (y - n * (wk_real)LN2_HI) - n * (wk_real)LN2_LO;
    vec q = vec_set(inverse[EXP_TERMS - 1]);
    ivec bits = (ivec)shifted - (ivec)vec_set(EXP_ROUND);

#pragma GCC unroll 16
    for (int k = EXP_TERMS - 2; k >= 1; k--)
        q = q * r + inverse[k];
    *p = q * r * r + r;
    *scale = (vec)((bits + EXP_BIAS) << EXP_SHIFT);
}

/* exp(-x) + 1, whose inverse is the logistic function. Beyond the limit that is 0 or 1 to all
 * digits that count. */
INLINE vec vec_logistic_inverse(vec x)
{
    vec scale, p;

    vec_exp_parts(vec_clamp(-x, EXP_LIMIT), &scale, &p);
    return scale * p + (scale + (wk_real)1);
}

/* e = exp(2x) - 1, so that tanh(x) = e / (e + 2): exact near 0 too. */
INLINE vec vec_tanh_part(vec x)
{
    vec scale, p;

    vec_exp_parts(vec_clamp(x + x, TANH_LIMIT), &scale, &p);
    return scale * p + (scale - (wk_real)1);
}

#endif
