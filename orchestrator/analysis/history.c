/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"
#include "analysis/boundaries.h"
#include "analysis/build.h"
#include "analysis/figures.h"
#include "analysis/places.h"

#define TREND_MAX 40 /* newest sets that the trend shows */

struct work {
    struct hg_history *h;
    struct hg_boundaries boundaries;
    struct hg_cellruns cellruns;
};

/* ---- Reading ---- */

static bool has_any(const struct hg_history_cell *c, size_t n_sets)
{
    for (size_t i = 0; i < n_sets; i++)
        if (c->runs[i].point && c->runs[i].point->n)
            return true;
    return false;
}

/* A row of a table, unless it never had a good result. */
static void add_cell(struct work *w, const struct hg_table *t, size_t row)
{
    struct hg_history *h = w->h;
    size_t n = h->report->n_sets;
    struct hg_history_cell c = { .table = t, .row = row };

    c.runs = hg_alloc_zeroed(n + 1, sizeof *c.runs);
    hg_cellruns_row(&w->cellruns, t, row, c.runs);
    if (!has_any(&c, n)) {
        free(c.runs);
        return;
    }
    c.moments = hg_alloc_zeroed(n + 1, sizeof *c.moments);
    for (size_t s = 0; s < n; s++)
        c.moments[s] = c.runs[s].moments;
    c.track.runs = c.moments;
    c.track.n = n;
    *HG_VEC_PUSH(&h->cells) = c;
}

/* ---- Verdicts ---- */

static bool lower_is_better(const struct hg_history *h)
{
    return !h->report->higher_is_better;
}

/* exp of a difference of logarithms, after less before, as a speed. */
static struct hg_estimate speed_of(const struct hg_history *h, double d, struct hg_variance v)
{
    struct hg_estimate e = hg_contrast_ratio(lower_is_better(h) ? -d : d, v);

    e.has_interval = e.has_interval && v.df > 0;
    return e;
}

/* The stretch without a change that a set lies in. */
static void stretch_of(const struct hg_history_cell *c, size_t set, size_t *from, size_t *to)
{
    *from = 0;
    *to = c->track.n;
    for (size_t i = 0; i < c->track.shifts.n; i++) {
        size_t at = c->track.shifts.items[i].at;

        if (at <= set)
            *from = at;
        else if (at < *to)
            *to = at;
    }
}

/* Geometric mean of the stretch. */
static double find_level(const struct hg_history_cell *c, size_t set)
{
    size_t from, to;

    stretch_of(c, set, &from, &to);
    return exp(hg_track_mean(&c->track, from, to));
}

/* The stretch before a cell's newest one that it is judged by: that of the baseline run, else the one before the last change. */
static size_t reference_of(const struct hg_history *h, const struct hg_history_cell *c)
{
    if (h->baseline != SIZE_MAX)
        return h->baseline;
    return c->track.shifts.n ? c->track.shifts.items[c->track.shifts.n - 1].at - 1 : 0;
}

static double gain(const struct hg_history *h, double then, double now)
{
    return lower_is_better(h) ? log(then / now) : log(now / then);
}

/* The change from which on a cell is as it is now: the last one; against a baseline run the first of those since which it is better, or
 * worse, than that run. */
static size_t find_since(const struct hg_history *h, const struct hg_history_cell *c, double then,
                         double change)
{
    size_t i = c->track.shifts.n;

    while (i > 0) {
        size_t at = c->track.shifts.items[i - 1].at;
        double before = gain(h, then, c->levels[at - 1]);

        if (h->baseline == SIZE_MAX || !(fabs(before) > log1p(h->tolerance)) || before * change < 0)
            return at;
        i--;
    }
    return 0;
}

