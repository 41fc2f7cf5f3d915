/* SPDX-License-Identifier: Apache-2.0 */
/* Is the emulator a test? Kernels with known faults must show, and fragments must be those of matrices multiplied by hand. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cuda/device.cuh"

#define THREADS 128

static int failures;

static void check(const char *what, bool good)
{
    printf("%s %s\n", good ? "ok    " : "FAILED", what);
    failures += !good;
}

/* ---- Faults ---- */

/* Each thread reads what its neighbour wrote. */
static __global__ void neighbour_kernel(int *to, bool barrier)
{
    __shared__ int room[THREADS];
    unsigned i = threadIdx.x;

    room[i] = -1;
    __syncthreads();
    room[i] = (int)i;
    if (barrier)
        __syncthreads();
    to[i] = room[(i + 1) % THREADS];
}

static bool same_in_all_orders(bool barrier)
{
    int first[THREADS], other[THREADS];
    bool same = true;

    emu_seed(0);
    wk_launch(neighbour_kernel, dim3(1), THREADS, 0, NULL, first, barrier);
    for (uint64_t seed = 1; seed < 4; seed++) {
        emu_seed(seed);
        wk_launch(neighbour_kernel, dim3(1), THREADS, 0, NULL, other, barrier);
        same = same && memcmp(first, other, sizeof first) == 0;
    }
    return same;
}

/* Half of a warp shuffles, half votes. */
static __global__ void apart_kernel(int *to)
{
    if (threadIdx.x % 2)
        *to += (int)__ballot_sync(WK_ALL_LANES, 1);
    else
        *to += __shfl_xor_sync(WK_ALL_LANES, 1, 1);
}

static __global__ void early_exit_kernel(int *to)
{
    if (threadIdx.x == 5)
        return;
    __syncthreads();
    *to = 1;
}

static __global__ void not_waited_kernel(int *to)
{
    wk_copy16(wk_shared(), to, true);
    wk_copy_commit();
}

/* Does it end the program? */
static bool dies(void (*kernel)(int *))
{
    int status = 0;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        alignas(16) static int word[4];

        if (!freopen("/dev/null", "w", stderr))
            _exit(0);
        wk_launch(kernel, dim3(1), THREADS, 16, NULL, word);
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status);
}

/* A copy that was not waited for has not happened. */
static __global__ void copy_kernel(float *seen, const float *from)
{
    float *room = (float *)wk_shared();

    if (threadIdx.x == 0) {
        wk_copy16(room, from, true);
        wk_copy_commit();
        seen[0] = room[0];
        wk_copy_wait<0>();
        seen[1] = room[0];
    }
}

/* ---- Fragments ---- */

/* a (16, 16) b (16, 8) of small whole numbers, through shared memory and ldmatrix, in one warp. */
static __global__ void multiply_kernel(float *d, const float *a, const float *b)
{
    wk_f16 *left = (wk_f16 *)wk_shared(), *right = left + 16 * 24; /* rows 24 apart */
    int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4, m = lane / 8, r = lane % 8;
    float sum[4] = { 0 };
    uint32_t x[4], y[4];

    for (int i = lane; i < 256; i += WK_WARP)
        left[i / 16 * 24 + i % 16] = wk_from_float<wk_f16>(a[i]);
    for (int i = lane; i < 128; i += WK_WARP)
        right[i / 8 * 24 + i % 8] = right[i / 8 * 24 + 8 + i % 8] = wk_from_float<wk_f16>(b[i]);
    __syncwarp();
    wk_load_matrices<false>(x, left + (m % 2 * 8 + r) * 24 + m / 2 * 8);
    wk_load_matrices<true>(y, right + (m % 2 * 8 + r) * 24 + m / 2 * 8);
    wk_multiply(sum, x, y, wk_f16());
    wk_multiply(sum, x, y + 2, wk_f16()); /* the same once more */
    d[g * 8 + 2 * t] = sum[0];
    d[g * 8 + 2 * t + 1] = sum[1];
    d[(g + 8) * 8 + 2 * t] = sum[2];
    d[(g + 8) * 8 + 2 * t + 1] = sum[3];
}

static bool multiplies(void)
{
    float a[256], b[128], d[128];
    bool good = true;

    for (int i = 0; i < 256; i++)
        a[i] = (float)((i * 7 + i / 16) % 13 - 6);
    for (int i = 0; i < 128; i++)
        b[i] = (float)((i * 5 + i / 8) % 11 - 5);
    emu_seed(3);
    wk_launch(multiply_kernel, dim3(1), WK_WARP, (16 + 16) * 24 * sizeof(wk_f16), NULL, d, a, b);
    for (int row = 0; row < 16; row++)
        for (int col = 0; col < 8; col++) {
            float sum = 0;

            for (int k = 0; k < 16; k++)
                sum += a[row * 16 + k] * b[k * 8 + col];
            good = good && d[row * 8 + col] == 2 * sum;
        }
    return good;
}

static bool copies_wait(void)
{
    alignas(16) const float from[4] = { 1, 2, 3, 4 };
    float seen[2];

    wk_launch(copy_kernel, dim3(1), WK_WARP, 16, NULL, seen, from);
    return seen[0] != seen[0] && seen[1] == 1;
}

int main()
{
    check("a barrier gives the same in every order", same_in_all_orders(true));
    check("a missing barrier shows", !same_in_all_orders(false));
    check("lanes at different collectives end the program", dies(apart_kernel));
    check("a thread that leaves before a barrier ends the program", dies(early_exit_kernel));
    check("a copy that nobody waits for ends the program", dies(not_waited_kernel));
    check("a copy has not happened before it is waited for", copies_wait());
    check("fragments multiply as matrices do", multiplies());
    return failures > 0;
}
