/* SPDX-License-Identifier: Apache-2.0 */
/* results/laws. Expected values: scipy.optimize.curve_fit on the logarithms of all runs, scipy.stats.t; coverage by simulation. */
#include "numbers.h"

#include "results/laws.h"
#include "results/scaling.h"

#define RUNS_MAX 10

/* A point from the times of its runs. */
static struct hg_law_point point(double p, const double *times, size_t n)
{
    struct hg_law_point q = { .p = p };

    assert_true(hg_moments_make(times, n, &q.log));
    return q;
}

#define POINT(p, ...) \
    point(p, (double[]){ __VA_ARGS__ }, sizeof((double[]){ __VA_ARGS__ }) / sizeof(double))

static void assert_coefficient(const struct hg_coefficient *c, double value, double error,
                               double low, double high)
{
    assert_near(c->value, value, 1e-6);
    assert_near(c->error, error, 1e-5);
    assert_near(c->low, low, 1e-5);
    assert_near(c->high, high, 1e-5);
}

static void test_fits_weigh_every_run_and_the_baselines_too(void **state)
{
    struct hg_law_point strong[] = { POINT(1, 100.3, 99.1, 101.2), POINT(2, 53.1, 52.2),
                                     POINT(4, 29.9, 29.1, 29.6), POINT(8, 18.0),
                                     POINT(16, 12.7, 12.9, 12.4) };
    struct hg_law_point weak[] = { POINT(1, 100.0, 101.0), POINT(2, 52.0, 51.55), POINT(4, 26.475),
                                   POINT(8, 13.625, 13.4375, 13.5125) };
    struct hg_law_fit fit;
    struct hg_estimate e;

    (void)state;
    assert_null(hg_laws_fit(HG_LAW_AMDAHL, strong, 5, &fit));
    assert_coefficient(&fit.coefficients[0], 0.06872932488240253, 0.0018130784549366162,
                       0.06489127168139036, 0.07256737808341471);
    assert_near(fit.log_base, 4.59505722687937, 1e-9);
    assert_near(fit.freedom, 10, 0);
    assert_near(fit.error, 0.010574052531513124, 1e-6);
    assert_false(fit.lack_of_fit);
    assert_near(hg_laws_limit(&fit), 1 / 0.06872932488240253, 1e-6);
    assert_null(hg_laws_fit(HG_LAW_USL, strong, 5, &fit));
    assert_coefficient(&fit.coefficients[0], 0.057127038130676454, 0.004754829055179608,
                       0.04696751273703022, 0.06728656352432269);
    assert_coefficient(&fit.coefficients[1], 0.0007082316143190375, 0.00027779339141475486,
                       0.0001146773599992254, 0.0013017858686388496);
    e = hg_laws_predict(&fit, 32);
    assert_near(e.value, 2.38446594857249, 1e-6);
    assert_near(e.high - e.value, 0.09832049797, 1e-7);
    assert_near(hg_laws_peak(&fit), sqrt((1 - 0.057127038130676454) / 0.0007082316143190375), 1e-6);
    assert_null(hg_laws_fit(HG_LAW_GUSTAFSON, weak, 4, &fit));
    assert_coefficient(&fit.coefficients[0], 0.08057955710626456, 0.008653669536239954,
                       0.06116330242175747, 0.09999581179077166);
    e = hg_laws_predict(&fit, 16);
    assert_near(e.value, 1.912315082876955, 1e-6);
    assert_near(e.high - e.value, 0.023338278504055846, 1e-5);
}

static void test_points_that_contradict_the_law_are_told_by_their_runs(void **state)
{
    struct hg_law_point points[] = { POINT(1, 100.0, 100.1), POINT(2, 60.0, 60.1),
                                     POINT(4, 29.0, 29.1), POINT(8, 18.0, 18.1) };
    struct hg_law_fit fit;

    (void)state;
    assert_null(hg_laws_fit(HG_LAW_AMDAHL, points, 4, &fit));
    assert_true(fit.lack_of_fit);
    assert_near(fit.freedom, 2, 0); /* of the points, without the runs */
    assert_true(fit.coefficients[0].error > 0.01);
}

static void test_exact_points_give_exact_coefficients(void **state)
{
    struct hg_law_point points[5], ideal[5];
    struct hg_law_fit fit;

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        double p = (double)(1u << i);

        points[i] = POINT(p, 50 * (1 + 0.3 * (p - 1) + 0.02 * p * (p - 1)) / p);
        ideal[i] = POINT(p, 50 / p);
    }
    assert_null(hg_laws_fit(HG_LAW_USL, points, 5, &fit));
    assert_near(fit.coefficients[0].value, 0.3, 1e-9);
    assert_near(fit.coefficients[1].value, 0.02, 1e-9);
    assert_false(fit.lack_of_fit);
    assert_null(hg_laws_fit(HG_LAW_USL, ideal, 5, &fit));
    assert_near(fit.coefficients[0].value, 0, 0);
    assert_true(isinf(hg_laws_peak(&fit)) && isinf(hg_laws_limit(&fit)));
}

