/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over rows in two stages and in an order that never changes: blocks leave partial sums, one row of `cols` floats each, and a
 * second kernel adds them up. No atomics. */
#ifndef WK_BACKENDS_CUDA_REDUCE_CUH
#define WK_BACKENDS_CUDA_REDUCE_CUH

#include "backends/cuda/device.cuh"

#define WK_TOTAL_LANES 8
#define WK_TARGETS 4

/* Where the columns of partial sums go: those before end[0] are added to to[0], those from there before end[1] to to[1], ... */
struct wk_targets {
    float *to[WK_TARGETS];
    int end[WK_TARGETS];

    __device__ void operator()(int col, float sum) const
    {
        float *target = to[0];
        int begin = 0;

#pragma unroll
        for (int i = 1; i < WK_TARGETS;
             i++) /* a place that is known, or the arrays move to memory */
            if (to[i] && col >= end[i - 1]) {
                target = to[i];
                begin = end[i - 1];
            }
        target[col - begin] += sum;
    }
};

/* add(col, sum of partial[p][col] over p): a block takes 32 columns, its 8 warps every eighth part. */
template <typename A>
static __global__ void __launch_bounds__(WK_TOTAL_LANES *WK_WARP)
    wk_total_kernel(A add, const float *partial, int parts, int cols)
{
    __shared__ float sums[WK_TOTAL_LANES][WK_WARP];
    int lane = (int)threadIdx.x % WK_WARP, warp = (int)threadIdx.x / WK_WARP;
    int col = (int)blockIdx.x * WK_WARP + lane;
    float sum = 0;

    if (col < cols) {
#pragma unroll 4
        for (int p = warp; p < parts; p += WK_TOTAL_LANES)
            sum += partial[(size_t)p * cols + col];
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && col < cols) {
        for (int w = 1; w < WK_TOTAL_LANES; w++)
            sum += sums[w][lane];
        add(col, sum);
    }
}

template <typename A>
static inline int wk_total(wk_stream s, const A &add, const float *partial, int parts, int cols)
{
    return wk_launch(wk_total_kernel<A>, dim3(wk_blocks((size_t)cols, WK_WARP)),
                     WK_TOTAL_LANES * WK_WARP, 0, s, add, partial, parts, cols);
}

static inline size_t wk_round256(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

#endif
