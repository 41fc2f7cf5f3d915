/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on elements, sums of squares and of columns, batches out of the resident data set. Twins: backends/cpu/cpu.c, tokens.c.
 *
 * All of them are bound by memory: a thread takes eight neighbours, 16 bytes an access where the addresses allow it. */
#include "backends/cuda/reduce.cuh"

#define THREADS 256

/* ---- A function of eight elements at a time ---- */

/* Run f(first, n) for all elements; n is 8 but at the end. */
template <typename F> static __global__ void __launch_bounds__(THREADS) each_kernel(size_t n, F f)
{
    size_t at = ((size_t)blockIdx.x * THREADS + threadIdx.x) * 8;

    if (at < n)
        f(at, n - at < 8 ? (int)(n - at) : 8);
}

template <typename F> static int each(wk_stream s, size_t n, F f)
{
    return wk_launch(each_kernel<F>, dim3(wk_blocks(n, 8 * THREADS)), THREADS, 0, s, n, f);
}

template <typename T> struct fill_op {
    T *y;
    float value;
    bool wide;

    __device__ void operator()(size_t at, int n) const
    {
        float v[8];

#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = value;
        wk_store_part(y + at, v, n, wide);
    }
};

int wk_cuda_fill(wk_stream s, enum wk_cuda_type t, void *y, size_t n, float value)
{
    return wk_with_type(t, [&](auto a) {
        typedef decltype(a) T;

        return each(s, n, fill_op<T>{ (T *)y, value, wk_wide_flat(n, y) });
    });
}

/* A warp looks at 32 grains at once, and writes those that are not spared. */
static __global__ void __launch_bounds__(THREADS)
    clear_kernel(float *y, const uint8_t *spared, size_t grains, int grain)
{
    int lane = (int)threadIdx.x % WK_WARP;
    size_t first = ((size_t)blockIdx.x * THREADS + threadIdx.x) / WK_WARP * WK_WARP;
    unsigned clear = __ballot_sync(WK_ALL_LANES, first + lane < grains && !spared[first + lane]);

    for (int k = 0; k < WK_WARP; k++)
        if (clear >> k & 1)
            for (int i = 4 * lane; i < grain; i += 4 * WK_WARP)
                *(float4 *)(y + (first + k) * grain + i) = make_float4(0, 0, 0, 0);
}

int wk_cuda_clear(wk_stream s, float *y, const uint8_t *spared, size_t grains, int grain)
{
    if (!wk_wide(grain, y))
        return cudaErrorInvalidValue;
    return wk_launch(clear_kernel, dim3(wk_blocks(grains, THREADS)), THREADS, 0, s, y, spared,
                     grains, grain);
}

template <typename T> struct scale_op {
    T *y;
    float a;
    const float *by;
    bool wide;

    __device__ void operator()(size_t at, int n) const
    {
        float v[8], factor = by ? a * *by : a;

        wk_load_part(v, y + at, n, wide);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] *= factor;
        wk_store_part(y + at, v, n, wide);
    }
};

int wk_cuda_scale(wk_stream s, enum wk_cuda_type t, void *y, size_t n, float a, const float *by)
{
    return wk_with_type(t, [&](auto zero) {
        typedef decltype(zero) T;

        return each(s, n, scale_op<T>{ (T *)y, a, by, wk_wide_flat(n, y) });
    });
}

template <typename T> struct add_op {
    T *y;
    const T *x;
    bool wide;

    __device__ void operator()(size_t at, int n) const
    {
        float v[8], w[8];

        wk_load_part(v, y + at, n, wide);
        wk_load_part(w, x + at, n, wide);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] += w[i];
        wk_store_part(y + at, v, n, wide);
    }
};

int wk_cuda_add(wk_stream s, enum wk_cuda_type t, void *y, const void *x, size_t n)
{
    return wk_with_type(t, [&](auto a) {
        typedef decltype(a) T;

        return each(s, n, add_op<T>{ (T *)y, (const T *)x, wk_wide_flat(n, y, x) });
    });
}

template <typename Y, typename X> struct convert_op {
    Y *y;
    const X *x;
    bool wide;

    __device__ void operator()(size_t at, int n) const
    {
        float v[8];

        wk_load_part(v, x + at, n, wide);
        wk_store_part(y + at, v, n, wide);
    }
};

