/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/svg.h"

#include <math.h>
#include <string.h>

#include "typeset/escape.h"
#include "typeset/plain.h"

#define WIDTH 640
#define TOP 16
#define BOTTOM 48
#define CURVE_HEIGHT 320 /* of the field between the axes */
#define BAR_HEIGHT 22
#define GLYPH 8.0 /* width of a character */
#define LABEL_COLUMNS 24

struct canvas {
    const struct hg_plot *p;
    double left, right, top, height; /* the field: from left to right, from top, so high */
    struct hg_buf *out;
};

static double at_x(const struct canvas *c, double v)
{
    return c->left + hg_plot_share(&c->p->x, v) * (c->right - c->left);
}

/* Curves grow upwards, bars are counted from the top. */
static double at_y(const struct canvas *c, double v)
{
    double f = hg_plot_share(&c->p->y, v);

    return c->top + (c->p->bars ? f : 1 - f) * c->height;
}

static void lay_out(struct canvas *c)
{
    const struct hg_plot *p = c->p;

    if (p->bars) {
        c->left = 10 + GLYPH * (double)hg_plot_label_width(p, LABEL_COLUMNS);
        c->right = WIDTH - 16;
        c->top = TOP + 20 * (double)((p->series.n + 1) / 2);
        c->height = BAR_HEIGHT * (double)p->bar_labels.n;
    } else {
        c->left = 62;
        c->right = WIDTH - 24 - GLYPH * (double)hg_plot_label_width(p, LABEL_COLUMNS);
        c->top = TOP;
        c->height = CURVE_HEIGHT;
    }
}

static void append_text(const struct canvas *c, double x, double y, const char *anchor,
                        const char *text, size_t columns)
{
    struct hg_buf clean = HG_BUF_INIT;

    hg_clean_append(text, columns, &clean);
    hg_buf_printf(c->out, "<text x=\"%.1f\" y=\"%.1f\"%s%s%s>", x, y,
                  *anchor ? " text-anchor=\"" : "", anchor, *anchor ? "\"" : "");
    hg_html_append(hg_buf_str(&clean), c->out);
    hg_buf_puts(c->out, "</text>\n");
    hg_buf_done(&clean);
}

/* ---- Axes ---- */

static void append_axes(const struct canvas *c)
{
    const struct hg_plot *p = c->p;
    double bottom = c->top + c->height;

    hg_buf_puts(c->out, "<g class=\"grid\">");
    for (size_t i = 0; i < p->x.ticks.n; i++)
        hg_buf_printf(c->out, "<path d=\"M%.1f %.1fV%.1f\"/>", at_x(c, p->x.ticks.items[i].at),
                      c->top, bottom);
    for (size_t i = 0; i < p->y.ticks.n; i++)
        hg_buf_printf(c->out, "<path d=\"M%.1f %.1fH%.1f\"/>", c->left,
                      at_y(c, p->y.ticks.items[i].at), c->right);
    hg_buf_puts(c->out, "</g>\n");
    for (size_t i = 0; i < p->x.ticks.n; i++)
        append_text(c, at_x(c, p->x.ticks.items[i].at), bottom + 17, "middle",
                    p->x.ticks.items[i].label, 0);
    for (size_t i = 0; i < p->y.ticks.n; i++)
        append_text(c, c->left - 7, at_y(c, p->y.ticks.items[i].at) + 4, "end",
                    p->y.ticks.items[i].label, 0);
    for (size_t i = 0; i < p->bar_labels.n; i++)
        append_text(c, c->left - 7, at_y(c, (double)i) + 4, "end", p->bar_labels.items[i],
                    LABEL_COLUMNS);
    append_text(c, (c->left + c->right) / 2, bottom + 38, "middle", p->x.title, 0);
    if (*p->y.title) {
        struct hg_buf clean = HG_BUF_INIT;

        hg_html_append(p->y.title, &clean);
        hg_buf_printf(c->out,
                      "<text transform=\"translate(14 %.1f) rotate(-90)\" "
                      "text-anchor=\"middle\">%s</text>\n",
                      c->top + c->height / 2, hg_buf_str(&clean));
        hg_buf_done(&clean);
    }
}

