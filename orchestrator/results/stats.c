/* SPDX-License-Identifier: Apache-2.0 */
#include "results/stats.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Order statistics whose level is within this are taken as they are. */
#define HG_ORDER_LEVEL_MAX 0.97

const char *const hg_statistic_words[2] = {
    [HG_GEOMETRIC_MEAN] = "geometric mean", [HG_MEDIAN] = "median"
};

static int compare_doubles(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;

    return (a > b) - (a < b);
}

double hg_stats_median(double *v, size_t n)
{
    if (n == 0)
        return NAN;
    qsort(v, n, sizeof *v, compare_doubles);
    return n % 2 ? v[n / 2] : v[n / 2 - 1] / 2 + v[n / 2] / 2;
}

/* The continued fraction of the incomplete beta function (DLMF 8.17.22) by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), f;

    d = 1 / (fabs(d) < tiny ? tiny : d);
    f = d;
    for (int m = 1; m <= 10000; m++) {
        double steps[2] = { m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)) };
        double change = 1;

        for (int i = 0; i < 2; i++) {
            d = 1 + steps[i] * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + steps[i] / c;
            c = fabs(c) < tiny ? tiny : c;
            f *= c * d;
            change = c * d;
        }
        if (fabs(change - 1) < 4 * DBL_EPSILON)
            break;
    }
    return f;
}

double hg_stats_beta(double a, double b, double x)
{
    double front;

    if (x <= 0)
        return 0;
    if (x >= 1)
        return 1;
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    /* The fraction converges fast on the near side of the mean; the other side by symmetry. */
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* Share of the distribution above t >= 0. Kept apart from the cdf: near 0 it keeps its digits. */
static double t_upper_tail(double t, double df)
{
    /* df / (df + t^2) rounds towards 1 when t is small: the complement has the digits there. */
    if (t < 1)
        return 0.5 - 0.5 * hg_stats_beta(0.5, df / 2, t * t / (df + t * t));
    return 0.5 * hg_stats_beta(df / 2, 0.5, df / (df + t * t));
}

double hg_stats_t_cdf(double t, double df)
{
    return t >= 0 ? 1 - t_upper_tail(t, df) : t_upper_tail(-t, df);
}

static double t_density(double t, double df)
{
    double front = lgamma((df + 1) / 2) - lgamma(df / 2) - 0.5 * log(df * M_PI);

    return exp(front - (df + 1) / 2 * log1p(t * t / df));
}

/* Newton's steps on the tail, kept inside a bracket that halves when a step leaves it. */
double hg_stats_t_quantile(double p, double df)
{
    double tail = p < 0.5 ? p : 1 - p, low = 0, high = 1, t;

    if (p == 0.5)
        return 0;
    while (t_upper_tail(high, df) > tail && high < 1e300) {
        low = high;
        high *= 2;
    }
    t = low / 2 + high / 2;
    for (int i = 0; i < 200 && high - low > 2 * DBL_EPSILON * high; i++) {
        double excess = t_upper_tail(t, df) - tail, next = t + excess / t_density(t, df);

        if (excess > 0)
            low = t;
        else
            high = t;
        if (!(next > low && next < high))
            next = low / 2 + high / 2;
        if (fabs(next - t) <= 2 * DBL_EPSILON * t)
            break;
        t = next;
    }
    return p < 0.5 ? -t : t;
}

/* Mean and variance (n - 1) of the logarithms. False unless there are enough positive values. */
static bool log_moments(const double *v, size_t n, double *mean, double *variance)
{
    double sum = 0, squares = 0;

    if (n < HG_STATS_INTERVAL_MIN)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!(v[i] > 0))
            return false;
        sum += log(v[i]);
    }
    *mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (log(v[i]) - *mean) * (log(v[i]) - *mean);
    *variance = squares / (double)(n - 1);
    return true;
}

static double log_mean(const double *v, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += log(v[i]); /* NaN below 0, -infinity at 0 */
    return sum / (double)n;
}

static void set_interval(struct hg_estimate *e, double mean, double half)
{
    e->low = fmin(e->value, exp(mean - half)); /* without any spread: to the last digit */
    e->high = fmax(e->value, exp(mean + half));
    e->has_interval = isfinite(e->low) && isfinite(e->high);
}