/* A change back to where the baseline run was is none. */
static void judge(struct hg_history *h, struct hg_history_cell *c)
{
    const struct hg_cell_run *newest = &c->runs[c->track.n - 1];
    double now, then, change;

    c->levels = hg_alloc_zeroed(c->track.n + 1, sizeof *c->levels);
    for (size_t i = 0; i < c->track.n; i++)
        c->levels[i] = find_level(c, i);
    now = c->levels[c->track.n - 1];
    then = c->levels[reference_of(h, c)];
    change = gain(h, then, now);
    c->since = find_since(h, c, then, change);
    c->speed = speed_of(h, log(now / c->levels[h->baseline == SIZE_MAX ? 0 : h->baseline]),
                        (struct hg_variance){ 0, 0 });
    c->verdict = !newest->point                          ? HG_VERDICT_ONLY_A
                 : newest->point->n == 0                 ? HG_VERDICT_BROKEN
                 : !(fabs(change) > log1p(h->tolerance)) ? HG_VERDICT_SAME
                 : change < 0                            ? HG_VERDICT_SLOWER
                                                         : HG_VERDICT_FASTER;
    h->missing += c->verdict == HG_VERDICT_ONLY_A;
    h->broken += c->verdict == HG_VERDICT_BROKEN;
    h->steady += c->verdict == HG_VERDICT_SAME;
    h->slower += c->verdict == HG_VERDICT_SLOWER;
    h->faster += c->verdict == HG_VERDICT_FASTER;
}

static void find_changes(struct hg_history *h)
{
    struct hg_track *tracks = hg_alloc((h->cells.n + 1) * sizeof *tracks);

    for (size_t i = 0; i < h->cells.n; i++)
        tracks[i] = h->cells.items[i].track;
    hg_changes_find(tracks, h->cells.n, log1p(h->tolerance), h->between);
    for (size_t i = 0; i < h->cells.n; i++) {
        h->cells.items[i].track = tracks[i];
        judge(h, &h->cells.items[i]);
    }
    free(tracks);
}

/* Strict: no verdict on what is not comparable with what was before. */
static void refuse(struct work *w, struct hg_history_cell *c)
{
    struct hg_history *h = w->h;
    size_t *const counts[HG_VERDICTS] = { [HG_VERDICT_SAME] = &h->steady,
                                          [HG_VERDICT_FASTER] = &h->faster,
                                          [HG_VERDICT_SLOWER] = &h->slower };
    size_t since = counts[c->verdict]
                       ? hg_boundaries_last(&w->boundaries, c->table, c->row, c->since)
                       : SIZE_MAX;

    if (since == SIZE_MAX)
        return;
    --*counts[c->verdict];
    h->unlike++;
    c->verdict = HG_VERDICT_UNLIKE;
    c->since = since;
}

/* ---- Listings ---- */

/* One character for each set: its mean between the lowest and the highest; "·": no such cell, "!": no good result. */
static void append_trend(const struct hg_history_cell *c, struct hg_buf *out)
{
    static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    size_t n = c->track.n, from = n > TREND_MAX ? n - TREND_MAX : 0;
    double low = INFINITY, high = 0;

    for (size_t i = from; i < n; i++)
        if (c->track.runs[i].n) {
            low = fmin(low, exp(c->track.runs[i].mean));
            high = fmax(high, exp(c->track.runs[i].mean));
        }
    for (size_t i = from; i < n; i++) {
        double v = exp(c->track.runs[i].mean), part = high > low ? (v - low) / (high - low) : 0;

        hg_buf_puts(out, !c->runs[i].point     ? "·"
                         : !c->track.runs[i].n ? "!"
                                               : bars[(size_t)(part * 7 + 0.5)]);
    }
}

void hg_history_verdict(const struct hg_history *h, const struct hg_history_cell *c,
                        struct hg_buf *out)
{
    static const char *const words[HG_VERDICTS] = {
        [HG_VERDICT_SAME] = "steady", [HG_VERDICT_BROKEN] = "broken", [HG_VERDICT_ONLY_A] = "gone"
    };

