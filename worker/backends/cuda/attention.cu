/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in bf16, fp16 and tf32 on tensor cores; attention.cuh says what is computed, attention_f32.cu does it in float.
 *
 * A block is four warps and owns 64 rows, a warp 16 of them: queries in forward and for d_q, keys for d_k and d_v. The other side
 * streams through shared memory, loaded ahead by asynchronous copies. The owned side's factors stay in registers as fragments, and
 * the products' results come out in the layout that the next product wants as its left factor, so that probabilities never leave
 * registers. D is the head size rounded up to 64 or 128. */
#include "backends/cuda/attention.cuh"

#define THREADS 128
#define WARP_ROWS 16
#define OWN 64 /* rows of a block */

/* ---- Fragments. Lane 4 g + t of a warp. A product adds up DEPTH columns: 16 of the short types, 8 in tf32. ---- */

template <typename T> static __device__ constexpr int depth()
{
    return sizeof(T) == 2 ? 16 : 8;
}

/* What was loaded, as products want it. */
template <typename T> static __device__ __forceinline__ void round_loaded(uint32_t r[4])
{
    (void)r;
}

template <> __device__ __forceinline__ void round_loaded<wk_tf32>(uint32_t r[4])
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        r[i] = wk_round_tf32(__uint_as_float(r[i]));
}

/* Left factor: 16 rows and DEPTH columns of a tile from (row, col) on. A matrix is 8 rows of 16 bytes, in tf32 four columns: a lane gets
 * one of them. */
template <typename T>
static __device__ __forceinline__ void load_left(uint32_t a[4], const T *tile, int ld, int row,
                                                 int col)
{
    int lane = (int)threadIdx.x % WK_WARP, m = lane / 8, r = lane % 8;

    wk_load_matrices<false>(a, tile + (row + m % 2 * 8 + r) * ld + col + m / 2 * wk_chunk<T>());
    round_loaded<T>(a);
}

/* Right factor (k, n) = (col, row) of a tile: b[0..1] for rows from `row` on, b[2..3] for those 8 further. */
template <typename T>
static __device__ __forceinline__ void load_right(uint32_t b[4], const T *tile, int ld, int row,
                                                  int col)
{
    int lane = (int)threadIdx.x % WK_WARP, m = lane / 8, r = lane % 8;

    wk_load_matrices<false>(b, tile + (row + m / 2 * 8 + r) * ld + col + m % 2 * wk_chunk<T>());
    round_loaded<T>(b);
}

/* Right factor (k, n) = (row, col): b[0..1] for columns from `col` on, b[2..3] for those 8 further. In tf32 k counts rows 0, 2, 4, 6,
 * 1, 3, 5, 7, as left_of does: so a lane's neighbours in a result are its own columns of the next product's left factor. */
template <typename T>
static __device__ __forceinline__ void load_right_turned(uint32_t b[4], const T *tile, int ld,
                                                         int row, int col)
{
    int lane = (int)threadIdx.x % WK_WARP, m = lane / 8, r = lane % 8;

    wk_load_matrices<true>(b, tile + (row + m % 2 * 8 + r) * ld + col + m / 2 * 8);
}

static __device__ __forceinline__ void load_right_turned(uint32_t b[4], const wk_tf32 *tile, int ld,
                                                         int row, int col)
{
    int lane = (int)threadIdx.x % WK_WARP, g = lane / 4, t = lane % 4;
    const wk_tf32 *at = tile + (row + 2 * t) * ld + col + g;

    b[0] = wk_round_tf32(at[0].x);
    b[1] = wk_round_tf32(at[ld].x);
    b[2] = wk_round_tf32(at[8].x);
    b[3] = wk_round_tf32(at[ld + 8].x);
}

/* Left factor from results: columns DEPTH k and further of p. */
template <typename T>
static __device__ __forceinline__ void left_of(uint32_t a[4], const float (*p)[4], int k, T)
{
    a[0] = wk_pack2<T>(p[2 * k][0], p[2 * k][1]);
    a[1] = wk_pack2<T>(p[2 * k][2], p[2 * k][3]);
    a[2] = wk_pack2<T>(p[2 * k + 1][0], p[2 * k + 1][1]);
    a[3] = wk_pack2<T>(p[2 * k + 1][2], p[2 * k + 1][3]);
}

static __device__ __forceinline__ void left_of(uint32_t a[4], const float (*p)[4], int k, wk_tf32)
{
    a[0] = wk_round_tf32(p[k][0]);
    a[1] = wk_round_tf32(p[k][2]);
    a[2] = wk_round_tf32(p[k][1]);
    a[3] = wk_round_tf32(p[k][3]);
}

