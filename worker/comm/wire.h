/* SPDX-License-Identifier: Apache-2.0 */
/* What travels between ranks: the collectives, the types of their elements, and sums that give the same bits everywhere.
 *
 * A collective has a whole of N equal parts, N being the number of ranks. Where a rank needs only
 * its part, that is a separate span or its place in the whole:
 *
 *   all_reduce      whole = sum of all ranks' wholes
 *   broadcast       whole = rank 0's
 *   all_gather      whole = all ranks' parts, in their order
 *   reduce_scatter  part = this rank's part of the sum of all wholes; the whole is used up
 *   reduce          on rank 0 whole = sum of all wholes; the others' stay
 *   scatter         part = this rank's part of rank 0's whole
 *   gather          on rank 0 whole = all ranks' parts
 *
 * Ring bytes are what one rank sends in a ring algorithm for a whole of X bytes: all-reduce 2 (N-1)/N X,
 * broadcast and reduce X (0 when N is 1), the others (N-1)/N X. */
#ifndef WK_COMM_WIRE_H
#define WK_COMM_WIRE_H

#include <stdbool.h>
#include <stddef.h>

enum wk_coll {
    WK_COLL_ALL_REDUCE,
    WK_COLL_BROADCAST,
    WK_COLL_ALL_GATHER,
    WK_COLL_REDUCE_SCATTER,
    WK_COLL_REDUCE,
    WK_COLL_SCATTER,
    WK_COLL_GATHER,
    WK_COLLS
};
extern const char *const wk_coll_names[WK_COLLS];

/* Does it sum the ranks' values? */
bool wk_coll_sums(enum wk_coll coll);
/* Ring bytes of one collective over so many bytes. */
double wk_ring_bytes(enum wk_coll coll, double payload_bytes, int world);

/* Element types that travel. Bytes cannot be summed. */
enum wk_wire { WK_WIRE_REAL, WK_WIRE_F64, WK_WIRE_BYTE, WK_WIRE_BF16 };

/* Bytes of an element on the wire. */
size_t wk_wire_size(enum wk_wire type);
/* out[i] = sum of from[k][i] over k, in order, for i < n; of bf16 numbers in fp32, rounded once. out may be one of from. */
void wk_wire_sum(enum wk_wire type, void *out, const void *const *from, int world, size_t n);

#endif
