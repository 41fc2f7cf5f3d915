/* SPDX-License-Identifier: Apache-2.0 */
/* What the RNN's head needs: batch normalisation, dropout, classification, and all of it but the loss in one launch each way. Twins: backends/cpu/cpu.c.
 * The batches are small, so these are bound by latency: few launches, no second stage. */
#include "backends/cuda/device.cuh"

#define THREADS 256

/* ---- Batch normalisation: a block takes 8 columns, 32 threads the rows of each ---- */

#define BATCHNORM_EPS 1e-5
#define BATCHNORM_MOMENTUM 0.1f
#define COLS 8

/* Sums over the threads of a column, which stand N apart. All threads must call. */
template <int N> static __device__ __forceinline__ float column_sum(float x, float (*room)[N])
{
    int col = (int)threadIdx.x % N, lane = (int)threadIdx.x / N;
    float sum = 0;

    __syncthreads();
    room[lane][col] = x;
    __syncthreads();
    for (int i = 0; i < THREADS / N; i++)
        sum += room[i][col];
    return sum;
}

/* Mean, and sum of squared distances from it, of this thread's column of N from x on, if there is a real one. All threads must call. */
template <int N, typename T>
static __device__ __forceinline__ float2 moments(const T *x, int rows, int cols, bool real,
                                                 float (*room)[N])
{
    int col = (int)threadIdx.x % N, lane = (int)threadIdx.x / N, end = real ? rows : 0;
    float sum = 0, square = 0, mean;

    for (int row = lane; row < end; row += THREADS / N)
        sum += wk_to_float(x[(size_t)row * cols + col]);
    mean = column_sum(sum, room) / (float)rows;
    for (int row = lane; row < end; row += THREADS / N) {
        float d = wk_to_float(x[(size_t)row * cols + col]) - mean;

        square += d * d;
    }
    return make_float2(mean, column_sum(square, room));
}

static __device__ __forceinline__ float inverse_of(float square, int rows)
{
    return (float)(1 / sqrt((double)(square / (float)rows) + BATCHNORM_EPS));
}

/* For backward, and moves the running ones. */
static __device__ __forceinline__ void keep_statistics(float *saved, float *running_mean,
                                                       float *running_var, float2 moments,
                                                       float inverse, int col, int rows, int cols)
{
    saved[col] = moments.x;
    saved[cols + col] = inverse;
    running_mean[col] =
        (1 - BATCHNORM_MOMENTUM) * running_mean[col] + BATCHNORM_MOMENTUM * moments.x;
    running_var[col] = (1 - BATCHNORM_MOMENTUM) * running_var[col] +
                       BATCHNORM_MOMENTUM * (moments.y / (float)(rows - 1));
}

template <typename T, typename W>
static __global__ void __launch_bounds__(THREADS)
    batchnorm_kernel(T *y, float *saved, float *running_mean, float *running_var, const T *x,
                     const W *weight, const W *bias, int rows, int cols)
{
    __shared__ float room[THREADS / COLS][COLS];
    int col = (int)(blockIdx.x * COLS + threadIdx.x % COLS), lane = (int)threadIdx.x / COLS;
    bool real = col < cols;
    float2 m = moments<COLS>(x + blockIdx.x * COLS, rows, cols, real, room);
    float inverse = inverse_of(m.y, rows);

    for (int row = real ? lane : rows; row < rows; row += THREADS / COLS) {
        size_t at = (size_t)row * cols + col;

        y[at] = wk_from_float<T>((wk_to_float(x[at]) - m.x) * inverse * wk_to_float(weight[col]) +
                                 wk_to_float(bias[col]));
    }
    if (lane == 0 && real)
        keep_statistics(saved, running_mean, running_var, m, inverse, col, rows, cols);
}

