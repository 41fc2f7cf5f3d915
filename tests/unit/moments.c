/* SPDX-License-Identifier: Apache-2.0 */
#include "numbers.h"

#include "results/moments.h"

#define DRAWS 4000

static uint64_t seed = 20261123;

/* What a paper prints of n runs. */
static void publish(double mean, double cv, bool is_log, size_t n, double *m, double *sd)
{
    double v[32], sum = 0, squares = 0;

    for (size_t i = 0; i < n; i++)
        sum += v[i] = is_log ? mean * exp(cv * normal(&seed)) : mean * (1 + cv * normal(&seed));
    *m = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (v[i] - *m) * (v[i] - *m);
    *sd = sqrt(squares / (double)(n - 1));
}

static bool covers(const struct hg_estimate *e, double truth)
{
    assert_true(e->has_interval && e->low <= e->value && e->value <= e->high);
    return e->low <= truth && truth <= e->high;
}

/* The interval from a mean and a standard deviation covers the true value, and that of a ratio the true ratio, in 95 % of draws. Welch's
 * with three runs is on the safe side, here as with single results. */
static void test_intervals_cover_the_truth(void **state)
{
    static const size_t runs[] = { 3, 5, 10 };
    static const double spreads[] = { 0.01, 0.1 };

    (void)state;
    for (int k = 0; k < 12; k++) {
        size_t n = runs[k % 3], center = 0, ratio = 0;
        double cv = spreads[k / 3 % 2], a, sa, b, sb;
        bool is_log = k >= 6;

        for (int i = 0; i < DRAWS; i++) {
            struct hg_moments ma, mb;
            struct hg_estimate e;

            publish(186.6, cv, is_log, n, &a, &sa);
            publish(57.2, cv, is_log, n, &b, &sb);
            ma = hg_moments_of_mean(a, sa, n);
            mb = hg_moments_of_mean(b, sb, n);
            e = hg_moments_estimate(&ma);
            center += covers(&e, is_log ? 186.6 * exp(cv * cv / 2) : 186.6);
            e = hg_moments_ratio(a / b, &ma, &mb);
            ratio += covers(&e, 186.6 / 57.2);
        }
        print_message("n %zu, cv %.2f, %s: center %.3f, ratio %.3f\n", n, cv,
                      is_log ? "log-normal" : "normal", (double)center / DRAWS,
                      (double)ratio / DRAWS);
        assert_in_range(center, 0.93 * DRAWS, 0.97 * DRAWS);
        assert_in_range(ratio, 0.93 * DRAWS, 0.98 * DRAWS);
    }
}

static struct hg_moments moments(const double *v, size_t n)
{
    struct hg_moments m;

    assert_true(hg_moments_make(v, n, &m));
    return m;
}

/* The two ways to the same figures agree where the spread is small. */
static void test_a_published_mean_is_as_good_as_its_runs(void **state)
{
    double a[] = { 233.48, 235.41, 234.85 }, b[] = { 57.24, 56.61, 57.87 };
    struct hg_estimate center = hg_stats_center(a, 3, HG_GEOMETRIC_MEAN),
                       ratio = hg_stats_ratio(a, 3, b, 3, HG_GEOMETRIC_MEAN);
    struct hg_moments ma = hg_moments_of_mean(234.58, 0.9929, 3), mb = moments(b, 3);
    struct hg_estimate published = hg_moments_estimate(&ma);
    struct hg_estimate speedup = hg_moments_ratio(234.58 / 57.24, &ma, &mb);

    (void)state;
    assert_float_equal(published.low, center.low, 0.02);
    assert_float_equal(published.high, center.high, 0.02);
    assert_float_equal(speedup.low, ratio.low, 0.002);
    assert_float_equal(speedup.high, ratio.high, 0.002);
}

static void test_without_a_spread_there_is_no_interval(void **state)
{
    struct hg_moments known = hg_moments_of_mean(100, 1, 3), few = hg_moments_of_mean(50, 1, 2),
                      one = moments((const double[]){ 50 }, 1),
                      unknown = hg_moments_of_mean(50, NAN, 3),
                      still = hg_moments_of_mean(50, 0, 3);
    struct hg_estimate e = hg_moments_estimate(&unknown);

    (void)state;
    assert_false(e.has_interval);
    assert_true(unknown.n == 3 && fabs(e.value - 50) < 1e-12);
    assert_false(hg_moments_estimate(&few).has_interval);
    assert_false(hg_moments_ratio(2, &known, &few).has_interval);
    assert_false(hg_moments_ratio(2, &known, &one).has_interval);
    assert_false(hg_moments_ratio(2, &known, &unknown).has_interval);
    assert_true(hg_moments_ratio(2, &known, &still).has_interval);
    e = hg_moments_ratio(1, &still, &still);
    assert_true(e.has_interval && e.low == 1 && e.high == 1);
    assert_int_equal(hg_moments_of_mean(-50, 1, 3).n, 0);
    assert_false(hg_moments_make((const double[]){ 1, 0 }, 2, &few));
    assert_int_equal(few.n, 0);
}

static void test_added_runs_are_those_of_one_place(void **state)
{
    const double v[] = { 100, 104, 97, 101, 99, 108, 95 };
    struct hg_moments all = moments(v, 7), sum = moments(v, 1), rest = moments(v + 1, 3),
                      last = moments(v + 4, 3), none = { 0 }, unknown;

    (void)state;
    hg_moments_add(&sum, &rest);
    hg_moments_add(&sum, &last);
    assert_near(sum.mean, all.mean, 1e-14);
    assert_near(sum.squares, all.squares, 1e-12);
    assert_int_equal(sum.n, 7);
    assert_int_equal(sum.freedom, 6);
    unknown = hg_moments_of_mean(100, NAN, 3);
    hg_moments_add(&unknown, &last); /* spreads of three, and that between the means */
    assert_int_equal(unknown.n, 6);
    assert_int_equal(unknown.freedom, 3);
    hg_moments_add(&sum, &none);
    assert_int_equal(sum.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intervals_cover_the_truth),
        cmocka_unit_test(test_a_published_mean_is_as_good_as_its_runs),
        cmocka_unit_test(test_without_a_spread_there_is_no_interval),
        cmocka_unit_test(test_added_runs_are_those_of_one_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
