/* SPDX-License-Identifier: Apache-2.0 */
/* One page with everything in it: no network, no frameworks. The script sorts and filters tables and tells what is under the pointer: the
 * page can be read without it. */
#include "render/renderers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/text.h"
#include "analysis/figures.h"
#include "analysis/labels.h"
#include "plot/plots.h"
#include "plot/runs.h"
#include "plot/svg.h"
#include "render/html_style.h"
#include "render/sentences.h"
#include "typeset/escape.h"

/* More cells than these are not listed one by one. */
#define CELLS_MAX 2000

/* Files of one kind that an attempt is linked with: the folder has them all. */
#define FILES_MAX 4

/* Places whose runs stand in the page, and runs of one of them. */
#define RUNS_PLACES_MAX 1000
#define RUNS_MAX 100

/* Tables of more columns are printed smaller. */
#define PAPER_COLUMNS 9

/* Tables with pictures: the page stays one that opens at once. */
#define PICTURES_MAX 8

static void puts_html(struct hg_buf *text, struct hg_buf *out)
{
    hg_html_append(hg_buf_str(text), out);
    hg_buf_done(text);
}

/* A name from outside, in a sentence: its direction of writing does not affect the rest. */
static void append_name(const char *text, struct hg_buf *out)
{
    hg_buf_puts(out, "<bdi>");
    hg_html_append(text, out);
    hg_buf_puts(out, "</bdi>");
}

/* A long header of a column may be broken after "_" and "/". */
static void append_header_word(const char *text, struct hg_buf *out)
{
    bool long_one = hg_text_width(text) > 9;

    while (*text) {
        size_t n = long_one ? strcspn(text, "_/") : strlen(text);
        char *part = hg_strndup(text, n + (text[n] != '\0'));

        hg_html_append(part, out);
        hg_buf_puts(out, text[n] ? "<wbr>" : "");
        text += n + (text[n] != '\0');
        free(part);
    }
}

/* ---- Head ---- */

static void append_sentence(const char *tag,
                            void (*format)(const struct hg_report *r, struct hg_buf *out),
                            const struct hg_report *r, struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;

    format(r, &text);
    if (text.len)
        hg_buf_printf(out, "<p%s>", tag);
    hg_html_append(hg_buf_str(&text), out);
    if (text.len)
        hg_buf_puts(out, "</p>\n");
    hg_buf_done(&text);
}

static void append_summary(const struct hg_report *r, struct hg_buf *out)
{
    hg_buf_puts(out, "<header>\n<h1>");
    append_name(r->title, out);
    hg_buf_puts(out, "</h1>\n");
    append_sentence(hg_report_is_complete(r) ? " class=\"state good\"" : " class=\"state bad\"",
                    hg_completeness_format, r, out);
    append_sentence("", hg_method_format, r, out);
    append_sentence("", hg_baseline_format, r, out);
    hg_buf_puts(out, "</header>\n<main>\n");
}

/* ---- Tables ---- */

static bool is_number(const struct hg_report *r, uint32_t value)
{
    return value == 0 || r->frame.values.items[value].is_number;
}

static void append_value(const struct hg_report *r, uint32_t value, struct hg_buf *out)
{
    hg_html_append(value ? hg_report_text(r, value) : "–", out);
}

/* data-v: the number that the script sorts by. */
static void append_raw(double v, struct hg_buf *out)
{
    char digits[32];

    if (!isfinite(v))
        return;
    digits[hg_text_number_format(v, digits)] = '\0';
    hg_buf_printf(out, " data-v=\"%s\"", digits);
}

/* Which row keys have words among their values: true for these. Yours to free. */
static bool *find_left(const struct hg_report *r, const struct hg_table *t)
{
    bool *left = hg_alloc_zeroed(r->n_row_keys + 1, sizeof *left);

    for (size_t i = 0; i < t->n_rows * r->n_row_keys; i++)
        if (!is_number(r, t->rows[i]))
            left[i % r->n_row_keys] = true;
    return left;
}

