/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled once per instruction set; WK_ISA names it. See kernels_tokens.h. */
#include "backends/cpu/kernels_tokens.h"

#include <math.h>

#include "backends/cpu/philox.h"

#define CAT2(a, b) a##b
#define CAT(a, b) CAT2(a, b)
#define TEXT2(a) #a
#define TEXT(a) TEXT2(a)

#ifdef WK_REAL_F64
#define wk_sqrt sqrt
#define wk_log log
#define wk_exp exp
#define LOWEST (-1e300)
#else
#define wk_sqrt sqrtf
#define wk_log logf
#define wk_exp expf
#define LOWEST (-1e38f)
#endif

/* ---- Vectors that are only partly filled ---- */

INLINE vec vec_load_part(const wk_real *p, int n, wk_real fill)
{
    vec v = vec_set(fill);

    memcpy(&v, p, (size_t)n * sizeof *p);
    return v;
}

INLINE void vec_store_part(wk_real *p, vec v, int n)
{
    memcpy(p, &v, (size_t)n * sizeof *p);
}

INLINE wk_real vec_sum(vec v)
{
    wk_real sum = 0;

    for (int lane = 0; lane < LANES; lane++)
        sum += v[lane];
    return sum;
}

INLINE vec vec_max(vec a, vec b)
{
    ivec mask = a > b;

    return (vec)((mask & (ivec)a) | (~mask & (ivec)b));
}

INLINE vec vec_select(ivec mask, vec yes, vec no)
{
    return (vec)((mask & (ivec)yes) | (~mask & (ivec)no));
}

INLINE vec vec_exp(vec x)
{
    vec scale, p;

    vec_exp_parts(vec_clamp(x, EXP_LIMIT), &scale, &p);
    return scale * p + scale;
}

/* Run body(load, store) over n elements: `at` is the place, `part` how many are left of a vector. */
#define FOR_VECTORS(n) for (size_t at = 0; at < (n); at += (size_t)LANES)
#define PART(n, at) ((n) - (at) < (size_t)LANES ? (int)((n) - (at)) : LANES)

INLINE vec load_at(const wk_real *p, size_t n, size_t at, wk_real fill)
{
    return n - at >= (size_t)LANES ? vec_load(p + at) : vec_load_part(p + at, PART(n, at), fill);
}

INLINE void store_at(wk_real *p, size_t n, size_t at, vec v)
{
    if (n - at >= (size_t)LANES)
        vec_store(p + at, v);
    else
        vec_store_part(p + at, v, PART(n, at));
}

/* ---- Dropout ---- */

#define SETS 2 /* of counters at a time, so that their multiplications overlap */
#define DRAWN (SETS * 4 * UVEC_LANES)

/* Numbers of DRAWN / 4 counters from the first one on, in order; the same as wk_philox's. */
INLINE void draw(struct wk_rng rng, uint32_t first, uint32_t sample, uint32_t out[DRAWN])
{
    uvec c[SETS][4], zero = { 0 };

#pragma GCC unroll 4
    for (int set = 0; set < SETS; set++) {
        c[set][0] = uvec_count(first + (uint32_t)(set * UVEC_LANES));
        c[set][1] = zero + (uint64_t)rng.site;
        c[set][2] = zero + (uint64_t)sample;
        c[set][3] = zero + (uint64_t)rng.step;
    }
#pragma GCC unroll 4
    for (int set = 0; set < SETS; set++)
        philox_lanes(rng.seed, c[set]);
#pragma GCC unroll 4
    for (int set = 0; set < SETS; set++)
        philox_store(c[set], out + set * 4 * UVEC_LANES);
}

static void mask(wk_real *mask, int n, uint32_t first, uint32_t sample, double p, struct wk_rng rng)
{
    union {
        uint32_t words[DRAWN];
        uint16_t halves[2 * DRAWN];
    } bits;
    uint32_t limit = wk_drop_limit(p);
    wk_real factor = (wk_real)(1 / (1 - p));
    int at = 0;

    for (; at + 2 * DRAWN <= n; at += 2 * DRAWN) {
        draw(rng, (first + (uint32_t)at) / 8, sample, bits.words);
        for (int i = 0; i < 2 * DRAWN; i++)
            mask[at + i] = bits.halves[i] < limit ? 0 : factor;
    }
    if (at < n) {
        draw(rng, (first + (uint32_t)at) / 8, sample, bits.words);
        for (int i = 0; i < n - at; i++)
            mask[at + i] = bits.halves[i] < limit ? 0 : factor;
    }
}

static void multiply(wk_real *y, const wk_real *a, const wk_real *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] * b[i];
}

