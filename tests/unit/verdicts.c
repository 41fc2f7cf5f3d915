/* SPDX-License-Identifier: Apache-2.0 */
/* results/fdr, contrast and changes: arithmetic against scipy (digamma, polygamma, stats.t on the formulas of reports/formulas.md),
 * and what `compare` and `history` promise, by simulation. */
#include "numbers.h"

#include "base/vec.h"
#include "results/changes.h"

#define LEVEL (1 - HG_STATS_LEVEL)
#define CELLS_MAX 40
#define RUNS_MAX 21
#define TOLERANCE log(1.05)

/* ---- Arithmetic ---- */

static void test_p_values_are_adjusted_for_their_number(void **state)
{
    double p[] = { 0.04, 0.001, 0.03, 0.5, 0.012 };
    static const double wanted[] = { 0.05, 0.005, 0.05, 0.5, 0.03 };

    (void)state;
    hg_fdr_adjust(p, N_OF(p));
    for (size_t i = 0; i < N_OF(p); i++)
        assert_near(p[i], wanted[i], 1e-12);
    hg_fdr_adjust(NULL, 0);
}

static void test_variances_are_squeezed_towards_each_other(void **state)
{
    struct hg_variance v[] = { { 1, 4 }, { 4, 4 }, { 0.25, 4 }, { 2, 4 }, { 9, 4 }, { 0, 0 } };
    struct hg_variance alike[] = { { 1, 4 }, { 1.2, 4 }, { 0.9, 4 } },
                       two[] = { { 1, 4 }, { 0, 0 } };
    struct hg_variance zero[] = { { 0, 4 }, { 0, 4 }, { 0, 4 } };
    static const double wanted[] = { 1.18129549, 3.03924167, 0.71680894,
                                     1.80061088, 6.13581864, 1.4762354114341902 };

    (void)state;
    hg_fdr_squeeze(v, N_OF(v));
    for (size_t i = 0; i < N_OF(v); i++)
        assert_near(v[i].value, wanted[i], 1e-7);
    assert_near(v[0].df, 6.4587446740315393, 1e-9);
    assert_near(v[5].df, 2.4587446740315393, 1e-9);
    hg_fdr_squeeze(alike,
                   N_OF(alike)); /* as alike as equal ones would be: one variance, df of all */
    assert_near(alike[0].value, 1.3444923755145923, 1e-5);
    assert_near(alike[2].value, alike[0].value, 1e-5);
    assert_near(alike[0].df, 12, 0);
    hg_fdr_squeeze(two, N_OF(two)); /* one is not enough to squeeze, but to borrow from */
    assert_near(two[1].value, 1, 0);
    assert_near(two[1].df, 4, 0);
    hg_fdr_squeeze(zero, N_OF(zero));
    assert_near(zero[0].value, 0, 0);
}

static void test_a_difference_is_tested_against_the_tolerance(void **state)
{
    (void)state;
    assert_near(hg_fdr_p(0.1, 0.05, (struct hg_variance){ 0.0004, 5 }), 0.05449009934237626, 1e-12);
    assert_near(hg_fdr_p(-0.1, 0.05, (struct hg_variance){ 0.0004, 5 }), 0.05449009934237626,
                1e-12);
    assert_near(hg_fdr_p(0.04, 0.05, (struct hg_variance){ 0.0004, 5 }), 1, 0);
    assert_near(hg_fdr_p(0.06, 0.05, (struct hg_variance){ 0, 5 }), 0, 0);
}

/* ---- Simulation ---- */

static struct hg_moments draw(uint64_t *seed, double mean, double cv, size_t n)
{
    struct hg_moments b;
    double v[16];

    for (size_t i = 0; i < n; i++)
        v[i] = 100 * exp(mean + cv * normal(seed));
    assert_true(hg_moments_make(v, n, &b));
    return b;
}

struct setting {
    size_t cells, n;
    double cv;
    double of_run,
        of_cell; /* standard deviation between runs: of all cells of a run together, of each by itself */
    size_t runs;    /* on each side */
    size_t changed; /* cells that are slower in B */
    double by;
};

struct rates {
    double alarm; /* something is slower, or all together */
    double power; /* of the cells that are */
};

