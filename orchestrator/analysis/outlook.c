/* SPDX-License-Identifier: Apache-2.0 */
/* What cells that are left will take together: played a few hundred times with times drawn from their forecasts. Sums of what is
 * partly common to many cells, and the end of the last of them, have no formula. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "analysis/forecast_model.h"

#define ROUNDS 200
#define ROUNDS_MIN 40  /* ... where there are many cells, whose own chance cancels */
#define GAP_SD 0.3     /* of a gap's logarithm: how busy Slurm is differs from sweep to sweep */
#define DRAWS 400000   /* of times, in all rounds */
#define UNITS_MAX 2000 /* more cells than that are played as so many lumps of equal ones */
#define TRIES 16       /* for a time that is longer than a cell has been running */

struct play {
    struct hg_forecast *f;
    const struct hg_forecast_work *list;
    size_t n, lump;
    double gap_s, gap; /* gap: of this round */
    bool certain;      /* all of it is by limits: nothing is drawn */
    bool wide;         /* a lump runs at once, on as many slots */
    uint64_t random;
    double spare;                                    /* a normal deviate; NAN: none */
    double between, shared[HG_REGRESSION_MAX], *own; /* of this round; own by configuration */
    double *heap;                                    /* when each slot is free */
    size_t n_heap;
    double device_s, end_s; /* of this round */
};

/* ---- Chance ---- */

