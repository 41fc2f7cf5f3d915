/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

const char *hg_metric_usual(size_t (*count)(const void *context, const char *metric, size_t *ok),
                            const void *context)
{
    static const char *const others[] = { "samples_per_s", "steps_per_s", "real_s" };
    size_t ok, train = count(context, "train_s", &ok), wall = count(context, "wall_s", &ok);

    if (train == ok || wall < train)
        return "train_s";
    if (wall > 0)
        return "wall_s";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (count(context, others[i], &ok))
            return others[i];
    return "train_s";
}

void hg_metric_direct(struct hg_report *r, const char *metric, const char *better,
                      bool against_first)
{
    int direction;

    if (better)
        r->kind = strcmp(better, "higher") == 0 ? HG_METRIC_RATE : HG_METRIC_TIME;
    else
        r->kind = hg_metric_is_rate(metric)   ? HG_METRIC_RATE
                  : hg_metric_is_time(metric) ? HG_METRIC_TIME
                                              : HG_METRIC_OTHER;
    direction = r->kind == HG_METRIC_RATE   ? 1
                : r->kind == HG_METRIC_TIME ? -1
                                            : hg_metric_direction(metric);
    r->has_direction = direction != 0;
    if (against_first && direction) /* its ratio to another run's is wanted */
        r->kind = direction > 0 ? HG_METRIC_RATE : HG_METRIC_TIME;
    r->higher_is_better = direction > 0;
}

const char *hg_metric_state(const struct hg_report *r, const struct hg_result *result, double value)
{
    if (!result->ok)
        return strcmp(result->status, "ok") == 0 ? "invalid" : result->status;
    if (isnan(value))
        return "not measured";
    if (r->kind != HG_METRIC_OTHER && !(value > 0))
        return value < 0 ? "below zero" : "zero";
    return NULL;
}

static int compare_states(const void *pa, const void *pb)
{
    const struct hg_report_state *a = pa, *b = pb;

    return a->n != b->n ? (a->n < b->n ? 1 : -1) : strcmp(a->word, b->word);
}

static void count_state(struct hg_report *r, const char *word)
{
    struct hg_report_state *s = NULL;

    for (size_t i = 0; i < r->states.n && !s; i++)
        if (strcmp(r->states.items[i].word, word) == 0)
            s = &r->states.items[i];
    if (!s) {
        s = HG_VEC_PUSH(&r->states);
        *s = (struct hg_report_state){ .word = word };
    }
    s->n++;
}

void hg_metric_count(struct hg_report *r, const char *state)
{
    r->cells++;
    r->complete += !state;
    if (state)
        count_state(r, state);
}

void hg_metric_sort_states(struct hg_report *r)
{
    if (r->states.n)
        qsort(r->states.items, r->states.n, sizeof *r->states.items, compare_states);
}
