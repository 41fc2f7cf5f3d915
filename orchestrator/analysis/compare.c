/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "analysis/figures.h"
#include "analysis/sheet.h"

#define WIDTH 80

static const char *const words[HG_VERDICTS] = {
    [HG_VERDICT_SAME] = "same",           [HG_VERDICT_FASTER] = "faster",
    [HG_VERDICT_SLOWER] = "slower",       [HG_VERDICT_UNCLEAR] = "unclear",
    [HG_VERDICT_ONLY_A] = "only in A",    [HG_VERDICT_ONLY_B] = "only in B",
    [HG_VERDICT_BROKEN] = "broken in B",  [HG_VERDICT_MENDED] = "broken in A",
    [HG_VERDICT_NONE] = "broken in both", [HG_VERDICT_UNLIKE] = "not comparable",
};

static bool is_speed(const struct hg_report *r)
{
    return hg_metric_is_time(r->metric) || hg_metric_is_rate(r->metric);
}

const char *hg_verdict_word(const struct hg_report *r, enum hg_verdict_kind verdict)
{
    if (!is_speed(r) && verdict == HG_VERDICT_FASTER)
        return "better";
    return !is_speed(r) && verdict == HG_VERDICT_SLOWER ? "worse" : words[verdict];
}

/* ---- Verdicts ---- */

/* Single runs have a value and no interval: the value alone decides, and the verdict is unsure. */
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

static int compare_table(struct hg_compare *c, const struct hg_table *t)
{
    for (size_t row = 0; row < t->n_rows; row++) {
        struct hg_comparison *cell = HG_VEC_PUSH(&c->cells);

        if (!cell)
            return -1;
        *cell = (struct hg_comparison){ .table = t, .row = row };
        for (size_t column = 0; column < t->n_columns; column++)
            *(is_a(c->report, t, column) ? &cell->a : &cell->b) = *hg_table_point(t, row, column);
        if (cell->b.of == 0)
            cell->b.speedup = (struct hg_estimate)HG_ESTIMATE_NONE;
        settle(cell, c->tolerance);
        c->counts[cell->verdict]++;
    }
    return 0;
}

/* Cells weigh the same, however many runs they had. */
static int mean_of_cells(struct hg_compare *c)
{
    double *v = malloc((c->cells.n + 1) * sizeof *v), sum = 0;
    size_t n = 0;

    if (!v)
        return -1;
    for (size_t i = 0; i < c->cells.n; i++)
        if (c->cells.items[i].speed.value > 0) {
            v[n] = c->cells.items[i].speed.value;
            sum += log(v[n++]);
        }
    c->overall = hg_stats_center(v, n);
    c->overall.value = n ? exp(sum / (double)n) : NAN;
    c->overall_verdict = n ? hg_verdict_judge(&c->overall, c->tolerance) : HG_VERDICT_NONE;
    free(v);
    return 0;
}

struct hg_compare *hg_compare_build(const struct hg_results *sets,
                                    const struct hg_report_options *options, double tolerance,
                                    struct hg_errs *errs)
{
    struct hg_compare *c = calloc(1, sizeof *c);
    struct hg_report_options o = *options;
    int rc = 0;

    if (!c) {
        hg_err_oom(hg_errs_next(errs));
        return NULL;
    }
    o.against_first = true;
    c->tolerance = tolerance;
    c->report = hg_report_build(sets, 2, &o, errs);
    if (c->report && c->report->kind == HG_METRIC_OTHER) {
        hg_err_hint(hg_errs_next(errs), "--better lower or --better higher says which is good");
        rc = hg_err_set(&errs->items[errs->n - 1], HG_E_INPUT,
                        "nobody knows which way \"%s\" is good", c->report->metric);
    }
    for (size_t i = 0; c->report && rc == 0 && i < c->report->tables.n; i++)
        rc = compare_table(c, &c->report->tables.items[i]);
    if (c->report && rc == 0 && mean_of_cells(c) == 0)
        return c;
    if (c->report && errs->n == 0)
        hg_err_oom(hg_errs_next(errs));
    hg_compare_free(c);
    return NULL;
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

/* ---- Text ---- */

static void put_estimate(const struct hg_report *r, struct hg_sheet *s, const struct hg_point *p,
                         enum hg_section section, int decimals)
{
    struct hg_buf word = HG_BUF_INIT;
    struct hg_figure figure;

