/* SPDX-License-Identifier: Apache-2.0 */
/* What lengths features have: counted per length, so every figure is exact and takes one pass. */
#include "data/features_stats.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

struct counts {
    uint64_t *of; /* [max_length + 1] */
    uint32_t max;
    uint64_t n;
};

static struct counts counts_make(uint32_t max)
{
    return (struct counts){ .of = hg_alloc_zeroed((size_t)max + 1, sizeof(uint64_t)), .max = max };
}

static void count(struct counts *c, uint32_t length)
{
    c->of[length]++;
    c->n++;
}

/* The value that has `rank` values below it in order, rank from 0. */
static uint32_t value_at(const struct counts *c, uint64_t rank)
{
    uint64_t seen = 0;

    for (uint32_t v = 0; v < c->max; v++) {
        seen += c->of[v];
        if (seen > rank)
            return v;
    }
    return c->max;
}

static double quantile(const struct counts *c, double part)
{
    double rank = part * (double)(c->n - 1), below = floor(rank);
    double low = value_at(c, (uint64_t)below), high = value_at(c, (uint64_t)ceil(rank));

    return low + (high - low) * (rank - below);
}

static struct wk_length_stats summarize(const struct counts *c)
{
    struct wk_length_stats s = { .n = c->n };
    double sum = 0;

    if (c->n == 0)
        return s;
    for (uint32_t v = 0; v <= c->max; v++)
        sum += (double)v * (double)c->of[v];
    s.mean = sum / (double)c->n;
    s.median = quantile(c, 0.5);
    s.p90 = quantile(c, 0.9);
    s.p95 = quantile(c, 0.95);
    s.p99 = quantile(c, 0.99);
    s.min = value_at(c, 0);
    s.max = value_at(c, c->n - 1);
    return s;
}

static double part_below(const struct counts *c, uint32_t limit)
{
    uint64_t n = 0;

    for (uint32_t v = 0; v <= limit && v <= c->max; v++)
        n += c->of[v];
    return c->n ? (double)n / (double)c->n : 0;
}

/* Mean length over the expected longest of `batch` features drawn at random:
 * P(longest <= v) = (part of features at most v)^batch. */
static double batch_fill(const struct counts *c, double mean, unsigned batch)
{
    double expected = 0, below = 0;
    uint64_t n = 0;

    for (uint32_t v = 0; v <= c->max && c->n; v++) {
        double up_to;

        n += c->of[v];
        up_to = pow((double)n / (double)c->n, batch);
        expected += v * (up_to - below);
        below = up_to;
    }
    return expected > 0 ? mean / expected : 0;
}

static double mean_square(const struct counts *c)
{
    double sum = 0;

    for (uint32_t v = 0; v <= c->max; v++)
        sum += (double)v * (double)v * (double)c->of[v];
    return c->n ? sum / (double)c->n : 0;
}

void wk_features_stats(const struct wk_features *f, struct wk_feature_stats *out)
{
    static const unsigned batches[] = { 8, 16, 32 };
    struct counts all = counts_make(f->max_length), windows = counts_make(f->max_length);
    struct counts questions = counts_make(f->max_length);
    double max = f->max_length;

    *out = (struct wk_feature_stats){ 0 };
    for (size_t i = 0; i < f->n; i++) {
        count(&all, wk_feature_length(f, i));
        count(&windows, f->items[i].n);
        out->labelled += f->items[i].end != 0;
    }
    for (size_t i = 0; i < f->n_questions; i++)
        count(&questions, f->questions[i].n);
    out->features = summarize(&all);
    out->windows = summarize(&windows);
    out->questions = summarize(&questions);
    out->below_128 = part_below(&all, 128);
    out->below_192 = part_below(&all, 192);
    out->below_256 = part_below(&all, 256);
    out->fill = out->features.mean / max;
    out->square_fill = mean_square(&all) / (max * max);
    for (int i = 0; i < 3; i++)
        out->batch_fill[i] = batch_fill(&all, out->features.mean, batches[i]);
    free(all.of);
    free(windows.of);
    free(questions.of);
}
