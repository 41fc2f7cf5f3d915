/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels are written with: launching, types and their conversions, 16-byte accesses, reductions, dropout's numbers, and
 * the instructions that have no name in CUDA C++ (asynchronous copies, matrix fragments), which are PTX here.
 *
 * The same sources compile with g++ where there is no nvcc: emulator.h (tests/gpu/emulator) then is the device language. */
#ifndef WK_BACKENDS_CUDA_DEVICE_CUH
#define WK_BACKENDS_CUDA_DEVICE_CUH

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#else
#include <emulator.h>
#endif

#include "backends/cuda/kernels.h"
#include "backends/rng.h"

typedef __nv_bfloat16 wk_bf16;
typedef __half wk_f16;

/* A float rounded to tf32, as GEMMs read it: 8 bits of exponent, 10 of fraction. */
struct wk_tf32 {
    float x;
};

#define WK_WARP 32
#define WK_ALL_LANES 0xffffffffu

/* ---- Launching ---- */

#ifdef __CUDACC__
template <typename... P, typename... A>
static inline int wk_launch(void (*kernel)(P...), dim3 grid, unsigned threads, size_t shared,
                            wk_stream s, A... args)
{
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return cudaSuccess;
    if (shared > 48 * 1024) { /* more than that must be asked for */
        cudaError_t e = cudaFuncSetAttribute(
            (const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);

        if (e != cudaSuccess)
            return e;
    }
    kernel<<<grid, threads, shared, s>>>(P(args)...);
    return cudaGetLastError();
}

/* The block's dynamic shared memory. */
static __device__ __forceinline__ unsigned char *wk_shared()
{
    extern __shared__ __align__(16) unsigned char wk_shared_bytes[];

    return wk_shared_bytes;
}
#else
template <typename... P, typename... A>
static inline int wk_launch(void (*kernel)(P...), dim3 grid, unsigned threads, size_t shared,
                            wk_stream s, A... args)
{
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return cudaSuccess;
    return emu_launch(s, grid, dim3(threads), shared, [=] { kernel(P(args)...); });
}

static inline unsigned char *wk_shared()
{
    return emu.shared;
}
#endif

static inline unsigned wk_blocks(size_t n, size_t each)
{
    return (unsigned)((n + each - 1) / each);
}

/* Call f with a value of the type that t names; anything else is refused. */
template <typename F> static inline int wk_with_type(enum wk_cuda_type t, F f)
{
    switch (t) {
    case WK_CUDA_F32:
        return f(float());
    case WK_CUDA_BF16:
        return f(wk_bf16());
    case WK_CUDA_F16:
        return f(wk_f16());
    }
    return cudaErrorInvalidValue;
}

/* Activations of type t beside weights of type w, which are float or t. */
template <typename F> static inline int wk_with_types(enum wk_cuda_type t, enum wk_cuda_type w, F f)
{
    if (w != t && w != WK_CUDA_F32)
        return cudaErrorInvalidValue;
    return wk_with_type(t, [&](auto a) {
        if (w == WK_CUDA_F32)
            return f(a, float());
        return f(a, a);
    });
}

/* A number that is known when a kernel is compiled. */
template <int N> struct wk_constant {
    static const int value = N;
};

/* ---- Numbers ---- */

static __device__ __forceinline__ float wk_to_float(float x)
{
    return x;
}

static __device__ __forceinline__ float wk_to_float(wk_bf16 x)
{
    return __bfloat162float(x);
}

static __device__ __forceinline__ float wk_to_float(wk_f16 x)
{
    return __half2float(x);
}

static __device__ __forceinline__ float wk_to_float(wk_tf32 x)
{
    return x.x;
}

template <typename T> static __device__ __forceinline__ T wk_from_float(float x);

template <> __device__ __forceinline__ wk_tf32 wk_from_float<wk_tf32>(float x)
{
    return wk_tf32{ x };
}

template <> __device__ __forceinline__ float wk_from_float<float>(float x)
{
    return x;
}

template <> __device__ __forceinline__ wk_bf16 wk_from_float<wk_bf16>(float x)
{
    return __float2bfloat16_rn(x);
}

template <> __device__ __forceinline__ wk_f16 wk_from_float<wk_f16>(float x)
{
    return __float2half_rn(x);
}

/* Two numbers in a register, the first in its low half. */
template <typename T> static __device__ __forceinline__ uint32_t wk_pack2(float low, float high);

template <typename T> static __device__ __forceinline__ float2 wk_unpack2(uint32_t pair);

#ifdef __CUDACC__
template <> __device__ __forceinline__ uint32_t wk_pack2<wk_bf16>(float low, float high)
{
    __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);

    return *(uint32_t *)&pair;
}

