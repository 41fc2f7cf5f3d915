/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "typeset/plain.h"

/* Of one character; letters between the classes are taken as the wider one. */
static double char_em(uint32_t cp, const char *one)
{
    if (cp >= 0x80)
        return hg_text_width(one) > 1 ? 1 : hg_text_width(one) ? 0.84 : 0;
    if (strchr("ijl.,:;'|!I/\\ ", (int)cp))
        return 0.34;
    if (strchr("ftr()[]-\"J{}*_", (int)cp))
        return cp == '_' || cp == '*' ? 0.5 : cp == '{' || cp == '}' ? 0.64 : 0.46;
    if (strchr("mWM@%", (int)cp))
        return 1;
    if (strchr("wOQ=+<>~#&GDHN^", (int)cp))
        return 0.84;
    return cp >= 'A' && cp <= 'Z' ? 0.74 : 0.64;
}

double hg_plot_text_em(const char *text)
{
    double em = 0;

    while (*text) {
        uint32_t cp;
        size_t n = hg_text_utf8_next(text, &cp);
        char one[8] = "";

        n = n ? n : 1;
        memcpy(one, text, n < 5 ? n : 4);
        em += char_em(cp, one);
        text += n;
    }
    return em;
}

/* Bytes of the last character of a text of n bytes. */
static size_t last_char(const char *text, size_t n)
{
    size_t from = n - 1;

    while (from && ((unsigned char)text[from] & 0xc0) == 0x80)
        from--;
    return n - from;
}

static double part_em(const char *text, size_t n)
{
    char *part = hg_strndup(text, n);
    double em = hg_plot_text_em(part);

    free(part);
    return em;
}

void hg_plot_text_fit(const char *text, double em, struct hg_buf *out)
{
    struct hg_buf clean = HG_BUF_INIT;
    const char *all;
    size_t head = 0, tail, n;

    hg_clean_append(text, 0, &clean);
    all = hg_buf_str(&clean);
    n = tail = clean.len;
    if (hg_plot_text_em(all) <= em) {
        hg_buf_puts(out, all);
        hg_buf_done(&clean);
        return;
    }
    for (em -= hg_plot_text_em("…"); head < tail;) {
        bool left = head < n - tail;
        uint32_t cp;
        size_t size = left ? hg_text_utf8_next(all + head, &cp) : last_char(all, tail);

        em -= part_em(left ? all + head : all + tail - size, size);
        if (em < 0)
            break;
        head += left ? size : 0;
        tail -= left ? 0 : size;
    }
    hg_buf_append(out, all, head);
    hg_buf_puts(out, "…");
    hg_buf_append(out, all + tail, n - tail);
    hg_buf_done(&clean);
}

double hg_plot_ticks_em(const struct hg_plot_axis *a)
{
    double widest = 0;

    for (size_t i = 0; i < a->ticks.n; i++)
        widest = fmax(widest, hg_plot_text_em(a->ticks.items[i].label));
    return widest;
}

double hg_plot_last_tick_em(const struct hg_plot_axis *a)
{
    return a->ticks.n ? hg_plot_text_em(a->ticks.items[a->ticks.n - 1].label) : 0;
}

double hg_plot_series_em(const struct hg_plot *p)
{
    double widest = 0;

    for (size_t i = 0; i < p->series.n; i++)
        widest = fmax(widest, hg_plot_text_em(p->series.items[i].label));
    return widest;
}

double hg_plot_bars_em(const struct hg_plot *p)
{
    double widest = 0;

    for (size_t i = 0; i < p->bar_labels.n; i++)
        widest = fmax(widest, hg_plot_text_em(p->bar_labels.items[i]));
    return widest;
}

/* Is there a gap between any two labels, if only every so manieth is written? */
static bool has_gaps(const struct hg_plot_axis *a, double em, size_t stride)
{
    for (size_t i = stride; i < a->ticks.n; i += stride) {
        const struct hg_plot_tick *one = &a->ticks.items[i - stride], *next = &a->ticks.items[i];
        double apart = (hg_plot_share(a, next->at) - hg_plot_share(a, one->at)) * em;

        if (apart < (hg_plot_text_em(one->label) + hg_plot_text_em(next->label)) / 2 + 0.5)
            return false;
    }
    return true;
}

size_t hg_plot_tick_stride(const struct hg_plot_axis *a, double em)
{
    size_t stride = 1;

    while (stride < a->ticks.n && !has_gaps(a, em, stride))
        stride++;
    return stride;
}

struct hg_plot_look hg_plot_look(size_t series)
{
    return (struct hg_plot_look){ .colour = series % HG_PLOT_COLOURS,
                                  .shape = series % HG_PLOT_SHAPES,
                                  .dash = (series + series / HG_PLOT_SHAPES) % HG_PLOT_DASHES };
}
