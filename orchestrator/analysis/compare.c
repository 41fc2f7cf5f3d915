/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"
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

/* ---- Verdicts ---- */

enum hg_verdict_kind hg_verdict_judge(const struct hg_estimate *speed, double tolerance)
{
    double low = speed->has_interval ? speed->low : speed->value;
    double high = speed->has_interval ? speed->high : speed->value;
    double fast = 1 + tolerance, slow = 1 / fast;

    if (low > fast)
        return HG_VERDICT_FASTER;
    if (high < slow)
        return HG_VERDICT_SLOWER;
    return low >= slow && high <= fast ? HG_VERDICT_SAME : HG_VERDICT_UNCLEAR;
}

static void settle(struct hg_comparison *c, double tolerance)
{
    c->speed = c->b.speedup;
    c->sure = true;
    if (c->a.of == 0 || c->b.of == 0) {
        c->verdict = c->a.of ? HG_VERDICT_ONLY_A : HG_VERDICT_ONLY_B;
    } else if (c->a.n == 0 || c->b.n == 0) {
        c->verdict = c->a.n ? HG_VERDICT_BROKEN : c->b.n ? HG_VERDICT_MENDED : HG_VERDICT_NONE;
    } else if (c->b.refused) {
        c->verdict = HG_VERDICT_UNLIKE;
    } else if (isnan(c->speed.value)) {
        c->verdict = HG_VERDICT_UNCLEAR;
    } else {
        c->verdict = hg_verdict_judge(&c->speed, tolerance);
        c->sure = c->speed.has_interval;
    }
}

static bool is_a(const struct hg_report *r, const struct hg_table *t, size_t column)
{
    const json_t *a = json_object_get(r->baseline, r->source_key);

    return hg_json_equal(r->frame.values.items[t->columns[column]].json, a);
}

static void compare_table(struct hg_compare *c, const struct hg_table *t)
{
    for (size_t row = 0; row < t->n_rows; row++) {
        struct hg_comparison *cell = HG_VEC_PUSH(&c->cells);

        *cell = (struct hg_comparison){ .table = t, .row = row };
        for (size_t column = 0; column < t->n_columns; column++)
            *(is_a(c->report, t, column) ? &cell->a : &cell->b) = *hg_table_point(t, row, column);
        if (cell->b.of == 0)
            cell->b.speedup = (struct hg_estimate)HG_ESTIMATE_NONE;
        settle(cell, c->tolerance);
        c->counts[cell->verdict]++;
    }
}

/* Cells weigh the same, however many runs they had. */
static void mean_of_cells(struct hg_compare *c)
{
    double *v = hg_alloc((c->cells.n + 1) * sizeof *v);
    size_t n = 0;

    for (size_t i = 0; i < c->cells.n; i++)
        if (c->cells.items[i].speed.value > 0) {
            v[n++] = c->cells.items[i].speed.value;
        }
    c->overall = hg_stats_center(v, n, HG_GEOMETRIC_MEAN);
    c->overall_verdict = n ? hg_verdict_judge(&c->overall, c->tolerance) : HG_VERDICT_NONE;
    free(v);
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

struct hg_compare *hg_compare_build(const struct hg_results *sets,
                                    const struct hg_report_options *options, double tolerance,
                                    struct hg_errs *errs)
{
    struct hg_compare *c = hg_alloc_zeroed(1, sizeof *c);
    struct hg_report_options o = *options;

    o.against_first = true;
    c->tolerance = tolerance;
    c->report = hg_report_build(sets, 2, &o, errs);
    if (!c->report || hg_compare_needs_direction(c->report, errs) < 0) {
        hg_compare_free(c);
        return NULL;
    }
    for (size_t i = 0; i < c->report->tables.n; i++)
        compare_table(c, &c->report->tables.items[i]);
    mean_of_cells(c);
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
    return c->counts[HG_VERDICT_SLOWER] + c->counts[HG_VERDICT_ONLY_A] +
               c->counts[HG_VERDICT_BROKEN] + c->counts[HG_VERDICT_UNLIKE] ==
           0;
}
