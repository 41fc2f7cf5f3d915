/* SPDX-License-Identifier: Apache-2.0 */
#include "typeset/plain.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

void hg_clean_append(const char *text, size_t columns, struct hg_buf *out)
{
    size_t width = 0;
    bool cut = columns && hg_text_width(text) > columns;

    while (*text) {
        size_t n = 1;
        char one[8];

        while (((unsigned char)text[n] & 0xc0) == 0x80 && n < 4)
            n++;
        memcpy(one, text, n);
        one[n] = '\0';
        if (hg_text_control(one))
            strcpy(one, "?");
        width += hg_text_width(one);
        if (cut && width > columns - 1) {
            hg_buf_puts(out, "…");
            return;
        }
        hg_buf_puts(out, one);
        text += n;
    }
}

void hg_line_end(struct hg_buf *out)
{
    while (out->len && out->data[out->len - 1] == ' ')
        out->len--;
    if (out->data)
        out->data[out->len] = '\0';
    hg_buf_puts(out, "\n");
}

/* Bytes of the text that fit into so many columns, at least one character; *width: the columns that they take. */
static size_t fitting(const char *text, size_t n, size_t columns, size_t *width)
{
    size_t fits = 0;

    *width = 0;
    while (fits < n) {
        char one[8] = { text[fits] };
        size_t len = 1;

        while (fits + len < n && len < 4 && ((unsigned char)text[fits + len] & 0xc0) == 0x80) {
            one[len] = text[fits + len];
            len++;
        }
        if (fits && *width + hg_text_width(one) > columns)
            break;
        *width += hg_text_width(one);
        fits += len;
    }
    return fits;
}

void hg_wrapped_append(const char *text, size_t width, size_t indent, size_t at, struct hg_buf *out)
{
    bool first = true;

    while (*text) {
        size_t n = strcspn(text, " "), room = width > at + !first ? width - at - !first : 0, used;
        size_t part = fitting(text, n, room, &used);
        bool fits = room && part == n;

        if (!fits && at > indent) {
            hg_line_end(out);
            hg_buf_printf(out, "%*s", (int)indent, "");
            at = indent;
            first = true;
            continue;
        }
        if (!first) {
            hg_buf_puts(out, " ");
            at++;
        }
        hg_buf_append(out, text, part);
        at = fits ? at + used : width;
        first = !fits;
        text += part + (fits ? strspn(text + part, " ") : 0);
    }
    hg_buf_puts(out, "\n");
}
