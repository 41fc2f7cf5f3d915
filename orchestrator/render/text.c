/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for a terminal. Times, speedup and efficiency stand below each other in one grid with the same rows and columns. What does
 * not fit the width is wrapped (headers) or continued below (columns). */
#include "render/renderers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/colour.h"
#include "base/text.h"
#include "analysis/figures.h"
#include "analysis/labels.h"
#include "render/listings.h"
#include "render/sentences.h"
#include "typeset/plain.h"

#define WIDTH_DEFAULT 80
#define WIDTH_MIN 40
#define GAP 2
#define LABEL_MAX 32
#define HEADER_LINES 3

/* One column of the grid. Figures are set in three parts that align on their own. */
struct column {
    char *label;                 /* header, clean and cut */
    size_t label_width;          /* columns its lines may take */
    size_t number, spread, mark; /* widest of each part; a row key has a number only */
    bool right;                  /* numbers to the right, words to the left */
};

struct grid {
    const struct hg_report *r;
    const struct hg_table *t;
    struct column *keys, *values; /* n_row_keys, n_columns */
    char **labels;                /* of the values: n_columns times n_column_keys, clean */
    bool *named;                  /* by column key: it stands left of its values */
    int decimals[HG_SECTIONS];
    size_t width;
    int fd; /* whose colours it has */
    struct hg_buf *out;
};

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void pad(struct hg_buf *out, size_t n)
{
    hg_buf_printf(out, "%*s", (int)n, "");
}

/* A line across, with a title in it: "── speedup ─────". */
static void rule(struct hg_buf *out, const char *title, size_t n)
{
    size_t used = *title ? 4 + hg_text_width(title) : 0;

    if (used)
        hg_buf_printf(out, "── %s ", title);
    n = used ? larger(n, used + 2) : n;
    for (; used < n; used++)
        hg_buf_puts(out, "─");
    hg_buf_puts(out, "\n");
}

/* ---- Measuring ---- */

static char *clean_label(const char *text)
{
    struct hg_buf label = HG_BUF_INIT;

    hg_clean_append(text, LABEL_MAX, &label);
    return hg_buf_detach(&label);
}

static void measure_keys(struct grid *g)
{
    for (size_t k = 0; k < g->r->n_row_keys; k++) {
        struct column *c = &g->keys[k];

        c->label = clean_label(g->r->frame.keys.items[g->r->row_keys[k]].name);
        c->right = true;
        for (size_t row = 0; row < g->t->n_rows; row++) {
            uint32_t value = g->t->rows[row * g->r->n_row_keys + k];
            char *text = clean_label(hg_report_text(g->r, value));

            c->number = larger(c->number, hg_text_width(text));
            c->right = c->right && (!value || g->r->frame.values.items[value].is_number);
            free(text);
        }
        c->label_width = hg_text_width(c->label);
    }
}

static void measure_values(struct grid *g)
{
    for (size_t column = 0; column < g->t->n_columns; column++) {
        struct column *c = &g->values[column];

        c->right = true;
        for (size_t row = 0; row < g->t->n_rows; row++) {
            const struct hg_point *p = hg_table_point(g->t, row, column);
            struct hg_buf marks = HG_BUF_INIT;

            hg_marks_format(p, &marks);
            c->mark = larger(c->mark, hg_text_width(hg_buf_str(&marks)));
            hg_buf_done(&marks);
            for (int s = 0; s < HG_SECTIONS; s++) {
                struct hg_figure figure;

                if (!hg_section_exists(g->t, (enum hg_section)s))
                    continue;
                hg_figure_format(g->r, p, (enum hg_section)s, g->decimals[s], &figure);
                c->number = larger(c->number, hg_text_width(figure.number));
                if (*figure.spread)
                    c->spread = larger(c->spread, 1 + hg_text_width(figure.spread));
            }
        }
    }
}

/* The header of a column of values: one label for each column key. */
static const char *column_text(const struct grid *g, size_t column, size_t key)
{
    return g->labels[column * g->r->n_column_keys + key];
}

static void label_values(struct grid *g)
{
    for (size_t column = 0; column < g->t->n_columns; column++)
        for (size_t k = 0; k < g->r->n_column_keys; k++) {
            size_t at = column * g->r->n_column_keys + k;
            struct column *c = &g->values[column];

            g->labels[at] =
                clean_label(g->t->columns[at] ? hg_report_text(g->r, g->t->columns[at]) : "–");
            c->label_width = larger(c->label_width, hg_text_width(column_text(g, column, k)));
        }
}

