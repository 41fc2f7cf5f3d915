/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/laws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/text.h"
#include "analysis/entries.h"
#include "analysis/figures.h"
#include "analysis/places.h"

/* The next step is so many times the devices of the last point. */
#define NEXT_STEP 2

/* ---- The runs behind a series ---- */

/* A metric as a time; of a rate its inverse. */
static double log_time(const struct hg_report *r, double value)
{
    return r->kind == HG_METRIC_RATE ? -log(value) : log(value);
}

/* Under weak scaling a time is that of more work; a rate is not. */
static double log_work(const struct hg_report *r, const struct hg_series *s,
                       const struct hg_point *p)
{
    return s->kind == HG_SCALING_WEAK && r->kind == HG_METRIC_TIME ? log(p->work) : 0;
}

/* The runs of a configuration on p devices: the n numbers in b->room, or those that published means stand for. */
static struct hg_law_point summarise(const struct hg_builder *b, const struct hg_configuration *c,
                                     bool shown_only, size_t n, double p, double work)
{
    struct hg_law_point q = { .p = p };

    if (!hg_builder_published(b, c, shown_only, &q.log))
        hg_moments_make(b->room, n, &q.log);
    q.log.mean = q.log.n ? (b->r->kind == HG_METRIC_RATE ? -q.log.mean : q.log.mean) - work : NAN;
    return q;
}

static struct hg_law_point of_point(struct hg_builder *b, const struct hg_series *s,
                                    const struct hg_point *p)
{
    const struct hg_configuration *c = hg_builder_configuration(b, p);
    size_t n = 0;

    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(b, c, i);

        if (e->shown && !e->state)
            b->room[n++] = e->value;
    }
    return summarise(b, c, true, n, p->p, log_work(b->r, s, p));
}

static struct hg_law_point of_baseline(struct hg_builder *b, size_t base)
{
    const struct hg_configuration *c = &b->configurations.items[base];

    return summarise(b, c, false, hg_builder_values(b, c, b->room), 1, 0);
}

/* The configuration that a point is compared with. */
static size_t base_of(const struct hg_builder *b, const struct hg_point *p)
{
    return hg_builder_configuration(b, p)->base;
}

/* ---- Which points ---- */

static const struct hg_point *point_of(const struct hg_table *t, const struct hg_series *s,
                                       size_t i)
{
    return &t->points[s->points[i]];
}

/* What speaks against every law; NULL. */
static const char *objection(const struct hg_builder *b, const struct hg_table *t,
                             const struct hg_series *s)
{
    size_t base = base_of(b, point_of(t, s, 0));

    if (t->rehearsal)
        return "a rehearsal";
    for (size_t i = 0; i < s->n_points; i++) {
        if (point_of(t, s, i)->superlinear)
            return "efficiency above 1";
        if (base_of(b, point_of(t, s, i)) != base)
            return "different baselines";
    }
    if (b->configurations.items[base].off_law)
        return "its baseline has a footnote";
    return point_of(t, s, s->n_points - 1)->speedup.value > 1 ? NULL : "no gain from more devices";
}

/* The baseline, then the points of the series that laws are fitted to. Returns how many; *last is the last of them. */
static size_t gather(struct hg_builder *b, const struct hg_table *t, const struct hg_series *s,
                     struct hg_law_point *list, const struct hg_point **last)
{
    size_t n = 0;

    list[n++] = of_baseline(b, base_of(b, point_of(t, s, 0)));
    for (size_t i = 0; i < s->n_points; i++) {
        const struct hg_point *p = point_of(t, s, i);

        if (p->off_law)
            continue;
        list[n++] = of_point(b, s, p);
        *last = p;
    }
    return n;
}

/* ---- The next step ---- */

/* exp(e + shift), or exp(-(e + shift)). */
static struct hg_estimate raise(const struct hg_estimate *e, double shift, bool inverse)
{
    struct hg_estimate out = { .value = exp(e->value + shift),
                               .low = exp(e->low + shift),
                               .high = exp(e->high + shift),
                               .has_interval = e->has_interval };

    if (inverse)
        out = (struct hg_estimate){ 1 / out.value, 1 / out.high, 1 / out.low, out.has_interval };
    return out;
}