/* splitmix64: 0 < u < 1. */
static double uniform(struct play *p)
{
    uint64_t z = p->random += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return ((double)((z ^ z >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

/* Two at a time, by Box and Muller. */
static double normal(struct play *p)
{
    double radius, angle, spare = p->spare;

    p->spare = NAN;
    if (!isnan(spare))
        return spare;
    radius = sqrt(-2 * log(uniform(p)));
    angle = 2 * M_PI * uniform(p);
    p->spare = radius * sin(angle);
    return radius * cos(angle);
}

/* How many times too large an estimated deviation may make Student's t: sqrt(freedom / chi squared), by Wilson and Hilferty. */
static double stretch(struct play *p, double freedom)
{
    double part = 2 / (9 * freedom), root = 1 - part + normal(p) * sqrt(part);

    return root > 0.05 ? pow(root, -1.5) : 90;
}

/* ---- One round ---- */

static double known(double sd)
{
    return isnan(sd) ? 0 : sd;
}

/* What this round's runs of a configuration have in common: their center, then their own spread. */
static void draw_own(struct play *p, size_t i)
{
    const struct hg_forecast_run *run = &p->f->list.items[i].run;
    double u[HG_REGRESSION_MAX], value, wide;

    if (run->source == HG_FORECAST_NOTHING) { /* its limit is no matter of chance */
        p->own[2 * i] = 0;
        return;
    }
    wide = run->freedom > 0 ? stretch(p, run->freedom) : 1;
    p->own[2 * i] = run->center + p->between + wide * known(run->own_sd) * normal(p);
    p->own[2 * i + 1] = wide * known(run->run_sd);
    if (run->source != HG_FORECAST_REGRESSION ||
        !hg_regression_predict(p->f->regression, i, &value, u))
        return;
    for (size_t j = 0; j < hg_regression_size(p->f->regression); j++)
        p->own[2 * i] += u[j] * p->shared[j];
}

static void draw_all(struct play *p)
{
    const struct hg_regression *r = p->f->regression;
    double sd = r ? sqrt(hg_regression_variance(r)) * stretch(p, hg_regression_freedom(r)) : 0;

    p->between = p->f->between_sd * normal(p);
    p->gap = p->gap_s * exp(GAP_SD * normal(p));
    for (size_t j = 0; r && j < hg_regression_size(r); j++)
        p->shared[j] = sd * normal(p);
    for (size_t i = 0; i < p->n; i++)
        p->own[2 * p->list[i].configuration] = NAN;
    for (size_t i = 0; i < p->n; i++)
        if (isnan(p->own[2 * p->list[i].configuration]))
            draw_own(p, p->list[i].configuration);
}

/* The time of `cells` of them, one after another. */
static double draw_time(struct play *p, const struct hg_forecast_work *w, size_t cells)
{
    double center = p->own[2 * w->configuration], sd = p->own[2 * w->configuration + 1], t;

    if (p->f->list.items[w->configuration].run.source == HG_FORECAST_NOTHING)
        return (double)cells * w->limit_s;
    t = exp(center + sd * normal(p));
    for (int i = 0; i < TRIES && t < w->elapsed_s; i++)
        t = exp(center + sd * normal(p));
    if (t < w->elapsed_s)
        t = 1.05 * w->elapsed_s;
    if (cells == 1)
        return t;
    sd = fmin(sd, 2);
    t = exp(center + sd * sd / 2) * (double)cells;
    return t * fmax(0.1, 1 + normal(p) * sqrt(expm1(sd * sd) / (double)cells));
}

/* The slot that is free first takes it. */
static void occupy(struct play *p, double seconds)
{
    double *h = p->heap, end = h[0] + seconds;
    size_t at = 0;

    for (size_t child; (child = 2 * at + 1) < p->n_heap; at = child) {
        child += child + 1 < p->n_heap && h[child + 1] < h[child];
        if (h[child] >= end)
            break;
        h[at] = h[child];
    }
    h[at] = end;
    p->end_s = fmax(p->end_s, end);
}

static void play_work(struct play *p, const struct hg_forecast_work *w)
{
    bool counts = p->f->list.items[w->configuration].run.source != HG_FORECAST_NOTHING;

    for (size_t left = w->n; left;) {
        size_t cells = left < p->lump ? left : p->lump;
        double t = draw_time(p, w, cells) - (isnan(w->elapsed_s) ? 0 : w->elapsed_s);

        left -= cells;
        if (counts)
            p->device_s += t * w->devices;
        if (isnan(w->elapsed_s))
            t += p->gap * (double)cells;
        occupy(p, p->wide ? t / (double)p->lump : t);
    }
}

static void play_round(struct play *p)
{
    p->device_s = p->end_s = 0;
    memset(p->heap, 0, p->n_heap * sizeof *p->heap);
    if (p->certain)
        p->gap = p->gap_s;
    else
        draw_all(p);
    for (int waiting = 0; waiting < 2; waiting++)
        for (size_t i = 0; i < p->n; i++)
            if (isnan(p->list[i].elapsed_s) == (bool)waiting)
                play_work(p, &p->list[i]);
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
static bool count(struct play *p, struct hg_outlook *out, size_t *cells, size_t *running)
{
    bool spread = true;

    for (size_t i = 0; i < p->n; i++) {
        const struct hg_forecast_work *w = &p->list[i];
        const struct hg_forecast_run *run = &p->f->list.items[w->configuration].run;

        out->cells[run->source] += w->n;
        *cells += w->n;
        *running += isnan(w->elapsed_s) ? 0 : w->n;
        spread = spread && (run->source == HG_FORECAST_NOTHING || run->freedom > 0);
        if (run->source != HG_FORECAST_NOTHING)
            continue;
        out->endless += w->limit_s > 0 ? 0 : w->n;
        out->limit_hours += (double)w->n * w->devices * w->limit_s / 3600;
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
    struct play p = { .f = f, .list = list, .n = n, .gap_s = pace.gap_s };
    double device_s[ROUNDS], end_s[ROUNDS];
    size_t cells = 0, running = 0, slots, rounds;
    bool spread;

    *out = (struct hg_outlook){ .seconds = HG_ESTIMATE_NONE, .device_hours = HG_ESTIMATE_NONE };
    hg_forecast_fit(f);
    spread = count(&p, out, &cells, &running);
    if (!cells)
        return;
    p.lump = (cells + UNITS_MAX - 1) / UNITS_MAX;
    slots = pace.slots > running ? pace.slots : running ? running : 1;
    p.wide = p.lump > 1 && slots >= 16 * p.lump;
    p.n_heap = p.wide ? slots / p.lump : slots;
    rounds = DRAWS / (2 * n + cells / p.lump + 1);
    rounds = rounds < ROUNDS_MIN ? ROUNDS_MIN : rounds > ROUNDS ? ROUNDS : rounds;
    p.certain = out->cells[HG_FORECAST_NOTHING] == cells;
    if (p.certain)
        rounds = 1;
    p.spare = NAN;
    p.heap = hg_alloc(p.n_heap * sizeof *p.heap);
    p.own = hg_alloc_zeroed(2 * f->list.n + 1, sizeof *p.own);
    for (size_t i = 0; i < rounds; i++) {
        play_round(&p);
        device_s[i] = p.device_s;
        end_s[i] = p.end_s;
    }
    if (out->cells[HG_FORECAST_NOTHING] < cells)
        out->device_hours = summarise(device_s, rounds, 1 / 3600.0, spread);
    if (!out->endless)
        out->seconds = summarise(end_s, rounds, 1, spread);
    if (!out->endless && out->at_most)
        out->seconds.value = out->seconds.high;
    free(p.heap);
    free(p.own);
}
