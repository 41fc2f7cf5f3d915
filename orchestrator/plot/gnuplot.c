/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/gnuplot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/proc.h"
#include "plot/details.h"
#include "plot/layout.h"
#include "typeset/escape.h"
#include "typeset/plain.h"

#define GNUPLOT "gnuplot"
#define LIMIT_S 120
#define WIDTH 720.0
#define TOP 56.0
#define BOTTOM 66.0
#define CURVE_HEIGHT 340.0
#define BAR_HEIGHT 24.0
#define EM 14.0 /* size of the font */
#define EDGE 12.0
#define SAMPLE 44.0      /* of a line, beside the name of its series */
#define LABELS_MAX 250.0 /* of what stands beside the field */
#define NOTE_COLUMNS 84
#define NOTE_LINE 18.0

/* Those of the page on white. */
static const char *const colours[HG_PLOT_COLOURS] = {
    "#011948", "#e2781c", "#41a58d", "#65310f", "#9c58c8", "#4a20e7", "#271010", "#2c5562",
};
static const int shapes[HG_PLOT_SHAPES] = { 7, 5, 9, 13, 11, 1, 15, 2 };
static const int hollow_shapes[HG_PLOT_SHAPES] = { 6, 4, 8, 12, 10, 1, 14, 2 };

static const char *colour_of(size_t series)
{
    return colours[hg_plot_look(series).colour];
}

static int shape_of(size_t series)
{
    return shapes[hg_plot_look(series).shape];
}

static size_t dash_of(size_t series)
{
    return 1 + hg_plot_look(series).dash;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x80 || c == ' ' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z') || strchr("()+,-./:;=", c);
}

/* A string constant, cut so that it takes no more than so much room; 0: not cut. */
static void append_string(const char *text, double room, struct hg_buf *out)
{
    struct hg_buf clean = HG_BUF_INIT;

    if (room > 0)
        hg_plot_text_fit(text, room / EM, &clean);
    else
        hg_clean_append(text, 0, &clean);
    hg_buf_puts(out, "\"");
    for (const char *p = hg_buf_str(&clean); *p; p++)
        if (is_plain((unsigned char)*p))
            hg_buf_append(out, p, 1);
        else
            hg_buf_printf(out, "\\%03o", (unsigned char)*p);
    hg_buf_puts(out, "\"");
    hg_buf_done(&clean);
}

/* Ten digits: more than paper shows, fewer than differ between machines. */
static void append_number(double v, struct hg_buf *out)
{
    if (isfinite(v))
        hg_buf_printf(out, "%.10g", v);
    else
        hg_buf_puts(out, "NaN");
}

/* ---- Paper ---- */

struct paper {
    double left, right, top, height, total; /* pixels of a picture WIDTH wide */
    double labels;                          /* room of the names beside the field */
    struct hg_buf note;                     /* in lines */
};

static size_t count_lines(const struct hg_buf *text)
{
    size_t n = 0;

    for (size_t i = 0; i < text->len; i++)
        n += text->data[i] == '\n';
    return n;
}

static void lay_out(const struct hg_plot *p, struct paper *a)
{
    double names = EM * (p->bars ? hg_plot_bars_em(p) : hg_plot_series_em(p));

    *a = (struct paper){ .top = TOP, .height = CURVE_HEIGHT, .note = HG_BUF_INIT };
    a->labels = fmin(names, LABELS_MAX);
    a->left = EDGE + 12 + (p->bars ? a->labels : EM * (hg_plot_ticks_em(&p->y) + 1.8));
    a->right = WIDTH - EDGE;
    if (p->bars) {
        a->right -= EM * hg_plot_last_tick_em(&p->x) / 2;
        a->top = TOP + (p->strips ? 0 : NOTE_LINE * (double)((p->series.n + 1) / 2));
        a->height = BAR_HEIGHT * (double)p->bar_labels.n;
    } else {
        a->right -= SAMPLE + 10 + a->labels;
    }
    if (p->note)
        hg_wrapped_append(p->note, NOTE_COLUMNS, 0, 0, &a->note);
    a->total = a->top + a->height + BOTTOM + NOTE_LINE * (double)count_lines(&a->note);
}

