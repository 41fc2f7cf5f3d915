/* SPDX-License-Identifier: Apache-2.0 */
#include "results/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "results/stats.h"

/* Smallest factor, as a logarithm, that is worth a note. */
#define WORTH log(1.05)

/* A run this many times the others is named whatever their spread. */
#define FAR log(2)

/* Distances beyond which a value is an outlier: in standard deviations estimated by the median absolute deviation, and for three, four
 * and five values in ranges of the others. */
#define DEVIATIONS 8
static const double ranges[] = { [3] = 60, [4] = 10, [5] = 4 };

#define NORMAL_99 2.576 /* 99 % of normal values lie within so many standard deviations */

/* Logarithms in the given order; free() them. */
static double *logs_of(const double *v, size_t n)
{
    double *y = hg_alloc((n + 1) * sizeof *y);

    for (size_t i = 0; i < n; i++)
        y[i] = log(v[i]);
    return y;
}

/* Range of all values but one. */
static double range_of_others(const double *y, size_t n, size_t but)
{
    double low = INFINITY, high = -INFINITY;

    for (size_t i = 0; i < n; i++)
        if (i != but) {
            low = fmin(low, y[i]);
            high = fmax(high, y[i]);
        }
    return high - low;
}

/* Median of n values in *median, and their median absolute deviation, scaled to the standard deviation of normal values. */
static double deviation(const double *y, size_t n, double *room, double *median)
{
    memcpy(room, y, n * sizeof *room);
    *median = hg_stats_median(room, n);
    for (size_t i = 0; i < n; i++)
        room[i] = fabs(y[i] - *median);
    return 1.4826 * hg_stats_median(room, n);
}

size_t hg_sample_outliers(const double *v, size_t n, bool *outlier)
{
    double *y = logs_of(v, n), *room = hg_alloc((n + 1) * sizeof *room), median;
    double limit = DEVIATIONS * deviation(y, n, room, &median);
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        if (n >= HG_SAMPLE_MIN && n < sizeof ranges / sizeof *ranges)
            limit = ranges[n] * range_of_others(y, n, i);
        outlier[i] = n >= HG_SAMPLE_MIN && fabs(y[i] - median) > fmin(FAR, fmax(WORTH, limit));
        count += outlier[i];
    }
    free(room);
    free(y);
    return count;
}

static int compare_doubles(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;

    return (a > b) - (a < b);
}

/* Mean of n values; adds their squared deviations to *squares. */
static double mean_of(const double *y, size_t n, double *squares)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += y[i];
    for (size_t i = 0; i < n; i++)
        *squares += pow(y[i] - sum / (double)n, 2);
    return sum / (double)n;
}

size_t hg_sample_groups(const double *v, size_t n, double centers[static 2])
{
    double *y = logs_of(v, n), best = 40 / (double)n;
    size_t least = n / 5 > 2 ? n / 5 : 2, lower = 0;

    qsort(y, n, sizeof *y, compare_doubles);
    for (size_t k = least; n >= HG_SAMPLE_GROUPS_MIN && n <= HG_SAMPLE_MAX && k + least <= n; k++) {
        double squares = 0, a = mean_of(y, k, &squares), b = mean_of(y + k, n - k, &squares);
        double gap = y[k] - y[k - 1], within = sqrt(squares / (double)(n - 2));

        if (gap <= WORTH || gap <= best * within)
            continue;
        best = within > 0 ? gap / within : INFINITY;
        lower = k;
        centers[0] = exp(a);
        centers[1] = exp(b);
    }
    free(y);
    return lower;
}

/* Correlation of the values with their order; 0 if all are equal. */
static double order_correlation(const double *y, size_t n)
{
    double squares = 0, mean = mean_of(y, n, &squares), product = 0, order = 0;

    for (size_t i = 0; i < n; i++) {
        double at = (double)i - ((double)n - 1) / 2;

        product += (y[i] - mean) * at;
        order += at * at;
    }
    return squares > 0 ? product / sqrt(squares * order) : 0;
}

double hg_sample_drift(const double *v, size_t n)
{
    double *y, r, t, squares = 0, change;

    if (n < HG_SAMPLE_GROUPS_MIN)
        return 1;
    y = logs_of(v, n);
    r = order_correlation(y, n);
    t = fabs(r) < 1 ? r * sqrt((double)(n - 2) / (1 - r * r)) : INFINITY;
    change = mean_of(y + (n + 1) / 2, n / 2, &squares) - mean_of(y, n / 2, &squares);
    free(y);
    return fabs(t) > hg_stats_t_quantile(0.995, (double)(n - 2)) ? exp(change) : 1;
}

/* D'Agostino's standard normal deviate of the skewness (Biometrika 57(3), 1970). */
static double skewness_deviate(double skewness, double n)
{
    double y = skewness * sqrt((n + 1) * (n + 3) / (6 * (n - 2)));
    double kurtosis =
        3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2) * (n + 5) * (n + 7) * (n + 9));
    double w2 = sqrt(2 * (kurtosis - 1)) - 1;

    return asinh(y / sqrt(2 / (w2 - 1))) / sqrt(log(w2) / 2);
}

int hg_sample_skew(const double *v, size_t n)
{
    double *y, mean, squares = 0, cubes = 0, low = INFINITY, high = -INFINITY, z = 0;

    if (n < HG_SAMPLE_SKEW_MIN)
        return 0;
    y = logs_of(v, n);
    mean = mean_of(y, n, &squares);
    for (size_t i = 0; i < n; i++) {
        cubes += pow(y[i] - mean, 3);
        low = fmin(low, y[i]);
        high = fmax(high, y[i]);
    }
    free(y);
    if (high - low > WORTH)
        z = skewness_deviate(cubes / (double)n / pow(squares / (double)n, 1.5), (double)n);
    return z > NORMAL_99 ? 1 : z < -NORMAL_99 ? -1 : 0;
}

double hg_sample_dependence(const double *v, size_t n)
{
    double *y, squares = 0, steps = 0, m = (double)n;

    if (n < HG_SAMPLE_GROUPS_MIN)
        return 0;
    y = logs_of(v, n);
    mean_of(y, n, &squares);
    for (size_t i = 1; i < n; i++)
        steps += pow(y[i] - y[i - 1], 2);
    free(y);
    return squares > 0 ? (steps / squares - 2) / sqrt(4 * (m - 2) / (m * m - 1)) : 0;
}