int wk_cuda_convert(wk_stream s, enum wk_cuda_type to, void *y, enum wk_cuda_type from,
                    const void *x, size_t n)
{
    return wk_with_type(to, [&](auto a) {
        return wk_with_type(from, [&](auto b) {
            typedef decltype(a) Y;
            typedef decltype(b) X;

            return each(s, n, convert_op<Y, X>{ (Y *)y, (const X *)x, wk_wide_flat(n, y, x) });
        });
    });
}

/* ---- ReLU, GELU ---- */

template <typename T> struct relu_op {
    T *y;
    const T *x;
    bool wide;

    __device__ void operator()(size_t at, int n) const
    {
        float v[8];

        wk_load_part(v, x + at, n, wide);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = v[i] < 0 ? 0.0f : v[i]; /* NaN stays */
        wk_store_part(y + at, v, n, wide);
    }
};

int wk_cuda_relu_forward(wk_stream s, enum wk_cuda_type t, void *y, const void *x, size_t n)
{
    return wk_with_type(t, [&](auto a) {
        typedef decltype(a) T;

        return each(s, n, relu_op<T>{ (T *)y, (const T *)x, wk_wide_flat(n, y, x) });
    });
}

/* A gradient through a function whose slope at a kept value is slope(value). */
template <typename T, typename S> struct through_op {
    T *d_x;
    const T *d_y, *kept;
    bool wide;
    S slope;

    __device__ void operator()(size_t at, int n) const
    {
        float d[8], v[8];

        wk_load_part(d, d_y + at, n, wide);
        wk_load_part(v, kept + at, n, wide);
#pragma unroll
        for (int i = 0; i < 8; i++)
            d[i] = slope(d[i], v[i]);
        wk_store_part(d_x + at, d, n, wide);
    }
};

struct relu_slope {
    __device__ float operator()(float d, float y) const
    {
        return y > 0 ? d : 0.0f;
    }
};

template <typename S>
static int through(wk_stream s, enum wk_cuda_type t, void *d_x, const void *d_y, const void *kept,
                   size_t n, S slope)
{
    return wk_with_type(t, [&](auto a) {
        typedef decltype(a) T;

        return each(s, n,
                    through_op<T, S>{ (T *)d_x, (const T *)d_y, (const T *)kept,
                                      wk_wide_flat(n, d_x, d_y, kept), slope });
    });
}

int wk_cuda_relu_backward(wk_stream s, enum wk_cuda_type t, void *d_x, const void *d_y,
                          const void *y, size_t n)
{
    return through(s, t, d_x, d_y, y, n, relu_slope{});
}

#define ROOT_HALF 0.70710678118654752440f
#define ROOT_2_PI_INVERSE 0.39894228040143267794f
#define TANH_A 0.79788456080286535588f /* sqrt(2 / pi) */
#define TANH_B 0.044715f

/* The normal distribution's function F and density f at x, the CPU backend's way: with z = |x| / sqrt(2) and t = 1 / (1 + z / 2),
 * erfc(z) / 2 = t q(t) / 2 exp(-z^2), q a Chebyshev fit over 0 <= z <= 6.4 with a relative error of 1.1e-8. erfcf would cost more than
 * reading and writing the element, and so would exp and a division with all they look after. */
static __device__ __forceinline__ void normal(float x, float *cdf, float *pdf)
{
    const float q[] = { 0.2819927261f,  0.284220293f,  0.2275393684f,  0.2764913216f,
                        -0.2435401272f, 0.6883583882f, -0.9875163168f, 0.6646049831f,
                        -0.2225724023f, 0.03042176473f };
    float t = wk_reciprocal(fmaf(fabsf(x), 0.5f * ROOT_HALF, 1.0f));
    float e = wk_exp2(x * x * (-0.5f * WK_LOG2_E));
    float sum = 0.5f * q[9];

#pragma unroll
    for (int k = 8; k >= 0; k--)
        sum = sum * t + 0.5f * q[k];
    sum *= t * e;
    *cdf = x < 0 ? sum : 1 - sum;
    *pdf = e * ROOT_2_PI_INVERSE;
}

/* x F(x) */
static __device__ __forceinline__ float erf_gelu(float x)
{
    float cdf, pdf;

    normal(x, &cdf, &pdf);
    return x * cdf;
}

