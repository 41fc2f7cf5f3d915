/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/svg.h"

#include <math.h>
#include <string.h>

#include "plot/details.h"
#include "plot/layout.h"
#include "typeset/escape.h"
#include "typeset/plain.h"

#define WIDTH 420.0 /* as a phone's screen: texts are shrunk by little there */
#define EM 14.0     /* size of the font */
#define EDGE 4.0
#define TOP 12.0
#define CURVE_HEIGHT 260.0 /* of the field between the axes */
#define BAR_HEIGHT 22.0
#define ROW 20.0 /* of the legend */
#define SAMPLE 36.0
#define BAR_LABELS_MAX 170.0

struct canvas {
    const struct hg_plot *p;
    double left, right, top, height; /* the field: from left to right, from top, so high */
    double titles;                   /* room of tick labels and title below it */
    size_t columns;                  /* of the legend below that */
    struct hg_buf *out;
};

static double at_x(const struct canvas *c, double v)
{
    return c->left + hg_plot_share(&c->p->x, v) * (c->right - c->left);
}

/* Moved beside the other series. */
static double at_moved(const struct canvas *c, const struct hg_plot_series *s, double v)
{
    return at_x(c, v) + s->dodge * (c->right - c->left);
}

/* Curves grow upwards, bars are counted from the top. */
static double at_y(const struct canvas *c, double v)
{
    double f = hg_plot_share(&c->p->y, v);

    return c->top + (c->p->bars ? f : 1 - f) * c->height;
}

static bool has_legend(const struct hg_plot *p)
{
    return !p->strips;
}

static void lay_out(struct canvas *c)
{
    const struct hg_plot *p = c->p;
    double entry = SAMPLE + EM * (hg_plot_series_em(p) + 1);
    double labels =
        p->bars ? fmin(EM * hg_plot_bars_em(p), BAR_LABELS_MAX) : EM * hg_plot_ticks_em(&p->y);

    c->left = EDGE + labels + 8 + (*p->y.title ? EM * 1.4 : 0);
    c->right = WIDTH - fmax(2 * EDGE, EM * hg_plot_last_tick_em(&p->x) / 2 + EDGE);
    c->top = TOP;
    c->height = p->bars ? BAR_HEIGHT * (double)p->bar_labels.n : CURVE_HEIGHT;
    c->titles = 46;
    c->columns = (size_t)fmin(fmax(floor((WIDTH - 2 * EDGE) / entry), 1), 4);
}

static double total_height(const struct canvas *c)
{
    size_t rows = has_legend(c->p) ? (c->p->series.n + c->columns - 1) / c->columns : 0;

    return c->top + c->height + c->titles + ROW * (double)rows;
}

/* Cut so that it takes no more than `room`. */
static void append_text(const struct canvas *c, double x, double y, const char *anchor,
                        const char *text, double room)
{
    struct hg_buf cut = HG_BUF_INIT;

    hg_plot_text_fit(text, room / EM, &cut);
    hg_buf_printf(c->out, "<text x=\"%.1f\" y=\"%.1f\"%s%s%s>", x, y,
                  *anchor ? " text-anchor=\"" : "", anchor, *anchor ? "\"" : "");
    hg_html_append(hg_buf_str(&cut), c->out);
    hg_buf_puts(c->out, "</text>\n");
    hg_buf_done(&cut);
}

/* In the middle of the field, or as near as it fits the picture. */
static void append_title(const struct canvas *c, const char *text, double y)
{
    double half = fmin(EM * hg_plot_text_em(text), WIDTH - 2 * EDGE) / 2;
    double x = fmin((c->left + c->right) / 2, WIDTH - EDGE - half);

    append_text(c, fmax(x, EDGE + half), y, "middle", text, WIDTH - 2 * EDGE);
}

/* What the pointer resting on a mark tells. */
static void append_tip(struct hg_buf *out, const char *tip)
{
    hg_buf_puts(out, "><title>");
    hg_html_append(tip ? tip : "", out);
    hg_buf_puts(out, "</title></path>");
}

