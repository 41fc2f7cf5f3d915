/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/auto_limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "contract/keys.h"
#include "matrix/cell.h"
#include "matrix/together.h"
#include "plan/plan.h"

#define SHARE 0.999
#define UNKNOWN 3.0 /* times the forecast, if nothing tells how much runs differ */
#define MOST 10.0   /* times the forecast, however little is known */

struct auto_limits {
    const struct hg_matrix *m;
    struct hg_measured measured;
    size_t cells[HG_FORECAST_SOURCES]; /* that asked */
    size_t cut;                        /* whose limit should be above what the hardware allows */
};

static double forecast_bound_s(struct auto_limits *l, const json_t *members,
                               const struct hg_forecast_run **run)
{
    struct hg_forecast *f = l->measured.forecast;
    double bound;

    *run = hg_forecast_of(f, hg_forecast_configuration(f, members, hg_cell_devices(members)));
    if ((*run)->source == HG_FORECAST_NOTHING)
        return 0;
    bound = hg_forecast_quantile(*run, SHARE);
    if (isnan(bound))
        bound = UNKNOWN * exp((*run)->center);
    return fmin(bound, MOST * exp((*run)->center));
}

static double bound_s(void *context, const json_t *members)
{
    struct auto_limits *l = context;
    const struct hg_hardware *hw = hg_matrix_hardware(l->m, members);
    const struct hg_forecast_run *run;
    double bound = forecast_bound_s(l, members, &run);

    l->cells[run->source]++;
    l->cut += hw && hw->max_time_s > 0 && bound > hw->max_time_s;
    return bound;
}

static void free_limits(void *context)
{
    struct auto_limits *l = context;

    hg_measured_done(&l->measured);
    free(l);
}

void hg_auto_limits_set(struct hg_matrix *m, const char *reports)
{
    struct hg_buf pointer = HG_BUF_INIT;
    bool asked = *hg_matrix_pointer(m, "time", HG_KEY_TIME_AUTO, &pointer);
    struct auto_limits *l;

    hg_buf_done(&pointer);
    if (!asked || m->site->rehearsal)
        return;
    if (m->auto_times.free) /* of another site */
        m->auto_times.free(m->auto_times.context);
    l = hg_alloc_zeroed(1, sizeof *l);
    l->m = m;
    hg_measured_read(&l->measured, reports, m->name, 0);
    m->auto_times = (struct hg_auto_times){ .bound_s = bound_s, .free = free_limits, .context = l };
}

const struct hg_measured *hg_auto_limits_measured(const struct hg_matrix *m)
{
    const struct auto_limits *l = m->auto_times.context;

    return l ? &l->measured : NULL;
}

void hg_auto_limits_forget(const struct hg_matrix *m)
{
    struct auto_limits *l = m->auto_times.context;

    if (!l)
        return;
    memset(l->cells, 0, sizeof l->cells);
    l->cut = 0;
}

void hg_auto_limits_append(const struct hg_matrix *m, struct hg_buf *out)
{
    const struct auto_limits *l = m->auto_times.context;
    long long raises = m->retry.most[HG_RETRY_TIMEOUT];
    size_t forecast = 0, nothing;
    struct hg_outlook o = { 0 };

    if (!l)
        return;
    nothing = l->cells[HG_FORECAST_NOTHING];
    for (int s = 0; s < HG_FORECAST_NOTHING; s++)
        forecast += o.cells[s] = l->cells[s];
    if (!forecast && !nothing)
        return;
    hg_buf_puts(out, "\"auto\" limits: ");
    hg_outlook_append_sources(l->measured.forecast, &o, out);
    if (forecast) {
        hg_measured_append_runs(&l->measured, out);
        hg_buf_printf(out, ", so that 999 of 1000 end in time, at least %d min%s",
                      HG_AUTO_FLOOR_S / 60, hg_matrix_has_together(m) ? " a job" : "");
    }
    if (nothing)
        hg_buf_printf(out,
                      "%s%zu cell%s without a measured run, with the partition's default limit",
                      forecast ? "; " : "", nothing, hg_text_s(nothing));
    if (l->cut)
        hg_buf_printf(out, "; %zu of them may need longer than max_time of their hardware", l->cut);
    raises = raises ? raises : HG_AUTO_RAISES;
    hg_buf_printf(out, "; after TIMEOUT twice as long, at most %lld time%s", raises,
                  hg_text_s((size_t)raises));
}

void hg_auto_limits_append_cell(const struct hg_matrix *m, const json_t *members,
                                struct hg_buf *out)
{
    struct auto_limits *l = m->auto_times.context;
    const struct hg_forecast_run *run;
    char limit[32];
    double bound;

    if (!l)
        return;
    bound = forecast_bound_s(l, members, &run);
    if (run->source == HG_FORECAST_NOTHING) {
        hg_buf_puts(out, "the partition's default: no run tells how long it takes");
        return;
    }
    if (!hg_matrix_has_together(m))
        bound = hg_plan_auto_s(hg_matrix_hardware(m, members), bound);
    hg_text_duration_slurm(bound, limit);
    hg_buf_printf(out, hg_matrix_has_together(m) ? "%s of its job's, " : "%s, ", limit);
    hg_forecast_append_source(l->measured.forecast, run->source, out);
    hg_measured_append_runs(&l->measured, out);
}