int wk_cuda_batchnorm_forward(wk_stream s, enum wk_cuda_type t, void *y, float *saved,
                              float *running_mean, float *running_var, const void *x,
                              enum wk_cuda_type w, const void *weight, const void *bias, int rows,
                              int cols)
{
    return wk_with_types(t, w, [&](auto a, auto b) {
        typedef decltype(a) T;
        typedef decltype(b) W;

        return wk_launch(batchnorm_kernel<T, W>, dim3(wk_blocks((size_t)cols, COLS)), THREADS, 0, s,
                         (T *)y, saved, running_mean, running_var, (const T *)x, (const W *)weight,
                         (const W *)bias, rows, cols);
    });
}

template <typename T, typename W>
static __global__ void __launch_bounds__(THREADS)
    batchnorm_infer_kernel(T *y, const float *running_mean, const float *running_var, const T *x,
                           const W *weight, const W *bias, int rows, int cols)
{
    size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    int col = (int)(at % cols);

    if (at >= (size_t)rows * cols)
        return;
    float a = wk_to_float(weight[col]) / (float)sqrt((double)running_var[col] + BATCHNORM_EPS);

    y[at] = wk_from_float<T>((wk_to_float(x[at]) - running_mean[col]) * a + wk_to_float(bias[col]));
}

int wk_cuda_batchnorm_infer(wk_stream s, enum wk_cuda_type t, void *y, const float *running_mean,
                            const float *running_var, const void *x, enum wk_cuda_type w,
                            const void *weight, const void *bias, int rows, int cols)
{
    return wk_with_types(t, w, [&](auto a, auto b) {
        typedef decltype(a) T;
        typedef decltype(b) W;

        return wk_launch(batchnorm_infer_kernel<T, W>,
                         dim3(wk_blocks((size_t)rows * cols, THREADS)), THREADS, 0, s, (T *)y,
                         running_mean, running_var, (const T *)x, (const W *)weight,
                         (const W *)bias, rows, cols);
    });
}

/* With xn = (x - mean) inverse: d_x = weight inverse (d_y - mean(d_y) - xn mean(d_y xn)). */
template <typename T, typename W>
static __global__ void __launch_bounds__(THREADS)
    batchnorm_backward_kernel(T *d_x, float *d_weight, float *d_bias, const T *d_y, const T *x,
                              const W *weight, const float *saved, int rows, int cols)
{
    __shared__ float room[THREADS / COLS][COLS];
    int col = (int)(blockIdx.x * COLS + threadIdx.x % COLS), lane = (int)threadIdx.x / COLS;
    int end = col < cols ? rows : 0;
    float mean = end ? saved[col] : 0.0f, inverse = end ? saved[cols + col] : 0.0f;
    float sum = 0, sum_xn = 0;

    for (int row = lane; row < end; row += THREADS / COLS) {
        size_t at = (size_t)row * cols + col;
        float d = wk_to_float(d_y[at]);

        sum += d;
        sum_xn += d * (wk_to_float(x[at]) - mean) * inverse;
    }
    sum = column_sum(sum, room);
    sum_xn = column_sum(sum_xn, room);
    for (int row = lane; row < end; row += THREADS / COLS) {
        size_t at = (size_t)row * cols + col;
        float xn = (wk_to_float(x[at]) - mean) * inverse;

        d_x[at] = wk_from_float<T>(
            wk_to_float(weight[col]) * inverse *
            (wk_to_float(d_y[at]) - sum / (float)rows - xn * (sum_xn / (float)rows)));
    }
    if (lane == 0 && col < cols) {
        d_weight[col] += sum_xn;
        d_bias[col] += sum;
    }
}

int wk_cuda_batchnorm_backward(wk_stream s, enum wk_cuda_type t, void *d_x, float *d_weight,
                               float *d_bias, const void *d_y, const void *x, enum wk_cuda_type w,
                               const void *weight, const float *saved, int rows, int cols)
{
    return wk_with_types(t, w, [&](auto a, auto b) {
        typedef decltype(a) T;
        typedef decltype(b) W;

        return wk_launch(batchnorm_backward_kernel<T, W>, dim3(wk_blocks((size_t)cols, COLS)),
                         THREADS, 0, s, (T *)d_x, d_weight, d_bias, (const T *)d_y, (const T *)x,
                         (const W *)weight, saved, rows, cols);
    });
}

