/* SPDX-License-Identifier: Apache-2.0 */
#include "render/listings.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"
#include "typeset/clean.h"
#include "typeset/escape.h"
#include "typeset/wrap.h"

#define GAP 2
#define WORD_MAX 40 /* columns, in text */

/* ---- Text ---- */

/* A word of the grid: the header in row 0, data below it. */
static void append_word(const struct hg_listing *l, const struct hg_style *style, size_t row,
                        size_t column, struct hg_buf *out)
{
    struct hg_buf word = HG_BUF_INIT;

    if (row == 0)
        hg_buf_puts(&word, l->columns.items[column].title);
    else
        hg_datum_format(hg_listing_datum(l, row - 1, column), style, &word);
    hg_clean_append(hg_buf_str(&word), WORD_MAX, out);
    hg_buf_done(&word);
}

static size_t column_room(const struct hg_listing *l, const struct hg_style *style, size_t column)
{
    size_t room = 0;

    for (size_t row = 0; row <= hg_listing_rows(l); row++) {
        struct hg_buf word = HG_BUF_INIT;
        size_t width;

        append_word(l, style, row, column, &word);
        width = hg_text_width(hg_buf_str(&word));
        room = width > room ? width : room;
        hg_buf_done(&word);
    }
    return room;
}

static void append_cell(const struct hg_listing *l, const struct hg_style *style, size_t row,
                        size_t column, size_t room, struct hg_buf *out)
{
    struct hg_buf word = HG_BUF_INIT;
    bool left = l->columns.items[column].left;
    size_t width;

    append_word(l, style, row, column, &word);
    width = hg_text_width(hg_buf_str(&word));
    width = room > width ? room - width : 0;
    hg_buf_printf(out, "%*s%s%*s", left ? 0 : (int)width, "", hg_buf_str(&word),
                  left ? (int)width : 0, "");
    hg_buf_done(&word);
}

/* The first columns, which name the rows wherever the table is continued, then those from..to. */
static void append_block(const struct hg_listing *l, const struct hg_style *style,
                         const size_t *rooms, size_t keys, size_t from, size_t to,
                         struct hg_buf *out)
{
    size_t n = keys + to - from;

    for (size_t row = 0; row <= hg_listing_rows(l); row++) {
        size_t width = 0;

        for (size_t i = 0; i < n; i++) {
            size_t column = i < keys ? i : from + i - keys, gap = i ? GAP : 0;

            hg_buf_printf(out, "%*s", (int)gap, "");
            append_cell(l, style, row, column, rooms[column], out);
            width += gap + rooms[column];
        }
        hg_line_end(out);
        for (size_t i = 0; row == 0 && i < width; i++)
            hg_buf_puts(out, i + 1 < width ? "─" : "─\n");
    }
}

/* The width of the first columns with what is between them. */
static size_t keys_width(const size_t *rooms, size_t keys)
{
    size_t width = 0;

    for (size_t i = 0; i < keys; i++)
        width += (i ? GAP : 0) + rooms[i];
    return width;
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

    append_wrapped(text, width, out);
    free(text);
}

void hg_listing_write_text(const struct hg_listing *l, const struct hg_style *style, size_t width,
                           struct hg_buf *out)
{
    size_t *rooms = hg_alloc_zeroed(l->columns.n + 1, sizeof *rooms);
    size_t keys = l->n_keys && l->n_keys < l->columns.n ? l->n_keys : 1, from;

    for (size_t column = 0; column < l->columns.n; column++)
        rooms[column] = column_room(l, style, column);
    if (keys_width(rooms, keys) * 2 > width) /* no room for anything beside them */
        keys = 1;
    from = keys;
    append_wrapped(l->title, width, out);
    do {
        size_t to = from, used = keys_width(rooms, keys);

        while (to < l->columns.n && (to == from || used + GAP + rooms[to] <= width))
            used += GAP + rooms[to++];
        if (from > keys) {
            hg_buf_puts(out, "\n");
            append_continued(l->title, width, out);
        }
        append_block(l, style, rooms, keys, from, to, out);
        from = to;
    } while (from < l->columns.n);
    for (size_t i = 0; i < l->notes.n; i++)
        append_wrapped(l->notes.items[i], width, out);
    free(rooms);
}

/* ---- Markdown ---- */

void hg_listing_write_md(const struct hg_listing *l, const struct hg_style *style,
                         struct hg_buf *out)
{
    struct hg_buf word = HG_BUF_INIT;

    hg_buf_puts(out, "**");
    hg_md_append(l->title, out);
    hg_buf_puts(out, "**\n\n");
    for (size_t column = 0; column < l->columns.n; column++) {
        hg_buf_puts(out, "| ");
        hg_md_append(l->columns.items[column].title, out);
        hg_buf_puts(out, *l->columns.items[column].title ? " " : "");
    }
    hg_buf_puts(out, "|\n");
    for (size_t column = 0; column < l->columns.n; column++)
        hg_buf_puts(out, l->columns.items[column].left ? "| --- " : "| ---: ");
    hg_buf_puts(out, "|\n");
    for (size_t row = 0; row < hg_listing_rows(l); row++) {
        for (size_t column = 0; column < l->columns.n; column++) {
            hg_buf_clear(&word);
            hg_datum_format(hg_listing_datum(l, row, column), style, &word);
            hg_buf_puts(out, "| ");
            hg_md_append(hg_buf_str(&word), out);
            hg_buf_puts(out, word.len ? " " : "");
        }
        hg_buf_puts(out, "|\n");
    }
    for (size_t i = 0; i < l->notes.n; i++) {
        hg_buf_puts(out, "\n");
        hg_md_append(l->notes.items[i], out);
        hg_buf_puts(out, "\n");
    }
    hg_buf_done(&word);
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
