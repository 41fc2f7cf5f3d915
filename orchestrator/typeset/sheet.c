/* SPDX-License-Identifier: Apache-2.0 */
#include "typeset/sheet.h"

#include <stdlib.h>

#include "base/text.h"
#include "base/vec.h"
#include "typeset/escape.h"
#include "typeset/plain.h"

#define WORD_MAX 40 /* columns, in text */

void hg_sheet_take(struct hg_sheet *s, struct hg_buf *word)
{
    *HG_VEC_PUSH(s) = hg_buf_detach(word);
}

void hg_sheet_put(struct hg_sheet *s, const char *word)
{
    *HG_VEC_PUSH(s) = hg_strdup(word);
}

static bool is_left(const struct hg_sheet *s, size_t column)
{
    return column < 8 * sizeof s->left && (s->left >> column & 1);
}

static void append_word(const char *word, size_t room, bool left, struct hg_buf *out)
{
    struct hg_buf clean = HG_BUF_INIT;
    size_t width;

    hg_clean_append(word, WORD_MAX, &clean);
    width = hg_text_width(hg_buf_str(&clean));
    width = room > width ? room - width : 0;
    hg_buf_printf(out, "%*s%s%*s", left ? 0 : (int)width, "", hg_buf_str(&clean),
                  left ? (int)width : 0, "");
    hg_buf_done(&clean);
}

size_t *hg_sheet_widths(const struct hg_sheet *s)
{
    size_t *widths = hg_alloc_zeroed(s->n_columns + 1, sizeof *widths);

    for (size_t i = 0; i < s->n; i++) {
        size_t width, *widest = &widths[i % s->n_columns];
        struct hg_buf clean = HG_BUF_INIT;

        hg_clean_append(s->items[i], WORD_MAX, &clean);
        width = hg_text_width(hg_buf_str(&clean));
        *widest = width > *widest ? width : *widest;
        hg_buf_done(&clean);
    }
    return widths;
}

void hg_sheet_line(const struct hg_sheet *s, const size_t *widths, size_t line, size_t keys,
                   size_t from, size_t to, struct hg_buf *out)
{
    for (size_t i = 0; i < keys + to - from; i++) {
        size_t column = i < keys ? i : from + i - keys;

        hg_buf_printf(out, "%*s", i ? HG_SHEET_GAP : 0, "");
        append_word(s->items[line * s->n_columns + column], widths[column], is_left(s, column),
                    out);
    }
    hg_line_end(out);
}

void hg_sheet_text(const struct hg_sheet *s, struct hg_buf *out)
{
    size_t *widths = hg_sheet_widths(s);

    for (size_t line = 0; line * s->n_columns < s->n; line++)
        hg_sheet_line(s, widths, line, 0, 0, s->n_columns, out);
    free(widths);
}

void hg_sheet_md(const struct hg_sheet *s, struct hg_buf *out)
{
    for (size_t i = 0; i < s->n; i++) {
        hg_buf_puts(out, "| ");
        hg_md_append(s->items[i], out);
        hg_buf_puts(out, *s->items[i] ? " " : "");
        hg_buf_puts(out, (i + 1) % s->n_columns ? "" : "|\n");
        if (i + 1 != s->n_columns)
            continue;
        for (size_t k = 0; k < s->n_columns; k++)
            hg_buf_puts(out, is_left(s, k) ? "| --- " : "| ---: ");
        hg_buf_puts(out, "|\n");
    }
}

void hg_sheet_csv(const struct hg_sheet *s, struct hg_buf *out)
{
    for (size_t i = 0; i < s->n; i++) {
        hg_csv_append(s->style, s->items[i], out);
        hg_buf_puts(out, (i + 1) % s->n_columns ? hg_csv_separator(s->style) : "\r\n");
    }
}

void hg_sheet_done(struct hg_sheet *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->items[i]);
    HG_VEC_DONE(s);
}
