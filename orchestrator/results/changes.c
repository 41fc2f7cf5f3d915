/* SPDX-License-Identifier: Apache-2.0 */
#include "results/changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define PRIOR_DF 4.0 /* what repeats and the assumption weigh against the scatter of the runs */
#define SCATTER_DF 2 /* below that the scatter of the runs says nothing */
#define STRETCH_SHARE 0.2 /* of the level, for stretches that begin and end inside */
#define STRETCH_MAX 64    /* runs of such a stretch */

/* A track without its gaps, and sums of it up to each run. */
struct series {
    struct hg_track *track;
    double *sum, *squares, *inverse; /* n + 1: of the means, their squares, 1 / repeats */
    size_t *at, n;                   /* at: index in the track */
    struct hg_variance within;       /* of one measurement; df 0: nothing was repeated */
    double p;                        /* of its most significant shift */
};

struct search {
    double tolerance, between;
    double level;
};

static void open_series(struct series *s, struct hg_track *t)
{
    *s = (struct series){ .track = t, .at = hg_alloc_zeroed(t->n + 1, sizeof *s->at) };
    s->sum = hg_alloc_zeroed(3 * (t->n + 1), sizeof *s->sum);
    s->squares = s->sum + t->n + 1;
    s->inverse = s->squares + t->n + 1;
    for (size_t i = 0; i < t->n; i++) {
        const struct hg_moments *b = &t->runs[i];

        if (b->n == 0)
            continue;
        s->sum[s->n + 1] = s->sum[s->n] + b->mean;
        s->squares[s->n + 1] = s->squares[s->n] + b->mean * b->mean;
        s->inverse[s->n + 1] = s->inverse[s->n] + 1 / (double)b->n;
        s->at[s->n++] = i;
        s->within.value += b->squares;
        s->within.df += (double)b->freedom;
    }
    if (s->within.df > 0)
        s->within.value /= s->within.df;
}

/* ---- One place ---- */

/* The runs i..j against the others of from..to. */
struct split {
    size_t from, i, j, to;
};

struct measured {
    double d;
    struct hg_variance noise; /* of d, from the repeats alone */
    struct hg_variance total; /* of d, from these and the assumption; df 0: nothing was repeated */
    struct hg_variance scatter; /* of d, from the runs alone; df 0: too few */
};

static struct hg_variance scaled(struct hg_variance v, double factor)
{
    return (struct hg_variance){ v.value * factor, v.df };
}

/* Variance of a run's mean by what its repeats and the assumption make of it, and by how the runs scatter around two levels. */
static struct hg_variance of_a_run(const struct series *s, const struct split *k,
                                   struct hg_variance seen, double between)
{
    double m = (double)(k->to - k->from), share = PRIOR_DF / (PRIOR_DF + seen.df);
    double repeats = m / (s->inverse[k->to] - s->inverse[k->from]);
    struct hg_variance prior, both;

    if (s->within.df == 0)
        return (struct hg_variance){ 0 };
    prior = hg_fdr_add(scaled(s->within, 1 / repeats),
                       (struct hg_variance){ between * between, HG_FDR_DF_MAX });
    if (seen.df == 0)
        return prior;
    both = hg_fdr_add(scaled(prior, share), scaled(seen, 1 - share));
    /* Satterthwaite trusts a scatter more the smaller it happens to be: at most as if both were equal. */
    both.df = fmin(both.df, seen.df / ((1 - share) * (1 - share)));
    return both;
}

static struct measured measure(const struct series *s, const struct split *k, double between)
{
    double a = (double)(k->j - k->i), m = (double)(k->to - k->from), b = m - a;
    double in = s->sum[k->j] - s->sum[k->i], out = s->sum[k->to] - s->sum[k->from] - in;
    double squares = s->squares[k->to] - s->squares[k->from];
    double inverse = s->inverse[k->j] - s->inverse[k->i];
    double others = s->inverse[k->to] - s->inverse[k->from] - inverse;
    double rest = squares - in * in / a - out * out / b; /* around the two levels */
    struct hg_variance seen = { m > 2 ? fmax(0, rest / (m - 2)) : 0, m - 2 };
    struct measured x = { .d = in / a - out / b };

