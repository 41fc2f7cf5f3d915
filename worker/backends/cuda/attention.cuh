/* SPDX-License-Identifier: Apache-2.0 */
/* What the attention kernels share. Rows of q, k and v are tokens, a head's values of a row lie together. A block works on a tile of
 * rows of one head of one sequence, grid (tiles, heads, sequences + 1); the last plane of blocks clears the rows behind the last
 * sequence. Twin: backends/cpu/attention.c.
 *
 * Scores are never stored: forward keeps a running maximum and sum of each row, backward makes probabilities again from the logarithm
 * of that sum. With p = softmax(s), s = scale q k', and keep = 0 or 1 / (1 - drop) for each element:
 *   out = (keep p) v,  d_v = (keep p)' d_out,  d_p = keep (d_out v'),  delta = sum(d_out out) of a row,
 *   d_s = p (d_p - delta),  d_q = scale d_s k,  d_k = scale d_s' q
 * One kernel owns rows of queries and makes d_q, another owns keys and makes d_k and d_v: every sum has one owner and one order.
 * That costs two products more than adding up d_q with atomics, and no scratch for it. */
#ifndef WK_BACKENDS_CUDA_ATTENTION_CUH
#define WK_BACKENDS_CUDA_ATTENTION_CUH

#include "backends/cuda/device.cuh"

#define WK_KEY_TILE 64 /* keys of a mask's tile */

struct wk_attention_job {
    struct wk_cuda_packing p;
    int heads, size, stride, d_stride;
    float scale;
    struct wk_drop drop; /* limit 0: none */
    struct wk_draw draw;
    bool wide; /* rows can be read 16 bytes at a time */
    /* (heads, rows, eights): eight keys' keep bits a byte, which forward makes and backward reads; NULL where there is no backward. */
    uint8_t *mask;
    int eights;   /* bytes of a row: a multiple of 8 */
    float *delta; /* (rows, heads), from d_q's kernel to that of d_k */
};

/* One head of one sequence. */
struct wk_head {
    int first, queries, keys; /* first row; rows; those that are tokens */
    int index;                /* which head */
    uint32_t sample;
};

static __device__ __forceinline__ struct wk_head wk_head_of(const struct wk_attention_job &j)
{
    int s = (int)blockIdx.z;
    struct wk_head h;

    h.first = j.p.first[s];
    h.queries = j.p.first[s + 1] - h.first;
    h.keys = j.p.tokens[s];
    h.index = (int)blockIdx.y;
    h.sample = (uint32_t)j.p.sample[s];
    return h;
}

/* Where a head's values of a row begin. */
static __device__ __forceinline__ size_t wk_head_at(const struct wk_attention_job &j,
                                                    const struct wk_head &h, int row, int stride)
{
    return (size_t)(h.first + row) * stride + (size_t)h.index * j.size;
}

/* ---- Tiles: rows of D elements, LD apart in shared memory, zeros beyond `valid` rows and `size` columns ---- */

template <typename T> static __device__ constexpr int wk_chunk()
{
    return 16 / (int)sizeof(T);
}

template <typename T, int D> static __device__ constexpr int wk_ld()
{
    return D + wk_chunk<T>(); /* neighbouring rows begin in other banks */
}

/* Starts copies; they belong to the group that is committed next. A thread keeps its column and goes down the rows. */
template <typename T, int D, int ROWS, int THREADS>
static __device__ __forceinline__ void wk_load_rows(T *to, const T *from, int stride, int valid,
                                                    int size, bool wide)
{
    const int chunk = wk_chunk<T>(), chunks = D / chunk, ld = wk_ld<T, D>();
    const int step = THREADS / chunks;
    int row = (int)threadIdx.x / chunks, col = (int)threadIdx.x % chunks * chunk;
    const T *at = from + (size_t)row * stride + col;

    if (col >= size)
        valid = 0;
    to += row * ld + col;
    if (wide) {
#pragma unroll
        for (int i = 0; i < ROWS / step; i++, at += (size_t)step * stride)
            wk_copy16(to + i * step * ld, row + i * step < valid ? at : from,
                      row + i * step < valid);
        return;
    }
#pragma unroll 1
    for (int i = 0; i < ROWS / step; i++, at += (size_t)step * stride)
#pragma unroll 1
        for (int k = 0; k < chunk; k++)
            to[i * step * ld + k] =
                row + i * step < valid && col + k < size ? at[k] : wk_from_float<T>(0);
}

