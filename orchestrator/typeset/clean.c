/* SPDX-License-Identifier: Apache-2.0 */
#include "typeset/clean.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

/* Control characters, and those that change the direction of the text around them. Letters written from right to left are fine. */
static bool is_control(const char *one)
{
    static const char *const bidi[] = {
        "\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202b", "\u202c",
        "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069", "\ufeff",
    };
    unsigned char first = (unsigned char)one[0];

    if (first < 0x20 || first == 0x7f || (first == 0xc2 && (unsigned char)one[1] < 0xa0))
        return true;
    for (size_t i = 0; first >= 0xd8 && i < sizeof bidi / sizeof *bidi; i++)
        if (strcmp(one, bidi[i]) == 0)
            return true;
    return false;
}

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
        if (is_control(one))
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
