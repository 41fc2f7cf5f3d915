/* SPDX-License-Identifier: Apache-2.0 */
/* LaTeX: one table environment for each table, with rules of booktabs and columns of siunitx, which align numbers by their points. */
#include "render/renderers.h"

#include <string.h>

#include "analysis/figures.h"
#include "analysis/labels.h"
#include "render/sentences.h"
#include "typeset/escape.h"

/* ---- Columns of numbers ---- */

/* Room of a column: digits in front of the point and behind it, and the widest text behind a number. */
struct room {
    int whole, decimals;
    size_t tail;  /* characters */
    bool numeric; /* any number at all */
};

/* Numbers as siunitx reads them: without durations, exponents and words. */
static bool is_plain(const char *number)
{
    return *number && strspn(number, "-0123456789.,") == strlen(number) &&
           strpbrk(number, "0123456789");
}

static void measure(const char *number, size_t tail, struct room *room)
{
    size_t whole = strcspn(number, ".,"), rest = strlen(number + whole);

    if (!is_plain(number))
        return;
    room->numeric = true;
    if ((int)whole > room->whole)
        room->whole = (int)whole;
    if (rest > 1 && (int)rest - 1 > room->decimals)
        room->decimals = (int)rest - 1;
    if (tail > room->tail)
        room->tail = tail;
}

static void append_room(const struct room *room, struct hg_buf *out)
{
    if (!room->numeric) {
        hg_buf_puts(out, "r");
        return;
    }
    hg_buf_printf(out, "S[table-format=%d.%d", room->whole, room->decimals);
    if (room->tail)
        hg_buf_printf(out, ",table-space-text-post={\\,\\scriptsize %.*s}", (int)room->tail,
                      "0000000000000000000000000000000000000000");
    hg_buf_puts(out, "]");
}

/* A number as it is, anything else in braces, which siunitx leaves alone. */
static void append_number(const char *number, struct hg_buf *out)
{
    if (is_plain(number)) {
        hg_buf_puts(out, number);
    } else if (*number) {
        hg_buf_puts(out, "{");
        hg_latex_append(number, out);
        hg_buf_puts(out, "}");
    }
}

/* Interval and marks, set small behind the number. */
static size_t tail_width(const struct hg_point *p, const struct hg_figure *figure)
{
    size_t width = *figure->spread ? strlen(figure->spread) : 0;

    return width + (*figure->number ? 2 * p->n_notes : 0);
}

static void append_marks(const struct hg_point *p, struct hg_buf *out)
{
    for (size_t i = 0; i < p->n_notes; i++)
        hg_buf_printf(out, "%s%zu", i ? "," : "\\textsuperscript{", p->notes[i] + 1);
    if (p->n_notes)
        hg_buf_puts(out, "}");
}

static bool is_number(const struct hg_report *r, uint32_t value)
{
    return value == 0 || r->frame.values.items[value].is_number;
}

/* Words to the left, numbers to the right. */
static void measure_column(const struct hg_report *r, const struct hg_table *t, size_t column,
                           struct room *room)
{
    for (int section = 0; section < HG_SECTIONS; section++) {
        int decimals = hg_section_decimals(t, (enum hg_section)section);

        if (!hg_section_exists(t, (enum hg_section)section))
            continue;
        for (size_t row = 0; row < t->n_rows; row++) {
            const struct hg_point *p = hg_table_point(t, row, column);
            struct hg_figure figure;

            hg_figure_format(r, p, (enum hg_section)section, decimals, &figure);
            measure(figure.number, tail_width(p, &figure), room);
        }
    }
}

/* Words to the left, keys that are numbers to the right, figures by their points. */
static void append_columns(const struct hg_report *r, const struct hg_table *t, struct hg_buf *out)
{
    for (size_t k = 0; k < r->n_row_keys; k++) {
        bool right = true;

        for (size_t row = 0; row < t->n_rows; row++)
            right = right && is_number(r, t->rows[row * r->n_row_keys + k]);
        hg_buf_puts(out, right ? "r" : "l");
    }
    for (size_t column = 0; column < t->n_columns; column++) {
        struct room room = { 0 };

        measure_column(r, t, column, &room);
        append_room(&room, out);
    }
}

