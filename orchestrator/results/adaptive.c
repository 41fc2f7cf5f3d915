/* SPDX-License-Identifier: Apache-2.0 */
#include "results/adaptive.h"

#include <math.h>

#define LEVEL_ENDS 0.96
#define LEVEL_BETWEEN 0.98
#define Z_BETWEEN 2.3263 /* the normal quantile of that level, rounded down */

/* Half width of the logarithm's interval, in units of its standard deviation. */
static double width(size_t n, const struct hg_repeats *rule)
{
    bool end = (long long)n <= rule->min || (long long)n >= rule->max;
    double level = end ? LEVEL_ENDS : LEVEL_BETWEEN;

    return hg_stats_t_quantile(0.5 + level / 2, (double)(n - 1)) / sqrt((double)n);
}

/* Mean and standard deviation (n - 1) of the logarithms. */
static bool log_moments(const double *v, size_t n, double *mean, double *s)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < n; i++)
        sum += v[i] > 0 ? log(v[i]) : NAN;
    *mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (log(v[i]) - *mean) * (log(v[i]) - *mean);
    *s = sqrt(squares / (double)(n - 1));
    return n >= HG_STATS_INTERVAL_MIN && isfinite(*s);
}

static struct hg_estimate estimate(double mean, double half)
{
    return (struct hg_estimate){
        .value = exp(mean), .low = exp(mean - half), .high = exp(mean + half), .has_interval = true
    };
}

struct hg_estimate hg_adaptive_center(const double *v, size_t n, const struct hg_repeats *rule)
{
    struct hg_estimate e = HG_ESTIMATE_NONE;
    double mean, s;

    if (!n)
        return e;
    if (log_moments(v, n, &mean, &s))
        return estimate(mean, s * width(n, rule));
    e.value = exp(mean);
    return e;
}

struct hg_estimate hg_adaptive_ratio(const struct hg_estimate *a, const struct hg_estimate *b)
{
    struct hg_estimate e = { .value = a->value / b->value };

    if (a->has_interval && b->has_interval)
        e = estimate(log(e.value), hypot(log(a->high / a->low), log(b->high / b->low)) / 2);
    return e;
}

bool hg_adaptive_is_done(const struct hg_estimate *e, const struct hg_repeats *rule)
{
    return e->has_interval && hg_stats_spread(e) <= rule->until;
}

size_t hg_adaptive_want(const double *v, size_t n, const struct hg_repeats *rule)
{
    struct hg_estimate e = hg_adaptive_center(v, n, rule);
    double mean, s, z, least, max = (double)rule->max;
    size_t want;

    if (!e.has_interval || hg_adaptive_is_done(&e, rule) || (double)n >= max ||
        !log_moments(v, n, &mean, &s))
        return n;
    z = Z_BETWEEN * s / log1p(rule->until); /* t is above the normal quantile */
    least = fmin(fmax(floor(z * z), (double)n + 1), max);
    for (want = (size_t)least; (double)want < max; want++)
        if (s * width(want, rule) <= log1p(rule->until))
            break;
    return want;
}
