/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/forecast.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/vec.h"
#include "analysis/forecast_model.h"
#include "results/laws.h"

/* The spread of all configurations counts in each one's own like so many further runs. */
#define PRIOR_FREEDOM 10.0
#define LAW_REACH 2 /* a law is believed to so many times the devices that were measured */

struct hg_forecast *hg_forecast_create(void)
{
    return hg_alloc_zeroed(1, sizeof(struct hg_forecast));
}

void hg_forecast_free(struct hg_forecast *f)
{
    if (!f)
        return;
    hg_regression_free(f->regression);
    hg_frame_done(&f->frame);
    hg_map_done(&f->index);
    hg_map_done(&f->families);
    HG_VEC_DONE(&f->list);
    free(f);
}

/* ---- Configurations ---- */

/* The number of a row's values in keys without these flags. */
static size_t number_of(const struct hg_frame *f, const uint32_t *row, unsigned without,
                        struct hg_map *map, size_t next)
{
    struct hg_buf key = HG_BUF_INIT;
    size_t number;

    for (size_t k = 0; k < f->keys.n; k++)
        if (row[k] && !(f->keys.items[k].flags & without)) {
            uint32_t pair[2] = { (uint32_t)k, row[k] };

            hg_buf_append(&key, pair, sizeof pair);
        }
    number = hg_map_put(map, hg_buf_str(&key), key.len, next);
    hg_buf_done(&key);
    return number;
}

size_t hg_forecast_configuration(struct hg_forecast *f, const json_t *cell, long long devices)
{
    const unsigned loose = HG_KEY_NOTE | HG_KEY_LOOSE | HG_KEY_REPEAT;
    const uint32_t *row;
    size_t number, family;

    hg_frame_add(&f->frame, cell);
    row = hg_frame_row(&f->frame, f->frame.n_rows - 1);
    number = number_of(&f->frame, row, loose, &f->index, f->list.n);
    if (number < f->list.n) {
        f->frame.n_rows--;
        return number;
    }
    family = number_of(&f->frame, row, loose | HG_KEY_SHAPE, &f->families, f->n_families);
    f->n_families += family == f->n_families;
    *HG_VEC_PUSH(&f->list) =
        (struct hg_forecast_configuration){ .devices = (double)devices, .family = family };
    f->stale = true;
    return number;
}

void hg_forecast_measure(struct hg_forecast *f, size_t configuration, double seconds)
{
    struct hg_moments *m = &f->list.items[configuration].log;
    double step = log(seconds) - m->mean;

    if (!(seconds > 0) || !isfinite(seconds))
        return;
    m->n++;
    m->mean += step / (double)m->n;
    m->squares += step * (log(seconds) - m->mean);
    m->freedom = m->n - 1;
    f->measured++;
    f->stale = true;
}

void hg_forecast_set_between(struct hg_forecast *f, double sd)
{
    f->stale = f->stale || sd != f->between_sd;
    f->between_sd = sd;
}

size_t hg_forecast_measured(const struct hg_forecast *f)
{
    return f->measured;
}

size_t hg_forecast_runs(const struct hg_forecast *f, size_t configuration)
{
    return f->list.items[configuration].log.n;
}

/* ---- The model ---- */

static void pool(struct hg_forecast *f)
{
    double squares = 0;

    f->freedom = 0;
    f->runs_each = 0;
    for (size_t i = 0; i < f->list.n; i++) {
        squares += f->list.items[i].log.squares;
        f->freedom += (double)f->list.items[i].log.freedom;
    }
    f->variance = f->freedom > 0 ? squares / f->freedom : NAN;
}

static void regress(struct hg_forecast *f)
{
    size_t *rows = hg_alloc((f->list.n + 1) * sizeof *rows), n = 0;
    double *y = hg_alloc((f->list.n + 1) * sizeof *y), shares = 0;

    hg_regression_free(f->regression);
    for (size_t i = 0; i < f->list.n; i++)
        if (f->list.items[i].log.n) {
            rows[n] = i;
            y[n++] = f->list.items[i].log.mean;
            shares += 1 / (double)f->list.items[i].log.n;
        }
    f->regression = hg_regression_fit(&f->frame, rows, n, y);
    f->runs_each = n ? (double)n / shares : 0;
    free(rows);
    free(y);
}

/* Its own runs, and how far runs of all others are from their means. */
static struct hg_forecast_run of_runs(const struct hg_forecast *f, const struct hg_moments *m)
{
    double others = f->freedom - (double)m->freedom, prior = fmin(others, PRIOR_FREEDOM);
    double freedom = prior + (double)m->freedom, variance = m->squares;

    if (prior > 0)
        variance += prior * (f->variance * f->freedom - m->squares) / others;
    variance /= freedom;

    if (!(freedom > 0) &&
        f->regression) { /* what the regression cannot explain is more than that */
        variance = hg_regression_variance(f->regression);
        freedom = hg_regression_freedom(f->regression);
    }
    return (struct hg_forecast_run){ .source = HG_FORECAST_MEASURED,
                                     .center = m->mean,
                                     .own_sd = sqrt(variance / (double)m->n),
                                     .run_sd = sqrt(variance),
                                     .freedom = freedom,
                                     .runs = m->n };
}

static bool of_regression(const struct hg_forecast *f, size_t i, struct hg_forecast_run *run)
{
    double place[HG_REGRESSION_MAX], leverage = 0, variance, noise;

    if (!f->regression || !hg_regression_predict(f->regression, i, &run->center, place))
        return false;
    for (size_t j = 0; j < hg_regression_size(f->regression); j++)
        leverage += place[j] * place[j];
    variance = hg_regression_variance(f->regression);
    noise = f->freedom > 0 ? f->variance : 0;
    run->source = HG_FORECAST_REGRESSION;
    run->shared_sd = sqrt(variance * leverage);
    run->own_sd = sqrt(fmax(0, variance - noise / f->runs_each));
    run->run_sd = sqrt(noise);
    run->freedom = hg_regression_freedom(f->regression);
    return true;
}