    hg_buf_puts(out,
                words[c->verdict] ? words[c->verdict] : hg_verdict_word(h->report, c->verdict));
    if (!words[c->verdict] && c->since)
        hg_buf_printf(out, " since %s", h->report->labels[c->since]);
    if (c->table->rehearsal)
        hg_buf_puts(out, ", rehearsal");
}

static void key_columns(const struct hg_report *r, struct hg_listing *l)
{
    for (size_t k = 0; k < r->n_row_keys; k++) {
        const char *name = r->frame.keys.items[r->row_keys[k]].name;

        hg_listing_column(l, name, name, false);
    }
    if (r->n_row_keys == 0)
        hg_listing_column(l, "cell", "cell", true);
}

static void key_values(const struct hg_report *r, const struct hg_history_cell *c,
                       struct hg_listing *l)
{
    for (size_t k = 0; k < r->n_row_keys; k++)
        hg_place_value(r, l, c->table->rows[c->row * r->n_row_keys + k]);
    if (r->n_row_keys == 0)
        hg_listing_text(l, "all");
}

static void history_head(const struct hg_history *h, struct hg_listing *l)
{
    key_columns(h->report, l);
    hg_listing_column(l, "sets", "sets", false);
    if (h->baseline == SIZE_MAX)
        hg_listing_column(l, "first", "first", false);
    else
        hg_listing_column(l, "baseline", "baseline", false);
    hg_listing_column(l, "now", "now", false);
    hg_listing_column(l, "speed", "speed", false);
    hg_listing_column(l, "trend", "trend", true);
    hg_listing_column(l, "verdict", "verdict", true);
}

static void list_cell(const struct hg_history *h, const struct hg_history_cell *c,
                      struct hg_listing *l)
{
    const struct hg_report *r = h->report;
    int decimals = hg_section_decimals(c->table, HG_SECTION_VALUE);
    struct hg_buf text = HG_BUF_INIT;
    size_t sets = 0;

    for (size_t i = 0; i < c->track.n; i++)
        sets += c->runs[i].point && c->runs[i].point->n > 0;
    key_values(r, c, l);
    hg_listing_number(l, (double)sets, 0);
    hg_place_metric(r, l, c->levels[h->baseline == SIZE_MAX ? 0 : h->baseline], decimals);
    hg_place_metric(r, l, c->levels[c->track.n - 1], decimals);
    hg_listing_number(l, c->speed.value, 2);
    append_trend(c, &text);
    hg_listing_text(l, hg_buf_str(&text));
    hg_buf_clear(&text);
    hg_history_verdict(h, c, &text);
    hg_listing_text(l, hg_buf_str(&text));
    hg_buf_done(&text);
}

static void changes_head(const struct hg_history *h, bool differ, struct hg_listing *l)
{
    key_columns(h->report, l);
    hg_listing_column(l, "since", "since", true);
    hg_listing_column(l, "verdict", "verdict", true);
    hg_listing_column(l, "speed", "speed", false);
    hg_listing_column(l, "speed_low", "from", false);
    hg_listing_column(l, "speed_high", "to", false);
    hg_listing_column(l, "before", "before", false);
    hg_listing_column(l, "after", "after", false);
    if (differ)
        hg_listing_column(l, "differs", "not like the set before", true);
}

static void list_changes(const struct work *w, const struct hg_history_cell *c,
                         struct hg_listing *l)
{
    const struct hg_history *h = w->h;
    const struct hg_report *r = h->report;
    int decimals = hg_section_decimals(c->table, HG_SECTION_VALUE);
    struct hg_buf text = HG_BUF_INIT;
    bool differs;