/* ---- Axes ---- */

static void append_grid(const struct canvas *c)
{
    const struct hg_plot *p = c->p;

    hg_buf_puts(c->out, "<g class=\"grid\">");
    for (size_t i = 0; i < p->x.ticks.n; i++)
        hg_buf_printf(c->out, "<path d=\"M%.1f %.1fV%.1f\"/>", at_x(c, p->x.ticks.items[i].at),
                      c->top, c->top + c->height);
    for (size_t i = 0; i < p->y.ticks.n; i++)
        hg_buf_printf(c->out, "<path d=\"M%.1f %.1fH%.1f\"/>", c->left,
                      at_y(c, p->y.ticks.items[i].at), c->right);
    hg_buf_puts(c->out, "</g>\n");
}

static void append_axes(const struct canvas *c)
{
    const struct hg_plot *p = c->p;
    size_t stride = hg_plot_tick_stride(&p->x, (c->right - c->left) / EM);
    double bottom = c->top + c->height;

    append_grid(c);
    for (size_t i = 0; i < p->x.ticks.n; i += stride)
        append_text(c, at_x(c, p->x.ticks.items[i].at), bottom + 17, "middle",
                    p->x.ticks.items[i].label, WIDTH);
    for (size_t i = 0; i < p->y.ticks.n; i++)
        append_text(c, c->left - 7, at_y(c, p->y.ticks.items[i].at) + 5, "end",
                    p->y.ticks.items[i].label, WIDTH);
    for (size_t i = 0; i < p->bar_labels.n; i++)
        append_text(c, c->left - 7, at_y(c, (double)i) + 5, "end", p->bar_labels.items[i],
                    BAR_LABELS_MAX);
    append_title(c, p->x.title, bottom + 36);
    if (*p->y.title) {
        struct hg_buf cut = HG_BUF_INIT, clean = HG_BUF_INIT;

        hg_plot_text_fit(p->y.title, c->height / EM, &cut);
        hg_html_append(hg_buf_str(&cut), &clean);
        hg_buf_printf(c->out,
                      "<text transform=\"translate(%.0f %.1f) rotate(-90)\" "
                      "text-anchor=\"middle\">%s</text>\n",
                      EM, c->top + c->height / 2, hg_buf_str(&clean));
        hg_buf_done(&clean);
        hg_buf_done(&cut);
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
        append_text(c, at_x(c, end) - 26, at_y(c, end) + 12, "end", "ideal", WIDTH);
    } else if (p->ideal == HG_IDEAL_ONE) {
        hg_buf_printf(c->out, "<path class=\"ideal\" d=\"M%.1f %.1fH%.1f\"/>", c->left, at_y(c, 1),
                      c->right);
        append_text(c, c->right - 6, at_y(c, 1) - 5, "end", "ideal", WIDTH);
    }
}

/* ---- Curves ---- */

/* Shapes of one size. */
static const char *const shapes[HG_PLOT_SHAPES] = {
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "m-3.6 -3.6h7.2v7.2h-7.2z",
    "m0 -4.6l4.4 7.8h-8.8z",
    "m0 -5l5 5l-5 5l-5 -5z",
    "m0 4.6l4.4 -7.8h-8.8z",
    "m-4.5 -1.2h3.3v-3.3h2.4v3.3h3.3v2.4h-3.3v3.3h-2.4v-3.3h-3.3z",
    "m0 -4.8l4.6 3.3l-1.8 5.4h-5.6l-1.8 -5.4z",
    "m-2.2 -4.4h4.4l2.2 4.4l-2.2 4.4h-4.4l-2.2 -4.4z",
};

static void append_mark(struct hg_buf *out, size_t series, double x, double y, const char *tip)
{
    hg_buf_printf(out, "<path d=\"M%.1f %.1f%s\"", x, y, shapes[hg_plot_look(series).shape]);
    if (tip)
        append_tip(out, tip);
    else
        hg_buf_puts(out, "/>");
}

