/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/lstm.h"

#define ROWS_MAX 64 /* rows of a scratch tile without kept state */

static int groups_of(const struct cpu *c, const struct wk_lstm *s)
{
    return (s->hidden + c->k->lanes - 1) / c->k->lanes;
}

size_t wk_cpu_lstm_state(struct wk_dev *dev, const struct wk_lstm *s)
{
    size_t padded = (size_t)groups_of(cpu_of(dev), s) * cpu_of(dev)->k->lanes;

    return 6 * padded * s->steps * s->batch; /* four gates, c and h */
}

/* Reals of the packed weights, as they are and transposed. */
static size_t packed_n(const struct cpu *c, const struct wk_lstm *s)
{
    size_t groups = groups_of(c, s), lanes = c->k->lanes, padded = groups * lanes;

    return groups * (1 + s->in + padded) * 4 * lanes + 4 * padded * padded;
}

/* Reals that a thread takes besides: rows of gates where no state is kept; of gradients, or sums for the weights. */
static size_t forward_more(const struct cpu *c, const struct wk_lstm *s)
{
    return (size_t)4 * ROWS_MAX * groups_of(c, s) * c->k->lanes;
}

static size_t backward_more(const struct cpu *c, const struct wk_lstm *s)
{
    size_t lanes = c->k->lanes, rows = (size_t)2 * ROWS_MAX * groups_of(c, s) * lanes;
    size_t sums = ((size_t)s->in + s->hidden + 3 * c->k->row_tile) * 4 * lanes;

    return rows > sums ? rows : sums;
}

size_t wk_cpu_lstm_scratch(const struct cpu *c, const struct wk_lstm *s)
{
    size_t forward = forward_more(c, s), backward = backward_more(c, s);

    return packed_n(c, s) + (size_t)c->dev.threads * (forward > backward ? forward : backward);
}

/* The job of a call, its packed weights at the start of the scratch; `more` reals a thread follow
 * them at *rest. */
static void lstm_job(struct cpu *c, const struct wk_lstm *s, const struct wk_lstm_weights *w,
                     struct wk_span state, size_t more, struct wk_lstm_job *j, wk_real **rest)
{
    size_t groups = groups_of(c, s), lanes = c->k->lanes, padded = groups * lanes;
    size_t n = padded * s->steps * s->batch;
    size_t packed = groups * (1 + s->in + padded) * 4 * lanes;
    wk_real *scratch = wk_cpu_scratch(c, packed_n(c, s) + more * c->dev.threads);

    *j = (struct wk_lstm_job){
        .batch = s->batch,
        .steps = s->steps,
        .in = s->in,
        .hidden = s->hidden,
        .groups = (int)groups,
        .w_ih = w->w_ih.data,
        .w_hh = w->w_hh.data,
        .b_ih = w->b_ih.data,
        .b_hh = w->b_hh.data,
        .packed = scratch,
        .packed_t = scratch + packed,
    };
    if (state.data) {
        j->gates = state.data;
        j->c = j->gates + 4 * n;
        j->h = j->c + n;
    }
    *rest = scratch + packed_n(c, s);
}

static void cpu_lstm_forward(struct wk_dev *dev, const struct wk_lstm *s,
                             const struct wk_lstm_weights *w, struct wk_span h,
                             struct wk_span state, struct wk_span x)
{
    struct cpu *c = cpu_of(dev);
    size_t more = state.data ? 0 : forward_more(c, s);
    struct wk_lstm_job j;
    wk_real *rest;

    lstm_job(c, s, w, state, more, &j, &rest);
    j.x = x.data;
    j.h_out = h.data;
#pragma omp parallel num_threads(dev->threads)
    {
        long first, n;
        int part = omp_get_thread_num();

#pragma omp for schedule(static)
        for (int group = 0; group < j.groups; group++)
            c->k->lstm_pack(&j, group);
        wk_cpu_share(s->batch, c->k->row_tile, part, omp_get_num_threads(), &first, &n);
        for (long at = 0; at < n; at += ROWS_MAX)
            c->k->lstm_forward(&j, (int)(first + at), (int)(n - at < ROWS_MAX ? n - at : ROWS_MAX),
                               rest + more * part);
    }
}

/* Gradients of the weights: groups over the threads, and when there are more threads the tiles of a group too. */
static void share_weights(struct cpu *c, const struct wk_lstm_job *j, wk_real *scratch,
                          size_t scratch_each)
{
    int tiles = c->k->lstm_tiles(j), parts = (c->dev.threads + j->groups - 1) / j->groups;

#pragma omp for schedule(static)
    for (int i = 0; i < j->groups * parts; i++) {
        long first, n;

        wk_cpu_share(tiles, 1, i % parts, parts, &first, &n);
        c->k->lstm_weights(j, i / parts, (int)first, (int)n,
                           scratch + scratch_each * omp_get_thread_num());
    }
}

static void cpu_lstm_backward(struct wk_dev *dev, const struct wk_lstm *s,
                              const struct wk_lstm_weights *w,
                              const struct wk_lstm_weights *d_weights, struct wk_span state,
                              struct wk_span x, struct wk_span d_h)
{
    struct cpu *c = cpu_of(dev);
    size_t more = backward_more(c, s);
    struct wk_lstm_job j;
    wk_real *rest;

    lstm_job(c, s, w, state, more, &j, &rest);
    j.x = x.data;
    j.d_h = d_h.data;
    j.d_w_ih = d_weights->w_ih.data;
    j.d_w_hh = d_weights->w_hh.data;
    j.d_b_ih = d_weights->b_ih.data;
    j.d_b_hh = d_weights->b_hh.data;
#pragma omp parallel num_threads(dev->threads)
    {
        long first, n;
        int part = omp_get_thread_num();

#pragma omp for schedule(static)
        for (int group = 0; group < j.groups; group++)
            c->k->lstm_pack(&j, group);
        wk_cpu_share(s->batch, c->k->row_tile, part, omp_get_num_threads(), &first, &n);
        for (long at = 0; at < n; at += ROWS_MAX)
            c->k->lstm_backward(&j, (int)(first + at), (int)(n - at < ROWS_MAX ? n - at : ROWS_MAX),
                                rest + more * part);
#pragma omp barrier
        share_weights(c, &j, rest, more);
    }
}

const struct wk_backend wk_cpu_lstm_ops = {
    .lstm_forward = cpu_lstm_forward,
    .lstm_backward = cpu_lstm_backward,
};