/* Two neighbours into a tile. */
template <typename T> static __device__ __forceinline__ void put_pair(T *to, float a, float b)
{
    *(uint32_t *)to = wk_pack2<T>(a, b);
}

static __device__ __forceinline__ void put_pair(wk_tf32 *to, float a, float b)
{
    *(float2 *)to = make_float2(a, b);
}

/* s (16, 8 N) = left (16, D) times rows [row, row + 8 N) of a tile, turned. */
template <typename T, int D, int N>
static __device__ __forceinline__ void scores(float s[N][4], const uint32_t left[D / depth<T>()][4],
                                              const T *tile, int row)
{
#pragma unroll
    for (int n = 0; n < N; n++)
        s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0;
#pragma unroll
    for (int k = 0; k < D / depth<T>(); k++)
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            uint32_t b[4];

            load_right(b, tile, wk_ld<T, D>(), row + 8 * n, depth<T>() * k);
            wk_multiply(s[n], left[k], b, T());
            wk_multiply(s[n + 1], left[k], b + 2, T());
        }
}

/* The same with the left factor still in shared memory. */
template <typename T, int D, int N>
static __device__ __forceinline__ void scores_of_tile(float s[N][4], const T *left, int left_row,
                                                      const T *tile, int row)
{
#pragma unroll
    for (int n = 0; n < N; n++)
        s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0;
#pragma unroll
    for (int k = 0; k < D / depth<T>(); k++) {
        uint32_t a[4];

        load_left(a, left, wk_ld<T, D>(), left_row, depth<T>() * k);
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            uint32_t b[4];

            load_right(b, tile, wk_ld<T, D>(), row + 8 * n, depth<T>() * k);
            wk_multiply(s[n], a, b, T());
            wk_multiply(s[n + 1], a, b + 2, T());
        }
    }
}

/* sum (16, D) += p (16, 8 N), which is rounded, times rows [row, row + 8 N) of a tile. */
template <typename T, int D, int N>
static __device__ __forceinline__ void weigh(float sum[D / 8][4], const float p[N][4],
                                             const T *tile, int row)
{
#pragma unroll
    for (int k = 0; k < 8 * N / depth<T>(); k++) {
        uint32_t a[4];

        left_of(a, p, k, T());
#pragma unroll
        for (int n = 0; n < D / 8; n += 2) {
            uint32_t b[4];

            load_right_turned(b, tile, wk_ld<T, D>(), row + depth<T>() * k, 8 * n);
            wk_multiply(sum[n], a, b, T());
            wk_multiply(sum[n + 1], a, b + 2, T());
        }
    }
}

/* Round a warp's 16 rows into its rows of a tile, times a factor for each of the lane's two rows, and from there into global memory.
 * No other warp touches these rows of the tile. */
template <typename T, int D>
static __device__ __forceinline__ void store_rows(const struct wk_attention_job &j, T *to,
                                                  int stride, T *tile, const float v[D / 8][4],
                                                  float low, float high, int valid)
{
    const int chunk = wk_chunk<T>(), chunks = D / chunk, ld = wk_ld<T, D>();
    int lane = (int)threadIdx.x % WK_WARP, first = (int)threadIdx.x / WK_WARP * WARP_ROWS;
    int g = lane / 4, t = lane % 4;

#pragma unroll
    for (int n = 0; n < D / 8; n++) {
        put_pair(tile + (first + g) * ld + 8 * n + 2 * t, v[n][0] * low, v[n][1] * low);
        put_pair(tile + (first + g + 8) * ld + 8 * n + 2 * t, v[n][2] * high, v[n][3] * high);
    }
    __syncwarp();
    for (int i = lane; i < WARP_ROWS * chunks; i += WK_WARP) {
        int row = first + i / chunks, col = i % chunks * chunk;

        if (row >= valid || col >= j.size)
            continue;
        if (j.wide)
            *(uint4 *)(to + (size_t)row * stride + col) = *(const uint4 *)(tile + row * ld + col);
        else
            for (int k = 0; k < chunk && col + k < j.size; k++)
                to[(size_t)row * stride + col + k] = tile[row * ld + col + k];
    }
}

/* Is element (row, col) of a tile kept? A row of the mask is WK_KEY_TILE / 8 bytes, in registers; col is n 8 + 2 t or the next. */
static __device__ __forceinline__ bool kept(const uint32_t row[2], int n, int t, int odd)
{
    return row[n / 4] >> (n % 4 * 8 + 2 * t + odd) & 1;
}

static __device__ __forceinline__ void read_mask(uint32_t row[2], const uint8_t *mask)
{
    uint2 raw = *(const uint2 *)mask;

    row[0] = raw.x;
    row[1] = raw.y;
}

