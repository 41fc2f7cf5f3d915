/* SPDX-License-Identifier: Apache-2.0 */
#include "render/compare.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "analysis/figures.h"
#include "analysis/labels.h"
#include "render/sentences.h"
#include "typeset/plain.h"
#include "typeset/sheet.h"

#define WIDTH 80

/* ---- Figures ---- */

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

/* In the order of their numbers, as sentences of the page. */
static void add_notes(const struct hg_compare *c, const struct numbers *n,
                      struct hg_verdict_page *page)
{
    const struct hg_report *r = c->report;
    bool found = true;

    for (size_t number = 0; found; number++) {
        found = false;
        for (size_t t = 0; t < r->tables.n; t++)
            for (size_t i = 0; i < r->tables.items[t].notes.n; i++)
                if (n->items[n->begin[t] + i] == number) {
                    struct hg_buf text = HG_BUF_INIT;

                    hg_mark_format(number, &text);
                    hg_buf_puts(&text, " ");
                    hg_clean_append(r->tables.items[t].notes.items[i], 0, &text);
                    hg_verdict_tail(page, &text);
                    found = true;
                }
    }
}

static const char *doubt(const struct hg_comparison *cell)
{
    return cell->sure || cell->verdict == HG_VERDICT_UNCLEAR ? "" : "?";
}