static void draw_contrasts(const struct setting *s, uint64_t *seed, struct hg_contrast *c)
{
    double shift[2][4];

    for (size_t r = 0; r < s->runs; r++) {
        shift[0][r] = s->of_run * normal(seed);
        shift[1][r] = s->of_run * normal(seed);
    }
    for (size_t i = 0; i < s->cells; i++) {
        struct hg_moments side[2][4];

        for (size_t k = 0; k < 2; k++)
            for (size_t r = 0; r < s->runs; r++)
                side[k][r] = draw(seed,
                                  shift[k][r] + s->of_cell * normal(seed) +
                                      (k == 1 && i < s->changed ? log(1 + s->by) : 0),
                                  s->cv, s->n);
        hg_contrast_make(side[0], s->runs, side[1], s->runs, 1, &c[i]);
    }
}

static struct rates simulate(struct setting s, int draws, uint64_t *seed)
{
    struct rates r = { 0 };

    for (int k = 0; k < draws; k++) {
        struct hg_contrast c[CELLS_MAX];
        struct hg_overall o;
        bool alarm;

        draw_contrasts(&s, seed, c);
        o = hg_contrasts_judge(c, s.cells, TOLERANCE, HG_BETWEEN_DEFAULT);
        alarm = o.p <= LEVEL && o.d < 0;
        for (size_t i = 0; i < s.cells; i++) {
            bool slower = c[i].p <= LEVEL && c[i].d < 0;

            alarm = alarm || slower;
            r.power += slower && i < s.changed;
        }
        r.alarm += alarm;
    }
    r.alarm /= draws;
    r.power /= draws * fmax(1, (double)s.changed);
    return r;
}

/* A/A pairs: the bound of one setting is 5 % and three standard errors of 150 draws, that of their mean 3 %. */
static void test_unchanged_cells_raise_few_alarms(void **state)
{
    static const size_t cells[] = { 1, 10, 40 }, repeats[] = { 3, 5, 10 };
    static const double cvs[] = { 0.02, 0.05, 0.10 };
    uint64_t seed = 42;
    double sum = 0;

    (void)state;
    for (int i = 0; i < 81; i++) {
        struct setting s = { .cells = cells[i % 3],
                             .n = repeats[i / 3 % 3],
                             .cv = cvs[i / 9 % 3],
                             .of_run = i / 27 == 1 ? 0.03 : 0,
                             .of_cell = i / 27 == 2 ? 0.03 : 0,
                             .runs = 1 };
        double alarm = simulate(s, 150, &seed).alarm;

        if (alarm > 0.05 + 3 * sqrt(0.05 * 0.95 / 150))
            fail_msg("%zu cells, n %zu, cv %g, run %g, cell %g: %g", s.cells, s.n, s.cv, s.of_run,
                     s.of_cell, alarm);
        sum += alarm / 81;
    }
    if (sum > 0.03)
        fail_msg("on average %g", sum);
}

/* The settings with most alarms, with 2000 draws: 5 % and two standard errors. */
static void test_the_worst_settings_keep_the_level(void **state)
{
    static const struct setting settings[] = {
        { 1, 10, 0.02, 0.03, 0, 1, 0, 0 },  { 10, 10, 0.02, 0, 0.03, 1, 0, 0 },
        { 12, 10, 0.05, 0, 0.03, 1, 0, 0 }, { 40, 10, 0.05, 0, 0.03, 1, 0, 0 },
        { 10, 3, 0.02, 0.03, 0, 2, 0, 0 },  { 10, 3, 0.02, 0, 0.03, 3, 0, 0 },
    };
    uint64_t seed = 7;

    (void)state;
    for (size_t i = 0; i < N_OF(settings); i++) {
        double alarm = simulate(settings[i], 2000, &seed).alarm;

        if (alarm > 0.06)
            fail_msg("setting %zu: %g", i, alarm);
    }
}

/* What reports/formulas.md states, less three standard errors. */
static void test_changes_are_found_as_often_as_stated(void **state)
{
    static const struct {
        struct setting setting;
        double power;
    } cases[] = {
        { { 1, 3, 0.02, 0, 0, 1, 1, 0.10 }, 0.50 },
        { { 1, 10, 0.02, 0, 0, 1, 1, 0.10 }, 0.88 },
        { { 10, 3, 0.02, 0, 0, 1, 1, 0.10 }, 0.36 },
        { { 10, 10, 0.02, 0, 0, 1, 1, 0.10 }, 0.95 },
        { { 40, 3, 0.02, 0, 0, 1, 1, 0.10 }, 0.20 },
        { { 40, 10, 0.02, 0, 0, 1, 1, 0.10 }, 0.96 },
        { { 40, 3, 0.02, 0, 0, 1, 40, 0.10 }, 0.74 },
        { { 40, 10, 0.02, 0, 0, 1, 40, 0.10 }, 0.99 },
        { { 40, 10, 0.02, 0, 0, 1, 20, 0.10 }, 0.97 },
        { { 1, 3, 0.02, 0, 0, 2, 1, 0.10 }, 0.90 },
        { { 1, 3, 0.02, 0, 0, 3, 1, 0.10 }, 0.98 },
        { { 1, 3, 0.02, 0, 0, 1, 1, 0.20 }, 0.99 },
    };
    uint64_t seed = 42;

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        double power = simulate(cases[i].setting, 400, &seed).power;
        double error = sqrt(cases[i].power * (1 - cases[i].power) / 400);

        if (power < cases[i].power - 3 * error)
            fail_msg("case %zu: %g, stated %g", i, power, cases[i].power);
    }
}

