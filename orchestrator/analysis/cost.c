/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/cost.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/map.h"
#include "analysis/places.h"

/* Seconds for which a result held its devices. */
static double held_s(const struct hg_result *r)
{
    double wall = hg_result_number(r, "wall_s");

    return isnan(wall) ? hg_result_number(r, "train_s") : wall;
}

static double price_of(const struct hg_builder *b, const struct hg_report_entry *e)
{
    const json_t *prices = b->r->sets[e->set].prices;
    const char *hardware = json_string_value(json_object_get(e->result->cell, "hardware"));
    const json_t *price = hardware ? json_object_get(prices, hardware) : NULL;

    return json_is_number(price) ? json_number_value(price) : NAN;
}

static double device_hours(const struct hg_result *r)
{
    return held_s(r) * r->devices / 3600;
}

static double energy_j(const struct hg_result *r)
{
    return hg_result_number(r, "energy_j");
}

static double samples_per_s(const struct hg_result *r)
{
    return hg_result_number(r, "samples_per_s");
}

static void fill_point(const struct hg_builder *b, const struct hg_configuration *c,
                       struct hg_point *p)
{
    double per_s;

    p->device_hours = hg_builder_center(b, c, true, b->r->statistic, device_hours);
    if (c->base != HG_MAP_NONE)
        p->hours_ratio = p->device_hours / hg_builder_center(b, &b->configurations.items[c->base],
                                                             false, b->r->statistic, device_hours);
    p->energy_j = hg_builder_center(b, c, true, b->r->statistic, energy_j);
    p->cost = p->device_hours * price_of(b, &b->r->entries[c->entry]);
    per_s = hg_builder_center(b, c, true, b->r->statistic, samples_per_s);
    if (per_s > 0) /* b->room still holds the runs */
        p->per_s = hg_stats_center(b->room, p->n, b->r->statistic);
}

void hg_cost_fill(struct hg_builder *b, struct hg_table *t)
{
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++)
        if (t->points[i].n)
            fill_point(b, hg_builder_configuration(b, &t->points[i]), &t->points[i]);
}

/* ---- Listings ---- */

static bool any_known(const struct hg_table *t, bool *energy, bool *money)
{
    *energy = *money = false;
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        *energy = *energy || !isnan(t->points[i].energy_j);
        *money = *money || !isnan(t->points[i].cost);
    }
    return *energy || *money;
}

static char *money_title(const struct hg_report *r)
{
    return hg_str_printf("cost%s%s", r->currency && *r->currency ? ", " : "",
                         r->currency ? r->currency : "");
}

/* Decimals that leave three digits of the smallest figure above zero. */
static int decimals_of(const struct hg_table *t, double (*figure)(const struct hg_point *p))
{
    double smallest = INFINITY;

    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        double v = t->points[i].n ? figure(&t->points[i]) : NAN;

        smallest = v > 0 && v < smallest ? v : smallest;
    }
    if (!isfinite(smallest) || smallest >= 100)
        return 0;
    return smallest < 1e-6 ? 8 : 2 - (int)floor(log10(smallest));
}

static double hours_of(const struct hg_point *p)
{
    return p->device_hours;
}

static double watt_hours_of(const struct hg_point *p)
{
    return p->energy_j / 3600;
}

static double cost_of(const struct hg_point *p)
{
    return p->cost;
}

static void list_costs(const struct hg_report *r, const struct hg_table *t, bool energy,
                       const char *money, struct hg_listing *l)
{
    int hours = decimals_of(t, hours_of), watt_hours = decimals_of(t, watt_hours_of),
        cost = decimals_of(t, cost_of);

    hg_place_columns(r, l);
    hg_listing_column(l, "device_hours", "device-hours", false);
    hg_listing_column(l, "device_hours_ratio", "of the baseline's", false);
    if (energy)
        hg_listing_column(l, "energy_wh", "energy, Wh", false);
    if (money)
        hg_listing_column(l, "cost", money, false);
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        const struct hg_point *p = &t->points[i];

        if (p->n == 0)
            continue;
        hg_place_values(r, t, i, l);
        hg_listing_number(l, p->device_hours, hours);
        hg_listing_number(l, p->hours_ratio, 2);
        if (energy)
            hg_listing_number(l, watt_hours_of(p), watt_hours);
        if (money)
            hg_listing_number(l, p->cost, cost);
    }
}

void hg_cost_list(struct hg_builder *b, struct hg_table *t)
{
    bool energy, money, known = any_known(t, &energy, &money);
    char *title = money_title(b->r);

    if (known || b->options->cost)
        list_costs(b->r, t, energy, money ? title : NULL,
                   hg_listing_add(&t->listings, "cost", "cost of one run"));
    free(title);
}

