/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "analysis/cellruns.h"
#include "analysis/build.h"

static const char *const words[HG_VERDICTS] = {
    [HG_VERDICT_SAME] = "same",           [HG_VERDICT_FASTER] = "faster",
    [HG_VERDICT_SLOWER] = "slower",       [HG_VERDICT_UNCLEAR] = "unclear",
    [HG_VERDICT_ONLY_A] = "only in A",    [HG_VERDICT_ONLY_B] = "only in B",
    [HG_VERDICT_BROKEN] = "broken in B",  [HG_VERDICT_MENDED] = "broken in A",
    [HG_VERDICT_NONE] = "broken in both", [HG_VERDICT_UNLIKE] = "not comparable",
};

bool hg_compare_is_speed(const struct hg_report *r)
{
    return hg_metric_is_time(r->metric) || hg_metric_is_rate(r->metric);
}

const char *hg_verdict_word(const struct hg_report *r, enum hg_verdict_kind verdict)
{
    if (!hg_compare_is_speed(r) && verdict == HG_VERDICT_FASTER)
        return "better";
    return !hg_compare_is_speed(r) && verdict == HG_VERDICT_SLOWER ? "worse" : words[verdict];
}

/* ---- Sides ---- */

struct work {
    struct hg_compare *c;
    struct hg_cellruns cellruns;
    struct hg_cell_run *runs; /* of one row, a set each */
    struct hg_moments *room;  /* those that count, of one side */
    struct {
        struct hg_contrast *items;
        size_t n, cap;
    } contrasts;
    struct {
        size_t *items;
        size_t n, cap;
    } judged; /* the cell of each contrast */
};

/* Several runs count alike; from three on their interval is that of their means. */
static struct hg_estimate side_estimate(const struct hg_moments *b, size_t n)
{
    struct hg_moments means = { .n = n };

    if (n <= 1)
        return hg_moments_estimate(n ? b : &means);
    for (size_t i = 0; i < n; i++)
        means.mean += b[i].mean / (double)n;
    for (size_t i = 0; i < n; i++)
        means.squares += (b[i].mean - means.mean) * (b[i].mean - means.mean);
    means.freedom = n - 1;
    return hg_moments_estimate(&means);
}

static void add_notes(struct hg_point *side, const struct hg_point *p)
{
    for (size_t i = 0; i < p->n_notes; i++) {
        bool known = side->n_notes == HG_POINT_NOTES_MAX;

        for (size_t k = 0; k < side->n_notes; k++)
            known = known || side->notes[k] == p->notes[i];
        if (!known)
            side->notes[side->n_notes++] = p->notes[i];
    }
}

/* The runs first..last as one; those with a value in `out`. Returns how many. */
static size_t read_side(const struct hg_cell_run *runs, size_t first, size_t last,
                        struct hg_point *side, struct hg_moments *out)
{
    size_t n = 0, more;

    *side = (struct hg_point){ .value = HG_ESTIMATE_NONE };
    for (size_t s = first; s < last; s++) {
        const struct hg_point *p = runs[s].point;

        if (!p)
            continue;
        more = p->published ? p->published - p->n : 0;
        side->of += p->of + more;
        side->n += p->n + more;
        side->state = side->state ? side->state : p->state;
        side->refused = side->refused || p->refused;
        if (s > 0) /* the first set is what the others are held against */
            add_notes(side, p);
        if (runs[s].moments.n)
            out[n++] = runs[s].moments;
    }
    if (side->n)
        side->state = NULL;
    side->value = side_estimate(out, n);
    if (n == 0 && last - first == 1 && runs[first].point) /* not positive: it has no logarithm */
        side->value = runs[first].point->value;
    return n;
}

/* Measurements whose spread is known, or of which several show theirs. */
static size_t measurements(const struct hg_moments *b, size_t n)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += b[i].freedom + 1;
    return sum;
}

/* What is known without statistics; NONE with `judge` set: the rest is left to it. */
static enum hg_verdict_kind state_of(const struct hg_comparison *c, bool *judge)
{
    *judge = false;
    if (c->a.of == 0 || c->b.of == 0)
        return c->a.of ? HG_VERDICT_ONLY_A : HG_VERDICT_ONLY_B;
    if (c->a.n == 0 || c->b.n == 0)
        return c->a.n ? HG_VERDICT_BROKEN : c->b.n ? HG_VERDICT_MENDED : HG_VERDICT_NONE;
    if (c->a.refused || c->b.refused)
        return HG_VERDICT_UNLIKE;
    *judge = true;
    return HG_VERDICT_UNCLEAR;
}

static void add_cell(struct work *w, const struct hg_table *t, size_t row)
{
    struct hg_compare *c = w->c;
    struct hg_comparison *cell = HG_VEC_PUSH(&c->cells);
    size_t n_sets = c->report->n_sets, na, nb;
    struct hg_moments *b;
    bool judge;

    *cell = (struct hg_comparison){ .table = t, .row = row, .sure = true, .p = NAN };
    cell->speed = (struct hg_estimate)HG_ESTIMATE_NONE;
    hg_cellruns_row(&w->cellruns, t, row, w->runs);
    na = read_side(w->runs, 0, c->n_a, &cell->a, w->room);
    b = w->room + na;
    nb = read_side(w->runs, c->n_a, n_sets, &cell->b, b);
    cell->verdict = state_of(cell, &judge);
    if (!judge || na == 0 || nb == 0)
        return;
    cell->sure = measurements(w->room, na) >= HG_STATS_INTERVAL_MIN &&
                 measurements(b, nb) >= HG_STATS_INTERVAL_MIN;
    *HG_VEC_PUSH(&w->judged) = c->cells.n - 1;
    hg_contrast_make(w->room, na, b, nb, c->report->higher_is_better ? -1 : 1,
                     HG_VEC_PUSH(&w->contrasts));
}

