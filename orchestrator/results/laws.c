/* SPDX-License-Identifier: Apache-2.0 */
#include "results/laws.h"

#include <math.h>
#include <string.h>

#include "results/scaling.h"

const char *const hg_law_names[HG_LAWS] = { "Amdahl", "USL", "Gustafson" };

#define K_MAX HG_LAW_COEFFICIENTS_MAX

/* ln S = ln p - sign ln D, D = 1 + sum of coefficient x term; sign is -1 for Gustafson's law. */
static const struct {
    size_t n;
    double sign;
} shapes[HG_LAWS] = { { 1, 1 }, { 2, 1 }, { 1, -1 } };

static void terms(enum hg_law law, double p, double x[K_MAX])
{
    x[0] = law == HG_LAW_GUSTAFSON ? -(p - 1) / p : p - 1;
    x[1] = law == HG_LAW_USL ? p * (p - 1) : 0;
}

static double denominator(enum hg_law law, const double b[K_MAX], double p)
{
    double x[K_MAX];

    terms(law, p, x);
    return 1 + b[0] * x[0] + b[1] * x[1];
}

/* ---- Least squares ---- */

/* What is known at some coefficients. ln T1 stands outside the logarithm: its best value is the mean of the rest, so that sums
 * of deviations from the mean are left. */
struct look {
    double b[K_MAX];
    double base, cost;               /* ln T1; sum of squared residuals */
    double slopes[K_MAX];            /* mean derivatives */
    double normal[K_MAX][K_MAX];     /* of the normal equations */
    double second[K_MAX][K_MAX];     /* added to these: half the second derivatives of the cost */
    double gradient[K_MAX];          /* their right-hand side */
    double covariance[K_MAX][K_MAX]; /* inverse of normal */
};

struct data {
    enum hg_law law;
    const struct hg_law_point *points;
    size_t n;
    double runs, freedom; /* within the points */
};

/* Residual of ln T without ln T1, and its derivatives. */
static double residual(const struct data *d, size_t i, const double b[K_MAX], double x[K_MAX])
{
    const struct hg_law_point *q = &d->points[i];
    double sign = shapes[d->law].sign, below = denominator(d->law, b, q->p);

    terms(d->law, q->p, x);
    for (size_t k = 0; k < K_MAX; k++)
        x[k] *= sign / below;
    return q->log.mean + log(q->p) - sign * log(below);
}

static void invert(double m[K_MAX][K_MAX], size_t n, double out[K_MAX][K_MAX])
{
    double det = m[0][0] * m[1][1] - m[0][1] * m[1][0];

    out[0][0] = n == 1 ? 1 / m[0][0] : m[1][1] / det;
    out[0][1] = out[1][0] = n == 1 ? 0 : -m[0][1] / det;
    out[1][1] = n == 1 ? 0 : m[0][0] / det;
}

/* False where the law gives no time for some point. */
static bool look_at(const struct data *d, const double b[K_MAX], struct look *l)
{
    double x[K_MAX];

    *l = (struct look){ .b = { b[0], b[1] } };
    for (size_t i = 0; i < d->n; i++) {
        if (!(denominator(d->law, b, d->points[i].p) > 0))
            return false;
        l->base += (double)d->points[i].log.n / d->runs * residual(d, i, b, x);
        for (size_t k = 0; k < K_MAX; k++)
            l->slopes[k] += (double)d->points[i].log.n / d->runs * x[k];
    }
    for (size_t i = 0; i < d->n; i++) {
        double runs = (double)d->points[i].log.n, e = residual(d, i, b, x) - l->base;

        l->cost += runs * e * e;
        for (size_t k = 0; k < K_MAX; k++) {
            l->gradient[k] += runs * e * (x[k] - l->slopes[k]);
            for (size_t j = 0; j < K_MAX; j++) {
                l->normal[k][j] += runs * (x[k] - l->slopes[k]) * (x[j] - l->slopes[j]);
                l->second[k][j] += runs * e * shapes[d->law].sign * x[k] * x[j];
            }
        }
    }
    invert(l->normal, shapes[d->law].n, l->covariance);
    return isfinite(l->cost);
}

/* A first guess: D by the baseline's time, relative errors all alike. Without a baseline error that is the answer. */
static void guess(const struct data *d, double b[K_MAX])
{
    double m[K_MAX][K_MAX] = { { 0 } }, right[K_MAX] = { 0 }, inverse[K_MAX][K_MAX], x[K_MAX];

    for (size_t i = 0; i < d->n; i++) {
        const struct hg_law_point *q = &d->points[i];
        double ratio = exp(shapes[d->law].sign * (q->log.mean + log(q->p) - d->points[0].log.mean));
        double weight = (double)q->log.n / ratio / ratio;

        terms(d->law, q->p, x);
        for (size_t k = 0; k < K_MAX; k++) {
            right[k] += weight * x[k] * (ratio - 1);
            for (size_t j = 0; j < K_MAX; j++)
                m[k][j] += weight * x[k] * x[j];
        }
    }
    invert(m, shapes[d->law].n, inverse);
    for (size_t k = 0; k < K_MAX; k++)
        b[k] = inverse[k][0] * right[0] + inverse[k][1] * right[1];
}