static void append_terminal(const struct paper *a, const char *terminal, struct hg_buf *out)
{
    hg_buf_puts(out, "set encoding utf8\n");
    if (strcmp(terminal, "png") == 0)
        hg_buf_printf(out,
                      "set terminal pngcairo noenhanced size %.0f,%.0f font \"sans,20\" "
                      "linewidth 2 pointscale 3 background \"#ffffff\"\n",
                      2 * WIDTH, 2 * a->total);
    else if (strcmp(terminal, "pdf") == 0)
        hg_buf_printf(out,
                      "set terminal pdfcairo noenhanced size %.3fin,%.3fin font \"sans,10\" "
                      "pointscale 0.7 background \"#ffffff\"\n",
                      WIDTH / 100, a->total / 100);
    else
        hg_buf_printf(out,
                      "set terminal svg noenhanced size %.0f,%.0f font \"sans-serif,14\" "
                      "background \"#ffffff\"\n",
                      WIDTH, a->total);
}

static void append_margins(const struct paper *a, struct hg_buf *out)
{
    hg_buf_printf(out,
                  "set lmargin at screen %.5f\nset rmargin at screen %.5f\n"
                  "set tmargin at screen %.5f\nset bmargin at screen %.5f\n",
                  a->left / WIDTH, a->right / WIDTH, 1 - a->top / a->total,
                  1 - (a->top + a->height) / a->total);
}

/* ---- Axes ---- */

static void append_axis(const char *name, const struct hg_plot_axis *axis, bool reversed,
                        double length, struct hg_buf *out)
{
    size_t stride = *name == 'x' ? hg_plot_tick_stride(axis, length / EM) : 1;

    hg_buf_printf(out, "set %srange [", name);
    append_number(reversed ? axis->high : axis->low, out);
    hg_buf_puts(out, ":");
    append_number(reversed ? axis->low : axis->high * (axis->log2 ? 1.0001 : 1), out);
    hg_buf_puts(out, "]\n");
    if (axis->log2)
        hg_buf_printf(out, "set logscale %s 2\n", name);
    if (axis->ticks.n == 0)
        hg_buf_printf(out, "unset %stics\n", name);
    else
        hg_buf_printf(out, "set %stics nomirror scale 0.5 (", name);
    for (size_t i = 0; i < axis->ticks.n; i++) {
        hg_buf_puts(out, i ? ", " : "");
        append_string(i % stride ? "" : axis->ticks.items[i].label, 0, out);
        hg_buf_puts(out, " ");
        append_number(axis->ticks.items[i].at, out);
    }
    hg_buf_puts(out, axis->ticks.n ? ")\n" : "");
    if (*axis->title) {
        hg_buf_printf(out, "set %slabel ", name);
        append_string(axis->title, *name == 'x' ? 2 * fmin(length, WIDTH / 2 - EDGE) : length, out);
        hg_buf_puts(out, "\n");
    }
}

/* "1.5,2": a place in the picture. */
static void append_place(double x, double y, struct hg_buf *out)
{
    append_number(x, out);
    hg_buf_puts(out, ",");
    append_number(y, out);
}

static void append_ideal(const struct hg_plot *p, struct hg_buf *out)
{
    double low = fmax(p->x.low, p->y.low), high = fmin(p->x.high, p->y.high);
    bool diagonal = p->ideal == HG_IDEAL_DIAGONAL;
    double to_x = diagonal ? high : p->x.high, to_y = diagonal ? high : 1;

    if (p->ideal == HG_IDEAL_NONE)
        return;
    hg_buf_puts(out, "set arrow 1 from ");
    append_place(diagonal ? low : p->x.low, diagonal ? low : 1, out);
    hg_buf_puts(out, " to ");
    append_place(to_x, to_y, out);
    hg_buf_puts(out, " nohead back linecolor rgb \"#606060\" dashtype 2\nset label \"ideal\" at ");
    append_place(to_x, to_y, out);
    hg_buf_printf(out, " right offset character %s\n", diagonal ? "-3,-0.6" : "-0.5,0.6");
}

