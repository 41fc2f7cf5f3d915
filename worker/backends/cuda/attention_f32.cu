/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in float; attention.cuh says what is computed. A block of 16 x 16 threads owns M rows and streams N rows of the other side
 * through shared memory. Thread (y, x) holds the scores of rows y R to y R + R - 1 and columns x, x + 16, ..., and of the results the
 * same rows and columns 4 x to 4 x + 3, and those 64 further. */
#include "backends/cuda/attention.cuh"

#define THREADS 256
#define SIDE 16

/* D: head size rounded up; what fits into 64 KiB of shared memory, all that sm_75 has. */
template <int D> struct shape {
    static const int M = D == 64 ? 64 : 32, N = D == 64 ? 32 : 16;
    static const int R = M / SIDE, C = N / SIDE, V = D / 64; /* rows, columns, fours of a thread */
    static const int LD = D + 4, LP = N + 4;
};

template <int D> struct room_of {
    float own[2][shape<D>::M * shape<D>::LD], stream[2][shape<D>::N * shape<D>::LD];
    float p[shape<D>::M * shape<D>::LP];
    float lse[shape<D>::N], delta[shape<D>::N]; /* of queries that stream */
    __align__(16) uint8_t mask[shape<D>::M * shape<D>::N / 8];
};

static __device__ __forceinline__ int place_x()
{
    return (int)threadIdx.x % SIDE;
}

static __device__ __forceinline__ int place_y()
{
    return (int)threadIdx.x / SIDE;
}

/* s = own rows times streaming rows */
template <int D>
static __device__ __forceinline__ void scores(float s[shape<D>::R][shape<D>::C], const float *own,
                                              const float *stream)
{
    typedef shape<D> S;
    const float *a = own + place_y() * S::R * S::LD, *b = stream + place_x() * S::LD;

#pragma unroll
    for (int r = 0; r < S::R; r++)
#pragma unroll
        for (int c = 0; c < S::C; c++)
            s[r][c] = 0;
#pragma unroll 4
    for (int k = 0; k < D; k += 4) {
        float4 right[S::C];

#pragma unroll
        for (int c = 0; c < S::C; c++)
            right[c] = *(const float4 *)(b + c * SIDE * S::LD + k);
#pragma unroll
        for (int r = 0; r < S::R; r++) {
            float4 left = *(const float4 *)(a + r * S::LD + k);

#pragma unroll
            for (int c = 0; c < S::C; c++)
                s[r][c] += left.x * right[c].x + left.y * right[c].y + left.z * right[c].z +
                           left.w * right[c].w;
        }
    }
}

template <int D>
static __device__ __forceinline__ void keep_scores(float *p,
                                                   const float s[shape<D>::R][shape<D>::C])
{
    typedef shape<D> S;

#pragma unroll
    for (int r = 0; r < S::R; r++)
#pragma unroll
        for (int c = 0; c < S::C; c++)
            p[(place_y() * S::R + r) * S::LP + place_x() + c * SIDE] = s[r][c];
}

/* sum += p (M, N) times streaming rows (N, D) */
template <int D>
static __device__ __forceinline__ void weigh(float sum[shape<D>::R][shape<D>::V][4], const float *p,
                                             const float *stream)
{
    typedef shape<D> S;

#pragma unroll 4
    for (int n = 0; n < S::N; n++) {
        float4 right[S::V];

#pragma unroll
        for (int v = 0; v < S::V; v++)
            right[v] = *(const float4 *)(stream + n * S::LD + 4 * place_x() + 64 * v);
#pragma unroll
        for (int r = 0; r < S::R; r++) {
            float left = p[(place_y() * S::R + r) * S::LP + n];

#pragma unroll
            for (int v = 0; v < S::V; v++) {
                sum[r][v][0] += left * right[v].x;
                sum[r][v][1] += left * right[v].y;
                sum[r][v][2] += left * right[v].z;
                sum[r][v][3] += left * right[v].w;
            }
        }
    }
}

/* Rows of results times a factor; factor 0 stores zeros. */
template <int D>
static __device__ __forceinline__ void store_rows(const struct wk_attention_job &j, float *to,
                                                  int stride,
                                                  const float sum[shape<D>::R][shape<D>::V][4],
                                                  const float factor[shape<D>::R], int valid)
{
    typedef shape<D> S;

#pragma unroll
    for (int r = 0; r < S::R; r++)
#pragma unroll
        for (int v = 0; v < S::V; v++) {
            int row = place_y() * S::R + r, col = 4 * place_x() + 64 * v;
            float *at = to + (size_t)row * stride + col;

            if (row >= valid)
                continue;
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (col + k < j.size)
                    at[k] = factor[r] == 0 ? 0.0f : sum[r][v][k] * factor[r];
        }
}