/* Rows [first, end) of a head become zeros. */
template <typename T, int THREADS>
static __device__ __forceinline__ void wk_clear_rows(T *at, int stride, int first, int end,
                                                     int size)
{
    for (int i = (int)threadIdx.x; i < (end - first) * size; i += THREADS)
        at[(size_t)(first + i / size) * stride + i % size] = wk_from_float<T>(0);
}

/* For blocks behind the last sequence: this block's share of the rows that fill up. */
template <typename T, int THREADS>
static __device__ __forceinline__ void wk_clear_fill(const struct wk_attention_job &j, T *at,
                                                     int stride)
{
    int first = j.p.first[j.p.sequences], rows = j.p.rows - first;
    int share = (rows + (int)gridDim.x - 1) / (int)gridDim.x, begin = share * (int)blockIdx.x;
    int end = begin + share < rows ? begin + share : rows;

    if (begin < end)
        wk_clear_rows<T, THREADS>(at + (size_t)first * stride + (size_t)blockIdx.y * j.size, stride,
                                  begin, end, j.size);
}

/* Where the mask of a query begins. */
static __device__ __forceinline__ uint8_t *wk_mask_at(const struct wk_attention_job &j,
                                                      const struct wk_head &h, int query)
{
    return j.mask + ((size_t)h.index * j.p.rows + h.first + query) * j.eights;
}

/* ---- Dropout: keep bits of ROWS queries and KEYS keys, a byte for eight keys. An element's counter counts a query's keys in eights, as
 * many as a sequence can ever need. ---- */

/* A thread keeps its eight keys and goes down the rows. STORE: also into j.mask, if there is one. */
template <int ROWS, int KEYS, int THREADS, bool STORE>
static __device__ __forceinline__ void wk_mask_tile(uint8_t *to, const struct wk_attention_job &j,
                                                    const struct wk_head &h, int query, int key)
{
    const int eights = KEYS / 8, step = THREADS / eights, turns = step < ROWS ? ROWS / step : 1;
    uint32_t site = j.draw.site + (uint32_t)h.index, drawn = wk_step_of(j.draw);
    int eight = (int)threadIdx.x % eights, first = (int)threadIdx.x / eights;

    if (first >= ROWS) /* more threads than eights */
        return;
#pragma unroll 4
    for (int i = 0; i < turns; i++) {
        int row = first + i * step;
        uint32_t bits[4], byte = 0;

        wk_numbers(bits, j.draw, (uint32_t)(query + row) << 13 | (uint32_t)(key / 8 + eight), site,
                   h.sample, drawn);
#pragma unroll
        for (int k = 0; k < 8; k++)
            byte |= (uint32_t)wk_kept(bits, k, j.drop) << k;
        to[row * eights + eight] = (uint8_t)byte;
        if (STORE && j.mask && query + row < h.queries)
            wk_mask_at(j, h, query + row)[key / 8 + eight] = (uint8_t)byte;
    }
}

/* The same from what forward left. */
template <int ROWS, int KEYS, int THREADS>
static __device__ __forceinline__ void wk_mask_read(uint8_t *to, const struct wk_attention_job &j,
                                                    const struct wk_head &h, int query, int key)
{
    const int pairs = ROWS * (KEYS / 16), turns = pairs > THREADS ? pairs / THREADS : 1;

    if (pairs < THREADS && (int)threadIdx.x >= pairs)
        return;
#pragma unroll
    for (int turn = 0; turn < turns; turn++) {
        int i = turn * THREADS + (int)threadIdx.x;
        int row = i / (KEYS / 16), part = i % (KEYS / 16);
        uint16_t pair = 0;

        if (query + row < h.queries)
            pair = *(const uint16_t *)(wk_mask_at(j, h, query + row) + key / 8 + 2 * part);
        ((uint16_t *)to)[i] = pair;
    }
}

/* ---- The two families: tensor cores for 16-bit types, plain arithmetic for float. 0 or a cudaError_t. ---- */

template <typename T> struct wk_attention_in {
    const T *q, *k, *v, *out, *d_out;
    const float *lse;
};

template <typename T>
int wk_attention_forward(wk_stream s, const struct wk_attention_job &j,
                         const struct wk_attention_in<T> &in, T *out, float *lse);
template <typename T>
int wk_attention_backward(wk_stream s, const struct wk_attention_job &j,
                          const struct wk_attention_in<T> &in, T *d_q, T *d_k, T *d_v);

#endif