/* Where this lane keeps a query's mask for backward; NULL: it does not. Of the four lanes that have a row, the first does. */
static __device__ __forceinline__ uint8_t *mask_kept_at(const struct wk_attention_job &j,
                                                        const struct wk_head &h, int query)
{
    return j.mask && threadIdx.x % 4 == 0 && query < h.queries ? wk_mask_at(j, h, query) : NULL;
}

static __device__ __forceinline__ void keep_mask(uint8_t *to, const uint32_t row[2])
{
    *(uint2 *)to = make_uint2(row[0], row[1]);
}

/* Blocks that a multiprocessor is to hold at once: as many as shared memory lets in (on sm_75 that is one). */
template <typename T, int D> static constexpr int blocks()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    return 1;
#else
    return D == 64 ? 3 : 1;
#endif
}

/* How many tiles of keys and values are in shared memory at once. */
template <typename T, int D> static __device__ constexpr int stages()
{
    return D * sizeof(T) == 128 ? 2 : 1;
}

/* Shared memory of a kernel that streams keys and values: tiles, and forward's mask. */
template <typename T, int D> struct stream_tiles {
    T k[OWN * wk_ld<T, D>()], v[OWN * wk_ld<T, D>()];
};
template <typename T, int D> struct stream_room {
    struct stream_tiles<T, D> stage[D * sizeof(T) == 128 ? 2 : 1];
    __align__(16) uint8_t mask[OWN * WK_KEY_TILE / 8];
};

template <typename T, int D>
static __device__ __forceinline__ void load_stream(struct stream_tiles<T, D> *to,
                                                   const struct wk_attention_job &j,
                                                   const struct wk_head &h,
                                                   const struct wk_attention_in<T> &in, int key)
{
    size_t at = wk_head_at(j, h, key, j.stride);

    wk_load_rows<T, D, OWN, THREADS>(to->k, in.k + at, j.stride, h.keys - key, j.size, j.wide);
    wk_load_rows<T, D, OWN, THREADS>(to->v, in.v + at, j.stride, h.keys - key, j.size, j.wide);
}

/* ---- Forward ---- */

/* What a lane knows of its rows g and g + 8: largest score and sum of exponentials. */
struct running {
    float top[2], sum[2];
};

/* Scores become probabilities relative to the new maximum; returns by how much earlier sums shrink. */
template <int N>
static __device__ __forceinline__ void soften(float s[N][4], struct running *r, float factor,
                                              float shrink[2])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float top = r->top[half], sum = 0;

#pragma unroll
        for (int n = 0; n < N; n++)
            top = fmaxf(top, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
        top = fmaxf(top, __shfl_xor_sync(WK_ALL_LANES, top, 1));
        top = fmaxf(top, __shfl_xor_sync(WK_ALL_LANES, top, 2));
        shrink[half] = wk_exp2((r->top[half] - top) * factor);
#pragma unroll
        for (int n = 0; n < N; n++) {
            s[n][2 * half] = wk_exp2(s[n][2 * half] * factor - top * factor);
            s[n][2 * half + 1] = wk_exp2(s[n][2 * half + 1] * factor - top * factor);
            sum += s[n][2 * half] + s[n][2 * half + 1];
        }
        sum += __shfl_xor_sync(WK_ALL_LANES, sum, 1);
        sum += __shfl_xor_sync(WK_ALL_LANES, sum, 2);
        r->top[half] = top;
        r->sum[half] = r->sum[half] * shrink[half] + sum;
    }
}

/* Keys from `keys` on do not exist. */
template <int N> static __device__ __forceinline__ void cut(float s[N][4], int key, int keys)
{
    int t = (int)threadIdx.x % 4;

    if (key + 8 * N <= keys)
        return;
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int odd = 0; odd < 2; odd++)
            if (key + 8 * n + 2 * t + odd >= keys)
                s[n][odd] = s[n][2 + odd] = -INFINITY;
}

