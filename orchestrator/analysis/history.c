/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"
#include "analysis/boundaries.h"
#include "analysis/build.h"
#include "analysis/compare.h"
#include "analysis/figures.h"
#include "analysis/groups.h"
#include "analysis/places.h"

#define TREND_MAX 40 /* newest sets that the trend shows */

/* One cell in one set. */
struct run {
    size_t set;
    const double *v; /* what counts of its repeats */
    size_t n, of;    /* of == 0: the set has no such cell */
};

struct change {
    size_t at;                /* index of the first run after it */
    struct hg_estimate speed; /* of what comes after in units of what was before */
};

/* One cell in all sets. */
struct line {
    const struct hg_table *table;
    size_t row;
    struct run *runs; /* one for each set, in their order */
    size_t n_runs;
    size_t
        unlike; /* strict: the newest set since the last change that is not comparable with the one before; SIZE_MAX */
    struct {
        struct change *items; /* by time */
        size_t n, cap;
    } changes;
};

struct work {
    struct hg_history *h;
    double *values; /* of all configs, one behind the other */
    size_t *begin;  /* by config */
    size_t *set_of_column;
    struct hg_boundaries boundaries;
    double *room; /* for as many values as there are */
};

/* ---- Values ---- */

/* The values that count, by configuration. */
static void gather_values(struct work *w)
{
    const struct hg_report *r = w->h->report;
    size_t *of_entry = hg_alloc((r->n_entries + 1) * sizeof *of_entry), n_configs = 0;
    size_t *sorted = hg_alloc((r->n_entries + 1) * sizeof *sorted), n = 0;

    for (size_t i = 0; i < r->n_entries; i++) {
        const struct hg_report_entry *e = &r->entries[i];

        n_configs = e->config >= n_configs ? e->config + 1 : n_configs;
        of_entry[i] = e->shown && !e->state ? e->config : HG_MAP_NONE;
        n += of_entry[i] != HG_MAP_NONE;
    }
    w->begin = hg_alloc_zeroed(n_configs + 2, sizeof *w->begin);
    w->values = hg_alloc((n + 1) * sizeof *w->values);
    w->room = hg_alloc((n + 1) * sizeof *w->room);
    hg_groups_sort(of_entry, r->n_entries, n_configs, w->begin, sorted);
    for (size_t i = 0; i < n; i++)
        w->values[i] = r->entries[sorted[i]].value;
    free(of_entry);
    free(sorted);
}

/* Sets by what columns are called. */
static void match_columns(struct work *w, const struct hg_table *t)
{
    const struct hg_report *r = w->h->report;

    free(w->set_of_column);
    w->set_of_column = hg_alloc_zeroed(t->n_columns + 1, sizeof *w->set_of_column);
    for (size_t column = 0; column < t->n_columns; column++)
        for (size_t s = 0; s < r->n_sets; s++)
            if (strcmp(r->labels[s], hg_report_text(r, t->columns[column])) == 0)
                w->set_of_column[column] = s;
}

static void read_line(const struct work *w, struct line *l)
{
    for (size_t s = 0; s < l->n_runs; s++)
        l->runs[s] = (struct run){ .set = s };
    for (size_t column = 0; column < l->table->n_columns; column++) {
        const struct hg_point *p = hg_table_point(l->table, l->row, column);
        struct run *run = &l->runs[w->set_of_column[column]];

        if (p->of == 0)
            continue;
        run->of = p->of;
        run->n = p->n;
        run->v = w->values + w->begin[p->config];
    }
}

/* ---- Changes ---- */

/* Values of the runs from..to, one behind the other. */
static size_t pool(const struct line *l, size_t from, size_t to, double *room)
{
    size_t n = 0;

    for (size_t i = from; i < to; i++) {
        if (l->runs[i].n)
            memcpy(room + n, l->runs[i].v, l->runs[i].n * sizeof *room);
        n += l->runs[i].n;
    }
    return n;
}

