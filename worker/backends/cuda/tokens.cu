/* SPDX-License-Identifier: Apache-2.0 */
/* Ops over token sequences but attention. Twins: backends/cpu/tokens.c, kernels_tokens.c.
 *
 * A warp takes a row, a lane eight neighbouring columns at a time. Layer normalisation keeps a row of up to 1,024 columns in
 * registers, so that it is read once; other widths are read again instead. Statistics are those of the sum as it is stored, so that
 * backward sees what forward saw. */
#include "backends/cuda/reduce.cuh"

#define THREADS 256
#define WARPS (THREADS / WK_WARP)

/* ---- Embeddings, forward ---- */

template <typename T, typename W> struct embed_tables {
    T *y;
    const W *word, *position, *type;
    const int32_t *ids, *types;
};

template <typename T, typename W>
static __global__ void __launch_bounds__(THREADS)
    embed_kernel(struct embed_tables<T, W> e, struct wk_cuda_packing p, int cols, bool wide)
{
    int groups = (cols + 7) / 8;
    size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    int row = (int)(at / groups), col = (int)(at % groups) * 8;
    int n = cols - col < 8 ? cols - col : 8;
    float a[8], b[8], c[8];

    if (row >= p.rows)
        return;
    wk_load_part(a, e.word + (size_t)e.ids[row] * cols + col, n, wide);
    wk_load_part(b, e.position + (size_t)wk_position_of(p, row) * cols + col, n, wide);
    wk_load_part(c, e.type + (size_t)e.types[row] * cols + col, n, wide);
#pragma unroll
    for (int i = 0; i < 8; i++)
        a[i] = a[i] + c[i] + b[i];
    wk_store_part(e.y + (size_t)row * cols + col, a, n, wide);
}

int wk_cuda_embed_forward(wk_stream s, enum wk_cuda_type t, void *y, const int32_t *ids,
                          const int32_t *types, const struct wk_cuda_packing *p,
                          enum wk_cuda_type w, const void *word, const void *position,
                          const void *type, int cols)
{
    size_t n = (size_t)p->rows * ((size_t)(cols + 7) / 8);

    return wk_with_types(t, w, [&](auto a, auto b) {
        typedef decltype(a) T;
        typedef decltype(b) W;
        struct embed_tables<T, W> e = {
            (T *)y, (const W *)word, (const W *)position, (const W *)type, ids, types
        };

        return wk_launch(embed_kernel<T, W>, dim3(wk_blocks(n, THREADS)), THREADS, 0, s, e, *p,
                         cols, wk_wide(cols, y, word, position, type));
    });
}

/* ---- Embeddings, backward. Words: rows are sorted by (id, row), a digit of the id at a time from the lowest; then a block adds up CHUNK
 * neighbours in that order. A word whose rows lie in one chunk is added to its gradient there; of others each chunk leaves a partial
 * sum, which the last kernel adds up from the chunk on in which the word begins. ---- */

#define CHUNK 32
#define TILE 512      /* rows of a block that sorts: one a thread */
#define DIGIT_BITS 11 /* at most */

struct embed_order {
    int32_t *row; /* (rows): in order of their ids; from: NULL, as they come */
    int32_t *id;  /* (rows): those ids */
};

/* A digit of the ids: `bins` is a power of two. */
struct digit {
    int shift, bins;
};

/* How many rows of the tile before this thread's have its digit; `last`: and none behind it. Past the end the digit is -1. */
static __device__ __forceinline__ int rank_in_tile(int *digits, const struct embed_order &from,
                                                   struct digit d, int rows, bool *last)
{
    int row = (int)blockIdx.x * TILE + (int)threadIdx.x, self = (int)threadIdx.x;
    int own = row < rows ? from.id[row] >> d.shift & (d.bins - 1) : -1;
    int before = 0, behind = 0;

    digits[self] = own;
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < TILE; k++) {
        before += digits[k] == own && k < self;
        behind += digits[k] == own && k > self;
    }
    *last = own >= 0 && behind == 0;
    return before;
}

/* counts (tiles, bins): how often each digit is in each tile. */
static __global__ void __launch_bounds__(TILE)
    digits_kernel(int32_t *counts, struct embed_order from, struct digit d, int rows)
{
    __shared__ int digits[TILE], sums[1 << DIGIT_BITS];
    bool last;

    for (int bin = (int)threadIdx.x; bin < d.bins; bin += TILE)
        sums[bin] = 0;
    int before = rank_in_tile(digits, from, d, rows, &last);
    if (last)
        sums[digits[threadIdx.x]] = before + 1;
    __syncthreads();
    for (int bin = (int)threadIdx.x; bin < d.bins; bin += TILE)
        counts[(size_t)blockIdx.x * d.bins + bin] = sums[bin];
}

/* Each row to its place: behind all smaller digits, behind its own digit in the tiles before, behind it in this tile. */
static __global__ void __launch_bounds__(TILE)
    place_kernel(struct embed_order to, const int32_t *counts, struct embed_order from,
                 struct digit d, int rows)
{
    __shared__ int digits[TILE], sums[1 << DIGIT_BITS], first[1 << DIGIT_BITS];
    int row = (int)blockIdx.x * TILE + (int)threadIdx.x;
    bool last;

