/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/wire.h"

#include <string.h>

#include "backends/half.h"
#include "backends/real.h"

const char *const wk_coll_names[WK_COLLS] = { "all_reduce",     "broadcast", "all_gather",
                                              "reduce_scatter", "reduce",    "scatter",
                                              "gather" };

bool wk_coll_sums(enum wk_coll coll)
{
    return coll == WK_COLL_ALL_REDUCE || coll == WK_COLL_REDUCE_SCATTER || coll == WK_COLL_REDUCE;
}

double wk_ring_bytes(enum wk_coll coll, double payload_bytes, int world)
{
    double others = (world - 1.0) / world;

    switch (coll) {
    case WK_COLL_ALL_REDUCE:
        return 2 * others * payload_bytes;
    case WK_COLL_BROADCAST:
    case WK_COLL_REDUCE:
        return world > 1 ? payload_bytes : 0;
    default:
        return others * payload_bytes;
    }
}

size_t wk_wire_size(enum wk_wire type)
{
    static const size_t sizes[] = { sizeof(wk_real), sizeof(double), 1, 2 };

    return sizes[type];
}

#define BLOCK 1024 /* elements whose sum stays in the cache */

#define SUM(real)                                                  \
    for (size_t at = 0; at < n; at += BLOCK) {                     \
        size_t m = n - at < BLOCK ? n - at : BLOCK;                \
        real sum[BLOCK];                                           \
                                                                   \
        memcpy(sum, (const real *)from[0] + at, m * sizeof(real)); \
        for (int k = 1; k < world; k++)                            \
            for (size_t i = 0; i < m; i++)                         \
                sum[i] += ((const real *)from[k])[at + i];         \
        memcpy((real *)out + at, sum, m * sizeof(real));           \
    }

static void sum_bf16(uint16_t *out, const void *const *from, int world, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float sum = 0;

        for (int k = 0; k < world; k++)
            sum += wk_bf16_decode(((const uint16_t *)from[k])[i]);
        out[i] = wk_bf16_encode(sum);
    }
}

void wk_wire_sum(enum wk_wire type, void *out, const void *const *from, int world, size_t n)
{
    if (type == WK_WIRE_BF16)
        sum_bf16(out, from, world, n);
    else if (type == WK_WIRE_F64)
        SUM(double)
    else
        SUM(wk_real)
}
