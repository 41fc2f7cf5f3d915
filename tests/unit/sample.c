/* SPDX-License-Identifier: Apache-2.0 */
/* results/sample: what is found, and how often independent draws raise a sign although there is nothing. */
#include "numbers.h"

#include "results/sample.h"

static const size_t sizes[] = { 3, 4, 5, 6, 7, 8, 10, 15, 20, 50 };

static void test_signs_in_known_samples(void **state)
{
    const double slow[] = { 60, 61, 610 }, same[] = { 5, 5, 5, 5, 5, 5 };
    const double modes[] = { 100, 280, 100.8, 101, 290, 100.5, 285, 100.2 };
    const double rising[] = { 10, 10.2, 10.5, 10.6, 10.9, 11.1, 11.3, 11.4 };
    const double tail[] = { 100, 112, 100.3, 101, 103, 100.1, 106, 100.6, 100.2, 125 };
    double centers[2], rates[10];
    bool outlier[8];

    (void)state;
    for (size_t i = 0; i < 10; i++)
        rates[i] = 1 / tail[i];
    assert_int_equal(hg_sample_outliers(slow, 3, outlier), 1);
    assert_true(outlier[2] && !outlier[0] && !outlier[1]);
    assert_int_equal(hg_sample_outliers(slow, 2, outlier), 0);
    assert_int_equal(hg_sample_groups(modes, 8, centers), 5);
    assert_true(fabs(centers[0] - 100.5) < 0.1 && fabs(centers[1] - 285) < 0.1);
    assert_int_equal(hg_sample_groups(rising, 8, centers), 0);
    assert_true(fabs(hg_sample_drift(rising, 8) - 1.0823) < 1e-3);
    assert_true(hg_sample_drift(modes, 8) == 1);
    assert_int_equal(hg_sample_outliers(same, 6, outlier), 0);
    assert_int_equal(hg_sample_groups(same, 6, centers), 0);
    assert_true(hg_sample_drift(same, 6) == 1 && hg_sample_dependence(same, 6) == 0);
    assert_int_equal(hg_sample_skew(tail, 10), 1);
    assert_int_equal(hg_sample_skew(tail, 7), 0); /* too few */
    assert_int_equal(hg_sample_skew(rates, 10), -1);
    assert_int_equal(hg_sample_skew(rising, 8), 0);
    assert_int_equal(hg_sample_skew(same, 6), 0);
}

/* Three standard errors of the simulation are allowed for. */
static void assert_at_most(double count, double draws, double share)
{
    assert_true(count / draws < share + 3 * sqrt(share * (1 - share) / draws));
}

static void test_independent_draws_raise_few_signs(void **state)
{
    const double draws = 4000;
    uint64_t seed = 7;

    (void)state;
    for (size_t s = 0; s < N_OF(sizes); s++) {
        double outliers = 0, groups = 0, drifts = 0, skewed = 0, dependent = 0, v[50], centers[2];
        bool outlier[50];

        for (int i = 0; i < (int)draws; i++) {
            for (size_t k = 0; k < sizes[s]; k++)
                v[k] = 100 * exp(0.05 * normal(&seed));
            outliers += hg_sample_outliers(v, sizes[s], outlier) > 0;
            groups += hg_sample_groups(v, sizes[s], centers) > 0;
            drifts += hg_sample_drift(v, sizes[s]) != 1;
            skewed += hg_sample_skew(v, sizes[s]) != 0;
            dependent += hg_sample_dependence(v, sizes[s]) < -1.96;
        }
        assert_at_most(outliers, draws, 0.022);
        assert_at_most(groups, draws, 0.012);
        assert_at_most(drifts, draws, 0.01);
        assert_at_most(skewed, draws, 0.012);
        assert_at_most(dependent, draws, 0.025);
    }
}

/* Shares found of: one run in ten three times as slow (here: one), two modes, autocorrelation 0.7, exponential delays. */
static void test_what_is_there_is_found(void **state)
{
    const int draws = 2000;
    int outliers = 0, groups = 0, dependent = 0, skewed = 0;
    double v[20], centers[2];
    uint64_t seed = 11;
    bool outlier[20];

    (void)state;
    for (int i = 0; i < draws; i++) {
        for (size_t k = 0; k < 10; k++)
            v[k] = exp(0.05 * normal(&seed)) * (k == 4 ? 3 : 1);
        outliers += hg_sample_outliers(v, 10, outlier) == 1 && outlier[4];
        for (size_t k = 0; k < 10; k++)
            v[k] = exp(0.01 * normal(&seed)) * (k % 3 ? 1 : 2.8);
        groups += hg_sample_groups(v, 10, centers) == 6;
        v[0] = 0.05 * normal(&seed);
        for (size_t k = 1; k < 20; k++)
            v[k] = 0.7 * v[k - 1] + sqrt(1 - 0.49) * 0.05 * normal(&seed);
        for (size_t k = 0; k < 20; k++)
            v[k] = exp(v[k]);
        dependent += hg_sample_dependence(v, 20) < -1.96;
        for (size_t k = 0; k < 20; k++)
            v[k] = 100 * (1 - 0.05 * log(uniform(&seed)));
        skewed += hg_sample_skew(v, 20) == 1;
    }
    assert_true(outliers > 0.98 * draws);
    assert_true(groups > 0.99 * draws);
    assert_true(dependent > 0.75 * draws);
    assert_true(skewed > 0.35 * draws);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signs_in_known_samples),
        cmocka_unit_test(test_independent_draws_raise_few_signs),
        cmocka_unit_test(test_what_is_there_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