static void append_header(const struct hg_report *r, const struct hg_table *t,
                          enum hg_section section, const bool *left, struct hg_buf *out)
{
    hg_buf_puts(out, "<thead><tr>");
    for (size_t k = 0; k < r->n_row_keys; k++) {
        hg_buf_printf(out, "<th scope=\"col\"%s>", left[k] ? " class=\"l\"" : "");
        append_header_word(r->frame.keys.items[r->row_keys[k]].name, out);
        hg_buf_puts(out, "</th>");
    }
    for (size_t column = 0; column < t->n_columns; column++) {
        hg_buf_puts(out, "<th scope=\"col\">");
        for (size_t k = 0; k < r->n_column_keys; k++) {
            uint32_t value = t->columns[column * r->n_column_keys + k];

            hg_buf_puts(out, k ? "<br>" : "");
            if (is_number(r, value)) {
                append_header_word(r->frame.keys.items[r->column_keys[k]].name, out);
                hg_buf_puts(out, "=");
            }
            append_header_word(value ? hg_report_text(r, value) : "–", out);
        }
        if (r->n_column_keys == 0) {
            struct hg_buf title = HG_BUF_INIT;

            hg_section_title(r, section, &title);
            puts_html(&title, out);
        }
        hg_buf_puts(out, "</th>");
    }
    hg_buf_puts(out, "</tr></thead>\n");
}

/* Interval and marks behind a number: a box of one width in the whole table, so that the numbers in
 * front of it stand below each other. */
static size_t tail_width(const struct hg_report *r, const struct hg_table *t,
                         enum hg_section section, int decimals)
{
    size_t widest = 0;

    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        const struct hg_point *p = &t->points[i];
        struct hg_figure figure;
        size_t width;

        hg_figure_format(r, p, section, decimals, &figure);
        width = (*figure.spread ? 1 + hg_text_width(figure.spread) : 0);
        width += *figure.number ? p->n_notes + (p->n_notes > 0) : 0;
        widest = width > widest ? width : widest;
    }
    return widest;
}

static void append_marks(const struct hg_point *p, size_t table, struct hg_buf *out)
{
    if (p->n_notes)
        hg_buf_puts(out, "<sup>");
    for (size_t i = 0; i < p->n_notes; i++)
        hg_buf_printf(out, "<a href=\"#t%zun%zu\" aria-label=\"note %zu\">%zu</a>", table + 1,
                      p->notes[i] + 1, p->notes[i] + 1, p->notes[i] + 1);
    if (p->n_notes)
        hg_buf_puts(out, "</sup>");
}

/* One section of one table. */
struct part {
    const struct hg_report *r;
    const struct hg_plot_runs *runs;
    size_t table;
    enum hg_section section;
    int decimals;
    size_t tail;
};

/* A place of several runs opens to show them. */
static bool has_runs(const struct part *part, const struct hg_point *p)
{
    const struct hg_table *t = &part->r->tables.items[part->table];

    return part->section == HG_SECTION_VALUE && p->n > 1 &&
           t->n_rows * t->n_columns <= RUNS_PLACES_MAX && part->table < PICTURES_MAX;
}

static void append_figure(const struct part *part, const struct hg_point *p,
                          const struct hg_figure *figure, struct hg_buf *out)
{
    hg_html_append(figure->number, out);
    if (!*figure->number || !part->tail)
        return;
    hg_buf_puts(out, "<span>");
    if (*figure->spread) {
        hg_buf_puts(out, " <small>");
        hg_html_append(figure->spread, out);
        hg_buf_puts(out, "</small>");
    }
    append_marks(p, part->table, out);
    hg_buf_puts(out, "</span>");
}

