/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/laws.h"

#include <math.h>

#include "analysis/figures.h"
#include "analysis/places.h"

/* A prediction with a wider interval, as a factor, is not listed. */
#define SPAN_MAX 2

/* Does the series gain from its devices? If not, a law adds nothing to the table. */
static bool gains(const struct hg_table *t, const struct hg_series *s)
{
    return s->n_points && t->points[s->points[s->n_points - 1]].speedup.value > 1;
}

static bool has_fit(const struct hg_table *t, const struct hg_series *s)
{
    return gains(t, s) && (s->has_amdahl || s->has_usl || s->has_gustafson);
}

static bool has_prediction(const struct hg_table *t, const struct hg_series *s)
{
    const struct hg_estimate *e = &s->prediction.speedup;

    return gains(t, s) && s->has_prediction && e->has_interval && e->high <= SPAN_MAX * e->low;
}

static bool any(const struct hg_table *t,
                bool (*has)(const struct hg_table *t, const struct hg_series *s))
{
    for (size_t i = 0; i < t->series.n; i++)
        if (has(t, &t->series.items[i]))
            return true;
    return false;
}

static const char *kind_text(const struct hg_series *s)
{
    return s->kind == HG_SCALING_UNKNOWN   ? "strong (assumed)"
           : s->kind == HG_SCALING_NEITHER ? "neither: no fit"
                                           : hg_scaling_kind_words[s->kind];
}

static void list_curves(const struct hg_table *t, struct hg_listing *l)
{
    hg_listing_column(l, "series", "", true);
    hg_listing_column(l, "kind", "scaling", true);
    hg_listing_column(l, "points", "points", false);
    hg_listing_column(l, "first_devices_ratio", "p, first", false);
    hg_listing_column(l, "last_devices_ratio", "last", false);
    hg_listing_column(l, "first_serial_fraction", "serial fraction, first", false);
    hg_listing_column(l, "last_serial_fraction", "last", false);
    for (size_t i = 0; i < t->series.n; i++) {
        const struct hg_series *s = &t->series.items[i];

        hg_listing_text(l, s->label);
        hg_listing_text(l, kind_text(s));
        hg_listing_number(l, (double)s->n_points, 0);
        hg_listing_number(l, s->first_p, 0);
        hg_listing_number(l, s->last_p, 0);
        hg_listing_number(l, s->first_karp_flatt, 3);
        hg_listing_number(l, s->last_karp_flatt, 3);
    }
    hg_listing_note(l, "p: devices in units of the baseline's; serial fraction: Karp-Flatt");
}

/* ---- Laws ---- */

static void list_law(struct hg_listing *l, const struct hg_series *s, const char *law)
{
    hg_listing_text(l, s->label);
    hg_listing_text(l, law);
}

static void list_amdahl(struct hg_listing *l, const struct hg_series *s)
{
    list_law(l, s, "Amdahl");
    hg_listing_number(l, s->amdahl.serial, 3);
    hg_listing_number(l, s->amdahl.serial_error, 3);
    hg_listing_none(l);
    hg_listing_none(l);
    hg_listing_number(l, s->amdahl.limit, 1);
    hg_listing_none(l);
    hg_listing_number(l, s->amdahl.knee_p, 0);
}

static void list_usl(struct hg_listing *l, const struct hg_series *s)
{
    double p = s->usl.peak_p,
           most = isinf(p) ? 1 / s->usl.contention
                           : p / (1 + s->usl.contention * (p - 1) + s->usl.coherency * p * (p - 1));

    list_law(l, s, "USL");
    hg_listing_number(l, s->usl.contention, 3);
    hg_listing_number(l, s->usl.contention_error, 3);
    hg_listing_number(l, s->usl.coherency, 4);
    hg_listing_number(l, s->usl.coherency_error, 4);
    hg_listing_number(l, most, 1);
    hg_listing_number(l, p, 0);
    hg_listing_number(l, s->usl.knee_p, 0);
}

static void list_gustafson(struct hg_listing *l, const struct hg_series *s)
{
    list_law(l, s, "Gustafson");
    hg_listing_number(l, s->gustafson.serial, 3);
    hg_listing_number(l, s->gustafson.serial_error, 3);
    for (int i = 0; i < 5; i++)
        hg_listing_none(l);
}

static void list_laws(const struct hg_table *t, struct hg_listing *l)
{
    hg_listing_column(l, "series", "", true);
    hg_listing_column(l, "law", "law", true);
    l->n_keys = 2;
    hg_listing_column(l, "serial_fraction", "serial", false);
    hg_listing_column(l, "serial_fraction_error", "±", false);
    hg_listing_column(l, "coherency", "kappa", false);
    hg_listing_column(l, "coherency_error", "±", false);
    hg_listing_column(l, "limit", "limit", false);
    hg_listing_column(l, "peak_devices_ratio", "peak", false);
    hg_listing_column(l, "knee_devices_ratio", "knee", false);
    for (size_t i = 0; i < t->series.n; i++) {
        const struct hg_series *s = &t->series.items[i];

        if (!has_fit(t, s))
            continue;
        if (s->has_amdahl)
            list_amdahl(l, s);
        if (s->has_usl)
            list_usl(l, s);
        if (s->has_gustafson)
            list_gustafson(l, s);
    }
    hg_listing_note(
        l, "serial: serial fraction (USL: sigma); ±: standard error; limit: highest speedup; "
           "peak, knee: in units of the baseline's devices");
}

/* ---- Predictions ---- */

static void list_predictions(const struct hg_report *r, const struct hg_table *t,
                             struct hg_listing *l)
{
    int decimals = hg_section_decimals(t, HG_SECTION_VALUE);

    hg_listing_column(l, "series", "", true);
    hg_listing_column(l, "law", "law", true);
    hg_listing_column(l, "devices", "devices", false);
    hg_listing_column(l, "speedup", "speedup", false);
    hg_listing_column(l, "speedup_low", "from", false);
    hg_listing_column(l, "speedup_high", "to", false);
    hg_listing_column(l, "value", r->metric, false);
    for (size_t i = 0; i < t->series.n; i++) {
        const struct hg_series *s = &t->series.items[i];
        const struct hg_estimate *e = &s->prediction.speedup;

        if (!has_prediction(t, s))
            continue;
        hg_listing_text(l, s->label);
        hg_listing_text(l, s->prediction.law);
        hg_listing_number(l, s->predicted_devices, 0);
        hg_listing_number(l, e->value, 2);
        hg_listing_number(l, e->low, 2);
        hg_listing_number(l, e->high, 2);
        hg_place_metric(r, l, s->predicted_value, decimals);
    }
    hg_listing_note(l, "from, to: range of 95 % of further measurements, if the law holds there");
}

void hg_laws_list(const struct hg_report *r, struct hg_table *t)
{
    struct hg_listings *all = &t->listings;

    if (t->series.n)
        list_curves(t, hg_listing_add(all, "scaling", "scaling curves"));
    if (any(t, has_fit))
        list_laws(t, hg_listing_add(all, "laws", "scaling laws"));
    if (any(t, has_prediction))
        list_predictions(
            r, t, hg_listing_add(all, "predicted", "predicted, not measured: twice the devices"));
}