static void append_note(const struct paper *a, struct hg_buf *out)
{
    size_t lines = count_lines(&a->note);
    const char *line = hg_buf_str(&a->note);

    for (size_t i = 0; i < lines; i++) {
        size_t n = strcspn(line, "\n");
        char *copy = hg_strndup(line, n);

        hg_buf_puts(out, "set label ");
        append_string(copy, WIDTH - 2 * EDGE, out);
        hg_buf_printf(out, " at screen %.5f,%.5f left textcolor rgb \"#505050\"\n", EDGE / WIDTH,
                      (14 + NOTE_LINE * (double)(lines - 1 - i)) / a->total);
        free(copy);
        line += n + 1;
    }
}

static void append_head(const struct hg_plot *p, const struct paper *a, struct hg_buf *out)
{
    hg_buf_printf(out, "set label ");
    append_string(p->title, WIDTH - 2 * EDGE, out);
    hg_buf_printf(out, " at screen %.5f,%.5f left\n", 12 / WIDTH, 1 - 20 / a->total);
    append_note(a, out);
    hg_buf_puts(out, "unset key\nset border 3\nset grid back linecolor rgb \"#d8d8d8\" "
                     "linetype 1 linewidth 0.5\n");
    append_margins(a, out);
    append_axis("x", &p->x, false, a->right - a->left, out);
    append_axis("y", &p->y, p->bars, a->height, out);
    append_ideal(p, out);
}

/* ---- Curves ---- */

/* Beside the field, at the height of its end: a piece of the line as it is drawn, and its name. */
static void append_series_label(const struct hg_plot *p, size_t number, const struct paper *a,
                                struct hg_buf *out)
{
    const struct hg_plot_series *s = &p->series.items[number];
    double y = 1 - (a->top + (1 - s->label_at) * a->height) / a->total;

    if (isnan(s->label_at))
        return;
    if (p->lines)
        hg_buf_printf(out,
                      "set arrow from screen %.5f,%.5f to screen %.5f,%.5f nohead dashtype %zu "
                      "linewidth 1.5 linecolor rgb \"%s\"\n",
                      (a->right + 10) / WIDTH, y, (a->right + SAMPLE) / WIDTH, y, dash_of(number),
                      colour_of(number));
    hg_buf_puts(out, "set label ");
    append_string(s->label, LABELS_MAX, out);
    hg_buf_printf(out,
                  " at screen %.5f,%.5f left offset character 3,-0.12 point pointtype %d "
                  "pointsize 0.8 linecolor rgb \"%s\"\n",
                  (a->right + 10 + (SAMPLE - 10) / 2) / WIDTH, y, shape_of(number),
                  colour_of(number));
}

static void append_point_labels(const struct hg_plot_series *s, struct hg_buf *out)
{
    for (size_t i = 0; i < s->points.n; i++) {
        const struct hg_plot_point *q = &s->points.items[i];

        if (!q->label)
            continue;
        hg_buf_puts(out, "set label ");
        append_string(q->label, 0, out);
        hg_buf_puts(out, " at ");
        append_place(q->x, q->y, out);
        hg_buf_printf(out, " %s offset character %s,%s\n", q->label_left ? "right" : "left",
                      q->label_left ? "-0.8" : "0.8", q->label_below ? "-0.7" : "0.5");
    }
}

static void append_row(const double *row, size_t n, struct hg_buf *out)
{
    for (size_t k = 0; k < n; k++) {
        hg_buf_puts(out, k ? " " : "");
        append_number(row[k], out);
    }
    hg_buf_puts(out, "\n");
}

/* x y low high, where the line passes (the best of each x), and what is marked if not everything is. */
static void append_curve_data(const struct hg_plot *p, size_t number, struct hg_buf *out)
{
    const struct hg_plot_series *s = &p->series.items[number];

    hg_buf_printf(out, "$s%zu << EOD\n", number);
    for (size_t i = 0; i < s->points.n; i++) {
        const struct hg_plot_point *q = &s->points.items[i];
        bool best = i + 1 == s->points.n || s->points.items[i + 1].x != q->x;
        const double row[] = {
            q->x, q->y, q->low, q->high, best ? q->y : NAN, q->marked ? q->y : NAN
        };

        append_row(row, p->marks ? 5 : 6, out);
    }
    hg_buf_puts(out, "EOD\n");
    if (s->has_prediction) {
        const struct hg_plot_point *last = &s->points.items[s->points.n - 1];
        const double from[] = { last->x, last->y, NAN, NAN };
        const double to[] = { s->prediction.x, s->prediction.y, s->prediction.low,
                              s->prediction.high };

        hg_buf_printf(out, "$p%zu << EOD\n", number);
        append_row(from, 4, out);
        append_row(to, 4, out);
        hg_buf_puts(out, "EOD\n");
    }
}