/* Newton's step; that of Gauss and Newton where the cost is not convex. */
static void find_step(const struct data *d, const struct look *at, double step[K_MAX])
{
    double m[K_MAX][K_MAX], inverse[K_MAX][K_MAX];
    size_t n = shapes[d->law].n;

    for (size_t k = 0; k < K_MAX; k++)
        for (size_t j = 0; j < K_MAX; j++)
            m[k][j] = at->normal[k][j] + at->second[k][j];
    if (m[0][0] > 0 && (n == 1 || m[0][0] * m[1][1] > m[0][1] * m[1][0]))
        invert(m, n, inverse);
    else
        memcpy(inverse, at->covariance, sizeof inverse);
    for (size_t k = 0; k < K_MAX; k++)
        step[k] = inverse[k][0] * at->gradient[0] + inverse[k][1] * at->gradient[1];
}

/* One step, halved until the cost falls. False if it does not fall, or no more than rounding does. */
static bool improve(const struct data *d, struct look *at)
{
    double step[K_MAX], gain = 0;

    find_step(d, at, step);
    for (size_t k = 0; k < K_MAX; k++)
        gain += step[k] * at->gradient[k];
    if (!(gain > 1e-14 * at->cost + 1e-28))
        return false;
    for (double part = 1; part > 1e-6; part /= 2) {
        double b[K_MAX] = { at->b[0] + part * step[0], at->b[1] + part * step[1] };
        struct look next;

        if (!look_at(d, b, &next) || next.cost >= at->cost)
            continue;
        *at = next;
        return true;
    }
    return false;
}

static bool solve(const struct data *d, struct look *l)
{
    static const double zero[K_MAX];
    double first[K_MAX];

    guess(d, first);
    if (!look_at(d, first, l) && !look_at(d, zero, l))
        return false;
    for (int i = 0; i < 100 && improve(d, l); i++)
        ;
    return true;
}

/* ---- How sure ---- */

/* Share of good fits that are said to contradict the law. */
#define LACK_LEVEL 0.01

/* Probability of an F of at least f. */
static double f_tail(double f, double above, double below)
{
    return hg_stats_beta(below / 2, above / 2, below / (below + above * f));
}

/* The variance of one run's logarithm: of all runs about the law, or where the F test finds that the points are further from it than
 * their runs explain, of the points about the law. */
static void judge(const struct data *d, const struct look *l, struct hg_law_fit *fit)
{
    double pure = 0, pure_freedom = d->freedom, lack_freedom = (double)d->n - (double)fit->n - 1;
    double dust = 1e-24 * d->runs, cost = l->cost > dust ? l->cost : 0;

    for (size_t i = 0; i < d->n; i++)
        pure += d->points[i].log.squares;
    pure = pure > dust ? pure : 0;
    fit->lack_of_fit = pure_freedom > 0 && cost > 0 &&
                       (pure == 0 || f_tail(cost / lack_freedom / (pure / pure_freedom),
                                            lack_freedom, pure_freedom) < LACK_LEVEL);
    fit->freedom = fit->lack_of_fit ? lack_freedom : lack_freedom + pure_freedom;
    fit->variance = (fit->lack_of_fit ? cost : cost + pure) / fit->freedom;
    fit->error = sqrt(cost / d->runs);
}

static void settle(const struct look *l, struct hg_law_fit *fit)
{
    const double one = 0.841344746068543; /* of the normal distribution below one deviation */
    double wide = hg_stats_t_quantile(0.5 + HG_STATS_LEVEL / 2, fit->freedom),
           narrow = hg_stats_t_quantile(one, fit->freedom);

    for (size_t k = 0; k < fit->n; k++) {
        struct hg_coefficient *c = &fit->coefficients[k];
        double deviation = sqrt(fit->variance * l->covariance[k][k]);

        c->value = fabs(l->b[k]) < 1e-12 ? 0 : l->b[k]; /* rounding */
        c->error = narrow * deviation;
        c->low = c->value - wide * deviation;
        c->high = c->value + wide * deviation;
    }
}

/* ---- Which laws are fitted ---- */

static size_t count_p(const struct hg_law_point *points, size_t n)
{
    size_t different = 0;

    for (size_t i = 0; i < n; i++)
        different += i == 0 || points[i].p != points[i - 1].p;
    return different;
}