static void add(wk_real *y, const wk_real *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

/* ---- Layer normalisation ---- */

static void norm_forward(wk_real *y, wk_real *saved, wk_real *x, const wk_real *residual,
                         const wk_real *mask, const wk_real *weight, const wk_real *bias, int cols,
                         double eps)
{
    size_t n = (size_t)cols;
    vec sum = { 0 }, square = { 0 };
    wk_real mean, inverse;

    if (mask)
        multiply(x, x, mask, n);
    if (residual)
        add(x, residual, n);
    FOR_VECTORS(n)
    sum += load_at(x, n, at, 0);
    mean = vec_sum(sum) / (wk_real)cols;
    FOR_VECTORS(n)
    {
        vec d = load_at(x, n, at, mean) - mean;

        square += d * d;
    }
    inverse = (wk_real)(1 / sqrt((double)(vec_sum(square) / (wk_real)cols) + eps));
    for (size_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) * inverse * weight[i] + bias[i];
    saved[0] = mean;
    saved[1] = inverse;
}

/* With xn = (sum - mean) inverse and g = d_y weight: d_sum = inverse (g - mean(g) - xn mean(g xn)). */
static void norm_backward(wk_real *d_sum, const wk_real *d_y, const wk_real *sum,
                          const wk_real *saved, const wk_real *weight, int cols)
{
    size_t n = (size_t)cols;
    wk_real mean = saved[0], inverse = saved[1], a, b;
    vec g_sum = { 0 }, g_xn_sum = { 0 };

    FOR_VECTORS(n)
    {
        vec g = load_at(d_y, n, at, 0) * load_at(weight, n, at, 0);

        g_sum += g;
        g_xn_sum += g * ((load_at(sum, n, at, mean) - mean) * inverse);
    }
    a = vec_sum(g_sum) / (wk_real)cols;
    b = vec_sum(g_xn_sum) / (wk_real)cols;
    for (size_t i = 0; i < n; i++)
        d_sum[i] = inverse * (d_y[i] * weight[i] - a - (sum[i] - mean) * inverse * b);
}

static void norm_weights(wk_real *restrict d_weight, wk_real *restrict d_bias, const wk_real *d_y,
                         const wk_real *sum, const wk_real *saved, int rows, int cols, int first,
                         int n)
{
    for (int row = 0; row < rows; row++) {
        const wk_real *d = d_y + (size_t)row * cols, *s = sum + (size_t)row * cols;
        wk_real mean = saved[2 * (size_t)row], inverse = saved[2 * (size_t)row + 1];

        for (int i = first; i < first + n; i++) {
            d_weight[i] += d[i] * (s[i] - mean) * inverse;
            d_bias[i] += d[i];
        }
    }
}

/* ---- GELU ---- */

#define ROOT_HALF (wk_real)0.70710678118654752440
#define ROOT_2_PI_INVERSE (wk_real)0.39894228040143267794

/* The normal distribution's function and density, from
 * half erfc(z) = t q(t) exp(-z^2) with t = 1 / (1 + z/2), z = |x| / sqrt(2); q is a Chebyshev fit over 0 <= z <= 6.4 with a relative
 * error of 1.1e-8. In fp64 the C library does it. */
#ifdef WK_REAL_F64
INLINE void normal(vec x, vec *cdf, vec *pdf)
{
    for (int lane = 0; lane < LANES; lane++) {
        (*cdf)[lane] = 0.5 * erfc(-x[lane] * M_SQRT1_2);
        (*pdf)[lane] = exp(-0.5 * x[lane] * x[lane]) * ROOT_2_PI_INVERSE;
    }
}
#else
INLINE void normal(vec x, vec *cdf, vec *pdf)
{
    static const wk_real q[] = { 0.2819927261f,  0.284220293f,  0.2275393684f,  0.2764913216f,
                                 -0.2435401272f, 0.6883583882f, -0.9875163168f, 0.6646049831f,
                                 -0.2225724023f, 0.03042176473f };
    ivec negative = x < 0;
    vec z = vec_select(negative, -x, x) * ROOT_HALF;
    vec t = 1 / (1 + (wk_real)0.5 * z), e = vec_exp(-(z * z));
    vec sum = vec_set(q[9]);

#pragma GCC unroll 16
    for (int k = 8; k >= 0; k--)
        sum = sum * t + q[k];
    sum = sum * t * e * (wk_real)0.5;
    *cdf = vec_select(negative, sum, 1 - sum);
    *pdf = e * ROOT_2_PI_INVERSE;
}
#endif

static void gelu_erf(wk_real *y, const wk_real *x, size_t n)
{
    FOR_VECTORS(n)
    {
        vec v = load_at(x, n, at, 0), cdf, pdf;

        normal(v, &cdf, &pdf);
        store_at(y, n, at, v * cdf);
    }
}

static void gelu_erf_backward(wk_real *d_x, const wk_real *d_y, const wk_real *x, size_t n)
{
    FOR_VECTORS(n)
    {
        vec v = load_at(x, n, at, 0), cdf, pdf;

        normal(v, &cdf, &pdf);
        store_at(d_x, n, at, load_at(d_y, n, at, 0) * (cdf + v * pdf));
    }
}

#define GELU_A (wk_real)0.79788456080286535588 /* sqrt(2 / pi) */
#define GELU_B (wk_real)0.044715

INLINE vec gelu_tanh_of(vec v)
{
    vec e = vec_tanh_part(GELU_A * (v + GELU_B * v * v * v));

    return e / (e + 2);
}

/* y = x (1 + tanh(a (x + b x^3))) / 2 */
static void gelu_tanh(wk_real *y, const wk_real *x, size_t n)
{
    FOR_VECTORS(n)
    {
        vec v = load_at(x, n, at, 0);

        store_at(y, n, at, (wk_real)0.5 * v * (1 + gelu_tanh_of(v)));
    }
}

static void gelu_tanh_backward(wk_real *d_x, const wk_real *d_y, const wk_real *x, size_t n)
{
    FOR_VECTORS(n)
    {
        vec v = load_at(x, n, at, 0), t = gelu_tanh_of(v);
        vec slope = (wk_real)0.5 * (1 + t) +
                    (wk_real)0.5 * v * (1 - t * t) * GELU_A * (1 + 3 * GELU_B * v * v);

        store_at(d_x, n, at, load_at(d_y, n, at, 0) * slope);
    }
}

/* ---- Softmax ---- */

static wk_real softmax(wk_real *x, int n_)
{
    size_t n = (size_t)n_;
    vec top = vec_set(LOWEST), sum = { 0 };
    wk_real most = LOWEST, total;

    FOR_VECTORS(n)
    top = vec_max(load_at(x, n, at, LOWEST), top);
    for (int lane = 0; lane < LANES; lane++)
        most = top[lane] > most || top[lane] != top[lane] ? top[lane] : most;
    FOR_VECTORS(n)
    {
        vec e = vec_exp(load_at(x, n, at, 0) - most);

        store_at(x, n, at, e);
        sum += n - at >= (size_t)LANES ? e : vec_load_part(x + at, PART(n, at), 0);
    }
    total = vec_sum(sum);
    for (size_t i = 0; i < n; i++)
        x[i] *= 1 / total;
    return most + wk_log(total);
}

static void softmax_again(wk_real *x, int n_, wk_real lse)
{
    size_t n = (size_t)n_;

    FOR_VECTORS(n)
    store_at(x, n, at, vec_exp(load_at(x, n, at, 0) - lse));
}

static void softmax_backward(wk_real *dp, wk_real *p, const wk_real *mask, int n_, wk_real scale)
{
    size_t n = (size_t)n_;
    vec sum = { 0 };
    wk_real total;

    if (mask)
        multiply(dp, dp, mask, n);
    FOR_VECTORS(n)
    sum += load_at(p, n, at, 0) * load_at(dp, n, at, 0);
    total = vec_sum(sum);
    for (size_t i = 0; i < n; i++)
        dp[i] = p[i] * (dp[i] - total) * scale;
    if (mask)
        multiply(p, p, mask, n);
}

/* ---- Optimizer ---- */

static void adamw(wk_real *restrict value, const wk_real *restrict gradient, wk_real *restrict m,
                  wk_real *restrict v, size_t n, const struct wk_adamw_job *job)
{
    const struct wk_adamw_job j = *job;

    for (size_t i = 0; i < n; i++) {
        wk_real g = gradient[i] * j.scale;

        m[i] = j.beta1 * m[i] + j.rest1 * g;
        v[i] = j.beta2 * v[i] + j.rest2 * g * g;
        value[i] =
            (value[i] * j.before - j.rate * m[i] / (wk_sqrt(v[i]) * j.root + j.eps)) * j.after;
    }
}

static double square_sum(const wk_real *x, size_t n)
{
    double sum[8] = { 0 };

    for (size_t i = 0; i < n / 8 * 8; i += 8)
        for (int k = 0; k < 8; k++)
            sum[k] += (double)x[i + k] * (double)x[i + k];
    for (size_t i = n / 8 * 8; i < n; i++)
        sum[0] += (double)x[i] * (double)x[i];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

const struct wk_token_kernels CAT(wk_token_kernels_, WK_ISA) = {
    .isa = TEXT(WK_ISA),
    .mask = mask,
    .multiply = multiply,
    .add = add,
    .norm_forward = norm_forward,
    .norm_backward = norm_backward,
    .norm_weights = norm_weights,
    .gelu_erf = gelu_erf,
    .gelu_erf_backward = gelu_erf_backward,
    .gelu_tanh = gelu_tanh,
    .gelu_tanh_backward = gelu_tanh_backward,
    .softmax = softmax,
    .softmax_again = softmax_again,
    .softmax_backward = softmax_backward,
    .adamw = adamw,
    .square_sum = square_sum,
};
