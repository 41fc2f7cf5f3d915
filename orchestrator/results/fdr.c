/* SPDX-License-Identifier: Apache-2.0 */
#include "results/fdr.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "results/stats.h"

struct ranked {
    double p;
    size_t at;
};

static int compare_ranked(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;

    return (a->p > b->p) - (a->p < b->p);
}

void hg_fdr_adjust(double *p, size_t n)
{
    struct ranked *r = hg_alloc((n + 1) * sizeof *r);
    double least = 1;

    for (size_t i = 0; i < n; i++)
        r[i] = (struct ranked){ p[i], i };
    qsort(r, n, sizeof *r, compare_ranked);
    for (size_t i = n; i-- > 0;) {
        least = fmin(least, r[i].p * (double)n / (double)(i + 1));
        p[r[i].at] = least;
    }
    free(r);
}

/* ---- Variances ---- */

/* Derivatives of lgamma: recurrence up to 8, then the asymptotic series (DLMF 5.11.2, 5.15.8). */
static double digamma(double x)
{
    double sum = 0, y;

    for (; x < 8; x++)
        sum -= 1 / x;
    y = 1 / (x * x);
    return sum + log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y / 252));
}

static double trigamma(double x)
{
    double sum = 0, y;

    for (; x < 8; x++)
        sum += 1 / (x * x);
    y = 1 / (x * x);
    return sum + 1 / x + y / 2 + y / x * (1.0 / 6 - y * (1.0 / 30 - y / 42));
}

/* It falls from infinity to 0. */
static double trigamma_inverse(double y)
{
    double low = 1e-8, high = 1e8;

    for (int i = 0; i < 100; i++) {
        double x = sqrt(low * high);

        if (trigamma(x) > y)
            low = x;
        else
            high = x;
    }
    return sqrt(low * high);
}

/* Sum of the df in df, mean of the variances, weighted by it, in value. */
static struct hg_variance pooled(const struct hg_variance *v, size_t n, size_t *known)
{
    struct hg_variance sum = { 0 };

    *known = 0;
    for (size_t i = 0; i < n; i++) {
        sum.value += v[i].df > 0 ? v[i].value * v[i].df : 0;
        sum.df += v[i].df;
        *known += v[i].df > 0;
    }
    sum.value = sum.df > 0 ? sum.value / sum.df : 0;
    return sum;
}

/* The scaled inverse chi-square distribution that the true variances seem to come from: Smyth's moments of their logarithms. `least`:
 * variances of 0 have no logarithm. */
static struct hg_variance prior_of(const struct hg_variance *v, size_t n, size_t known,
                                   double least)
{
    double mean = 0, squares = 0, trigammas = 0, excess;
    struct hg_variance prior = { .df = HG_FDR_DF_MAX };

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n; i++) {
            double e = log(fmax(v[i].value, least)) - digamma(v[i].df / 2) + log(v[i].df / 2);

            if (!(v[i].df > 0))
                continue;
            mean += pass ? 0 : e / (double)known;
            squares += pass ? (e - mean) * (e - mean) / (double)(known - 1) : 0;
            trigammas += pass ? trigamma(v[i].df / 2) / (double)known : 0;
        }
    excess = squares - trigammas;
    if (excess > 0)
        prior.df = fmin(2 * trigamma_inverse(excess), HG_FDR_DF_MAX);
    prior.value = exp(mean + digamma(prior.df / 2) - log(prior.df / 2));
    return prior;
}

void hg_fdr_squeeze(struct hg_variance *v, size_t n)
{
    size_t known;
    struct hg_variance all = pooled(v, n, &known), prior = { 0 };

    if (all.df == 0 || all.value == 0)
        return;
    if (known >= 3)
        prior = prior_of(v, n, known, all.value * 1e-5);
    for (size_t i = 0; i < n; i++) {
        double df = prior.df + v[i].df;

        if (df > 0)
            v[i] = (struct hg_variance){ (prior.df * prior.value + v[i].df * v[i].value) / df,
                                         fmin(df, all.df) };
        else
            v[i] = all;
    }
}

struct hg_variance hg_fdr_add(struct hg_variance a, struct hg_variance b)
{
    double sum = a.value + b.value, terms = 0;

    if (a.value > 0)
        terms += a.value * a.value / a.df;
    if (b.value > 0)
        terms += b.value * b.value / b.df;
    return (struct hg_variance){ sum, terms > 0 ? fmin(sum * sum / terms, HG_FDR_DF_MAX)
                                                : HG_FDR_DF_MAX };
}

double hg_fdr_p(double d, double tolerance, struct hg_variance v)
{
    double beyond = fabs(d) - tolerance;

    if (!(beyond > 0))
        return 1;
    return v.value > 0 ? fmin(1, 2 * hg_stats_t_cdf(-beyond / sqrt(v.value), v.df)) : 0;
}
