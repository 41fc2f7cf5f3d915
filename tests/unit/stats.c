/* SPDX-License-Identifier: Apache-2.0 */
/* results/stats and results/scaling. Expected values: t quantiles and intervals with 40 digits by mpmath
 * (scipy's last digits are wrong), the beta function by scipy.special.betainc, fits by
 * scipy.optimize.nnls and numpy on the formulas of reports/formulas.md. */
#include "numbers.h"

#include "results/scaling.h"
#include "results/stats.h"

static void test_the_median_is_the_middle(void **state)
{
    double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 3, 2 }, huge[] = { 1.5e308, 1.7e308 };

    (void)state;
    assert_near(hg_stats_median(odd, 3), 2, 0);
    assert_near(hg_stats_median(even, 4), 2.5, 0);
    assert_near(hg_stats_median(huge, 2), 1.6e308, 1e-15);
    assert_true(isnan(hg_stats_median(NULL, 0)));
}

static void test_the_incomplete_beta_function(void **state)
{
    static const struct {
        double a, b, x, value;
    } cases[] = {
        { 0.5, 0.5, 0.3, 0.36901011956554541 },
        { 1, 3, 0.25, 0.578125 },
        { 2, 5, 0.5, 0.890625 },
        { 10, 0.5, 0.99, 0.65792817515678426 },
        { 50.5, 20.25, 0.7, 0.38564925527244309 },
        { 0.5, 500, 0.001, 0.6826895526900576 },
        { 0.1, 2, 0.001, 0.55125583826663693 },
        { 300, 300, 0.52, 0.83640260798475319 },
        { 2, 3, 0, 0 },
        { 2, 3, 1, 1 },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++)
        assert_near(hg_stats_beta(cases[i].a, cases[i].b, cases[i].x), cases[i].value, 1e-12);
}

static void test_quantiles_of_students_t(void **state)
{
    static const struct {
        double p, df, t;
    } cases[] = {
        { 0.975, 1, 12.7062047361747046 },
        { 0.975, 2, 4.30265272974946385 },
        { 0.975, 3, 3.18244630528370959 },
        { 0.975, 4, 2.77644510519779436 },
        { 0.975, 9, 2.26215716279820554 },
        { 0.975, 19, 2.09302405440830977 },
        { 0.975, 30, 2.04227245630123831 },
        { 0.975, 120, 1.97993040508244085 },
        { 0.975, 1000000, 1.95996635681410704 },
        { 0.95, 5, 2.01504837333302424 },
        { 0.995, 7, 3.49948329735049392 },
        { 0.9, 1.5, 2.19639841756553737 },
        { 0.975, 2.37, 3.71892083979745842 },
        { 0.975, 17.776, 2.10282131038022169 },
        { 0.025, 1, -12.7062047361747046 },
        { 0.999999, 2, 707.10572051576833 },
        { 0.5, 3, 0 },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        assert_near(hg_stats_t_quantile(cases[i].p, cases[i].df), cases[i].t, 1e-9);
        assert_near(hg_stats_t_cdf(cases[i].t, cases[i].df), cases[i].p, 1e-10);
    }
}

static void test_intervals_of_geometric_means_and_ratios(void **state)
{
    double a[] = { 12.1, 12.4, 12.2 }, b[] = { 101.7, 98.2, 103.9, 100.4, 99.9 };
    double base[] = { 12.1, 12.4, 12.2, 12.9 }, mine[] = { 6.6, 6.9, 6.3 };
    double same[] = { 10.1, 10.1, 10.1 }, other[] = { 10, 11, 12 };
    struct hg_estimate e = hg_stats_center(a, 3, HG_GEOMETRIC_MEAN);

    (void)state;
    assert_true(e.has_interval);
    assert_near(e.value, 12.232699164700968, 1e-13);
    assert_near(e.low, 11.8597801801408191, 1e-12);
    assert_near(e.high, 12.6173442155905954, 1e-12);
    e = hg_stats_center(b, 5, HG_GEOMETRIC_MEAN);
    assert_near(e.low, 98.1991789650943394, 1e-12);
    assert_near(e.high, 103.473947836046089, 1e-12);
    e = hg_stats_ratio(base, 4, mine, 3, HG_GEOMETRIC_MEAN);
    assert_near(e.value, 1.8795099270070683, 1e-12);
    assert_near(e.low, 1.71374258591366546, 1e-12);
    assert_near(e.high, 2.06131165482753391, 1e-12);
    e = hg_stats_ratio(other, 3, same, 3, HG_GEOMETRIC_MEAN); /* no spread on one side */
    assert_near(e.low, 0.874598637159558542 / 1.01, 1e-12);
    e = hg_stats_ratio(same, 3, same, 3, HG_GEOMETRIC_MEAN);
    assert_near(e.low, 1, 1e-15);
    assert_near(hg_stats_spread(&e), 0, 0);
    assert_true(hg_stats_center(same, 3, HG_GEOMETRIC_MEAN).value == 10.1);
}

