/* SPDX-License-Identifier: Apache-2.0 */
#include "typeset/sheet.h"

#include <stdlib.h>

#include "base/text.h"
#include "base/vec.h"
#include "typeset/clean.h"
#include "typeset/escape.h"
#include "typeset/wrap.h"

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

void hg_sheet_text(const struct hg_sheet *s, struct hg_buf *out)
{
    size_t *rooms = hg_alloc_zeroed(s->n_columns, sizeof *rooms);

    for (size_t i = 0; i < s->n; i++) {
        size_t width = hg_text_width(s->items[i]), *room = &rooms[i % s->n_columns];

        width = width > WORD_MAX ? WORD_MAX : width;
        *room = width > *room ? width : *room;
    }
    for (size_t i = 0; i < s->n; i++) {
        size_t column = i % s->n_columns;

        hg_buf_puts(out, column ? "  " : "");
        append_word(s->items[i], rooms[column], is_left(s, column), out);
        if (column + 1 == s->n_columns)
            hg_line_end(out);
    }
    free(rooms);
}

void hg_sheet_md(const struct hg_sheet *s, struct hg_buf *out)
{
    for (size_t i = 0; i < s->n; i++) {
        hg_buf_puts(out, "| ");
        hg_md_append(s->items[i], out);
        hg_buf_puts(out, (i + 1) % s->n_columns ? " " : " |\n");
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
