/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/spread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/vec.h"
#include "results/sample.h"
#include "typeset/plain.h"

#define NAMED_MAX 3 /* outliers of a place that are named */

/* The runs of a place in the order in which they started, or, if some do not say when, in that of the set. */
struct runs {
    const struct hg_report_entry **entries;
    char **started;
    double *v;
    size_t n;
};

struct note {
    const struct hg_report *r;
    void (*add)(void *context, const char *text);
    void *context;
};

static int compare_started(const void *pa, const void *pb, void *context)
{
    const struct runs *runs = context;
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    int order = strcmp(runs->started[a], runs->started[b]);

    return order ? order : (a > b) - (a < b);
}

static char *start_of(const struct hg_result *r)
{
    json_t *started = hg_result_get(r, "started");
    char *text = json_is_string(started) ? hg_strdup(json_string_value(started)) : NULL;

    json_decref(started);
    return text;
}

/* Bring entries and values into the order in which they started. */
static void sort_runs(struct runs *runs)
{
    const struct hg_report_entry **entries = hg_alloc((runs->n + 1) * sizeof *entries);
    size_t *order = hg_alloc((runs->n + 1) * sizeof *order), known = 0;

    runs->started = hg_alloc((runs->n + 1) * sizeof *runs->started);
    for (size_t i = 0; i < runs->n; i++) {
        order[i] = i;
        entries[i] = runs->entries[i];
        runs->started[i] = start_of(entries[i]->result);
        known += runs->started[i] != NULL;
    }
    if (known == runs->n)
        qsort_r(order, runs->n, sizeof *order, compare_started, runs);
    for (size_t i = 0; i < runs->n; i++) {
        runs->entries[i] = entries[order[i]];
        runs->v[i] = runs->entries[i]->value;
        free(runs->started[i]);
    }
    free(runs->started);
    free(order);
    free(entries);
}

/* False if a value is not positive: logarithms are compared. */
static bool take_runs(const struct hg_builder *b, const struct hg_configuration *c,
                      struct runs *runs)
{
    bool positive = true;

    runs->entries = hg_alloc((c->n_entries + 1) * sizeof *runs->entries);
    runs->v = hg_alloc((c->n_entries + 1) * sizeof *runs->v);
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(b, c, i);

        if (e->state || !e->shown)
            continue;
        positive = positive && e->value > 0;
        runs->entries[runs->n++] = e;
    }
    if (runs->n >= HG_SAMPLE_MIN)
        sort_runs(runs);
    return positive && runs->n >= HG_SAMPLE_MIN;
}

/* ---- Notes of a place ---- */

/* "10 times", "32 % above", "4 % below". */
static void append_factor(const struct hg_report *r, double factor, const char *what,
                          struct hg_buf *out)
{
    double times = factor >= 1 ? factor : 1 / factor;

    if (times >= 2) {
        if (times < 100)
            hg_digits_append(&r->style, times, 2, out);
        else
            hg_number_append(&r->style, times, 0, out);
        hg_buf_printf(out, factor >= 1 ? " times %s" : " times below %s", what);
    } else {
        hg_number_append(&r->style, fabs(factor - 1) * 100, fabs(factor - 1) < 0.01 ? 1 : 0, out);
        hg_buf_printf(out, " %% %s %s", factor >= 1 ? "above" : "below", what);
    }
}

/* The table says of which configuration. A run without a number of its own is the n-th to start, and has its id. */
static void append_name(const struct hg_result *result, size_t number, struct hg_buf *out)
{
    const json_t *repeat = json_object_get(result->cell, "repeat");

    if (json_is_integer(repeat)) {
        hg_buf_printf(out, "run %lld", (long long)json_integer_value(repeat));
        return;
    }
    hg_buf_printf(out, "run %zu", number);
    if (*result->id) {
        hg_buf_puts(out, " (");
        hg_clean_append(result->id, 60, out);
        hg_buf_puts(out, ")");
    }
}

/* Geometric mean of the runs that are not outliers. */
static double usual(const struct runs *runs, const bool *outlier)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = 0; i < runs->n; i++)
        if (!outlier[i]) {
            sum += log(runs->v[i]);
            n++;
        }
    return n ? exp(sum / (double)n) : NAN;
}

static bool is_slower(const struct hg_report *r, double factor)
{
    return r->kind == HG_METRIC_TIME ? factor > 1 : r->kind == HG_METRIC_RATE && factor < 1;
}

static void note_outliers(const struct note *note, const struct runs *runs, const bool *outlier)
{
    double others = usual(runs, outlier);
    size_t named = 0;

    for (size_t i = 0; i < runs->n && named < NAMED_MAX; i++) {
        struct hg_buf text = HG_BUF_INIT;

        if (!outlier[i])
            continue;
        append_name(runs->entries[i]->result, i + 1, &text);
        hg_buf_puts(&text, " is an outlier: ");
        append_factor(note->r, runs->v[i] / others, "the others", &text);
        if (i == 0 && is_slower(note->r, runs->v[i] / others))
            hg_buf_puts(&text, "; it was the first, before caches were filled?");
        note->add(note->context, hg_buf_str(&text));
        hg_buf_done(&text);
        named++;
    }
}