    for (int bin = (int)threadIdx.x; bin < d.bins; bin += TILE) {
        int all = 0, before = 0;

#pragma unroll 8
        for (int tile = 0; tile < (int)gridDim.x; tile++) {
            int count = counts[(size_t)tile * d.bins + bin];

            all += count;
            before += tile < (int)blockIdx.x ? count : 0;
        }
        sums[bin] = all;
        first[bin] = before;
    }
    int at = rank_in_tile(digits, from, d, rows, &last);
    if (row >= rows)
        return;
    int own = digits[threadIdx.x];
    at += first[own];
    for (int bin = 0; bin < own; bin++)
        at += sums[bin];
    to.row[at] = from.row ? from.row[row] : row;
    to.id[at] = from.id[row];
}

/* A run of one id in a chunk: is all of that id in it, and which of the chunk's two partial sums is its otherwise: 0 for a run that
 * comes from the chunk before, 1 for one that begins here. */
struct run {
    bool whole;
    int slot;
};

static __device__ __forceinline__ struct run run_of(const struct embed_order &order, int begin,
                                                    int end, int rows)
{
    int id = order.id[begin];
    bool from_before = begin % CHUNK == 0 && begin > 0 && order.id[begin - 1] == id;
    bool goes_on = end % CHUNK == 0 && end < rows && order.id[end] == id;

    return run{ !from_before && !goes_on, from_before ? 0 : 1 };
}

/* Block (chunk, columns). */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    words_kernel(float *d_word, float *partial, const T *d_y, struct embed_order order, int rows,
                 int cols, int padding, bool wide)
{
    int col = (int)(blockIdx.y * blockDim.x + threadIdx.x) * 8;
    int n = cols - col < 8 ? cols - col : 8;
    int begin = (int)blockIdx.x * CHUNK;
    int stop = begin + CHUNK < rows ? begin + CHUNK : rows;

    while (n > 0 && begin < stop) {
        int id = order.id[begin], end = begin;
        float sum[8] = { 0 };

#pragma unroll 4
        for (; end < stop && order.id[end] == id; end++) {
            float d[8];

            if (id == padding)
                continue;
            wk_load_part(d, d_y + (size_t)order.row[end] * cols + col, n, wide);
#pragma unroll
            for (int i = 0; i < 8; i++)
                sum[i] += d[i];
        }
        if (id != padding) {
            struct run r = run_of(order, begin, end, rows);
            float *part = partial + ((size_t)blockIdx.x * 2 + r.slot) * cols + col;

            for (int i = 0; i < n; i++)
                if (r.whole)
                    d_word[(size_t)id * cols + col + i] += sum[i];
                else
                    part[i] = sum[i];
        }
        begin = end;
    }
}

/* Block (chunk, columns): the word that begins in this chunk and goes on in the next ones, if there is one. */
static __global__ void __launch_bounds__(THREADS)
    word_runs_kernel(float *d_word, const float *partial, struct embed_order order, int rows,
                     int cols, int padding)
{
    int col = (int)(blockIdx.y * blockDim.x + threadIdx.x);
    int first = (int)blockIdx.x * CHUNK, next = first + CHUNK;
    float sum;

    if (next >= rows || col >= cols)
        return;
    int id = order.id[next];
    if (order.id[next - 1] != id || id == padding || (first > 0 && order.id[first - 1] == id))
        return;
    sum = partial[((size_t)blockIdx.x * 2 + 1) * cols + col];
    for (int chunk = (int)blockIdx.x + 1; chunk * CHUNK < rows && order.id[chunk * CHUNK] == id;
         chunk++)
        sum += partial[(size_t)chunk * 2 * cols + col];
    d_word[(size_t)id * cols + col] += sum;
}