template <typename T, int D>
static __global__ void __launch_bounds__(THREADS, blocks<T, D>())
    forward_kernel(struct wk_attention_job j, struct wk_attention_in<T> in, T *out, float *lse)
{
    const int N = WK_KEY_TILE / 8, STAGES = stages<T, D>();
    struct stream_room<T, D> *room = (struct stream_room<T, D> *)wk_shared();
    int lane = (int)threadIdx.x % WK_WARP, g = lane / 4, t = lane % 4;
    int own = (int)threadIdx.x / WK_WARP * WARP_ROWS, query = (int)blockIdx.x * OWN;
    int out_stride = j.heads * j.size;

    if ((int)blockIdx.z == j.p.sequences) {
        wk_clear_fill<T, THREADS>(j, out, out_stride);
        return;
    }
    struct wk_head h = wk_head_of(j);
    int tiles = (h.keys + WK_KEY_TILE - 1) / WK_KEY_TILE;
    uint32_t q[D / depth<T>()][4];
    float sum[D / 8][4] = { { 0 } };
    struct running r = { { -INFINITY, -INFINITY }, { 0, 0 } };
    uint8_t *mask_low = mask_kept_at(j, h, query + own + g);
    uint8_t *mask_high = mask_kept_at(j, h, query + own + g + 8);

    if (query >= h.queries)
        return;
    /* the queries pass through the place of the last stage's keys */
    wk_load_rows<T, D, OWN, THREADS>(room->stage[STAGES - 1].k,
                                     in.q + wk_head_at(j, h, query, j.stride), j.stride,
                                     h.queries - query, j.size, j.wide);
    wk_copy_commit();
    if (STAGES == 2)
        load_stream(&room->stage[0], j, h, in, 0);
    wk_copy_commit();
    wk_copy_wait<1>();
    __syncthreads();
#pragma unroll
    for (int k = 0; k < D / depth<T>(); k++)
        load_left(q[k], room->stage[STAGES - 1].k, wk_ld<T, D>(), own, depth<T>() * k);
    __syncthreads();
    for (int tile = 0; tile < tiles; tile++) {
        struct stream_tiles<T, D> *now = &room->stage[tile % STAGES];
        int next = tile + STAGES - 1, key = tile * WK_KEY_TILE;
        float s[N][4], shrink[2];

        if (next < tiles)
            load_stream(&room->stage[next % STAGES], j, h, in, next * WK_KEY_TILE);
        wk_copy_commit();
        if (j.drop.limit)
            wk_mask_tile<OWN, WK_KEY_TILE, THREADS, false>(room->mask, j, h, query, key);
        wk_copy_wait<STAGES - 1>();
        __syncthreads();
        scores<T, D, N>(s, q, now->k, 0);
        cut<N>(s, key, h.keys);
        soften<N>(s, &r, j.scale * WK_LOG2_E, shrink);
        if (j.drop.limit) {
            uint32_t low[2], high[2];

            read_mask(low, room->mask + (own + g) * (WK_KEY_TILE / 8));
            read_mask(high, room->mask + (own + g + 8) * (WK_KEY_TILE / 8));
            if (mask_low)
                keep_mask(mask_low + key / 8, low);
            if (mask_high)
                keep_mask(mask_high + key / 8, high);
#pragma unroll
            for (int n = 0; n < N; n++)
#pragma unroll
                for (int odd = 0; odd < 2; odd++) {
                    s[n][odd] = kept(low, n, t, odd) ? s[n][odd] : 0.0f;
                    s[n][2 + odd] = kept(high, n, t, odd) ? s[n][2 + odd] : 0.0f;
                }
        }
#pragma unroll
        for (int n = 0; n < D / 8; n++) {
            sum[n][0] *= shrink[0];
            sum[n][1] *= shrink[0];
            sum[n][2] *= shrink[1];
            sum[n][3] *= shrink[1];
        }
        weigh<T, D, N>(sum, s, now->v, 0);
        __syncthreads();
    }
    wk_copy_wait<0>();
    __syncthreads(); /* where no tile followed, the first one's copies by other warps */
    float low = tiles ? j.drop.factor / r.sum[0] : 0.0f,
          high = tiles ? j.drop.factor / r.sum[1] : 0.0f;

    store_rows<T, D>(j, out + wk_head_at(j, h, query, out_stride), out_stride, room->stage[0].k,
                     sum, low, high, h.queries - query);
    if (lse && t == 0)
        for (int half = 0; half < 2; half++)
            if (query + own + g + 8 * half < h.queries)
                lse[(size_t)(h.first + query + own + g + 8 * half) * j.heads + h.index] =
                    r.top[half] * j.scale + logf(r.sum[half]);
}

/* ---- Backward for d_q, and delta for the other kernel ---- */

/* delta of a warp's rows: lanes 2 r and 2 r + 1 do row r. Returns those of rows g and g + 8. */
template <typename T>
static __device__ __forceinline__ float2 delta_of(const struct wk_attention_job &j,
                                                  const struct wk_head &h,
                                                  const struct wk_attention_in<T> &in, int query)
{
    int lane = (int)threadIdx.x % WK_WARP, g = lane / 4, row = query + lane / 2;
    int half = ((j.size + 15) / 16) * 8, begin = lane % 2 ? half : 0;
    int end = lane % 2 ? j.size : (half < j.size ? half : j.size);
    float sum = 0;

    if (row < h.queries) {
        size_t at = wk_head_at(j, h, row, j.heads * j.size);

        for (int col = begin; col < end; col += 8) {
            int n = end - col < 8 ? end - col : 8;
            float a[8], b[8];

            wk_load_part(a, in.out + at + col, n, j.wide);
            wk_load_part(b, in.d_out + at + col, n, j.wide);
#pragma unroll
            for (int i = 0; i < 8; i++)
                sum += a[i] * b[i];
        }
    }
    sum += __shfl_xor_sync(WK_ALL_LANES, sum, 1);
    if (row < h.queries && lane % 2 == 0)
        j.delta[(size_t)(h.first + row) * j.heads + h.index] = sum;
    return make_float2(__shfl_sync(WK_ALL_LANES, sum, 2 * g),
                       __shfl_sync(WK_ALL_LANES, sum, 2 * g + 16));
}