/* Levels of order statistics: scipy's binom(n, 0.5). Shares between them: Hettmansperger and Sheather's formula in exact fractions. */
static void test_intervals_of_medians(void **state)
{
    double six[] = { 6, 1, 3, 2, 5, 4 }, ten[10], zero[] = { 0, -1, 2, 3, 4, 5 }, share;
    struct hg_estimate e = hg_stats_center(six, 6, HG_MEDIAN);

    (void)state;
    assert_near(e.value, 3.5, 1e-15); /* 96.9 %: both ends */
    assert_near(e.low, 1, 0);
    assert_near(e.high, 6, 0);
    assert_near(hg_stats_spread(&e), 2.5, 1e-15); /* 3.5 / 1, not 6 / 3.5 */
    for (int i = 0; i < 10; i++)
        ten[i] = exp(10 - i);
    e = hg_stats_center(ten, 10, HG_MEDIAN); /* second and third: 97.85 and 89.06 % */
    share = (1002. / 1024 - 0.95) / (90. / 1024);
    share = 8 * share / (2 + 6 * share);
    assert_near(log(e.low), 2 + share, 1e-12);
    assert_near(log(e.high), 9 - share, 1e-12);
    e = hg_stats_center(zero, 6, HG_GEOMETRIC_MEAN); /* has no logarithms */
    assert_near(e.value, 2.5, 1e-15);
    assert_near(e.low, -1, 0);
    assert_false(hg_stats_ratio(zero, 6, six, 6, HG_MEDIAN).has_interval);
    e = hg_stats_ratio(six, 6, six, 6, HG_MEDIAN);
    assert_true(e.value == 1 && e.low < 1 && e.high > 1);
    assert_near(e.low * e.high, 1, 1e-12);
}

static void test_no_interval_from_too_few_or_without_logarithms(void **state)
{
    double two[] = { 1, 2 }, zero[] = { 0, 1, 2 }, three[] = { 1, 2, 3 },
           five[] = { 1, 2, 3, 4, 5 };

    (void)state;
    assert_false(hg_stats_center(two, 2, HG_GEOMETRIC_MEAN).has_interval);
    assert_false(hg_stats_center(zero, 3, HG_GEOMETRIC_MEAN).has_interval);
    assert_false(hg_stats_center(five, 5, HG_MEDIAN).has_interval);
    assert_false(hg_stats_ratio(two, 2, three, 3, HG_GEOMETRIC_MEAN).has_interval);
    assert_false(hg_stats_ratio(three, 3, two, 2, HG_GEOMETRIC_MEAN).has_interval);
    assert_true(hg_stats_ratio(three, 3, three, 3, HG_GEOMETRIC_MEAN).has_interval);
}

/* Logarithm of a draw, and the median of the distribution (for the first also its geometric mean). */
static double draw(size_t kind, uint64_t *seed, double *median)
{
    double z = normal(seed), chi = 0;

    switch (kind) {
    case 0: /* log-normal */
        *median = 0;
        return 0.05 * z;
    case 1: /* heavy tails: Student's t with 3 degrees of freedom */
        for (int i = 0; i < 3; i++)
            chi += pow(normal(seed), 2);
        *median = 0;
        return 0.05 * z / sqrt(chi / 3);
    case 2: /* one in ten takes three times as long: the median is the 0.5 / 0.9 quantile of the others */
        *median = 0.05 * 0.139710298881862;
        return 0.05 * z + (uniform(seed) < 0.1 ? log(3) : 0);
    default: /* two modes, 65 and 35 %: the 0.5 / 0.65 quantile of the first */
        *median = 0.01 * 0.736315917376130;
        return 0.01 * z + (uniform(seed) < 0.35 ? log(2.8) : 0);
    }
}

