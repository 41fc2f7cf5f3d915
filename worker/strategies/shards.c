/* SPDX-License-Identifier: Apache-2.0 */
#include "strategies/shards.h"

#include <stdlib.h>

#include "base/alloc.h"

static bool is_layer(const struct wk_model_kind *m, int unit)
{
    return unit >= m->layers_first && unit < m->layers_end;
}

/* The group of each parameter, numbered as they first become ready. */
static void choose_groups(struct wk_shards *s, const struct wk_model_kind *m, enum wk_cut cut,
                          double cap)
{
    int outside = -1;
    double filled = 0;

    for (int i = m->n_params - 1; i >= 0; i--) {
        int unit = m->params[i].unit;
        bool begins = i == m->n_params - 1;

        if (cut == WK_CUT_LAYERS && !is_layer(m, unit)) {
            if (outside < 0)
                outside = s->n_groups++;
            s->places[i].group = outside;
            continue;
        }
        if (cut == WK_CUT_BUCKETS)
            begins |= filled + (double)wk_param_n(&m->params[i]) > cap;
        else if (cut != WK_CUT_MODEL && !begins)
            begins = m->params[i + 1].unit != unit;
        if (begins) {
            s->n_groups++;
            filled = 0;
        }
        filled += (double)wk_param_n(&m->params[i]);
        s->places[i].group = s->n_groups - 1;
    }
}

static void end_piece(struct wk_shards *s, struct wk_group *g, int world, size_t grain)
{
    struct wk_piece *p = &s->pieces[s->n_pieces - 1];
    size_t n = (size_t)world;

    p->padded = n * wk_grains((p->n + n - 1) / n, grain);
    g->padded = p->at + p->padded;
    s->shard += p->padded / n;
}

static void fill_group(struct wk_shards *s, const struct wk_model_kind *m, enum wk_cut cut,
                       int group, int world, size_t grain)
{
    struct wk_group *g = &s->groups[group];

    *g = (struct wk_group){ .first_piece = s->n_pieces, .at = s->padded, .low = -1 };
    for (int i = m->n_params - 1; i >= 0; i--) {
        bool first = g->low < 0;
        struct wk_piece *p;

        if (s->places[i].group != group)
            continue;
        if (!first && cut == WK_CUT_PARAMS)
            end_piece(s, g, world, grain);
        if (first || cut == WK_CUT_PARAMS)
            s->pieces[s->n_pieces++] =
                (struct wk_piece){ .group = group, .at = g->padded, .shard_at = s->shard };
        if (first)
            g->high = m->params[i].unit;
        p = &s->pieces[s->n_pieces - 1];
        g->low = m->params[i].unit;
        s->touches[group * s->n_units + g->low] = true;
        s->places[i].piece = s->n_pieces - 1;
        s->places[i].at = p->at + p->n;
        p->n += wk_grains(wk_param_n(&m->params[i]), grain);
    }
    end_piece(s, g, world, grain);
    g->n_pieces = s->n_pieces - g->first_piece;
    s->padded += g->padded;
    for (int u = g->low; u <= g->high; u++)
        g->scattered |= !wk_shards_touch(s, group, u);
}

void wk_shards_make(struct wk_shards *s, const struct wk_model_kind *m, enum wk_cut cut, double cap,
                    int world, size_t grain)
{
    size_t n = (size_t)m->n_params;

    *s = (struct wk_shards){ .n_units = m->n_units,
                             .places = hg_alloc_zeroed(n, sizeof *s->places) };
    choose_groups(s, m, cut, cap);
    s->groups = hg_alloc_zeroed((size_t)s->n_groups, sizeof *s->groups);
    s->pieces = hg_alloc_zeroed(n, sizeof *s->pieces);
    s->touches = hg_alloc_zeroed((size_t)s->n_groups * (size_t)m->n_units, sizeof *s->touches);
    for (int g = 0; g < s->n_groups; g++)
        fill_group(s, m, cut, g, world, grain);
}

void wk_shards_done(struct wk_shards *s)
{
    free(s->groups);
    free(s->pieces);
    free(s->places);
    free(s->touches);
    *s = (struct wk_shards){ 0 };
}

bool wk_shards_touch(const struct wk_shards *s, int group, int unit)
{
    return s->touches[group * s->n_units + unit];
}