template <> __device__ __forceinline__ uint32_t wk_pack2<wk_f16>(float low, float high)
{
    __half2 pair = __floats2half2_rn(low, high);

    return *(uint32_t *)&pair;
}

template <> __device__ __forceinline__ float2 wk_unpack2<wk_f16>(uint32_t pair)
{
    return __half22float2(*(__half2 *)&pair);
}
#else
template <> inline uint32_t wk_pack2<wk_bf16>(float low, float high)
{
    return __float2bfloat16_rn(low).bits | (uint32_t)__float2bfloat16_rn(high).bits << 16;
}

template <> inline uint32_t wk_pack2<wk_f16>(float low, float high)
{
    return __float2half_rn(low).bits | (uint32_t)__float2half_rn(high).bits << 16;
}

template <> inline float2 wk_unpack2<wk_f16>(uint32_t pair)
{
    return make_float2(__half2float(__half{ (uint16_t)pair }),
                       __half2float(__half{ (uint16_t)(pair >> 16) }));
}
#endif

template <> __device__ __forceinline__ float2 wk_unpack2<wk_bf16>(uint32_t pair)
{
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}

/* Eight numbers: 16 bytes of the short types, two times that of float. p is aligned to 16. As they are in memory they take half the registers
 * of their values, if they are short. */
template <typename T> struct wk_eight {
    uint32_t word[2 * sizeof(T)];
};

template <typename T> static __device__ __forceinline__ wk_eight<T> wk_fetch8(const T *p)
{
    wk_eight<T> e;

#pragma unroll
    for (int i = 0; i < (int)sizeof(T) / 2; i++) {
        uint4 raw = ((const uint4 *)p)[i];

        e.word[4 * i] = raw.x;
        e.word[4 * i + 1] = raw.y;
        e.word[4 * i + 2] = raw.z;
        e.word[4 * i + 3] = raw.w;
    }
    return e;
}

template <typename T>
static __device__ __forceinline__ void wk_values8(float v[8], const wk_eight<T> &e)
{
    if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = __uint_as_float(e.word[i]);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float2 pair = wk_unpack2<T>(e.word[i]);

            v[2 * i] = pair.x;
            v[2 * i + 1] = pair.y;
        }
    }
}

template <typename T> static __device__ __forceinline__ void wk_load8(float v[8], const T *p)
{
    wk_values8(v, wk_fetch8(p));
}

template <typename T> static __device__ __forceinline__ void wk_store8(T *p, const float v[8])
{
    *(uint4 *)p = make_uint4(wk_pack2<T>(v[0], v[1]), wk_pack2<T>(v[2], v[3]),
                             wk_pack2<T>(v[4], v[5]), wk_pack2<T>(v[6], v[7]));
}

template <> __device__ __forceinline__ void wk_store8<float>(float *p, const float v[8])
{
    ((float4 *)p)[0] = make_float4(v[0], v[1], v[2], v[3]);
    ((float4 *)p)[1] = make_float4(v[4], v[5], v[6], v[7]);
}

/* The same for the first n of eight; `wide` says that 16-byte accesses are allowed. What is missing reads as 0. */
template <typename T>
static __device__ __forceinline__ void wk_load_part(float v[8], const T *p, int n, bool wide)
{
    if (wide && n == 8) {
        wk_load8(v, p);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        v[i] = i < n ? wk_to_float(p[i]) : 0.0f;
}

template <typename T>
static __device__ __forceinline__ void wk_store_part(T *p, const float v[8], int n, bool wide)
{
    if (wide && n == 8) {
        wk_store8(p, v);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < n)
            p[i] = wk_from_float<T>(v[i]);
}

/* May the rows of these tensors (NULL: none) be read 16 bytes at a time, `cols` elements apart? */
static inline bool wk_wide(int cols, const void *a, const void *b = NULL, const void *c = NULL,
                           const void *d = NULL, const void *e = NULL)
{
    return cols % 8 == 0 &&
           (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d | (uintptr_t)e) & 15) == 0;
}

/* The same of flat buffers of n elements. */
static inline bool wk_wide_flat(size_t n, const void *a, const void *b = NULL, const void *c = NULL,
                                const void *d = NULL, const void *e = NULL)
{
    bool wide = wk_wide(8, a, b, c, d, e);

    (void)n;
#ifndef __CUDACC__
    emu_flat_launches[wide] += n >= 8;
#endif
    return wide;
}

#define WK_LOG2_E 1.44269504088896340736f

/* 2^x and 1 / x in one instruction each, within 2 units of the last place; what is below the least normal float becomes 0, which exp2f
 * takes three more to prevent. */
static __device__ __forceinline__ float wk_exp2(float x)
{
#ifdef __CUDACC__
    float y;

    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    float y = exp2f(x);

    return y < 0x1p-126f ? 0.0f : y;
#endif
}