/* ---- Dropout: a thread takes the eight elements of one counter ---- */

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    dropout_kernel(T *y, const T *x, const int32_t *sample, int rows, int cols, struct wk_drop drop,
                   struct wk_draw draw)
{
    int eights = (cols + 7) / 8;
    size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    int row = (int)(at / eights), eight = (int)(at % eights);
    uint32_t bits[4];

    if (row >= rows)
        return;
    wk_numbers(bits, draw, (uint32_t)eight, draw.site, (uint32_t)sample[row], wk_step_of(draw));
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (8 * eight + i < cols) {
            size_t to = (size_t)row * cols + 8 * eight + i;

            y[to] =
                wk_from_float<T>(wk_kept(bits, i, drop) ? wk_to_float(x[to]) * drop.factor : 0.0f);
        }
}

int wk_cuda_dropout(wk_stream s, enum wk_cuda_type t, void *y, const void *x, const int32_t *sample,
                    int rows, int cols, double p, const struct wk_cuda_rng *rng)
{
    size_t n = (size_t)rows * ((size_t)(cols + 7) / 8);

    return wk_with_type(t, [&](auto a) {
        typedef decltype(a) T;

        return wk_launch(dropout_kernel<T>, dim3(wk_blocks(n, THREADS)), THREADS, 0, s, (T *)y,
                         (const T *)x, sample, rows, cols, wk_drop_of(p), wk_draw_of(*rng));
    });
}

/* ---- Classification: one block, a thread takes a row at a time ---- */

#define ROW_THREADS 512

static __device__ __forceinline__ int largest(const float *z, int classes)
{
    int best = 0;

    for (int k = 1; k < classes; k++)
        if (z[k] > z[best])
            best = k;
    return best;
}

/* Loss of one row; *top and *sum make its probabilities exp(z - top) / sum. */
static __device__ __forceinline__ float row_loss(const float *z, int label, int classes, float *top,
                                                 float *sum)
{
    *top = z[largest(z, classes)];
    *sum = 0;
    for (int k = 0; k < classes; k++)
        *sum += expf(z[k] - *top);
    return logf(*sum) - (z[label] - *top);
}

template <typename T>
static __global__ void __launch_bounds__(ROW_THREADS)
    nll_kernel(float *loss, T *d_logits, const float *logits, const int32_t *labels, int rows,
               int classes, float weight, const float *scale)
{
    __shared__ double room[WK_WARP];
    float share = weight * (scale ? *scale : 1.0f) / (float)rows;
    double total = 0;

    for (int row = (int)threadIdx.x; row < rows; row += ROW_THREADS) {
        const float *z = logits + (size_t)row * classes;
        T *d = d_logits + (size_t)row * classes;
        int label = labels[row];
        float top, sum;

        total += (double)row_loss(z, label, classes, &top, &sum);
        for (int k = 0; k < classes; k++)
            d[k] = wk_from_float<T>((expf(z[k] - top) / sum - (float)(k == label)) * share);
    }
    total = wk_block_sum(total, room);
    if (threadIdx.x == 0)
        *loss = (float)(total / rows);
}

size_t wk_cuda_nll_scratch(int rows)
{
    (void)rows;
    return 0;
}

int wk_cuda_nll(wk_stream s, float *loss, enum wk_cuda_type t, void *d_logits, const float *logits,
                const int32_t *labels, int rows, int classes, float weight, const float *scale,
                void *scratch)
{
    (void)scratch;
    return wk_with_type(t, [&](auto a) {
        typedef decltype(a) T;

        return wk_launch(nll_kernel<T>, dim3(1), ROW_THREADS, 0, s, loss, (T *)d_logits, logits,
                         labels, rows, classes, weight, scale);
    });
}

static __global__ void __launch_bounds__(ROW_THREADS)
    nll_score_kernel(float *out, const float *logits, const int32_t *labels, int rows, int classes)
{
    __shared__ double room[WK_WARP];
    double total = 0, right = 0;

    for (int row = (int)threadIdx.x; row < rows; row += ROW_THREADS) {
        const float *z = logits + (size_t)row * classes;
        float top, sum;

        total += (double)row_loss(z, labels[row], classes, &top, &sum);
        right += largest(z, classes) == labels[row];
    }
    total = wk_block_sum(total, room);
    right = wk_block_sum(right, room);
    if (threadIdx.x == 0) {
        out[0] = (float)total;
        out[1] = (float)right;
    }
}

