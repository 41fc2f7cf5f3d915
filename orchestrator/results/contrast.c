/* SPDX-License-Identifier: Apache-2.0 */
#include "results/contrast.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

#define PRIOR_DF 4.0   /* what the assumed variance between runs weighs against measured ones */
#define CORE 0.4       /* share of the cells taken to be unchanged */
#define CORE_SLACK 1.5 /* intervals up to so many times as long as the shortest are as short */
#define CORE_DF 0.2    /* degrees of freedom of the scale that the core gives, for each cell */
#define CORE_BIAS \
    6.0 /* what the shortest interval of n is too short by, in variance: 1 + this / n */

/* Mean of the runs of one side; adds to what both sides share. */
static double add_side(const struct hg_moments *b, size_t n, struct hg_contrast *c)
{
    double mean = 0, r = (double)n;

    for (size_t i = 0; i < n; i++) {
        mean += b[i].mean / r;
        c->within.value += b[i].squares;
        c->within.df += (double)b[i].freedom;
        c->weight += 1 / ((double)b[i].n * r * r);
    }
    for (size_t i = 0; i < n; i++)
        c->spread += (b[i].mean - mean) * (b[i].mean - mean);
    c->spread_df += r - 1;
    c->runs += 1 / r;
    return mean;
}

void hg_contrast_make(const struct hg_moments *a, size_t na, const struct hg_moments *b, size_t nb,
                      double sign, struct hg_contrast *c)
{
    *c = (struct hg_contrast){ 0 };
    c->d = add_side(a, na, c);
    c->d = sign * (c->d - add_side(b, nb, c));
    c->within.value = c->within.df > 0 ? c->within.value / c->within.df : 0;
    c->spread = c->spread_df > 0 ? c->spread / c->spread_df : 0;
}

/* ---- Robust centre and scale ---- */

static int compare_doubles(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;

    return (a > b) - (a < b);
}

static size_t core_of(size_t n)
{
    return (size_t)ceil(CORE * (double)n) + 1;
}

/* Where most cells are: the middle of the shortest interval that holds the core, of two about as short ones that nearer to 0. */
static double center_of(const struct hg_contrast *c, size_t n, double *room)
{
    size_t core = core_of(n);
    double shortest = INFINITY, center = INFINITY;

    for (size_t i = 0; i < n; i++)
        room[i] = c[i].d;
    qsort(room, n, sizeof *room, compare_doubles);
    for (size_t i = 0; i + core <= n; i++)
        shortest = fmin(shortest, room[i + core - 1] - room[i]);
    for (size_t i = 0; i + core <= n; i++) {
        double middle = room[i + core - 1] / 2 + room[i] / 2;

        if (room[i + core - 1] - room[i] <= CORE_SLACK * shortest && fabs(middle) < fabs(center))
            center = middle;
    }
    return center;
}

/* The variance beyond `noise` with which the squares of d - center, in units of their variance, have the core's quantile of chi-square. */
static double excess_of(const struct hg_contrast *c, size_t n, double center, double *room)
{
    double low = 0, high = 1, share = (double)core_of(n) / (double)(n + 1);
    double z = hg_stats_t_quantile(0.5 + share / 2, HG_FDR_DF_MAX);

    for (int i = 0; i < 60; i++) {
        double v = low / 2 + high / 2;

        for (size_t k = 0; k < n; k++)
            room[k] = (c[k].d - center) * (c[k].d - center) / fmax(c[k].noise.value + v, 1e-30);
        qsort(room, n, sizeof *room, compare_doubles);
        if (room[core_of(n) - 1] > z * z)
            low = v;
        else
            high = v;
    }
    return low;
}

/* ---- Noise of the repeats ---- */

/* Without any repeat: how the cells' own differences scatter, or the assumption. Returns whether something was repeated. */
static bool settle_noise(struct hg_contrast *c, size_t n, double *room)
{
    struct hg_variance *v = hg_alloc((n + 1) * sizeof *v), all = { .df = HG_FDR_DF_MAX };
    bool repeated = false;

    for (size_t i = 0; i < n; i++) {
        v[i] = c[i].within;
        repeated = repeated || v[i].df > 0;
        c[i].noise = (struct hg_variance){ 0 };
    }
    hg_fdr_squeeze(v, n);
    all.value = HG_SINGLE_DEFAULT * HG_SINGLE_DEFAULT * 2;
    if (!repeated && n >= HG_CONTRAST_MANY)
        all = (struct hg_variance){ excess_of(c, n, center_of(c, n, room), room),
                                    CORE_DF * (double)(n - 1) };
    for (size_t i = 0; i < n; i++) {
        c[i].noise = repeated ? (struct hg_variance){ v[i].value * c[i].weight, v[i].df } : all;
        c[i].within = v[i];
    }
    free(v);
    return repeated;
}

/* ---- Variance between runs ---- */

/* As several runs on a side show it; df 0: they do not. All cells of a run may have shifted together: they are no independent
 * witnesses, so the df are those of one cell. */
