/* SPDX-License-Identifier: Apache-2.0 */
/* LaTeX: one table environment for each table, rules of the booktabs package, plain columns. */
#include "report/renderer.h"

#include <math.h>
#include <string.h>

#include "report/figures.h"

/* What is no text in LaTeX, and signs that not every font encoding has. */
static const struct {
    const char *text, *latex;
} signs[] = {
    { "\\", "\\textbackslash{}" },
    { "{", "\\{" },
    { "}", "\\}" },
    { "$", "\\$" },
    { "&", "\\&" },
    { "#", "\\#" },
    { "_", "\\_" },
    { "%", "\\%" },
    { "^", "\\textasciicircum{}" },
    { "~", "\\textasciitilde{}" },
    { "<", "\\textless{}" },
    { ">", "\\textgreater{}" },
    { "|", "\\textbar{}" },
    { "\"", "\\textquotedbl{}" },
    { "±", "$\\pm$" },
    { "–", "--" },
    { "→", "$\\to$" },
    { "∞", "$\\infty$" },
    { "·", "$\\cdot$" },
    { "…", "\\dots{}" },
};

static void append_escaped(const char *text, struct hg_buf *out)
{
    struct hg_buf clean = HG_BUF_INIT;

    hg_clean_append(text, 0, &clean);
    for (const char *p = hg_buf_str(&clean); *p;) {
        size_t i = 0;

        while (i < sizeof signs / sizeof *signs &&
               strncmp(p, signs[i].text, strlen(signs[i].text)) != 0)
            i++;
        if (i < sizeof signs / sizeof *signs) {
            hg_buf_puts(out, signs[i].latex);
            p += strlen(signs[i].text);
        } else {
            hg_buf_append(out, p++, 1);
        }
    }
    hg_buf_done(&clean);
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
static void append_columns(const struct hg_report *r, const struct hg_table *t, struct hg_buf *out)
{
    for (size_t k = 0; k < r->n_row_keys; k++) {
        bool right = true;

        for (size_t row = 0; row < t->n_rows; row++)
            right = right && is_number(r, t->rows[row * r->n_row_keys + k]);
        hg_buf_puts(out, right ? "r" : "l");
    }
    for (size_t column = 0; column < t->n_columns; column++)
        hg_buf_puts(out, "r");
}

static void append_header(const struct hg_report *r, const struct hg_table *t, struct hg_buf *out)
{
    const char *gap = "";

    for (size_t k = 0; k < r->n_row_keys; k++, gap = " & ") {
        hg_buf_puts(out, gap);
        append_escaped(r->frame.keys.items[r->row_keys[k]].name, out);
    }
    for (size_t column = 0; column < t->n_columns; column++, gap = " & ") {
        hg_buf_puts(out, gap);
        for (size_t k = 0; k < r->n_column_keys; k++) {
            uint32_t value = t->columns[column * r->n_column_keys + k];

            hg_buf_puts(out, k ? " " : "");
            if (is_number(r, value)) {
                append_escaped(r->frame.keys.items[r->column_keys[k]].name, out);
                hg_buf_puts(out, "=");
            }
            append_escaped(value ? hg_report_text(r, value) : "–", out);
        }
    }
    hg_buf_puts(out, " \\\\\n");
}

static void append_section(const struct hg_report *r, const struct hg_table *t,
                           enum hg_section section, struct hg_buf *out)
{
    struct hg_buf title = HG_BUF_INIT;
    int decimals = hg_section_decimals(t, section);

    hg_section_title(r, section, &title);
    hg_buf_printf(out, "\\midrule\n\\multicolumn{%zu}{l}{\\emph{", r->n_row_keys + t->n_columns);
    append_escaped(hg_buf_str(&title), out);
    hg_buf_puts(out, "}} \\\\\n");
    hg_buf_done(&title);
    for (size_t row = 0; row < t->n_rows; row++) {
        const char *gap = "";

        for (size_t k = 0; k < r->n_row_keys; k++, gap = " & ") {
            uint32_t value = t->rows[row * r->n_row_keys + k];

            hg_buf_puts(out, gap);
            append_escaped(value ? hg_report_text(r, value) : "–", out);
        }
        for (size_t column = 0; column < t->n_columns; column++, gap = " & ") {
            const struct hg_point *p = hg_table_point(t, row, column);
            struct hg_figure figure;

            hg_figure_format(r, p, section, decimals, &figure);
            hg_buf_puts(out, gap);
            append_escaped(figure.number, out);
            hg_buf_puts(out, *figure.spread ? " " : "");
            append_escaped(figure.spread, out);
            if (*figure.number)
                append_marks(p, out);
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
    append_escaped(hg_buf_str(&text), out);
    hg_buf_puts(out, "}\n");
    hg_buf_done(&text);
}

static void append_notes(const struct hg_table *t, struct hg_buf *out)
{
    if (!t->no_speedup && t->notes.n == 0)
        return;
    hg_buf_puts(out, "\n\\smallskip\n\\begin{minipage}{\\linewidth}\\footnotesize\n");
    if (t->no_speedup) {
        append_escaped(t->no_speedup, out);
        hg_buf_puts(out, t->notes.n ? "\\\\\n" : "\n");
    }
    for (size_t i = 0; i < t->notes.n; i++) {
        hg_buf_printf(out, "\\textsuperscript{%zu} ", i + 1);
        append_escaped(t->notes.items[i], out);
        hg_buf_puts(out, i + 1 < t->notes.n ? "\\\\\n" : "\n");
    }
    hg_buf_puts(out, "\\end{minipage}\n");
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
        append_escaped(hg_buf_str(&word), out);
    }
    hg_buf_puts(out, " \\\\\n");
    hg_buf_done(&word);
}

static void append_listing(const struct hg_report *r, const struct hg_listing *l,
                           struct hg_buf *out)
{
    hg_buf_puts(out, "\n\\begin{table}\n\\centering\n\\caption{");
    append_escaped(r->title, out);
    hg_buf_puts(out, ": ");
    append_escaped(l->title ? l->title : "", out);
    hg_buf_puts(out, ".}\n\\begin{tabular}{");
    for (size_t column = 0; column < l->columns.n; column++)
        hg_buf_puts(out, l->columns.items[column].left ? "l" : "r");
    hg_buf_puts(out, "}\n\\toprule\n");
    append_listing_row(r, l, 0, out);
    hg_buf_puts(out, "\\midrule\n");
    for (size_t row = 1; row <= hg_listing_rows(l); row++)
        append_listing_row(r, l, row, out);
    hg_buf_puts(out, "\\bottomrule\n\\end{tabular}\n");
    for (size_t i = 0; i < l->notes.n; i++) {
        hg_buf_puts(out, "\n\\smallskip\n\\begin{minipage}{\\linewidth}\\footnotesize\n");
        append_escaped(l->notes.items[i], out);
        hg_buf_puts(out, "\n\\end{minipage}\n");
    }
    hg_buf_puts(out, "\\end{table}\n");
    out->failed = out->failed || l->failed;
}

static void append_table(const struct hg_report *r, const struct hg_table *t, struct hg_buf *out)
{
    hg_buf_puts(out, "\\begin{table}\n\\centering\n");
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
    hg_buf_puts(out, "% needs \\usepackage[T1]{fontenc} and \\usepackage{booktabs}\n");
    for (size_t i = 0; i < r->tables.n; i++) {
        hg_buf_puts(out, i ? "\n" : "");
        append_table(r, &r->tables.items[i], out);
    }
    for (size_t i = 0; i < r->listings.n; i++)
        append_listing(r, &r->listings.items[i], out);
}

const struct hg_renderer hg_renderer_latex = {
    .name = "latex",
    .summary = "tables for a paper, with booktabs",
    .render = render,
};
