/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/adaptive.h"

#include <math.h>

#include "results/adaptive.h"

static const struct hg_repeats *rule_of(const struct hg_builder *b,
                                        const struct hg_configuration *c)
{
    const struct hg_repeats *rule = &b->r->sets[b->r->entries[c->entry].set].repeats;

    return hg_repeats_are_adaptive(rule) ? rule : NULL;
}

const struct hg_repeats *hg_adaptive_find(const struct hg_builder *b)
{
    for (size_t s = 0; s < b->r->n_sets; s++)
        if (hg_repeats_are_adaptive(&b->r->sets[s].repeats))
            return &b->r->sets[s].repeats;
    return NULL;
}

/* The values are sorted where the rule is not adaptive. */
static struct hg_estimate center(const struct hg_builder *b, const struct hg_configuration *c,
                                 double *v, size_t n)
{
    const struct hg_repeats *rule = rule_of(b, c);

    return rule ? hg_adaptive_center(v, n, rule) : hg_stats_center(v, n, b->r->statistic);
}

void hg_adaptive_fill(const struct hg_builder *b, const struct hg_configuration *c,
                      const struct hg_configuration *base, struct hg_point *p)
{
    struct hg_estimate other;

    if (!p->n || b->r->statistic != HG_GEOMETRIC_MEAN)
        return;
    if (rule_of(b, c))
        p->value = center(b, c, b->room, p->n);
    if (!base || base == c || !p->base_n || (!rule_of(b, c) && !rule_of(b, base)))
        return;
    other = center(b, base, b->room_base, p->base_n);
    p->speedup = b->r->kind == HG_METRIC_RATE ? hg_adaptive_ratio(&p->value, &other)
                                              : hg_adaptive_ratio(&other, &p->value);
}

bool hg_adaptive_note(const struct hg_builder *b, const struct hg_configuration *c,
                      const struct hg_point *p, struct hg_buf *head, struct hg_buf *value)
{
    const struct hg_repeats *rule = rule_of(b, c);

    if (!rule || !p->value.has_interval || hg_adaptive_is_done(&p->value, rule))
        return false;
    if ((long long)p->of >= rule->max)
        hg_buf_printf(head, "stopped at the maximum of %lld runs: ", rule->max);
    else
        hg_buf_printf(head, "more runs are needed for ±%.3g %%: ", 100 * rule->until);
    hg_buf_printf(value, "±%.2g %%", 100 * hg_stats_spread(&p->value));
    return true;
}
