/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/adaptive.h"
#include "analysis/entries.h"
#include "analysis/work.h"
#include "base/alloc.h"
#include "base/vec.h"

static void scale(struct hg_estimate *e, double factor)
{
    e->value *= factor;
    e->low *= factor;
    e->high *= factor;
}

/* Under weak scaling the speedup of a time is scaled by the work (Gustafson). A rate needs no scaling. */
static void see_scaling(const struct hg_report *r, struct hg_point *p)
{
    p->weak = hg_scaling_kind_of(p->work, p->p) == HG_SCALING_WEAK;
    if (p->weak && r->kind == HG_METRIC_TIME)
        scale(&p->speedup, p->work);
    p->efficiency = hg_scaling_efficiency(p->speedup.value, p->p);
    p->karp_flatt = p->weak ? NAN : hg_scaling_karp_flatt(p->speedup.value, p->p);
}

/* The statistic of the n values of a configuration, or the mean of the runs for which published means among them stand: then *m
 * has these. */
static struct hg_estimate center_of(const struct hg_builder *b, const struct hg_configuration *c,
                                    bool shown_only, double *v, size_t n, struct hg_moments *m)
{
    struct hg_estimate e;

    if (!hg_builder_published(b, c, shown_only, m)) {
        hg_moments_make(v, n, m);
        return hg_stats_center(v, n, b->r->statistic);
    }
    e = hg_moments_estimate(m);
    if (n == 1)
        e.value = v[0]; /* to the last digit */
    return e;
}

/* The speedup of two sides of which one or both are published means; time: how much less, else how much more. */
static struct hg_estimate published_speedup(struct hg_builder *b, const struct hg_configuration *c,
                                            const struct hg_configuration *base,
                                            const struct hg_point *p)
{
    struct hg_moments own, other;
    double value = center_of(b, c, true, b->room, p->n, &own).value /
                   center_of(b, base, false, b->room_base, p->base_n, &other).value;

    return b->r->kind == HG_METRIC_RATE ? hg_moments_ratio(value, &own, &other)
                                        : hg_moments_ratio(1 / value, &other, &own);
}

/* The baseline's run in the same job, of the same repeat; NULL: there is none. */
static const struct hg_report_entry *find_mate(const struct hg_builder *b,
                                               const struct hg_configuration *base,
                                               const struct hg_report_entry *own)
{
    const json_t *repeat = json_object_get(own->result->cell, "repeat");

    for (size_t i = 0; i < base->n_entries && own->result->job; i++) {
        const struct hg_report_entry *e = hg_builder_entry(b, base, i);

        if (!e->state && e->set == own->set && e->result->job == own->result->job &&
            json_number_value(json_object_get(e->result->cell, "repeat")) ==
                json_number_value(repeat))
            return e;
    }
    return NULL;
}

/* Runs that shared a job ran on the same nodes, one right after the other: what they have in common cancels in their ratio. The ratios
 * are then in b->room. Returns how many; 0: too few for an interval, or fewer than half of the runs of a side. Not for
 * adaptive repeats: their intervals are wider, for each time that one looked whether there are enough runs. */
static size_t find_pairs(struct hg_builder *b, const struct hg_configuration *c,
                         const struct hg_configuration *base, const struct hg_point *p)
{
    size_t n = 0,
           least = b->r->statistic == HG_MEDIAN ? HG_STATS_MEDIAN_MIN : HG_STATS_INTERVAL_MIN;
    double *ratios = hg_alloc(c->n_entries * sizeof *ratios);

    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *own = hg_builder_entry(b, c, i);
        const struct hg_report_entry *other =
            own->shown && !own->state ? find_mate(b, base, own) : NULL;

        if (other)
            ratios[n++] = b->r->kind == HG_METRIC_RATE ? own->value / other->value
                                                       : other->value / own->value;
    }
    if (n < least || 2 * n < p->n || 2 * n < p->base_n)
        n = 0;
    if (n)
        memcpy(b->room, ratios, n * sizeof *ratios);
    free(ratios);
    return n;
}

static void compare_with_baseline(struct hg_builder *b, const struct hg_configuration *c,
                                  struct hg_point *p)
{
    const struct hg_report *r = b->r;
    const struct hg_configuration *base = &b->configurations.items[c->base];
    const struct hg_result *own = r->entries[c->entry].result,
                           *other = r->entries[base->entry].result;