/* Room of a column, without the gap before it. A label stands above the numbers. */
static size_t column_width(const struct column *c)
{
    return larger(c->number, c->label_width) + c->spread + c->mark;
}

/* A column key named on the left needs no guessing what 1 and 2 mean; words speak for themselves. */
static void name_keys(struct grid *g)
{
    size_t n = g->r->n_column_keys;

    for (size_t i = 0; i < g->t->n_columns * n; i++) {
        uint32_t value = g->t->columns[i];

        if (value && (g->r->frame.values.items[value].is_number || n > 1))
            g->named[i % n] = true;
    }
}

/* Room of the row keys themselves. */
static size_t row_keys_width(const struct grid *g)
{
    size_t width = 0;

    for (size_t k = 0; k < g->r->n_row_keys; k++)
        width += (k ? GAP : 0) + column_width(&g->keys[k]);
    return width;
}

/* Room left of the values: the names of column keys stand there, too. */
static size_t keys_width(const struct grid *g)
{
    size_t width = row_keys_width(g);

    for (size_t k = 0; k < g->r->n_column_keys; k++) {
        char *name = clean_label(g->r->frame.keys.items[g->r->column_keys[k]].name);

        if (g->named[k])
            width = larger(width, hg_text_width(name));
        free(name);
    }
    return width;
}

static size_t grid_width(const struct grid *g, size_t from, size_t to)
{
    size_t width = keys_width(g);

    for (size_t i = from; i < to; i++)
        width += (width ? GAP : 0) + column_width(&g->values[i]);
    return width;
}

/* ---- Headers ---- */

/* Length of the part of a label that goes on a line `width` wide: broken before "_" and "-", behind
 * a blank, else anywhere. */
static size_t label_part(const char *label, size_t width)
{
    size_t fits = 0, nice = 0;

    if (hg_text_width(label) <= width)
        return strlen(label);
    for (size_t n = 1; label[n - 1]; n++) {
        char *head;

        if (((unsigned char)label[n] & 0xc0) == 0x80)
            continue;
        head = hg_strndup(label, n);
        if (hg_text_width(head) > width) {
            free(head);
            break;
        }
        free(head);
        fits = n;
        if (label[n] == '_' || label[n] == '-' || label[n - 1] == ' ')
            nice = n;
    }
    return nice ? nice : fits ? fits : strlen(label);
}

static size_t label_lines(const char *label, size_t width)
{
    size_t lines = 0;

    for (; *label; label += label_part(label, width))
        lines++;
    return lines;
}

/* Line `line` of `of` of a label, set to the bottom. Lent text of *n bytes. */
static const char *label_line(const char *label, size_t width, size_t line, size_t of, size_t *n)
{
    size_t lines = label_lines(label, width), skip = of - lines;

    *n = 0;
    if (lines > of || line < skip)
        return "";
    for (size_t i = skip; i < line; i++)
        label += label_part(label, width);
    *n = label_part(label, width);
    return label;
}

/* The narrowest a label can get without breaking a word. */
static size_t label_floor(const char *label)
{
    size_t floor = 0;

    while (*label) {
        size_t n = 1 + strcspn(label + 1, "_- ");
        char *word = hg_strndup(label, n + (label[n] == ' '));

        floor = larger(floor, hg_text_width(word));
        free(word);
        label += n + (label[n] == ' ');
    }
    return floor;
}

/* May the label be one column narrower: no broken word, no more than HEADER_LINES? */
static bool can_narrow(const struct column *c, const char *label)
{
    return c->label_width > label_floor(label) &&
           label_lines(label, c->label_width - 1) <= HEADER_LINES;
}

/* The widest label that stands out over its numbers and can be narrower; NULL if there is none. */
static struct column *find_narrowable(struct grid *g)
{
    struct column *widest = NULL;

    for (size_t i = 0; i < g->r->n_row_keys + g->t->n_columns; i++) {
        bool key = i < g->r->n_row_keys;
        struct column *c = key ? &g->keys[i] : &g->values[i - g->r->n_row_keys];
        bool fits = c->label_width > c->number;

        if (key)
            fits = fits && can_narrow(c, c->label);
        for (size_t k = 0; !key && k < g->r->n_column_keys && fits; k++)
            fits = can_narrow(c, column_text(g, i - g->r->n_row_keys, k));
        if (fits && (!widest || c->label_width > widest->label_width))
            widest = c;
    }
    return widest;
}

