/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLOT_PLOT_H
#define HG_PLOT_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "analysis/table.h"

/* Pictures of a report as data: curves or stacked bars, their axes, ticks and labels. Everything is
 * decided here, once; what draws them (plot_svg.c inside of a page, plot_gnuplot.c in a file) only
 * puts it on paper. */

enum hg_plot_kind {
    HG_PLOT_SPEEDUP,
    HG_PLOT_EFFICIENCY,
    HG_PLOT_TIME,   /* what a training's time went to */
    HG_PLOT_MEMORY, /* peak bytes of each class */
    HG_PLOT_LOSS,
    HG_PLOT_COST, /* device-hours against the metric */
    HG_PLOT_KINDS
};

extern const char *const hg_plot_names[HG_PLOT_KINDS]; /* "speedup", ... */

/* Colours, shapes and dashes repeat from there on. */
#define HG_PLOT_COLOURS 8

struct hg_plot_point {
    double x, y;
    double low, high; /* curves: interval of y, NaN: none; bars: where the part begins and ends */
    char *label;      /* beside the point; NULL: none */
    bool label_below; /* right below it instead of right above */
};

struct hg_plot_series {
    char *label;
    double label_at; /* height of its label beside the picture, 0 (bottom) to 1; NaN: none */
    struct {
        struct hg_plot_point *items;
        size_t n, cap;
    } points;
    bool has_prediction; /* what a law says of more devices: drawn hollow and dotted */
    struct hg_plot_point prediction;
};

struct hg_plot_tick {
    double at;
    char label[32];
};

struct hg_plot_axis {
    char *title;
    double low, high;
    bool log2; /* low > 0 */
    struct {
        struct hg_plot_tick *items;
        size_t n, cap;
    } ticks;
};

enum hg_plot_ideal { HG_IDEAL_NONE, HG_IDEAL_DIAGONAL, HG_IDEAL_ONE };

struct hg_plot {
    enum hg_plot_kind kind;
    size_t table; /* of the report's tables */
    char *name;   /* of its file, without an ending: "speedup", "speedup-2" */
    char *what;   /* "speedup": beside its table */
    char *title;  /* "quickstart/001: speedup, epochs=3": alone */
    char *note;   /* what is left out or has to be known; NULL: nothing */
    struct hg_plot_axis x, y;
    enum hg_plot_ideal ideal;
    bool bars;  /* series are parts of horizontal bars; y counts the bars from the top, 0, 1, ... */
    bool lines; /* points of a series are joined */
    bool marks; /* points are marked */
    struct {
        struct hg_plot_series *items;
        size_t n, cap;
    } series;
    struct {
        char **items; /* what each bar is called */
        size_t n, cap;
    } bar_labels;
    bool failed; /* memory is gone */
};

struct hg_plots {
    struct hg_plot *items;
    size_t n, cap;
};

/* Kinds in a list of words, "speedup,loss" or "all", as bits 1 << kind. USAGE for an unknown one. */
int hg_plot_kinds_parse(const char *words, unsigned *kinds, struct hg_err *err);

/* Append the pictures of these kinds for one table, those that its results allow: a kind without
 * data adds none. Returns 0, or -1 when memory is gone. */
int hg_plots_build(const struct hg_report *r, size_t table, unsigned kinds, struct hg_plots *plots);

/* What a kind needs: for messages where a report has nothing to draw. */
const char *hg_plot_needs(enum hg_plot_kind kind);

void hg_plots_done(struct hg_plots *plots);

/* Append the picture as an <svg> element for a page: colours are those of its style, .c0 to .c7. `id`
 * makes the ids in it different from those of other pictures. */
void hg_plot_svg(const struct hg_plot *p, size_t id, struct hg_buf *out);

/* Append a gnuplot script that draws it. terminal: "svg", "png" or "pdf". output: file name that the
 * script writes to; NULL: standard output. No text of the report is ever code in it. */
void hg_plot_gnuplot(const struct hg_plot *p, const char *terminal, const char *output,
                     struct hg_buf *out);

/* Draw with gnuplot, append the file's bytes: the same picture gives the same bytes. ENV with a hint
 * when gnuplot is missing or fails. */
int hg_plot_draw(const struct hg_plot *p, const char *terminal, struct hg_buf *out,
                 struct hg_err *err);

/* Internal: ranges, ticks and places of labels, once the points are there. */
void hg_plot_settle(const struct hg_style *style, struct hg_plot *p);

#endif
