/* SPDX-License-Identifier: Apache-2.0 */
#include "results/moments.h"

#include <math.h>

bool hg_moments_make(const double *v, size_t n, struct hg_moments *b)
{
    *b = (struct hg_moments){ 0 };
    for (size_t i = 0; i < n; i++) {
        if (!(v[i] > 0) || isinf(v[i]))
            return false;
        b->mean += log(v[i]) / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        b->squares += (log(v[i]) - b->mean) * (log(v[i]) - b->mean);
    b->n = n;
    b->freedom = n ? n - 1 : 0;
    return n > 0;
}

struct hg_moments hg_moments_of_mean(double mean, double sd, size_t n)
{
    struct hg_moments b = { .mean = log(mean), .n = mean > 0 && isfinite(mean) ? n : 0 };
    double squares = (double)(n - 1) * (sd / mean) * (sd / mean);

    if (b.n && isfinite(squares)) {
        b.squares = squares;
        b.freedom = n - 1;
    }
    return b;
}

void hg_moments_add(struct hg_moments *a, const struct hg_moments *b)
{
    double step = b->mean - a->mean, na = (double)a->n, nb = (double)b->n;

    if (!a->n || !b->n) {
        a->n = 0;
        return;
    }
    a->squares += b->squares + step * step * na * nb / (na + nb);
    a->mean += step * nb / (na + nb);
    a->n += b->n;
    a->freedom += b->freedom + 1; /* the difference of the means is one more */
}

static void set_interval(struct hg_estimate *e, double mean, double error, double df)
{
    double half = error > 0 ? hg_stats_t_quantile(0.5 + HG_STATS_LEVEL / 2, df) * error : 0;

    e->low = exp(mean - half);
    e->high = exp(mean + half);
    e->has_interval = isfinite(e->low) && isfinite(e->high);
}

static bool has_spread(const struct hg_moments *b)
{
    return b->freedom + 1 >= HG_STATS_INTERVAL_MIN;
}

/* Variance of the mean. */
static double error_of(const struct hg_moments *b)
{
    return b->squares / (double)b->freedom / (double)b->n;
}

struct hg_estimate hg_moments_estimate(const struct hg_moments *b)
{
    struct hg_estimate e = HG_ESTIMATE_NONE;

    if (b->n)
        e.value = exp(b->mean);
    if (b->n && has_spread(b))
        set_interval(&e, b->mean, sqrt(error_of(b)), (double)b->freedom);
    return e;
}

struct hg_estimate hg_moments_ratio(double value, const struct hg_moments *a,
                                    const struct hg_moments *b)
{
    struct hg_estimate e = { .value = value };
    double ea, eb, sum;

    if (!a->n || !b->n || !has_spread(a) || !has_spread(b))
        return e;
    ea = error_of(a);
    eb = error_of(b);
    sum = ea + eb;
    set_interval(&e, a->mean - b->mean, sqrt(sum),
                 sum * sum / (ea * ea / (double)a->freedom + eb * eb / (double)b->freedom));
    return e;
}
