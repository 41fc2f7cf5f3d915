/* SPDX-License-Identifier: Apache-2.0 */
/* What this CPU can do with OMP_NUM_THREADS threads, as JSON: FLOP/s of a large OpenBLAS product in fp32, whose rows the threads share as in the
 * cpu backend, and bytes/s of a triad a = b + s c over memory larger than any cache (two reads and a write an element; a line that is
 * fetched before it is overwritten does not count). Each is the best of some seconds. */
#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { N = 1536 };
#define ELEMENTS ((size_t)1 << 26) /* 256 MiB each */
#define SEARCH_S 4.0

static void product(float *c, const float *a, const float *b)
{
    int rows = N * omp_get_max_threads();

#pragma omp parallel
    {
        int first = rows / omp_get_num_threads() * omp_get_thread_num();

        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows / omp_get_num_threads(), N, N,
                    1, a + (size_t)first * N, N, b, N, 0, c + (size_t)first * N, N);
    }
}

static void triad(float *a, const float *b, const float *c)
{
#pragma omp parallel for
    for (size_t i = 0; i < ELEMENTS; i++)
        a[i] = b[i] + 3 * c[i];
}

/* Seconds of the fastest. Work of n elements each, first touched by the threads that use them. */
static double best_s(void (*work)(float *, const float *, const float *), size_t n)
{
    float *x[3];
    double begin, best = INFINITY, end = hg_clock_mono_s() + SEARCH_S;

    for (int k = 0; k < 3; k++) {
        float *y = x[k] = hg_alloc(n * sizeof *y);

#pragma omp parallel for
        for (size_t i = 0; i < n; i++)
            y[i] = 1;
    }
    do {
        begin = hg_clock_mono_s();
        work(x[0], x[1], x[2]);
        best = fmin(best, hg_clock_mono_s() - begin);
    } while (hg_clock_mono_s() < end);
    for (int k = 0; k < 3; k++)
        free(x[k]);
    return best;
}

int main(void)
{
    double threads = omp_get_max_threads(), flops, bytes;

    openblas_set_num_threads(1);
    flops = 2.0 * N * N * N * threads / best_s(product, (size_t)threads * N * N);
    bytes = 3.0 * sizeof(float) * ELEMENTS / best_s(triad, ELEMENTS);
    printf("{\"flops\": %.4g, \"bytes_per_s\": %.4g}\n", flops, bytes);
    return 0;
}