/* Over the 16 threads of a row. */
static __device__ __forceinline__ float row_sum(float x)
{
#pragma unroll
    for (int lanes = SIDE / 2; lanes > 0; lanes /= 2)
        x += __shfl_xor_sync(WK_ALL_LANES, x, lanes);
    return x;
}

static __device__ __forceinline__ float row_max(float x)
{
#pragma unroll
    for (int lanes = SIDE / 2; lanes > 0; lanes /= 2)
        x = fmaxf(x, __shfl_xor_sync(WK_ALL_LANES, x, lanes));
    return x;
}

/* 1 / (1 - drop) or 0 for element (row, col) of a mask with that many columns. */
static __device__ __forceinline__ float factor_at(const struct wk_attention_job &j,
                                                  const uint8_t *mask, int row, int col, int cols)
{
    if (!j.drop.limit)
        return 1;
    return mask[row * (cols / 8) + col / 8] >> (col % 8) & 1 ? j.drop.factor : 0.0f;
}

template <int D, int ROWS>
static __device__ __forceinline__ void load(float *to, const struct wk_attention_job &j,
                                            const struct wk_head &h, const float *from, int stride,
                                            int row, int rows)
{
    wk_load_rows<float, D, ROWS, THREADS>(to, from + wk_head_at(j, h, row, stride), stride,
                                          rows - row, j.size, j.wide);
}

/* No copy of this thread is on its way any more, also where no tile followed. */
static __device__ __forceinline__ void finish()
{
    wk_copy_commit();
    wk_copy_wait<0>();
}

static __device__ __forceinline__ void arrive()
{
    finish();
    __syncthreads();
}

/* ---- Forward ---- */