/* The logarithm of a row's sum, base 2; of rows that do not exist one that makes all probabilities 0. */
static __device__ __forceinline__ float lse_of(const struct wk_attention_job &j,
                                               const struct wk_head &h, const float *lse, int query)
{
    if (query >= h.queries)
        return INFINITY;
    return lse[(size_t)(h.first + query) * j.heads + h.index] * WK_LOG2_E;
}

template <typename T, int D>
static __global__ void __launch_bounds__(THREADS, blocks<T, D>())
    d_q_kernel(struct wk_attention_job j, struct wk_attention_in<T> in, T *d_q)
{
    const int N = D * sizeof(T) == 128 ? 8 : 4,
              STAGES = stages<T, D>(); /* N: eights of keys at a time */
    struct stream_room<T, D> *room = (struct stream_room<T, D> *)wk_shared();
    int lane = (int)threadIdx.x % WK_WARP, g = lane / 4, t = lane % 4;
    int own = (int)threadIdx.x / WK_WARP * WARP_ROWS, query = (int)blockIdx.x * OWN;
    int out_stride = j.heads * j.size;

    if ((int)blockIdx.z == j.p.sequences) {
        wk_clear_fill<T, THREADS>(j, d_q, j.d_stride);
        return;
    }
    struct wk_head h = wk_head_of(j);
    int tiles = (h.keys + WK_KEY_TILE - 1) / WK_KEY_TILE;
    uint32_t q[D / depth<T>()][4], d_out[D / depth<T>()][4];
    float sum[D / 8][4] = { { 0 } };

    if (query >= h.queries)
        return;
    wk_load_rows<T, D, OWN, THREADS>(room->stage[STAGES - 1].k,
                                     in.q + wk_head_at(j, h, query, j.stride), j.stride,
                                     h.queries - query, j.size, j.wide);
    wk_load_rows<T, D, OWN, THREADS>(room->stage[STAGES - 1].v,
                                     in.d_out + wk_head_at(j, h, query, out_stride), out_stride,
                                     h.queries - query, j.size, j.wide);
    wk_copy_commit();
    if (STAGES == 2)
        load_stream(&room->stage[0], j, h, in, 0);
    wk_copy_commit();
    float2 delta = delta_of(j, h, in, query + own);
    float lse[2] = { lse_of(j, h, in.lse, query + own + g),
                     lse_of(j, h, in.lse, query + own + g + 8) };

    wk_copy_wait<1>();
    __syncthreads();
#pragma unroll
    for (int k = 0; k < D / depth<T>(); k++) {
        load_left(q[k], room->stage[STAGES - 1].k, wk_ld<T, D>(), own, depth<T>() * k);
        load_left(d_out[k], room->stage[STAGES - 1].v, wk_ld<T, D>(), own, depth<T>() * k);
    }
    __syncthreads();
    for (int tile = 0; tile < tiles; tile++) {
        struct stream_tiles<T, D> *now = &room->stage[tile % STAGES];
        int next = tile + STAGES - 1, key = tile * WK_KEY_TILE;
        uint32_t low[2] = { 0 }, high[2] = { 0 };

        if (next < tiles)
            load_stream(&room->stage[next % STAGES], j, h, in, next * WK_KEY_TILE);
        wk_copy_commit();
        if (j.drop.limit && query + own + g < h.queries)
            read_mask(low, wk_mask_at(j, h, query + own + g) + key / 8);
        if (j.drop.limit && query + own + g + 8 < h.queries)
            read_mask(high, wk_mask_at(j, h, query + own + g + 8) + key / 8);
        wk_copy_wait<STAGES - 1>();
        __syncthreads();
#pragma unroll
        for (int part = 0; part < WK_KEY_TILE / 8; part += N) {
            float p[N][4], d_p[N][4];

            scores<T, D, N>(p, q, now->k, 8 * part);
            scores<T, D, N>(d_p, d_out, now->v, 8 * part);
            cut<N>(p, key + 8 * part, h.keys);
#pragma unroll
            for (int n = 0; n < N; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float probability = wk_exp2(p[n][i] * (j.scale * WK_LOG2_E) - lse[i / 2]);
                    float minus = i < 2 ? -delta.x : -delta.y;
                    float d = fmaf(d_p[n][i], j.drop.factor, minus);

                    if (j.drop.limit && !kept(i < 2 ? low : high, part + n, t, i % 2))
                        d = minus;
                    p[n][i] = probability * d;
                }
            weigh<T, D, N>(sum, p, now->k, 8 * part);
        }
        __syncthreads();
    }
    wk_copy_wait<0>();
    __syncthreads(); /* as in forward */
    store_rows<T, D>(j, d_q + wk_head_at(j, h, query, j.d_stride), j.d_stride, room->stage[0].k,
                     sum, j.scale, j.scale, h.queries - query);
}

