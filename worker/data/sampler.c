/* SPDX-License-Identifier: Apache-2.0 */
#include "data/sampler.h"

#include <stdlib.h>

#include "backends/rng.h"
#include "base/alloc.h"

void wk_sampler_open(struct wk_sampler *s, int n, int rank, int world, int batch, uint64_t seed)
{
    *s = (struct wk_sampler){ .n = n, .rank = rank, .world = world, .batch = batch, .seed = seed };
    s->per_rank = (int)(((long long)n + world - 1) / world);
    s->steps = (int)(((long long)s->per_rank + batch - 1) / batch);
    s->order = hg_alloc((size_t)s->per_rank * (size_t)world * sizeof *s->order);
    s->ids = hg_alloc((size_t)s->per_rank * sizeof *s->ids);
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
    return s->order[(long long)i * s->world + rank];
}

static void take_own(struct wk_sampler *s)
{
    for (int i = 0; i < s->per_rank; i++)
        s->ids[i] = wk_sampler_id(s, s->rank, i);
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
    for (long long i = s->n; i < (long long)s->per_rank * s->world; i++)
        s->order[i] = s->order[i - s->n];
    take_own(s);
}

const int32_t *wk_sampler_batch(const struct wk_sampler *s, int step, int *rows)
{
    int first = step * s->batch;

    *rows = s->per_rank - first < s->batch ? s->per_rank - first : s->batch;
    return s->ids + first;
}

/* ---- Equal work ---- */

struct dealt {
    int32_t id, length;
};

static int longest_first(const void *a, const void *b)
{
    const struct dealt *x = a, *y = b;

    if (x->length != y->length)
        return x->length < y->length ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/* The rank with room that has least. */
static int next_rank(const struct wk_sampler *s, const long long *sums, const int *counts, int rows)
{
    int best = -1;

    for (int r = 0; r < s->world; r++)
        if (counts[r] < rows && (best < 0 || sums[r] < sums[best]))
            best = r;
    return best;
}

/* Positions `first` and following: rank r's i-th sample of the step is at first + i world + r. */
static void deal(struct wk_sampler *s, const int32_t *lengths, long long first, int rows,
                 struct dealt *all, long long *sums, int *counts)
{
    int n = rows * s->world;

    for (int i = 0; i < n; i++)
        all[i] = (struct dealt){ s->order[first + i], lengths[s->order[first + i]] };
    qsort(all, (size_t)n, sizeof *all, longest_first);
    for (int r = 0; r < s->world; r++)
        sums[r] = counts[r] = 0;
    for (int i = 0; i < n; i++) {
        int r = next_rank(s, sums, counts, rows);

        s->order[first + counts[r]++ * s->world + r] = all[i].id;
        sums[r] += all[i].length;
    }
}

void wk_sampler_balance(struct wk_sampler *s, const int32_t *lengths)
{
    struct dealt *all = hg_alloc((size_t)s->batch * (size_t)s->world * sizeof *all);
    long long *sums = hg_alloc((size_t)s->world * sizeof *sums);
    int *counts = hg_alloc((size_t)s->world * sizeof *counts), rows;

    for (int step = 0; step < s->steps; step++) {
        wk_sampler_batch(s, step, &rows);
        deal(s, lengths, (long long)step * s->batch * s->world, rows, all, sums, counts);
    }
    take_own(s);
    free(all);
    free(sums);
    free(counts);
}