static __device__ __forceinline__ float wk_reciprocal(float x)
{
#ifdef __CUDACC__
    float y;

    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1 / x;
#endif
}

/* ---- Reductions; every thread gets the result, and the order never changes ---- */

static __device__ __forceinline__ float wk_warp_sum(float x)
{
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x += __shfl_xor_sync(WK_ALL_LANES, x, lanes);
    return x;
}

static __device__ __forceinline__ double wk_warp_sum(double x)
{
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x += __shfl_xor_sync(WK_ALL_LANES, x, lanes);
    return x;
}

static __device__ __forceinline__ float wk_warp_max(float x)
{
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        float y = __shfl_xor_sync(WK_ALL_LANES, x, lanes);

        x = y > x || y != y ? y : x; /* a NaN stays */
    }
    return x;
}

/* Over a block of up to 1024 threads; `room` is shared memory for 32 values. All threads must call. */
template <typename V> static __device__ __forceinline__ V wk_block_sum(V x, V *room)
{
    unsigned lane = threadIdx.x % WK_WARP, warp = threadIdx.x / WK_WARP;
    unsigned warps = blockDim.x / WK_WARP;

    x = wk_warp_sum(x);
    __syncthreads(); /* an earlier call's readers are done */
    if (lane == 0)
        room[warp] = x;
    __syncthreads();
    return wk_warp_sum(lane < warps ? room[lane] : V(0));
}

static __device__ __forceinline__ float wk_block_max(float x, float *room)
{
    unsigned lane = threadIdx.x % WK_WARP, warp = threadIdx.x / WK_WARP;
    unsigned warps = blockDim.x / WK_WARP;

    x = wk_warp_max(x);
    __syncthreads();
    if (lane == 0)
        room[warp] = x;
    __syncthreads();
    return wk_warp_max(room[lane < warps ? lane : 0]);
}

/* ---- Dropout: the numbers of backends/rng.h ---- */

#define WK_ROUNDS 10

/* What a kernel draws with. The rounds' keys are made by the host: among a kernel's arguments an instruction can take them from where they
 * are, while a sum for each costs as much as the rest of a round. */
struct wk_draw {
    uint32_t rounds[WK_ROUNDS][2], site;
    const uint32_t *step;
};

static inline struct wk_draw wk_draw_of(const struct wk_cuda_rng &rng)
{
    struct wk_draw d;

    for (uint32_t i = 0; i < WK_ROUNDS; i++) {
        d.rounds[i][0] = (uint32_t)rng.seed + i * 0x9e3779b9u;
        d.rounds[i][1] = (uint32_t)(rng.seed >> 32) + i * 0xbb67ae85u;
    }
    d.site = rng.site;
    d.step = rng.step;
    return d;
}

static __device__ __forceinline__ uint32_t wk_step_of(const struct wk_draw &d)
{
    return d.step ? *d.step : 0;
}

/* wk_philox on the device: number k of counter (c0, site, sample, step). d must be an argument of the kernel. */

static __device__ __forceinline__ void wk_numbers(uint32_t out[4], const struct wk_draw &d,
                                                  uint32_t counter, uint32_t site, uint32_t sample,
                                                  uint32_t step)
{
    uint32_t c0 = counter, c1 = site, c2 = sample, c3 = step;

#pragma unroll
    for (int round = 0; round < WK_ROUNDS; round++) {
        uint64_t a = (uint64_t)0xd2511f53u * c0, b = (uint64_t)0xcd9e8d57u * c2;

        c0 = (uint32_t)(b >> 32) ^ c1 ^ d.rounds[round][0];
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ d.rounds[round][1];
        c3 = (uint32_t)a;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* limit: wk_drop_limit, in the upper half; what stays is multiplied with factor. */
struct wk_drop {
    uint32_t limit;
    float factor;
};

static inline struct wk_drop wk_drop_of(double p)
{
    return wk_drop{ wk_drop_limit(p) << (32 - WK_DROP_BITS), (float)(1 / (1 - p)) };
}

/* Is element i of a counter's eight kept? Registers have no index, so its word is selected; of an odd one the lower half decides nothing. */
static __device__ __forceinline__ bool wk_kept(const uint32_t bits[4], int i,
                                               const struct wk_drop &drop)
{
    uint32_t low = i & 2 ? bits[1] : bits[0], high = i & 2 ? bits[3] : bits[2];
    uint32_t word = i & 4 ? high : low;

    return (i % 2 ? word : word << 16) >= drop.limit;
}

/* Factors of a counter's eight elements. */
static __device__ __forceinline__ void wk_mask8(float mask[8], const struct wk_draw &d,
                                                const struct wk_drop &drop, uint32_t counter,
                                                uint32_t sample, uint32_t step)
{
    uint32_t bits[4];

    wk_numbers(bits, d, counter, d.site, sample, step);
#pragma unroll
    for (int i = 0; i < 8; i++)
        mask[i] = wk_kept(bits, i, drop) ? drop.factor : 0.0f;
}

/* ---- Rows of a packing; those behind the last sequence count as position 0 of sample 0 ---- */

static __device__ __forceinline__ int wk_position_of(const struct wk_cuda_packing &p, int row)
{
    int s = p.sequence[row];

    return s < 0 ? 0 : row - p.first[s];
}

static __device__ __forceinline__ uint32_t wk_sample_of(const struct wk_cuda_packing &p, int row)
{
    int s = p.sequence[row];

    return s < 0 ? 0 : (uint32_t)p.sample[s];
}

/* ---- Instructions ---- */

/* 16 bytes from global to shared memory, or zeros when !valid; visible to this thread after wk_copy_wait, to others after a barrier
 * behind that. Where there is no cp.async (sm_75) it is a plain copy. */
static __device__ __forceinline__ void wk_copy16(void *to, const void *from, bool valid)
{
#if !defined(__CUDACC__)
    emu_copy_async(to, from, 16, valid ? 16 : 0);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    int bytes = valid ? 16 : 0;

    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes)
                 : "memory");
#else
    *(uint4 *)to = valid ? *(const uint4 *)from : make_uint4(0, 0, 0, 0);
#endif
}