/* ---- Laws of scaling ---- */

static int by_devices(const void *pa, const void *pb)
{
    const struct hg_law_point *a = pa, *b = pb;

    return (a->p > b->p) - (a->p < b->p);
}

/* Runs on as many devices are one point, however these are spread over nodes. */
static void add_point(struct hg_law_point *points, size_t *n, double p, const struct hg_moments *m)
{
    for (size_t i = 0; i < *n; i++) {
        if (points[i].p == p) {
            hg_moments_add(&points[i].log, m);
            return;
        }
    }
    points[(*n)++] = (struct hg_law_point){ p, *m };
}

static bool fit_law(const struct hg_law_point *points, size_t n, struct hg_law_fit *fit)
{
    return (!hg_laws_fit(HG_LAW_USL, points, n, fit) && !fit->lack_of_fit) ||
           (!hg_laws_fit(HG_LAW_AMDAHL, points, n, fit) && !fit->lack_of_fit);
}

static bool of_law(const struct hg_law_fit *fit, double p, struct hg_forecast_run *run)
{
    struct hg_estimate e = hg_laws_predict(fit, p);
    double t = hg_stats_t_quantile(0.5 + HG_STATS_LEVEL / 2, fit->freedom);

    if (isnan(e.value))
        return false;
    run->source = HG_FORECAST_LAW;
    run->center = e.value;
    run->run_sd = sqrt(fit->variance);
    run->own_sd = sqrt(fmax(0, (e.high - e.value) * (e.high - e.value) / t / t - fit->variance));
    run->freedom = fit->freedom;
    return true;
}

/* Configurations that differ in devices only: list[0] to list[n - 1]. Those that no law gives a time are left as they are. */
static void try_law(struct hg_forecast *f, const size_t *list, size_t n)
{
    struct hg_law_point *points = hg_alloc((n + 1) * sizeof *points);
    struct hg_law_fit fit;
    size_t measured = 0;
    double base, most;

    for (size_t i = 0; i < n; i++) {
        const struct hg_forecast_configuration *c = &f->list.items[list[i]];

        if (c->log.n && c->devices > 0)
            add_point(points, &measured, c->devices, &c->log);
    }
    qsort(points, measured, sizeof *points, by_devices);
    base = measured ? points[0].p : 1;
    most = measured ? points[measured - 1].p : 0;
    for (size_t i = 0; i < measured; i++)
        points[i].p /= base;
    if (measured > 2 && fit_law(points, measured, &fit))
        for (size_t i = 0; i < n; i++) {
            struct hg_forecast_configuration *c = &f->list.items[list[i]];

            if (!c->log.n && c->devices >= base && c->devices <= LAW_REACH * most)
                of_law(&fit, c->devices / base, &c->run);
        }
    free(points);
}

static void try_laws(struct hg_forecast *f)
{
    size_t *first = hg_alloc_zeroed(f->n_families + 2, sizeof *first);
    size_t *sorted = hg_alloc((f->list.n + 1) * sizeof *sorted);

    for (size_t i = 0; i < f->list.n; i++)
        first[f->list.items[i].family + 2]++;
    for (size_t i = 2; i < f->n_families + 2; i++)
        first[i] += first[i - 1];
    for (size_t i = 0; i < f->list.n; i++)
        sorted[first[f->list.items[i].family + 1]++] = i;
    for (size_t i = 0; i < f->n_families; i++)
        try_law(f, sorted + first[i], first[i + 1] - first[i]);
    free(first);
    free(sorted);
}

void hg_forecast_fit(struct hg_forecast *f)
{
    if (!f->stale)
        return;
    f->stale = false;
    pool(f);
    regress(f);
    for (size_t i = 0; i < f->list.n; i++) {
        struct hg_forecast_configuration *c = &f->list.items[i];

        c->run = (struct hg_forecast_run){ .source = HG_FORECAST_NOTHING, .center = NAN };
        if (c->log.n)
            c->run = of_runs(f, &c->log);
    }
    try_laws(f);
    for (size_t i = 0; i < f->list.n; i++) {
        if (f->list.items[i].run.source == HG_FORECAST_NOTHING)
            of_regression(f, i, &f->list.items[i].run);
        f->list.items[i].run.between_sd = f->between_sd;
    }
}

const struct hg_forecast_run *hg_forecast_of(struct hg_forecast *f, size_t configuration)
{
    hg_forecast_fit(f);
    return &f->list.items[configuration].run;
}

double hg_forecast_quantile(const struct hg_forecast_run *run, double probability)
{
    double sd = sqrt(run->shared_sd * run->shared_sd + run->own_sd * run->own_sd +
                     run->run_sd * run->run_sd + run->between_sd * run->between_sd);

    if (run->source == HG_FORECAST_NOTHING || !(run->freedom > 0))
        return NAN;
    return exp(run->center + sd * hg_stats_t_quantile(probability, run->freedom));
}

void hg_forecast_append_source(const struct hg_forecast *f, enum hg_forecast_source source,
                               struct hg_buf *out)
{
    static const char *const words[] = {
        [HG_FORECAST_MEASURED] = "as runs of the same configuration took",
        [HG_FORECAST_LAW] = "by a law of scaling over devices",
        [HG_FORECAST_REGRESSION] = "by regression over ",
        [HG_FORECAST_NOTHING] = "by the time limit, at most",
    };

    hg_buf_puts(out, words[source]);
    if (source == HG_FORECAST_REGRESSION && f->regression)
        hg_regression_append_keys(f->regression, out);
}
