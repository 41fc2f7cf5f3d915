/* SPDX-License-Identifier: Apache-2.0 */
/* What cells that are left will take together: 200 simulations with random times according to their forecasts. No formula gives the
 * sum of times that partly vary together, nor the end of the last cell. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "analysis/forecast_model.h"

#define ROUNDS 200
#define ROUNDS_MIN 40  /* ... of very many cells, whose own variation averages out */
#define GAP_SD 0.3     /* of a gap's logarithm: how busy Slurm is differs from sweep to sweep */
#define DRAWS 400000   /* random times, in all rounds */
#define UNITS_MAX 2000 /* more cells than that are simulated in blocks */
#define TRIES 16       /* for a time that is longer than a cell has been running */

struct simulation {
    struct hg_forecast *f;
    const struct hg_forecast_work *list;
    size_t n, block;   /* block: cells of one configuration that are simulated as one */
    double gap_s, gap; /* gap: of this round */
    bool certain;      /* all of it is by limits: nothing is random */
    bool parallel;     /* the cells of a block run at the same time, not one after another */
    uint64_t random;
    double spare;                                    /* a normal deviate; NaN: none */
    double between, shared[HG_REGRESSION_MAX], *own; /* of this round; own by configuration */
    double *heap;                                    /* when each slot is free */
    size_t n_heap;
    double device_s, end_s; /* of this round */
};

/* ---- Chance ---- */