static void append_header(const struct hg_report *r, const struct hg_table *t, struct hg_buf *out)
{
    struct hg_buf label = HG_BUF_INIT;
    const char *gap = "";

    for (size_t k = 0; k < r->n_row_keys; k++, gap = " & ") {
        hg_buf_puts(out, gap);
        hg_latex_append(r->frame.keys.items[r->row_keys[k]].name, out);
    }
    for (size_t column = 0; column < t->n_columns; column++, gap = " & ") {
        hg_buf_printf(out, "%s{", gap);
        hg_column_label(r, t, column, &label);
        hg_latex_append(hg_buf_str(&label), out);
        hg_buf_clear(&label);
        hg_buf_puts(out, "}");
    }
    hg_buf_puts(out, " \\\\\n");
    hg_buf_done(&label);
}

static void append_section(const struct hg_report *r, const struct hg_table *t,
                           enum hg_section section, struct hg_buf *out)
{
    struct hg_buf title = HG_BUF_INIT;
    int decimals = hg_section_decimals(t, section);

    hg_section_title(r, section, &title);
    hg_buf_printf(out, "\\midrule\n\\multicolumn{%zu}{l}{\\emph{", r->n_row_keys + t->n_columns);
    hg_latex_append(hg_buf_str(&title), out);
    hg_buf_puts(out, "}} \\\\\n");
    hg_buf_done(&title);
    for (size_t row = 0; row < t->n_rows; row++) {
        const char *gap = "";

        for (size_t k = 0; k < r->n_row_keys; k++, gap = " & ") {
            uint32_t value = t->rows[row * r->n_row_keys + k];

            hg_buf_puts(out, gap);
            hg_latex_append(value ? hg_report_text(r, value) : "–", out);
        }
        for (size_t column = 0; column < t->n_columns; column++, gap = " & ") {
            const struct hg_point *p = hg_table_point(t, row, column);
            struct hg_figure figure;

            hg_figure_format(r, p, section, decimals, &figure);
            hg_buf_puts(out, gap);
            append_number(figure.number, out);
            if (tail_width(p, &figure)) {
                hg_buf_puts(out, " {\\,\\scriptsize ");
                hg_latex_append(figure.spread, out);
                append_marks(p, out);
                hg_buf_puts(out, "}");
            }
        }
        hg_buf_puts(out, " \\\\\n");
    }
}

static void append_caption(const struct hg_report *r, const struct hg_table *t, struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;

    hg_buf_puts(&text, r->title);
    hg_buf_puts(&text, ": ");
    hg_completeness_format(r, &text);
    hg_buf_puts(&text, ". ");
    hg_table_title(r, t, &text);
    if (r->n_split_keys || t->rehearsal)
        hg_buf_puts(&text, ". ");
    hg_method_format(r, &text);
    if (t->has_speedup) {
        hg_buf_puts(&text, "; ");
        hg_baseline_format(r, &text);
    }
    hg_buf_puts(&text, ".");
    hg_buf_puts(out, "\\caption{");
    hg_latex_append(hg_buf_str(&text), out);
    hg_buf_puts(out, "}\n");
    hg_buf_done(&text);
}

static void append_notes(const struct hg_table *t, struct hg_buf *out)
{
    if (!t->no_speedup && t->remarks.n + t->notes.n == 0)
        return;
    hg_buf_puts(out, "\n\\smallskip\n\\begin{minipage}{\\linewidth}\\footnotesize\n");
    if (t->no_speedup) {
        hg_latex_append(t->no_speedup, out);
        hg_buf_puts(out, t->remarks.n + t->notes.n ? "\\\\\n" : "\n");
    }
    for (size_t i = 0; i < t->remarks.n; i++) {
        hg_latex_append(t->remarks.items[i], out);
        hg_buf_puts(out, i + 1 < t->remarks.n || t->notes.n ? "\\\\\n" : "\n");
    }
    for (size_t i = 0; i < t->notes.n; i++) {
        hg_buf_printf(out, "\\textsuperscript{%zu} ", i + 1);
        hg_latex_append(t->notes.items[i], out);
        hg_buf_puts(out, i + 1 < t->notes.n ? "\\\\\n" : "\n");
    }
    hg_buf_puts(out, "\\end{minipage}\n");
}

/* Above a column of numbers; never read as one. */
static void append_title(const char *title, struct hg_buf *out)
{
    hg_buf_puts(out, "{");
    hg_latex_append(title, out);
    hg_buf_puts(out, "}");
}