/* Positions: a thread adds up eight columns of one place over the sequences that are that long. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    positions_kernel(float *d_position, const T *d_y, struct wk_cuda_packing p, int cols, bool wide)
{
    int groups = (cols + 7) / 8;
    size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    int place = (int)(at / groups), col = (int)(at % groups) * 8;
    int n = cols - col < 8 ? cols - col : 8;
    bool any = false;
    float sum[8] = { 0 };

    if (place >= p.longest)
        return;
#pragma unroll 4
    for (int s = 0; s < p.sequences; s++) {
        int first = p.first[s];
        float d[8];

        if (p.first[s + 1] - first <= place)
            continue;
        any = true;
        wk_load_part(d, d_y + (size_t)(first + place) * cols + col, n, wide);
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum[i] += d[i];
    }
    for (int i = 0; any && i < n; i++)
        d_position[(size_t)place * cols + col + i] += sum[i];
}

/* Types: partial sums of a strip of rows for one type; block (columns, strip, type). */
#define STRIP_ROWS 64
#define STRIPS_MAX 128

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    types_kernel(float *partial, const T *d_y, const int32_t *types, int rows, int cols, int strip,
                 bool wide)
{
    __shared__ float sums[WARPS][8 * WK_WARP + 8];
    int lane = (int)threadIdx.x % WK_WARP, warp = (int)threadIdx.x / WK_WARP;
    int first = (int)blockIdx.x * 8 * WK_WARP, col = first + lane * 8;
    int n = cols - col < 8 ? cols - col : 8;
    int end = ((int)blockIdx.y + 1) * strip < rows ? ((int)blockIdx.y + 1) * strip : rows;
    float sum[8] = { 0 };

    for (int row = (int)blockIdx.y * strip + warp; n > 0 && row < end; row += WARPS) {
        float d[8];

        if (types[row] != (int)blockIdx.z)
            continue;
        wk_load_part(d, d_y + (size_t)row * cols + col, n, wide);
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum[i] += d[i];
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        sums[warp][lane * 8 + i] = sum[i];
    __syncthreads();
    col = first + (int)threadIdx.x;
    if (col < cols) {
        float total = 0;

        for (int w = 0; w < WARPS; w++)
            total += sums[w][threadIdx.x];
        partial[((size_t)blockIdx.y * gridDim.z + blockIdx.z) * cols + col] = total;
    }
}

static int strip_of(int rows)
{
    int strip = (rows + STRIPS_MAX - 1) / STRIPS_MAX;

    return strip < STRIP_ROWS ? STRIP_ROWS : strip;
}

static int digits_of(int n_words, struct digit *d)
{
    int bits = 1, passes;

    while (bits < 31 && n_words > 1 << bits)
        bits++;
    passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    d->shift = (bits + passes - 1) / passes;
    d->bins = 1 << d->shift;
    return passes;
}

/* Places in the scratch of the embeddings' gradients, bytes; the order has two, which the passes read and write in turn. */
struct embed_scratch {
    size_t row[2], id[2], counts, words, types, all;
};

static struct embed_scratch embed_scratch_of(const struct wk_cuda_packing *p, int cols, int n_words,
                                             int n_types)
{
    size_t rows = (size_t)p->rows, chunks = wk_blocks(rows, CHUNK);
    size_t strips = wk_blocks(rows, (size_t)strip_of(p->rows));
    size_t one = wk_round256(rows * sizeof(int32_t));
    struct embed_scratch s;
    struct digit d;

    digits_of(n_words, &d);
    for (int i = 0; i < 2; i++) {
        s.row[i] = 2 * i * one;
        s.id[i] = s.row[i] + one;
    }
    s.counts = 4 * one;
    s.words = s.counts + wk_round256(wk_blocks(rows, TILE) * d.bins * sizeof(int32_t));
    s.types = s.words + wk_round256(chunks * 2 * cols * sizeof(float));
    s.all = s.types + wk_round256(strips * n_types * cols * sizeof(float));
    return s;
}

size_t wk_cuda_embed_backward_scratch(const struct wk_cuda_packing *p, int cols, int n_words,
                                      int n_types)
{
    return embed_scratch_of(p, cols, n_words, n_types).all;
}

/* What all of the embeddings' gradients are made from. */
struct embed_job {
    wk_stream s;
    const struct wk_cuda_packing *p;
    const int32_t *ids, *types;
    int padding, cols, n_words, n_types;
    char *scratch;
    struct embed_scratch at;
};

static int sort_words(const struct embed_job &j, struct embed_order *order)
{
    unsigned tiles = wk_blocks((size_t)j.p->rows, TILE);
    int32_t *counts = (int32_t *)(j.scratch + j.at.counts);
    struct digit d;
    int passes = digits_of(j.n_words, &d), bits = d.shift;

    *order = embed_order{ NULL, (int32_t *)j.ids };
    for (int pass = 0; pass < passes; pass++) {
        struct embed_order to = { (int32_t *)(j.scratch + j.at.row[pass % 2]),
                                  (int32_t *)(j.scratch + j.at.id[pass % 2]) };
        int rc;

        d.shift = pass * bits;
        rc = wk_launch(digits_kernel, dim3(tiles), TILE, 0, j.s, counts, *order, d, j.p->rows);
        if (rc == cudaSuccess)
            rc = wk_launch(place_kernel, dim3(tiles), TILE, 0, j.s, to, (const int32_t *)counts,
                           *order, d, j.p->rows);
        if (rc != cudaSuccess)
            return rc;
        *order = to;
    }
    return cudaSuccess;
}

template <typename T>
static int words_backward(const struct embed_job &j, float *d_word, const T *d_y)
{
    struct embed_order order;
    float *partial = (float *)(j.scratch + j.at.words);
    int rows = j.p->rows, groups = (j.cols + 7) / 8;
    unsigned threads =
        groups < THREADS ? (unsigned)(groups + WK_WARP - 1) / WK_WARP * WK_WARP : (unsigned)THREADS;
    unsigned chunks = wk_blocks((size_t)rows, CHUNK);
    int rc = sort_words(j, &order);

    if (rc != cudaSuccess)
        return rc;
    rc = wk_launch(words_kernel<T>, dim3(chunks, wk_blocks((size_t)groups, threads)), threads, 0,
                   j.s, d_word, partial, d_y, order, rows, j.cols, j.padding, wk_wide(j.cols, d_y));
    if (rc != cudaSuccess)
        return rc;
    return wk_launch(word_runs_kernel, dim3(chunks, wk_blocks((size_t)j.cols, THREADS)), THREADS, 0,
                     j.s, d_word, partial, order, rows, j.cols, j.padding);
}

template <typename T>
static int types_backward(const struct embed_job &j, float *d_type, const T *d_y)
{
    float *partial = (float *)(j.scratch + j.at.types);
    int strip = strip_of(j.p->rows), all = j.n_types * j.cols;
    unsigned strips = wk_blocks((size_t)j.p->rows, (size_t)strip);
    dim3 grid(wk_blocks((size_t)j.cols, 8 * WK_WARP), strips, (unsigned)j.n_types);
    int rc = wk_launch(types_kernel<T>, grid, THREADS, 0, j.s, partial, d_y, j.types, j.p->rows,
                       j.cols, strip, wk_wide(j.cols, d_y));

    if (rc != cudaSuccess)
        return rc;
    return wk_total(j.s, wk_targets{ { d_type }, { all } }, partial, (int)strips, all);
}

int wk_cuda_embed_backward(wk_stream s, float *d_word, float *d_position, float *d_type,
                           enum wk_cuda_type t, const void *d_y, const int32_t *ids,
                           const int32_t *types, const struct wk_cuda_packing *p, int padding,
                           int cols, int n_words, int n_types, void *scratch)
{
    struct embed_job j = {
        s,    p,       ids,     types,           padding,
        cols, n_words, n_types, (char *)scratch, embed_scratch_of(p, cols, n_words, n_types)
    };

    return wk_with_type(t, [&](auto a) {
        typedef decltype(a) T;
        size_t places = (size_t)p->longest * ((size_t)(cols + 7) / 8);
        int rc = words_backward<T>(j, d_word, (const T *)d_y);

        if (rc == cudaSuccess)
            rc = types_backward<T>(j, d_type, (const T *)d_y);
        if (rc == cudaSuccess)
            rc = wk_launch(positions_kernel<T>, dim3(wk_blocks(places, THREADS)), THREADS, 0, s,
                           d_position, (const T *)d_y, *p, cols, wk_wide(cols, d_y));
        return rc;
    });
}

/* ---- Dropout on rows ---- */

/* Eights of a row before a place in its sequence: cols rounded up to a multiple of eight. */
static __device__ __forceinline__ uint32_t eights_before(const struct wk_cuda_packing &p, int row,
                                                         int cols)
{
    return (uint32_t)wk_position_of(p, row) * ((uint32_t)(cols + 7) / 8);
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    token_dropout_kernel(T *y, const T *x, struct wk_cuda_packing p, int cols, struct wk_drop drop,
                         struct wk_draw draw, bool wide)
{
    int groups = (cols + 7) / 8;
    size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    int row = (int)(at / groups), col = (int)(at % groups) * 8;
    int n = cols - col < 8 ? cols - col : 8;
    float v[8], mask[8];

    if (row >= p.rows)
        return;
    wk_load_part(v, x + (size_t)row * cols + col, n, wide);
    wk_mask8(mask, draw, drop, eights_before(p, row, cols) + (uint32_t)col / 8,
             wk_sample_of(p, row), wk_step_of(draw));
#pragma unroll
    for (int i = 0; i < 8; i++)
        v[i] *= mask[i];
    wk_store_part(y + (size_t)row * cols + col, v, n, wide);
}

int wk_cuda_token_dropout(wk_stream s, enum wk_cuda_type t, void *y, const void *x,
                          const struct wk_cuda_packing *p, int cols, double drop,
                          const struct wk_cuda_rng *rng)
{
    size_t n = (size_t)p->rows * ((size_t)(cols + 7) / 8);

    return wk_with_type(t, [&](auto a) {
        typedef decltype(a) T;

        return wk_launch(token_dropout_kernel<T>, dim3(wk_blocks(n, THREADS)), THREADS, 0, s,
                         (T *)y, (const T *)x, *p, cols, wk_drop_of(drop), wk_draw_of(*rng),
                         wk_wide(cols, y, x));
    });
}

/* ---- Layer normalisation. PARTS: eights of columns that a lane holds; 0: any width, read again for each pass. Which it is depends on
 * widths and activations, not on where a strategy has put the weights: the order of sums must not change with that. ---- */

#define PARTS_MAX 4
#define NORM_WARPS 4 /* of a block */

/* What both directions are told; drop.limit 0: no dropout. */
struct norm_job {
    struct wk_cuda_packing p;
    int cols;
    float eps;
    struct wk_drop drop;
    struct wk_draw draw;
};

static struct norm_job norm_job_of(const struct wk_cuda_packing *p, int cols, double eps,
                                   double drop, const struct wk_cuda_rng *rng)
{
    struct norm_job j = { *p, cols, (float)eps, wk_drop_of(drop), wk_draw_of(*rng) };

    if (!(drop > 0))
        j.drop.limit = 0;
    return j;
}

/* A row's place in the sequence of dropout's numbers. */
struct row_numbers {
    uint32_t eights, sample, step;
};

static __device__ __forceinline__ struct row_numbers row_numbers_of(const struct norm_job &j,
                                                                    int row)
{
    if (!j.drop.limit)
        return row_numbers{ 0, 0, 0 };
    return row_numbers{ eights_before(j.p, row, j.cols), wk_sample_of(j.p, row),
                        wk_step_of(j.draw) };
}

template <typename T, typename W> struct norm_tensors {
    T *y, *x;
    const T *residual;
    const W *weight, *bias;
    float *saved;
    bool wide; /* weight and bias can be read 16 bytes at a time */
};

template <typename T, typename W, int PARTS>
static __global__ void __launch_bounds__(NORM_WARPS *WK_WARP)
    norm_kernel(struct norm_tensors<T, W> n, struct norm_job j)
{
    int lane = (int)threadIdx.x % WK_WARP;
    int row = (int)blockIdx.x * NORM_WARPS + (int)threadIdx.x / WK_WARP;
    float v[PARTS][8], sum = 0, square = 0, mean, inverse;

    if (row >= j.p.rows) /* the whole warp */
        return;
    struct row_numbers numbers = row_numbers_of(j, row);
    size_t at = (size_t)row * j.cols;

#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        int col = (part * WK_WARP + lane) * 8;
        float other[8];

        if (col >= j.cols)
            continue;
        wk_load8(v[part], n.x + at + col);
        if (j.drop.limit) {
            wk_mask8(other, j.draw, j.drop, numbers.eights + (uint32_t)col / 8, numbers.sample,
                     numbers.step);
#pragma unroll
            for (int i = 0; i < 8; i++)
                v[part][i] *= other[i];
        }
        if (n.residual) {
            wk_load8(other, n.residual + at + col);
#pragma unroll
            for (int i = 0; i < 8; i++)
                v[part][i] += other[i];
        }
        if (j.drop.limit || n.residual)
            wk_store8(n.x + at + col, v[part]);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            v[part][i] = wk_to_float(wk_from_float<T>(v[part][i]));
            sum += v[part][i];
        }
    }
    mean = wk_warp_sum(sum) / (float)j.cols;
#pragma unroll
    for (int part = 0; part < PARTS; part++)
        if ((part * WK_WARP + lane) * 8 < j.cols) {
#pragma unroll
            for (int i = 0; i < 8; i++)
                square += (v[part][i] - mean) * (v[part][i] - mean);
        }
    inverse = 1 / sqrtf(wk_warp_sum(square) / (float)j.cols + j.eps);
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        int col = (part * WK_WARP + lane) * 8;
        float weight[8], bias[8];

        if (col >= j.cols)
            continue;
        wk_load_part(weight, n.weight + col, 8, n.wide);
        wk_load_part(bias, n.bias + col, 8, n.wide);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[part][i] = (v[part][i] - mean) * inverse * weight[i] + bias[i];
        wk_store8(n.y + at + col, v[part]);
    }
    if (lane == 0)
        *(float2 *)(n.saved + 2 * (size_t)row) = make_float2(mean, inverse);
}

