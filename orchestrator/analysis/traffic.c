/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/traffic.h"

#include <math.h>

#include "analysis/places.h"

#define MIB (1024.0 * 1024.0)

/* Sum of one number over the members of an object of the result; NaN if the object is missing, or a member does not have it. */
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

static double ring_mib(const struct hg_result *r)
{
    return sum_of(r, "comm", "ring_bytes") / MIB;
}

static double sent_mib(const struct hg_result *r)
{
    return sum_of(r, "comm", "sent_bytes") / MIB;
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
    { "ring_mib", "ring, MiB", ring_mib, 2 },
    { "sent_mib", "sent, MiB", sent_mib, 2 },
    { "exposed_s", "exposed, s", exposed_s, 3 },
    { "exposed_ratio", "of train_s", exposed_ratio, 3 },
    { "memory_mib", "memory, MiB", memory_mib, 1 },
};
#define N_COLUMNS (sizeof columns / sizeof *columns)

static void list_places(const struct hg_builder *b, const struct hg_table *t, struct hg_listing *l)
{
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        const struct hg_point *p = &t->points[i];

        if (p->n == 0)
            continue;
        hg_place_values(b->r, t, i, l);
        for (size_t k = 0; k < N_COLUMNS; k++)
            hg_listing_number(l,
                              hg_builder_center(b, hg_builder_configuration(b, p), true, HG_MEDIAN,
                                                columns[k].of),
                              columns[k].decimals);
    }
}

void hg_traffic_list(struct hg_builder *b, struct hg_table *t)
{
    struct hg_listing *l;

    if (!b->options->traffic)
        return;
    l = hg_listing_add(&t->listings, "traffic", "what a rank sent and held");
    hg_place_columns(b->r, l);
    for (size_t k = 0; k < N_COLUMNS; k++)
        hg_listing_column(l, columns[k].name, columns[k].title, false);
    list_places(b, t, l);
    hg_listing_note(
        l,
        "ring: payload of the collectives by the formula of a ring; sent: bytes written, where the "
        "transport counts them (tcp); exposed: time in which the rank waited for "
        "communication; memory: peaks of all classes on the fullest rank");
}