/* One further run, and its speedup over the baseline of the table. */
static void predict(const struct hg_report *r, const struct hg_point *last, struct hg_series *s,
                    const struct hg_law_fit *fit)
{
    struct hg_estimate time = hg_laws_predict(fit, NEXT_STEP * last->p);
    double work = log_work(r, s, last),
           base = log_time(r, last->value.value) - work + log(last->speedup.value);

    s->no_prediction = fit->lack_of_fit    ? "lack of fit"
                       : isnan(time.value) ? "the fitted law ends before"
                                           : NULL;
    if (s->no_prediction)
        return;
    s->has_prediction = true;
    s->prediction.law = fit->law;
    s->prediction.p = NEXT_STEP * last->p;
    s->prediction.devices = NEXT_STEP * last->devices;
    s->prediction.speedup = raise(&time, -base, true);
    if (work != 0)
        work += log(NEXT_STEP);
    s->prediction.value = raise(&time, work, r->kind == HG_METRIC_RATE);
}

static bool suits(enum hg_law law, enum hg_scaling_kind kind)
{
    return kind != HG_SCALING_NEITHER && (law == HG_LAW_GUSTAFSON) == (kind == HG_SCALING_WEAK);
}

void hg_laws_of_series(struct hg_builder *b, const struct hg_table *t, struct hg_series *s)
{
    struct hg_law_point *list = hg_alloc((s->n_points + 1) * sizeof *list);
    const struct hg_point *last = NULL;
    const char *why = objection(b, t, s);
    size_t n = why ? 0 : gather(b, t, s, list, &last);

    s->law_points = n ? n - 1 : 0;
    for (enum hg_law law = 0; law < HG_LAWS; law++) {
        if (!suits(law, s->kind))
            continue;
        s->no_law[law] = why ? why : hg_laws_fit(law, list, n, &s->laws[law]);
        s->has_law[law] = !s->no_law[law];
        if (s->has_law[law] && law != HG_LAW_AMDAHL)
            predict(b->r, last, s, &s->laws[law]);
    }
    free(list);
}

/* ---- What is withheld ---- */

#define NAMES_MAX 12 /* of series, in one note */

/* Why law number `law` is withheld, HG_LAWS: the prediction; NULL: it is not. */
static const char *withheld(const struct hg_series *s, int law)
{
    return law == HG_LAWS ? s->no_prediction : s->no_law[law];
}

static bool any_law(const struct hg_series *s)
{
    for (enum hg_law law = 0; law < HG_LAWS; law++)
        if (s->has_law[law])
            return true;
    return false;
}

/* Append ", NAME" for the name after n others. */
static void append_name(const struct hg_series *s, size_t n, struct hg_buf *out)
{
    if (n < NAMES_MAX)
        hg_buf_printf(out, "%s%s", n ? ", " : "", s->label);
}

static void append_rest(size_t n, struct hg_buf *out)
{
    if (n > NAMES_MAX)
        hg_buf_printf(out, " and %zu more", n - NAMES_MAX);
}

/* "no USL: ddp, fsdp (too few runs)". Series for which no law is fitted at all (none) share "no law", said with the reason of their first. */
static void note_reason(const struct hg_table *t, int law, bool none, const char *why,
                        struct hg_listing *l)
{
    struct hg_buf text = HG_BUF_INIT;
    size_t n = 0;

    hg_buf_printf(&text, "no %s: ",
                  none             ? "law"
                  : law == HG_LAWS ? "prediction"
                                   : hg_law_names[law]);
    for (size_t i = 0; i < t->series.n; i++) {
        const char *own = withheld(&t->series.items[i], law);

        if (own && strcmp(own, why) == 0 && any_law(&t->series.items[i]) != none)
            append_name(&t->series.items[i], n++, &text);
    }
    append_rest(n, &text);
    hg_buf_printf(&text, " (%s)", why);
    hg_listing_note(l, hg_buf_str(&text));
    hg_buf_done(&text);
}

#define REASONS_MAX 32 /* more than there are */

struct said {
    const char *why;
    bool none;
};

/* Is it new? If so it is added. */
static bool say(struct said *said, size_t *n, const char *why, bool none)
{
    for (size_t i = 0; i < *n; i++)
        if (said[i].none == none && strcmp(said[i].why, why) == 0)
            return false;
    if (*n == REASONS_MAX)
        return false;
    said[(*n)++] = (struct said){ why, none };
    return true;
}