/* One element's dropout factor. */
static __device__ __forceinline__ float factor_at(const struct norm_job &j,
                                                  const struct row_numbers &n, int col)
{
    uint32_t bits[4];

    if (!j.drop.limit)
        return 1;
    wk_numbers(bits, j.draw, n.eights + (uint32_t)col / 8, j.draw.site, n.sample, n.step);
    return wk_kept(bits, col % 8, j.drop) ? j.drop.factor : 0.0f;
}

template <typename T, typename W>
static __global__ void __launch_bounds__(NORM_WARPS *WK_WARP)
    norm_any_kernel(struct norm_tensors<T, W> n, struct norm_job j)
{
    int lane = (int)threadIdx.x % WK_WARP;
    int row = (int)blockIdx.x * NORM_WARPS + (int)threadIdx.x / WK_WARP;
    float sum = 0, square = 0, mean, inverse;

    if (row >= j.p.rows)
        return;
    struct row_numbers numbers = row_numbers_of(j, row);
    size_t at = (size_t)row * j.cols;

    for (int col = lane; col < j.cols; col += WK_WARP) {
        T v = wk_from_float<T>(wk_to_float(n.x[at + col]) * factor_at(j, numbers, col) +
                               (n.residual ? wk_to_float(n.residual[at + col]) : 0.0f));

        n.x[at + col] = v;
        sum += wk_to_float(v);
    }
    mean = wk_warp_sum(sum) / (float)j.cols;
    for (int col = lane; col < j.cols; col += WK_WARP) {
        float d = wk_to_float(n.x[at + col]) - mean;

        square += d * d;
    }
    inverse = 1 / sqrtf(wk_warp_sum(square) / (float)j.cols + j.eps);
    for (int col = lane; col < j.cols; col += WK_WARP)
        n.y[at + col] = wk_from_float<T>((wk_to_float(n.x[at + col]) - mean) * inverse *
                                             wk_to_float(n.weight[col]) +
                                         wk_to_float(n.bias[col]));
    if (lane == 0) {
        n.saved[2 * (size_t)row] = mean;
        n.saved[2 * (size_t)row + 1] = inverse;
    }
}