static void append_dash(const struct canvas *c, size_t series)
{
    static const char *const dashes[HG_PLOT_DASHES] = { "", "7 3", "2 3", "10 3 2 3" };
    const char *dash = dashes[hg_plot_look(series).dash];

    if (*dash)
        hg_buf_printf(c->out, " stroke-dasharray=\"%s\"", dash);
    hg_buf_puts(c->out, "/>");
}

/* Joined: the best point of each x, so that a place of the same size does not make a spike. */
static void append_line(const struct canvas *c, const struct hg_plot_series *s, size_t number)
{
    const struct hg_plot_point *q = s->points.items;
    bool first = true;

    hg_buf_puts(c->out, "<path class=\"line\" d=\"");
    for (size_t i = 0; i < s->points.n; i++) {
        if (i + 1 < s->points.n && q[i + 1].x == q[i].x)
            continue; /* sorted by y where x is the same */
        hg_buf_printf(c->out, "%c%.1f %.1f", first ? 'M' : 'L', at_moved(c, s, q[i].x),
                      at_y(c, q[i].y));
        first = false;
    }
    hg_buf_puts(c->out, "\"");
    append_dash(c, number);
}

static void append_interval(const struct canvas *c, const struct hg_plot_series *s,
                            const struct hg_plot_point *q)
{
    double x = at_moved(c, s, q->x);

    if (isnan(q->low) || isnan(q->high))
        return;
    hg_buf_printf(c->out, "<path class=\"line\" d=\"M%.1f %.1fV%.1fM%.1f %.1fh6M%.1f %.1fh6\"/>", x,
                  at_y(c, q->low), at_y(c, q->high), x - 3, at_y(c, q->low), x - 3,
                  at_y(c, q->high));
}

static void append_dots(const struct canvas *c, const struct hg_plot_series *s)
{
    for (size_t i = 0; i < s->dots.n; i++) {
        hg_buf_printf(c->out,
                      "<path class=\"dot\" d=\"M%.1f %.1fm-2 0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0z\"",
                      at_moved(c, s, s->dots.items[i].x), at_y(c, s->dots.items[i].y));
        append_tip(c->out, s->dots.items[i].tip);
    }
}

static void append_prediction(const struct canvas *c, const struct hg_plot_series *s, size_t number)
{
    const struct hg_plot_point *from = &s->points.items[s->points.n - 1], *to = &s->prediction;

    hg_buf_printf(c->out,
                  "<path class=\"line\" stroke-dasharray=\"2 4\" d=\"M%.1f %.1fL%.1f %.1f\"/>",
                  at_moved(c, s, from->x), at_y(c, from->y), at_moved(c, s, to->x), at_y(c, to->y));
    append_interval(c, s, to);
    hg_buf_puts(c->out, "<g class=\"hollow\">");
    append_mark(c->out, number, at_moved(c, s, to->x), at_y(c, to->y), to->tip);
    hg_buf_puts(c->out, "</g>");
}

static void append_point_label(const struct canvas *c, const struct hg_plot_point *q)
{
    if (q->label)
        append_text(c, at_x(c, q->x) + (q->label_left ? -7 : 7),
                    at_y(c, q->y) + (q->label_below ? 14 : -5), q->label_left ? "end" : "",
                    q->label, (c->right - c->left) / 2);
}

static void append_curve(const struct canvas *c, size_t number)
{
    const struct hg_plot *p = c->p;
    const struct hg_plot_series *s = &p->series.items[number];

    if (p->lines && s->points.n > 1)
        append_line(c, s, number);
    for (size_t i = 0; i < s->points.n; i++) {
        const struct hg_plot_point *q = &s->points.items[i];

        append_interval(c, s, q);
        if (q->marked)
            append_mark(c->out, number, at_moved(c, s, q->x), at_y(c, q->y), q->tip);
    }
    if (s->has_prediction)
        append_prediction(c, s, number);
    append_dots(c, s);
    for (size_t i = 0; i < s->points.n; i++)
        append_point_label(c, &s->points.items[i]);
}

