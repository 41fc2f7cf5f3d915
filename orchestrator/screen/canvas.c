/* SPDX-License-Identifier: Apache-2.0 */
#include "screen/canvas.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/text.h"

void hg_canvas_init(struct hg_canvas *c, int width, int height, bool utf8)
{
    size_t n = (size_t)width * (size_t)height;

    *c = (struct hg_canvas){ .width = width, .height = height, .utf8 = utf8 };
    c->marks = hg_alloc((n + 1) * sizeof *c->marks);
    for (size_t i = 0; i < n; i++)
        c->marks[i] = (struct hg_mark){ .cp = ' ' };
}

void hg_canvas_done(struct hg_canvas *c)
{
    free(c->marks);
    *c = (struct hg_canvas){ 0 };
}

/* What stands for a character of our own texts where there is only ASCII. */
static uint32_t ascii_of(uint32_t cp)
{
    static const struct {
        uint32_t cp;
        char ascii;
    } known[] = { { 0xb7, '|' },   { 0xd7, 'x' },   { 0xf7, '/' },   { 0x2026, '~' },
                  { 0x2500, '-' }, { 0x2588, '#' }, { 0x2591, '.' }, { 0x2248, '~' } };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].cp == cp)
            return (uint32_t)known[i].ascii;
    return cp < 0x80 ? cp : '?';
}

int hg_canvas_put(struct hg_canvas *c, int line, int column, int max, enum hg_ink ink,
                  const char *text)
{
    int end = column + max < c->width ? column + max : c->width;

    if (line < 0 || line >= c->height || column < 0)
        return column;
    while (*text) {
        char one[8] = "";
        uint32_t cp;
        size_t n = hg_text_utf8_next(text, &cp);
        int width = 0;

        for (size_t i = 0; i < n && i < sizeof one - 1; i++)
            one[i] = text[i];
        text += n;
        if (cp >= 0x20 && cp != 0x7f && !(cp >= 0x80 && cp < 0xa0))
            width = (int)hg_text_width(one);
        if (column + width > end)
            break;
        for (int i = 0; i < width; i++)
            c->marks[line * c->width + column + i] =
                (struct hg_mark){ .cp = i         ? (c->utf8 ? 0 : ' ')
                                        : c->utf8 ? cp
                                                  : ascii_of(cp),
                                  .ink = (uint8_t)ink };
        column += width;
    }
    return column;
}

int hg_canvas_printf(struct hg_canvas *c, int line, int column, enum hg_ink ink, const char *fmt,
                     ...)
{
    struct hg_buf text = HG_BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    hg_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    column = hg_canvas_put(c, line, column, c->width, ink, hg_buf_str(&text));
    hg_buf_done(&text);
    return column;
}

void hg_canvas_append(uint32_t cp, struct hg_buf *out)
{
    char text[4];
    size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;

    for (size_t i = n; i-- > 1; cp >>= 6)
        text[i] = (char)(0x80 | (cp & 0x3f));
    text[0] = (char)(n == 1 ? cp : (0xf00u >> n & 0xf0) | cp);
    hg_buf_append(out, text, n);
}

void hg_canvas_text(const struct hg_canvas *c, struct hg_buf *out)
{
    for (int y = 0; y < c->height; y++) {
        const struct hg_mark *line = c->marks + y * c->width;
        int end = c->width;

        while (end && line[end - 1].cp == ' ')
            end--;
        for (int x = 0; x < end; x++)
            if (line[x].cp)
                hg_canvas_append(line[x].cp, out);
        hg_buf_puts(out, "\n");
    }
}