/* Make labels narrower until the columns fit, as long as that helps. */
static void narrow_labels(struct grid *g)
{
    while (grid_width(g, 0, g->t->n_columns) > g->width) {
        struct column *widest = find_narrowable(g);

        if (!widest)
            return;
        widest->label_width--;
    }
}

static void append_label(const struct column *c, const char *text, size_t n, struct hg_buf *out)
{
    size_t room = larger(c->number, c->label_width);
    char *part = hg_strndup(text, n);
    size_t width = hg_text_width(part);

    if (c->right)
        pad(out, room > width ? room - width : 0);
    hg_buf_append(out, text, n);
    if (!c->right)
        pad(out, room > width ? room - width : 0);
    pad(out, c->spread + c->mark);
    free(part);
}

static void append_key_name(const struct grid *g, size_t key, size_t line, size_t lines)
{
    size_t room = keys_width(g);
    char *name = clean_label(g->r->frame.keys.items[g->r->column_keys[key]].name);
    size_t width = hg_text_width(name);

    if (line + 1 < lines || !g->named[key] || width > room) {
        pad(g->out, room);
    } else {
        pad(g->out, room - width);
        hg_buf_puts(g->out, name);
    }
    free(name);
}

static size_t key_header_lines(const struct grid *g)
{
    size_t lines = 0;

    for (size_t k = 0; k < g->r->n_row_keys; k++)
        lines = larger(lines, label_lines(g->keys[k].label, g->keys[k].label_width));
    return lines;
}

static void append_row_key_names(const struct grid *g, size_t line, size_t lines)
{
    for (size_t k = 0; k < g->r->n_row_keys; k++) {
        size_t n;
        const char *part = label_line(g->keys[k].label, g->keys[k].label_width, line, lines, &n);

        pad(g->out, k ? GAP : 0);
        append_label(&g->keys[k], part, n, g->out);
    }
    pad(g->out, keys_width(g) - row_keys_width(g));
}

static size_t column_header_lines(const struct grid *g, size_t key, size_t from, size_t to)
{
    size_t lines = 0;

    for (size_t i = from; i < to; i++)
        lines = larger(lines, label_lines(column_text(g, i, key),
                                          larger(g->values[i].label_width, g->values[i].number)));
    return lines;
}

/* Column keys line by line; a single one shares its lines with the names of the row keys. */
static void append_header(const struct grid *g, size_t from, size_t to)
{
    size_t n_keys = g->r->n_column_keys;
    bool shared = n_keys == 0 || (n_keys == 1 && !g->named[0]);

    for (size_t key = 0; key < (n_keys ? n_keys : 1); key++) {
        size_t lines = n_keys ? column_header_lines(g, key, from, to) : 0;

        if (shared)
            lines = larger(lines, key_header_lines(g));
        for (size_t line = 0; line < lines; line++) {
            if (shared)
                append_row_key_names(g, line, lines);
            else
                append_key_name(g, key, line, lines);
            for (size_t i = from; i < to && n_keys; i++) {
                size_t n = 0, room = larger(g->values[i].label_width, g->values[i].number);
                const char *part = label_line(column_text(g, i, key), room, line, lines, &n);

                pad(g->out, grid_width(g, from, i) ? GAP : 0);
                append_label(&g->values[i], part, n, g->out);
            }
            hg_line_end(g->out);
        }
    }
    for (size_t line = 0; !shared && line < key_header_lines(g); line++) {
        append_row_key_names(g, line, key_header_lines(g));
        hg_line_end(g->out);
    }
}

/* ---- Rows ---- */

static void append_row_keys(const struct grid *g, size_t row)
{
    for (size_t k = 0; k < g->r->n_row_keys; k++) {
        uint32_t value = g->t->rows[row * g->r->n_row_keys + k];
        char *text = clean_label(value ? hg_report_text(g->r, value) : "–");

        pad(g->out, k ? GAP : 0);
        append_label(&g->keys[k], text, strlen(text), g->out);
        free(text);
    }
    pad(g->out, keys_width(g) - row_keys_width(g));
}

