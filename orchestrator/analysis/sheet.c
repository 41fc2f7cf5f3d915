/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/sheet.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "analysis/escape.h"
#include "analysis/figures.h"

#define WORD_MAX 40 /* columns, in text */

void hg_sheet_take(struct hg_sheet *s, struct hg_buf *word)
{
    size_t cap = s->cap ? s->cap * 2 : 64;

    if (s->n == s->cap) {
        char **words = realloc(s->words, cap * sizeof *words);

        if (!words) {
            s->failed = true;
            hg_buf_done(word);
            return;
        }
        s->words = words;
        s->cap = cap;
    }
    s->words[s->n] = word->len ? hg_buf_detach(word) : strdup("");
    if (s->words[s->n])
        s->n++;
    else
        s->failed = true;
    hg_buf_done(word);
}

void hg_sheet_put(struct hg_sheet *s, const char *word)
{
    struct hg_buf copy = HG_BUF_INIT;

    hg_buf_puts(&copy, word);
    hg_sheet_take(s, &copy);
}

static bool is_left(unsigned long left, size_t column)
{
    return column < 8 * sizeof left && (left >> column & 1);
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

void hg_sheet_text(const struct hg_sheet *s, unsigned long left, struct hg_buf *out)
{
    size_t *rooms = calloc(s->n_columns, sizeof *rooms);

    for (size_t i = 0; rooms && i < s->n; i++) {
        size_t width = hg_text_width(s->words[i]), *room = &rooms[i % s->n_columns];

        width = width > WORD_MAX ? WORD_MAX : width;
        *room = width > *room ? width : *room;
    }
    for (size_t i = 0; rooms && i < s->n; i++) {
        size_t column = i % s->n_columns;

        hg_buf_puts(out, column ? "  " : "");
        append_word(s->words[i], rooms[column], is_left(left, column), out);
        if (column + 1 == s->n_columns)
            hg_line_end(out);
    }
    out->failed = out->failed || s->failed || !rooms;
    free(rooms);
}

void hg_sheet_md(const struct hg_sheet *s, unsigned long left, struct hg_buf *out)
{
    for (size_t i = 0; i < s->n; i++) {
        hg_buf_puts(out, "| ");
        hg_md_append(s->words[i], out);
        hg_buf_puts(out, (i + 1) % s->n_columns ? " " : " |\n");
        if (i + 1 != s->n_columns)
            continue;
        for (size_t k = 0; k < s->n_columns; k++)
            hg_buf_puts(out, is_left(left, k) ? "| --- " : "| ---: ");
        hg_buf_puts(out, "|\n");
    }
    out->failed = out->failed || s->failed;
}

void hg_sheet_csv(const struct hg_sheet *s, const struct hg_style *style, struct hg_buf *out)
{
    for (size_t i = 0; i < s->n; i++) {
        hg_csv_append(style, s->words[i], out);
        hg_buf_puts(out, (i + 1) % s->n_columns ? hg_csv_separator(style) : "\r\n");
    }
    out->failed = out->failed || s->failed;
}

void hg_sheet_done(struct hg_sheet *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->words[i]);
    free(s->words);
    *s = (struct hg_sheet){ .n_columns = s->n_columns };
}