    for (size_t i = 0; i < c->track.shifts.n; i++) {
        const struct hg_shift *s = &c->track.shifts.items[i];
        struct hg_estimate speed = speed_of(h, s->d, s->v);

        hg_buf_clear(&text);
        differs = hg_boundaries_text(&w->boundaries, c->table, c->row, s->at, &text);
        key_values(r, c, l);
        hg_listing_text(l, r->labels[s->at]);
        hg_listing_text(l, hg_verdict_word(r, h->strict && differs ? HG_VERDICT_UNLIKE
                                              : speed.value < 1    ? HG_VERDICT_SLOWER
                                                                   : HG_VERDICT_FASTER));
        hg_listing_number(l, speed.value, 2);
        hg_listing_number(l, speed.has_interval ? speed.low : NAN, 2);
        hg_listing_number(l, speed.has_interval ? speed.high : NAN, 2);
        hg_place_metric(r, l, c->levels[s->at - 1], decimals);
        hg_place_metric(r, l, c->levels[s->at], decimals);
        if (w->boundaries.notes.n)
            hg_listing_text(l, hg_buf_str(&text));
    }
    hg_buf_done(&text);
}

/* ---- All cells ---- */

/* Hand a listing over to the list, or drop it if it is empty. */
static void take_listing(struct hg_history *h, struct hg_listing *made)
{
    if (hg_listing_rows(made) == 0) {
        hg_listing_done(made);
        return;
    }
    *HG_VEC_PUSH(&h->listings) = *made;
}

static void list_all(const struct work *w)
{
    struct hg_history *h = w->h;
    struct hg_listing history = { .name = hg_strdup("history"),
                                  .title = hg_strdup("over all sets") };
    struct hg_listing changes = { .name = hg_strdup("changes"), .title = hg_strdup("changes") };

    history_head(h, &history);
    changes_head(h, w->boundaries.notes.n > 0, &changes);
    for (size_t i = 0; i < h->cells.n; i++) {
        list_cell(h, &h->cells.items[i], &history);
        list_changes(w, &h->cells.items[i], &changes);
    }
    hg_boundaries_list(&w->boundaries, h->cells.n, &history);
    take_listing(h, &history);
    take_listing(h, &changes);
}

static void analyse(struct hg_history *h)
{
    struct work w = { .h = h };

    hg_cellruns_open(h->report, &w.cellruns);
    for (size_t t = 0; t < h->report->tables.n; t++)
        for (size_t row = 0; row < h->report->tables.items[t].n_rows; row++)
            add_cell(&w, &h->report->tables.items[t], row);
    hg_cellruns_close(&w.cellruns);
    find_changes(h);
    hg_boundaries_open(h->report, &w.boundaries);
    for (size_t i = 0; h->strict && i < h->cells.n; i++)
        refuse(&w, &h->cells.items[i]);
    list_all(&w);
    hg_boundaries_close(&w.boundaries);
}

struct hg_history *hg_history_build(const struct hg_results *sets, size_t n_sets,
                                    const struct hg_report_options *options,
                                    const struct hg_compare_options *how, size_t baseline,
                                    struct hg_errs *errs)
{
    struct hg_history *h = hg_alloc_zeroed(1, sizeof *h);
    struct hg_report_options o = *options;

    o.against_first = true;
    h->tolerance = how->tolerance;
    h->between = how->between;
    h->strict = options->strict;
    h->baseline = baseline;
    h->report = hg_report_build(sets, n_sets, &o, errs);
    if (!h->report || hg_compare_needs_direction(h->report, errs) < 0) {
        hg_history_free(h);
        return NULL;
    }
    analyse(h);
    return h;
}

void hg_history_free(struct hg_history *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->cells.n; i++) {
        free(h->cells.items[i].moments);
        free(h->cells.items[i].levels);
        HG_VEC_DONE(&h->cells.items[i].track.shifts);
        free(h->cells.items[i].runs);
    }
    HG_VEC_DONE(&h->cells);
    hg_listings_done(&h->listings);
    hg_report_free(h->report);
    free(h);
}

bool hg_history_is_good(const struct hg_history *h)
{
    return h->slower + h->broken + h->missing + h->unlike == 0;
}