/* splitmix64: 0 < u < 1. */
static double uniform(struct simulation *s)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return ((double)((z ^ z >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

/* Two at a time, by Box and Muller. */
static double normal(struct simulation *s)
{
    double radius, angle, spare = s->spare;

    s->spare = NAN;
    if (!isnan(spare))
        return spare;
    radius = sqrt(-2 * log(uniform(s)));
    angle = 2 * M_PI * uniform(s);
    s->spare = radius * sin(angle);
    return radius * cos(angle);
}

/* How many times too large an estimated deviation may make Student's t: sqrt(freedom / chi squared), by Wilson and Hilferty. */
static double stretch(struct simulation *s, double freedom)
{
    double part = 2 / (9 * freedom), root = 1 - part + normal(s) * sqrt(part);

    return root > 0.05 ? pow(root, -1.5) : 90;
}

/* ---- One round ---- */

static double passed_s(const struct hg_forecast_work *w)
{
    return isnan(w->elapsed_s) ? 0 : w->elapsed_s;
}

static double known(double sd)
{
    return isnan(sd) ? 0 : sd;
}

/* What this round's runs of a configuration have in common: the center of their logarithms, and the spread about it. */
static void draw_own(struct simulation *s, size_t i)
{
    const struct hg_forecast_run *run = &s->f->list.items[i].run;
    double u[HG_REGRESSION_MAX], value, scale;

    if (run->source == HG_FORECAST_NOTHING) { /* a limit is not random */
        s->own[2 * i] = 0;
        return;
    }
    scale = run->freedom > 0 ? stretch(s, run->freedom) : 1;
    s->own[2 * i] = run->center + s->between + scale * known(run->own_sd) * normal(s);
    s->own[2 * i + 1] = scale * known(run->run_sd);
    if (run->source != HG_FORECAST_REGRESSION ||
        !hg_regression_predict(s->f->regression, i, &value, u))
        return;
    for (size_t j = 0; j < hg_regression_size(s->f->regression); j++)
        s->own[2 * i] += u[j] * s->shared[j];
}

static void draw_all(struct simulation *s)
{
    const struct hg_regression *r = s->f->regression;
    double sd = r ? sqrt(hg_regression_variance(r)) * stretch(s, hg_regression_freedom(r)) : 0;

    s->between = s->f->between_sd * normal(s);
    s->gap = s->gap_s * exp(GAP_SD * normal(s));
    for (size_t j = 0; r && j < hg_regression_size(r); j++)
        s->shared[j] = sd * normal(s);
    for (size_t i = 0; i < s->n; i++)
        s->own[2 * s->list[i].configuration] = NAN;
    for (size_t i = 0; i < s->n; i++)
        if (isnan(s->own[2 * s->list[i].configuration]))
            draw_own(s, s->list[i].configuration);
}

/* The sum of the times of so many cells. */
static double draw_time(struct simulation *s, const struct hg_forecast_work *w, size_t cells)
{
    double center = s->own[2 * w->configuration], sd = s->own[2 * w->configuration + 1], t;

    if (s->f->list.items[w->configuration].run.source == HG_FORECAST_NOTHING)
        return (double)cells * w->limit_s;
    t = exp(center + sd * normal(s));
    for (int i = 0; i < TRIES && t < w->elapsed_s; i++)
        t = exp(center + sd * normal(s));
    if (t < w->elapsed_s)
        t = 1.05 * w->elapsed_s;
    if (cells == 1)
        return t;
    sd = fmin(sd, 2);
    t = exp(center + sd * sd / 2) * (double)cells;
    return t * fmax(0.1, 1 + normal(s) * sqrt(expm1(sd * sd) / (double)cells));
}

/* The slot that is free first takes it. */
static void occupy(struct simulation *s, double seconds)
{
    double *h = s->heap, end = h[0] + seconds;
    size_t at = 0;

    for (size_t child; (child = 2 * at + 1) < s->n_heap; at = child) {
        child += child + 1 < s->n_heap && h[child + 1] < h[child];
        if (h[child] >= end)
            break;
        h[at] = h[child];
    }
    h[at] = end;
    s->end_s = fmax(s->end_s, end);
}

static void simulate_work(struct simulation *s, const struct hg_forecast_work *w)
{
    bool counts = s->f->list.items[w->configuration].run.source != HG_FORECAST_NOTHING;

    for (size_t left = w->n; left;) {
        size_t cells = left < s->block ? left : s->block;
        double t = fmax(0, draw_time(s, w, cells) - passed_s(w));

        left -= cells;
        if (counts)
            s->device_s += t * w->devices;
        if (isnan(w->elapsed_s))
            t += s->gap * (double)cells;
        occupy(s, s->parallel ? t / (double)s->block : t);
    }
}

static void simulate_round(struct simulation *s)
{
    s->device_s = s->end_s = 0;
    memset(s->heap, 0, s->n_heap * sizeof *s->heap);
    if (s->certain)
        s->gap = s->gap_s;
    else
        draw_all(s);
    for (int waiting = 0; waiting < 2; waiting++)
        for (size_t i = 0; i < s->n; i++)
            if (isnan(s->list[i].elapsed_s) == (bool)waiting)
                simulate_work(s, &s->list[i]);
}

/* ---- Many rounds ---- */

static int by_size(const void *pa, const void *pb)
{
    const double *a = pa, *b = pb;

    return (*a > *b) - (*a < *b);
}

static struct hg_estimate summarise(double *v, size_t n, double scale, bool interval)
{
    size_t tail = (size_t)((1 - HG_STATS_LEVEL) / 2 * (double)n);

    qsort(v, n, sizeof *v, by_size);
    return (struct hg_estimate){ .value = v[n / 2] * scale,
                                 .low = v[tail] * scale,
                                 .high = v[n - 1 - tail] * scale,
                                 .has_interval = interval };
}

/* False if some forecast has no interval. */
static bool count(struct simulation *s, struct hg_outlook *out, size_t *cells, size_t *running)
{
    bool spread = true;

    for (size_t i = 0; i < s->n; i++) {
        const struct hg_forecast_work *w = &s->list[i];
        const struct hg_forecast_run *run = &s->f->list.items[w->configuration].run;

        out->cells[run->source] += w->n;
        *cells += w->n;
        *running += isnan(w->elapsed_s) ? 0 : w->n;
        spread = spread && (run->source == HG_FORECAST_NOTHING || run->freedom > 0);
        if (run->source != HG_FORECAST_NOTHING)
            continue;
        out->endless += w->limit_s > 0 ? 0 : w->n;
        out->limit_hours += (double)w->n * w->devices * fmax(0, w->limit_s - passed_s(w)) / 3600;
        out->at_most = true;
    }
    return spread;
}

struct hg_pace hg_forecast_pace(double *starts, size_t n, double *ends, size_t n_ends, size_t most)
{
    struct hg_pace pace = { 0 };
    size_t ended = 0, gaps = 0;

    qsort(starts, n, sizeof *starts, by_size);
    qsort(ends, n_ends, sizeof *ends, by_size);
    for (size_t i = 0; i < n; i++) {
        while (ended < n_ends && ends[ended] <= starts[i])
            ended++;
        if (i + 1 - ended > pace.slots)
            pace.slots = i + 1 - ended;
    }
    if (most && pace.slots > most)
        pace.slots = most;
    /* with so many slots, this start could not come before that end */
    for (size_t i = pace.slots; i < n && i - pace.slots < n_ends; i++, gaps++)
        pace.gap_s += fmax(0, starts[i] - ends[i - pace.slots]);
    if (gaps)
        pace.gap_s /= (double)gaps;
    return pace;
}

void hg_forecast_look(struct hg_forecast *f, const struct hg_forecast_work *list, size_t n,
                      struct hg_pace pace, struct hg_outlook *out)
{
    struct simulation s = { .f = f, .list = list, .n = n, .gap_s = pace.gap_s };
    double device_s[ROUNDS], end_s[ROUNDS];
    size_t cells = 0, running = 0, slots, rounds;
    bool spread;

    *out = (struct hg_outlook){ .seconds = HG_ESTIMATE_NONE, .device_hours = HG_ESTIMATE_NONE };
    hg_forecast_fit(f);
    spread = count(&s, out, &cells, &running);
    if (!cells)
        return;
    s.block = (cells + UNITS_MAX - 1) / UNITS_MAX;
    slots = pace.slots > running ? pace.slots : running ? running : 1;
    s.parallel = s.block > 1 && slots >= 16 * s.block;
    s.n_heap = s.parallel ? slots / s.block : slots;
    rounds = DRAWS / (2 * n + cells / s.block + 1);
    rounds = rounds < ROUNDS_MIN ? ROUNDS_MIN : rounds > ROUNDS ? ROUNDS : rounds;
    s.certain = out->cells[HG_FORECAST_NOTHING] == cells;
    if (s.certain)
        rounds = 1;
    s.spare = NAN;
    s.heap = hg_alloc(s.n_heap * sizeof *s.heap);
    s.own = hg_alloc_zeroed(2 * f->list.n + 1, sizeof *s.own);
    for (size_t i = 0; i < rounds; i++) {
        simulate_round(&s);
        device_s[i] = s.device_s;
        end_s[i] = s.end_s;
    }
    if (out->cells[HG_FORECAST_NOTHING] < cells)
        out->device_hours = summarise(device_s, rounds, 1 / 3600.0, spread);
    if (!out->endless)
        out->seconds = summarise(end_s, rounds, 1, spread);
    if (!out->endless && out->at_most)
        out->seconds.value = out->seconds.high;
    free(s.heap);
    free(s.own);
}
