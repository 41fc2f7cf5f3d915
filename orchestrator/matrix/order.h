/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_ORDER_H
#define HG_MATRIX_ORDER_H

#include <stdint.h>

/* Which of the n cells of a round comes at place i. A permutation of 0..n-1 that needs no table: a four-round Feistel network
 * over the next even number of bits, walked until it falls below n. */
uint64_t hg_order_shuffled(uint64_t i, uint64_t n, uint64_t seed, uint64_t round);

#endif
