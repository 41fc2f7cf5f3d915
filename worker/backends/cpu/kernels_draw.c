/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled once per instruction set; WK_ISA names it. A large model draws hundreds of millions of normal numbers, which take the C
 * library many seconds one by one; here the compiler makes several side by side. Only +, -, *, / and square roots are used, each
 * rounded once (this file is compiled without contraction to fused operations), so every machine gives the same bits. Against the C
 * library: relative error below 1e-14, so in fp32 the same number but for about one in ten million, whose last bit differs. */
#include "backends/cpu/kernels_draw.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/philox.h"

#define CAT2(a, b) a##b
#define CAT(a, b) CAT2(a, b)

typedef double dvec __attribute__((vector_size(VEC_BYTES)));
typedef int64_t svec __attribute__((vector_size(VEC_BYTES)));

INLINE dvec dvec_select(svec mask, dvec yes, dvec no)
{
    return (dvec)((mask & (svec)yes) | (~mask & (svec)no));
}

/* The uniform numbers of 32 bits each: 2^52 + bits is exact in a double. */
INLINE dvec unit(uvec bits)
{
    uvec whole = (bits & (uint64_t)UINT32_MAX) | 0x4330000000000000u;

    return (((dvec)whole - 0x1p52) + 0.5) * 0x1p-32;
}

/* ln x for normal x > 0: x = 2^e m with m from sqrt(1/2) to sqrt(2); ln m = 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.172. */
INLINE dvec logarithm(dvec x)
{
    uvec bits = (uvec)x, exponent = (bits - 0x3fe6a09e667f3bcdu + 0x3ff0000000000000u) >> 52;
    dvec m = (dvec)(bits - ((exponent - 1023u) << 52));
    dvec e = (dvec)(exponent | 0x4330000000000000u) - (0x1p52 + 1023);
    dvec s = (m - 1) / (m + 1), z = s * s, sum = z * 0 + 1. / 21;

#pragma GCC unroll 16
    for (int k = 19; k >= 1; k -= 2)
        sum = sum * z + 1. / k;
    return e * 0.69314718055994530942 + 2 * s * sum;
}

/* cos and sin of 2 pi u by their series around quarters of the circle: u = n / 4 + r, |r| <= 1/8. */
INLINE void circle(dvec u, dvec *cosine, dvec *sine)
{
    dvec shifted = u * 4 + 0x1.8p52, n = shifted - 0x1.8p52;
    dvec r = (u - n * 0.25) * 6.28318530717958647693, z = r * r;
    dvec c = z * 0 + 1, s = c;
    svec odd = -((svec)shifted & 1), sign_c, sign_s;

#pragma GCC unroll 16
    for (int k = 18; k >= 2; k -= 2) {
        c = 1 - c * (z * (1. / (k * (k - 1))));
        s = 1 - s * (z * (1. / (k * (k + 1))));
    }
    s *= r;
    sign_c = (((svec)shifted + 1) & 2) << 62;
    sign_s = ((svec)shifted & 2) << 62;
    *cosine = (dvec)((svec)dvec_select(odd, s, c) ^ sign_c);
    *sine = (dvec)((svec)dvec_select(odd, c, s) ^ sign_s);
}

/* Two standard normal numbers from two uniform ones (Box and Muller), in every lane. */
INLINE void normals(uvec a, uvec b, double *first, double *second)
{
    dvec square = -2 * logarithm(unit(a)), cosine, sine;
    double radius[UVEC_LANES];

    memcpy(radius, &square, sizeof radius);
    for (int i = 0; i < UVEC_LANES; i++)
        radius[i] = sqrt(radius[i]);
    memcpy(&square, radius, sizeof radius);
    circle(unit(b), &cosine, &sine);
    cosine *= square;
    sine *= square;
    memcpy(first, &cosine, sizeof cosine);
    memcpy(second, &sine, sizeof sine);
}

static void draw_lanes(uint64_t seed, uint32_t site, uint32_t counter, enum wk_draw what,
                       double *out)
{
    uvec c[4] = { uvec_count(counter), (uvec){ 0 } + (uint64_t)site };
    double words[4][UVEC_LANES];

    philox_lanes(seed, c);
    if (what == WK_DRAW_NORMAL) {
        normals(c[0], c[1], words[0], words[1]);
        normals(c[2], c[3], words[2], words[3]);
    } else {
        for (int k = 0; k < 4; k++) {
            dvec u = 2 * unit(c[k]) - 1;

            memcpy(words[k], &u, sizeof u);
        }
    }
    for (int i = 0; i < UVEC_LANES; i++)
        for (int k = 0; k < 4; k++)
            out[4 * i + k] = words[k][i];
}

void CAT(wk_draw_group_, WK_ISA)(uint64_t seed, uint32_t site, uint32_t counter, enum wk_draw what,
                                 double out[WK_DRAW_GROUP])
{
    for (int at = 0; at < WK_DRAW_GROUP; at += 4 * UVEC_LANES)
        draw_lanes(seed, site, counter + (uint32_t)at / 4, what, out + at);
}