/* ---- Bars ---- */

static void append_parts(const struct canvas *c, const struct hg_plot_series *s)
{
    for (size_t i = 0; i < s->points.n; i++) {
        const struct hg_plot_point *q = &s->points.items[i];

        hg_buf_printf(c->out, "<path class=\"part\" d=\"M%.1f %.1fh%.1fv%.0fh%.1fz\"",
                      at_x(c, q->low), at_y(c, q->y) - (BAR_HEIGHT - 6) / 2,
                      at_x(c, q->high) - at_x(c, q->low), BAR_HEIGHT - 6,
                      at_x(c, q->low) - at_x(c, q->high));
        append_tip(c->out, q->tip);
    }
}

static void append_strips(const struct canvas *c, const struct hg_plot_series *s)
{
    for (size_t i = 0; i < s->points.n; i++) {
        const struct hg_plot_point *q = &s->points.items[i];
        double y = at_y(c, q->y);

        if (!isnan(q->low) && !isnan(q->high))
            hg_buf_printf(c->out,
                          "<path class=\"line\" d=\"M%.1f %.1fH%.1fM%.1f %.1fv6M%.1f %.1fv6\"/>",
                          at_x(c, q->low), y, at_x(c, q->high), at_x(c, q->low), y - 3,
                          at_x(c, q->high), y - 3);
        hg_buf_printf(c->out, "<path class=\"line\" d=\"M%.1f %.1fv14\"", at_x(c, q->x), y - 7);
        append_tip(c->out, q->tip);
    }
    append_dots(c, s);
}

/* ---- Legend ---- */

/* A piece of the series as it is drawn above, and its name. */
static void append_entry(const struct canvas *c, size_t number)
{
    double width = (WIDTH - 2 * EDGE) / (double)c->columns;
    double x = EDGE + width * (double)(number % c->columns);
    double y = c->top + c->height + c->titles + ROW * (double)(number / c->columns) + 8;

    if (c->p->bars) {
        hg_buf_printf(c->out, "<path class=\"part\" d=\"M%.1f %.1fh14v12h-14z\"/>", x + 8, y - 6);
    } else {
        if (c->p->lines) {
            hg_buf_printf(c->out, "<path class=\"line\" d=\"M%.1f %.1fh30\"", x, y);
            append_dash(c, number);
        }
        append_mark(c->out, number, x + 15, y, NULL);
    }
    append_text(c, x + SAMPLE, y + 5, "", c->p->series.items[number].label,
                width - SAMPLE - EM / 2);
}

static void append_series(const struct canvas *c, size_t number)
{
    const struct hg_plot_series *s = &c->p->series.items[number];

    hg_buf_printf(c->out, "<g class=\"s c%zu\">", hg_plot_look(number).colour);
    if (c->p->strips)
        append_strips(c, s);
    else if (c->p->bars)
        append_parts(c, s);
    else
        append_curve(c, number);
    if (has_legend(c->p))
        append_entry(c, number);
    hg_buf_puts(c->out, "</g>\n");
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
                  "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-labelledby=\"p%zut p%zud\" "
                  "font-size=\"%.0f\">\n<title id=\"p%zut\">",
                  WIDTH, total_height(&c), id, id, EM, id);
    hg_html_append(p->title, out);
    hg_buf_printf(out, "</title>\n<desc id=\"p%zud\">", id);
    append_description(p, out);
    hg_buf_puts(out, "</desc>\n");
    append_axes(&c);
    append_ideal(&c);
    for (size_t s = 0; s < p->series.n; s++)
        append_series(&c, s);
    hg_buf_puts(out, "</svg>\n");
}