static void note_groups(const struct note *note, size_t n, size_t lower, const double *centers)
{
    struct hg_buf text = HG_BUF_INIT;

    hg_buf_printf(&text, "its runs form two groups: %zu near ", lower);
    hg_digits_append(&note->r->style, centers[0], 4, &text);
    hg_buf_printf(&text, ", %zu near ", n - lower);
    hg_digits_append(&note->r->style, centers[1], 4, &text);
    hg_buf_puts(&text, "; no single figure describes both");
    note->add(note->context, hg_buf_str(&text));
    hg_buf_done(&text);
}

static void note_drift(const struct note *note, double change)
{
    struct hg_buf text = HG_BUF_INIT;

    hg_buf_puts(&text, "drifts: its later runs are ");
    append_factor(note->r, change, "the earlier ones", &text);
    note->add(note->context, hg_buf_str(&text));
    hg_buf_done(&text);
}

static void note_skew(const struct note *note, const struct runs *runs)
{
    double *sorted = hg_alloc(runs->n * sizeof *sorted), low = runs->v[0], high = low, median;
    struct hg_buf text = HG_BUF_INIT;

    memcpy(sorted, runs->v, runs->n * sizeof *sorted);
    median = hg_stats_median(sorted, runs->n);
    free(sorted);
    for (size_t i = 1; i < runs->n; i++) {
        low = fmin(low, runs->v[i]);
        high = fmax(high, runs->v[i]);
    }
    hg_buf_puts(&text, "its runs are skewed: the highest is ");
    append_factor(note->r, high / median, "their median", &text);
    hg_buf_puts(&text, ", the lowest ");
    append_factor(note->r, low / median, "it", &text);
    note->add(note->context, hg_buf_str(&text));
    hg_buf_done(&text);
}

/* All runs outliers of each other: no majority to compare with. */
static void note_signs(const struct note *note, const struct runs *runs)
{
    bool *outlier = hg_alloc(runs->n * sizeof *outlier);
    double centers[2], change = hg_sample_drift(runs->v, runs->n);
    size_t lower = hg_sample_groups(runs->v, runs->n, centers);
    size_t outliers = hg_sample_outliers(runs->v, runs->n, outlier);

    if (lower)
        note_groups(note, runs->n, lower, centers);
    else if (outliers && outliers < runs->n)
        note_outliers(note, runs, outlier);
    else if (hg_sample_skew(runs->v, runs->n))
        note_skew(note, runs);
    if (change != 1)
        note_drift(note, change);
    free(outlier);
}

static void count_place(const struct hg_report *r, const struct runs *runs, struct hg_spread *all)
{
    bool first = r->kind != HG_METRIC_OTHER;
    double z = hg_sample_dependence(runs->v, runs->n);

    for (size_t i = 1; i < runs->n; i++)
        first = first && is_slower(r, runs->v[0] / runs->v[i]);
    all->places++;
    all->first_slowest += first;
    all->chance += 1 / (double)runs->n;
    all->dependence += z;
    all->tested += z != 0;
}

void hg_spread_place(struct hg_builder *b, const struct hg_configuration *c, struct hg_spread *all,
                     void (*add)(void *context, const char *text), void *context)
{
    struct runs runs = { .n = 0 };
    struct note note = { b->r, add, context };
    bool enough = take_runs(b, c, &runs);

    for (size_t i = 0; i < runs.n; i++) {
        double v = runs.entries[i]->value;

        all->fractions = all->fractions || v != floor(v);
        all->smallest = all->values++ ? fmin(all->smallest, v) : v;
    }
    if (enough) {
        note_signs(&note, &runs);
        count_place(b->r, &runs, all);
    }
    free(runs.entries);
    free(runs.v);
}

/* ---- Remarks on a table ---- */

/* Probability of at least k of n where each has probability p. */
static double at_least(size_t k, size_t n, double p)
{
    return k ? hg_stats_beta((double)k, (double)(n - k + 1), p) : 1;
}

void hg_spread_remark(const struct hg_report *r, const struct hg_spread *all, struct hg_table *t)
{
    struct hg_buf share = HG_BUF_INIT;

    if (all->places &&
        at_least(all->first_slowest, all->places, all->chance / (double)all->places) < 0.01)
        *HG_VEC_PUSH(&t->remarks) = hg_str_printf(
            "the first run is the slowest in %zu of %zu places: caches, or a warm-up?",
            all->first_slowest, all->places);
    if (all->tested > 0 && all->dependence / sqrt(all->tested) < -1.96)
        *HG_VEC_PUSH(&t->remarks) =
            hg_strdup("runs resemble the run before them more than chance explains (von Neumann's "
                      "ratio): the intervals are too narrow");
    if (hg_metric_is_time(r->metric) && all->values >= 3 && !all->fractions &&
        all->smallest < 1000) {
        hg_number_append(&r->style, 100 / all->smallest, 1, &share);
        *HG_VEC_PUSH(&t->remarks) = hg_str_printf(
            "all times are whole seconds: one second is up to %s %% of them", hg_buf_str(&share));
    }
    hg_buf_done(&share);
}