static void append_ideal(const struct canvas *c)
{
    const struct hg_plot *p = c->p;
    double end = fmin(p->x.high, p->y.high);

    if (p->ideal == HG_IDEAL_DIAGONAL) {
        hg_buf_printf(c->out, "<path class=\"ideal\" d=\"M%.1f %.1fL%.1f %.1f\"/>",
                      at_x(c, fmax(p->x.low, p->y.low)), at_y(c, fmax(p->x.low, p->y.low)),
                      at_x(c, end), at_y(c, end));
        append_text(c, at_x(c, end) - 26, at_y(c, end) + 12, "end", "ideal", 0);
    } else if (p->ideal == HG_IDEAL_ONE) {
        hg_buf_printf(c->out, "<path class=\"ideal\" d=\"M%.1f %.1fH%.1f\"/>", c->left, at_y(c, 1),
                      c->right);
        append_text(c, c->right - 6, at_y(c, 1) - 5, "end", "ideal", 0);
    }
}

/* ---- Curves ---- */

/* Eight shapes of one size: colour is never all that tells series apart. */
static void append_mark(struct hg_buf *out, size_t series, double x, double y)
{
    static const char *const shapes[HG_PLOT_COLOURS] = {
        "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        "m-3.6 -3.6h7.2v7.2h-7.2z",
        "m0 -4.6l4.4 7.8h-8.8z",
        "m0 -5l5 5l-5 5l-5 -5z",
        "m0 4.6l4.4 -7.8h-8.8z",
        "m-4.5 -1.2h3.3v-3.3h2.4v3.3h3.3v2.4h-3.3v3.3h-2.4v-3.3h-3.3z",
        "m0 -4.8l4.6 3.3l-1.8 5.4h-5.6l-1.8 -5.4z",
        "m-2.2 -4.4h4.4l2.2 4.4l-2.2 4.4h-4.4l-2.2 -4.4z",
    };

    hg_buf_printf(out, "<path d=\"M%.1f %.1f%s\"/>", x, y, shapes[series % HG_PLOT_COLOURS]);
}

/* Joined: the best point of each x, so that a place of the same size does not make a spike. */
static void append_line(const struct canvas *c, const struct hg_plot_series *s, size_t number)
{
    static const char *const dashes[] = { "", "7 3", "2 3", "9 3 2 3" };
    const struct hg_plot_point *q = s->points.items;
    const char *dash = dashes[number / HG_PLOT_COLOURS % 4];
    bool first = true;

    hg_buf_puts(c->out, "<path class=\"line\" d=\"");
    for (size_t i = 0; i < s->points.n; i++) {
        if (i + 1 < s->points.n && q[i + 1].x == q[i].x)
            continue; /* sorted by y where x is the same */
        hg_buf_printf(c->out, "%c%.1f %.1f", first ? 'M' : 'L', at_x(c, q[i].x), at_y(c, q[i].y));
        first = false;
    }
    hg_buf_puts(c->out, "\"");
    if (*dash)
        hg_buf_printf(c->out, " stroke-dasharray=\"%s\"", dash);
    hg_buf_puts(c->out, "/>");
}

static void append_interval(const struct canvas *c, const struct hg_plot_point *q)
{
    double x = at_x(c, q->x);

    if (isnan(q->low) || isnan(q->high))
        return;
    hg_buf_printf(c->out, "<path class=\"line\" d=\"M%.1f %.1fV%.1fM%.1f %.1fh8M%.1f %.1fh8\"/>", x,
                  at_y(c, q->low), at_y(c, q->high), x - 4, at_y(c, q->low), x - 4,
                  at_y(c, q->high));
}

static void append_prediction(const struct canvas *c, const struct hg_plot_series *s, size_t number)
{
    const struct hg_plot_point *from = &s->points.items[s->points.n - 1], *to = &s->prediction;

    hg_buf_printf(c->out,
                  "<path class=\"line\" stroke-dasharray=\"2 4\" d=\"M%.1f %.1fL%.1f %.1f\"/>",
                  at_x(c, from->x), at_y(c, from->y), at_x(c, to->x), at_y(c, to->y));
    append_interval(c, to);
    hg_buf_puts(c->out, "<g class=\"hollow\">");
    append_mark(c->out, number, at_x(c, to->x), at_y(c, to->y));
    hg_buf_puts(c->out, "</g>");
}