/* Eights that a lane holds, 0 if the row must be read again. */
static int parts_of(int cols, bool wide)
{
    int parts = (cols + 8 * WK_WARP - 1) / (8 * WK_WARP);

    return wide && parts <= PARTS_MAX ? parts : 0;
}

/* Call f with a constant. */
template <typename F> static int with_parts(int parts, F f)
{
    switch (parts) {
    case 1:
        return f(wk_constant<1>());
    case 2:
        return f(wk_constant<2>());
    case 3:
        return f(wk_constant<3>());
    default:
        return f(wk_constant<PARTS_MAX>());
    }
}

int wk_cuda_norm_forward(wk_stream s, enum wk_cuda_type t, void *y, float *saved, void *x,
                         const void *residual, enum wk_cuda_type w, const void *weight,
                         const void *bias, const struct wk_cuda_packing *p, int cols, double eps,
                         double drop, const struct wk_cuda_rng *rng)
{
    struct norm_job j = norm_job_of(p, cols, eps, drop, rng);
    int parts = parts_of(cols, wk_wide(cols, y, x, residual));
    dim3 grid(wk_blocks((size_t)p->rows, NORM_WARPS));

    return wk_with_types(t, w, [&](auto a, auto b) {
        typedef decltype(a) T;
        typedef decltype(b) W;
        struct norm_tensors<T, W> n = {
            (T *)y, (T *)x, (const T *)residual, (const W *)weight, (const W *)bias, saved,
                wk_wide(cols, weight, bias)
        };

        if (parts == 0)
            return wk_launch(norm_any_kernel<T, W>, grid, NORM_WARPS * WK_WARP, 0, s, n, j);
        return with_parts(parts, [&](auto constant) {
            return wk_launch(norm_kernel<T, W, decltype(constant)::value>, grid,
                             NORM_WARPS * WK_WARP, 0, s, n, j);
        });
    });
}