static bool covers(struct hg_estimate e, double value)
{
    return e.low <= value && value <= e.high;
}

/* The interval of the statistic that is printed holds it 93 to 97 times in a hundred. */
static void test_intervals_cover_what_they_promise(void **state)
{
    static const size_t sizes[] = { 3, 5, 6, 10, 20 };
    const double draws = 4000, error = sqrt(0.03 * 0.97 / draws); /* of a share of the draws */
    uint64_t seed = 42;

    (void)state;
    for (size_t kind = 0; kind < 4; kind++)
        for (size_t s = kind ? 2 : 0; s < N_OF(sizes); s++) {
            enum hg_statistic statistic =
                sizes[s] < HG_STATS_MEDIAN_MIN ? HG_GEOMETRIC_MEAN : HG_MEDIAN;
            double center = 0, ratio = 0, median = 0;

            for (int i = 0; i < (int)draws; i++) {
                double a[20], b[20];

                for (size_t k = 0; k < sizes[s]; k++) {
                    a[k] = 100 * exp(draw(kind, &seed, &median));
                    b[k] = 25 * exp(2 * draw(kind, &seed, &median));
                }
                center += covers(hg_stats_center(a, sizes[s], statistic), 100 * exp(median));
                ratio +=
                    covers(hg_stats_ratio(a, sizes[s], b, sizes[s], statistic), 4 * exp(-median));
            }
            assert_true(fabs(center / draws - 0.95) < 0.02 + 3 * error);
            assert_true(ratio / draws > 0.93); /* with few runs the ratio is careful */
        }
}

static void test_karp_flatt_and_efficiency(void **state)
{
    (void)state;
    assert_near(hg_scaling_efficiency(3.26, 4), 0.815, 1e-12);
    assert_near(hg_scaling_karp_flatt(1 / (0.1 + 0.9 / 8), 8), 0.1, 1e-12);
    assert_near(hg_scaling_karp_flatt(8, 8), 0, 1e-12);
    assert_true(hg_scaling_karp_flatt(8.5, 8) < 0);
    assert_true(isnan(hg_scaling_karp_flatt(1, 1)));
    assert_true(isnan(hg_scaling_karp_flatt(1, 0.5)));
}

static void test_the_knee_is_where_a_device_costs_more_than_it_brings(void **state)
{
    (void)state;
    assert_near(hg_scaling_knee(0.05, 0), 19, 1e-12);
    assert_true(isinf(hg_scaling_knee(0, 0)));
    assert_near(hg_scaling_knee(0.6, 0), 1, 0);
    assert_near(hg_scaling_knee(1.5, 0.1), 1, 0);
    /* kappa alone: 1 + kappa p - 3 kappa p^2 = 0 */
    assert_near(hg_scaling_knee(0, 0.01), (0.01 + sqrt(0.0001 + 0.12)) / 0.06, 1e-12);
}

static void test_strong_and_weak_are_told_by_the_work(void **state)
{
    static const struct {
        double work, p;
        enum hg_scaling_kind kind;
    } cases[] = {
        { 1, 4, HG_SCALING_STRONG },    { 1.015, 4, HG_SCALING_STRONG },
        { 4, 4, HG_SCALING_WEAK },      { 3.95, 4, HG_SCALING_WEAK },
        { 2, 4, HG_SCALING_NEITHER },   { NAN, 4, HG_SCALING_UNKNOWN },
        { 1, NAN, HG_SCALING_UNKNOWN },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++)
        assert_int_equal(hg_scaling_kind_of(cases[i].work, cases[i].p), cases[i].kind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_median_is_the_middle),
        cmocka_unit_test(test_the_incomplete_beta_function),
        cmocka_unit_test(test_quantiles_of_students_t),
        cmocka_unit_test(test_intervals_of_geometric_means_and_ratios),
        cmocka_unit_test(test_intervals_of_medians),
        cmocka_unit_test(test_no_interval_from_too_few_or_without_logarithms),
        cmocka_unit_test(test_intervals_cover_what_they_promise),
        cmocka_unit_test(test_karp_flatt_and_efficiency),
        cmocka_unit_test(test_the_knee_is_where_a_device_costs_more_than_it_brings),
        cmocka_unit_test(test_strong_and_weak_are_told_by_the_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