/* ---- Backward for d_k and d_v ---- */

#define QUERIES 32 /* of a tile that streams */

template <typename T, int D> struct query_tiles {
    T q[QUERIES * wk_ld<T, D>()], d_out[QUERIES * wk_ld<T, D>()];
};
template <typename T, int D> struct key_room {
    T k[OWN * wk_ld<T, D>()], v[OWN * wk_ld<T, D>()];
    struct query_tiles<T, D> stage[D * sizeof(T) == 128 ? 2 : 1];
    __align__(16) float lse[QUERIES], delta[QUERIES];
    __align__(16) uint8_t mask[QUERIES * WK_KEY_TILE / 8];
};

template <typename T, int D>
static __device__ __forceinline__ void load_queries(struct query_tiles<T, D> *to,
                                                    const struct wk_attention_job &j,
                                                    const struct wk_head &h,
                                                    const struct wk_attention_in<T> &in, int query)
{
    int out_stride = j.heads * j.size;

    wk_load_rows<T, D, QUERIES, THREADS>(to->q, in.q + wk_head_at(j, h, query, j.stride), j.stride,
                                         h.queries - query, j.size, j.wide);
    wk_load_rows<T, D, QUERIES, THREADS>(to->d_out, in.d_out + wk_head_at(j, h, query, out_stride),
                                         out_stride, h.queries - query, j.size, j.wide);
}

/* Transposed scores become dropped-out probabilities p and gradients of scores d_p. Rows are keys, columns queries. */
template <typename T, int D>
static __device__ __forceinline__ void slopes(float p[QUERIES / 8][4], float d_p[QUERIES / 8][4],
                                              const struct wk_attention_job &j,
                                              const struct key_room<T, D> *room)
{
    int lane = (int)threadIdx.x % WK_WARP, warp = (int)threadIdx.x / WK_WARP;
    int g = lane / 4, t = lane % 4;

#pragma unroll
    for (int n = 0; n < QUERIES / 8; n++)
#pragma unroll
        for (int odd = 0; odd < 2; odd++) {
            int query = 8 * n + 2 * t + odd;
            float lse = room->lse[query], delta = room->delta[query];
            uint32_t bits = 0; /* of this warp's 16 keys */

            if (j.drop.limit)
                bits =
                    (uint32_t)((const uint16_t *)room->mask)[query * (WK_KEY_TILE / 16) + warp] >>
                    g;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int i = 2 * half + odd;
                float probability = wk_exp2(p[n][i] * (j.scale * WK_LOG2_E) - lse);
                float keep = !j.drop.limit || (bits >> (8 * half) & 1) ? j.drop.factor : 0.0f;

                d_p[n][i] = probability * (d_p[n][i] * keep - delta);
                p[n][i] = probability * keep;
            }
        }
}

