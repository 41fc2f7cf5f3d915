/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_FORECAST_H
#define HG_CMD_FORECAST_H

#include "analysis/forecast.h"
#include "plan/batch.h"
#include "rundir/rundir.h"
#include "rundir/runstate.h"

/* How long cells take, measured in the runs of an experiment, and what follows for those that are left. */

/* ---- What runs have shown ---- */

struct hg_measured {
    struct hg_forecast *forecast;
    struct hg_buf from;  /* "002, 001": the runs that something was measured in, newest first */
    size_t runs;         /* how many these are */
    struct hg_pace pace; /* of the newest of them */
};

/* The folder of all runs, of which this is one. Yours to free. */
char *hg_measured_root(const struct hg_rundir *rd);

/* Read the newest runs of an experiment below the folder `reports` (NULL: as hg_options_reports): times of at most 10 good cells of
 * a configuration, 2000 in all. Rehearsals, and runs that cannot be read, tell nothing. before: only runs with a lower number; 0: all. */
void hg_measured_read(struct hg_measured *m, const char *reports, const char *name, int before);
void hg_measured_done(struct hg_measured *m);

/* Append " (run 002, 001)"; nothing if nothing was measured. */
void hg_measured_append_runs(const struct hg_measured *m, struct hg_buf *out);

/* ---- A plan that was just made ---- */

/* What its cells will take; with adaptive repeats those of the first round. */
void hg_forecast_plan(const struct hg_measured *m, const struct hg_plan *plan, struct hg_pace pace,
                      struct hg_outlook *out);

/* ---- A run that goes on ---- */

/* What is left of a run. */
struct hg_left {
    struct hg_outlook outlook; /* counted from at_s */
    double at_s;               /* wall time when it was computed */
    size_t cells,
        held; /* that have to end; of them held by a person, which are not counted in outlook */
    struct hg_pace pace;
    const char *pace_from; /* how that is known: "as now", "limits.running" */
};

struct hg_eta;

/* Read the plan of a run and the cells of earlier runs: a second for 10^5 cells. NULL with err set if the run cannot be read. Free with
 * hg_eta_free. */
struct hg_eta *hg_eta_open(const struct hg_rundir *rd, struct hg_err *err);
void hg_eta_free(struct hg_eta *e);

/* What is left in this state of the run, as journal and scheduler tell it, at wall time now_s. May be called every second: results are
 * read a hundred at a time (thorough: all that count), and what costs much is computed so seldom that it takes at most 2 % of a core;
 * between, the figures of `at_s` are given again, so that remaining seconds are outlook.seconds.value - (now_s - at_s).
 * Lent until the next call. */
const struct hg_left *hg_eta_look(struct hg_eta *e, const struct hg_run_state *state, double now_s,
                                  bool thorough);

/* Append the remaining time, how many cells at a time, and where the times are from: "12 min (10 min to 15 min), 4 at a time (as now): 30 cells as runs
 * of the same configuration took". Nothing if no cell is left. */
void hg_eta_append(const struct hg_eta *e, double now_s, struct hg_buf *out);

#endif
