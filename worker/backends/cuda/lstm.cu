/* SPDX-License-Identifier: Apache-2.0 */
/* The LSTM over a whole sequence in one launch forward and two backward. Twin: backends/cpu/kernels.c.
 *
 * A block takes one sequence of the batch through all steps, thread (gate, unit) being one row of the weights. Up to 64 units and 32
 * inputs the rows live in registers: a step reads nothing but x_t and the last h from shared memory and waits for two barriers, which
 * is what a step costs. Backward holds the recurrent weights in columns, and each thread's share of the gradients too; blocks leave
 * them as partial sums. Other sizes read the weights again in every step.
 *
 * state: (batch, steps, 6, hidden): gates i, f, g, o, then c and h. Backward puts the gradients of the gates' inputs into their
 * places. */
#include "backends/cuda/reduce.cuh"

#define UNITS 64  /* of the small kernels */
#define INPUTS 32 /* likewise */
#define THREADS (4 * UNITS)
#define BLOCKS_MAX 128 /* of backward: each leaves partial sums */

template <typename T> struct lstm_weights {
    const T *w_ih, *w_hh, *b_ih, *b_hh;
};

static __device__ __forceinline__ float logistic(float x)
{
    return wk_reciprocal(1 + wk_exp2(-WK_LOG2_E * x));
}

/* Where step t of sequence b begins in the state. */
static __device__ __forceinline__ size_t state_at(const struct wk_cuda_lstm &l, int b, int t)
{
    return ((size_t)b * l.steps + t) * 6 * l.hidden;
}

static bool small(const struct wk_cuda_lstm *l)
{
    return l->hidden <= UNITS && l->in <= INPUTS;
}

/* ---- Forward, weights in registers ---- */

