/* SPDX-License-Identifier: Apache-2.0 */
/* What a place cost: device-hours, energy where it was measured, money where a price is known. */
#include <math.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "analysis/build.h"

/* Seconds for which a result held its devices. */
static double held_s(const struct hg_result *r)
{
    double wall = hg_result_number(r, "wall_s");

    return isnan(wall) ? hg_result_number(r, "train_s") : wall;
}

static double price_of(const struct hg_build *b, const struct hg_report_entry *e)
{
    const json_t *prices = b->r->sets[e->set].prices;
    const char *hardware = json_string_value(json_object_get(e->result->cell, "hardware"));
    const json_t *price = hardware ? json_object_get(prices, hardware) : NULL;

    return json_is_number(price) ? json_number_value(price) : NAN;
}

/* Median of one number of the entries that count; what is no number leaves no median. */
static double median_of(const struct hg_build *b, const struct hg_config *c, bool shown_only,
                        double *room, double (*number)(const struct hg_result *r))
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = &b->r->entries[b->config_entries[c->begin + i]];

        if (e->state || (shown_only && !e->shown))
            continue;
        room[n] = number(e->result);
        if (isnan(room[n++]))
            return NAN;
    }
    return hg_stats_median(room, n);
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

void hg_build_cost(struct hg_build *b, const struct hg_config *c, double *room, struct hg_point *p)
{
    const struct hg_report_entry *e = &b->r->entries[c->entry];
    double per_s;

    if (p->n == 0)
        return;
    p->device_hours = median_of(b, c, true, room, device_hours);
    if (c->base != HG_MAP_NONE)
        p->hours_ratio =
            p->device_hours / median_of(b, &b->configs.items[c->base], false, room, device_hours);
    p->energy_j = median_of(b, c, true, room, energy_j);
    p->cost = p->device_hours * price_of(b, e);
    per_s = median_of(b, c, true, room, samples_per_s);
    if (per_s > 0) /* room still holds the runs */
        p->per_s = hg_stats_center(room, p->n);
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

void hg_build_list_keys(const struct hg_report *r, struct hg_listing *l)
{
    for (size_t i = 0; i < r->n_row_keys + r->n_column_keys; i++) {
        size_t key = i < r->n_row_keys ? r->row_keys[i] : r->column_keys[i - r->n_row_keys];

        hg_listing_column(l, r->frame.keys.items[key].name, r->frame.keys.items[key].name, false);
    }
    l->n_keys = l->columns.n;
}

void hg_build_list_place(const struct hg_report *r, const struct hg_table *t, size_t point,
                         struct hg_listing *l)
{
    for (size_t i = 0; i < r->n_row_keys; i++)
        hg_build_list_value(r, l, t->rows[point / t->n_columns * r->n_row_keys + i]);
    for (size_t i = 0; i < r->n_column_keys; i++)
        hg_listing_text(l,
                        hg_report_text(r, t->columns[point % t->n_columns * r->n_column_keys + i]));
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

    hg_build_list_keys(r, l);
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
        hg_build_list_place(r, t, i, l);
        hg_listing_number(l, p->device_hours, hours);
        hg_listing_number(l, p->hours_ratio, 2);
        if (energy)
            hg_listing_number(l, watt_hours_of(p), watt_hours);
        if (money)
            hg_listing_number(l, p->cost, cost);
    }
}

int hg_build_cost_listing(struct hg_build *b, struct hg_table *t)
{
    struct hg_listing spare = { 0 };
    bool energy, money, known = any_known(t, &energy, &money);
    char *title = money_title(b->r);

    if (title && (known || b->options->cost))
        list_costs(b->r, t, energy, money ? title : NULL,
                   hg_listing_add(&t->listings, "cost", "cost of one run", &spare));
    hg_listing_done(&spare);
    free(title);
    return title ? 0 : -1;
}

/* Everything that one kind of hardware did, also in vain. */
struct spent {
    double hours, lost_hours, energy_j, money;
    size_t attempts, lost;
};

static void spend(const struct hg_build *b, const struct hg_report_entry *e,
                  const struct hg_result *attempt, bool counts, struct spent *s)
{
    double hours = device_hours(attempt), joules = energy_j(attempt), price = price_of(b, e);

    if (isnan(hours)) /* never began, or nobody knows for how long */
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

static int find_owners(const struct hg_report *r, struct owners *o)
{
    size_t n = 0;

    o->begin = calloc(r->n_sets + 1, sizeof *o->begin);
    for (size_t s = 0; s < r->n_sets && o->begin; s++) {
        o->begin[s] = n;
        n += r->sets[s].n;
    }
    o->entry = malloc((n + 1) * sizeof *o->entry);
    if (!o->begin || !o->entry)
        return -1;
    for (size_t i = 0; i < n; i++)
        o->entry[i] = HG_MAP_NONE;
    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].shown)
            o->entry[o->begin[r->entries[i].set] + r->entries[i].result->first] = i;
    return 0;
}

/* Spent by hardware: spent[value of the key], spent[0] where cells do not say. */
static void spend_all(const struct hg_build *b, const struct owners *o, size_t key,
                      struct spent *spent)
{
    const struct hg_report *r = b->r;

    for (size_t s = 0; s < r->n_sets; s++)
        for (size_t i = 0; i < r->sets[s].n; i++) {
            const struct hg_result *attempt = &r->sets[s].items[i];
            size_t at = o->entry[o->begin[s] + attempt->first];
            const struct hg_report_entry *e = at == HG_MAP_NONE ? NULL : &r->entries[at];

            if (e)
                spend(b, e, attempt, e->result == attempt && !e->state,
                      &spent[key == HG_MAP_NONE ? 0 : hg_frame_row(&r->frame, at)[key]]);
        }
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
    hg_listing_column(l, "lost_attempts", "in vain", false);
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
    hg_listing_note(l, "all attempts at the cells shown, also those that do not count");
}

int hg_build_spent(struct hg_build *b)
{
    struct hg_report *r = b->r;
    size_t key = hg_frame_find_key(&r->frame, "hardware");
    struct spent *spent = calloc(r->frame.values.n + 1, sizeof *spent);
    struct hg_listing spare = { 0 };
    struct owners o = { 0 };
    char *title = money_title(r);
    bool wanted = b->options->cost;
    int rc = spent && title ? 0 : -1;

    for (size_t t = 0; t < r->tables.n && !wanted; t++) {
        bool energy, money;

        wanted = any_known(&r->tables.items[t], &energy, &money);
    }
    if (wanted && rc == 0 && (rc = find_owners(r, &o)) == 0) {
        spend_all(b, &o, key, spent);
        list_spent(r, spent, title, hg_listing_add(&r->listings, "spent", "spent", &spare));
    }
    hg_listing_done(&spare);
    free(o.entry);
    free(o.begin);
    free(title);
    free(spent);
    return rc;
}