int wk_cuda_nll_score(wk_stream s, float *out, const float *logits, const int32_t *labels, int rows,
                      int classes, void *scratch)
{
    (void)scratch;
    return wk_launch(nll_score_kernel, dim3(1), ROW_THREADS, 0, s, out, logits, labels, rows,
                     classes);
}

/* ---- The whole head but its loss. Nothing waits for another block: in forward each makes the statistics of all columns, in backward each of all
 * but the last block takes COLS columns and makes the gradient of the middle, which is small, for all rows. ---- */

#define STRIP 64                      /* columns whose statistics are made at once */
#define HEAD_ROWS (THREADS / WK_WARP) /* rows that a block of forward takes at once, a warp each */
#define HEAD_BLOCKS 32                /* most blocks of forward */
#define TILE 64                       /* rows that a block of backward takes at once */
#define MID WK_WARP                   /* most values in the middle, and classes */
static_assert(THREADS / COLS == MID, "in backward a thread has one weight of the first layer");

struct head_job {
    struct wk_cuda_head h;
    struct wk_drop drop_in, drop_mid;
    struct wk_draw draw; /* in the middle: at the next site */
};

/* What dropout multiplies an element with. */
static __device__ __forceinline__ float head_factor(const struct head_job &j,
                                                    const struct wk_drop &drop, uint32_t site,
                                                    int row, int col)
{
    uint32_t bits[4];

    if (!drop.limit)
        return 1;
    wk_numbers(bits, j.draw, (uint32_t)col / 8, site, (uint32_t)j.h.sample[row],
               wk_step_of(j.draw));
    return wk_kept(bits, col % 8, drop) ? drop.factor : 0.0f;
}

/* Shared memory of forward, in this order: floats. */
struct head_room {
    float *mean, *inverse; /* (in) */
    float *weight1;        /* (mid, in + 1): neighbouring rows in other banks */
    float *normed;         /* (HEAD_ROWS, in) */
};

static size_t head_room_bytes(const struct wk_cuda_head *h)
{
    return ((size_t)h->in * (2 + HEAD_ROWS) + (size_t)h->mid * (h->in + 1)) * sizeof(float);
}

template <typename T>
static __device__ __forceinline__ void head_statistics(const struct head_room &to,
                                                       const struct wk_cuda_head &h,
                                                       float *running_mean, float *running_var)
{
    __shared__ float room[THREADS / STRIP][STRIP];

    for (int first = 0; first < h.in; first += STRIP) {
        int col = first + (int)threadIdx.x % STRIP;
        bool real = col < h.in;
        float2 m = moments<STRIP>((const T *)h.x + first, h.rows, h.in, real, room);
        float inverse = inverse_of(m.y, h.rows);

        if (!real || threadIdx.x >= STRIP)
            continue;
        to.mean[col] = m.x;
        to.inverse[col] = inverse;
        if (blockIdx.x == 0)
            keep_statistics(h.saved, running_mean, running_var, m, inverse, col, h.rows, h.in);
    }
}

/* Rows from `first` on: normalised and dropped out, as the first layer reads them. */
template <typename T, typename W>
static __device__ __forceinline__ void head_norm(const struct head_room &to,
                                                 const struct head_job &j, int first)
{
    const struct wk_cuda_head &h = j.h;

    for (int i = (int)threadIdx.x; i < HEAD_ROWS * h.in; i += THREADS) {
        int row = first + i / h.in, col = i % h.in;
        size_t at = (size_t)row * h.in + col;
        float y;

        if (row >= h.rows)
            return;
        y = (wk_to_float(((const T *)h.x)[at]) - to.mean[col]) * to.inverse[col] *
                wk_to_float(((const W *)h.norm_weight)[col]) +
            wk_to_float(((const W *)h.norm_bias)[col]);
        T out = wk_from_float<T>(y * head_factor(j, j.drop_in, j.draw.site, row, col));

        ((T *)h.normed)[at] = out;
        to.normed[i] = wk_to_float(out);
    }
}