void hg_laws_note_withheld(const struct hg_table *t, struct hg_listing *l)
{
    for (int law = 0; law <= HG_LAWS; law++) {
        struct said said[REASONS_MAX];
        size_t n = 0;

        for (size_t i = 0; i < t->series.n; i++) {
            const char *why = withheld(&t->series.items[i], law);
            bool none = !any_law(&t->series.items[i]);

            if (why && !(none && law == HG_LAW_USL) && say(said, &n, why, none))
                note_reason(t, law, none, why, l);
        }
    }
}

/* ---- The listings ---- */

static bool has_prediction(const struct hg_series *s)
{
    return s->has_prediction;
}

static bool lacks_fit(const struct hg_series *s)
{
    for (enum hg_law law = 0; law < HG_LAWS; law++)
        if (s->has_law[law] && s->laws[law].lack_of_fit)
            return true;
    return false;
}

/* Without points that have a footnote. */
static bool leaves_out(const struct hg_series *s)
{
    return any_law(s) && s->law_points < s->n_points;
}

/* "HEAD: ddp, fsdp"; nothing if there is no such series. */
static void note_series(const struct hg_table *t, bool (*has)(const struct hg_series *s),
                        const char *head, struct hg_listing *l)
{
    struct hg_buf text = HG_BUF_INIT;
    size_t n = 0;

    hg_buf_puts(&text, head);
    for (size_t i = 0; i < t->series.n; i++)
        if (has(&t->series.items[i]))
            append_name(&t->series.items[i], n++, &text);
    append_rest(n, &text);
    if (n)
        hg_listing_note(l, hg_buf_str(&text));
    hg_buf_done(&text);
}

static bool any(const struct hg_table *t, bool (*has)(const struct hg_series *s))
{
    for (size_t i = 0; i < t->series.n; i++)
        if (has(&t->series.items[i]))
            return true;
    return false;
}

static void list_coefficient(struct hg_listing *l, const struct hg_coefficient *c, int decimals)
{
    hg_listing_number(l, c->value, decimals);
    hg_listing_number(l, c->error, decimals);
}

static void list_law(struct hg_listing *l, const struct hg_series *s, enum hg_law law)
{
    const struct hg_law_fit *fit = &s->laws[law];

    hg_listing_text(l, s->label);
    hg_listing_text(l, hg_law_names[law]);
    list_coefficient(l, &fit->coefficients[0], 3);
    for (int i = 0; i < 2 && fit->n == 1; i++)
        hg_listing_none(l);
    if (fit->n > 1)
        list_coefficient(l, &fit->coefficients[1], 4);
    for (int i = 0; i < 3 && law == HG_LAW_GUSTAFSON; i++)
        hg_listing_none(l);
    if (law == HG_LAW_GUSTAFSON)
        return;
    hg_listing_number(l, hg_laws_limit(fit), 1);
    if (law == HG_LAW_USL)
        hg_listing_number(l, hg_laws_peak(fit), 0);
    else
        hg_listing_none(l);
    hg_listing_number(l, hg_laws_knee(fit), 0);
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
    for (size_t i = 0; i < t->series.n; i++)
        for (enum hg_law law = 0; law < HG_LAWS; law++)
            if (t->series.items[i].has_law[law])
                list_law(l, &t->series.items[i], law);
    hg_listing_note(l, "serial: serial fraction (USL: sigma); ±: 68 % interval; limit: highest "
                       "speedup; peak, knee: in units of the baseline's devices");
    note_series(
        t, lacks_fit,
        "lack of fit, points further from a law than their runs explain (F test at 1 %): ", l);
    note_series(t, leaves_out, "places with footnotes left out: ", l);
}

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

        if (!s->has_prediction)
            continue;
        hg_listing_text(l, s->label);
        hg_listing_text(l, hg_law_names[s->prediction.law]);
        hg_listing_number(l, s->prediction.devices, 0);
        hg_listing_number(l, s->prediction.speedup.value, 2);
        hg_listing_number(l, s->prediction.speedup.low, 2);
        hg_listing_number(l, s->prediction.speedup.high, 2);
        hg_place_metric(r, l, s->prediction.value.value, decimals);
    }
    hg_listing_note(l, "from, to: 95 % interval of a single further run against this baseline, if "
                       "the law holds there");
}

void hg_laws_list(const struct hg_report *r, struct hg_table *t)
{
    if (any(t, any_law))
        list_laws(t, hg_listing_add(&t->listings, "laws", "scaling laws"));
    if (any(t, has_prediction))
        list_predictions(r, t,
                         hg_listing_add(&t->listings, "predicted",
                                        "predicted, not measured: twice the devices"));
}