    hg_figure_format(r, p, section, decimals, &figure);
    hg_buf_puts(&word, figure.number);
    if (*figure.spread)
        hg_buf_printf(&word, " %s", figure.spread);
    hg_sheet_take(s, &word);
}

/* Numbers of the notes of B's cells, of all tables one behind the other; HG_MAP_NONE: no such cell. */
struct numbers {
    size_t *items, *begin; /* items[begin[table] + note] */
};

static void numbers_done(struct numbers *n)
{
    free(n->items);
    free(n->begin);
}

static int number_notes(const struct hg_compare *c, struct numbers *n)
{
    const struct hg_report *r = c->report;
    size_t total = 0, next = 0;

    n->begin = calloc(r->tables.n + 1, sizeof *n->begin);
    for (size_t t = 0; n->begin && t < r->tables.n; t++) {
        n->begin[t] = total;
        total += r->tables.items[t].notes.n;
    }
    n->items = malloc((total + 1) * sizeof *n->items);
    if (!n->begin || !n->items)
        return -1;
    for (size_t i = 0; i < total; i++)
        n->items[i] = HG_MAP_NONE;
    for (size_t i = 0; i < c->cells.n; i++) {
        const struct hg_comparison *cell = &c->cells.items[i];
        size_t *of_table = n->items + n->begin[cell->table - r->tables.items];

        for (size_t k = 0; k < cell->b.n_notes; k++)
            if (of_table[cell->b.notes[k]] == HG_MAP_NONE)
                of_table[cell->b.notes[k]] = next++;
    }
    return 0;
}

/* What keeps B from being comparable with A, or from being complete. */
static void append_marks(const struct hg_compare *c, const struct hg_comparison *cell,
                         const struct numbers *n, struct hg_buf *out)
{
    const size_t *of_table = n->items + n->begin[cell->table - c->report->tables.items];

    for (size_t i = 0; i < cell->b.n_notes; i++) {
        hg_buf_puts(out, " ");
        hg_mark_format(of_table[cell->b.notes[i]], out);
    }
}

static void append_note(size_t number, const char *note, struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;

    hg_mark_format(number, &text);
    hg_buf_puts(&text, " ");
    hg_clean_append(note, 0, &text);
    hg_wrapped_append(hg_buf_str(&text), WIDTH, 2, 0, out);
    hg_buf_done(&text);
}

/* In the order of their numbers. */
static void append_notes(const struct hg_compare *c, const struct numbers *n, struct hg_buf *out)
{
    const struct hg_report *r = c->report;
    bool found = true;

    for (size_t number = 0; found; number++) {
        found = false;
        for (size_t t = 0; t < r->tables.n; t++)
            for (size_t i = 0; i < r->tables.items[t].notes.n; i++)
                if (n->items[n->begin[t] + i] == number) {
                    hg_buf_puts(out, number ? "" : "\n");
                    append_note(number, r->tables.items[t].notes.items[i], out);
                    found = true;
                }
    }
}

static void put_cell(const struct hg_compare *c, struct hg_sheet *s,
                     const struct hg_comparison *cell, const struct numbers *numbers)
{
    const struct hg_report *r = c->report;
    int decimals = hg_section_decimals(cell->table, HG_SECTION_VALUE);
    struct hg_buf word = HG_BUF_INIT;

    for (size_t k = 0; k < r->n_split_keys; k++)
        hg_sheet_put(s, hg_report_text(r, cell->table->split[k]));
    for (size_t k = 0; k < r->n_row_keys; k++)
        hg_sheet_put(s, hg_report_text(r, cell->table->rows[cell->row * r->n_row_keys + k]));
    put_estimate(r, s, &cell->a, HG_SECTION_VALUE, decimals);
    put_estimate(r, s, &cell->b, HG_SECTION_VALUE, decimals);
    put_estimate(r, s, &cell->b, HG_SECTION_SPEEDUP, 2);
    hg_buf_printf(&word, "%s%s", hg_verdict_word(r, cell->verdict), cell->sure ? "" : "?");
    append_marks(c, cell, numbers, &word);
    hg_sheet_take(s, &word);
}

static void put_header(const struct hg_compare *c, struct hg_sheet *s)
{
    const struct hg_report *r = c->report;

    for (size_t k = 0; k < r->n_split_keys; k++)
        hg_sheet_put(s, r->frame.keys.items[r->split_keys[k]].name);
    for (size_t k = 0; k < r->n_row_keys; k++)
        hg_sheet_put(s, r->frame.keys.items[r->row_keys[k]].name);
    hg_sheet_put(s, "A");
    hg_sheet_put(s, "B");
    hg_sheet_put(s, is_speed(r) ? "speed of B" : "gain of B");
    hg_sheet_put(s, "verdict");
}

static void append_overall(const struct hg_compare *c, struct hg_buf *out)
{
    const struct hg_point p = { .of = 1, .n = 1, .speedup = c->overall };
    struct hg_figure figure;
    bool first = true;

    for (size_t v = 0; v < HG_VERDICTS; v++) {
        if (!c->counts[v])
            continue;
        hg_buf_printf(out, "%s%zu %s", first ? "" : ", ", c->counts[v],
                      hg_verdict_word(c->report, v));
        first = false;
    }
    hg_figure_format(c->report, &p, HG_SECTION_SPEEDUP, 3, &figure);
    if (!isnan(c->overall.value))
        hg_buf_printf(out, "; overall %s%s%s (geometric mean over cells): %s%s", figure.number,
                      *figure.spread ? " " : "", figure.spread,
                      hg_verdict_word(c->report, c->overall_verdict),
                      c->overall.has_interval ? "" : "?");
}

void hg_compare_text(const struct hg_compare *c, struct hg_buf *out)
{
    const struct hg_report *r = c->report;
    struct hg_sheet s = { .n_columns = r->n_split_keys + r->n_row_keys + 4 };
    struct hg_buf line = HG_BUF_INIT;
    struct numbers numbers = { 0 };

    if (number_notes(c, &numbers) < 0) {
        out->failed = true;
        numbers_done(&numbers);
        return;
    }
    hg_buf_puts(out, "A: ");
    hg_clean_append(r->labels[0], 0, out);
    hg_buf_puts(out, "   B: ");
    hg_clean_append(r->labels[1], 0, out);
    hg_buf_puts(out, "\n");
    hg_method_format(r, &line);
    hg_wrapped_append(hg_buf_str(&line), WIDTH, 2, 0, out);
    hg_buf_puts(out, "differences up to ");
    hg_digits_append(&r->style, c->tolerance * 100, 3, out);
    hg_buf_puts(out, " % are none\n\n");
    put_header(c, &s);
    for (size_t i = 0; i < c->cells.n && !s.failed; i++)
        put_cell(c, &s, &c->cells.items[i], &numbers);
    hg_sheet_text(&s, 1ul << (s.n_columns - 1), out);
    hg_buf_puts(out, "\n");
    hg_buf_clear(&line);
    append_overall(c, &line);
    hg_wrapped_append(hg_buf_str(&line), WIDTH, 2, 0, out);
    append_notes(c, &numbers, out);
    numbers_done(&numbers);
    hg_buf_clear(&line);
    hg_common_format(r, &line);
    if (line.len) {
        hg_buf_puts(out, "\nall cells: ");
        hg_wrapped_append(hg_buf_str(&line), WIDTH, 2, 11, out);
    }
    hg_buf_done(&line);
    hg_sheet_done(&s);
}

/* ---- JSON ---- */

static json_t *interval(const struct hg_estimate *e)
{
    return e->has_interval ? json_pack("[o, o]", hg_json_number(e->low), hg_json_number(e->high))
                           : json_null();
}

static json_t *side(const struct hg_point *p)
{
    if (p->of == 0)
        return json_null();
    return json_pack("{s:I, s:I, s:o, s:o}", "n", (json_int_t)p->n, "of", (json_int_t)p->of,
                     "value", hg_json_number(p->value.value), "interval", interval(&p->value));
}

static json_t *cell_json(const struct hg_report *r, const struct hg_comparison *cell)
{
    json_t *members = json_object(), *notes = json_array();

    for (size_t i = 0; i < cell->b.n_notes; i++)
        json_array_append_new(notes, hg_json_text(cell->table->notes.items[cell->b.notes[i]]));

    for (size_t k = 0; k < r->n_split_keys + r->n_row_keys; k++) {
        bool split = k < r->n_split_keys;
        size_t i = split ? k : k - r->n_split_keys;
        uint32_t value =
            split ? cell->table->split[i] : cell->table->rows[cell->row * r->n_row_keys + i];
        size_t key = split ? r->split_keys[i] : r->row_keys[i];
        json_t *json = r->frame.values.items[value].json;

        json_object_set_new(members, r->frame.keys.items[key].name,
                            json ? json_incref(json) : json_null());
    }
    return json_pack("{s:o, s:b, s:o, s:o, s:o, s:o, s:s, s:b, s:o}", "cell", members, "rehearsal",
                     cell->table->rehearsal, "a", side(&cell->a), "b", side(&cell->b), "speed",
                     hg_json_number(cell->speed.value), "interval", interval(&cell->speed),
                     "verdict", hg_verdict_word(r, cell->verdict), "sure", cell->sure, "notes",
                     notes);
}

void hg_compare_json(const struct hg_compare *c, struct hg_buf *out)
{
    json_t *cells = json_array(), *counts = json_object(), *root;

    for (size_t i = 0; i < c->cells.n; i++)
        json_array_append_new(cells, cell_json(c->report, &c->cells.items[i]));
    for (size_t v = 0; v < HG_VERDICTS; v++)
        if (c->counts[v])
            json_object_set_new(counts, hg_verdict_word(c->report, v),
                                json_integer((json_int_t)c->counts[v]));
    root = json_pack("{s:s, s:s, s:b, s:f, s:o, s:o, s:o, s:s, s:o}", "schema", "hpcgrid-compare/1",
                     "metric", c->report->metric, "good", hg_compare_is_good(c), "tolerance",
                     c->tolerance, "counts", counts, "overall", hg_json_number(c->overall.value),
                     "overall_interval", interval(&c->overall), "overall_verdict",
                     hg_verdict_word(c->report, c->overall_verdict), "cells", cells);
    if (!root) {
        out->failed = true;
        return;
    }
    hg_json_dump(root, HG_JSON_INDENT, out);
    hg_buf_puts(out, "\n");
    json_decref(root);
}