/* How fast the runs at..to are in units of the runs from..at. */
static struct hg_estimate speed_of(const struct work *w, const struct line *l, size_t from,
                                   size_t at, size_t to, double level)
{
    size_t n = pool(l, from, at, w->room), m = pool(l, at, to, w->room + n);

    if (n == 0 || m == 0)
        return (struct hg_estimate)HG_ESTIMATE_NONE;
    return w->h->report->higher_is_better ? hg_stats_shift(w->room + n, m, w->room, n, level)
                                          : hg_stats_shift(w->room, n, w->room + n, m, level);
}

/* By how many half widths of its interval a shift is away from none. */
static double weight(const struct hg_estimate *e)
{
    double half = log(e->high / e->low) / 2;

    return e->has_interval && e->value > 0 ? fabs(log(e->value)) / fmax(half, 1e-12) : 0;
}

static bool is_change(const struct work *w, const struct hg_estimate *e)
{
    enum hg_verdict_kind v = hg_verdict_judge(e, w->h->tolerance);

    return e->has_interval && (v == HG_VERDICT_FASTER || v == HG_VERDICT_SLOWER);
}

/* Binary segmentation: the most significant change between from and to, then those on both sides of
 * it. The interval of each of the k places where it could be has level 1 - 0.05/k (Bonferroni). */
static void find_changes(const struct work *w, struct line *l, size_t from, size_t to)
{
    double level = 1 - (1 - HG_STATS_LEVEL) / (double)(to - from > 1 ? to - from - 1 : 1);
    struct change best = { .speed = HG_ESTIMATE_NONE };

    for (size_t at = from + 1; at < to; at++) {
        struct hg_estimate e;

        if (l->runs[at].n == 0) /* a change needs a value after it */
            continue;
        e = speed_of(w, l, from, at, to, level);
        if (is_change(w, &e) && (!best.speed.has_interval || weight(&e) > weight(&best.speed)))
            best = (struct change){ at, e };
    }
    if (!best.speed.has_interval)
        return;
    find_changes(w, l, from, best.at);
    *HG_VEC_PUSH(&l->changes) = best;
    find_changes(w, l, best.at, to);
}

/* Measure each change again between its neighbours, which end its stretch. */
static void measure_changes(const struct work *w, struct line *l)
{
    for (size_t i = 0; i < l->changes.n; i++) {
        struct change *c = &l->changes.items[i];
        size_t from = i ? c[-1].at : 0, to = i + 1 < l->changes.n ? c[1].at : l->n_runs;

        c->speed = speed_of(w, l, from, c->at, to, HG_STATS_LEVEL);
    }
}

/* ---- Listings ---- */

static double level_of(const struct work *w, const struct line *l, size_t from, size_t to)
{
    return hg_stats_median(w->room, pool(l, from, to, w->room));
}

static size_t last_change(const struct line *l)
{
    return l->changes.n ? l->changes.items[l->changes.n - 1].at : 0;
}

static bool has_any(const struct line *l)
{
    for (size_t i = 0; i < l->n_runs; i++)
        if (l->runs[i].n)
            return true;
    return false;
}

