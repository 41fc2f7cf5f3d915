/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/forecast.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/vec.h"
#include "analysis/forecast_model.h"

/* The spread of all configurations counts in each one's own like so many further runs. */
#define PRIOR_FREEDOM 10.0
#define LAW_REACH 2 /* a law is believed to so many times the devices that were measured */

struct hg_forecast *hg_forecast_create(void)
{
    return hg_alloc_zeroed(1, sizeof(struct hg_forecast));
}

static void forget_laws(struct hg_forecast *f)
{
    for (size_t i = 0; i < f->n_laws; i++)
        free(f->laws[i]);
    free(f->laws);
}

void hg_forecast_free(struct hg_forecast *f)
{
    if (!f)
        return;
    forget_laws(f);
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
    return number;
}

void hg_forecast_measure(struct hg_forecast *f, size_t configuration, double seconds)
{
    struct hg_moments run;

    if (!hg_moments_make(&seconds, 1, &run))
        return;
    hg_moments_add(&f->list.items[configuration].log, &run);
    f->measured++;
    f->stale = true;
}

void hg_forecast_set_between(struct hg_forecast *f, double sd)
{
    f->between_sd = sd;
    f->n_forecast = 0;
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
    variance /= freedom; /* NaN without any repeat */
    if (!(freedom > 0) && f->regression) {
        /* an upper bound: it includes what the regression does not explain */
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

static void of_regression(const struct hg_forecast *f, size_t i, struct hg_forecast_run *run)
{
    double place[HG_REGRESSION_MAX], leverage = 0, variance, noise;

    if (!f->regression || !hg_regression_predict(f->regression, i, &run->center, place))
        return;
    for (size_t j = 0; j < hg_regression_size(f->regression); j++)
        leverage += place[j] * place[j];
    variance = hg_regression_variance(f->regression);
    noise = f->freedom > 0 ? f->variance : 0;
    run->source = HG_FORECAST_REGRESSION;
    run->shared_sd = sqrt(variance * leverage);
    run->own_sd = sqrt(fmax(0, variance - noise / f->runs_each));
    run->run_sd = sqrt(noise);
    run->freedom = hg_regression_freedom(f->regression);
}

/* ---- Laws of scaling ---- */

/* A configuration that was measured. */
struct place {
    size_t family;
    double devices;
    const struct hg_moments *log;
};

static int by_family_and_devices(const void *pa, const void *pb)
{
    const struct place *a = pa, *b = pb;

    if (a->family != b->family)
        return a->family < b->family ? -1 : 1;
    return (a->devices > b->devices) - (a->devices < b->devices);
}

/* Runs on as many devices are one point, however these are spread over nodes. */
static size_t make_points(const struct place *places, size_t n, struct hg_law_point *points)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        if (i == 0 || places[i].devices != places[i - 1].devices)
            points[count++] = (struct hg_law_point){ .p = places[i].devices / places[0].devices };
        hg_moments_add(&points[count - 1].log, places[i].log);
    }
    return count;
}

static bool fits(enum hg_law law, const struct hg_law_point *points, size_t n,
                 struct hg_law_fit *fit)
{
    return !hg_laws_fit(law, points, n, fit) && !fit->lack_of_fit;
}

/* Of one family's places; NULL: there is none. */
static struct hg_forecast_law *find_law(const struct place *places, size_t n)
{
    struct hg_law_point *points = hg_alloc(n * sizeof *points);
    size_t count = make_points(places, n, points);
    struct hg_forecast_law *law = hg_alloc(sizeof *law);

    law->base = places[0].devices;
    law->most = places[n - 1].devices;
    if (count < 3 || (!fits(HG_LAW_USL, points, count, &law->fit) &&
                      !fits(HG_LAW_AMDAHL, points, count, &law->fit))) {
        free(law);
        law = NULL;
    }
    free(points);
    return law;
}

static void find_laws(struct hg_forecast *f)
{
    struct place *places = hg_alloc((f->list.n + 1) * sizeof *places);
    size_t n = 0;

    for (size_t i = 0; i < f->list.n; i++) {
        const struct hg_forecast_configuration *c = &f->list.items[i];

        if (c->log.n && c->devices > 0)
            places[n++] = (struct place){ c->family, c->devices, &c->log };
    }
    qsort(places, n, sizeof *places, by_family_and_devices);
    forget_laws(f);
    f->laws = hg_alloc_zeroed(f->n_families + 1, sizeof *f->laws);
    f->n_laws = f->n_families;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && places[end].family == places[i].family;)
            end++;
        f->laws[places[i].family] = find_law(places + i, end - i);
    }
    free(places);
}

static bool of_law(const struct hg_forecast *f, const struct hg_forecast_configuration *c,
                   struct hg_forecast_run *run)
{
    const struct hg_forecast_law *law = c->family < f->n_laws ? f->laws[c->family] : NULL;
    struct hg_estimate e;
    double t;

    if (!law || c->devices < law->base || c->devices > LAW_REACH * law->most)
        return false;
    e = hg_laws_predict(&law->fit, c->devices / law->base);
    if (isnan(e.value))
        return false;
    t = (e.high - e.value) / hg_stats_t_quantile(0.5 + HG_STATS_LEVEL / 2, law->fit.freedom);
    run->source = HG_FORECAST_LAW;
    run->center = e.value;
    run->run_sd = sqrt(law->fit.variance);
    run->own_sd = sqrt(fmax(0, t * t - law->fit.variance));
    run->freedom = law->fit.freedom;
    return true;
}

/* ---- All of them ---- */

static struct hg_forecast_run forecast(const struct hg_forecast *f, size_t i)
{
    const struct hg_forecast_configuration *c = &f->list.items[i];
    struct hg_forecast_run run = { .source = HG_FORECAST_NOTHING, .center = NAN };

    if (c->log.n)
        run = of_runs(f, &c->log);
    else if (!of_law(f, c, &run))
        of_regression(f, i, &run);
    run.between_sd = f->between_sd;
    return run;
}

void hg_forecast_fit(struct hg_forecast *f)
{
    if (f->stale) {
        pool(f);
        regress(f);
        find_laws(f);
        f->stale = false;
        f->n_forecast = 0;
    }
    for (; f->n_forecast < f->list.n; f->n_forecast++)
        f->list.items[f->n_forecast].run = forecast(f, f->n_forecast);
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