    p->base_n = hg_builder_values(b, base, b->room_base);
    if (own->on_cores == other->on_cores)
        p->p = own->devices / other->devices;
    if (p->n == 0 || p->base_n == 0)
        return;
    p->work = b->options->against_first /* the same cell */
                  ? 1
                  : hg_work_ratio(r, hg_builder_first(b, c), hg_builder_first(b, base));
    if (base == c)
        p->speedup.value = 1;
    else if (p->published || hg_builder_published(b, base, false, NULL))
        p->speedup = published_speedup(b, c, base, p);
    else if (!hg_adaptive_find(b) && (p->pairs = find_pairs(b, c, base, p)))
        p->speedup = hg_stats_center(b->room, p->pairs, r->statistic);
    else if (r->kind == HG_METRIC_RATE)
        p->speedup = hg_stats_ratio(b->room, p->n, b->room_base, p->base_n, r->statistic);
    else
        p->speedup = hg_stats_ratio(b->room_base, p->base_n, b->room, p->n, r->statistic);
    hg_adaptive_fill(b, c, base, p);
    if (!isfinite(p->speedup.value) || p->speedup.value <= 0) /* beyond the range of a double */
        p->speedup = (struct hg_estimate)HG_ESTIMATE_NONE;
    see_scaling(r, p);
}

/* The values that count, in b->room. */
static void count_entries(struct hg_builder *b, const struct hg_configuration *c,
                          struct hg_point *p)
{
    struct hg_moments m;

    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(b, c, i);

        if (!e->shown)
            continue;
        p->of++;
        p->alone = p->alone || (!e->state && e->result->not_comparable);
        if (!e->state) {
            b->room[p->n++] = e->value;
            p->oversubscribed = p->oversubscribed || e->result->oversubscribed;
        } else if (!p->state) {
            p->state = e->state;
        }
    }
    if (p->n == 0)
        return;
    p->published = hg_builder_published(b, c, true, &m);
    p->value = center_of(b, c, true, b->room, p->n, &m);
    p->state = NULL;
    hg_adaptive_fill(b, c, NULL, p);
}

static void fill_point(struct hg_builder *b, struct hg_point *p)
{
    const struct hg_configuration *c = hg_builder_configuration(b, p);

    if (!c)
        return;
    p->devices = b->r->entries[c->entry].result->devices;
    count_entries(b, c, p);
    p->base = c->base;
    p->is_baseline = c->base == p->config;
    if (c->base != HG_MAP_NONE)
        compare_with_baseline(b, c, p);
}

/* Has a configuration some runs, but too few for a median, or only their mean? A value that is not positive has no logarithm: *nonpositive. */
static bool has_few(const struct hg_builder *b, size_t config, bool shown_only, bool *nonpositive)
{
    const struct hg_configuration *c = &b->configurations.items[config];
    bool mean = false;
    size_t n = 0;

    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(b, c, i);

        if (e->state || (shown_only && !e->shown))
            continue;
        *nonpositive = *nonpositive || !(e->value > 0);
        mean = mean || e->result->runs > 1;
        n++;
    }
    return mean || (n > 0 && n < HG_STATS_MEDIAN_MIN);
}

void hg_points_choose_statistic(struct hg_builder *b)
{
    bool few = false, nonpositive = false;

    for (size_t i = 0; i < b->r->tables.n; i++) {
        const struct hg_table *t = &b->r->tables.items[i];

        for (size_t k = 0; k < t->n_rows * t->n_columns; k++) {
            const struct hg_configuration *c = hg_builder_configuration(b, &t->points[k]);

            if (!c)
                continue;
            few = has_few(b, t->points[k].config, true, &nonpositive) || few;
            if (c->base != HG_MAP_NONE)
                few = has_few(b, c->base, false, &nonpositive) || few;
        }
    }
    b->r->statistic = (few || hg_adaptive_find(b)) && !nonpositive ? HG_GEOMETRIC_MEAN : HG_MEDIAN;
}

void hg_points_fill(struct hg_builder *b, struct hg_table *t)
{
    bool paired = false;

    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        struct hg_point *p = &t->points[i];

        fill_point(b, p);
        t->has_speedup = t->has_speedup || !isnan(p->speedup.value);
        paired = paired || p->pairs;
        /* On as many devices as the baseline, efficiency says what speedup says. */
        t->has_efficiency = t->has_efficiency || (!isnan(p->efficiency) && p->p != 1);
    }
    if (paired)
        *HG_VEC_PUSH(&t->remarks) =
            hg_strdup("speedups are of pairs of runs that shared a job: what "
                      "differs between jobs and nodes drops out");
}