/* (1 + tanh(a (x + b x^3))) / 2, as a logistic function so that nothing cancels */
static __device__ __forceinline__ float tanh_part(float x)
{
    return wk_reciprocal(
        1 + wk_exp2(x * (-2 * TANH_A * WK_LOG2_E - 2 * TANH_A * WK_LOG2_E * TANH_B * (x * x))));
}

template <typename T, bool TANH> struct gelu_op {
    T *y;
    const T *x;
    bool wide;

    __device__ void operator()(size_t at, int n) const
    {
        float v[8];

        wk_load_part(v, x + at, n, wide);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = TANH ? v[i] * tanh_part(v[i]) : erf_gelu(v[i]);
        wk_store_part(y + at, v, n, wide);
    }
};

int wk_cuda_gelu_forward(wk_stream s, enum wk_cuda_type t, void *y, const void *x, size_t n,
                         int tanh_form)
{
    return wk_with_type(t, [&](auto a) {
        typedef decltype(a) T;

        if (tanh_form)
            return each(s, n, gelu_op<T, true>{ (T *)y, (const T *)x, wk_wide_flat(n, y, x) });
        return each(s, n, gelu_op<T, false>{ (T *)y, (const T *)x, wk_wide_flat(n, y, x) });
    });
}

/* (x F(x))' = F(x) + x f(x) */
struct erf_slope {
    __device__ float operator()(float d, float x) const
    {
        float cdf, pdf;

        normal(x, &cdf, &pdf);
        return d * (cdf + x * pdf);
    }
};

/* With s = tanh_part: (x s)' = s + x s (1 - s) 2 a (1 + 3 b x^2) */
struct tanh_slope {
    __device__ float operator()(float d, float x) const
    {
        float s = tanh_part(x);

        return d * (s + x * s * (1 - s) * 2 * TANH_A * (1 + 3 * TANH_B * x * x));
    }
};

int wk_cuda_gelu_backward(wk_stream s, enum wk_cuda_type t, void *d_x, const void *d_y,
                          const void *x, size_t n, int tanh_form)
{
    if (tanh_form)
        return through(s, t, d_x, d_y, x, n, tanh_slope{});
    return through(s, t, d_x, d_y, x, n, erf_slope{});
}

/* ---- Sum of squares: floats in a thread, a few each, then doubles ---- */