/* An element of the middle, as the second layer reads it. */
template <typename T, typename W>
static __device__ __forceinline__ float head_middle(const struct head_room &from,
                                                    const struct head_job &j, int warp, int row,
                                                    int m)
{
    const struct wk_cuda_head &h = j.h;
    const float *x = from.normed + warp * h.in, *w = from.weight1 + m * (h.in + 1);
    float sum = 0;

    for (int k = 0; k < h.in; k++)
        sum += x[k] * w[k];
    sum += wk_to_float(((const W *)h.bias1)[m]);
    sum = sum < 0 ? 0.0f : sum; /* NaN stays */
    T out = wk_from_float<T>(sum * head_factor(j, j.drop_mid, j.draw.site + 1, row, m));

    ((T *)h.dense)[(size_t)row * h.mid + m] = out;
    return wk_to_float(out);
}

template <typename T, typename W>
static __global__ void __launch_bounds__(THREADS)
    head_kernel(struct head_job j, float *logits, float *running_mean, float *running_var)
{
    __shared__ float dense[HEAD_ROWS][MID], weight2[MID][MID + 1];
    const struct wk_cuda_head &h = j.h;
    float *shared = (float *)wk_shared();
    struct head_room room = { shared, shared + h.in, shared + 2 * h.in,
                              shared + 2 * h.in + h.mid * (h.in + 1) };
    int lane = (int)threadIdx.x % WK_WARP, warp = (int)threadIdx.x / WK_WARP;

    for (int i = (int)threadIdx.x; i < h.mid * h.in; i += THREADS)
        room.weight1[i / h.in * (h.in + 1) + i % h.in] = wk_to_float(((const W *)h.weight1)[i]);
    for (int i = (int)threadIdx.x; i < h.out * h.mid; i += THREADS)
        weight2[i / h.mid][i % h.mid] = wk_to_float(((const W *)h.weight2)[i]);
    head_statistics<T>(room, h, running_mean, running_var);
    __syncthreads();
    for (int first = (int)blockIdx.x * HEAD_ROWS; first < h.rows;
         first += (int)gridDim.x * HEAD_ROWS) {
        int row = first + warp;
        float sum = 0;

        head_norm<T, W>(room, j, first);
        __syncthreads();
        if (row < h.rows && lane < h.mid)
            dense[warp][lane] = head_middle<T, W>(room, j, warp, row, lane);
        __syncthreads();
        if (row < h.rows && lane < h.out) {
            for (int m = 0; m < h.mid; m++)
                sum += dense[warp][m] * weight2[lane][m];
            logits[(size_t)row * h.out + lane] = sum + wk_to_float(((const W *)h.bias2)[lane]);
        }
    }
}

static bool head_fits(const struct wk_cuda_head *h)
{
    return h->mid <= MID && h->out <= MID;
}

static struct head_job head_job_of(const struct wk_cuda_head *h)
{
    return head_job{ *h, wk_drop_of(h->drop_in), wk_drop_of(h->drop_mid), wk_draw_of(h->rng) };
}

int wk_cuda_head_forward(wk_stream s, enum wk_cuda_type t, enum wk_cuda_type w,
                         const struct wk_cuda_head *h, float *logits, float *running_mean,
                         float *running_var)
{
    unsigned blocks = wk_blocks((size_t)h->rows, HEAD_ROWS);

    if (!head_fits(h))
        return cudaErrorInvalidValue;
    return wk_with_types(t, w, [&](auto a, auto b) {
        return wk_launch(head_kernel<decltype(a), decltype(b)>,
                         dim3(blocks < HEAD_BLOCKS ? blocks : HEAD_BLOCKS), THREADS,
                         head_room_bytes(h), s, head_job_of(h), logits, running_mean, running_var);
    });
}