static void append_runs(const struct part *part, const struct hg_point *p, struct hg_buf *out)
{
    const struct hg_report_entry *run;
    struct hg_buf name = HG_BUF_INIT;
    size_t i = 0;

    hg_buf_puts(out, "<ul>");
    for (; i < RUNS_MAX && (run = hg_plot_entry(part->r, part->runs, p->config, i)); i++) {
        struct hg_point one = { .of = 1, .n = 1, .value = { .value = run->value } };
        struct hg_figure figure;

        hg_figure_format(part->r, &one, HG_SECTION_VALUE, part->decimals, &figure);
        hg_buf_puts(out, "<li");
        hg_buf_clear(&name);
        hg_entry_name(part->r, run, &name);
        hg_buf_puts(out, " title=\"");
        hg_html_append(hg_buf_str(&name), out);
        hg_buf_puts(out, "\">");
        hg_html_append(figure.number, out);
        hg_buf_puts(out, "</li>");
    }
    if (p->n > i)
        hg_buf_printf(out, "<li>and %zu more</li>", p->n - i);
    hg_buf_puts(out, "</ul>");
    hg_buf_done(&name);
}

static void append_place(const struct part *part, const struct hg_point *p, struct hg_buf *out)
{
    bool runs = has_runs(part, p);
    struct hg_figure figure;

    hg_figure_format(part->r, p, part->section, part->decimals, &figure);
    hg_buf_puts(out, p->of && p->n == 0 ? "<td class=\"off\"" : "<td");
    append_raw(hg_section_value(p, part->section), out);
    hg_buf_puts(out, runs ? "><details><summary>" : ">");
    append_figure(part, p, &figure, out);
    if (runs) {
        hg_buf_puts(out, "</summary>");
        append_runs(part, p, out);
        hg_buf_puts(out, "</details>");
    }
    hg_buf_puts(out, "</td>");
}