static void append_listing_columns(const struct hg_report *r, const struct hg_listing *l,
                                   struct hg_buf *out)
{
    for (size_t column = 0; column < l->columns.n; column++) {
        struct room room = { 0 };

        for (size_t row = 0; row < hg_listing_rows(l) && !l->columns.items[column].left; row++) {
            struct hg_buf word = HG_BUF_INIT;

            hg_datum_format(hg_listing_datum(l, row, column), &r->style, &word);
            measure(hg_buf_str(&word), 0, &room);
            hg_buf_done(&word);
        }
        if (l->columns.items[column].left)
            hg_buf_puts(out, "l");
        else
            append_room(&room, out);
    }
}

/* Numbers are written with the mark that the report has; siunitx would make it a point. */
static void append_mark_setting(const struct hg_report *r, struct hg_buf *out)
{
    if (r->style.comma)
        hg_buf_puts(out, "\\sisetup{output-decimal-marker={,}}\n");
}

static void append_listing_row(const struct hg_report *r, const struct hg_listing *l, size_t row,
                               struct hg_buf *out)
{
    struct hg_buf word = HG_BUF_INIT;

    for (size_t column = 0; column < l->columns.n; column++) {
        hg_buf_clear(&word);
        if (row == 0)
            hg_buf_puts(&word, l->columns.items[column].title);
        else
            hg_datum_format(hg_listing_datum(l, row - 1, column), &r->style, &word);
        hg_buf_puts(out, column ? " & " : "");
        if (l->columns.items[column].left)
            hg_latex_append(hg_buf_str(&word), out);
        else if (row > 0)
            append_number(hg_buf_str(&word), out);
        else
            append_title(hg_buf_str(&word), out);
    }
    hg_buf_puts(out, " \\\\\n");
    hg_buf_done(&word);
}

static void append_listing(const struct hg_report *r, const struct hg_listing *l,
                           struct hg_buf *out)
{
    hg_buf_puts(out, "\n\\begin{table}\n\\centering\n");
    append_mark_setting(r, out);
    hg_buf_puts(out, "\\caption{");
    hg_latex_append(r->title, out);
    hg_buf_puts(out, ": ");
    hg_latex_append(l->title, out);
    hg_buf_puts(out, ".}\n\\begin{tabular}{");
    append_listing_columns(r, l, out);
    hg_buf_puts(out, "}\n\\toprule\n");
    append_listing_row(r, l, 0, out);
    hg_buf_puts(out, "\\midrule\n");
    for (size_t row = 1; row <= hg_listing_rows(l); row++)
        append_listing_row(r, l, row, out);
    hg_buf_puts(out, "\\bottomrule\n\\end{tabular}\n");
    for (size_t i = 0; i < l->notes.n; i++) {
        hg_buf_puts(out, "\n\\smallskip\n\\begin{minipage}{\\linewidth}\\footnotesize\n");
        hg_latex_append(l->notes.items[i], out);
        hg_buf_puts(out, "\n\\end{minipage}\n");
    }
    hg_buf_puts(out, "\\end{table}\n");
}

static void append_table(const struct hg_report *r, const struct hg_table *t, struct hg_buf *out)
{
    hg_buf_puts(out, "\\begin{table}\n\\centering\n");
    append_mark_setting(r, out);
    append_caption(r, t, out);
    hg_buf_puts(out, "\\begin{tabular}{");
    append_columns(r, t, out);
    hg_buf_puts(out, "}\n\\toprule\n");
    append_header(r, t, out);
    for (int s = 0; s < HG_SECTIONS; s++)
        if (hg_section_exists(t, (enum hg_section)s))
            append_section(r, t, (enum hg_section)s, out);
    hg_buf_puts(out, "\\bottomrule\n\\end{tabular}\n");
    append_notes(t, out);
    hg_buf_puts(out, "\\end{table}\n");
    for (size_t i = 0; i < t->listings.n; i++)
        append_listing(r, &t->listings.items[i], out);
}

static void render(const struct hg_report *r, const struct hg_render_options *o, struct hg_buf *out)
{
    (void)o;
    hg_buf_puts(
        out,
        "% needs \\usepackage[T1]{fontenc}, \\usepackage{booktabs} and \\usepackage{siunitx}\n");
    for (size_t i = 0; i < r->tables.n; i++) {
        hg_buf_puts(out, i ? "\n" : "");
        append_table(r, &r->tables.items[i], out);
    }
    for (size_t i = 0; i < r->listings.n; i++)
        append_listing(r, &r->listings.items[i], out);
}

const struct hg_renderer hg_renderer_latex = {
    .name = "latex",
    .endings = "tex",
    .render = render,
    .escape = hg_latex_append,
};