/* One run each, none repeated: what the cells scatter by, or the assumption, is the noise. */
static void test_single_runs_raise_few_alarms(void **state)
{
    uint64_t seed = 42;

    (void)state;
    assert_true(simulate((struct setting){ 1, 1, 0.1, 0, 0, 1, 0, 0 }, 1000, &seed).alarm < 0.05);
    assert_true(simulate((struct setting){ 40, 1, 0.1, 0, 0.03, 1, 0, 0 }, 300, &seed).alarm <
                0.05);
    assert_true(simulate((struct setting){ 1, 1, 0.02, 0, 0, 1, 1, 1 }, 100, &seed).power == 1);
}

/* ---- History ---- */

/* Share of draws in which the last shift of some cell is for the worse; of those in which `at` is where it is. */
static double follow(struct setting s, size_t runs, size_t at, int draws, uint64_t *seed)
{
    double found = 0;

    for (int k = 0; k < draws; k++) {
        static struct hg_moments moments[CELLS_MAX][RUNS_MAX];
        struct hg_track t[CELLS_MAX] = { 0 };
        double shift[RUNS_MAX];
        bool any = false;

        for (size_t r = 0; r < runs; r++)
            shift[r] = s.of_run * normal(seed);
        for (size_t i = 0; i < s.cells; i++) {
            for (size_t r = 0; r < runs; r++)
                moments[i][r] = draw(seed,
                                     shift[r] + s.of_cell * normal(seed) +
                                         (i < s.changed && r >= at ? log(1 + s.by) : 0),
                                     s.cv, s.n);
            t[i].runs = moments[i];
            t[i].n = runs;
        }
        hg_changes_find(t, s.cells, TOLERANCE, HG_BETWEEN_DEFAULT);
        for (size_t i = 0; i < s.cells; i++) {
            const struct hg_shift *last =
                t[i].shifts.n ? &t[i].shifts.items[t[i].shifts.n - 1] : NULL;

            any = any || (last && last->d > 0 && (!s.changed || last->at == at));
            HG_VEC_DONE(&t[i].shifts);
        }
        found += any;
    }
    return found / draws;
}

static void test_histories_without_a_change_raise_few_alarms(void **state)
{
    static const size_t cells[] = { 1, 10, 40 }, repeats[] = { 1, 3, 10 }, runs[] = { 2, 4, 11 };
    uint64_t seed = 42;

    (void)state;
    for (int i = 0; i < 81; i++) {
        struct setting s = { .cells = cells[i % 3],
                             .n = repeats[i / 3 % 3],
                             .cv = i / 27 == 2 ? 0.1 : 0.02,
                             .of_run = i / 27 == 1 ? 0.03 : 0,
                             .of_cell = i / 27 != 1 ? 0.03 : 0 };
        double alarm = follow(s, runs[i / 9 % 3], 0, 40, &seed);

        if (alarm > 0.05 + 3 * sqrt(0.05 * 0.95 / 40))
            fail_msg("%zu cells, n %zu, %zu runs, setting %d: %g", s.cells, s.n, runs[i / 9 % 3], i,
                     alarm);
    }
}

/* A change in the last of 11 runs: +20 % and +10 % at cv 2 %, as stated in reports/formulas.md. */
static void test_more_repeats_find_a_change_no_later(void **state)
{
    static const size_t repeats[] = { 1, 3, 5, 10 };
    static const double by[] = { 0.20, 0.10 },
                        stated[][4] = { { 0.95, 0.99, 0.99, 0.99 }, { 0.08, 0.68, 0.94, 0.99 } };
    uint64_t seed = 42;

    (void)state;
    for (size_t b = 0; b < 2; b++) {
        double last = 0;

        for (size_t i = 0; i < 4; i++) {
            struct setting s = { 1, repeats[i], 0.02, 0, 0, 1, 1, by[b] };
            double found = follow(s, 11, 10, 300, &seed);

            if (found < last || found < stated[b][i] - 0.05)
                fail_msg("+%g, n %zu: %g after %g", by[b], repeats[i], found, last);
            last = found;
        }
    }
}

