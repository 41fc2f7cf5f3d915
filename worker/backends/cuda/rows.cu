/* SPDX-License-Identifier: Apache-2.0 */
/* What the RNN's head needs: batch normalisation, dropout, classification. Twins: backends/cpu/cpu.c. The batches are small, so these
 * are bound by latency: few launches, no second stage. */
#include "backends/cuda/device.cuh"

#define THREADS 256

/* ---- Batch normalisation: a block takes 8 columns, 32 threads the rows of each ---- */

#define BATCHNORM_EPS 1e-5
#define BATCHNORM_MOMENTUM 0.1f
#define COLS 8

/* Sums over the 32 threads of a column, which stand COLS apart. All threads must call. */
static __device__ __forceinline__ float column_sum(float x, float (*room)[COLS])
{
    int col = (int)threadIdx.x % COLS, lane = (int)threadIdx.x / COLS;
    float sum = 0;

    __syncthreads();
    room[lane][col] = x;
    __syncthreads();
    for (int i = 0; i < THREADS / COLS; i++)
        sum += room[i][col];
    return sum;
}

template <typename T, typename W>
static __global__ void __launch_bounds__(THREADS)
    batchnorm_kernel(T *y, float *saved, float *running_mean, float *running_var, const T *x,
                     const W *weight, const W *bias, int rows, int cols)
{
    __shared__ float room[THREADS / COLS][COLS];
    int col = (int)(blockIdx.x * COLS + threadIdx.x % COLS), lane = (int)threadIdx.x / COLS;
    int end = col < cols ? rows : 0;
    float sum = 0, square = 0, mean, inverse;

    for (int row = lane; row < end; row += THREADS / COLS)
        sum += wk_to_float(x[(size_t)row * cols + col]);
    mean = column_sum(sum, room) / (float)rows;
    for (int row = lane; row < end; row += THREADS / COLS) {
        float d = wk_to_float(x[(size_t)row * cols + col]) - mean;

        square += d * d;
    }
    square = column_sum(square, room);
    inverse = (float)(1 / sqrt((double)(square / (float)rows) + BATCHNORM_EPS));
    for (int row = lane; row < end; row += THREADS / COLS) {
        size_t at = (size_t)row * cols + col;

        y[at] = wk_from_float<T>((wk_to_float(x[at]) - mean) * inverse * wk_to_float(weight[col]) +
                                 wk_to_float(bias[col]));
    }
    if (lane == 0 && col < cols) {
        saved[col] = mean;
        saved[cols + col] = inverse;
        running_mean[col] =
            (1 - BATCHNORM_MOMENTUM) * running_mean[col] + BATCHNORM_MOMENTUM * mean;
        running_var[col] = (1 - BATCHNORM_MOMENTUM) * running_var[col] +
                           BATCHNORM_MOMENTUM * (square / (float)(rows - 1));
    }
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