/* A tile of rows in backward. */
struct head_tile {
    float d_logits[TILE][MID], d_mid[TILE][MID + 1];
    float d[TILE][COLS], normed[TILE][COLS]; /* of the block's columns */
    float weight1[MID][COLS], weight2[MID][MID];
};

/* Gradients of logits and of the middle, before its ReLU; zeros behind the last row. */
template <typename T>
static __device__ __forceinline__ void head_d_middle(struct head_tile &tile,
                                                     const struct head_job &j, const T *d_logits,
                                                     int first)
{
    const struct wk_cuda_head &h = j.h;
    int m = (int)threadIdx.x % MID;

    __syncthreads(); /* the last tile's readers are done */
    for (int r = (int)threadIdx.x / MID; r < TILE; r += THREADS / MID)
        tile.d_logits[r][m] = first + r < h.rows && m < h.out
                                  ? wk_to_float(d_logits[(size_t)(first + r) * h.out + m])
                                  : 0.0f;
    __syncthreads();
    for (int r = (int)threadIdx.x / MID; r < TILE; r += THREADS / MID) {
        size_t at = (size_t)(first + r) * h.mid + m;
        float sum = 0;

        if (first + r < h.rows && m < h.mid && wk_to_float(((const T *)h.dense)[at]) > 0) {
            for (int o = 0; o < h.out; o++)
                sum += tile.d_logits[r][o] * tile.weight2[o][m];
            sum *= j.drop_mid.factor;
        }
        tile.d_mid[r][m] = sum;
    }
    __syncthreads();
}

/* Gradient of the normalised values before dropout, in this block's columns, a row's by neighbouring threads. */
template <typename T>
static __device__ __forceinline__ void head_d_normed(struct head_tile &tile,
                                                     const struct head_job &j, const T *d_logits,
                                                     int first)
{
    const struct wk_cuda_head &h = j.h;
    int c = (int)threadIdx.x % COLS, col = (int)blockIdx.x * COLS + c;

    head_d_middle(tile, j, d_logits, first);
    for (int r = (int)threadIdx.x / COLS; r < TILE; r += THREADS / COLS) {
        bool real = first + r < h.rows && col < h.in;
        float sum = 0;

        for (int m = 0; real && m < h.mid; m++)
            sum += tile.d_mid[r][m] * tile.weight1[m][c];
        if (real)
            sum *= head_factor(j, j.drop_in, j.draw.site, first + r, col);
        tile.d[r][c] = sum;
        tile.normed[r][c] =
            real ? wk_to_float(((const T *)h.normed)[(size_t)(first + r) * h.in + col]) : 0.0f;
    }
    __syncthreads();
}

/* Of COLS columns: gradients of x, of the normalisation's weights, and of the first layer's. With xn as in batchnorm_backward_kernel. */
template <typename T, typename W>
static __device__ __forceinline__ void head_columns(struct head_tile &tile, float (*room)[COLS],
                                                    const struct head_job &j,
                                                    const struct wk_cuda_head_gradients &d, T *d_x,
                                                    const T *d_logits)
{
    const struct wk_cuda_head &h = j.h;
    int c = (int)threadIdx.x % COLS, lane = (int)threadIdx.x / COLS;
    int col = (int)blockIdx.x * COLS + c;
    bool real = col < h.in;
    float mean = real ? h.saved[col] : 0.0f, inverse = real ? h.saved[h.in + col] : 0.0f;
    float sum = 0, sum_xn = 0, d_weight = 0;
    const T *x = (const T *)h.x;

    for (int m = lane; m < h.mid; m += THREADS / COLS)
        tile.weight1[m][c] =
            real ? wk_to_float(((const W *)h.weight1)[(size_t)m * h.in + col]) : 0.0f;
    for (int first = 0; first < h.rows; first += TILE) {
        head_d_normed(tile, j, d_logits, first);
        for (int r = lane; real && r < TILE && first + r < h.rows; r += THREADS / COLS) {
            sum += tile.d[r][c];
            sum_xn +=
                tile.d[r][c] * (wk_to_float(x[(size_t)(first + r) * h.in + col]) - mean) * inverse;
        }
        for (int r = 0; r < TILE; r++) /* lane: a value of the middle */
            d_weight += tile.d_mid[r][lane] * tile.normed[r][c];
    }
    sum = column_sum<COLS>(sum, room);
    sum_xn = column_sum<COLS>(sum_xn, room);
    for (int first = 0; first < h.rows; first += TILE) {
        if (h.rows > TILE) /* another tile than the last was */
            head_d_normed(tile, j, d_logits, first);
        for (int r = lane; real && r < TILE && first + r < h.rows; r += THREADS / COLS) {
            size_t at = (size_t)(first + r) * h.in + col;
            float xn = (wk_to_float(x[at]) - mean) * inverse;

            d_x[at] = wk_from_float<T>(
                wk_to_float(((const W *)h.norm_weight)[col]) * inverse *
                (tile.d[r][c] - sum / (float)h.rows - xn * (sum_xn / (float)h.rows)));
        }
    }
    if (real && lane < h.mid)
        d.weight1[(size_t)lane * h.in + col] += d_weight;
    if (real && lane == 0) {
        d.norm_weight[col] += sum_xn;
        d.norm_bias[col] += sum;
    }
}

