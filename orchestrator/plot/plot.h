/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLOT_PLOT_H
#define HG_PLOT_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/report.h"
#include "base/map.h"

/* Pictures of a report as data: curves or stacked bars, their axes, ticks and labels. plots.c decides everything, once; svg.c
 * (for a page) and gnuplot.c (for a file) only draw what stands here. */

enum hg_plot_kind {
    HG_PLOT_SPEEDUP,
    HG_PLOT_EFFICIENCY,
    HG_PLOT_TIME,   /* what a training's time went to */
    HG_PLOT_MEMORY, /* peak bytes of each class */
    HG_PLOT_LOSS,
    HG_PLOT_COST, /* device-hours against the metric */
    HG_PLOT_RUNS, /* every run of each place, its value and interval */
    HG_PLOT_KINDS
};

extern const char *const hg_plot_names[HG_PLOT_KINDS]; /* "speedup", ... */

#define HG_PLOT_SERIES_MAX 16 /* curves in one picture: as many labels fit beside it */
#define HG_PLOT_DOTS_MAX 100  /* runs of one place that are drawn */

struct hg_plot_point {
    double x, y;
    double low,
        high; /* curves: interval of y, NaN: none; bars: where the part begins and ends; strips: interval of x */
    char *label;      /* beside the point; NULL: none */
    bool label_below; /* right below it instead of right above */
    bool label_left;  /* left of it instead of right */
    bool marked;      /* with the shape of its series */
    char *tip;        /* its figures in words; NULL: none */
};

struct hg_plot_points {
    struct hg_plot_point *items;
    size_t n, cap;
};

struct hg_plot_series {
    char *label;
    double label_at; /* height of its label beside the picture, 0 (bottom) to 1; NaN: none */
    /* Moved to the right by this share of the axis, so that intervals of series stand beside each other. */
    double dodge;
    struct hg_plot_points points, dots; /* dots: single runs */
    bool has_prediction; /* what a law predicts for more devices: drawn hollow and dotted */
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
    char *note;   /* what is left out, or a remark; NULL: nothing */
    struct hg_plot_axis x, y;
    enum hg_plot_ideal ideal;
    bool bars;  /* series are parts of horizontal bars; y counts the bars from the top, 0, 1, ... */
    bool lines; /* points of a series are joined */
    bool marks; /* every point is marked; else a few, to tell lines apart */
    bool seconds; /* x is a time: durations where these are asked for */
    bool strips;  /* bars without parts: a mark, its interval and its dots */
    struct {
        struct hg_plot_series *items;
        size_t n, cap;
    } series;
    struct hg_map series_index; /* by label, while points are put in */
    struct {
        char **items; /* what each bar is called */
        size_t n, cap;
    } bar_labels;
};

struct hg_plots {
    struct hg_plot *items;
    size_t n, cap;
};

/* An empty picture at the end. The pointer dies with the next add. */
struct hg_plot *hg_plot_add(const struct hg_report *r, size_t table, enum hg_plot_kind kind,
                            const char *what, const char *x_title, const char *y_title,
                            struct hg_plots *plots);

void hg_plot_points_done(struct hg_plot_points *points);

/* The series of this name, added if it is new; not behind hg_plot_limit or hg_plot_drop_empty. */
struct hg_plot_series *hg_plot_find_series(struct hg_plot *p, const char *label);

/* Put a point into a series; takes its label and tip over. Points too far away to be drawn are left out. */
void hg_plot_put(struct hg_plot *p, struct hg_plot_series *s, struct hg_plot_point point);

/* The same of a single run, one of r's entries. */
void hg_plot_put_dot(struct hg_plot_series *s, double x, double y, const struct hg_report *r,
                     const struct hg_report_entry *run);

/* Add a sentence to the note. */
void hg_plot_note(struct hg_plot *p, const char *text);

/* Keep the first `most` series, and say so in the note: more curves than an eye can tell apart. */
void hg_plot_limit(struct hg_plot *p, size_t most);

/* Remove the series without points. */
void hg_plot_drop_empty(struct hg_plot *p);

/* Where a value stands on an axis: 0 at its lower end, 1 at its upper. */
double hg_plot_share(const struct hg_plot_axis *a, double v);

void hg_plots_drop_last(struct hg_plots *plots);
void hg_plots_done(struct hg_plots *plots);

#endif