/* Backward. With xn = (sum - mean) inverse and g = d_y weight: d_sum = inverse (g - mean(g) - xn mean(g xn)). A block takes every
 * gridDim-th group of rows and leaves partial sums of the weights' gradients: (block, 2 cols). */
#define NORM_BLOCKS_MAX 384

template <typename T, typename W> struct norm_gradients {
    T *d_sum, *d_x; /* d_x may be NULL */
    const T *d_y, *sum;
    const W *weight;
    const float *saved;
    float *partial;
    bool wide; /* weight can be read 16 bytes at a time */
};

/* Add up a value of eight columns over the block's warps and store the sums. */
template <int PARTS>
static __device__ __forceinline__ void store_partial(float *to, float (*v)[8], float *room,
                                                     int cols)
{
    int lane = (int)threadIdx.x % WK_WARP, warp = (int)threadIdx.x / WK_WARP;

    __syncthreads();
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        int col = (part * WK_WARP + lane) * 8;

        if (col < cols)
            wk_store8(room + (size_t)warp * cols + col, v[part]);
    }
    __syncthreads();
    for (int col = (int)threadIdx.x; col < cols; col += NORM_WARPS * WK_WARP) {
        float total = 0;

#pragma unroll
        for (int k = 0; k < NORM_WARPS; k++)
            total += room[k * cols + col];
        to[col] = total;
    }
}

template <typename T, typename W, int PARTS>
static __global__ void __launch_bounds__(NORM_WARPS *WK_WARP)
    norm_backward_kernel(struct norm_gradients<T, W> n, struct norm_job j)
{
    int lane = (int)threadIdx.x % WK_WARP;
    float d_weight[PARTS][8] = { { 0 } }, d_bias[PARTS][8] = { { 0 } }, weight[PARTS][8];

#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        int col = (part * WK_WARP + lane) * 8;

        if (col < j.cols)
            wk_load_part(weight[part], n.weight + col, 8, n.wide);
    }
    for (int row = (int)blockIdx.x * NORM_WARPS + (int)threadIdx.x / WK_WARP; row < j.p.rows;
         row += (int)gridDim.x * NORM_WARPS) {
        size_t at = (size_t)row * j.cols;
        wk_eight<T> d_y[PARTS], x[PARTS];
        float g_sum = 0, g_xn_sum = 0;

        /* all of the row is on its way before the first of it is waited for */
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            int col = (part * WK_WARP + lane) * 8;

            if (col < j.cols) {
                d_y[part] = wk_fetch8(n.d_y + at + col);
                x[part] = wk_fetch8(n.sum + at + col);
            }
        }
        struct row_numbers numbers = row_numbers_of(j, row);
        float2 saved = *(const float2 *)(n.saved + 2 * (size_t)row);

#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            float g[8], xn[8];

            if ((part * WK_WARP + lane) * 8 >= j.cols)
                continue;
            wk_values8(g, d_y[part]);
            wk_values8(xn, x[part]);
#pragma unroll
            for (int i = 0; i < 8; i++) {
                xn[i] = (xn[i] - saved.x) * saved.y;
                d_weight[part][i] += g[i] * xn[i];
                d_bias[part][i] += g[i];
                g[i] *= weight[part][i];
                g_sum += g[i];
                g_xn_sum += g[i] * xn[i];
            }
        }
        g_sum = wk_warp_sum(g_sum) / (float)j.cols;
        g_xn_sum = wk_warp_sum(g_xn_sum) / (float)j.cols;
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            int col = (part * WK_WARP + lane) * 8;
            float g[8], xn[8], mask[8];

            if (col >= j.cols)
                continue;
            wk_values8(g, d_y[part]);
            wk_values8(xn, x[part]);
