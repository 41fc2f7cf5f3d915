/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_FORECAST_MODEL_H
#define HG_ANALYSIS_FORECAST_MODEL_H

#include "analysis/forecast.h"
#include "analysis/regression.h"
#include "results/laws.h"

/* What forecast.c and outlook.c share. */

struct hg_forecast_configuration {
    struct hg_moments log; /* of its runs' seconds */
    double devices;
    size_t family; /* the same for those that differ from it in devices only */
    struct hg_forecast_run run;
};

/* A law that the runs of a family follow. */
struct hg_forecast_law {
    struct hg_law_fit fit;
    double base,
        most; /* devices: the fewest, which are the fit's p = 1, and the most that were measured */
};

struct hg_forecast {
    struct hg_frame frame; /* a row for each */
    struct {
        struct hg_forecast_configuration *items;
        size_t n, cap;
    } list;
    struct hg_map index, families;
    size_t n_families, measured;
    double between_sd;
    bool stale; /* something was measured since the model was made */
    /* the model: changes with what is measured, not with what is asked */
    double variance, freedom; /* of a run about its configuration's mean, all of them together */
    double runs_each;         /* harmonic mean of the runs of those that were measured */
    struct hg_regression *regression; /* NULL: none */
    struct hg_forecast_law **laws;    /* by family; NULL: none */
    size_t n_laws;
    size_t n_forecast; /* the first configurations, whose `run` is that of the model */
};

/* Bring the model up to what was measured. */
void hg_forecast_fit(struct hg_forecast *f);

#endif