/* A region that scrolls by itself can be reached by keyboard, and so has a name. */
static void open_table(const char *title, size_t columns, size_t tail, struct hg_buf *out)
{
    hg_buf_puts(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
    hg_html_append(title, out);
    hg_buf_puts(out, "\"><table class=\"sort\"");
    if (tail || columns > PAPER_COLUMNS)
        hg_buf_printf(out, " style=\"--tail:%zuch;--columns:%zu\"", tail, columns);
    hg_buf_puts(out, ">\n<caption>");
    hg_html_append(title, out);
    hg_buf_puts(out, "</caption>\n");
}

static void append_section(const struct hg_report *r, const struct hg_plot_runs *runs, size_t table,
                           enum hg_section section, struct hg_buf *out)
{
    const struct hg_table *t = &r->tables.items[table];
    struct part part = { r, runs, table, section, hg_section_decimals(t, section), 0 };
    bool *left = find_left(r, t);
    struct hg_buf title = HG_BUF_INIT;

    part.tail = tail_width(r, t, section, part.decimals);
    hg_section_title(r, section, &title);
    open_table(hg_buf_str(&title), r->n_row_keys + t->n_columns, part.tail, out);
    hg_buf_done(&title);
    append_header(r, t, section, left, out);
    hg_buf_puts(out, "<tbody>\n");
    for (size_t row = 0; row < t->n_rows; row++) {
        hg_buf_puts(out, "<tr>");
        for (size_t k = 0; k < r->n_row_keys; k++) {
            hg_buf_printf(out, "<th scope=\"row\"%s>", left[k] ? " class=\"l\"" : "");
            append_value(r, t->rows[row * r->n_row_keys + k], out);
            hg_buf_puts(out, "</th>");
        }
        for (size_t column = 0; column < t->n_columns; column++)
            append_place(&part, hg_table_point(t, row, column), out);
        hg_buf_puts(out, "</tr>\n");
    }
    hg_buf_puts(out, "</tbody></table></div>\n");
    free(left);
}

/* ---- Listings ---- */

static void append_listing_cell(const struct hg_report *r, const struct hg_listing *l, size_t row,
                                size_t column, struct hg_buf *out)
{
    const struct hg_datum *d = hg_listing_datum(l, row, column);
    const struct hg_listing_column *c = &l->columns.items[column];
    struct hg_buf text = HG_BUF_INIT;
    bool head = column == 0 && c->left;

    hg_datum_format(d, &r->style, &text);
    hg_buf_puts(out, head ? "<th scope=\"row\"" : "<td");
    if (c->left)
        hg_buf_puts(out, hg_text_width(hg_buf_str(&text)) > 40 ? " class=\"l w\"" : " class=\"l\"");
    if (d->kind == HG_DATUM_NUMBER || d->kind == HG_DATUM_SECONDS)
        append_raw(d->v, out);
    hg_buf_puts(out, ">");
    puts_html(&text, out);
    hg_buf_puts(out, head ? "</th>" : "</td>");
}

static void append_listing(const struct hg_report *r, const struct hg_listing *l,
                           struct hg_buf *out)
{
    open_table(l->title, l->columns.n, 0, out);
    hg_buf_puts(out, "<thead><tr>");
    for (size_t column = 0; column < l->columns.n; column++) {
        hg_buf_printf(out, "<th scope=\"col\"%s>",
                      l->columns.items[column].left ? " class=\"l\"" : "");
        append_header_word(l->columns.items[column].title, out);
        hg_buf_puts(out, "</th>");
    }
    hg_buf_puts(out, "</tr></thead>\n<tbody>\n");
    for (size_t row = 0; row < hg_listing_rows(l); row++) {
        hg_buf_puts(out, "<tr>");
        for (size_t column = 0; column < l->columns.n; column++)
            append_listing_cell(r, l, row, column, out);
        hg_buf_puts(out, "</tr>\n");
    }
    hg_buf_puts(out, "</tbody></table></div>\n");
    for (size_t i = 0; i < l->notes.n; i++) {
        hg_buf_puts(out, "<p class=\"soft\">");
        hg_html_append(l->notes.items[i], out);
        hg_buf_puts(out, "</p>\n");
    }
}

/* ---- Pictures ---- */

static void append_plots(const struct hg_report *r, size_t table, struct hg_buf *out)
{
    struct hg_plots plots = { 0 };

    hg_plots_build(r, table, ~0u, &plots);
    if (plots.n)
        hg_buf_puts(out, "<div class=\"side\">\n");
    for (size_t i = 0; i < plots.n; i++) {
        hg_buf_puts(out, "<figure>\n<figcaption>");
        hg_html_append(plots.items[i].what, out);
        if (plots.items[i].note) {
            hg_buf_puts(out, " (");
            hg_html_append(plots.items[i].note, out);
            hg_buf_puts(out, ")");
        }
        hg_buf_puts(out, "</figcaption>\n");
        hg_plot_svg(&plots.items[i], table * HG_PLOT_KINDS + i + 1, out);
        hg_buf_puts(out, "</figure>\n");
    }
    if (plots.n)
        hg_buf_puts(out, "</div>\n");
    hg_plots_done(&plots);
}

static void append_table(const struct hg_report *r, const struct hg_plot_runs *runs, size_t table,
                         struct hg_buf *out)
{
    const struct hg_table *t = &r->tables.items[table];
    struct hg_buf title = HG_BUF_INIT;

    hg_table_title(r, t, &title);
    hg_buf_puts(out, "<section>\n<h2>");
    if (title.len)
        append_name(hg_buf_str(&title), out);
    else
        hg_buf_puts(out, "Results");
    hg_buf_puts(out, "</h2>\n<div class=\"side\">\n");
    hg_buf_done(&title);
    for (int s = 0; s < HG_SECTIONS; s++)
        if (hg_section_exists(t, (enum hg_section)s))
            append_section(r, runs, table, (enum hg_section)s, out);
    hg_buf_puts(out, "</div>\n");
    if (t->no_speedup) {
        hg_buf_puts(out, "<p class=\"bad\">");
        hg_html_append(t->no_speedup, out);
        hg_buf_puts(out, "</p>\n");
    }
    for (size_t i = 0; i < t->remarks.n; i++) {
        hg_buf_puts(out, "<p>");
        hg_html_append(t->remarks.items[i], out);
        hg_buf_puts(out, "</p>\n");
    }
    if (t->notes.n)
        hg_buf_puts(out, "<ol class=\"notes\">\n");
    for (size_t i = 0; i < t->notes.n; i++) {
        hg_buf_printf(out, "<li id=\"t%zun%zu\">", table + 1, i + 1);
        hg_html_append(t->notes.items[i], out);
        hg_buf_puts(out, "</li>\n");
    }
    if (t->notes.n)
        hg_buf_puts(out, "</ol>\n");
    if (table < PICTURES_MAX)
        append_plots(r, table, out);
    else if (table == PICTURES_MAX)
        hg_buf_puts(out, "<p class=\"soft\">The tables from here on have no pictures; "
                         "<code>--plot</code> draws them</p>\n");
    for (size_t i = 0; i < t->listings.n; i++)
        append_listing(r, &t->listings.items[i], out);
    hg_buf_puts(out, "</section>\n");
}

/* ---- Cells ---- */

/* Keys that tell cells apart: of tables, rows and columns, then repeat. */
struct cell_keys {
    size_t *items, n;
};

static void list_keys(const struct hg_report *r, struct cell_keys *keys)
{
    size_t repeat = hg_frame_find_key(&r->frame, "repeat");

    keys->items =
        hg_alloc((r->n_split_keys + r->n_column_keys + r->n_row_keys + 1) * sizeof *keys->items);
    for (size_t i = 0; i < r->n_split_keys; i++)
        keys->items[keys->n++] = r->split_keys[i];
    for (size_t i = 0; i < r->n_row_keys; i++)
        keys->items[keys->n++] = r->row_keys[i];
    for (size_t i = 0; i < r->n_column_keys; i++)
        keys->items[keys->n++] = r->column_keys[i];
    if (repeat != HG_MAP_NONE)
        keys->items[keys->n++] = repeat;
}

static void append_link(const char *root, const struct hg_result *result, const char *file,
                        const char *word, struct hg_buf *out)
{
    struct hg_buf folder = HG_BUF_INIT;

    hg_result_folder(result, &folder);
    hg_buf_puts(out, "<a href=\"");
    hg_href_append(root, out);
    hg_buf_puts(out, "/");
    hg_href_append(hg_buf_str(&folder), out);
    hg_buf_puts(out, hg_result_is_packed(result) ? "" : "/");
    hg_href_append(file, out);
    hg_buf_printf(out, "\">%s</a> ", word);
    hg_buf_done(&folder);
}

/* A trace is a file in the attempt's own folder: a path out of it is not linked. */
static bool is_file_name(const char *name)
{
    return name && *name && !strchr(name, '/') && strcmp(name, "..") != 0;
}

/* A file that the result names, or several: "trace", "tensorboard". */
static void append_named(const char *root, const struct hg_result *result, const char *member,
                         struct hg_buf *out)
{
    json_t *value = hg_result_get(result, member);
    size_t n = json_is_array(value) ? json_array_size(value) : 1;

    for (size_t i = 0; i < n && i < FILES_MAX; i++) {
        const json_t *one = json_is_array(value) ? json_array_get(value, i) : value;

        if (is_file_name(json_string_value(one)))
            append_link(root, result, json_string_value(one), member, out);
    }
    json_decref(value);
}

/* Empty logs are not kept. */
static bool has_file(const struct hg_page *page, const struct hg_report_entry *e, const char *name)
{
    const char *folder = page->folders[e->set];
    struct hg_buf path = HG_BUF_INIT;
    bool has;

    if (folder)
        hg_buf_printf(&path, "%s/", folder);
    hg_result_folder(e->result, &path);
    hg_buf_printf(&path, "/%s", name);
    has = !folder || hg_fs_exists(hg_buf_str(&path));
    hg_buf_done(&path);
    return has;
}

static void append_links(const struct hg_page *page, const struct hg_report_entry *e,
                         struct hg_buf *out)
{
    const char *root = page->links[e->set];

    hg_buf_puts(out, "<td class=\"l\">");
    if (root && hg_result_is_packed(e->result)) {
        append_link(root, e->result, "", "pack", out);
    } else if (root && *e->result->attempt_in) {
        if (has_file(page, e, "out.log"))
            append_link(root, e->result, "out.log", "out", out);
        if (has_file(page, e, "err.log"))
            append_link(root, e->result, "err.log", "err", out);
        append_link(root, e->result, "", "files", out);
        append_named(root, e->result, "trace", out);
        append_named(root, e->result, "tensorboard", out);
    }
    hg_buf_puts(out, "</td>");
}

static void append_cell(const struct hg_report *r, const struct hg_page *page,
                        const struct cell_keys *keys, size_t entry, int decimals,
                        struct hg_buf *out)
{
    const struct hg_report_entry *e = &r->entries[entry];
    struct hg_point p = { .of = 1,
                          .n = !e->state,
                          .state = e->state,
                          .value = { .value = e->value },
                          .speedup = HG_ESTIMATE_NONE };
    struct hg_figure figure;

    hg_buf_puts(out, "<tr>");
    for (size_t k = 0; k < keys->n; k++) {
        uint32_t value = hg_frame_row(&r->frame, entry)[keys->items[k]];

        hg_buf_puts(out, is_number(r, value) ? "<td>" : "<td class=\"l\">");
        append_value(r, value, out);
        hg_buf_puts(out, "</td>");
    }
    hg_figure_format(r, &p, HG_SECTION_VALUE, decimals, &figure);
    hg_buf_puts(out, "<td");
    append_raw(e->state ? NAN : e->value, out);
    hg_buf_puts(out, ">");
    hg_html_append(e->state ? "" : figure.number, out);
    hg_buf_printf(out, "</td><td class=\"l%s\">", e->state ? " off" : "");
    hg_html_append(e->state ? e->state : e->result->status, out);
    hg_buf_puts(out, "</td><td>");
    hg_html_append(e->result->attempt, out);
    hg_buf_puts(out, "</td>");
    if (page)
        append_links(page, e, out);
    hg_buf_puts(out, "</tr>\n");
}

static void append_cells_head(const struct hg_report *r, const struct hg_page *page,
                              const struct cell_keys *keys, struct hg_buf *out)
{
    hg_buf_puts(out, "<thead><tr>");
    for (size_t k = 0; k < keys->n; k++) {
        hg_buf_puts(out, "<th scope=\"col\">");
        append_header_word(r->frame.keys.items[keys->items[k]].name, out);
        hg_buf_puts(out, "</th>");
    }
    hg_buf_puts(out, "<th scope=\"col\">");
    append_header_word(r->metric, out);
    hg_buf_printf(out,
                  "</th><th scope=\"col\" class=\"l\">status</th><th scope=\"col\">attempt</th>%s"
                  "</tr></thead>\n<tbody>\n",
                  page ? "<th scope=\"col\" class=\"l\">files</th>" : "");
}

static bool has_links(const struct hg_page *page)
{
    for (size_t i = 0; page && i < page->n_sets; i++)
        if (page->links[i])
            return true;
    return false;
}

/* If there are too many cells, only those without a good result are listed. */
static void append_cells(const struct hg_report *r, const struct hg_page *page, struct hg_buf *out)
{
    bool all = r->cells <= CELLS_MAX;
    size_t listed = 0, wanted = all ? r->cells : r->cells - r->complete;
    struct cell_keys keys = { 0 };
    int decimals = r->tables.n ? hg_section_decimals(&r->tables.items[0], HG_SECTION_VALUE) : 3;

    page = has_links(page) ? page : NULL;
    list_keys(r, &keys);
    wanted = wanted > CELLS_MAX ? CELLS_MAX : wanted;
    hg_buf_puts(out, "<section>\n<h2>Cells</h2>\n");
    if (!all)
        hg_buf_printf(out,
                      "<p class=\"soft\">%zu of %zu cells are listed%s; "
                      "<code>--format csv</code> has every one</p>\n",
                      wanted, r->cells,
                      wanted < r->cells - r->complete ? ", from those without a good result"
                                                      : ": those without a good result");
    hg_buf_puts(out, "<details open>\n<summary>");
    hg_buf_printf(out, "%zu cell%s</summary>\n", wanted, hg_text_s(wanted));
    open_table("one line for each cell", keys.n + 4, 0, out);
    append_cells_head(r, page, &keys, out);
    for (size_t i = 0; i < r->n_entries && listed < wanted; i++)
        if (r->entries[i].shown && (all || r->entries[i].state)) {
            append_cell(r, page, &keys, i, decimals, out);
            listed++;
        }
    hg_buf_puts(out, "</tbody></table></div>\n</details>\n</section>\n");
    free(keys.items);
}

/* ---- Provenance ---- */

static void append_matrices(const struct hg_report *r, const struct hg_page *page,
                            struct hg_buf *out)
{
    for (size_t i = 0; page && i < page->n_sets; i++) {
        if (!page->matrices[i])
            continue;
        hg_buf_puts(out, "<details>\n<summary>matrix of ");
        append_name(r->labels[i], out);
        hg_buf_puts(out, "</summary>\n<pre><code>");
        for (const char *line = page->matrices[i]; *line;) {
            size_t n = strcspn(line, "\n");
            char *copy = hg_strndup(line, n);

            hg_html_append(copy, out);
            hg_buf_puts(out, "\n");
            free(copy);
            line += n + (line[n] == '\n');
        }
        hg_buf_puts(out, "</code></pre>\n</details>\n");
    }
}

static void append_provenance(const struct hg_report *r, const struct hg_page *page,
                              struct hg_buf *out)
{
    struct hg_listing facts = { 0 };

    hg_provenance_fill(r, &facts);
    hg_buf_puts(out, "<section>\n<h2>Where the numbers come from</h2>\n");
    append_sentence("", hg_common_format, r, out);
    if (hg_listing_rows(&facts)) {
        hg_buf_puts(out, "<div class=\"scroll\"><table>\n<tbody>\n");
        for (size_t row = 0; row < hg_listing_rows(&facts); row++) {
            hg_buf_puts(out, "<tr><th scope=\"row\" class=\"l\">");
            hg_html_append(hg_listing_datum(&facts, row, 0)->text, out);
            hg_buf_puts(out, "</th><td class=\"l w\">");
            hg_html_append(hg_listing_datum(&facts, row, 1)->text, out);
            hg_buf_puts(out, "</td></tr>\n");
        }
        hg_buf_puts(out, "</tbody></table></div>\n");
    }
    append_matrices(r, page, out);
    if (page && page->command) {
        hg_buf_puts(out, "<p>Made by <code>");
        hg_html_append(page->command, out);
        hg_buf_puts(out, "</code></p>\n");
    }
    hg_buf_puts(out, "</section>\n");
    hg_listing_done(&facts);
}

static void render(const struct hg_report *r, const struct hg_render_options *o, struct hg_buf *out)
{
    struct hg_plot_runs runs = { 0 };

    hg_plot_runs_find(r, &runs);
    hg_html_head(r->title, out);
    append_summary(r, out);
    for (size_t i = 0; i < r->tables.n; i++)
        append_table(r, &runs, i, out);
    hg_plot_runs_done(&runs);
    if (r->listings.n)
        hg_buf_puts(out, r->tables.n ? "<section>\n<h2>All tables</h2>\n"
                                     : "<section>\n<h2>Results</h2>\n");
    for (size_t i = 0; i < r->listings.n; i++)
        append_listing(r, &r->listings.items[i], out);
    if (r->listings.n)
        hg_buf_puts(out, "</section>\n");
    if (r->n_entries)
        append_cells(r, o->page, out);
    append_provenance(r, o->page, out);
    hg_buf_puts(out, "</main>\n<script>"); /* the hash is that of the script alone */
    hg_buf_puts(out, hg_html_script);
    hg_buf_puts(out, "</script>\n</body>\n</html>\n");
}

const struct hg_renderer hg_renderer_html = {
    .name = "html",
    .endings = "html htm svg",
    .file = "report.html",
    .render = render,
    .escape = hg_html_append,
};