#define SQUARE_BLOCKS 512

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    square_kernel(double *partial, const T *x, size_t n, bool wide)
{
    __shared__ double room[WK_WARP];
    size_t step = (size_t)gridDim.x * THREADS * 8;
    float sum[8] = { 0 };
    double total = 0;

    for (size_t at = ((size_t)blockIdx.x * THREADS + threadIdx.x) * 8; at < n; at += step) {
        float v[8];

        wk_load_part(v, x + at, n - at < 8 ? (int)(n - at) : 8, wide);
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum[i] += v[i] * v[i];
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        total += (double)sum[i];
    total = wk_block_sum(total, room);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = total;
}

static __global__ void __launch_bounds__(SQUARE_BLOCKS)
    square_total_kernel(float *sum, const double *partial, int parts)
{
    __shared__ double room[WK_WARP];
    double total = wk_block_sum((int)threadIdx.x < parts ? partial[threadIdx.x] : 0.0, room);

    if (threadIdx.x == 0)
        *sum = (float)total;
}

static unsigned square_blocks(size_t n)
{
    unsigned blocks = wk_blocks(n, 8 * THREADS);

    return blocks > SQUARE_BLOCKS ? SQUARE_BLOCKS : blocks;
}

size_t wk_cuda_square_sum_scratch(size_t n)
{
    return (square_blocks(n) + 1) * sizeof(double);
}

int wk_cuda_square_sum(wk_stream s, float *sum, enum wk_cuda_type t, const void *x, size_t n,
                       void *scratch)
{
    int rc = wk_with_type(t, [&](auto a) {
        typedef decltype(a) T;

        return wk_launch(square_kernel<T>, dim3(square_blocks(n)), THREADS, 0, s, (double *)scratch,
                         (const T *)x, n, wk_wide_flat(n, x));
    });

    if (rc != cudaSuccess)
        return rc;
    return wk_launch(square_total_kernel, dim3(1), SQUARE_BLOCKS, 0, s, sum,
                     (const double *)scratch, (int)square_blocks(n));
}

/* ---- Biases ---- */

template <typename T, typename W> struct add_bias_op {
    T *y;
    const W *bias;
    int cols;
    bool wide;

    __device__ void operator()(size_t at, int n) const
    {
        float v[8], b[8];

        if (wide) { /* eight neighbours lie in one row */
            wk_load8(v, y + at);
            wk_load8(b, bias + at % cols);
#pragma unroll
            for (int i = 0; i < 8; i++)
                v[i] += b[i];
            wk_store8(y + at, v);
            return;
        }
        for (int i = 0; i < n; i++)
            y[at + i] =
                wk_from_float<T>(wk_to_float(y[at + i]) + wk_to_float(bias[(at + i) % cols]));
    }
};

/* Logits are float beside biases of 16 bits: then the types are the other way round. */
int wk_cuda_add_bias(wk_stream s, enum wk_cuda_type t, void *y, enum wk_cuda_type w,
                     const void *bias, int rows, int cols)
{
    size_t n = (size_t)rows * cols;
    bool wide = wk_wide(cols, y, bias);

    if (t == WK_CUDA_F32)
        return wk_with_type(w, [&](auto b) {
            typedef decltype(b) W;

            return each(s, n, add_bias_op<float, W>{ (float *)y, (const W *)bias, cols, wide });
        });
    return wk_with_types(t, w, [&](auto a, auto b) {
        typedef decltype(a) T;
        typedef decltype(b) W;

        return each(s, n, add_bias_op<T, W>{ (T *)y, (const W *)bias, cols, wide });
    });
}

/* Partial column sums: a block takes 256 columns of a strip of rows, a warp every eighth row, a lane eight columns. Grid (columns, strips,
 * batch); a strip's sums of the whole batch lie side by side. */
#define STRIP_ROWS 64
#define STRIPS_MAX 128

/* A lane's columns of a warp's rows. Without the choice inside, several rows are on their way at once. */
template <bool WIDE, typename T>
static __device__ __forceinline__ void sum_rows(float sum[8], const T *x, int row, int end,
                                                int cols, int n)
{
#pragma unroll 4
    for (; row < end; row += THREADS / WK_WARP) {
        float v[8];

        wk_load_part(v, x + (size_t)row * cols, WIDE ? 8 : n, WIDE);
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum[i] += v[i];
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    column_kernel(float *partial, const T *x, ptrdiff_t step, int rows, int cols, int strip,
                  bool wide)
{
    __shared__ float sums[THREADS / WK_WARP][8 * WK_WARP + 8];
    int lane = (int)threadIdx.x % WK_WARP, warp = (int)threadIdx.x / WK_WARP;
    int first = (int)blockIdx.x * 8 * WK_WARP, col = first + lane * 8;
    int n = cols - col < 8 ? cols - col : 8;
    int end = ((int)blockIdx.y + 1) * strip < rows ? ((int)blockIdx.y + 1) * strip : rows;
    float sum[8] = { 0 };

    x += (ptrdiff_t)blockIdx.z * step;
    if (wide && n > 0)
        sum_rows<true>(sum, x + col, (int)blockIdx.y * strip + warp, end, cols, n);
    else if (n > 0)
        sum_rows<false>(sum, x + col, (int)blockIdx.y * strip + warp, end, cols, n);
#pragma unroll
    for (int i = 0; i < 8; i++)
        sums[warp][lane * 8 + i] = sum[i];
    __syncthreads();
    col = first + (int)threadIdx.x;
    if (col < cols) {
        float total = 0;

        for (int w = 0; w < THREADS / WK_WARP; w++)
            total += sums[w][threadIdx.x];
        partial[((size_t)blockIdx.y * gridDim.z + blockIdx.z) * cols + col] = total;
    }
}

/* Rows of a strip, so that there are not too many. */
static int strip_of(int rows)
{
    int strip = (rows + STRIPS_MAX - 1) / STRIPS_MAX;

    return strip < STRIP_ROWS ? STRIP_ROWS : strip;
}

size_t wk_cuda_bias_backward_scratch(int batch, int rows, int cols)
{
    return (size_t)wk_blocks((size_t)rows, (size_t)strip_of(rows)) * batch * cols * sizeof(float);
}

int wk_cuda_bias_backward(wk_stream s, float *d_bias, ptrdiff_t bias_step, enum wk_cuda_type t,
                          const void *d_y, ptrdiff_t y_step, int batch, int rows, int cols,
                          void *scratch)
{
    static_assert(WK_CUDA_BIASES <= WK_TARGETS, "each has its target");
    unsigned strips = wk_blocks((size_t)rows, (size_t)strip_of(rows));
    dim3 grid(wk_blocks((size_t)cols, 8 * WK_WARP), strips, (unsigned)batch);
    bool wide = wk_wide(cols, d_y) && y_step % 8 == 0;
    struct wk_targets biases = {};
    int rc;

    if (batch > WK_CUDA_BIASES)
        return cudaErrorInvalidValue;
    for (int k = 0; k < batch; k++) {
        biases.to[k] = d_bias + k * bias_step;
        biases.end[k] = (k + 1) * cols;
    }
    rc = wk_with_type(t, [&](auto a) {
        typedef decltype(a) T;

        return wk_launch(column_kernel<T>, grid, THREADS, 0, s, (float *)scratch, (const T *)d_y,
                         y_step, rows, cols, strip_of(rows), wide);
    });
    if (rc != cudaSuccess)
        return rc;
    return wk_total(s, biases, (const float *)scratch, (int)strips, batch * cols);
}

/* ---- Batches out of the data set ---- */

template <typename T> struct gather_u8_op {
    T *y;
    const uint8_t *rows;
    const int32_t *index;
    int width;
    float scale, shift;
    bool wide;

    __device__ void operator()(size_t at, int n) const
    {
        float v[8];

#pragma unroll
        for (int i = 0; i < 8; i++)
            if (i < n) {
                size_t row = (at + i) / width, col = (at + i) % width;

                v[i] = (float)rows[(size_t)index[row] * width + col] * scale + shift;
            }
        wk_store_part(y + at, v, n, wide);
    }
};

int wk_cuda_gather_u8(wk_stream s, enum wk_cuda_type t, void *y, const uint8_t *rows,
                      const int32_t *index, int n, int width, float mean, float std)
{
    float scale = (float)(1 / (255 * (double)std)), shift = (float)(-(double)mean / (double)std);

    return wk_with_type(t, [&](auto a) {
        typedef decltype(a) T;

        return each(
            s, (size_t)n * width,
            gather_u8_op<T>{ (T *)y, rows, index, width, scale, shift, wk_wide_flat(n, y) });
    });
}

struct gather_i32_op {
    int32_t *y;
    const int32_t *values, *index;

    __device__ void operator()(size_t at, int n) const
    {
        for (int i = 0; i < n; i++)
            y[at + i] = values[index[at + i]];
    }
};

int wk_cuda_gather_i32(wk_stream s, int32_t *y, const int32_t *values, const int32_t *index, int n)
{
    return each(s, (size_t)n, gather_i32_op{ y, values, index });
}

struct token_source {
    const int32_t *tokens, *at, *second;
};

struct token_rows {
    int32_t *ids, *types, *sequence;
};

/* Blocks (x, s) write the rows of sequence s; those with s = sequences what is behind the last one. */
static __global__ void __launch_bounds__(THREADS)
    gather_tokens_kernel(struct token_rows to, struct wk_cuda_packing p, struct token_source from)
{
    int s = (int)blockIdx.y;
    bool real = s < p.sequences;
    int first = p.first[s], end = real ? p.first[s + 1] : p.rows;
    int feature = real ? p.sample[s] : 0, tokens = real ? p.tokens[s] : 0;

    for (int row = first + (int)blockIdx.x * THREADS + (int)threadIdx.x; row < end;
         row += (int)gridDim.x * THREADS) {
        int place = row - first;
        bool token = place < tokens;

        to.ids[row] = token ? from.tokens[from.at[feature] + place] : 0;
        to.types[row] = token && place >= from.second[feature];
        to.sequence[row] = real ? s : -1;
    }
}

int wk_cuda_gather_tokens(wk_stream s, int32_t *ids, int32_t *types, int32_t *sequence,
                          const struct wk_cuda_packing *p, const int32_t *tokens, const int32_t *at,
                          const int32_t *second)
{
    dim3 grid(wk_blocks((size_t)p->longest + 1, THREADS), (unsigned)p->sequences + 1);

    return wk_launch(gather_tokens_kernel, grid, THREADS, 0, s, token_rows{ ids, types, sequence },
                     *p, token_source{ tokens, at, second });
}
