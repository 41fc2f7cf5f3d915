/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_FORECAST_H
#define HG_ANALYSIS_FORECAST_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "results/stats.h"

/* How long cells will take, from those that were measured. A configuration (a cell without its repeat and without how its job is
 * requested) is forecast by the first of these that applies: its own runs; a law of scaling over runs that differ from it in devices
 * only; a regression over all keys; nothing. Formulas and how often the intervals hold: reports/formulas.md. */
struct hg_forecast;

enum hg_forecast_source {
    HG_FORECAST_MEASURED,
    HG_FORECAST_LAW,
    HG_FORECAST_REGRESSION,
    HG_FORECAST_NOTHING,
    HG_FORECAST_SOURCES
};

/* Logarithm of the seconds that one further run takes: Student's t about the center. */
struct hg_forecast_run {
    enum hg_forecast_source source;
    double center;
    /* Common to its runs and those of other configurations; of regressions only. */
    double shared_sd;
    double own_sd;     /* common to its runs */
    double between_sd; /* common to all cells of a sweep */
    double run_sd;     /* of each run; NaN: not known, no interval */
    double freedom;
    size_t runs; /* of it that were measured */
};

struct hg_forecast *hg_forecast_create(void);
void hg_forecast_free(struct hg_forecast *f);

/* The number of a cell's configuration, given its devices. */
size_t hg_forecast_configuration(struct hg_forecast *f, const json_t *cell, long long devices);

/* A good run of it took so many seconds. */
void hg_forecast_measure(struct hg_forecast *f, size_t configuration, double seconds);

/* How much whole sweeps of the same cells differ, as a standard deviation of the logarithm: the one to be forecast from the measured ones.
 * 0 at first. */
void hg_forecast_set_between(struct hg_forecast *f, double sd);

size_t hg_forecast_measured(const struct hg_forecast *f); /* runs so far */
size_t hg_forecast_runs(const struct hg_forecast *f, size_t configuration);

/* Forecast of a configuration, computed again if anything was measured or asked since the last time. Lent until the next call. */
const struct hg_forecast_run *hg_forecast_of(struct hg_forecast *f, size_t configuration);

/* Seconds that a further run stays below with this probability; NaN: not known. */
double hg_forecast_quantile(const struct hg_forecast_run *run, double probability);

/* "as runs of the same configuration took", "by regression over epochs, nodes", ... */
void hg_forecast_append_source(const struct hg_forecast *f, enum hg_forecast_source source,
                               struct hg_buf *out);

/* ---- What is left ---- */

/* Cells of one configuration that have to run, or one that runs. */
struct hg_forecast_work {
    size_t configuration, n;
    double devices, limit_s; /* limit_s 0: none */
    double elapsed_s;        /* of one that runs; NaN: they wait */
};

/* Sums, with the interval that holds them in 95 of 100 cases. */
struct hg_outlook {
    struct hg_estimate device_hours; /* of the cells that are forecast */
    struct hg_estimate seconds;      /* until the last one ends; NaN if some cells have no bound */
    bool at_most;                    /* seconds.value counts time limits: it is a bound */
    double limit_hours; /* device-hours of cells without forecast: their limits' rest */
    size_t cells[HG_FORECAST_SOURCES]; /* how many, by source */
    size_t endless;                    /* of those without forecast: without a limit, too */
};

/* How cells follow each other. */
struct hg_pace {
    size_t slots; /* of them run at a time; 0: not known */
    double gap_s; /* from the end of one to the start of the next in its place */
};

/* The pace of n runs, the last n - n_ends of which have not ended: slots: as many as ever ran at once, at most `most` (0: any). Sorts
 * both. */
struct hg_pace hg_forecast_pace(double *starts, size_t n, double *ends, size_t n_ends, size_t most);

/* Cells start in the order of the list. Random numbers are the same each time. */
void hg_forecast_look(struct hg_forecast *f, const struct hg_forecast_work *list, size_t n,
                      struct hg_pace pace, struct hg_outlook *out);

/* Append where the times are from: "24 cells as runs of the same configuration took, 8 cells by regression over epochs, lr". */
void hg_outlook_append_sources(const struct hg_forecast *f, const struct hg_outlook *o,
                               struct hg_buf *out);

/* Append "3.4 device-hours (3.1 to 3.8), and at most 2 by time limits", or the part of it that applies. */
void hg_outlook_append_hours(const struct hg_outlook *o, struct hg_buf *out);

/* Append "12 min (10 min to 15 min)", "at most 30 min" or "not known"; passed_s later that much less. */
void hg_outlook_append_time(const struct hg_outlook *o, double passed_s, struct hg_buf *out);

/* All of it for programs. A new reference. */
json_t *hg_outlook_json(const struct hg_outlook *o, struct hg_pace pace);

#endif