static void put_cell(const struct hg_compare *c, struct hg_sheet *s,
                     const struct hg_comparison *cell, const struct numbers *numbers)
{
    const struct hg_report *r = c->report;
    const struct hg_point speed = {
        .of = cell->b.of, .n = cell->b.n, .state = cell->b.state, .speedup = cell->speed
    };
    int decimals = hg_section_decimals(cell->table, HG_SECTION_VALUE);
    struct hg_buf word = HG_BUF_INIT;

    for (size_t k = 0; k < r->n_split_keys; k++)
        hg_sheet_put(s, hg_report_text(r, cell->table->split[k]));
    for (size_t k = 0; k < r->n_row_keys; k++)
        hg_sheet_put(s, hg_report_text(r, cell->table->rows[cell->row * r->n_row_keys + k]));
    put_estimate(r, s, &cell->a, HG_SECTION_VALUE, decimals);
    put_estimate(r, s, &cell->b, HG_SECTION_VALUE, decimals);
    put_estimate(r, s, &speed, HG_SECTION_SPEEDUP, 2);
    hg_buf_printf(&word, "%s%s%s", hg_verdict_word(r, cell->verdict), doubt(cell),
                  cell->table->rehearsal ? ", rehearsal" : "");
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

/* "A: x, y   B: z" */
static void append_sides(const struct hg_compare *c, const char *between, struct hg_buf *out)
{
    for (size_t i = 0; i < c->report->n_sets; i++) {
        if (i == 0 || i == c->n_a)
            hg_buf_printf(out, "%s%s: ", i ? between : "", i ? "B" : "A");
        else
            hg_buf_puts(out, ", ");
        hg_clean_append(c->report->labels[i], 0, out);
    }
}

static void append_percent(const struct hg_compare *c, double fraction, struct hg_buf *out)
{
    hg_digits_append(&c->report->style, fraction * 100, 3, out);
    hg_buf_puts(out, " %");
}

/* What the verdicts rest on. */
static void append_assumptions(const struct hg_compare *c, struct hg_buf *out)
{
    hg_buf_puts(out, "differences up to ");
    append_percent(c, c->tolerance, out);
    hg_buf_puts(out, " count as the same; whole runs ");
    if (c->seen.df > 0) {
        hg_buf_puts(out, "differ by ");
        append_percent(c, sqrt(c->seen.value), out);
        hg_buf_puts(out, " as measured, ");
        append_percent(c, c->between, out);
        hg_buf_puts(out, " together with the assumption");
    } else if (c->between > 0) {
        hg_buf_puts(out, "are assumed to differ by ");
        append_percent(c, c->between, out);
    } else {
        hg_buf_puts(out, "are assumed not to differ");
    }
}

static void append_chance(const struct hg_compare *c, struct hg_buf *out)
{
    if (c->by_chance)
        hg_buf_printf(out,
                      "%zu cell%s differ%s by more than the tolerance, but not by more than "
                      "chance and the difference between whole runs explain",
                      c->by_chance, hg_text_s(c->by_chance), c->by_chance == 1 ? "s" : "");
}

static void fill_table(const struct hg_compare *c, const struct numbers *numbers,
                       struct hg_verdict_page *page)
{
    const struct hg_report *r = c->report;
    struct hg_verdict_table *t = HG_VEC_PUSH(&page->tables);

    *t = (struct hg_verdict_table){ .title = hg_strdup("") };
    t->sheet.n_columns = r->n_split_keys + r->n_row_keys + 4;
    t->sheet.left = 1ul << (t->sheet.n_columns - 1);
    put_header(c, &t->sheet);
    for (size_t i = 0; i < c->cells.n; i++)
        put_cell(c, &t->sheet, &c->cells.items[i], numbers);
}

/* ---- Test cases ---- */

/* "A 12.41 ±3 %, B 9.93 ±3 %, speed of B 1.25 ±3 %: faster": the last words of a line of the sheet. */
static char *cell_message(const struct hg_sheet *s, size_t line)
{
    struct hg_buf text = HG_BUF_INIT;
    size_t last = s->n_columns - 1;

    for (size_t k = s->n_columns - 4; k < last; k++)
        if (*s->items[line * s->n_columns + k])
            hg_buf_printf(&text, "%s%s %s", text.len ? ", " : "", s->items[k],
                          s->items[line * s->n_columns + k]);
    hg_buf_printf(&text, "%s%s", text.len ? ": " : "", s->items[line * s->n_columns + last]);
    return hg_buf_detach(&text);
}

static bool is_failure(enum hg_verdict_kind v)
{
    return v == HG_VERDICT_SLOWER || v == HG_VERDICT_ONLY_A || v == HG_VERDICT_BROKEN ||
           v == HG_VERDICT_UNLIKE;
}

static void fill_cases(const struct hg_compare *c, struct hg_verdict_page *page)
{
    const struct hg_report *r = c->report;

    for (size_t i = 0; i < c->cells.n; i++) {
        const struct hg_comparison *cell = &c->cells.items[i];
        enum hg_verdict_kind v = cell->verdict;
        struct hg_buf name = HG_BUF_INIT;

        hg_row_label(r, cell->table, cell->row, &name);
        *HG_VEC_PUSH(&page->cases) = (struct hg_verdict_case){
            .name = hg_buf_detach(&name),
            .message = cell_message(&page->tables.items[0].sheet, i + 1),
            .failure = is_failure(v) ? hg_verdict_word(r, v) : NULL,
            .skipped = v == HG_VERDICT_NONE || v == HG_VERDICT_ONLY_B || v == HG_VERDICT_MENDED,
        };
    }
    if (c->overall_verdict != HG_VERDICT_NONE)
        *HG_VEC_PUSH(&page->cases) = (struct hg_verdict_case){
            .name = hg_strdup("overall"),
            .message = hg_strdup(page->state),
            .failure =
                is_failure(c->overall_verdict) ? hg_verdict_word(r, c->overall_verdict) : NULL,
        };
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
    return json_pack("{s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:s, s:b, s:o}", "cell", members,
                     "rehearsal", cell->table->rehearsal, "a", side(&cell->a), "b", side(&cell->b),
                     "speed", hg_json_number(cell->speed.value), "interval", interval(&cell->speed),
                     "p", hg_json_number(cell->p), "verdict", hg_verdict_word(r, cell->verdict),
                     "sure", cell->sure, "notes", notes);
}

static json_t *labels(const struct hg_compare *c, size_t from, size_t to)
{
    json_t *array = json_array();

    for (size_t i = from; i < to; i++)
        json_array_append_new(array, hg_json_text(c->report->labels[i]));
    return array;
}

static void write_json(const struct hg_compare *c, struct hg_buf *out)
{
    json_t *cells = json_array(), *counts = json_object(), *root;

    for (size_t i = 0; i < c->cells.n; i++)
        json_array_append_new(cells, cell_json(c->report, &c->cells.items[i]));
    for (size_t v = 0; v < HG_VERDICTS; v++)
        if (c->counts[v])
            json_object_set_new(counts, hg_verdict_word(c->report, v),
                                json_integer((json_int_t)c->counts[v]));
    root = json_pack(
        "{s:s, s:s, s:{s:o, s:o}, s:b, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:s, s:o}", "schema",
        "hpcgrid-compare/1", "metric", c->report->metric, "sets", "a", labels(c, 0, c->n_a), "b",
        labels(c, c->n_a, c->report->n_sets), "good", hg_compare_is_good(c), "tolerance",
        c->tolerance, "between", c->between, "between_measured",
        c->seen.df > 0 ? hg_json_number(sqrt(c->seen.value)) : json_null(), "counts", counts,
        "overall", hg_json_number(c->overall.value), "overall_interval", interval(&c->overall),
        "overall_p", hg_json_number(c->overall_p), "overall_verdict",
        hg_verdict_word(c->report, c->overall_verdict), "cells", cells);
    hg_json_dump(root, HG_JSON_INDENT, out);
    hg_buf_puts(out, "\n");
    json_decref(root);
}

/* ---- Forms ---- */

static void fill_page(const struct hg_compare *c, struct hg_verdict_page *page)
{
    struct numbers numbers = number_notes(c);
    struct hg_buf text = HG_BUF_INIT;

    *page = (struct hg_verdict_page){ .good = hg_compare_is_good(c),
                                      .suite = hg_strdup(c->report->metric) };
    append_sides(c, "   ", &text);
    page->title = hg_buf_detach(&text);
    append_overall(c, &text);
    page->state = hg_buf_detach(&text);
    hg_geometric_format(c->report, &text);
    hg_verdict_head(page, &text);
    hg_code_format(c->report, c->n_a, &text);
    if (text.len)
        hg_verdict_head(page, &text);
    append_assumptions(c, &text);
    hg_verdict_head(page, &text);
    append_chance(c, &text);
    if (text.len)
        hg_verdict_tail(page, &text);
    fill_table(c, &numbers, page);
    add_notes(c, &numbers, page);
    free(numbers.items);
    free(numbers.begin);
}

static void write_text(const struct hg_compare *c, const struct hg_verdict_page *page,
                       struct hg_buf *out)
{
    struct hg_buf line = HG_BUF_INIT;

    if (c->report->n_sets == 2)
        hg_buf_printf(out, "%s\n", page->title);
    else
        hg_wrapped_append(page->title, WIDTH, 2, 0, out);
    for (size_t i = 0; i < page->head.n; i++)
        hg_wrapped_append(page->head.items[i], WIDTH, 2, 0, out);
    hg_buf_puts(out, "\n");
    hg_sheet_text(&page->tables.items[0].sheet, out);
    hg_buf_puts(out, "\n");
    hg_wrapped_append(page->state, WIDTH, 2, 0, out);
    for (size_t i = 0; i < page->tail.n; i++) {
        hg_buf_puts(out, i == (c->by_chance > 0) ? "\n" : "");
        hg_wrapped_append(page->tail.items[i], WIDTH, 2, 0, out);
    }
    hg_common_format(c->report, &line);
    if (line.len) {
        hg_buf_puts(out, "\nall cells: ");
        hg_wrapped_append(hg_buf_str(&line), WIDTH, 2, 11, out);
    }
    hg_buf_done(&line);
}

void hg_compare_write(const struct hg_compare *c, enum hg_verdict_form form, struct hg_buf *out)
{
    struct hg_verdict_page page;

    if (form == HG_FORM_JSON) {
        write_json(c, out);
        return;
    }
    fill_page(c, &page);
    fill_cases(c, &page);
    if (form == HG_FORM_MD)
        hg_verdict_md(&page, out);
    else if (form == HG_FORM_HTML)
        hg_verdict_html(&page, out);
    else if (form == HG_FORM_JUNIT)
        hg_verdict_junit(&page, out);
    else
        write_text(c, &page, out);
    hg_verdict_page_done(&page);
}