    x.noise = scaled(s->within, inverse / (a * a) + others / (b * b));
    x.total = scaled(of_a_run(s, k, seen, between), 1 / a + 1 / b);
    x.scatter = scaled(seen, 1 / a + 1 / b);
    if (m - 2 < SCATTER_DF)
        x.scatter.df = 0;
    return x;
}

/* Without repeats the scatter of the runs is the only noise, and has to keep clear of the tolerance, too. Else it is one of two ways to
 * see how much runs differ: the more significant counts, twice. */
static double p_of(const struct measured *x, double tolerance)
{
    double p = 1;

    if (x->noise.df == 0)
        return x->scatter.df > 0 ? hg_fdr_p(x->d, tolerance, x->scatter) : 1;
    p = hg_fdr_p(x->d, 0, x->total);
    if (x->scatter.df > 0)
        p = fmin(1, 2 * fmin(p, hg_fdr_p(x->d, 0, x->scatter)));
    return fmax(p, hg_fdr_p(x->d, tolerance, x->noise));
}

/* In standard deviations; those of few degrees of freedom count less, as far as a t quantile says. */
static double deviations(double d, struct hg_variance v)
{
    return v.df > 0 ? d / sqrt(fmax(v.value, 1e-30)) / (1 + 2 / v.df) : 0;
}

/* The order of p_of, nearly, without its cost. */
static double weight_of(const struct measured *x, double tolerance)
{
    double beyond = fabs(x->d) - tolerance;

    if (beyond <= 0)
        return 0;
    if (x->noise.df == 0)
        return deviations(beyond, x->scatter);
    return fmin(deviations(beyond, x->noise),
                fmax(deviations(fabs(x->d), x->total), deviations(fabs(x->d), x->scatter)));
}

/* ---- The best of all places ---- */

struct best {
    struct split split;
    struct measured x;
    double weight;
    size_t tried;
};

static void try_split(const struct series *s, const struct search *q, struct split k,
                      struct best *best)
{
    struct measured x = measure(s, &k, q->between);
    double weight = weight_of(&x, q->tolerance);

    best->tried++;
    if (weight > best->weight)
        *best = (struct best){ k, x, weight, best->tried };
}

static double p_of_best(const struct best *b, const struct search *q, double share)
{
    return b->weight > 0 ? p_of(&b->x, q->tolerance) * (double)b->tried / share : 1;
}

/* The most significant cut, or stretch between two of them, and its p-value: Bonferroni's over all that were tried. */
static double find_best(const struct series *s, const struct search *q, size_t from, size_t to,
                        struct split *split)
{
    struct best cut = { .weight = 0 }, stretch = { .weight = 0 };
    double share, p_cut, p_stretch;

    for (size_t i = from + 1; i < to; i++) {
        try_split(s, q, (struct split){ from, i, to, to }, &cut);
        for (size_t j = i + 1; j < to && j - i <= STRETCH_MAX; j++)
            try_split(s, q, (struct split){ from, i, j, to }, &stretch);
    }
    share = stretch.tried ? STRETCH_SHARE : 0;
    p_cut = p_of_best(&cut, q, 1 - share);
    p_stretch = p_of_best(&stretch, q, STRETCH_SHARE);
    *split = p_stretch < p_cut ? stretch.split : cut.split;
    return fmin(p_cut, p_stretch);
}

static void cut(const struct series *s, size_t at)
{
    *HG_VEC_PUSH(&s->track->shifts) = (struct hg_shift){ .at = at };
}

