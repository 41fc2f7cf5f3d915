/* SPDX-License-Identifier: Apache-2.0 */
/* What a training sent, how long it stood and waited for that, and what it held. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "analysis/build.h"

#define MIB (1024.0 * 1024.0)

/* Sum of one number over the members of an object of the result; NaN where the object is missing, or a member lacks it. */
static double sum_in(const json_t *object, const char *key)
{
    double sum = 0;
    const char *name;
    json_t *value;

    if (!json_is_object(object))
        return NAN;
    json_object_foreach((json_t *)object, name, value) {
        const json_t *number = key ? json_object_get(value, key) : value;

        if (!json_is_number(number))
            return NAN;
        sum += json_number_value(number);
    }
    return sum;
}

static double sum_of(const struct hg_result *r, const char *member, const char *key)
{
    json_t *object = hg_result_get(r, member);
    double sum = sum_in(object, key);

    json_decref(object);
    return sum;
}

static double sent_mib(const struct hg_result *r)
{
    return sum_of(r, "comm", "ring_bytes") / MIB;
}

static double exposed_s(const struct hg_result *r)
{
    return sum_of(r, "comm", "exposed_s");
}

static double exposed_ratio(const struct hg_result *r)
{
    return exposed_s(r) / hg_result_number(r, "train_s");
}

static double memory_mib(const struct hg_result *r)
{
    return sum_of(r, "memory", NULL) / MIB;
}

static const struct {
    const char *name, *title;
    double (*of)(const struct hg_result *r);
    int decimals;
} columns[] = {
    { "sent_mib", "sent, MiB", sent_mib, 2 },
    { "exposed_s", "exposed, s", exposed_s, 3 },
    { "exposed_ratio", "of train_s", exposed_ratio, 3 },
    { "memory_mib", "memory, MiB", memory_mib, 1 },
};
#define N_COLUMNS (sizeof columns / sizeof *columns)

/* Median over the entries of a place that count; what is no number leaves none. */
static double median_at(const struct hg_build *b, const struct hg_config *c, double *room,
                        double (*of)(const struct hg_result *r))
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = &b->r->entries[b->config_entries[c->begin + i]];

        if (e->state || !e->shown)
            continue;
        room[n] = of(e->result);
        if (isnan(room[n++]))
            return NAN;
    }
    return n ? hg_stats_median(room, n) : NAN;
}

static int list_places(const struct hg_build *b, const struct hg_table *t, struct hg_listing *l)
{
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        const struct hg_point *p = &t->points[i];
        const struct hg_config *c = p->n ? &b->configs.items[p->config] : NULL;
        double *room = c ? malloc(c->n_entries * sizeof *room) : NULL;

        if (!c)
            continue;
        if (!room)
            return -1;
        hg_build_list_place(b->r, t, i, l);
        for (size_t k = 0; k < N_COLUMNS; k++)
            hg_listing_number(l, median_at(b, c, room, columns[k].of), columns[k].decimals);
        free(room);
    }
    return 0;
}

int hg_build_traffic(struct hg_build *b, struct hg_table *t)
{
    struct hg_listing spare = { 0 }, *l;
    int rc;

    if (!b->options->traffic)
        return 0;
    l = hg_listing_add(&t->listings, "traffic", "what a rank sent and held", &spare);
    hg_build_list_keys(b->r, l);
    for (size_t k = 0; k < N_COLUMNS; k++)
        hg_listing_column(l, columns[k].name, columns[k].title, false);
    rc = list_places(b, t, l);
    hg_listing_note(l, "sent: in all, as rings send it; exposed: the rank stood and waited for it; "
                       "memory: peaks of all classes on the fullest rank");
    hg_listing_done(&spare);
    return rc;
}
