/* SPDX-License-Identifier: Apache-2.0 */
#include "render/latex_width.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "typeset/escape.h"

/* From ' ' to '~', in hundredths of a point; '_' as \\_ sets it. */
static const short widths[] = {
    333, 278, 500, 833, 500, 833, 778, 278,  389, 389, 500, 778, 278, 333, 278, 500, /* to '/' */
    500, 500, 500, 500, 500, 500, 500, 500,  500, 500, 278, 278, 778, 778, 778, 472, /* to '?' */
    778, 750, 708, 722, 764, 681, 653, 785,  750, 361, 514, 778, 625, 917, 750, 778, /* to 'O' */
    681, 778, 736, 556, 722, 750, 750, 1028, 750, 750, 611, 278, 500, 278, 500, 778, /* to '_' */
    278, 500, 556, 444, 556, 444, 306, 500,  556, 278, 306, 528, 278, 833, 556, 500, /* to 'o' */
    556, 528, 392, 394, 389, 556, 528, 722,  528, 528, 444, 500, 278, 500, 500,      /* to '~' */
};

double hg_latex_width(const char *text)
{
    double width = 0;

    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p >= ' ' && *p <= '~')
            width += widths[*p - ' '] / 100.0;
        else if ((*p & 0xc0) != 0x80) /* another letter or sign: as wide as most capitals */
            width += 7.8;
    }
    return width;
}

/* Length of the first word with what separates it: up to behind a blank, or up to the next "_". */
static size_t word_length(const char *text)
{
    size_t n = 1;

    while (text[n] && text[n] != '_' && text[n - 1] != ' ')
        n++;
    return n;
}

double hg_latex_stack(const char *text, double room, char side, struct hg_buf *out)
{
    double widest = 0, whole = hg_latex_width(text);
    struct hg_buf line = HG_BUF_INIT;
    bool first = true;

    if (whole <= room || strlen(text) == word_length(text)) {
        hg_latex_append(text, out);
        return whole;
    }
    hg_buf_printf(out, "\\shortstack[%c]{", side);
    while (*text) {
        hg_buf_clear(&line);
        do {
            size_t n = word_length(text);

            hg_buf_append(&line, text, n);
            text += n;
            if (*text) {
                char *next = hg_strndup(text, word_length(text));
                double both = hg_latex_width(hg_buf_str(&line)) + hg_latex_width(next);

                free(next);
                if (both > room)
                    break;
            }
        } while (*text);
        while (line.len && line.data[line.len - 1] == ' ')
            line.data[--line.len] = '\0';
        hg_buf_puts(out, first ? "" : "\\\\");
        hg_latex_append(hg_buf_str(&line), out);
        widest = fmax(widest, hg_latex_width(hg_buf_str(&line)));
        first = false;
    }
    hg_buf_puts(out, "}");
    hg_buf_done(&line);
    return widest;
}