/* Single runs. */
static void append_dot_data(const struct hg_plot_series *s, size_t number, struct hg_buf *out)
{
    if (s->dots.n == 0)
        return;
    hg_buf_printf(out, "$d%zu << EOD\n", number);
    for (size_t i = 0; i < s->dots.n; i++) {
        const double row[] = { s->dots.items[i].x, s->dots.items[i].y };

        append_row(row, 2, out);
    }
    hg_buf_puts(out, "EOD\n");
}

/* x of a series, moved beside the others; the data stay what they are. */
static void append_x(const struct hg_plot *p, size_t number, struct hg_buf *out)
{
    double move = p->series.items[number].dodge;

    if (move == 0)
        hg_buf_puts(out, "1");
    else if (p->x.log2)
        hg_buf_printf(out, "($1*%.6f)", hg_plot_moved(&p->x, 1, move));
    else
        hg_buf_printf(out, "($1%+.6g)", hg_plot_moved(&p->x, 0, move));
}

/* One more thing to plot. */
static void append_plot(const struct hg_plot *p, char data, size_t number, const char *rest,
                        struct hg_buf *out)
{
    hg_buf_printf(out, "%s$%c%zu using ", out->data[out->len - 1] == ' ' ? "" : ", \\\n     ", data,
                  number);
    append_x(p, number, out);
    hg_buf_puts(out, rest);
}

static void append_curve(const struct hg_plot *p, size_t number, struct hg_buf *out)
{
    const char *colour = colour_of(number);
    int shape = shape_of(number);

    if (p->lines) {
        append_plot(p, 's', number, ":(valid(5) ? $5 : 1/0) with lines ", out);
        hg_buf_printf(out, "dashtype %zu linewidth 1.5 linecolor rgb \"%s\"", dash_of(number),
                      colour);
    }
    if (p->marks) {
        append_plot(p, 's', number, ":2:3:4 with yerrorbars ", out);
        hg_buf_printf(out, "linecolor rgb \"%s\" pointtype %d pointsize 0.4", colour, shape);
    }
    append_plot(p, 's', number, p->marks ? ":2 with points " : ":6 with points ", out);
    hg_buf_printf(out, "linecolor rgb \"%s\" pointtype %d pointsize 0.8", colour, shape);
    if (p->series.items[number].dots.n) {
        append_plot(p, 'd', number, ":2 with points ", out);
        hg_buf_puts(out, "linecolor rgb \"#ffffff\" pointtype 7 pointsize 0.42");
        append_plot(p, 'd', number, ":2 with points ", out);
        hg_buf_printf(out, "linecolor rgb \"%s\" pointtype 7 pointsize 0.28", colour);
    }
}

/* A dotted line from the last point to a hollow mark. */
static void append_prediction(const struct hg_plot *p, size_t number, struct hg_buf *out)
{
    const char *colour = colour_of(number);
    int shape = hollow_shapes[hg_plot_look(number).shape];

    append_plot(p, 'p', number, ":2 with lines ", out);
    hg_buf_printf(out, "dashtype 3 linecolor rgb \"%s\"", colour);
    append_plot(p, 'p', number, ":2:3:4 every ::1 with yerrorbars ", out);
    hg_buf_printf(out, "linecolor rgb \"%s\" pointtype %d pointsize 0.8", colour, shape);
    append_plot(p, 'p', number, ":2 every ::1 with points ", out);
    hg_buf_printf(out, "linecolor rgb \"%s\" pointtype %d pointsize 0.8", colour, shape);
}

