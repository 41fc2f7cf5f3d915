/* SPDX-License-Identifier: Apache-2.0 */
#include "data/sampler.h"

#include <stdlib.h>

#include "backends/rng.h"

int wk_sampler_open(struct wk_sampler *s, int n, int rank, int world, int batch, uint64_t seed,
                    struct hg_err *err)
{
    *s = (struct wk_sampler){ .n = n, .rank = rank, .world = world, .batch = batch, .seed = seed };
    s->per_rank = (int)(((long long)n + world - 1) / world);
    s->steps = (int)(((long long)s->per_rank + batch - 1) / batch);
    s->order = malloc((size_t)n * sizeof *s->order);
    s->ids = malloc((size_t)s->per_rank * sizeof *s->ids);
    if (s->order && s->ids)
        return 0;
    wk_sampler_close(s);
    return hg_err_oom(err);
}

void wk_sampler_close(struct wk_sampler *s)
{
    free(s->order);
    free(s->ids);
    *s = (struct wk_sampler){ 0 };
}

/* Uniform in 0 to bound - 1: the high half of a 64-bit product; the bias is below bound / 2^64. */
static uint32_t below(uint64_t seed, uint32_t position, uint32_t epoch, uint32_t bound)
{
    uint32_t bits[4];

    wk_philox(seed, position, WK_SITE_ORDER, epoch, 0, bits);
    return (uint32_t)(((unsigned __int128)((uint64_t)bits[0] << 32 | bits[1]) * bound) >> 64);
}

int32_t wk_sampler_id(const struct wk_sampler *s, int rank, int i)
{
    return s->order[((long long)i * s->world + rank) % s->n];
}

void wk_sampler_epoch(struct wk_sampler *s, uint32_t epoch)
{
    for (int i = 0; i < s->n; i++)
        s->order[i] = i;
    for (int i = s->n - 1; i > 0; i--) {
        uint32_t k = below(s->seed, (uint32_t)i, epoch, (uint32_t)i + 1);
        int32_t other = s->order[k];

        s->order[k] = s->order[i];
        s->order[i] = other;
    }
    for (int i = 0; i < s->per_rank; i++)
        s->ids[i] = wk_sampler_id(s, s->rank, i);
}

const int32_t *wk_sampler_batch(const struct wk_sampler *s, int step, int *rows)
{
    int first = step * s->batch;

    *rows = s->per_rank - first < s->batch ? s->per_rank - first : s->batch;
    return s->ids + first;
}