/* Binary segmentation: the most significant shift, then those of the parts. Places are those of the series. */
static void cut_all(const struct series *s, const struct search *q, size_t from, size_t to)
{
    struct split k;

    if (to - from < 2 || find_best(s, q, from, to, &k) > q->level)
        return;
    cut_all(s, q, from, k.i);
    cut(s, k.i);
    cut_all(s, q, k.i, k.j);
    if (k.j < to) {
        cut(s, k.j);
        cut_all(s, q, k.j, to);
    }
}

/* ---- What they are ---- */

/* Measure each shift between its neighbours. Returns the smallest. */
static size_t measure_all(const struct series *s, const struct search *q)
{
    struct hg_shift *items = s->track->shifts.items;
    size_t n = s->track->shifts.n, least = 0;

    for (size_t i = 0; i < n; i++) {
        struct split k = { i ? items[i - 1].at : 0, items[i].at, 0, 0 };
        struct measured x;

        k.j = k.to = i + 1 < n ? items[i + 1].at : s->n;
        x = measure(s, &k, q->between);
        items[i].d = x.d;
        items[i].v = deviations(1, x.total) > deviations(1, x.scatter) ? x.total : x.scatter;
        if (fabs(x.d) < fabs(items[least].d))
            least = i;
    }
    return least;
}

/* Shifts within the tolerance are none: the smallest goes first, as the others grow or shrink with it. */
static void settle(const struct series *s, const struct search *q)
{
    struct hg_track *t = s->track;

    while (t->shifts.n) {
        size_t least = measure_all(s, q);
        struct hg_shift *gone = &t->shifts.items[least];

        if (fabs(gone->d) > q->tolerance)
            break;
        t->shifts.n--;
        memmove(gone, gone + 1, (t->shifts.n - least) * sizeof *gone);
    }
    for (size_t i = 0; i < t->shifts.n; i++)
        t->shifts.items[i].at = s->at[t->shifts.items[i].at];
}

/* ---- All tracks ---- */

/* Tracks with a shift, false ones among them at most one in twenty; their parts are searched at the level that this leaves
 * (Benjamini and Bogomolov 2014). */
static void choose(struct series *s, size_t n, struct search *q, double *p)
{
    size_t rejected = 0;

    for (size_t i = 0; i < n; i++) {
        struct split ignored;

        p[i] = s[i].p = s[i].n < 2 ? 1 : fmin(1, find_best(&s[i], q, 0, s[i].n, &ignored));
    }
    hg_fdr_adjust(p, n);
    for (size_t i = 0; i < n; i++)
        rejected += p[i] <= 1 - HG_STATS_LEVEL;
    q->level = (1 - HG_STATS_LEVEL) * (double)rejected / (double)n;
}

void hg_changes_find(struct hg_track *t, size_t n, double tolerance, double between)
{
    struct series *s = hg_alloc((n + 1) * sizeof *s);
    struct hg_variance *within = hg_alloc((n + 1) * sizeof *within);
    double *p = hg_alloc((n + 1) * sizeof *p);
    struct search q = { .tolerance = tolerance, .between = between };

    for (size_t i = 0; i < n; i++) {
        open_series(&s[i], &t[i]);
        within[i] = s[i].within;
    }
    hg_fdr_squeeze(within, n);
    for (size_t i = 0; i < n; i++)
        s[i].within = within[i];
    choose(s, n, &q, p);
    for (size_t i = 0; i < n; i++) {
        if (p[i] <= 1 - HG_STATS_LEVEL) {
            cut_all(&s[i], &q, 0, s[i].n);
            settle(&s[i], &q);
        }
        free(s[i].sum);
        free(s[i].at);
    }
    free(s);
    free(within);
    free(p);
}

double hg_track_mean(const struct hg_track *t, size_t from, size_t to)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = from; i < to; i++)
        if (t->runs[i].n) {
            sum += t->runs[i].mean;
            n++;
        }
    return n ? sum / (double)n : NAN;
}