template <typename T, int D>
static __global__ void __launch_bounds__(THREADS, blocks<T, D>())
    d_kv_kernel(struct wk_attention_job j, struct wk_attention_in<T> in, T *d_k, T *d_v)
{
    const int N = QUERIES / 8, STAGES = stages<T, D>();
    struct key_room<T, D> *room = (struct key_room<T, D> *)wk_shared();
    int own = (int)threadIdx.x / WK_WARP * WARP_ROWS, key = (int)blockIdx.x * OWN;
    int g = (int)threadIdx.x % WK_WARP / 4;

    if ((int)blockIdx.z == j.p.sequences) {
        wk_clear_fill<T, THREADS>(j, d_k, j.d_stride);
        wk_clear_fill<T, THREADS>(j, d_v, j.d_stride);
        return;
    }
    struct wk_head h = wk_head_of(j);
    int tiles = key < h.keys ? (h.queries + QUERIES - 1) / QUERIES : 0;
    float sum_k[D / 8][4] = { { 0 } }, sum_v[D / 8][4] = { { 0 } };

    if (key >= h.queries)
        return;
    wk_load_rows<T, D, OWN, THREADS>(room->k, in.k + wk_head_at(j, h, key, j.stride), j.stride,
                                     h.keys - key, j.size, j.wide);
    wk_load_rows<T, D, OWN, THREADS>(room->v, in.v + wk_head_at(j, h, key, j.stride), j.stride,
                                     h.keys - key, j.size, j.wide);
    if (STAGES == 2)
        load_queries(&room->stage[0], j, h, in, 0);
    wk_copy_commit();
    for (int tile = 0; tile < tiles; tile++) {
        struct query_tiles<T, D> *now = &room->stage[tile % STAGES];
        int next = tile + STAGES - 1, query = tile * QUERIES, mine = query + (int)threadIdx.x;
        float p[N][4], d_p[N][4];

        if (next < tiles)
            load_queries(&room->stage[next % STAGES], j, h, in, next * QUERIES);
        wk_copy_commit();
        if (threadIdx.x < QUERIES) {
            room->lse[threadIdx.x] = lse_of(j, h, in.lse, mine);
            room->delta[threadIdx.x] =
                mine < h.queries ? j.delta[(size_t)(h.first + mine) * j.heads + h.index] : 0.0f;
        }
        if (j.drop.limit)
            wk_mask_read<QUERIES, WK_KEY_TILE, THREADS>(room->mask, j, h, query, key);
        wk_copy_wait<STAGES - 1>();
        __syncthreads();
        scores_of_tile<T, D, N>(p, room->k, own, now->q, 0);
        scores_of_tile<T, D, N>(d_p, room->v, own, now->d_out, 0);
        slopes<T, D>(p, d_p, j, room);
        weigh<T, D, N>(sum_v, p, now->d_out, 0);
        weigh<T, D, N>(sum_k, d_p, now->q, 0);
        __syncthreads();
    }
    wk_copy_wait<0>();
    __syncthreads(); /* the first tiles may have been waited for by their own threads only */
    float low_k = key + own + g < h.keys ? j.scale : 0.0f;
    float high_k = key + own + g + 8 < h.keys ? j.scale : 0.0f;

    if (low_k == 0) /* rows without a token: whatever is there must not count */
        for (int n = 0; n < D / 8; n++)
            sum_k[n][0] = sum_k[n][1] = sum_v[n][0] = sum_v[n][1] = 0;
    if (high_k == 0)
        for (int n = 0; n < D / 8; n++)
            sum_k[n][2] = sum_k[n][3] = sum_v[n][2] = sum_v[n][3] = 0;
    store_rows<T, D>(j, d_k + wk_head_at(j, h, key, j.d_stride), j.d_stride, room->k, sum_k,
                     j.scale, j.scale, h.queries - key);
    store_rows<T, D>(j, d_v + wk_head_at(j, h, key, j.d_stride), j.d_stride, room->v, sum_v, 1, 1,
                     h.queries - key);
}

/* ---- Launching ---- */

static dim3 grid_of(const struct wk_attention_job &j)
{
    return dim3(wk_blocks((size_t)j.p.longest, OWN), (unsigned)j.heads,
                (unsigned)j.p.sequences + 1);
}

template <typename T, int D>
static int forward(wk_stream s, const struct wk_attention_job &j,
                   const struct wk_attention_in<T> &in, T *out, float *lse)
{
    return wk_launch(forward_kernel<T, D>, grid_of(j), THREADS, sizeof(struct stream_room<T, D>), s,
                     j, in, out, lse);
}

/* In tf32 only heads up to 64: larger ones would not fit into registers. */
template <>
int wk_attention_forward<wk_tf32>(wk_stream s, const struct wk_attention_job &j,
                                  const struct wk_attention_in<wk_tf32> &in, wk_tf32 *out,
                                  float *lse)
{
    return forward<wk_tf32, 64>(s, j, in, out, lse);
}

template <typename T>
int wk_attention_forward(wk_stream s, const struct wk_attention_job &j,
                         const struct wk_attention_in<T> &in, T *out, float *lse)
{
    return (j.size <= 64 ? forward<T, 64> : forward<T, 128>)(s, j, in, out, lse);
}

template <typename T, int D>
static int backward(wk_stream s, const struct wk_attention_job &j,
                    const struct wk_attention_in<T> &in, T *d_q, T *d_k, T *d_v)
{
    int rc = wk_launch(d_q_kernel<T, D>, grid_of(j), THREADS, sizeof(struct stream_room<T, D>), s,
                       j, in, d_q);

    if (rc != cudaSuccess)
        return rc;
    return wk_launch(d_kv_kernel<T, D>, grid_of(j), THREADS, sizeof(struct key_room<T, D>), s, j,
                     in, d_k, d_v);
}