static void append_curves(const struct hg_plot *p, const struct paper *a, struct hg_buf *out)
{
    for (size_t s = 0; s < p->series.n; s++) {
        append_series_label(p, s, a, out);
        append_point_labels(&p->series.items[s], out);
        append_curve_data(p, s, out);
        append_dot_data(&p->series.items[s], s, out);
    }
    hg_buf_puts(out, "set datafile missing \"NaN\"\nplot ");
    for (size_t s = 0; s < p->series.n; s++)
        append_curve(p, s, out);
    for (size_t s = 0; s < p->series.n; s++)
        if (p->series.items[s].has_prediction)
            append_prediction(p, s, out);
    hg_buf_puts(out, "\n");
}

/* ---- Bars ---- */

static void append_key(const struct hg_plot *p, size_t number, const struct paper *a,
                       struct hg_buf *out)
{
    double x = number % 2 ? WIDTH / 2 : 24;
    double y = 1 - (TOP - 10 + 18 * (double)(number / 2)) / a->total;

    hg_buf_puts(out, "set label ");
    append_string(p->series.items[number].label, WIDTH / 2 - 60, out);
    hg_buf_printf(out,
                  " at screen %.5f,%.5f left offset character 1,0 point pointtype 5 linecolor rgb "
                  "\"%s\"\n",
                  x / WIDTH, y, colour_of(number));
}

static void append_bar_labels(const struct hg_plot *p, struct hg_buf *out)
{
    for (size_t i = 0; i < p->bar_labels.n; i++) {
        hg_buf_puts(out, "set label ");
        append_string(p->bar_labels.items[i], LABELS_MAX, out);
        hg_buf_printf(out, " at graph 0, first %zu right offset character -0.8,0\n", i);
    }
}

static void append_bars(const struct hg_plot *p, const struct paper *a, struct hg_buf *out)
{
    append_bar_labels(p, out);
    for (size_t s = 0; s < p->series.n; s++) {
        append_key(p, s, a, out);
        hg_buf_printf(out, "$s%zu << EOD\n", s);
        for (size_t i = 0; i < p->series.items[s].points.n; i++) {
            const struct hg_plot_point *q = &p->series.items[s].points.items[i];
            const double row[] = { q->low, q->high, q->y };

            append_row(row, 3, out);
        }
        hg_buf_puts(out, "EOD\n");
    }
    hg_buf_puts(out, "set style fill solid 1 border rgb \"#ffffff\"\nplot ");
    for (size_t s = 0; s < p->series.n; s++)
        hg_buf_printf(out,
                      "%s$s%zu using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fillcolor rgb "
                      "\"%s\"",
                      s ? ", \\\n     " : "", s, colour_of(s));
    hg_buf_puts(out, "\n");
}

/* Each place's interval, its value as a stroke across, and its runs. */
static void append_strips(const struct hg_plot *p, struct hg_buf *out)
{
    append_bar_labels(p, out);
    hg_buf_puts(out, "$s0 << EOD\n");
    for (size_t i = 0; i < p->series.items[0].points.n; i++) {
        const struct hg_plot_point *q = &p->series.items[0].points.items[i];
        const double row[] = { q->x, q->y, q->low, q->high };

        append_row(row, 4, out);
    }
    hg_buf_puts(out, "EOD\n");
    append_dot_data(&p->series.items[0], 0, out);
    hg_buf_printf(
        out,
        "set datafile missing \"NaN\"\n"
        "plot $s0 using 1:2:3:4 with xerrorbars linecolor rgb \"%s\" pointtype 0, \\\n"
        "     $s0 using 1:($2-0.32):(0):(0.64) with vectors nohead linewidth 2 linecolor rgb \"%s\"",
        colours[0], colours[0]);
    if (p->series.items[0].dots.n)
        hg_buf_printf(
            out,
            ", \\\n     $d0 using 1:2 with points linecolor rgb \"%s\" pointtype 6 pointsize 0.5",
            colours[1]);
    hg_buf_puts(out, "\n");
}

void hg_plot_gnuplot(const struct hg_plot *p, const char *terminal, const char *output,
                     struct hg_buf *out)
{
    struct paper a;

    lay_out(p, &a);
    hg_buf_puts(out, "# Made by hpcgrid report; gnuplot 5.4 or later draws it.\n");
    append_terminal(&a, terminal, out);
    if (output) {
        hg_buf_puts(out, "set output ");
        append_string(output, 0, out);
        hg_buf_puts(out, "\n");
    }
    append_head(p, &a, out);
    if (p->strips)
        append_strips(p, out);
    else if (p->bars)
        append_bars(p, &a, out);
    else
        append_curves(p, &a, out);
    hg_buf_done(&a.note);
}

