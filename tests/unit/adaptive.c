/* SPDX-License-Identifier: Apache-2.0 */
/* results/adaptive: which repeats are asked for, and whether the interval that is printed covers. The bounds of the simulations are
 * what a simulation of 15,000 series each gave in numpy (0.934 to 0.961), widened by its error here. */
#include "numbers.h"

#include "contract/repeats.h"
#include "results/adaptive.h"

#define SERIES 2500
#define RUNS_MAX 30

static uint64_t seed;

struct series {
    double cv, outliers; /* coefficient of variation; share of runs that take three times as long */
    bool tail;           /* exponential, above a least time */
    double v[RUNS_MAX];
    size_t n;
};

static void add_runs(struct series *s, size_t n)
{
    for (; s->n < n; s->n++)
        s->v[s->n] = s->tail ? 1 - s->cv * (1 + log(uniform(&seed)))
                             : exp(normal(&seed) * sqrt(log1p(s->cv * s->cv))) *
                                   (uniform(&seed) < s->outliers ? 3 : 1);
}

/* As the drive does it: rounds until no more runs are wanted. */
static void run_rounds(struct series *s, const struct hg_repeats *rule)
{
    size_t want = (size_t)rule->min;

    s->n = 0;
    do {
        add_runs(s, want);
        want = hg_adaptive_want(s->v, s->n, rule);
    } while (want > s->n);
}

/* How many of SERIES intervals hold truth; *runs: their mean number of runs. */
static double coverage(struct series *s, const struct hg_repeats *rule, double truth, double *runs)
{
    size_t hits = 0, total = 0;

    seed = 88172645463325252ULL;
    for (int i = 0; i < SERIES; i++) {
        struct hg_estimate e;

        run_rounds(s, rule);
        e = hg_adaptive_center(s->v, s->n, rule);
        assert_true(e.has_interval);
        assert_true(hg_adaptive_is_done(&e, rule) || s->n == (size_t)rule->max);
        hits += e.low <= truth && truth <= e.high;
        total += s->n;
    }
    *runs = (double)total / SERIES;
    return (double)hits / SERIES;
}

static void test_printed_intervals_cover(void **state)
{
    static const struct hg_repeats rules[] = { { 0.05, 3, 20 }, { 0.05, 3, 10 }, { 0.03, 5, 30 } };
    static const double cvs[] = { 0.005, 0.02, 0.05, 0.07, 0.1, 0.2 };

    (void)state;
    for (size_t r = 0; r < N_OF(rules); r++)
        for (size_t i = 0; i < N_OF(cvs); i++) {
            struct series s = { .cv = cvs[i] };
            double runs, share = coverage(&s, &rules[r], 1, &runs);

            if (!(share >= 0.93 && share <= 0.97))
                fail_msg("rule %zu, cv %g: covers %.3f", r, cvs[i], share);
        }
}

/* Both sides were repeated until they were narrow; at three runs each the interval is wider than it has to be. */
static void test_intervals_of_ratios_cover(void **state)
{
    static const double cvs[] = { 0.01, 0.05, 0.1 };
    const struct hg_repeats rule = { 0.05, 3, 20 };

    (void)state;
    for (size_t i = 0; i < N_OF(cvs); i++) {
        struct series s = { .cv = cvs[i] };
        size_t hits = 0;

        seed = 88172645463325252ULL;
        for (int k = 0; k < SERIES; k++) {
            struct hg_estimate a, b, r;

            run_rounds(&s, &rule);
            a = hg_adaptive_center(s.v, s.n, &rule);
            run_rounds(&s, &rule);
            b = hg_adaptive_center(s.v, s.n, &rule);
            r = hg_adaptive_ratio(&a, &b);
            hits += r.low <= 1 && 1 <= r.high;
        }
        if (hits < 0.935 * SERIES || hits > 0.995 * SERIES)
            fail_msg("cv %g: covers %.3f", s.cv, (double)hits / SERIES);
    }
}

/* Runs of which one in ten takes three times as long: of the median of that mixture the coverage is bounded; its geometric mean is
 * missed by every series that met no outlier and stopped early. */
static void test_coverage_under_outliers_is_bounded(void **state)
{
    static const double cvs[] = { 0.02, 0.05, 0.1 };

    (void)state;
    for (size_t i = 0; i < N_OF(cvs); i++) {
        struct hg_repeats rule = { 0.05, 3, 20 };
        struct series s = { .cv = cvs[i], .outliers = 0.1 };
        double median = exp(0.1397 * sqrt(log1p(s.cv * s.cv))); /* z of 0.5 / 0.9 */
        double runs, share = coverage(&s, &rule, median, &runs);

        if (!(share >= 0.90 && share <= 0.97))
            fail_msg("cv %g: covers %.3f", s.cv, share);
    }
}

