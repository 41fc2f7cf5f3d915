/* SPDX-License-Identifier: Apache-2.0 */
#include "render/compare.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/json.h"
#include "analysis/figures.h"
#include "render/sentences.h"
#include "typeset/plain.h"
#include "typeset/sheet.h"

#define WIDTH 80

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

/* The numbers of the notes of B's cells, in the order in which the cells show them. */
static struct numbers number_notes(const struct hg_compare *c)
{
    const struct hg_report *r = c->report;
    struct numbers n = { .begin = hg_alloc_zeroed(r->tables.n + 1, sizeof *n.begin) };
    size_t total = 0, next = 0;

    for (size_t t = 0; t < r->tables.n; t++) {
        n.begin[t] = total;
        total += r->tables.items[t].notes.n;
    }
    n.items = hg_alloc((total + 1) * sizeof *n.items);
    for (size_t i = 0; i < total; i++)
        n.items[i] = HG_MAP_NONE;
    for (size_t i = 0; i < c->cells.n; i++) {
        const struct hg_comparison *cell = &c->cells.items[i];
        size_t *of_table = n.items + n.begin[cell->table - r->tables.items];

        for (size_t k = 0; k < cell->b.n_notes; k++)
            if (of_table[cell->b.notes[k]] == HG_MAP_NONE)
                of_table[cell->b.notes[k]] = next++;
    }
    return n;
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
    hg_sheet_put(s, hg_compare_is_speed(r) ? "speed of B" : "gain of B");
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
    static const char *const sides[] = { "A", "B" };
    const struct hg_report *r = c->report;
    struct hg_sheet s = { .n_columns = r->n_split_keys + r->n_row_keys + 4 };
    struct hg_buf line = HG_BUF_INIT;
    struct numbers numbers = number_notes(c);

    hg_buf_puts(out, "A: ");
    hg_clean_append(r->labels[0], 0, out);
    hg_buf_puts(out, "   B: ");
    hg_clean_append(r->labels[1], 0, out);
    hg_buf_puts(out, "\n");
    hg_method_format(r, &line);
    hg_wrapped_append(hg_buf_str(&line), WIDTH, 2, 0, out);
    hg_buf_clear(&line);
    hg_code_format(r, sides, &line);
    if (line.len)
        hg_wrapped_append(hg_buf_str(&line), WIDTH, 2, 0, out);
    hg_buf_puts(out, "differences up to ");
    hg_digits_append(&r->style, c->tolerance * 100, 3, out);
    hg_buf_puts(out, " % count as the same\n\n");
    put_header(c, &s);
    for (size_t i = 0; i < c->cells.n; i++)
        put_cell(c, &s, &c->cells.items[i], &numbers);
    s.left = 1ul << (s.n_columns - 1);
    hg_sheet_text(&s, out);
    hg_buf_puts(out, "\n");
    hg_buf_clear(&line);
    append_overall(c, &line);
    hg_wrapped_append(hg_buf_str(&line), WIDTH, 2, 0, out);
    append_notes(c, &numbers, out);
    free(numbers.items);
    free(numbers.begin);
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
    hg_json_dump(root, HG_JSON_INDENT, out);
    hg_buf_puts(out, "\n");
    json_decref(root);
}