static struct hg_variance seen_between(const struct hg_contrast *c, size_t n)
{
    struct hg_variance seen = { 0 };
    double weights = 0;

    for (size_t i = 0; i < n; i++) {
        double per_run = c[i].runs > 0 ? c[i].within.value * c[i].weight / c[i].runs : 0;

        seen.value += c[i].spread_df * (c[i].spread - per_run);
        weights += c[i].spread_df;
        seen.df = fmax(seen.df, c[i].spread_df);
    }
    seen.value = weights > 0 ? fmax(0, seen.value / weights) : 0;
    return seen;
}

/* The assumption counts as PRIOR_DF further degrees of freedom; one of no variance is taken to be none. */
static struct hg_variance between_runs(struct hg_variance seen, double assumed)
{
    double prior = assumed > 0 ? PRIOR_DF : 0;

    if (seen.df == 0)
        return (struct hg_variance){ assumed * assumed, HG_FDR_DF_MAX };
    return (struct hg_variance){
        (prior * assumed * assumed + seen.df * seen.value) / (prior + seen.df), prior + seen.df
    };
}

static struct hg_variance scaled(struct hg_variance v, double factor)
{
    return (struct hg_variance){ v.value * factor, v.df };
}

/* ---- Verdicts ---- */

/* What an unchanged cell's difference looks like: with many cells it scatters around a shift that all share by what the cells
 * show, at most by `between`; with few around 0 by `between`. */
struct null {
    double shift;
    bool many;
    struct hg_variance excess;
};

static struct null learn_null(const struct hg_contrast *c, size_t n, struct hg_variance most,
                              double *room)
{
    struct null null = { .excess = most, .many = n >= HG_CONTRAST_MANY };

    if (!null.many)
        return null;
    null.shift = center_of(c, n, room);
    null.excess =
        (struct hg_variance){ excess_of(c, n, null.shift, room) * (1 + CORE_BIAS / (double)n),
                              CORE_DF * (double)n };
    if (null.excess.value >= most.value)
        null.excess = most;
    return null;
}

static void judge_overall(const struct hg_contrast *c, size_t n, struct hg_variance most,
                          const struct null *null, struct hg_overall *o)
{
    double cells = (double)n, df = 0;

    for (size_t i = 0; i < n; i++) {
        o->d += c[i].d / cells;
        o->noise.value += c[i].noise.value / (cells * cells);
        df = fmax(df, c[i].noise.df);
    }
    o->noise.df = df;
    if (null->many)
        most = hg_fdr_add(most, scaled(null->excess, 1 / cells));
    o->p = hg_fdr_p(o->d, 0, hg_fdr_add(o->noise, most));
}

/* The shift that all cells share is that of the runs, unless it is too large for that. */
static double own_difference(const struct hg_contrast *c, double shift)
{
    double d = c->d - shift;

    if (shift * c->d <= 0)
        return c->d;
    return d * c->d > 0 ? d : 0;
}

struct hg_overall hg_contrasts_judge(struct hg_contrast *c, size_t n, double tolerance,
                                     double between)
{
    double *room = hg_alloc((n + 1) * sizeof *room), runs = 0;
    struct hg_overall o = { .p = 1, .between = between };
    struct hg_variance per_run, most;
    struct null null;

    if (n == 0)
        goto out;
    o.repeated = settle_noise(c, n, room);
    o.seen = seen_between(c, n);
    per_run = between_runs(o.seen, between);
    for (size_t i = 0; i < n; i++)
        runs += c[i].runs / (double)n;
    o.between = sqrt(per_run.value);
    o.runs = runs;
    most = scaled(per_run, runs);
    null = learn_null(c, n, most, room);
    judge_overall(c, n, most, &null, &o);
    if (o.p <= 1 - HG_STATS_LEVEL || hg_fdr_p(null.shift, 0, most) <= 1 - HG_STATS_LEVEL)
        null.shift = 0;
    o.p = fmax(o.p, hg_fdr_p(o.d, tolerance, o.noise));
    for (size_t i = 0; i < n; i++)
        room[i] = fmax(hg_fdr_p(c[i].d, tolerance, c[i].noise),
                       hg_fdr_p(own_difference(&c[i], null.shift), 0,
                                hg_fdr_add(c[i].noise, scaled(null.excess, c[i].runs / runs))));
    hg_fdr_adjust(room, n);
    for (size_t i = 0; i < n; i++)
        c[i].p = room[i];
out:
    free(room);
    return o;
}

struct hg_estimate hg_contrast_ratio(double d, struct hg_variance noise)
{
    double half = noise.value > 0
                      ? hg_stats_t_quantile(0.5 + HG_STATS_LEVEL / 2, noise.df) * sqrt(noise.value)
                      : 0;
    struct hg_estimate e = { .value = exp(d), .low = exp(d - half), .high = exp(d + half) };

    e.has_interval = isfinite(e.value) && isfinite(e.low) && isfinite(e.high);
    return e;
}