/* Is no figure of the row better, and is there another? Of speedup and efficiency more is better. */
static bool is_best(const struct grid *g, size_t row, double value, enum hg_section section)
{
    bool higher = section != HG_SECTION_VALUE || g->r->higher_is_better;
    size_t others = 0;

    if (isnan(value) || (section == HG_SECTION_VALUE && !g->r->has_direction))
        return false;
    for (size_t i = 0; i < g->t->n_columns; i++) {
        double other = hg_section_value(hg_table_point(g->t, row, i), section);

        if (higher ? other > value : other < value)
            return false;
        others += !isnan(other);
    }
    return others > 1;
}

static void append_number(const struct grid *g, size_t row, const struct hg_point *p,
                          enum hg_section section, const char *number)
{
    double value = hg_section_value(p, section);
    static const char *const open[] = { "waiting", "pending", "running", "ended", NULL };
    bool best = is_best(g, row, value, section),
         bad = isnan(value) && p->state && !hg_text_is_one_of(p->state, strlen(p->state), open);

    hg_buf_printf(g->out, "%s%s%s",
                  best  ? hg_colour_start(g->fd, HG_COLOUR_BEST)
                  : bad ? hg_colour_start(g->fd, HG_COLOUR_BAD)
                        : "",
                  number, best || bad ? hg_colour_stop(g->fd) : "");
}

static void append_figure(const struct grid *g, const struct column *c, size_t row, size_t column,
                          enum hg_section section)
{
    const struct hg_point *p = hg_table_point(g->t, row, column);
    size_t room = larger(c->number, c->label_width);
    struct hg_figure figure;
    struct hg_buf tail = HG_BUF_INIT;

    hg_figure_format(g->r, p, section, g->decimals[section], &figure);
    pad(g->out, room - hg_text_width(figure.number));
    append_number(g, row, p, section, figure.number);
    if (*figure.spread)
        hg_buf_printf(&tail, " %s", figure.spread);
    if (*figure.number)
        hg_marks_format(p, &tail);
    hg_buf_puts(g->out, hg_buf_str(&tail));
    pad(g->out, c->spread + c->mark - hg_text_width(hg_buf_str(&tail)));
    hg_buf_done(&tail);
}

static void append_section(const struct grid *g, enum hg_section section, size_t from, size_t to)
{
    struct hg_buf title = HG_BUF_INIT;

    hg_section_title(g->r, section, &title);
    rule(g->out, hg_buf_str(&title), grid_width(g, from, to));
    hg_buf_done(&title);
    for (size_t row = 0; row < g->t->n_rows; row++) {
        append_row_keys(g, row);
        for (size_t i = from; i < to; i++) {
            pad(g->out, grid_width(g, from, i) ? GAP : 0);
            append_figure(g, &g->values[i], row, i, section);
        }
        hg_line_end(g->out);
    }
}

/* As many columns as fit, then the next ones below. */
static void append_grid(struct grid *g)
{
    size_t from = 0;

    while (from < g->t->n_columns) {
        size_t to = from + 1;

        while (to < g->t->n_columns && grid_width(g, from, to + 1) <= g->width)
            to++;
        if (from)
            hg_buf_puts(g->out, "\n");
        append_header(g, from, to);
        for (int s = 0; s < HG_SECTIONS; s++)
            if (hg_section_exists(g->t, (enum hg_section)s))
                append_section(g, (enum hg_section)s, from, to);
        from = to;
    }
}

/* ---- Below the grid ---- */

static void append_notes(const struct grid *g)
{
    if (g->t->no_speedup) {
        hg_buf_puts(g->out, "\n");
        hg_wrapped_append(g->t->no_speedup, g->width, 2, 0, g->out);
    }
    for (size_t i = 0; i < g->t->remarks.n; i++) {
        hg_buf_puts(g->out, "\n");
        hg_wrapped_append(g->t->remarks.items[i], g->width, 2, 0, g->out);
    }
    if (g->t->notes.n)
        hg_buf_puts(g->out, "\n");
    for (size_t i = 0; i < g->t->notes.n; i++) {
        struct hg_buf mark = HG_BUF_INIT, text = HG_BUF_INIT;

        hg_mark_format(i, &mark);
        hg_clean_append(g->t->notes.items[i], 0, &text);
        hg_buf_printf(g->out, "%s ", hg_buf_str(&mark));
        hg_wrapped_append(hg_buf_str(&text), g->width, 2, hg_text_width(hg_buf_str(&mark)) + 1,
                          g->out);
        hg_buf_done(&mark);
        hg_buf_done(&text);
    }
}