/* sum += row times a vector in shared memory; N is a multiple of 4, four sums hide the latency. */
template <int N>
static __device__ __forceinline__ void product(float sum[4], const float row[N], const float *v)
{
#pragma unroll
    for (int k = 0; k < N; k += 4) {
        float4 four = *(const float4 *)(v + k);

        sum[0] += row[k] * four.x;
        sum[1] += row[k + 1] * four.y;
        sum[2] += row[k + 2] * four.z;
        sum[3] += row[k + 3] * four.w;
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    forward_kernel(struct wk_cuda_lstm l, struct lstm_weights<T> w, T *h_out, float *state,
                   const T *x)
{
    __shared__ __align__(16) float h[UNITS], input[2][INPUTS], gates[4][UNITS];
    int tid = (int)threadIdx.x, gate = tid / UNITS, unit = tid % UNITS, b = (int)blockIdx.x;
    bool real = unit < l.hidden;
    size_t row = (size_t)gate * l.hidden + unit;
    float w_ih[INPUTS], w_hh[UNITS], bias = 0, c = 0;
    const T *mine = x + (size_t)b * l.steps * l.in;

#pragma unroll
    for (int k = 0; k < INPUTS; k++)
        w_ih[k] = real && k < l.in ? wk_to_float(w.w_ih[row * l.in + k]) : 0.0f;
#pragma unroll
    for (int k = 0; k < UNITS; k++)
        w_hh[k] = real && k < l.hidden ? wk_to_float(w.w_hh[row * l.hidden + k]) : 0.0f;
    if (real)
        bias = wk_to_float(w.b_ih[row]) + wk_to_float(w.b_hh[row]);
    if (tid < UNITS)
        h[tid] = 0;
    if (tid < INPUTS) {
        input[0][tid] = tid < l.in ? wk_to_float(mine[tid]) : 0.0f;
        input[1][tid] = 0;
    }
    __syncthreads();
    for (int t = 0; t < l.steps; t++) {
        float sum[4] = { bias, 0, 0, 0 }, z, next = 0;
        bool more = tid < l.in && t + 1 < l.steps;

        if (more) /* on its way while this step computes */
            next = wk_to_float(mine[(size_t)(t + 1) * l.in + tid]);
        product<INPUTS>(sum, w_ih, input[t % 2]);
        product<UNITS>(sum, w_hh, h);
        z = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        z = gate == 2 ? tanhf(z) : logistic(z);
        gates[gate][unit] = z;
        if (state && real)
            state[state_at(l, b, t) + row] = z;
        if (more)
            input[(t + 1) % 2][tid] = next;
        __syncthreads();
        if (tid < l.hidden) {
            float out;

            c = gates[1][tid] * c + gates[0][tid] * gates[2][tid];
            out = gates[3][tid] * tanhf(c);
            h[tid] = out;
            if (state) {
                state[state_at(l, b, t) + 4 * (size_t)l.hidden + tid] = c;
                state[state_at(l, b, t) + 5 * (size_t)l.hidden + tid] = out;
            }
            if (t + 1 == l.steps)
                h_out[(size_t)b * l.hidden + tid] = wk_from_float<T>(out);
        }
        __syncthreads();
    }
}

/* ---- Forward, any size: a warp makes a gate's sum ---- */

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    forward_any_kernel(struct wk_cuda_lstm l, struct lstm_weights<T> w, T *h_out, float *state,
                       const T *x)
{
    float *h = (float *)wk_shared(), *c = h + l.hidden, *gates = c + l.hidden;
    int lane = (int)threadIdx.x % WK_WARP, warp = (int)threadIdx.x / WK_WARP, b = (int)blockIdx.x;

    for (int u = (int)threadIdx.x; u < l.hidden; u += THREADS)
        h[u] = c[u] = 0;
    __syncthreads();
    for (int t = 0; t < l.steps; t++) {
        const T *now = x + ((size_t)b * l.steps + t) * l.in;

        for (int row = warp; row < 4 * l.hidden; row += THREADS / WK_WARP) {
            float sum = 0;

            for (int k = lane; k < l.in; k += WK_WARP)
                sum += wk_to_float(w.w_ih[(size_t)row * l.in + k]) * wk_to_float(now[k]);
            for (int k = lane; k < l.hidden; k += WK_WARP)
                sum += wk_to_float(w.w_hh[(size_t)row * l.hidden + k]) * h[k];
            sum = wk_warp_sum(sum) + (wk_to_float(w.b_ih[row]) + wk_to_float(w.b_hh[row]));
            if (lane == 0)
                gates[row] = row / l.hidden == 2 ? tanhf(sum) : logistic(sum);
        }
        __syncthreads();
        for (int u = (int)threadIdx.x; u < l.hidden; u += THREADS) {
            float i = gates[u], f = gates[l.hidden + u], g = gates[2 * l.hidden + u];
            float o = gates[3 * l.hidden + u];

            c[u] = f * c[u] + i * g;
            h[u] = o * tanhf(c[u]);
            if (state) {
                float *at = state + state_at(l, b, t) + u;

                at[0] = i;
                at[(size_t)l.hidden] = f;
                at[(size_t)2 * l.hidden] = g;
                at[(size_t)3 * l.hidden] = o;
                at[(size_t)4 * l.hidden] = c[u];
                at[(size_t)5 * l.hidden] = h[u];
            }
            if (t + 1 == l.steps)
                h_out[(size_t)b * l.hidden + u] = wk_from_float<T>(h[u]);
        }
        __syncthreads();
    }
}

size_t wk_cuda_lstm_state(const struct wk_cuda_lstm *l)
{
    return (size_t)6 * l->hidden * l->steps * l->batch;
}

size_t wk_cuda_lstm_forward_scratch(const struct wk_cuda_lstm *l)
{
    (void)l;
    return 0;
}

int wk_cuda_lstm_forward(wk_stream s, enum wk_cuda_type t, const struct wk_cuda_lstm *l,
                         const void *w_ih, const void *w_hh, const void *b_ih, const void *b_hh,
                         void *h, float *state, const void *x, void *scratch)
{
    (void)scratch;
    return wk_with_type(t, [&](auto a) {
        typedef decltype(a) T;
        struct lstm_weights<T> w = {
            (const T *)w_ih, (const T *)w_hh, (const T *)b_ih, (const T *)b_hh
        };

        if (small(l))
            return wk_launch(forward_kernel<T>, dim3((unsigned)l->batch), THREADS, 0, s, *l, w,
                             (T *)h, state, (const T *)x);
        return wk_launch(forward_any_kernel<T>, dim3((unsigned)l->batch), THREADS,
                         (size_t)6 * l->hidden * sizeof(float), s, *l, w, (T *)h, state,
                         (const T *)x);
    });
}

/* ---- Backward ---- */

/* One unit's gates become the gradients of their inputs z; returns that of c one step earlier. */
static __device__ __forceinline__ float cell_backward(float z[4], float c, float c_before,
                                                      float d_h, float d_c)
{
    float i = z[0], f = z[1], g = z[2], o = z[3], tanh_c = tanhf(c);

    d_c += d_h * o * (1 - tanh_c * tanh_c);
    z[0] = d_c * g * i * (1 - i);
    z[1] = d_c * c_before * f * (1 - f);
    z[2] = d_c * i * (1 - g * g);
    z[3] = d_h * tanh_c * o * (1 - o);
    return d_c * f;
}

/* What a unit's cell needs of the state in one step; loaded a step ahead, because a step is shorter than the way to memory. */
struct cell {
    float z[4], c_before, h_before;
};

static __device__ __forceinline__ void load_cell(struct cell *to, const struct wk_cuda_lstm &l,
                                                 const float *now, int unit, bool first)
{
#pragma unroll
    for (int k = 0; k < 4; k++)
        to->z[k] = now[k * l.hidden + unit];
    to->c_before = first ? 0.0f : now[unit - 2 * l.hidden];
    to->h_before = first ? 0.0f : now[unit - l.hidden];
}

/* Columns of a block's partial sums: (in + hidden + 1, 4 hidden), so that neighbouring threads write neighbours. */
static size_t partial_cols(const struct wk_cuda_lstm *l)
{
    return (size_t)(l->in + l->hidden + 1) * 4 * l->hidden;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    backward_kernel(struct wk_cuda_lstm l, const T *weights, float *partial, const float *state,
                    const T *x, const T *d_h_last)
{
    __shared__ __align__(16) float d_z[4][UNITS], parts[4][UNITS], h[UNITS], input[INPUTS];
    int tid = (int)threadIdx.x, gate = tid / UNITS, unit = tid % UNITS;
    float w_hh[UNITS], d_ih[INPUTS] = { 0 }, d_hh[UNITS] = { 0 }, d_bias = 0;

    /* column `unit` of this gate's rows */
#pragma unroll
    for (int k = 0; k < UNITS; k++)
        w_hh[k] = unit < l.hidden && k < l.hidden
                      ? wk_to_float(weights[((size_t)gate * l.hidden + k) * l.hidden + unit])
                      : 0.0f;
    d_z[gate][unit] = 0;
    if (tid < UNITS)
        h[tid] = 0;
    if (tid < INPUTS)
        input[tid] = 0;
    bool cells = tid < l.hidden;
    int column = tid - 2 * UNITS; /* of the input: a warp's work that has no cells */
    bool columns = column >= 0 && column < l.in;

    for (int b = (int)blockIdx.x; b < l.batch; b += (int)gridDim.x) {
        const float *last = state + state_at(l, b, l.steps - 1);
        float d_c = 0, c = 0, x_now = 0;
        struct cell next = {};

        __syncthreads();
        parts[gate][unit] = gate == 0 && unit < l.hidden
                                ? wk_to_float(d_h_last[(size_t)b * l.hidden + unit])
                                : 0.0f;
        if (cells) {
            c = last[4 * l.hidden + tid];
            load_cell(&next, l, last, tid, l.steps == 1);
        } else if (columns) {
            x_now = wk_to_float(x[((size_t)b * l.steps + l.steps - 1) * l.in + column]);
        }
        __syncthreads();
        for (int t = l.steps - 1; t >= 0; t--) {
            float sum[4] = { 0 };

            if (cells) {
                float d_h = (parts[0][tid] + parts[1][tid]) + (parts[2][tid] + parts[3][tid]);

                d_c = cell_backward(next.z, c, next.c_before, d_h, d_c);
#pragma unroll
                for (int k = 0; k < 4; k++)
                    d_z[k][tid] = next.z[k];
                h[tid] = next.h_before;
                c = next.c_before;
                if (t > 0)
                    load_cell(&next, l, state + state_at(l, b, t - 1), tid, t == 1);
            } else if (columns) {
                input[column] = x_now;
                if (t > 0)
                    x_now = wk_to_float(x[((size_t)b * l.steps + t - 1) * l.in + column]);
            }
            __syncthreads();
            product<UNITS>(sum, w_hh, d_z[gate]);
            float mine = d_z[gate][unit];

#pragma unroll
            for (int k = 0; k < INPUTS; k++)
                d_ih[k] += mine * input[k];
#pragma unroll
            for (int k = 0; k < UNITS; k++)
                d_hh[k] += mine * h[k];
            d_bias += mine;
            parts[gate][unit] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
            __syncthreads();
        }
    }
    if (unit < l.hidden) {
        int rows = 4 * l.hidden;
        float *to = partial + (size_t)blockIdx.x * (l.in + l.hidden + 1) * rows +
                    (size_t)gate * l.hidden + unit;

#pragma unroll
        for (int k = 0; k < INPUTS; k++)
            if (k < l.in)
                to[(size_t)k * rows] = d_ih[k];
#pragma unroll
        for (int k = 0; k < UNITS; k++)
            if (k < l.hidden)
                to[(size_t)(l.in + k) * rows] = d_hh[k];
        to[(size_t)(l.in + l.hidden) * rows] = d_bias;
    }
}

/* Where the partial sums belong. */
struct lstm_gradients {
    float *w_ih, *w_hh, *b_ih, *b_hh;
    int in, hidden;

    __device__ void operator()(int col, float sum) const
    {
        int k = col / (4 * hidden), row = col % (4 * hidden);

        if (k < in) {
            w_ih[(size_t)row * in + k] += sum;
        } else if (k < in + hidden) {
            w_hh[(size_t)row * hidden + k - in] += sum;
        } else {
            b_ih[row] += sum;
            b_hh[row] += sum;
        }
    }
};

/* ---- Backward, any size: gradients of the gates' inputs stay in the state, then a thread makes one element of a gradient ---- */

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    backward_any_kernel(struct wk_cuda_lstm l, const T *w_hh, float *state, const T *d_h_last)
{
    float *d_h = (float *)wk_shared(), *d_c = d_h + l.hidden, *d_z = d_c + l.hidden;
    int b = (int)blockIdx.x;

    for (int u = (int)threadIdx.x; u < l.hidden; u += THREADS) {
        d_h[u] = wk_to_float(d_h_last[(size_t)b * l.hidden + u]);
        d_c[u] = 0;
    }
    __syncthreads();
    for (int t = l.steps - 1; t >= 0; t--) {
        float *now = state + state_at(l, b, t);

        for (int u = (int)threadIdx.x; u < l.hidden; u += THREADS) {
            float z[4], c_before = t ? now[u - 2 * l.hidden] : 0.0f;

            for (int k = 0; k < 4; k++)
                z[k] = now[k * l.hidden + u];
            d_c[u] = cell_backward(z, now[4 * l.hidden + u], c_before, d_h[u], d_c[u]);
            for (int k = 0; k < 4; k++)
                now[k * l.hidden + u] = d_z[k * l.hidden + u] = z[k];
        }
        __syncthreads();
        for (int u = (int)threadIdx.x; u < l.hidden; u += THREADS) {
            float sum = 0;

            for (int k = 0; k < 4 * l.hidden; k++)
                sum += d_z[k] * wk_to_float(w_hh[(size_t)k * l.hidden + u]);
            d_h[u] = sum;
        }
        __syncthreads();
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    weights_any_kernel(struct wk_cuda_lstm l, struct lstm_gradients d, const float *state,
                       const T *x)
{
    int cols = l.in + l.hidden + 1;
    size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    int row = (int)(at / cols), k = (int)(at % cols);
    float sum = 0;

    if (row >= 4 * l.hidden)
        return;
    for (int b = 0; b < l.batch; b++)
        for (int t = 0; t < l.steps; t++) {
            const float *now = state + state_at(l, b, t);
            float in = 1;

            if (k < l.in)
                in = wk_to_float(x[((size_t)b * l.steps + t) * l.in + k]);
            else if (k < l.in + l.hidden)
                in = t ? now[k - l.in - l.hidden] : 0.0f;
            sum += now[row] * in;
        }
    d(k * 4 * l.hidden + row, sum);
}

static unsigned backward_blocks(const struct wk_cuda_lstm *l)
{
    return l->batch < BLOCKS_MAX ? (unsigned)l->batch : BLOCKS_MAX;
}

size_t wk_cuda_lstm_backward_scratch(const struct wk_cuda_lstm *l)
{
    return small(l) ? backward_blocks(l) * partial_cols(l) * sizeof(float) : 0;
}

int wk_cuda_lstm_backward(wk_stream s, enum wk_cuda_type t, const struct wk_cuda_lstm *l,
                          const void *w_ih, const void *w_hh, float *d_w_ih, float *d_w_hh,
                          float *d_b_ih, float *d_b_hh, float *state, const void *x,
                          const void *d_h, void *scratch)
{
    struct lstm_gradients d = { d_w_ih, d_w_hh, d_b_ih, d_b_hh, l->in, l->hidden };

    (void)w_ih;
    return wk_with_type(t, [&](auto a) {
        typedef decltype(a) T;
        int rc;

        if (small(l)) {
            rc = wk_launch(backward_kernel<T>, dim3(backward_blocks(l)), THREADS, 0, s, *l,
                           (const T *)w_hh, (float *)scratch, (const float *)state, (const T *)x,
                           (const T *)d_h);
            if (rc != cudaSuccess)
                return rc;
            return wk_total(s, d, (const float *)scratch, (int)backward_blocks(l),
                            (int)partial_cols(l));
        }
        rc = wk_launch(backward_any_kernel<T>, dim3((unsigned)l->batch), THREADS,
                       (size_t)6 * l->hidden * sizeof(float), s, *l, (const T *)w_hh, state,
                       (const T *)d_h);
        if (rc != cudaSuccess)
            return rc;
        return wk_launch(weights_any_kernel<T>, dim3(wk_blocks(partial_cols(l), THREADS)), THREADS,
                         0, s, *l, d, (const float *)state, (const T *)x);
    });
}