/* Everything that one kind of hardware did, including failed attempts. */
struct spent {
    double hours, lost_hours, energy_j, money;
    size_t attempts, lost;
};

static void spend(const struct hg_builder *b, const struct hg_report_entry *e,
                  const struct hg_result *attempt, bool counts, struct spent *s)
{
    double hours = device_hours(attempt), joules = energy_j(attempt), price = price_of(b, e);

    if (isnan(hours)) /* it never began, or its duration is unknown */
        return;
    s->attempts++;
    s->hours += hours;
    s->lost += !counts;
    s->lost_hours += counts ? 0 : hours;
    s->energy_j += isnan(joules) ? 0 : joules;
    s->money += hours * price;
}

/* Index of the entry of every result, by set and cell; HG_MAP_NONE: not shown. */
struct owners {
    size_t *entry, *begin; /* entry[begin[set] + result->first] */
};

static struct owners find_owners(const struct hg_report *r)
{
    struct owners o = { .begin = hg_alloc_zeroed(r->n_sets + 1, sizeof *o.begin) };
    size_t n = 0;

    for (size_t s = 0; s < r->n_sets; s++) {
        o.begin[s] = n;
        n += r->sets[s].n;
    }
    o.entry = hg_alloc((n + 1) * sizeof *o.entry);
    for (size_t i = 0; i < n; i++)
        o.entry[i] = HG_MAP_NONE;
    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].shown)
            o.entry[o.begin[r->entries[i].set] + r->entries[i].result->first] = i;
    return o;
}

/* Spent by hardware: spent[value of the key], spent[0] where cells do not say. */
static void spend_all(const struct hg_builder *b, size_t key, struct spent *spent)
{
    const struct hg_report *r = b->r;
    struct owners o = find_owners(r);

    for (size_t s = 0; s < r->n_sets; s++)
        for (size_t i = 0; i < r->sets[s].n; i++) {
            const struct hg_result *attempt = &r->sets[s].items[i];
            size_t at = o.entry[o.begin[s] + attempt->first];
            const struct hg_report_entry *e = at == HG_MAP_NONE ? NULL : &r->entries[at];

            if (e)
                spend(b, e, attempt, e->result == attempt && !e->state,
                      &spent[key == HG_MAP_NONE ? 0 : hg_frame_row(&r->frame, at)[key]]);
        }
    free(o.entry);
    free(o.begin);
}

static void list_spent(const struct hg_report *r, const struct spent *spent, const char *title,
                       struct hg_listing *l)
{
    bool energy = false, money = false;

    for (size_t v = 0; v < r->frame.values.n; v++) {
        energy = energy || spent[v].energy_j > 0;
        money = money || spent[v].money > 0;
    }
    hg_listing_column(l, "hardware", "hardware", true);
    hg_listing_column(l, "attempts", "attempts", false);
    hg_listing_column(l, "device_hours", "device-hours", false);
    hg_listing_column(l, "lost_attempts", "lost", false);
    hg_listing_column(l, "lost_device_hours", "device-hours", false);
    if (energy)
        hg_listing_column(l, "energy_wh", "energy, Wh", false);
    if (money)
        hg_listing_column(l, "cost", title, false);
    for (size_t v = 0; v < r->frame.values.n; v++) {
        if (!spent[v].attempts)
            continue;
        hg_listing_text(l, hg_report_text(r, (uint32_t)v));
        hg_listing_number(l, (double)spent[v].attempts, 0);
        hg_listing_number(l, spent[v].hours, spent[v].hours < 1 ? 5 : 2);
        hg_listing_number(l, (double)spent[v].lost, 0);
        hg_listing_number(l, spent[v].lost_hours, spent[v].hours < 1 ? 5 : 2);
        if (energy)
            hg_listing_number(l, spent[v].energy_j / 3600, 1);
        if (money)
            hg_listing_number(l, spent[v].money, 2);
    }
    hg_listing_note(l, "all attempts of the cells shown; lost: failed or superseded attempts");
}

void hg_cost_list_spent(struct hg_builder *b)
{
    struct hg_report *r = b->r;
    bool wanted = b->options->cost;
    struct spent *spent;
    char *title;

    for (size_t t = 0; t < r->tables.n && !wanted; t++) {
        bool energy, money;

        wanted = any_known(&r->tables.items[t], &energy, &money);
    }
    if (!wanted)
        return;
    spent = hg_alloc_zeroed(r->frame.values.n + 1, sizeof *spent);
    title = money_title(r);
    spend_all(b, hg_frame_find_key(&r->frame, "hardware"), spent);
    list_spent(r, spent, title, hg_listing_add(&r->listings, "spent", "spent"));
    free(title);
    free(spent);
}
