/* SPDX-License-Identifier: Apache-2.0 */
/* LaTeX: one table environment for each table, with rules of booktabs and columns of siunitx, which align numbers by their points. */
#include "render/renderers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "analysis/figures.h"
#include "analysis/labels.h"
#include "render/latex_width.h"
#include "render/sentences.h"
#include "typeset/escape.h"

#define HEADER_PT 44 /* wider names of columns are set in several lines */
#define GAP_PT 8     /* between columns: twice \\tabcolsep */

/* What the options ask for. */
struct paper {
    const char *caption, *label; /* LaTeX; NULL: none */
    double width;                /* of the column, in pt */
    size_t n_tables;
};

/* ---- Columns of numbers ---- */

/* Room of a column: digits in front of the point and behind it, and the widest text behind a number. */
struct room {
    int whole, decimals;
    size_t tail;   /* characters */
    bool numeric;  /* any number at all */
    bool negative; /* one with a minus */
};

/* Numbers as siunitx reads them: without durations, exponents and words. */
static bool is_plain(const char *number)
{
    return *number && strspn(number, "-0123456789.,") == strlen(number) &&
           strpbrk(number, "0123456789");
}

static void measure(const char *number, size_t tail, struct room *room)
{
    bool negative = *number == '-';
    size_t whole, rest;

    if (!is_plain(number))
        return;
    number += negative;
    whole = strcspn(number, ".,");
    rest = strlen(number + whole);
    room->numeric = true;
    room->negative = room->negative || negative;
    if ((int)whole > room->whole)
        room->whole = (int)whole;
    if (rest > 1 && (int)rest - 1 > room->decimals)
        room->decimals = (int)rest - 1;
    if (tail > room->tail)
        room->tail = tail;
}

/* Of so many small characters behind a number. */
static double room_tail(size_t tail)
{
    return tail ? 1.67 + 4 * (double)tail : 0;
}

