/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_REPORT_H
#define HG_ANALYSIS_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "results/frame.h"
#include "results/laws.h"
#include "results/results.h"
#include "results/scaling.h"
#include "results/stats.h"
#include "analysis/listing.h"
#include "typeset/style.h"

/* A report as data: results arranged as tables. Rows and columns are keys of the cells, other keys that vary split the report into
 * tables, and every place has the center of its runs, speedup and efficiency. build.h computes all figures, once; renderers
 * only write them. */

enum hg_metric_kind {
    HG_METRIC_TIME,  /* less is faster: speedup = T_base / T */
    HG_METRIC_RATE,  /* more is faster: speedup = value / value_base */
    HG_METRIC_OTHER, /* neither: no speedup */
};

/* A result of a set as the report sees it: one for each cell. */
struct hg_report_entry {
    const struct hg_result *result;
    size_t set; /* index of its set */
    bool shown; /* selected by `where` */
    /* Its cell is no longer in the matrix, which has an equal one with another workload. */
    bool replaced;
    bool rehearsal;    /* of the result, or of its hardware's other results if it has none */
    double value;      /* of the metric; only if state is NULL */
    const char *state; /* why it does not count: "failed", "pending", ...; NULL: it counts */
    size_t config;     /* cells that differ only in `repeat` share one */
};

#define HG_POINT_NOTES_MAX 12

/* One place of a table. */
struct hg_point {
    size_t of, n;      /* cells here (0: no such cell), and how many of them count */
    const char *state; /* why n is 0; NULL */
    struct hg_estimate value, speedup;
    double efficiency; /* NaN: none */
    double devices;    /* NaN: unknown */
    double p;          /* devices / devices of the baseline; NaN: none */
    double karp_flatt; /* NaN: none, as under weak scaling */
    double work;       /* in units of the baseline's; NaN: unknown */
    size_t base_n;     /* runs behind the baseline's value */
    /* The speedup is that of so many pairs of runs that shared a job; 0: of both sides' runs. */
    size_t pairs;
    size_t config;       /* report_entry.config of its entries; SIZE_MAX: none */
    size_t published;    /* its value is of so many runs, of published means; 0: it is not */
    size_t base;         /* report_entry.config of its baseline; SIZE_MAX: none */
    bool is_baseline;    /* other places are compared with this one */
    bool oversubscribed; /* more ranks than cores: left out of scaling curves */
    bool unlike;      /* differs from its baseline in more than the global batch: left out, too */
    bool superlinear; /* efficiency above 1, and no interval says that this may be chance */
    /* A footnote says that the times are not those of such devices: left out of laws. */
    bool off_law;
    bool alone;          /* its result says that it is not comparable with other cells */
    bool differs;        /* differs from its baseline, perhaps only in the global batch */
    bool refused;        /* for that (strict): speedup and efficiency are withheld */
    bool weak;           /* more work in proportion to the devices: the speedup of a time is scaled,
                            work x T_base / T */
    double device_hours; /* devices x wall_s (or train_s); NaN: not known */
    double hours_ratio;  /* device_hours in units of the baseline's; NaN */
    double energy_j;     /* NaN: not measured */
    double cost;         /* device_hours x price of the hardware; NaN: no price */
    struct hg_estimate per_s;                  /* samples_per_s */
    size_t notes[HG_POINT_NOTES_MAX], n_notes; /* into the table's notes, ascending */
};

/* Points that differ only in how many devices they use. */
struct hg_series {
    char *label;
    enum hg_scaling_kind kind; /* strong or weak, if all points agree */
    size_t *points;            /* into the table's, by p: those with a speedup and p > 1 */
    size_t n_points;
    double first_p, first_karp_flatt, last_p, last_karp_flatt;
    bool has_law
        [HG_LAWS]; /* Amdahl and USL under strong scaling, or if the work is not known; Gustafson under weak */
    const char *no_law[HG_LAWS]; /* why a law of its kind is withheld; NULL */
    struct hg_law_fit laws[HG_LAWS];
    size_t law_points;   /* its points that the laws were fitted to */
    bool has_prediction; /* of one further run on twice the devices of the last of these; if not: */
    const char *no_prediction; /* why a fitted USL or Gustafson predicts nothing; NULL */
    struct {
        enum hg_law law;
        double p, devices;
        struct hg_estimate speedup, value; /* value: of the metric, for a time or a rate */
    } prediction;
};

