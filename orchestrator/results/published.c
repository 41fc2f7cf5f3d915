/* SPDX-License-Identifier: Apache-2.0 */
#include "results/published.h"

#include <math.h>

static void set_interval(struct hg_estimate *e, double mean, double error, double df)
{
    double half = error > 0 ? hg_stats_t_quantile(0.5 + HG_STATS_LEVEL / 2, df) * error : 0;

    e->low = exp(mean - half);
    e->high = exp(mean + half);
    e->has_interval = isfinite(e->low) && isfinite(e->high);
}

struct hg_moments hg_moments_of_values(const double *v, size_t n)
{
    struct hg_moments m = { .n = n };

    for (size_t i = 0; i < n; i++)
        m.mean += log(v[i]) / (double)n;
    for (size_t i = 0; i < n; i++)
        m.variance += (log(v[i]) - m.mean) * (log(v[i]) - m.mean) / ((double)n - 1);
    return m;
}

struct hg_moments hg_moments_of_mean(double mean, double sd, size_t n)
{
    return (struct hg_moments){ .mean = log(mean), .variance = sd / mean * (sd / mean), .n = n };
}

struct hg_estimate hg_published_center(double mean, double sd, size_t n)
{
    struct hg_estimate e = { .value = mean };
    struct hg_moments m = hg_moments_of_mean(mean, sd, n);

    if (n >= HG_STATS_INTERVAL_MIN && isfinite(m.mean) && isfinite(m.variance))
        set_interval(&e, m.mean, sqrt(m.variance / (double)n), (double)(n - 1));
    return e;
}

struct hg_estimate hg_published_ratio(double value, const struct hg_moments *a,
                                      const struct hg_moments *b)
{
    struct hg_estimate e = { .value = value };
    double ea = a->variance / (double)a->n, eb = b->variance / (double)b->n, sum = ea + eb;

    if (a->n < HG_STATS_INTERVAL_MIN || b->n < HG_STATS_INTERVAL_MIN || !isfinite(sum) ||
        !isfinite(a->mean - b->mean))
        return e;
    set_interval(&e, a->mean - b->mean, sqrt(sum),
                 sum * sum / (ea * ea / (double)(a->n - 1) + eb * eb / (double)(b->n - 1)));
    return e;
}