static void append_table(const struct hg_report *r, const struct hg_table *t, size_t width, int fd,
                         struct hg_buf *out)
{
    struct grid g = { .r = r, .t = t, .width = width, .fd = fd, .out = out };
    struct hg_buf title = HG_BUF_INIT;

    g.keys = hg_alloc_zeroed(r->n_row_keys + 1, sizeof *g.keys);
    g.values = hg_alloc_zeroed(t->n_columns + 1, sizeof *g.values);
    g.labels = hg_alloc_zeroed(t->n_columns * r->n_column_keys + 1, sizeof *g.labels);
    g.named = hg_alloc_zeroed(r->n_column_keys + 1, sizeof *g.named);
    name_keys(&g);
    for (int s = 0; s < HG_SECTIONS; s++)
        g.decimals[s] = hg_section_decimals(t, (enum hg_section)s);
    measure_keys(&g);
    measure_values(&g);
    label_values(&g);
    narrow_labels(&g);
    hg_buf_puts(out, "\n");
    hg_table_title(r, t, &title);
    if (title.len) {
        hg_wrapped_append(hg_buf_str(&title), width, 2, 0, out);
        hg_buf_puts(out, "\n");
    }
    append_grid(&g);
    for (size_t i = 0; i < t->listings.n; i++) {
        hg_buf_puts(out, "\n");
        hg_listing_write_text(&t->listings.items[i], &r->style, width, out);
    }
    append_notes(&g);
    for (size_t k = 0; k < r->n_row_keys; k++)
        free(g.keys[k].label);
    for (size_t i = 0; i < t->n_columns * r->n_column_keys; i++)
        free(g.labels[i]);
    free(g.labels);
    free(g.named);
    free(g.keys);
    free(g.values);
    hg_buf_done(&title);
}

static void append_origin(const struct hg_report *r, size_t width, struct hg_buf *out)
{
    struct hg_buf lines = HG_BUF_INIT;
    char *rest = NULL;

    hg_origin_format(r, &lines);
    hg_buf_puts(out, "\n");
    for (char *line = strtok_r(lines.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        hg_wrapped_append(line, width, 2, 0, out);
    hg_buf_done(&lines);
}

static void render(const struct hg_report *r, const struct hg_render_options *o, struct hg_buf *out)
{
    size_t width = o->width == 0 ? WIDTH_DEFAULT : o->width < WIDTH_MIN ? WIDTH_MIN : o->width;
    struct hg_buf line = HG_BUF_INIT;

    hg_clean_append(r->title, 0, &line);
    hg_buf_puts(&line, " · ");
    hg_completeness_format(r, &line);
    hg_wrapped_append(hg_buf_str(&line), width, 2, 0, out);
    hg_buf_clear(&line);
    hg_method_format(r, &line);
    hg_wrapped_append(hg_buf_str(&line), width, 2, 0, out);
    hg_buf_clear(&line);
    hg_baseline_format(r, &line);
    if (line.len)
        hg_wrapped_append(hg_buf_str(&line), width, 2, 0, out);
    for (size_t i = 0; i < r->tables.n; i++)
        append_table(r, &r->tables.items[i], width, o->screen ? STDOUT_FILENO : -1, out);
    for (size_t i = 0; i < r->listings.n; i++) {
        hg_buf_puts(out, "\n");
        hg_listing_write_text(&r->listings.items[i], &r->style, width, out);
    }
    hg_buf_clear(&line);
    hg_common_format(r, &line);
    if (line.len) {
        hg_buf_puts(out, "\nall cells: ");
        hg_wrapped_append(hg_buf_str(&line), width, 2, 11, out);
    }
    append_origin(r, width, out);
    hg_buf_done(&line);
}

static void escape(const char *text, struct hg_buf *out)
{
    hg_clean_append(text, 0, out);
}

const struct hg_renderer hg_renderer_text = {
    .name = "text",
    .endings = "txt",
    .file = "report.txt",
    .render = render,
    .escape = escape,
    .sheet = hg_sheet_text,
};