static void test_too_few_points_and_nonsense_are_refused(void **state)
{
    struct hg_law_point single[] = { POINT(1, 100), POINT(2, 52), POINT(4, 29), POINT(8, 18) };
    struct hg_law_point twice[] = { POINT(1, 100), POINT(2, 52), POINT(2, 53), POINT(4, 29) };
    struct hg_law_point above[] = { POINT(1, 100, 100.2), POINT(2, 47.5, 47.6),
                                    POINT(4, 21.2, 21.3), POINT(8, 8.1, 8.15) };
    struct hg_law_point slower[] = { POINT(1, 100, 100.2), POINT(2, 125, 125.2),
                                     POINT(4, 137.4, 137.6), POINT(8, 143.6, 143.9) };
    struct hg_law_fit fit;

    (void)state;
    assert_string_equal(hg_laws_fit(HG_LAW_AMDAHL, single, 2, &fit),
                        "fewer than three device counts, the baseline's included");
    assert_string_equal(hg_laws_fit(HG_LAW_USL, twice, 4, &fit),
                        "fewer than four device counts, the baseline's included");
    assert_string_equal(hg_laws_fit(HG_LAW_AMDAHL, single, 3, &fit), "too few runs");
    assert_string_equal(hg_laws_fit(HG_LAW_USL, single, 4, &fit), "too few runs");
    assert_null(hg_laws_fit(HG_LAW_AMDAHL, twice, 4, &fit));
    assert_string_equal(hg_laws_fit(HG_LAW_AMDAHL, above, 4, &fit), "a serial fraction below 0");
    assert_string_equal(hg_laws_fit(HG_LAW_AMDAHL, slower, 4, &fit), "a serial fraction above 1");
}

/* ---- Coverage ---- */

struct truth {
    enum hg_law law;
    double b[2];
};

static double true_log_time(const struct truth *t, double p)
{
    if (t->law == HG_LAW_GUSTAFSON)
        return -log(p - t->b[0] * (p - 1));
    return log((1 + t->b[0] * (p - 1) + t->b[1] * p * (p - 1)) / p);
}

/* How often what was promised held. */
struct tally {
    int fits, coefficients, within_error, within_interval, predictions, predicted;
};

static void draw(const struct truth *t, size_t n, size_t runs, double cv, uint64_t *seed,
                 struct tally *sum)
{
    double deviation = sqrt(log1p(cv * cv)), times[RUNS_MAX], last = (double)(1u << (n - 1));
    struct hg_law_point points[6];
    struct hg_law_fit fit;
    struct hg_estimate e;

    for (size_t i = 0; i < n; i++) {
        double p = (double)(1u << i), mean = log(80) + true_log_time(t, p);

        for (size_t k = 0; k < runs; k++)
            times[k] = exp(mean + deviation * normal(seed));
        points[i] = point(p, times, runs);
    }
    if (hg_laws_fit(t->law, points, n, &fit))
        return;
    sum->fits++;
    for (size_t k = 0; k < fit.n; k++) {
        const struct hg_coefficient *c = &fit.coefficients[k];

        sum->coefficients++;
        sum->within_error += fabs(t->b[k] - c->value) <= c->error;
        sum->within_interval += c->low <= t->b[k] && t->b[k] <= c->high;
    }
    e = hg_laws_predict(&fit, 2 * last);
    if (fit.lack_of_fit || isnan(e.value))
        return;
    last = log(80) + true_log_time(t, 2 * last) + deviation * normal(seed); /* one further run */
    sum->predictions++;
    sum->predicted += e.low <= last && last <= e.high;
}

static void assert_share(const char *what, int good, int all, double low, double high)
{
    double share = (double)good / all;

    if (!(share >= low && share <= high))
        fail_msg("%s: %.4f of %d, wanted %.2f to %.2f", what, share, all, low, high);
}

/* Every time has its error, those of the baseline too; coefficients at their bound 0 are among the truths. */
static void test_intervals_of_laws_cover_what_they_promise(void **state)
{
    static const struct truth truths[] = {
        { HG_LAW_AMDAHL, { 0.01 } },     { HG_LAW_AMDAHL, { 0.2 } },
        { HG_LAW_USL, { 0.05, 0.001 } }, { HG_LAW_USL, { 0.1, 0.0005 } },
        { HG_LAW_USL, { 0.02, 0 } },     { HG_LAW_USL, { 0, 0.002 } },
        { HG_LAW_GUSTAFSON, { 0.02 } },  { HG_LAW_GUSTAFSON, { 0.3 } },
    };
    static const size_t runs[] = { 1, 3, 5, 10 };
    static const double cvs[] = { 0.01, 0.03, 0.1 };
    uint64_t seed = 7;

    (void)state;
    for (size_t r = 0; r < N_OF(runs); r++)
        for (enum hg_law law = 0; law < HG_LAWS; law++) {
            struct tally sum = { 0 };

            for (size_t t = 0; t < N_OF(truths); t++)
                for (size_t i = 0; i < 2400 && truths[t].law == law; i++)
                    draw(&truths[t], 3 + i % 4, runs[r], cvs[i / 4 % 3], &seed, &sum);
            assert_true(sum.fits >= 3000); /* fewer than asked: none from too few points */
            assert_share("within the error", sum.within_error, sum.coefficients, 0.64, 0.72);
            assert_share("within the interval", sum.within_interval, sum.coefficients, 0.93, 0.97);
            assert_share("predicted", sum.predicted, sum.predictions, 0.93, 0.97);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fits_weigh_every_run_and_the_baselines_too),
        cmocka_unit_test(test_points_that_contradict_the_law_are_told_by_their_runs),
        cmocka_unit_test(test_exact_points_give_exact_coefficients),
        cmocka_unit_test(test_too_few_points_and_nonsense_are_refused),
        cmocka_unit_test(test_intervals_of_laws_cover_what_they_promise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