/* The second layer's gradients and those of the first's bias: a lane has a value of the middle. */
template <typename T>
static __device__ __forceinline__ void head_second(struct head_tile &tile, const struct head_job &j,
                                                   const struct wk_cuda_head_gradients &d,
                                                   const T *d_logits)
{
    const struct wk_cuda_head &h = j.h;
    int m = (int)threadIdx.x % MID, warp = (int)threadIdx.x / MID;
    float weight[MID * MID / THREADS] = { 0 }, bias1 = 0, bias2 = 0;

    for (int first = 0; first < h.rows; first += TILE) {
        head_d_middle(tile, j, d_logits, first);
        for (int r = 0; r < TILE && first + r < h.rows; r++) {
            float y = m < h.mid ? wk_to_float(((const T *)h.dense)[(size_t)(first + r) * h.mid + m])
                                : 0.0f;

#pragma unroll
            for (int k = 0; k < MID * MID / THREADS; k++)
                weight[k] += tile.d_logits[r][warp + k * (THREADS / MID)] * y;
            bias1 += tile.d_mid[r][m];
            bias2 += tile.d_logits[r][m];
        }
    }
#pragma unroll
    for (int k = 0; k < MID * MID / THREADS; k++) {
        int o = warp + k * (THREADS / MID);

        if (o < h.out && m < h.mid)
            d.weight2[o * h.mid + m] += weight[k];
    }
    if (warp == 0 && m < h.mid)
        d.bias1[m] += bias1;
    if (warp == 0 && m < h.out)
        d.bias2[m] += bias2;
}

template <typename T, typename W>
static __global__ void __launch_bounds__(THREADS)
    head_backward_kernel(struct head_job j, struct wk_cuda_head_gradients d, T *d_x,
                         const T *d_logits)
{
    __shared__ struct head_tile tile;
    __shared__ float room[THREADS / COLS][COLS];

    for (int i = (int)threadIdx.x; i < j.h.out * j.h.mid; i += THREADS)
        tile.weight2[i / j.h.mid][i % j.h.mid] = wk_to_float(((const W *)j.h.weight2)[i]);
    if (blockIdx.x + 1 < gridDim.x)
        head_columns<T, W>(tile, room, j, d, d_x, d_logits);
    else
        head_second(tile, j, d, d_logits);
}

int wk_cuda_head_backward(wk_stream s, enum wk_cuda_type t, enum wk_cuda_type w,
                          const struct wk_cuda_head *h, const struct wk_cuda_head_gradients *d,
                          void *d_x, const void *d_logits)
{
    if (!head_fits(h))
        return cudaErrorInvalidValue;
    return wk_with_types(t, w, [&](auto a, auto b) {
        typedef decltype(a) T;

        return wk_launch(head_backward_kernel<T, decltype(b)>,
                         dim3(wk_blocks((size_t)h->in, COLS) + 1), THREADS, 0, s, head_job_of(h),
                         *d, (T *)d_x, (const T *)d_logits);
    });
}