static void append_curve(const struct canvas *c, size_t number)
{
    const struct hg_plot *p = c->p;
    const struct hg_plot_series *s = &p->series.items[number];
    double y = c->top + (1 - s->label_at) * c->height;

    hg_buf_printf(c->out, "<g class=\"c%zu\">", number % HG_PLOT_COLOURS);
    if (p->lines && s->points.n > 1)
        append_line(c, s, number);
    for (size_t i = 0; i < s->points.n && p->marks; i++) {
        append_interval(c, &s->points.items[i]);
        append_mark(c->out, number, at_x(c, s->points.items[i].x), at_y(c, s->points.items[i].y));
    }
    if (s->has_prediction)
        append_prediction(c, s, number);
    if (!isnan(s->label_at))
        append_mark(c->out, number, c->right + 12, y);
    hg_buf_puts(c->out, "</g>\n");
    for (size_t i = 0; i < s->points.n; i++)
        if (s->points.items[i].label)
            append_text(c, at_x(c, s->points.items[i].x) + 7,
                        at_y(c, s->points.items[i].y) + (s->points.items[i].label_below ? 14 : -5),
                        "", s->points.items[i].label, LABEL_COLUMNS);
    if (!isnan(s->label_at))
        append_text(c, c->right + 20, y + 4, "", s->label, LABEL_COLUMNS);
}

/* ---- Bars ---- */

static void append_part(const struct canvas *c, size_t number)
{
    const struct hg_plot_series *s = &c->p->series.items[number];
    double x = number % 2 ? (double)WIDTH / 2 : 10, y = TOP + 20 * (double)(number / 2);

    hg_buf_printf(c->out, "<g class=\"c%zu\">", number % HG_PLOT_COLOURS);
    for (size_t i = 0; i < s->points.n; i++) {
        const struct hg_plot_point *q = &s->points.items[i];

        hg_buf_printf(c->out, "<path class=\"part\" d=\"M%.1f %.1fh%.1fv%dh%.1fz\"/>",
                      at_x(c, q->low), at_y(c, q->y) - (BAR_HEIGHT - 6) / 2.0,
                      at_x(c, q->high) - at_x(c, q->low), BAR_HEIGHT - 6,
                      at_x(c, q->low) - at_x(c, q->high));
    }
    hg_buf_printf(c->out, "<path d=\"M%.1f %.1fh12v12h-12z\"/></g>\n", x, y - 10);
    append_text(c, x + 18, y, "", s->label, 0);
}

/* ---- Description ---- */

static void append_description(const struct hg_plot *p, struct hg_buf *out)
{
    hg_html_append(p->y.title, out);
    hg_buf_puts(out, *p->y.title ? " against " : "");
    hg_html_append(p->x.title, out);
    hg_buf_puts(out, ": ");
    for (size_t s = 0; s < p->series.n; s++) {
        hg_buf_puts(out, s ? ", " : "");
        hg_html_append(p->series.items[s].label, out);
    }
    hg_buf_puts(out, ". The figures are in the tables.");
}

void hg_plot_svg(const struct hg_plot *p, size_t id, struct hg_buf *out)
{
    struct canvas c = { .p = p, .out = out };

    lay_out(&c);
    hg_buf_printf(out,
                  "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-labelledby=\"p%zut p%zud\" "
                  "font-size=\"13\">\n<title id=\"p%zut\">",
                  WIDTH, c.top + c.height + BOTTOM, id, id, id);
    hg_html_append(p->title, out);
    hg_buf_printf(out, "</title>\n<desc id=\"p%zud\">", id);
    append_description(p, out);
    hg_buf_puts(out, "</desc>\n");
    append_axes(&c);
    append_ideal(&c);
    for (size_t s = 0; s < p->series.n; s++)
        if (p->bars)
            append_part(&c, s);
        else
            append_curve(&c, s);
    hg_buf_puts(out, "</svg>\n");
}