/* One p more than coefficients (T1 is one), or the law passes through all points whatever they are; and two degrees of freedom, as
 * Student's t with one has intervals that say nothing. */
static const char *too_few(const struct data *d)
{
    size_t coefficients = shapes[d->law].n + 1;

    if (count_p(d->points, d->n) <= coefficients)
        return coefficients == 3 ? "fewer than four device counts, the baseline's included"
                                 : "fewer than three device counts, the baseline's included";
    return d->freedom + (double)d->n < (double)coefficients + 2 ? "too few runs" : NULL;
}

/* A coefficient where none can be, beyond its 99 % interval: withholding those beyond their 95 % interval would leave the intervals of
 * the others right too often where the truth is 0. */
static const char *out_of_range(const struct hg_law_fit *fit)
{
    for (size_t k = 0; k < fit->n; k++) {
        const struct hg_coefficient *c = &fit->coefficients[k];
        double half = c->high - c->value;

        if (c->high >= 0 && (fit->n > 1 || c->low <= 1))
            continue;
        half *= hg_stats_t_quantile(1 - LACK_LEVEL / 2, fit->freedom) /
                hg_stats_t_quantile(0.5 + HG_STATS_LEVEL / 2, fit->freedom);
        if (c->value + half < 0)
            return fit->n > 1 ? "a coefficient below 0" : "a serial fraction below 0";
        if (fit->n == 1 && c->value - half > 1)
            return "a serial fraction above 1";
    }
    return NULL;
}

const char *hg_laws_fit(enum hg_law law, const struct hg_law_point *points, size_t n,
                        struct hg_law_fit *fit)
{
    struct data d = { .law = law, .points = points, .n = n };
    const char *why;
    struct look l;

    for (size_t i = 0; i < n; i++) {
        d.runs += (double)points[i].log.n;
        d.freedom += (double)points[i].log.freedom;
    }
    why = too_few(&d);
    if (why)
        return why;
    if (!solve(&d, &l))
        return "no curve of this law fits";
    *fit =
        (struct hg_law_fit){ .law = law, .n = shapes[law].n, .log_base = l.base, .runs = d.runs };
    for (size_t k = 0; k < K_MAX; k++) {
        fit->slopes[k] = l.slopes[k];
        for (size_t j = 0; j < K_MAX; j++)
            fit->covariance[k][j] = l.covariance[k][j];
    }
    judge(&d, &l, fit);
    settle(&l, fit);
    return out_of_range(fit);
}

/* ---- What follows from them ---- */

static double coherency(const struct hg_law_fit *fit)
{
    return fit->n > 1 ? fit->coefficients[1].value : 0;
}

double hg_laws_peak(const struct hg_law_fit *fit)
{
    double sigma = fit->coefficients[0].value, kappa = coherency(fit);

    if (kappa != 0)
        return kappa > 0 ? sqrt(fmax(1, (1 - sigma) / kappa)) : NAN;
    return sigma >= 1 ? 1 : INFINITY;
}

double hg_laws_limit(const struct hg_law_fit *fit)
{
    double sigma = fit->coefficients[0].value, p = hg_laws_peak(fit);

    if (isinf(p))
        return sigma > 0 ? 1 / sigma : INFINITY;
    return p / (1 + sigma * (p - 1) + coherency(fit) * p * (p - 1));
}

double hg_laws_knee(const struct hg_law_fit *fit)
{
    return coherency(fit) < 0 ? NAN : hg_scaling_knee(fit->coefficients[0].value, coherency(fit));
}

struct hg_estimate hg_laws_predict(const struct hg_law_fit *fit, double p)
{
    double b[K_MAX] = { fit->coefficients[0].value, fit->coefficients[1].value }, x[K_MAX];
    double sign = shapes[fit->law].sign, below = denominator(fit->law, b, p), leverage, half;
    struct hg_estimate e = HG_ESTIMATE_NONE;

    if (!(below > 0))
        return e;
    terms(fit->law, p, x);
    leverage = 1 + 1 / fit->runs;
    for (size_t k = 0; k < fit->n; k++)
        x[k] = x[k] * sign / below - fit->slopes[k];
    for (size_t k = 0; k < fit->n; k++)
        for (size_t j = 0; j < fit->n; j++)
            leverage += x[k] * fit->covariance[k][j] * x[j];
    half = hg_stats_t_quantile(0.5 + HG_STATS_LEVEL / 2, fit->freedom) *
           sqrt(fit->variance * leverage);
    e.value = fit->log_base - log(p) + sign * log(below);
    e.low = e.value - half;
    e.high = e.value + half;
    e.has_interval = true;
    return e;
}