static struct hg_track track(struct hg_moments *runs, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        runs[i] = (struct hg_moments){ log(v[i]), 2e-5, 3, 2 };
    return (struct hg_track){ .runs = runs, .n = n };
}

static void test_a_stretch_between_two_changes_is_found(void **state)
{
    static const double v[] = { 100, 100.3, 130, 130.2, 129.8, 100.4, 100.1 };
    struct hg_moments runs[7];
    struct hg_track t = track(runs, v, 7);

    (void)state;
    hg_changes_find(&t, 1, TOLERANCE, HG_BETWEEN_DEFAULT);
    assert_int_equal(t.shifts.n, 2);
    assert_int_equal(t.shifts.items[0].at, 2);
    assert_int_equal(t.shifts.items[1].at, 5);
    assert_near(t.shifts.items[0].d, log(130 / 100.15), 1e-3);
    HG_VEC_DONE(&t.shifts);
}

static void test_what_is_within_the_tolerance_is_no_change(void **state)
{
    static const double v[] = {
        100, 100.1, 104, 104.1, 103.9, 120, 120.1, 119.9, 115, 115.2, 115.1
    };
    struct hg_moments runs[11];
    struct hg_track t = track(runs, v, 11);

    (void)state;
    hg_changes_find(&t, 1, TOLERANCE, 0);
    assert_int_equal(t.shifts.n, 1);
    assert_int_equal(t.shifts.items[0].at, 5);
    HG_VEC_DONE(&t.shifts);
}

/* Also not one that was more before its neighbours were found. */
static void test_no_change_that_is_told_is_within_the_tolerance(void **state)
{
    uint64_t seed = 42;
    size_t told = 0;

    (void)state;
    for (int k = 0; k < 400; k++) {
        struct hg_moments runs[RUNS_MAX];
        struct hg_track t = { .runs = runs, .n = RUNS_MAX };
        double level = 0;

        for (size_t r = 0; r < RUNS_MAX; r++) {
            level += r % 3 == 0 ? 0.05 * normal(&seed) : 0;
            runs[r] = draw(&seed, level, 0.02, 3);
        }
        hg_changes_find(&t, 1, TOLERANCE, 0.001);
        for (size_t i = 0; i < t.shifts.n; i++)
            assert_true(fabs(t.shifts.items[i].d) > TOLERANCE);
        told += t.shifts.n;
        HG_VEC_DONE(&t.shifts);
    }
    assert_true(told > 400);
}

static void test_runs_without_a_value_are_passed_over(void **state)
{
    static const double v[] = { 100, 100.2, 1, 130, 1, 130.3 };
    struct hg_moments runs[6];
    struct hg_track t = track(runs, v, 6);

    (void)state;
    runs[2].n = runs[4].n = 0;
    hg_changes_find(&t, 1, TOLERANCE, HG_BETWEEN_DEFAULT);
    assert_int_equal(t.shifts.n, 1);
    assert_int_equal(t.shifts.items[0].at, 3);
    assert_near(exp(hg_track_mean(&t, 2, 6)), 130.15, 1e-5);
    assert_true(isnan(hg_track_mean(&t, 2, 3)));
    HG_VEC_DONE(&t.shifts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_p_values_are_adjusted_for_their_number),
        cmocka_unit_test(test_variances_are_squeezed_towards_each_other),
        cmocka_unit_test(test_a_difference_is_tested_against_the_tolerance),
        cmocka_unit_test(test_unchanged_cells_raise_few_alarms),
        cmocka_unit_test(test_the_worst_settings_keep_the_level),
        cmocka_unit_test(test_changes_are_found_as_often_as_stated),
        cmocka_unit_test(test_single_runs_raise_few_alarms),
        cmocka_unit_test(test_histories_without_a_change_raise_few_alarms),
        cmocka_unit_test(test_more_repeats_find_a_change_no_later),
        cmocka_unit_test(test_a_stretch_between_two_changes_is_found),
        cmocka_unit_test(test_what_is_within_the_tolerance_is_no_change),
        cmocka_unit_test(test_no_change_that_is_told_is_within_the_tolerance),
        cmocka_unit_test(test_runs_without_a_value_are_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