#pragma unroll
            for (int i = 0; i < 8; i++) {
                xn[i] = (xn[i] - saved.x) * saved.y;
                g[i] = saved.y * (g[i] * weight[part][i] - g_sum - xn[i] * g_xn_sum);
            }
            wk_store8(n.d_sum + at + col, g);
            if (!n.d_x)
                continue;
            if (j.drop.limit) {
                wk_mask8(mask, j.draw, j.drop, numbers.eights + (uint32_t)col / 8, numbers.sample,
                         numbers.step);
#pragma unroll
                for (int i = 0; i < 8; i++)
                    g[i] *= mask[i];
            }
            wk_store8(n.d_x + at + col, g);
        }
    }
    float *partial = n.partial + (size_t)blockIdx.x * 2 * j.cols;

    store_partial<PARTS>(partial, d_weight, (float *)wk_shared(), j.cols);
    store_partial<PARTS>(partial + j.cols, d_bias, (float *)wk_shared(), j.cols);
}

/* The same for any width, in two kernels: the weights first, because d_sum may take the place of d_y. Block (32 columns, strip of
 * rows). */
template <typename T, typename W>
static __global__ void __launch_bounds__(THREADS)
    norm_weights_any_kernel(struct norm_gradients<T, W> n, int rows, int cols)
{
    __shared__ float sums[2][WARPS][WK_WARP];
    int lane = (int)threadIdx.x % WK_WARP, warp = (int)threadIdx.x / WK_WARP;
    int col = (int)blockIdx.x * WK_WARP + lane;
    float d_weight = 0, d_bias = 0;

    for (int row = (int)blockIdx.y * WARPS + warp; col < cols && row < rows;
         row += (int)gridDim.y * WARPS) {
        float d = wk_to_float(n.d_y[(size_t)row * cols + col]);

        d_weight += d * (wk_to_float(n.sum[(size_t)row * cols + col]) - n.saved[2 * (size_t)row]) *
                    n.saved[2 * (size_t)row + 1];
        d_bias += d;
    }
    sums[0][warp][lane] = d_weight;
    sums[1][warp][lane] = d_bias;
    __syncthreads();
    if (warp < 2 && col < cols) {
        float total = 0;

        for (int w = 0; w < WARPS; w++)
            total += sums[warp][w][lane];
        n.partial[((size_t)blockIdx.y * 2 + warp) * cols + col] = total;
    }
}

template <typename T, typename W>
static __global__ void __launch_bounds__(NORM_WARPS *WK_WARP)
    norm_rows_any_kernel(struct norm_gradients<T, W> n, struct norm_job j)
{
    int lane = (int)threadIdx.x % WK_WARP;
    int row = (int)blockIdx.x * NORM_WARPS + (int)threadIdx.x / WK_WARP;
    float g_sum = 0, g_xn_sum = 0;

    if (row >= j.p.rows)
        return;
    struct row_numbers numbers = row_numbers_of(j, row);
    size_t at = (size_t)row * j.cols;
    float mean = n.saved[2 * (size_t)row], inverse = n.saved[2 * (size_t)row + 1];

    for (int col = lane; col < j.cols; col += WK_WARP) {
        float g = wk_to_float(n.d_y[at + col]) * wk_to_float(n.weight[col]);

        g_sum += g;
        g_xn_sum += g * (wk_to_float(n.sum[at + col]) - mean) * inverse;
    }
    g_sum = wk_warp_sum(g_sum) / (float)j.cols;
    g_xn_sum = wk_warp_sum(g_xn_sum) / (float)j.cols;
    for (int col = lane; col < j.cols; col += WK_WARP) {
        float g = wk_to_float(n.d_y[at + col]) * wk_to_float(n.weight[col]);
        float d =
            inverse * (g - g_sum - (wk_to_float(n.sum[at + col]) - mean) * inverse * g_xn_sum);

        n.d_sum[at + col] = wk_from_float<T>(d);
        if (n.d_x)
            n.d_x[at + col] = wk_from_float<T>(d * factor_at(j, numbers, col));
    }
}

static unsigned norm_blocks(int rows)
{
    unsigned blocks = wk_blocks((size_t)rows, 4 * NORM_WARPS);

    return blocks > NORM_BLOCKS_MAX ? NORM_BLOCKS_MAX : blocks;
}

size_t wk_cuda_norm_backward_scratch(const struct wk_cuda_packing *p, int cols)
{
    return (size_t)norm_blocks(p->rows) * 2 * cols * sizeof(float);
}

template <typename T, typename W>
static int norm_backward(wk_stream s, const struct norm_gradients<T, W> &n,
                         const struct norm_job &j, bool wide)
{
    int parts = parts_of(j.cols, wide), rows = j.p.rows, rc;
    unsigned blocks = norm_blocks(rows);

    if (parts)
        return with_parts(parts, [&](auto constant) {
            return wk_launch(norm_backward_kernel<T, W, decltype(constant)::value>, dim3(blocks),
                             NORM_WARPS * WK_WARP, NORM_WARPS * j.cols * sizeof(float), s, n, j);
        });
    rc = wk_launch(norm_weights_any_kernel<T, W>, dim3(wk_blocks((size_t)j.cols, WK_WARP), blocks),
                   THREADS, 0, s, n, rows, j.cols);
    if (rc != cudaSuccess)
        return rc;
    return wk_launch(norm_rows_any_kernel<T, W>, dim3(wk_blocks((size_t)rows, NORM_WARPS)),
                     NORM_WARPS * WK_WARP, 0, s, n, j);
}

