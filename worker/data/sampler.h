/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples a rank sees, in which order: PyTorch's DistributedSampler. One permutation an
 * epoch, the same on all ranks; padded by its own beginning so that every rank gets equally many;
 * rank r takes positions r, r + world, ... So step s of all ranks together sees the same samples as
 * step s of one rank with the global batch. */
#ifndef WK_DATA_SAMPLER_H
#define WK_DATA_SAMPLER_H

#include <stdint.h>

struct wk_sampler {
    int n, rank, world, batch;
    uint64_t seed;
    int per_rank;   /* samples of this rank in an epoch, padding included: ceil(n / world) */
    int steps;      /* batches in an epoch: ceil(per_rank / batch) */
    int32_t *order; /* (per_rank * world) the epoch's permutation, filled up from its beginning */
    int32_t *ids;   /* (per_rank) this rank's part of it */
};

void wk_sampler_open(struct wk_sampler *s, int n, int rank, int world, int batch, uint64_t seed);
void wk_sampler_close(struct wk_sampler *s);

/* Shuffle for an epoch (0, 1, ...). */
void wk_sampler_epoch(struct wk_sampler *s, uint32_t epoch);

/* Samples of step 0 to steps - 1 of the epoch; the last batch may be smaller. *rows is its size;
 * lent until the next epoch. */
const int32_t *wk_sampler_batch(const struct wk_sampler *s, int step, int *rows);

/* Distribute the samples of each step again so that every rank gets about the same sum of lengths (one per sample of the data set): the
 * longest first, each to the rank that has least. Every rank keeps its number of samples, every step its samples, those that are
 * repeated included. After wk_sampler_epoch. */
void wk_sampler_balance(struct wk_sampler *s, const int32_t *lengths);

/* Sample i of any rank's epoch. */
int32_t wk_sampler_id(const struct wk_sampler *s, int rank, int i);

#endif