/* One character for each set: its median between the lowest and the highest; "·": no such cell, "!": no good result. */
static void append_trend(const struct work *w, const struct line *l, struct hg_buf *out)
{
    static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    size_t from = l->n_runs > TREND_MAX ? l->n_runs - TREND_MAX : 0;
    double low = INFINITY, high = 0;

    for (size_t i = from; i < l->n_runs; i++) {
        double v = level_of(w, l, i, i + 1);

        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    for (size_t i = from; i < l->n_runs; i++) {
        double v = level_of(w, l, i, i + 1), part = high > low ? (v - low) / (high - low) : 0;

        hg_buf_puts(out, l->runs[i].of == 0  ? "·"
                         : l->runs[i].n == 0 ? "!"
                                             : bars[(size_t)(part * 7 + 0.5)]);
    }
}

static void append_verdict(const struct hg_history *h, const struct line *l, struct hg_buf *out)
{
    const struct run *newest = &l->runs[l->n_runs - 1];
    const struct change *last = l->changes.n ? &l->changes.items[l->changes.n - 1] : NULL;

    if (newest->of == 0)
        hg_buf_puts(out, "gone");
    else if (newest->n == 0)
        hg_buf_puts(out, "broken");
    else if (l->unlike != SIZE_MAX)
        hg_buf_printf(out, "not comparable since %s", h->report->labels[l->unlike]);
    else if (last)
        hg_buf_printf(out, "%s since %s",
                      hg_verdict_word(h->report, last->speed.value < 1 ? HG_VERDICT_SLOWER
                                                                       : HG_VERDICT_FASTER),
                      h->report->labels[l->runs[last->at].set]);
    else
        hg_buf_puts(out, "steady");
}

static void count(struct hg_history *h, const struct line *l)
{
    const struct run *newest = &l->runs[l->n_runs - 1];

    h->cells++;
    if (newest->of == 0)
        h->missing++;
    else if (newest->n == 0)
        h->broken++;
    else if (l->unlike != SIZE_MAX)
        h->unlike++;
    else if (l->changes.n == 0)
        h->steady++;
    else if (l->changes.items[l->changes.n - 1].speed.value < 1)
        h->slower++;
    else
        h->faster++;
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

static void key_values(const struct hg_report *r, const struct line *line, struct hg_listing *l)
{
    for (size_t k = 0; k < r->n_row_keys; k++)
        hg_place_value(r, l, line->table->rows[line->row * r->n_row_keys + k]);
    if (r->n_row_keys == 0)
        hg_listing_text(l, "all");
}

static void history_head(const struct hg_history *h, struct hg_listing *l)
{
    key_columns(h->report, l);
    hg_listing_column(l, "sets", "sets", false);
    hg_listing_column(l, "first", "first", false);
    hg_listing_column(l, "now", "now", false);
    hg_listing_column(l, "speed", "speed", false);
    hg_listing_column(l, "trend", "trend", true);
    hg_listing_column(l, "verdict", "verdict", true);
}

static void list_line(const struct work *w, const struct line *line, struct hg_listing *l)
{
    const struct hg_report *r = w->h->report;
    size_t first_end = line->changes.n ? line->changes.items[0].at : line->n_runs, sets = 0;
    int decimals = hg_section_decimals(line->table, HG_SECTION_VALUE);
    double first = level_of(w, line, 0, first_end),
           now = level_of(w, line, last_change(line), line->n_runs);
    struct hg_buf text = HG_BUF_INIT;

    for (size_t i = 0; i < line->n_runs; i++)
        sets += line->runs[i].n > 0;
    key_values(r, line, l);
    hg_listing_number(l, (double)sets, 0);
    hg_place_metric(r, l, first, decimals);
    hg_place_metric(r, l, now, decimals);
    hg_listing_number(l, r->higher_is_better ? now / first : first / now, 2);
    append_trend(w, line, &text);
    hg_listing_text(l, hg_buf_str(&text));
    hg_buf_clear(&text);
    append_verdict(w->h, line, &text);
    hg_listing_text(l, hg_buf_str(&text));
    hg_buf_done(&text);
}

static void changes_head(const struct work *w, struct hg_listing *l)
{
    key_columns(w->h->report, l);
    hg_listing_column(l, "since", "since", true);
    hg_listing_column(l, "verdict", "verdict", true);
    hg_listing_column(l, "speed", "speed", false);
    hg_listing_column(l, "speed_low", "from", false);
    hg_listing_column(l, "speed_high", "to", false);
    hg_listing_column(l, "before", "before", false);
    hg_listing_column(l, "after", "after", false);
    if (w->boundaries.notes.n)
        hg_listing_column(l, "differs", "not like the set before", true);
}

static void list_changes(const struct work *w, const struct line *line, struct hg_listing *l)
{
    const struct hg_report *r = w->h->report;
    int decimals = hg_section_decimals(line->table, HG_SECTION_VALUE);
    struct hg_buf text = HG_BUF_INIT;

    for (size_t i = 0; i < line->changes.n; i++) {
        const struct change *c = &line->changes.items[i];
        size_t from = i ? c[-1].at : 0, to = i + 1 < line->changes.n ? c[1].at : line->n_runs;

        key_values(r, line, l);
        hg_listing_text(l, r->labels[line->runs[c->at].set]);
        hg_listing_text(
            l, hg_verdict_word(r, c->speed.value < 1 ? HG_VERDICT_SLOWER : HG_VERDICT_FASTER));
        hg_listing_number(l, c->speed.value, 2);
        hg_listing_number(l, c->speed.has_interval ? c->speed.low : NAN, 2);
        hg_listing_number(l, c->speed.has_interval ? c->speed.high : NAN, 2);
        hg_place_metric(r, l, level_of(w, line, from, c->at), decimals);
        hg_place_metric(r, l, level_of(w, line, c->at, to), decimals);
        hg_buf_clear(&text);
        hg_boundaries_text(&w->boundaries, line->table, line->row, line->runs[c->at].set, &text);
        if (w->boundaries.notes.n)
            hg_listing_text(l, hg_buf_str(&text));
    }
    hg_buf_done(&text);
}

/* ---- All cells ---- */

static void add_line(struct work *w, struct line *line, struct hg_listing *history,
                     struct hg_listing *changes)
{
    line->changes.n = 0;
    read_line(w, line);
    if (!has_any(line))
        return;
    find_changes(w, line, 0, line->n_runs);
    measure_changes(w, line);
    line->unlike =
        w->h->strict ? hg_boundaries_last(&w->boundaries, line->table, line->row, last_change(line))
                     : SIZE_MAX;
    count(w->h, line);
    list_line(w, line, history);
    list_changes(w, line, changes);
}

/* Hand a listing over to the list, or drop it if it is empty. */
static void take_listing(struct hg_history *h, struct hg_listing *made)
{
    if (hg_listing_rows(made) == 0) {
        hg_listing_done(made);
        return;
    }
    *HG_VEC_PUSH(&h->listings) = *made;
}

static void add_lines(struct work *w)
{
    const struct hg_report *r = w->h->report;
    struct line line = { .n_runs = r->n_sets,
                         .runs = hg_alloc_zeroed(r->n_sets + 1, sizeof *line.runs) };
    struct hg_listing history = { .name = hg_strdup("history"),
                                  .title = hg_strdup("over all sets") };
    struct hg_listing changes = { .name = hg_strdup("changes"), .title = hg_strdup("changes") };

    history_head(w->h, &history);
    changes_head(w, &changes);
    for (size_t t = 0; t < r->tables.n; t++) {
        line.table = &r->tables.items[t];
        match_columns(w, line.table);
        for (line.row = 0; line.row < line.table->n_rows; line.row++)
            add_line(w, &line, &history, &changes);
    }
    hg_boundaries_list(&w->boundaries, w->h->cells, &history);
    take_listing(w->h, &history);
    take_listing(w->h, &changes);
    HG_VEC_DONE(&line.changes);
    free(line.runs);
}

static void analyse(struct hg_history *h)
{
    struct work w = { .h = h };

    gather_values(&w);
    hg_boundaries_open(h->report, &w.boundaries);
    add_lines(&w);
    hg_boundaries_close(&w.boundaries);
    free(w.values);
    free(w.begin);
    free(w.room);
    free(w.set_of_column);
}

struct hg_history *hg_history_build(const struct hg_results *sets, size_t n_sets,
                                    const struct hg_report_options *options, double tolerance,
                                    struct hg_errs *errs)
{
    struct hg_history *h = hg_alloc_zeroed(1, sizeof *h);
    struct hg_report_options o = *options;

    o.against_first = true;
    h->tolerance = tolerance;
    h->strict = o.strict;
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
    hg_listings_done(&h->listings);
    hg_report_free(h->report);
    free(h);
}

bool hg_history_is_good(const struct hg_history *h)
{
    return h->slower + h->broken + h->missing + h->unlike == 0;
}