int wk_cuda_norm_backward(wk_stream s, enum wk_cuda_type t, void *d_sum, void *d_x, float *d_weight,
                          float *d_bias, const void *d_y, const void *sum, enum wk_cuda_type w,
                          const void *weight, const float *saved, const struct wk_cuda_packing *p,
                          int cols, double drop, const struct wk_cuda_rng *rng, void *scratch)
{
    struct norm_job j = norm_job_of(p, cols, 0, drop, rng);
    bool wide = wk_wide(cols, d_sum, d_x, d_y, sum);
    int rc = wk_with_types(t, w, [&](auto a, auto b) {
        typedef decltype(a) T;
        typedef decltype(b) W;
        struct norm_gradients<T, W> n = {
            (T *)d_sum, (T *)d_x, (const T *)d_y, (const T *)sum, (const W *)weight, saved,
                (float *)scratch, wk_wide(cols, weight)
        };

        return norm_backward<T, W>(s, n, j, wide);
    });

    if (rc != cudaSuccess)
        return rc;
    return wk_total(s, wk_targets{ { d_weight, d_bias }, { cols, 2 * cols } },
                    (const float *)scratch, (int)norm_blocks(p->rows), 2 * cols);
}

/* ---- Loss of a span: a block takes a sequence, both columns at once; the block behind the last one clears what fills up ---- */

#define SPAN_THREADS 128

struct span_job {
    const float *logits; /* (rows, 2) */
    const int32_t *starts, *ends;
    float weight; /* of a sequence's column */
    const float *scale;
    float *partial; /* (sequences) */
};

template <typename T>
static __global__ void __launch_bounds__(SPAN_THREADS)
    span_kernel(T *d_logits, struct span_job j, struct wk_cuda_packing p)
{
    __shared__ float room[WK_WARP];
    int s = (int)blockIdx.x, tid = (int)threadIdx.x;
    bool real = s < p.sequences;
    int first = p.first[s], n = (real ? p.first[s + 1] : p.rows) - first;
    const float2 *z = (const float2 *)j.logits + first;
    T *d = d_logits + 2 * (size_t)first;
    float2 top = make_float2(-INFINITY, -INFINITY), sum = make_float2(0, 0), lse;

    if (!real) {
        for (int i = tid; d_logits && i < 2 * n; i += SPAN_THREADS)
            d[i] = wk_from_float<T>(0);
        return;
    }
    for (int i = tid; i < n; i += SPAN_THREADS) {
        top.x = fmaxf(top.x, z[i].x);
        top.y = fmaxf(top.y, z[i].y);
    }
    top.x = wk_block_max(top.x, room);
    top.y = wk_block_max(top.y, room);
    for (int i = tid; i < n; i += SPAN_THREADS) {
        sum.x += expf(z[i].x - top.x);
        sum.y += expf(z[i].y - top.y);
    }
    sum.x = wk_block_sum(sum.x, room);
    sum.y = wk_block_sum(sum.y, room);
    lse = make_float2(top.x + logf(sum.x), top.y + logf(sum.y));
    if (d_logits) {
        float weight = j.weight * (j.scale ? *j.scale : 1.0f);

        for (int i = tid; i < n; i += SPAN_THREADS) {
            d[2 * i] =
                wk_from_float<T>((expf(z[i].x - lse.x) - (float)(i == j.starts[s])) * weight);
            d[2 * i + 1] =
                wk_from_float<T>((expf(z[i].y - lse.y) - (float)(i == j.ends[s])) * weight);
        }
    }
    if (tid == 0)
        j.partial[s] = n == 0 ? 0.0f
                              : logf(sum.x) + (top.x - z[j.starts[s]].x) + logf(sum.y) +
                                    (top.y - z[j.ends[s]].y);
}

static __global__ void __launch_bounds__(SPAN_THREADS)
    span_total_kernel(float *loss, const float *partial, int sequences)
{
    __shared__ double room[WK_WARP];
    double sum = 0;

    for (int s = (int)threadIdx.x; s < sequences; s += SPAN_THREADS)
        sum += (double)partial[s];
    sum = wk_block_sum(sum, room);
    if (threadIdx.x == 0)
        *loss = (float)(sum / 2 / sequences);
}

size_t wk_cuda_span_loss_scratch(const struct wk_cuda_packing *p)
{
    return (size_t)p->sequences * sizeof(float);
}

int wk_cuda_span_loss(wk_stream s, float *loss, enum wk_cuda_type t, void *d_logits,
                      const float *logits, const struct wk_cuda_packing *p, const int32_t *starts,
                      const int32_t *ends, float weight, const float *scale, void *scratch)
{
    struct span_job j = { logits, starts,          ends, weight / 2 / (float)p->sequences,
                          scale,  (float *)scratch };
    int rc = wk_with_type(t, [&](auto a) {
        typedef decltype(a) T;

        return wk_launch(span_kernel<T>, dim3((unsigned)p->sequences + 1), SPAN_THREADS, 0, s,
                         (T *)d_logits, j, *p);
    });

    if (rc != cudaSuccess)
        return rc;
    return wk_launch(span_total_kernel, dim3(1), SPAN_THREADS, 0, s, loss, (const float *)scratch,
                     p->sequences);
}