/* Everything since the last commit is one group. */
static __device__ __forceinline__ void wk_copy_commit()
{
#if !defined(__CUDACC__)
    emu_copy_commit();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Wait until at most GROUPS of this thread's groups are on their way. */
template <int GROUPS> static __device__ __forceinline__ void wk_copy_wait()
{
#if !defined(__CUDACC__)
    emu_copy_wait(GROUPS);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
#endif
}

/* Four 8 x 8 matrices of two-byte elements from shared memory: lane 8 m + r gives the address of row r of matrix m. Register m of
 * lane 4 g + t then is row g, columns 2t and 2t + 1 of matrix m; with TRANSPOSED rows 2t and 2t + 1 of column g. */
template <bool TRANSPOSED>
static __device__ __forceinline__ void wk_load_matrices(uint32_t r[4], const void *row)
{
#ifndef __CUDACC__
    emu_ldmatrix(r, row, TRANSPOSED);
#else
    uint32_t at = (uint32_t)__cvta_generic_to_shared(row);

    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
#endif
}

/* d (16, 8) += a (16, 16) b (16, 8) over a warp, in float. With lane 4 g + t: a[0] is (row g, k 2t and 2t + 1), a[1] row g + 8, a[2]
 * and a[3] the same with k + 8; b[0] is (k 2t and 2t + 1, col g), b[1] k + 8; d[0], d[1] are (row g, col 2t and 2t + 1), d[2], d[3] of
 * row g + 8. On sm_75 these are two products of depth 8, and bf16 does not exist (the backend refuses it there). */
static __device__ __forceinline__ void wk_multiply(float d[4], const uint32_t a[4],
                                                   const uint32_t b[2], wk_f16)
{
#if !defined(__CUDACC__)
#ifdef WK_EMULATE_SM75
    emu_mma<wk_f16>(d, a, b, 8);
    emu_mma<wk_f16>(d, a + 2, b + 1, 8);
#else
    emu_mma<wk_f16>(d, a, b, 16);
#endif
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
    for (int half = 0; half < 2; half++)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, "
                     "{%6}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
#endif
}

static __device__ __forceinline__ void wk_multiply(float d[4], const uint32_t a[4],
                                                   const uint32_t b[2], wk_bf16)
{
#if !defined(__CUDACC__)
    emu_mma<wk_bf16>(d, a, b, 16);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    (void)a;
    (void)b;
    d[0] = d[1] = d[2] = d[3] = __uint_as_float(0x7fc00000u);
#endif
}

/* Rounded to tf32, to nearest. */
static __device__ __forceinline__ uint32_t wk_round_tf32(float x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint32_t bits;

    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
#else
    return __float_as_uint(x) + 0x1000u; /* what is below the 10 bits does not count */
#endif
}

/* d (16, 8) += a (16, 8) b (8, 8): a[0] is (row g, k t), a[1] row g + 8, a[2] and a[3] the same with k + 4; b[0] is (k t, col g), b[1]
 * k + 4. Not on sm_75 (the backend refuses tf32 there). */
static __device__ __forceinline__ void wk_multiply(float d[4], const uint32_t a[4],
                                                   const uint32_t b[2], wk_tf32)
{
#if !defined(__CUDACC__)
    emu_mma_tf32(d, a, b);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    (void)a;
    (void)b;
    d[0] = d[1] = d[2] = d[3] = __uint_as_float(0x7fc00000u);
#endif
}

#endif