static void append_room(const struct room *room, struct hg_buf *out)
{
    if (!room->numeric) {
        hg_buf_puts(out, "r");
        return;
    }
    hg_buf_printf(out, "S[table-format=%s%d.%d", room->negative ? "-" : "", room->whole,
                  room->decimals);
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

static double room_width(const struct room *room)
{
    double digits = room->whole + room->decimals + (room->negative ? 1.56 : 0); /* 7.78 pt */

    return room->numeric ? digits * 5 + (room->decimals ? 2.78 : 0) + room_tail(room->tail) : 0;
}

/* Words to the left, keys that are numbers to the right. */
static bool key_is_right(const struct hg_report *r, const struct hg_table *t, size_t k)
{
    for (size_t row = 0; row < t->n_rows; row++)
        if (!is_number(r, t->rows[row * r->n_row_keys + k]))
            return false;
    return true;
}

static double key_width(const struct hg_report *r, const struct hg_table *t, size_t k)
{
    struct hg_buf ignored = HG_BUF_INIT;
    double width =
        hg_latex_stack(r->frame.keys.items[r->row_keys[k]].name, HEADER_PT, 'l', &ignored);

    for (size_t row = 0; row < t->n_rows; row++)
        width = fmax(width, hg_latex_width(hg_report_text(r, t->rows[row * r->n_row_keys + k])));
    hg_buf_done(&ignored);
    return width;
}

/* Of the words that stand among the numbers: states, durations. */
static double word_width(const struct hg_report *r, const struct hg_table *t, size_t column)
{
    double width = 0;

    for (int s = 0; s < HG_SECTIONS; s++)
        for (size_t row = 0; row < t->n_rows && hg_section_exists(t, (enum hg_section)s); row++) {
            const struct hg_point *p = hg_table_point(t, row, column);
            struct hg_figure figure;

            hg_figure_format(r, p, (enum hg_section)s, hg_section_decimals(t, (enum hg_section)s),
                             &figure);
            if (!is_plain(figure.number))
                width =
                    fmax(width, hg_latex_width(figure.number) + room_tail(tail_width(p, &figure)));
        }
    return width;
}

static double column_width(const struct hg_report *r, const struct hg_table *t, size_t column)
{
    struct hg_buf label = HG_BUF_INIT, ignored = HG_BUF_INIT;
    struct room room = { 0 };
    double width;

    hg_column_label(r, t, column, &label);
    measure_column(r, t, column, &room);
    width = fmax(hg_latex_stack(hg_buf_str(&label), HEADER_PT, 'c', &ignored),
                 fmax(room_width(&room), word_width(r, t, column)));
    hg_buf_done(&label);
    hg_buf_done(&ignored);
    return width;
}

static void append_columns(const struct hg_report *r, const struct hg_table *t, size_t from,
                           size_t to, struct hg_buf *out)
{
    for (size_t k = 0; k < r->n_row_keys; k++)
        hg_buf_puts(out, key_is_right(r, t, k) ? "r" : "l");
    for (size_t column = from; column < to; column++) {
        struct room room = { 0 };

        measure_column(r, t, column, &room);
        append_room(&room, out);
    }
}

static void append_header(const struct hg_report *r, const struct hg_table *t, size_t from,
                          size_t to, struct hg_buf *out)
{
    struct hg_buf label = HG_BUF_INIT;
    const char *gap = "";

    for (size_t k = 0; k < r->n_row_keys; k++, gap = " & ") {
        hg_buf_puts(out, gap);
        hg_latex_stack(r->frame.keys.items[r->row_keys[k]].name, HEADER_PT,
                       key_is_right(r, t, k) ? 'r' : 'l', out);
    }
    for (size_t column = from; column < to; column++, gap = " & ") {
        hg_buf_printf(out, "%s{", gap);
        hg_column_label(r, t, column, &label);
        hg_latex_stack(hg_buf_str(&label), HEADER_PT, 'c', out);
        hg_buf_clear(&label);
        hg_buf_puts(out, "}");
    }
    hg_buf_puts(out, " \\\\\n");
    hg_buf_done(&label);
}

static void append_section(const struct hg_report *r, const struct hg_table *t,
                           enum hg_section section, size_t from, size_t to, struct hg_buf *out)
{
    struct hg_buf title = HG_BUF_INIT;
    int decimals = hg_section_decimals(t, section);

    hg_section_title(r, section, &title);
    hg_buf_printf(out, "\\midrule\n\\multicolumn{%zu}{l}{\\emph{", r->n_row_keys + to - from);
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
        for (size_t column = from; column < to; column++, gap = " & ") {
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

/* "fig", "fig-2" for the second table, "fig-best" for a listing, "fig-2-best" */
static void append_label(const struct paper *paper, size_t table, const char *listing,
                         struct hg_buf *out)
{
    if (!paper->label)
        return;
    hg_buf_printf(out, "\\label{%s", paper->label);
    if (table > 0)
        hg_buf_printf(out, "-%zu", table + 1);
    hg_buf_printf(out, "%s%s}\n", listing ? "-" : "", listing ? listing : "");
}

/* The author's words, and which of several tables it is. */
static void append_own_caption(const struct hg_report *r, const struct paper *paper,
                               const struct hg_table *t, struct hg_buf *out)
{
    struct hg_buf title = HG_BUF_INIT;

    hg_table_title(r, t, &title);
    hg_buf_printf(out, "\\caption{%s", paper->caption);
    if (title.len && paper->n_tables > 1) {
        hg_buf_puts(out, " (");
        hg_latex_append(hg_buf_str(&title), out);
        hg_buf_puts(out, ")");
    }
    hg_buf_puts(out, "}\n");
    hg_buf_done(&title);
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
    hg_buf_puts(out, "\n\\smallskip\n\\begin{minipage}{\\linewidth}\\footnotesize\\raggedright\n");
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

#define TABCOLSEP "\\setlength{\\tabcolsep}{4pt}\n"

/* Where the part of a table ends that begins with column `from` and fits into the width; the first `keys` columns stand in each. */
static size_t part_end(const double *widths, size_t n, size_t keys, size_t from, double width)
{
    double sum = widths[from];
    size_t to = from + 1;

    for (size_t i = 0; i < keys; i++)
        sum += widths[i] + GAP_PT;
    while (to < n && sum + GAP_PT + widths[to] <= width)
        sum += GAP_PT + widths[to++];
    return to;
}

/* Where the keys and some column do not fit into the width, the whole table is set smaller. Returns the room there is, in pt of the
 * usual size: small letters are 0.85 times as wide. */
static double choose_size(const double *widths, size_t n, size_t keys, double width,
                          struct hg_buf *out)
{
    for (size_t from = keys; from < n; from++) {
        double sum = widths[from];

        for (size_t i = 0; i < keys; i++)
            sum += widths[i] + GAP_PT;
        if (sum > width) {
            hg_buf_puts(out, "\\footnotesize\\setlength{\\tabcolsep}{2pt}\n");
            return width / 0.85;
        }
    }
    return width;
}

static void measure_listing(const struct hg_report *r, const struct hg_listing *l, size_t column,
                            struct room *room, double *width)
{
    struct hg_buf word = HG_BUF_INIT;

    *width = hg_latex_stack(l->columns.items[column].title, HEADER_PT, 'c', &word);
    for (size_t row = 0; row < hg_listing_rows(l); row++) {
        hg_buf_clear(&word);
        hg_datum_format(hg_listing_datum(l, row, column), &r->style, &word);
        *width = fmax(*width, hg_latex_width(hg_buf_str(&word)));
        if (!l->columns.items[column].left)
            measure(hg_buf_str(&word), 0, room);
    }
    *width = fmax(*width, room_width(room));
    hg_buf_done(&word);
}

/* Columns in front that name the rows: those of words, and the numbers before them. */
static size_t listing_keys(const struct hg_listing *l)
{
    size_t keys = 0;

    while (keys + 1 < l->columns.n && l->columns.items[keys].left)
        keys++;
    for (size_t i = keys; keys == 0 && i + 1 < l->columns.n && !l->columns.items[i].left; i++)
        if (l->columns.items[i + 1].left)
            keys = i + 1;
    return keys;
}

static void append_listing_column(const struct hg_report *r, const struct hg_listing *l,
                                  size_t column, struct hg_buf *out)
{
    struct room room = { 0 };
    double width;

    measure_listing(r, l, column, &room, &width);
    if (l->columns.items[column].left)
        hg_buf_puts(out, "l");
    else
        append_room(&room, out);
}

/* Numbers are written with the mark that the report has; siunitx would make it a point. */
static void append_mark_setting(const struct hg_report *r, struct hg_buf *out)
{
    if (r->style.comma)
        hg_buf_puts(out, "\\sisetup{output-decimal-marker={,}}\n");
}

static void append_listing_word(const struct hg_report *r, const struct hg_listing *l, size_t row,
                                size_t column, struct hg_buf *out)
{
    struct hg_buf word = HG_BUF_INIT;
    bool left = l->columns.items[column].left;

    if (row == 0) {
        hg_buf_puts(out, left ? "" : "{");
        hg_latex_stack(l->columns.items[column].title, HEADER_PT, left ? 'l' : 'c', out);
        hg_buf_puts(out, left ? "" : "}");
        return;
    }
    hg_datum_format(hg_listing_datum(l, row - 1, column), &r->style, &word);
    if (left)
        hg_latex_append(hg_buf_str(&word), out);
    else
        append_number(hg_buf_str(&word), out);
    hg_buf_done(&word);
}

/* The first columns, which name the rows, then those from..to. */
static void append_listing_part(const struct hg_report *r, const struct hg_listing *l, size_t keys,
                                size_t from, size_t to, struct hg_buf *out)
{
    hg_buf_puts(out, from > keys ? "\n\\smallskip\n" : "");
    hg_buf_puts(out, "\\begin{tabular}{@{}");
    for (size_t column = 0; column < to; column = column + 1 == keys ? from : column + 1)
        append_listing_column(r, l, column, out);
    hg_buf_puts(out, "@{}}\n\\toprule\n");
    for (size_t row = 0; row <= hg_listing_rows(l); row++) {
        for (size_t column = 0; column < to; column = column + 1 == keys ? from : column + 1) {
            hg_buf_puts(out, column ? " & " : "");
            append_listing_word(r, l, row, column, out);
        }
        hg_buf_puts(out, row ? " \\\\\n" : " \\\\\n\\midrule\n");
    }
    hg_buf_puts(out, "\\bottomrule\n\\end{tabular}\n");
}

static void append_listing_parts(const struct hg_report *r, const struct paper *paper,
                                 const struct hg_listing *l, struct hg_buf *out)
{
    size_t n = l->columns.n, keys = listing_keys(l);
    double *widths = hg_alloc((n + 1) * sizeof *widths), room;

    for (size_t i = 0; i < n; i++)
        measure_listing(r, l, i, &(struct room){ 0 }, &widths[i]);
    room = choose_size(widths, n, keys, paper->width, out);
    for (size_t from = keys, to; from < n; from = to) {
        to = part_end(widths, n, keys, from, room);
        append_listing_part(r, l, keys, from, to, out);
    }
    free(widths);
}

static void append_listing(const struct hg_report *r, const struct paper *paper,
                           const struct hg_listing *l, size_t table, struct hg_buf *out)
{
    hg_buf_puts(out, "\n\\begin{table}\n\\centering\n" TABCOLSEP);
    append_mark_setting(r, out);
    hg_buf_puts(out, "\\caption{");
    if (paper->caption)
        hg_buf_puts(out, paper->caption);
    else
        hg_latex_append(r->title, out);
    hg_buf_puts(out, ": ");
    hg_latex_append(l->title, out);
    hg_buf_puts(out, ".}\n");
    append_label(paper, table, l->name, out);
    append_listing_parts(r, paper, l, out);
    for (size_t i = 0; i < l->notes.n; i++) {
        hg_buf_puts(out,
                    "\n\\smallskip\n\\begin{minipage}{\\linewidth}\\footnotesize\\raggedright\n");
        hg_latex_append(l->notes.items[i], out);
        hg_buf_puts(out, "\n\\end{minipage}\n");
    }
    hg_buf_puts(out, "\\end{table}\n");
}

/* Below a table: "source: ...", "note: ...", what made it. */
static void append_origin(const struct hg_report *r, struct hg_buf *out)
{
    struct hg_buf lines = HG_BUF_INIT;
    char *rest = NULL;

    hg_origin_format(r, &lines);
    hg_buf_puts(out, "\n\\smallskip\n\\begin{minipage}{\\linewidth}\\footnotesize\\raggedright\n");
    for (char *line = strtok_r(lines.data, "\n", &rest); line;) {
        hg_latex_append(line, out);
        line = strtok_r(NULL, "\n", &rest);
        hg_buf_puts(out, line ? "\\\\\n" : "\n");
    }
    hg_buf_puts(out, "\\end{minipage}\n");
    hg_buf_done(&lines);
}

static void append_part(const struct hg_report *r, const struct hg_table *t, size_t from, size_t to,
                        struct hg_buf *out)
{
    hg_buf_puts(out, from ? "\n\\smallskip\n" : "");
    hg_buf_puts(out, "\\begin{tabular}{@{}");
    append_columns(r, t, from, to, out);
    hg_buf_puts(out, "@{}}\n\\toprule\n");
    append_header(r, t, from, to, out);
    for (int s = 0; s < HG_SECTIONS; s++)
        if (hg_section_exists(t, (enum hg_section)s))
            append_section(r, t, (enum hg_section)s, from, to, out);
    hg_buf_puts(out, "\\bottomrule\n\\end{tabular}\n");
}

/* As many columns as fit, then the next ones below. */
static void append_parts(const struct hg_report *r, const struct paper *paper,
                         const struct hg_table *t, struct hg_buf *out)
{
    size_t keys = r->n_row_keys, n = keys + t->n_columns;
    double *widths = hg_alloc((n + 1) * sizeof *widths), room;

    for (size_t i = 0; i < n; i++)
        widths[i] = i < keys ? key_width(r, t, i) : column_width(r, t, i - keys);
    room = choose_size(widths, n, keys, paper->width, out);
    for (size_t from = keys, to; from < n; from = to) {
        to = part_end(widths, n, keys, from, room);
        append_part(r, t, from - keys, to - keys, out);
    }
    free(widths);
}

static void append_table(const struct hg_report *r, const struct paper *paper, size_t table,
                         struct hg_buf *out)
{
    const struct hg_table *t = &r->tables.items[table];

    hg_buf_puts(out, "\\begin{table}\n\\centering\n" TABCOLSEP);
    append_mark_setting(r, out);
    if (paper->caption)
        append_own_caption(r, paper, t, out);
    else
        append_caption(r, t, out);
    append_label(paper, table, NULL, out);
    append_parts(r, paper, t, out);
    append_notes(t, out);
    append_origin(r, out);
    hg_buf_puts(out, "\\end{table}\n");
    for (size_t i = 0; i < t->listings.n; i++)
        append_listing(r, paper, &t->listings.items[i], table, out);
}

static void render(const struct hg_report *r, const struct hg_render_options *o, struct hg_buf *out)
{
    const struct paper paper = { o->caption, o->label,
                                 o->points ? (double)o->points : HG_LATEX_COLUMN_PT, r->tables.n };

    hg_buf_puts(
        out,
        "% needs \\usepackage[T1]{fontenc}, \\usepackage{booktabs} and \\usepackage{siunitx}\n");
    for (size_t i = 0; i < r->tables.n; i++) {
        hg_buf_puts(out, i ? "\n" : "");
        append_table(r, &paper, i, out);
    }
    for (size_t i = 0; i < r->listings.n; i++)
        append_listing(r, &paper, &r->listings.items[i], 0, out);
}

const struct hg_renderer hg_renderer_latex = {
    .name = "latex",
    .typeset = true,
    .endings = "tex",
    .render = render,
    .escape = hg_latex_append,
};