template <int D>
static __global__ void __launch_bounds__(THREADS, 2)
    forward_kernel(struct wk_attention_job j, struct wk_attention_in<float> in, float *out,
                   float *lse)
{
    typedef shape<D> S;
    struct room_of<D> *room = (struct room_of<D> *)wk_shared();
    int query = (int)blockIdx.x * S::M, out_stride = j.heads * j.size;

    if ((int)blockIdx.z == j.p.sequences) {
        wk_clear_fill<float, THREADS>(j, out, out_stride);
        return;
    }
    struct wk_head h = wk_head_of(j);
    float sum[S::R][S::V][4] = {}, top[S::R], total[S::R];

    if (query >= h.queries)
        return;
#pragma unroll
    for (int r = 0; r < S::R; r++) {
        top[r] = -INFINITY;
        total[r] = 0;
    }
    load<D, S::M>(room->own[0], j, h, in.q, j.stride, query, h.queries);
    for (int key = 0; key < h.keys; key += S::N) {
        float s[S::R][S::C];

        load<D, S::N>(room->stream[0], j, h, in.k, j.stride, key, h.keys);
        load<D, S::N>(room->stream[1], j, h, in.v, j.stride, key, h.keys);
        if (j.drop.limit)
            wk_mask_tile<S::M, S::N, THREADS, true>(room->mask, j, h, query, key);
        arrive();
        scores<D>(s, room->own[0], room->stream[0]);
#pragma unroll
        for (int r = 0; r < S::R; r++) {
            float most = top[r], part = 0, shrink;

#pragma unroll
            for (int c = 0; c < S::C; c++) {
                s[r][c] = key + place_x() + c * SIDE < h.keys ? s[r][c] * j.scale : -INFINITY;
                most = fmaxf(most, s[r][c]);
            }
            most = row_max(most);
            shrink = expf(top[r] - most);
#pragma unroll
            for (int c = 0; c < S::C; c++) {
                s[r][c] = expf(s[r][c] - most);
                part += s[r][c];
                s[r][c] *=
                    factor_at(j, room->mask, place_y() * S::R + r, place_x() + c * SIDE, S::N);
            }
            total[r] = total[r] * shrink + row_sum(part);
            top[r] = most;
#pragma unroll
            for (int v = 0; v < S::V; v++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    sum[r][v][k] *= shrink;
        }
        keep_scores<D>(room->p, s);
        __syncthreads();
        weigh<D>(sum, room->p, room->stream[1]);
        __syncthreads();
    }
    finish();
    float factor[S::R];

#pragma unroll
    for (int r = 0; r < S::R; r++)
        factor[r] = h.keys ? 1 / total[r] : 0.0f;
    store_rows<D>(j, out + wk_head_at(j, h, query, out_stride), out_stride, sum, factor,
                  h.queries - query);
#pragma unroll
    for (int r = 0; r < S::R; r++) {
        int row = query + place_y() * S::R + r;

        if (lse && place_x() == 0 && row < h.queries)
            lse[(size_t)(h.first + row) * j.heads + h.index] = top[r] + logf(total[r]);
    }
}

/* ---- Backward for d_q, and delta for the other kernel ---- */

template <int D>
static __global__ void __launch_bounds__(THREADS, 2)
    d_q_kernel(struct wk_attention_job j, struct wk_attention_in<float> in, float *d_q)
{
    typedef shape<D> S;
    struct room_of<D> *room = (struct room_of<D> *)wk_shared();
    int query = (int)blockIdx.x * S::M, out_stride = j.heads * j.size;

    if ((int)blockIdx.z == j.p.sequences) {
        wk_clear_fill<float, THREADS>(j, d_q, j.d_stride);
        return;
    }
    struct wk_head h = wk_head_of(j);
    float sum[S::R][S::V][4] = {}, lse[S::R], delta[S::R], factor[S::R];

    if (query >= h.queries)
        return;
    load<D, S::M>(room->own[0], j, h, in.q, j.stride, query, h.queries);
    load<D, S::M>(room->own[1], j, h, in.d_out, out_stride, query, h.queries);
#pragma unroll
    for (int r = 0; r < S::R; r++) {
        int row = query + place_y() * S::R + r;
        size_t at = (size_t)(h.first + row) * j.heads + h.index;
        float part = 0;

        for (int col = place_x(); row < h.queries && col < j.size; col += SIDE)
            part += in.out[wk_head_at(j, h, row, out_stride) + col] *
                    in.d_out[wk_head_at(j, h, row, out_stride) + col];
        delta[r] = row_sum(part);
        lse[r] = row < h.queries ? in.lse[at] : INFINITY;
        factor[r] = j.scale;
        if (row < h.queries && place_x() == 0)
            j.delta[at] = delta[r];
    }
    for (int key = 0; key < h.keys; key += S::N) {
        float s[S::R][S::C], d_p[S::R][S::C];

        load<D, S::N>(room->stream[0], j, h, in.k, j.stride, key, h.keys);
        load<D, S::N>(room->stream[1], j, h, in.v, j.stride, key, h.keys);
        if (j.drop.limit)
            wk_mask_read<S::M, S::N, THREADS>(room->mask, j, h, query, key);
        arrive();
        scores<D>(s, room->own[0], room->stream[0]);
        scores<D>(d_p, room->own[1], room->stream[1]);
#pragma unroll
        for (int r = 0; r < S::R; r++)
#pragma unroll
            for (int c = 0; c < S::C; c++) {
                int row = place_y() * S::R + r, col = place_x() + c * SIDE;
                float p = key + col < h.keys ? expf(s[r][c] * j.scale - lse[r]) : 0.0f;

                s[r][c] = p * (d_p[r][c] * factor_at(j, room->mask, row, col, S::N) - delta[r]);
            }
        keep_scores<D>(room->p, s);
        __syncthreads();
        weigh<D>(sum, room->p, room->stream[0]);
        __syncthreads();
    }
    finish();
    store_rows<D>(j, d_q + wk_head_at(j, h, query, j.d_stride), j.d_stride, sum, factor,
                  h.queries - query);
}

/* ---- Backward for d_k and d_v: rows are keys, columns queries ---- */

template <int D>
static __global__ void __launch_bounds__(THREADS, 2)
    d_kv_kernel(struct wk_attention_job j, struct wk_attention_in<float> in, float *d_k, float *d_v)
{
    typedef shape<D> S;
    struct room_of<D> *room = (struct room_of<D> *)wk_shared();
    int key = (int)blockIdx.x * S::M, out_stride = j.heads * j.size;

    if ((int)blockIdx.z == j.p.sequences) {
        wk_clear_fill<float, THREADS>(j, d_k, j.d_stride);
        wk_clear_fill<float, THREADS>(j, d_v, j.d_stride);
        return;
    }
    struct wk_head h = wk_head_of(j);
    int queries = key < h.keys ? h.queries : 0;
    float sum_k[S::R][S::V][4] = {}, sum_v[S::R][S::V][4] = {}, factor[S::R];

    if (key >= h.queries)
        return;
    load<D, S::M>(room->own[0], j, h, in.k, j.stride, key, h.keys);
    load<D, S::M>(room->own[1], j, h, in.v, j.stride, key, h.keys);
    for (int query = 0; query < queries; query += S::N) {
        int mine = query + (int)threadIdx.x;
        float s[S::R][S::C], d_p[S::R][S::C];

        load<D, S::N>(room->stream[0], j, h, in.q, j.stride, query, h.queries);
        load<D, S::N>(room->stream[1], j, h, in.d_out, out_stride, query, h.queries);
        if (threadIdx.x < S::N) {
            size_t at = (size_t)(h.first + mine) * j.heads + h.index;

            room->lse[threadIdx.x] = mine < h.queries ? in.lse[at] : INFINITY;
            room->delta[threadIdx.x] = mine < h.queries ? j.delta[at] : 0.0f;
        }
        if (j.drop.limit)
            wk_mask_read<S::N, S::M, THREADS>(room->mask, j, h, query, key);
        arrive();
        scores<D>(s, room->own[0], room->stream[0]);
        scores<D>(d_p, room->own[1], room->stream[1]);
#pragma unroll
        for (int r = 0; r < S::R; r++)
#pragma unroll
            for (int c = 0; c < S::C; c++) {
                int row = place_y() * S::R + r, col = place_x() + c * SIDE;
                float p = expf(s[r][c] * j.scale - room->lse[col]);
                float keep = factor_at(j, room->mask, col, row, S::M);

                d_p[r][c] = p * (d_p[r][c] * keep - room->delta[col]);
                s[r][c] = p * keep;
            }
        keep_scores<D>(room->p, s);
        __syncthreads();
        weigh<D>(sum_v, room->p, room->stream[1]);
        __syncthreads();
        keep_scores<D>(room->p, d_p);
        __syncthreads();
        weigh<D>(sum_k, room->p, room->stream[0]);
        __syncthreads();
    }
    finish();
#pragma unroll
    for (int r = 0; r < S::R; r++)
        factor[r] = key + place_y() * S::R + r < h.keys ? 1.0f : 0.0f;
    store_rows<D>(j, d_v + wk_head_at(j, h, key, j.d_stride), j.d_stride, sum_v, factor,
                  h.queries - key);
#pragma unroll
    for (int r = 0; r < S::R; r++)
        factor[r] *= j.scale;
    store_rows<D>(j, d_k + wk_head_at(j, h, key, j.d_stride), j.d_stride, sum_k, factor,
                  h.queries - key);
}

/* ---- Launching ---- */

template <int D> static dim3 grid_of(const struct wk_attention_job &j)
{
    return dim3(wk_blocks((size_t)j.p.longest, (size_t)shape<D>::M), (unsigned)j.heads,
                (unsigned)j.p.sequences + 1);
}

template <int D>
static int forward(wk_stream s, const struct wk_attention_job &j,
                   const struct wk_attention_in<float> &in, float *out, float *lse)
{
    return wk_launch(forward_kernel<D>, grid_of<D>(j), THREADS, sizeof(struct room_of<D>), s, j, in,
                     out, lse);
}

template <>
int wk_attention_forward<float>(wk_stream s, const struct wk_attention_job &j,
                                const struct wk_attention_in<float> &in, float *out, float *lse)
{
    return (j.size <= 64 ? forward<64> : forward<128>)(s, j, in, out, lse);
}

template <int D>
static int backward(wk_stream s, const struct wk_attention_job &j,
                    const struct wk_attention_in<float> &in, float *d_q, float *d_k, float *d_v)
{
    int rc =
        wk_launch(d_q_kernel<D>, grid_of<D>(j), THREADS, sizeof(struct room_of<D>), s, j, in, d_q);

    if (rc != cudaSuccess)
        return rc;
    return wk_launch(d_kv_kernel<D>, grid_of<D>(j), THREADS, sizeof(struct room_of<D>), s, j, in,
                     d_k, d_v);
}

template <>
int wk_attention_backward<float>(wk_stream s, const struct wk_attention_job &j,
                                 const struct wk_attention_in<float> &in, float *d_q, float *d_k,
                                 float *d_v)
{
    return (j.size <= 64 ? backward<64> : backward<128>)(s, j, in, d_q, d_k, d_v);
}
