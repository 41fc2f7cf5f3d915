/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ranges.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/vec.h"

static void add_range(struct hg_ranges *set, uint32_t first, uint32_t last)
{
    struct hg_range *end = set->n ? &set->items[set->n - 1] : NULL;

    if (end && first <= end->last + (uint64_t)1) {
        if (last > end->last)
            end->last = last;
        return;
    }
    *HG_VEC_PUSH(set) = (struct hg_range){ first, last };
}

void hg_ranges_add(struct hg_ranges *set, uint32_t value)
{
    add_range(set, value, value);
}

/* Digits only: strtoul would take signs and spaces. */
static const char *read_number(const char *p, uint32_t max, uint32_t *value)
{
    uint64_t v = 0;

    if (*p < '0' || *p > '9')
        return NULL;
    for (; *p >= '0' && *p <= '9'; p++) {
        v = v * 10 + (uint64_t)(*p - '0');
        if (v > max)
            return NULL;
    }
    *value = (uint32_t)v;
    return p;
}

/* One "7", "0-9" or "0-8:4"; NULL if it is none or does not lie above the set. */
static const char *read_part(const char *p, uint32_t max, struct hg_range *range, uint32_t *step)
{
    *step = 1;
    p = read_number(p, max, &range->first);
    if (!p)
        return NULL;
    range->last = range->first;
    if (*p == '-') {
        p = read_number(p + 1, max, &range->last);
        if (p && *p == ':')
            p = read_number(p + 1, max, step);
    }
    return p && range->first <= range->last && *step ? p : NULL;
}

int hg_ranges_parse(const char *text, uint32_t max, struct hg_ranges *set, struct hg_err *err)
{
    struct hg_ranges made = HG_RANGES_INIT;
    const char *p = text;

    while (*p) {
        struct hg_range range;
        uint32_t step;

        p = read_part(p, max, &range, &step);
        if (!p || (*p && *p != ',') || (*p == ',' && !p[1]) ||
            (made.n && range.first <= made.items[made.n - 1].last)) {
            hg_ranges_done(&made);
            return hg_err_set(err, HG_E_INPUT, "not an index set up to %" PRIu32 ": \"%.60s\"", max,
                              text);
        }
        if (step == 1)
            add_range(&made, range.first, range.last);
        for (uint64_t i = range.first; step > 1 && i <= range.last; i += step)
            add_range(&made, (uint32_t)i, (uint32_t)i);
        if (*p == ',')
            p++;
    }
    *set = made;
    return 0;
}

bool hg_ranges_has(const struct hg_ranges *set, uint32_t value)
{
    size_t low = 0, high = set->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (set->items[middle].last < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->n && set->items[low].first <= value;
}

uint64_t hg_ranges_count(const struct hg_ranges *set)
{
    uint64_t count = 0;

    for (size_t i = 0; i < set->n; i++)
        count += (uint64_t)set->items[i].last - set->items[i].first + 1;
    return count;
}

void hg_ranges_format(const struct hg_ranges *set, struct hg_buf *out)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct hg_range *r = &set->items[i];

        hg_buf_printf(out, "%s%" PRIu32, i ? "," : "", r->first);
        if (r->last > r->first)
            hg_buf_printf(out, "-%" PRIu32, r->last);
    }
}

void hg_ranges_done(struct hg_ranges *set)
{
    HG_VEC_DONE(set);
}
