/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_FORECAST_MODEL_H
#define HG_ANALYSIS_FORECAST_MODEL_H

#include "analysis/forecast.h"
#include "analysis/regression.h"
#include "results/moments.h"

/* What forecast.c and outlook.c share. */

struct hg_forecast_configuration {
    struct hg_moments log; /* of its runs' seconds */
    double devices;
    size_t family; /* the same for those that differ from it in devices only */
    struct hg_forecast_run run;
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
    bool stale; /* something was added since the model was made */
    /* the model */
    double variance, freedom; /* of a run about its configuration's mean, all of them together */
    double runs_each;         /* harmonic mean of the runs of those that were measured */
    struct hg_regression *regression; /* NULL: none */
};

/* Bring the model up to what was measured. */
void hg_forecast_fit(struct hg_forecast *f);

#endif
