/* SPDX-License-Identifier: Apache-2.0 */
#include "render/listings.h"

#include <stdlib.h>

#include "base/json.h"
#include "typeset/escape.h"
#include "typeset/plain.h"

struct hg_sheet hg_listing_sheet(const struct hg_listing *l, const struct hg_style *style)
{
    struct hg_sheet s = { .n_columns = l->columns.n };

    for (size_t i = 0; i < l->columns.n; i++) {
        hg_sheet_put(&s, l->columns.items[i].title);
        s.left |= i < 8 * sizeof s.left && l->columns.items[i].left ? 1ul << i : 0;
    }
    for (size_t i = 0; i < l->data.n; i++) {
        struct hg_buf word = HG_BUF_INIT;

        hg_datum_format(&l->data.items[i], style, &word);
        hg_sheet_take(&s, &word);
    }
    return s;
}

/* ---- Text ---- */

/* The width of the columns from..to with what is between them. */
static size_t span(const size_t *widths, size_t from, size_t to)
{
    size_t width = 0;

    for (size_t i = from; i < to; i++)
        width += (i > from ? HG_SHEET_GAP : 0) + widths[i];
    return width;
}

/* The first columns, which name the rows wherever the table is continued, then those from..to. */
static void append_block(const struct hg_sheet *s, const size_t *widths, size_t keys, size_t from,
                         size_t to, struct hg_buf *out)
{
    size_t width = span(widths, 0, keys) + (from < to ? HG_SHEET_GAP : 0) + span(widths, from, to);

    for (size_t line = 0; line * s->n_columns < s->n; line++) {
        hg_sheet_line(s, widths, line, keys, from, to, out);
        for (size_t i = 0; line == 0 && i < width; i++)
            hg_buf_puts(out, i + 1 < width ? "─" : "─\n");
    }
}

static void append_wrapped(const char *text, size_t width, struct hg_buf *out)
{
    struct hg_buf clean = HG_BUF_INIT;

    hg_clean_append(text, 0, &clean);
    hg_wrapped_append(hg_buf_str(&clean), width, 2, 0, out);
    hg_buf_done(&clean);
}

static void append_continued(const char *title, size_t width, struct hg_buf *out)
{
    char *text = hg_str_printf("%s, continued", title);

    hg_buf_puts(out, "\n");
    append_wrapped(text, width, out);
    free(text);
}

void hg_listing_write_text(const struct hg_listing *l, const struct hg_style *style, size_t width,
                           struct hg_buf *out)
{
    struct hg_sheet s = hg_listing_sheet(l, style);
    size_t *widths = hg_sheet_widths(&s), from;
    size_t keys = l->n_keys && l->n_keys < l->columns.n ? l->n_keys : 1;

    if (span(widths, 0, keys) * 2 > width) /* no room for anything beside them */
        keys = 1;
    from = keys;
    append_wrapped(l->title, width, out);
    do {
        size_t to = from, used = span(widths, 0, keys);

        while (to < l->columns.n && (to == from || used + HG_SHEET_GAP + widths[to] <= width))
            used += HG_SHEET_GAP + widths[to++];
        if (from > keys)
            append_continued(l->title, width, out);
        append_block(&s, widths, keys, from, to, out);
        from = to;
    } while (from < l->columns.n);
    for (size_t i = 0; i < l->notes.n; i++)
        append_wrapped(l->notes.items[i], width, out);
    free(widths);
    hg_sheet_done(&s);
}

/* ---- Markdown ---- */

void hg_listing_write_md(const struct hg_listing *l, const struct hg_style *style,
                         struct hg_buf *out)
{
    struct hg_sheet s = hg_listing_sheet(l, style);

    hg_buf_puts(out, "**");
    hg_md_append(l->title, out);
    hg_buf_puts(out, "**\n\n");
    hg_sheet_md(&s, out);
    for (size_t i = 0; i < l->notes.n; i++) {
        hg_buf_puts(out, "\n");
        hg_md_append(l->notes.items[i], out);
        hg_buf_puts(out, "\n");
    }
    hg_sheet_done(&s);
}

/* ---- JSON ---- */

static json_t *encode_datum(const struct hg_datum *d)
{
    return d->kind == HG_DATUM_TEXT   ? hg_json_text(d->text)
           : d->kind == HG_DATUM_NONE ? json_null()
                                      : hg_json_number(d->v);
}

json_t *hg_listing_encode(const struct hg_listing *l)
{
    json_t *object = json_object(), *rows = json_array(), *notes = json_array();

    for (size_t row = 0; row < hg_listing_rows(l); row++) {
        json_t *line = json_object();

        for (size_t column = 0; column < l->columns.n; column++)
            json_object_set_new(line, l->columns.items[column].name,
                                encode_datum(hg_listing_datum(l, row, column)));
        json_array_append_new(rows, line);
    }
    for (size_t i = 0; i < l->notes.n; i++)
        json_array_append_new(notes, hg_json_text(l->notes.items[i]));
    json_object_set_new(object, "name", json_string(l->name));
    json_object_set_new(object, "title", hg_json_text(l->title));
    json_object_set_new(object, "rows", rows);
    json_object_set_new(object, "notes", notes);
    return object;
}

json_t *hg_listings_encode(const struct hg_listings *list)
{
    json_t *array = json_array();

    for (size_t i = 0; i < list->n; i++)
        json_array_append_new(array, hg_listing_encode(&list->items[i]));
    return array;
}
