/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/order.h"

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * UINT64_C(0x7fb5d329728ea185);
    x = (x ^ x >> 27) * UINT64_C(0x81dadef4bc2dd44d);
    return x ^ x >> 33;
}

uint64_t hg_order_shuffled(uint64_t i, uint64_t n, uint64_t seed, uint64_t round)
{
    uint64_t key = mix(seed * 1000003 + round);
    unsigned half = 1;
    uint64_t low;

    while (UINT64_C(1) << 2 * half < n)
        half++;
    low = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = i >> half, right = i & low;

        for (unsigned r = 0; r < 4; r++) {
            uint64_t next = left ^ (mix(right ^ (key + r * UINT64_C(0x9e3779b97f4a7c15))) & low);

            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}