template <>
int wk_attention_backward<wk_tf32>(wk_stream s, const struct wk_attention_job &j,
                                   const struct wk_attention_in<wk_tf32> &in, wk_tf32 *d_q,
                                   wk_tf32 *d_k, wk_tf32 *d_v)
{
    return backward<wk_tf32, 64>(s, j, in, d_q, d_k, d_v);
}

template <typename T>
int wk_attention_backward(wk_stream s, const struct wk_attention_job &j,
                          const struct wk_attention_in<T> &in, T *d_q, T *d_k, T *d_v)
{
    return (j.size <= 64 ? backward<T, 64> : backward<T, 128>)(s, j, in, d_q, d_k, d_v);
}

/* The float family, attention_f32.cu */
template <>
int wk_attention_forward<float>(wk_stream s, const struct wk_attention_job &j,
                                const struct wk_attention_in<float> &in, float *out, float *lse);
template <>
int wk_attention_backward<float>(wk_stream s, const struct wk_attention_job &j,
                                 const struct wk_attention_in<float> &in, float *d_q, float *d_k,
                                 float *d_v);

static int mask_eights(int longest)
{
    return (longest + WK_KEY_TILE - 1) / WK_KEY_TILE * (WK_KEY_TILE / 8);
}

size_t wk_cuda_attention_mask(int heads, int rows, int longest)
{
    return (size_t)heads * (size_t)rows * (size_t)mask_eights(longest);
}

static struct wk_attention_job job_of(enum wk_cuda_type t, const struct wk_cuda_attention *a,
                                      const struct wk_cuda_packing *p)
{
    int chunk = t == WK_CUDA_F32 ? 4 : 8;
    struct wk_attention_job j = {};

    j.p = *p;
    j.heads = a->heads;
    j.size = a->size;
    j.stride = a->stride;
    j.d_stride = a->d_stride;
    j.scale = (float)(1 / sqrt((double)a->size));
    j.drop = wk_drop_of(a->drop);
    j.draw = wk_draw_of(a->rng);
    if (!(a->drop > 0))
        j.drop.limit = 0;
    j.wide = a->size % 8 == 0 && a->stride % chunk == 0 && a->d_stride % chunk == 0;
    j.eights = mask_eights(p->longest);
    return j;
}

/* Call f with a value of the type that products are made in. */
template <typename F>
static int with_products(enum wk_cuda_type t, const struct wk_cuda_attention *a, F f)
{
    if (t == WK_CUDA_F32 && a->tf32 && a->size <= 64)
        return f(wk_tf32());
    return wk_with_type(t, f);
}

static bool aligned(const void *a, const void *b, const void *c, const void *d)
{
    return (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d) & 15) == 0;
}

int wk_cuda_attention_forward(wk_stream s, enum wk_cuda_type t, const struct wk_cuda_attention *a,
                              const struct wk_cuda_packing *p, void *out, float *lse, uint8_t *mask,
                              const void *q, const void *k, const void *v)
{
    struct wk_attention_job j = job_of(t, a, p);

    j.mask = mask;
    if (a->size < 1 || a->size > 128)
        return cudaErrorInvalidValue;
    j.wide = j.wide && aligned(out, q, k, v);
    return with_products(t, a, [&](auto zero) {
        typedef decltype(zero) T;
        struct wk_attention_in<T> in = {
        };

        in.q = (const T *)q;
        in.k = (const T *)k;
        in.v = (const T *)v;
        return wk_attention_forward<T>(s, j, in, (T *)out, lse);
    });
}

size_t wk_cuda_attention_backward_scratch(int heads, int rows)
{
    return (size_t)rows * (size_t)heads * sizeof(float);
}

int wk_cuda_attention_backward(wk_stream s, enum wk_cuda_type t, const struct wk_cuda_attention *a,
                               const struct wk_cuda_packing *p, void *d_q, void *d_k, void *d_v,
                               const void *d_out, const void *out, const float *lse,
                               const uint8_t *mask, const void *q, const void *k, const void *v,
                               void *scratch)
{
    struct wk_attention_job j = job_of(t, a, p);

    if (a->size < 1 || a->size > 128 || (j.drop.limit && !mask))
        return cudaErrorInvalidValue;
    j.delta = (float *)scratch;
    j.mask = (uint8_t *)mask;
    j.wide = j.wide && aligned(q, k, v, d_out) && aligned(d_q, d_k, d_v, out);
    return with_products(t, a, [&](auto zero) {
        typedef decltype(zero) T;
        struct wk_attention_in<T> in = {
            (const T *)q, (const T *)k, (const T *)v, (const T *)out, (const T *)d_out, lse
        };

        return wk_attention_backward<T>(s, j, in, (T *)d_q, (T *)d_k, (T *)d_v);
    });
}