/* ---- Verdicts ---- */

static enum hg_verdict_kind verdict_of(const struct hg_estimate *speed, double p, double tolerance)
{
    double low = speed->has_interval ? speed->low : speed->value;
    double high = speed->has_interval ? speed->high : speed->value;

    if (p <= 1 - HG_STATS_LEVEL)
        return speed->value > 1 ? HG_VERDICT_FASTER : HG_VERDICT_SLOWER;
    return low >= 1 / (1 + tolerance) && high <= 1 + tolerance ? HG_VERDICT_SAME
                                                               : HG_VERDICT_UNCLEAR;
}

/* What the repeats leave open about these runs, and with several runs on a side what these show. */
static struct hg_estimate ratio_of(const struct hg_compare *c, double d, struct hg_variance noise,
                                   double runs, bool has_interval)
{
    struct hg_variance between = { c->seen.value * runs, c->seen.df };
    struct hg_estimate e =
        hg_contrast_ratio(d, c->seen.df > 0 ? hg_fdr_add(noise, between) : noise);

    e.has_interval = e.has_interval && has_interval;
    return e;
}

static void settle(struct hg_compare *c, struct hg_comparison *cell, const struct hg_contrast *x)
{
    cell->p = x->p;
    cell->speed = ratio_of(c, x->d, x->noise, x->runs, cell->sure);
    cell->verdict = verdict_of(&cell->speed, x->p, c->tolerance);
    cell->chance = cell->verdict == HG_VERDICT_UNCLEAR && fabs(x->d) > log1p(c->tolerance);
    c->by_chance += cell->chance;
}

static void judge(struct work *w, double between)
{
    struct hg_compare *c = w->c;
    size_t n = w->contrasts.n;
    struct hg_overall o = hg_contrasts_judge(w->contrasts.items, n, log1p(c->tolerance), between);

    c->between = o.between;
    c->seen = o.seen;
    c->overall_p = n ? o.p : NAN;
    c->overall =
        n ? ratio_of(c, o.d, o.noise, o.runs, o.repeated) : (struct hg_estimate)HG_ESTIMATE_NONE;
    c->overall_verdict = n ? verdict_of(&c->overall, o.p, c->tolerance) : HG_VERDICT_NONE;
    for (size_t i = 0; i < n; i++)
        settle(c, &c->cells.items[w->judged.items[i]], &w->contrasts.items[i]);
    for (size_t i = 0; i < c->cells.n; i++)
        c->counts[c->cells.items[i].verdict]++;
}

/* ---- All cells ---- */

static void compare_all(struct hg_compare *c, double between)
{
    const struct hg_report *r = c->report;
    struct work w = { .c = c,
                      .runs = hg_alloc((r->n_sets + 1) * sizeof *w.runs),
                      .room = hg_alloc((r->n_sets + 1) * sizeof *w.room) };

    hg_cellruns_open(r, &w.cellruns);
    for (size_t t = 0; t < r->tables.n; t++)
        for (size_t row = 0; row < r->tables.items[t].n_rows; row++)
            add_cell(&w, &r->tables.items[t], row);
    judge(&w, between);
    hg_cellruns_close(&w.cellruns);
    HG_VEC_DONE(&w.contrasts);
    HG_VEC_DONE(&w.judged);
    free(w.runs);
    free(w.room);
}

int hg_compare_needs_direction(const struct hg_report *r, struct hg_errs *errs)
{
    struct hg_err *err;

    if (r->has_direction)
        return 0;
    err = hg_errs_next(errs);
    hg_err_set(err, HG_E_INPUT, "unknown whether higher or lower is better for \"%s\"", r->metric);
    return hg_err_hint(err, "add --better lower or --better higher");
}

struct hg_compare *hg_compare_build(const struct hg_results *sets, size_t n_sets, size_t n_a,
                                    const struct hg_report_options *options,
                                    const struct hg_compare_options *how, struct hg_errs *errs)
{
    struct hg_compare *c = hg_alloc_zeroed(1, sizeof *c);
    struct hg_report_options o = *options;

    o.against_first = true;
    c->n_a = n_a;
    c->tolerance = how->tolerance;
    c->report = hg_report_build(sets, n_sets, &o, errs);
    if (!c->report || hg_compare_needs_direction(c->report, errs) < 0) {
        hg_compare_free(c);
        return NULL;
    }
    compare_all(c, how->between);
    return c;
}

void hg_compare_free(struct hg_compare *c)
{
    if (!c)
        return;
    hg_report_free(c->report);
    HG_VEC_DONE(&c->cells);
    free(c);
}

bool hg_compare_is_good(const struct hg_compare *c)
{
    return c->overall_verdict != HG_VERDICT_SLOWER &&
           c->counts[HG_VERDICT_SLOWER] + c->counts[HG_VERDICT_ONLY_A] +
                   c->counts[HG_VERDICT_BROKEN] + c->counts[HG_VERDICT_UNLIKE] ==
               0;
}