struct hg_table {
    uint32_t *split;    /* values of the report's split keys: `group`, then what varies besides */
    bool rehearsal;     /* computed on other hardware than the cells name */
    const char *device; /* the one it was computed on; NULL: not known */
    uint32_t *rows, *columns; /* values: n_rows times n_row_keys, n_columns times n_column_keys */
    size_t n_rows, n_columns;
    struct hg_point *points;              /* n_rows times n_columns */
    int value_decimals, speedup_decimals; /* that suit all its points */
    struct {
        char **items;
        size_t n, cap;
    } notes;
    struct {
        struct hg_series *items;
        size_t n, cap;
    } series;                    /* only those with a fit */
    struct hg_listings listings; /* what else is known about its places */
    bool has_speedup, has_efficiency;
    bool weak; /* some of its places are under weak scaling: the work is not part of a series */
    struct {
        char **items;
        size_t n, cap;
    } remarks;              /* sentences about all its runs */
    const char *no_speedup; /* why there is none though a baseline is named; NULL */
};

struct hg_report_state {
    const char *word;
    size_t n;
};

struct hg_report {
    struct hg_style style; /* of numbers for people, in sentences, too */
    char *title;
    char *metric;
    /* Keys whose product is the work of a cell, lent, NULL-terminated; NULL: see work.c. */
    char **work;
    enum hg_metric_kind kind;
    bool has_direction; /* it is known whether higher or lower is better */
    bool higher_is_better;
    json_t *baseline; /* members, own reference; NULL: none */
    /* Of all places: the median if each has HG_STATS_MEDIAN_MIN runs. */
    enum hg_statistic statistic;
    size_t skipped, removed; /* cells of runs that cannot run, or that their matrix has no more */
    size_t cells, complete;  /* shown cells, and those that count */
    struct {
        struct hg_report_state *items;
        size_t n, cap;
    } states;       /* of the others, most frequent first */
    size_t repeats; /* runs in most places */
    /* The rule by which places were repeated, lent by a set; NULL: none. */
    const struct hg_repeats *adaptive;
    size_t refused; /* places refused (strict) */
    struct hg_frame frame;
    struct hg_names *names;                                  /* of the entries; see hg_entry_name */
    size_t *row_keys, *column_keys, *split_keys, *same_keys; /* columns of frame */
    size_t n_row_keys, n_column_keys, n_split_keys, n_same_keys;
    struct {
        struct hg_table *items;
        size_t n, cap;
    } tables;
    struct hg_listings listings; /* what concerns all tables */
    struct hg_report_entry *entries;
    size_t n_entries;
    const struct hg_results *sets; /* lent */
    size_t n_sets;
    char **labels;          /* what each set is called, all different */
    const char *source_key; /* the key that names the set; NULL if there is only one */
    const char *currency;   /* of prices and costs; NULL: no set has prices, or they differ */
};

/* What to show. NULL: as the first set that has the member says, else chosen from the cells. */
struct hg_report_options {
    char **rows, **columns; /* NULL-terminated */
    char **group;           /* keys that give a table each, whether or not they have to */
    char **work;            /* keys whose product is the work of a cell */
    const char *metric;
    const char *better; /* "lower" or "higher" */
    const char *where;  /* selector */
    struct hg_style style;
    bool has_style;         /* style, not what the set asks for */
    const json_t *baseline; /* overrides that select a cell's baseline */
    bool traffic;           /* list bytes sent, exposed communication, peak memory */
    bool cost;          /* list the cost of places even if neither prices nor energy are known */
    bool json_lines;    /* lines of results for programs (render/lines.h) */
    bool strict;        /* no speedup where `comparable` differs from the baseline's */
    bool against_first; /* compare sets: the first is the baseline of the others, the rows are the
                               fewest keys that tell cells apart, the columns are the sets */
};

void hg_report_free(struct hg_report *r);

/* All cells shown have a complete, valid result. */
bool hg_report_is_complete(const struct hg_report *r);

static inline struct hg_point *hg_table_point(const struct hg_table *t, size_t row, size_t column)
{
    return &t->points[row * t->n_columns + column];
}

/* The text of a value of the report's cells; "" for absence. */
static inline const char *hg_report_text(const struct hg_report *r, uint32_t value)
{
    return r->frame.values.items[value].text;
}

#endif