/* Few runs do not show how far a tail reaches. */
static void test_coverage_under_an_exponential_tail_is_bounded(void **state)
{
    static const double cvs[] = { 0.02, 0.05, 0.1 };

    (void)state;
    for (size_t i = 0; i < N_OF(cvs); i++) {
        struct hg_repeats rule = { 0.05, 3, 20 };
        struct series s = { .cv = cvs[i], .tail = true };
        double mean = 0, runs, share;

        for (int k = 0; k < 10000; k++)
            mean += log(1 - s.cv * (1 + log((k + 0.5) / 10000))) / 10000;
        share = coverage(&s, &rule, exp(mean), &runs);
        if (!(share >= 0.84 && share <= 0.93))
            fail_msg("cv %g: covers %.3f", s.cv, share);
    }
}

static void test_quiet_configurations_stop_early(void **state)
{
    struct hg_repeats rule = { 0.05, 3, 20 };
    struct series quiet = { .cv = 0.01 }, noisy = { .cv = 0.2 };
    double runs;

    (void)state;
    coverage(&quiet, &rule, 1, &runs);
    if (runs > 3.1)
        fail_msg("quiet: %.2f runs", runs);
    coverage(&noisy, &rule, 1, &runs);
    if (runs < 19.5)
        fail_msg("noisy: %.2f runs", runs);
}

static void test_what_is_wanted_next(void **state)
{
    static const struct hg_repeats rule = { 0.05, 3, 20 };
    static const struct {
        double v[6];
        size_t n, want;
    } cases[] = {
        { { 100, 100, 100 }, 3, 3 },          /* no spread */
        { { 100, 101, 99 }, 3, 3 },           /* ±2.8 % */
        { { 100, 103, 97 }, 3, 6 },           /* ±8.8 %: with this spread six would do */
        { { 100, 300, 97 }, 3, 20 },          /* far from it: the maximum */
        { { 100, 101 }, 2, 2 },               /* two say nothing */
        { { 100, 101, 0 }, 3, 3 },            /* a time of 0 has no logarithm */
        { { 100, 103, 97, 100, 102 }, 5, 5 }, /* ±4.0 % */
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        size_t want = hg_adaptive_want(cases[i].v, cases[i].n, &rule);

        if (want != cases[i].want) {
            struct hg_estimate e = hg_adaptive_center(cases[i].v, cases[i].n, &rule);

            fail_msg("case %zu wants %zu (%g)", i, want, hg_stats_spread(&e));
        }
    }
}

static void test_ratio_of_two_intervals(void **state)
{
    struct hg_estimate a = { 2, 1, 4, true }, b = { 1, 0.5, 2, true }, none = { .value = 1 };
    struct hg_estimate r = hg_adaptive_ratio(&a, &b);

    (void)state;
    assert_true(fabs(r.value - 2) < 1e-12);
    assert_true(fabs(r.high / 2 - exp(sqrt(2) * log(2))) < 1e-12);
    assert_true(fabs(2 / r.low - exp(sqrt(2) * log(2))) < 1e-12);
    r = hg_adaptive_ratio(&a, &none);
    assert_true(!r.has_interval && r.value == 2);
}

static void test_the_member_of_a_matrix(void **state)
{
    static const struct {
        const char *text;
        struct hg_repeats wanted;
    } cases[] = {
        { "7", { 0, 7, 7 } },
        { "{\"until\": \"5%\", \"max\": 20}", { 0.05, 3, 20 } },
        { "{\"until\": \"2.5 %\", \"min\": 4, \"max\": 9}", { 0.025, 4, 9 } },
        { "{\"until\": 0.1, \"min\": 5.0, \"max\": 5}", { 0.1, 5, 5 } },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        json_t *json = json_loads(cases[i].text, JSON_DECODE_ANY, NULL);
        struct hg_repeats r = hg_repeats_of(json);

        assert_true(fabs(r.until - cases[i].wanted.until) < 1e-15);
        assert_int_equal(r.min, cases[i].wanted.min);
        assert_int_equal(r.max, cases[i].wanted.max);
        json_decref(json);
    }
    assert_int_equal(hg_repeats_of(NULL).max, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_printed_intervals_cover),
        cmocka_unit_test(test_intervals_of_ratios_cover),
        cmocka_unit_test(test_coverage_under_outliers_is_bounded),
        cmocka_unit_test(test_coverage_under_an_exponential_tail_is_bounded),
        cmocka_unit_test(test_quiet_configurations_stop_early),
        cmocka_unit_test(test_what_is_wanted_next),
        cmocka_unit_test(test_ratio_of_two_intervals),
        cmocka_unit_test(test_the_member_of_a_matrix),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
