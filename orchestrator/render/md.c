/* SPDX-License-Identifier: Apache-2.0 */
/* Markdown, as GitHub reads it: one table for each section. */
#include "render/renderers.h"

#include <string.h>

#include "analysis/figures.h"
#include "analysis/labels.h"
#include "render/listings.h"
#include "render/sentences.h"
#include "typeset/escape.h"

static void append_buf(struct hg_buf *text, struct hg_buf *out)
{
    hg_md_append(hg_buf_str(text), out);
    hg_buf_done(text);
}

static void append_header(const struct hg_report *r, const struct hg_table *t,
                          enum hg_section section, struct hg_buf *out)
{
    struct hg_buf title = HG_BUF_INIT, label = HG_BUF_INIT;

    for (size_t k = 0; k < r->n_row_keys; k++) {
        hg_buf_puts(out, "| ");
        hg_md_append(r->frame.keys.items[r->row_keys[k]].name, out);
        hg_buf_puts(out, " ");
    }
    hg_section_title(r, section, &title);
    for (size_t column = 0; column < t->n_columns; column++) {
        hg_buf_puts(out, "| ");
        hg_column_label(r, t, column, &label);
        hg_md_append(r->n_column_keys ? hg_buf_str(&label) : hg_buf_str(&title), out);
        hg_buf_clear(&label);
        hg_buf_puts(out, " ");
    }
    hg_buf_puts(out, "|\n");
    for (size_t i = 0; i < r->n_row_keys + t->n_columns; i++)
        hg_buf_puts(out, "| ---: ");
    hg_buf_puts(out, "|\n");
    hg_buf_done(&label);
    hg_buf_done(&title);
}

static void append_section(const struct hg_report *r, const struct hg_table *t,
                           enum hg_section section, struct hg_buf *out)
{
    struct hg_buf title = HG_BUF_INIT;
    int decimals = hg_section_decimals(t, section);

    hg_section_title(r, section, &title);
    hg_buf_puts(out, "\n**");
    append_buf(&title, out);
    hg_buf_puts(out, "**\n\n");
    append_header(r, t, section, out);
    for (size_t row = 0; row < t->n_rows; row++) {
        for (size_t k = 0; k < r->n_row_keys; k++) {
            uint32_t value = t->rows[row * r->n_row_keys + k];

            hg_buf_puts(out, "| ");
            hg_md_append(value ? hg_report_text(r, value) : "–", out);
            hg_buf_puts(out, " ");
        }
        for (size_t column = 0; column < t->n_columns; column++) {
            const struct hg_point *p = hg_table_point(t, row, column);
            struct hg_figure figure;

            hg_figure_format(r, p, section, decimals, &figure);
            hg_buf_puts(out, "| ");
            hg_md_append(figure.number, out);
            if (*figure.spread)
                hg_buf_printf(out, " %s", figure.spread);
            if (*figure.number)
                hg_marks_format(p, out);
            hg_buf_puts(out, *figure.number ? " " : "");
        }
        hg_buf_puts(out, "|\n");
    }
}

static void append_table(const struct hg_report *r, const struct hg_table *t, struct hg_buf *out)
{
    struct hg_buf title = HG_BUF_INIT;

    hg_table_title(r, t, &title);
    if (title.len) {
        hg_buf_puts(out, "\n### ");
        hg_md_append(hg_buf_str(&title), out);
        hg_buf_puts(out, "\n");
    }
    hg_buf_done(&title);
    for (int s = 0; s < HG_SECTIONS; s++)
        if (hg_section_exists(t, (enum hg_section)s))
            append_section(r, t, (enum hg_section)s, out);
    for (size_t i = 0; i < t->listings.n; i++) {
        hg_buf_puts(out, "\n");
        hg_listing_write_md(&t->listings.items[i], &r->style, out);
    }
    if (t->no_speedup) {
        hg_buf_puts(out, "\n");
        hg_md_append(t->no_speedup, out);
        hg_buf_puts(out, "\n");
    }
    for (size_t i = 0; i < t->remarks.n; i++) {
        hg_buf_puts(out, "\n");
        hg_md_append(t->remarks.items[i], out);
        hg_buf_puts(out, "\n");
    }
    for (size_t i = 0; i < t->notes.n; i++) {
        hg_buf_puts(out, "\n");
        hg_mark_format(i, out);
        hg_buf_puts(out, " ");
        hg_md_append(t->notes.items[i], out);
        hg_buf_puts(out, "\n");
    }
}

static void append_origin(const struct hg_report *r, struct hg_buf *out)
{
    struct hg_buf lines = HG_BUF_INIT;
    char *rest = NULL;

    hg_origin_format(r, &lines);
    for (char *line = strtok_r(lines.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        hg_buf_puts(out, "\n");
        hg_md_append(line, out);
        hg_buf_puts(out, "\n");
    }
    hg_buf_done(&lines);
}

static void render(const struct hg_report *r, const struct hg_render_options *o, struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;

    (void)o;
    hg_buf_puts(out, "## ");
    hg_md_append(r->title, out);
    hg_buf_puts(out, "\n\n");
    hg_completeness_format(r, &text);
    hg_buf_puts(&text, ". ");
    hg_method_format(r, &text);
    hg_buf_puts(&text, "; ");
    hg_baseline_format(r, &text);
    while (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == ';')
        text.data[--text.len] = '\0';
    hg_buf_puts(&text, ".");
    append_buf(&text, out);
    hg_buf_puts(out, "\n");
    for (size_t i = 0; i < r->tables.n; i++)
        append_table(r, &r->tables.items[i], out);
    for (size_t i = 0; i < r->listings.n; i++) {
        hg_buf_puts(out, "\n");
        hg_listing_write_md(&r->listings.items[i], &r->style, out);
    }
    hg_common_format(r, &text);
    if (text.len) {
        hg_buf_puts(out, "\nAll cells: ");
        hg_md_append(hg_buf_str(&text), out);
        hg_buf_puts(out, "\n");
    }
    hg_buf_done(&text);
    append_origin(r, out);
}

const struct hg_renderer hg_renderer_md = {
    .name = "md",
    .endings = "md",
    .file = "report.md",
    .render = render,
    .escape = hg_md_append,
    .sheet = hg_sheet_md,
};