/* Level of the interval between the d-th smallest and the d-th largest of n values: 1 - 2 P(X < d), X binomial (n, 1/2). */
static double order_level(size_t n, size_t d)
{
    return 1 - 2 * hg_stats_beta((double)(n - d + 1), (double)d, 0.5);
}

/* The innermost pair of order statistics that reaches the level. */
static size_t order_of(size_t n)
{
    size_t low = 1, high = n / 2 + 1;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (order_level(n, middle) >= HG_STATS_LEVEL)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The value a share of the way from one order statistic to its inner neighbour. */
static double between(double outer, double inner, double share)
{
    return outer > 0 && inner > 0 ? exp((1 - share) * log(outer) + share * log(inner))
                                  : (1 - share) * outer + share * inner;
}

/* Interval of the median of sorted values. Where two order statistics reach more than 97 %, their inner neighbours are
 * approached (Hettmansperger and Sheather 1986). */
static void set_order_interval(struct hg_estimate *e, const double *v, size_t n)
{
    size_t d = order_of(n);
    double outer = order_level(n, d), inner = order_level(n, d + 1), share = 0, excess;

    if (outer > HG_ORDER_LEVEL_MAX && 2 * (d + 1) <= n) {
        excess = (outer - HG_STATS_LEVEL) / (outer - inner);
        share = (double)(n - d) * excess / ((double)d + (double)(n - 2 * d) * excess);
    }
    e->low = between(v[d - 1], v[share > 0 ? d : d - 1], share);
    e->high = between(v[n - d], v[share > 0 ? n - d - 1 : n - d], share);
    e->has_interval = true;
}

static bool all_positive(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(v[i] > 0))
            return false;
    return true;
}

struct hg_estimate hg_stats_center(double *v, size_t n, enum hg_statistic statistic)
{
    struct hg_estimate e = { .value = hg_stats_median(v, n) };
    double mean, variance;

    if (statistic == HG_MEDIAN || !all_positive(v, n)) {
        if (n >= HG_STATS_MEDIAN_MIN)
            set_order_interval(&e, v, n);
        return e;
    }
    if (n > 1 && v[0] < v[n - 1]) /* equal values keep their last digit */
        e.value = exp(log_mean(v, n));
    if (log_moments(v, n, &mean, &variance))
        set_interval(&e, log(e.value),
                     hg_stats_t_quantile(0.5 + HG_STATS_LEVEL / 2, (double)(n - 1)) *
                         sqrt(variance / (double)n));
    return e;
}

/* A half width of a ratio from those of its two sides, all on the logarithms. */
static double combine(double half_a, size_t na, double half_b, size_t nb)
{
    const double p = 0.5 + HG_STATS_LEVEL / 2;
    double dfa = (double)na - 1, dfb = (double)nb - 1;
    double ea = half_a / hg_stats_t_quantile(p, dfa), eb = half_b / hg_stats_t_quantile(p, dfb);
    double variance = ea * ea + eb * eb, df;

    if (variance == 0) /* all equal on both sides: Welch's df is 0/0, the interval has no width */
        return 0;
    df = variance * variance / (pow(ea, 4) / dfa + pow(eb, 4) / dfb); /* Welch-Satterthwaite */
    return hg_stats_t_quantile(p, df) * sqrt(variance);
}

struct hg_estimate hg_stats_ratio(double *a, size_t na, double *b, size_t nb,
                                  enum hg_statistic statistic)
{
    struct hg_estimate x = hg_stats_center(a, na, statistic), y = hg_stats_center(b, nb, statistic);
    struct hg_estimate e = { .value = x.value / y.value };

    if (!x.has_interval || !y.has_interval || !(x.low > 0) || !(y.low > 0))
        return e;
    e.low = e.value / exp(combine(log(x.value / x.low), na, log(y.high / y.value), nb));
    e.high = e.value * exp(combine(log(x.high / x.value), na, log(y.value / y.low), nb));
    e.has_interval = isfinite(e.low) && isfinite(e.high);
    return e;
}

double hg_stats_spread(const struct hg_estimate *e)
{
    return e->has_interval ? fmax(e->high / e->value, e->value / e->low) - 1 : 0;
}