/* ---- Drawing ---- */

/* The script in a file of its own, deleted at once when it has been drawn. Yours to free. */
static char *write_script(const struct hg_buf *script, struct hg_err *err)
{
    const char *dir = getenv("TMPDIR");
    char *path = hg_fs_join(dir && *dir ? dir : "/tmp", "hpcgrid-plot-XXXXXX");
    int fd = mkstemp(path);

    if (fd < 0) {
        hg_err_sys(err, "cannot make %s", path);
        free(path);
        return NULL;
    }
    if (hg_fs_write_all(fd, script->data, script->len) < 0) {
        hg_err_sys(err, "cannot write %s", path);
        close(fd);
        unlink(path);
        free(path);
        return NULL;
    }
    close(fd);
    return path;
}

static int run_gnuplot(const char *script, struct hg_buf *out, struct hg_err *err)
{
    /* No settings of the user's, no locale: the same script gives the same bytes. */
    const char *const argv[] = { "env", "LC_ALL=C.UTF-8", "TZ=UTC", "GNUTERM=dumb", GNUPLOT,
                                 "-d",  script,           NULL };
    struct hg_buf said = HG_BUF_INIT;
    int status, rc = hg_proc_capture(argv, LIMIT_S, out, &said, &status, err);

    if (rc == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        rc = hg_err_set(err, HG_E_ENV, "gnuplot is not installed");
        hg_err_hint(err, "Debian and Ubuntu: apt-get install gnuplot-nox; --format gp writes the "
                         "script without it, html has pictures without it");
    } else if (rc == 0 && status != 0) {
        char how[64];

        hg_proc_status_format(status, how);
        rc = hg_err_set(err, HG_E_ENV, "gnuplot failed (%s): %.300s", how, hg_buf_str(&said));
    } else if (rc == 0 && out->len == 0) {
        rc = hg_err_set(err, HG_E_ENV, "gnuplot drew nothing: %.300s", hg_buf_str(&said));
    }
    hg_buf_done(&said);
    return rc;
}

/* cairo writes when it drew a PDF; digits of a date become zeros, so no offset moves. */
static void drop_date(struct hg_buf *pdf)
{
    static const char key[] = "/CreationDate (D:";
    char *at = pdf->len ? memmem(pdf->data, pdf->len, key, sizeof key - 1) : NULL;

    if (!at)
        return;
    for (at += sizeof key - 1; at < pdf->data + pdf->len && *at != ')'; at++)
        if (*at >= '0' && *at <= '9')
            *at = '0';
}

/* The title of an SVG is what readers of screens say. */
static void set_title(const struct hg_plot *p, struct hg_buf *svg)
{
    static const char own[] = "<title>Gnuplot</title>";
    char *at = svg->len ? memmem(svg->data, svg->len, own, sizeof own - 1) : NULL;
    struct hg_buf titled = HG_BUF_INIT;

    if (!at)
        return;
    hg_buf_append(&titled, svg->data, (size_t)(at - svg->data));
    hg_buf_puts(&titled, "<title>");
    hg_html_append(p->title, &titled);
    hg_buf_puts(&titled, "</title>");
    hg_buf_puts(&titled, at + sizeof own - 1);
    hg_buf_done(svg);
    *svg = titled;
}

int hg_plot_draw(const struct hg_plot *p, const char *terminal, struct hg_buf *out,
                 struct hg_err *err)
{
    struct hg_buf script = HG_BUF_INIT, picture = HG_BUF_INIT;
    char *path = NULL;
    int rc = -1;

    hg_plot_gnuplot(p, terminal, NULL, &script);
    path = write_script(&script, err);
    if (path)
        rc = run_gnuplot(path, &picture, err);
    if (path)
        unlink(path);
    if (rc == 0) {
        drop_date(&picture);
        if (strcmp(terminal, "svg") == 0)
            set_title(p, &picture);
        hg_buf_append(out, picture.data, picture.len);
    }
    free(path);
    hg_buf_done(&script);
    hg_buf_done(&picture);
    return rc;
}
