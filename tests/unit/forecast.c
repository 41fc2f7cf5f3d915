/* SPDX-License-Identifier: Apache-2.0 */
/* analysis/forecast, regression and outlook: which source is taken, and how often the intervals hold, by simulation. */
#include "numbers.h"

#include "analysis/forecast.h"

/* A cell of a matrix: "model" 0 or 1, epochs, nodes, repeat. */
static size_t configure(struct hg_forecast *f, int model, int epochs, int nodes, int repeat)
{
    json_t *cell = json_pack("{s:s,s:i,s:i,s:i,s:s}", "model", model ? "big" : "small", "epochs",
                             epochs, "nodes", nodes, "repeat", repeat, "time", "5m");
    size_t number = hg_forecast_configuration(f, cell, nodes);

    json_decref(cell);
    return number;
}

/* What it takes, without chance: a start, epochs, a serial part. */
static double law(int model, int epochs, int nodes)
{
    return 5 + (model ? 9.0 : 3.0) * epochs * (0.1 + 0.9 / nodes);
}

static double draw(uint64_t *seed, int model, int epochs, int nodes, double noise)
{
    return law(model, epochs, nodes) * exp(noise * normal(seed));
}

static double width(const struct hg_forecast_run *run)
{
    return hg_forecast_quantile(run, 0.975) / hg_forecast_quantile(run, 0.025);
}

static void test_repeats_and_requests_do_not_make_a_configuration(void **state)
{
    struct hg_forecast *f = hg_forecast_create();
    json_t *other = json_pack("{s:s,s:i,s:i,s:s,s:s}", "model", "small", "epochs", 2, "nodes", 1,
                              "time", "auto", "_note", "x");

    (void)state;
    assert_int_equal(configure(f, 0, 2, 1, 1), 0);
    assert_int_equal(configure(f, 0, 2, 1, 2), 0);
    assert_int_equal(configure(f, 0, 3, 1, 1), 1);
    assert_int_equal(hg_forecast_configuration(f, other, 1), 0);
    json_decref(other);
    hg_forecast_free(f);
}

static void test_the_best_source_is_taken(void **state)
{
    struct hg_forecast *f = hg_forecast_create();
    uint64_t seed = 3;

    (void)state;
    assert_int_equal(hg_forecast_of(f, configure(f, 0, 2, 1, 1))->source, HG_FORECAST_NOTHING);
    assert_true(isnan(hg_forecast_quantile(hg_forecast_of(f, 0), 0.5)));
    hg_forecast_measure(f, 0, 11);
    assert_int_equal(hg_forecast_of(f, 0)->source, HG_FORECAST_MEASURED);
    assert_near(exp(hg_forecast_of(f, 0)->center), 11, 1e-12);
    assert_true(isnan(hg_forecast_quantile(hg_forecast_of(f, 0), 0.5))); /* one run has no spread */
    for (int nodes = 1; nodes <= 8; nodes *= 2)
        for (int i = 0; i < 3; i++)
            hg_forecast_measure(f, configure(f, 0, 10, nodes, i + 1),
                                draw(&seed, 0, 10, nodes, 0.01));
    assert_int_equal(hg_forecast_of(f, configure(f, 0, 10, 16, 1))->source, HG_FORECAST_LAW);
    assert_near(exp(hg_forecast_of(f, configure(f, 0, 10, 16, 1))->center), law(0, 10, 16), 0.05);
    /* four times what was measured is a guess, and so is what no run says anything of */
    assert_int_equal(hg_forecast_of(f, configure(f, 0, 10, 32, 1))->source, HG_FORECAST_NOTHING);
    assert_int_equal(hg_forecast_of(f, configure(f, 1, 10, 1, 1))->source, HG_FORECAST_NOTHING);
    for (int epochs = 2; epochs <= 32; epochs *= 2)
        hg_forecast_measure(f, configure(f, 1, epochs, 2, 1), draw(&seed, 1, epochs, 2, 0.01));
    assert_int_equal(hg_forecast_of(f, configure(f, 1, 12, 2, 1))->source, HG_FORECAST_REGRESSION);
    assert_near(exp(hg_forecast_of(f, configure(f, 1, 12, 2, 1))->center), law(1, 12, 2), 0.15);
    assert_int_equal(hg_forecast_of(f, configure(f, 1, 100, 2, 1))->source, HG_FORECAST_NOTHING);
    hg_forecast_free(f);
}

static void test_a_key_that_follows_another_is_no_second_one(void **state)
{
    struct hg_forecast *f = hg_forecast_create();
    size_t asked[2] = { 0 };

    (void)state;
    for (int i = 1; i <= 8; i++) { /* batch is 32 times epochs, as a derived member would be */
        json_t *cell = json_pack("{s:i,s:i}", "epochs", i, "batch", 32 * i);

        if (i != 5)
            hg_forecast_measure(f, hg_forecast_configuration(f, cell, 1), 2.0 * i);
        else
            asked[0] = hg_forecast_configuration(f, cell, 1);
        json_decref(cell);
    }
    json_t *apart = json_pack("{s:i,s:i}", "epochs", 5, "batch", 32);
    asked[1] = hg_forecast_configuration(f, apart, 1);
    json_decref(apart);
    assert_near(exp(hg_forecast_of(f, asked[0])->center), 10, 1e-9);
    assert_int_equal(hg_forecast_of(f, asked[1])->source, HG_FORECAST_NOTHING);
    hg_forecast_free(f);
}

/* ---- How often intervals hold ---- */

/* Three standard errors of the simulation are allowed for: 90 to 98 of 100 are promised. */
static void assert_holds(const char *what, double held, double draws)
{
    double share = held / draws, error = 3 * sqrt(0.05 * 0.95 / draws);

    if (share < 0.90 - error || share > 0.98 + error)
        fail_msg("%s: %.3f of %.0f intervals hold", what, share, draws);
}

static void test_intervals_of_one_run_hold(void **state)
{
    double held[HG_FORECAST_SOURCES] = { 0 }, asked[HG_FORECAST_SOURCES] = { 0 };
    static const char *const names[] = { "measured", "law", "regression", "nothing" };
    uint64_t seed = 11;

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct hg_forecast *f = hg_forecast_create();
        double noise = 0.01 + 0.1 * uniform(&seed);

        for (int model = 0; model < 2; model++)
            for (int epochs = 2; epochs <= 32; epochs *= 2)
                for (int nodes = 1; nodes <= 8; nodes *= 2)
                    for (int i = 0; i < 3; i++)
                        if ((model || epochs > 4 || nodes < 8) &&
                            uniform(&seed) < (model ? 0.3 : 0.9))
                            hg_forecast_measure(f, configure(f, model, epochs, nodes, i),
                                                draw(&seed, model, epochs, nodes, noise));
        for (int model = 0; model < 2; model++)
            for (int epochs = 2; epochs <= 32; epochs *= 2)
                for (int nodes = 1; nodes <= 8; nodes *= 2) {
                    size_t c = configure(f, model, epochs, nodes, 9);
                    const struct hg_forecast_run *run = hg_forecast_of(f, c);
                    double t = draw(&seed, model, epochs, nodes, noise);

                    asked[run->source]++;
                    held[run->source] += t >= hg_forecast_quantile(run, 0.025) &&
                                         t <= hg_forecast_quantile(run, 0.975);
                }
        hg_forecast_free(f);
    }
    for (int s = 0; s < HG_FORECAST_NOTHING; s++) {
        print_message("%s: %.3f of %.0f\n", names[s], held[s] / asked[s], asked[s]);
        assert_true(asked[s] > 100);
        assert_holds(names[s], held[s], asked[s]);
    }
}

static void test_intervals_of_a_lone_configuration_hold(void **state)
{
    double held = 0, draws = 2000;
    uint64_t seed = 21;

    (void)state;
    for (int round = 0; round < (int)draws; round++) {
        struct hg_forecast *f = hg_forecast_create();
        double t = draw(&seed, 0, 4, 1, 0.05);
        const struct hg_forecast_run *run;

        for (int i = 0; i < 3; i++)
            hg_forecast_measure(f, configure(f, 0, 4, 1, i), draw(&seed, 0, 4, 1, 0.05));
        run = hg_forecast_of(f, 0);
        held += t >= hg_forecast_quantile(run, 0.025) && t <= hg_forecast_quantile(run, 0.975);
        hg_forecast_free(f);
    }
    assert_true(fabs(held / draws - 0.95) < 0.015);
}

#define CELLS 24

/* What CELLS cells really take on so many slots. */
static double really(const double *t, size_t slots)
{
    double ends[8] = { 0 }, last = 0;

    for (size_t i = 0; i < CELLS; i++) {
        size_t first = 0;

        for (size_t s = 1; s < slots; s++)
            first = ends[s] < ends[first] ? s : first;
        ends[first] += t[i];
        last = fmax(last, ends[first]);
    }
    return last;
}

static void test_intervals_of_sums_and_ends_hold(void **state)
{
    double hours = 0, ends = 0, draws = 300;
    uint64_t seed = 5;

    (void)state;
    for (int round = 0; round < (int)draws; round++) {
        struct hg_forecast *f = hg_forecast_create();
        struct hg_forecast_work list[CELLS];
        double noise = 0.02 + 0.1 * uniform(&seed), t[CELLS], sum = 0;
        size_t slots = 1 + (size_t)(7 * uniform(&seed));
        struct hg_outlook o;

        for (int i = 0; i < CELLS; i++) {
            int epochs = 2 + i / 3 * 2, model = i % 2;

            for (int k = 0; k < 2 && (i < 12 || round % 2); k++)
                hg_forecast_measure(f, configure(f, model, epochs, 1, k),
                                    draw(&seed, model, epochs, 1, noise));
            list[i] = (struct hg_forecast_work){ configure(f, model, epochs, 1, 9), 1, 1, 0, NAN };
            t[i] = draw(&seed, model, epochs, 1, noise);
            sum += t[i];
        }
        for (int i = 12; i < CELLS && round % 2 == 0; i++) /* some repeats, so that rest is known */
            hg_forecast_measure(f, list[i].configuration,
                                draw(&seed, i % 2, 2 + i / 3 * 2, 1, noise));
        hg_forecast_look(f, list, CELLS, (struct hg_pace){ slots, 0 }, &o);
        assert_int_equal(o.cells[HG_FORECAST_NOTHING], 0);
        hours += sum / 3600 >= o.device_hours.low && sum / 3600 <= o.device_hours.high;
        ends += really(t, slots) >= o.seconds.low && really(t, slots) <= o.seconds.high;
        hg_forecast_free(f);
    }
    print_message("sums %.3f, ends %.3f\n", hours / draws, ends / draws);
    assert_holds("sums", hours, draws);
    assert_holds("ends", ends, draws);
}

static void test_what_cells_have_in_common_does_not_cancel(void **state)
{
    struct hg_forecast *f = hg_forecast_create();
    struct hg_forecast_work list[] = { { configure(f, 0, 1, 1, 1), 1000, 1, 0, NAN } };
    const double logs[] = { -0.1, 0.1, -0.1, 0.1 };
    struct hg_outlook o;
    double half;

    (void)state;
    for (size_t i = 0; i < N_OF(logs); i++)
        hg_forecast_measure(f, 0, 100 * exp(logs[i]));
    /* the mean of four runs is not known better for a thousand cells than for one */
    half = hg_stats_t_quantile(0.975, 3) * sqrt(0.04 / 3) / 2;
    hg_forecast_look(f, list, 1, (struct hg_pace){ 10, 0 }, &o);
    assert_near(log(o.device_hours.high / o.device_hours.low), 2 * half, 0.15);
    hg_forecast_set_between(f, 0.3);
    hg_forecast_look(f, list, 1, (struct hg_pace){ 10, 0 }, &o);
    assert_near(log(o.device_hours.high / o.device_hours.low), 2 * 1.96 * 0.32, 0.15);
    hg_forecast_free(f);
}

static void test_more_runs_narrow_the_interval(void **state)
{
    struct hg_forecast *f = hg_forecast_create();
    uint64_t seed = 2;
    double few;

    (void)state;
    for (int i = 0; i < 3; i++)
        hg_forecast_measure(f, configure(f, 0, 4, 1, i), draw(&seed, 0, 4, 1, 0.05));
    few = width(hg_forecast_of(f, 0));
    for (int i = 0; i < 17; i++)
        hg_forecast_measure(f, 0, draw(&seed, 0, 4, 1, 0.05));
    assert_true(width(hg_forecast_of(f, 0)) < few);
    assert_int_equal(hg_forecast_of(f, 0)->runs, 20);
    hg_forecast_free(f);
}

/* ---- What is left ---- */

static void test_limits_bound_what_nothing_is_known_of(void **state)
{
    struct hg_forecast *f = hg_forecast_create();
    struct hg_forecast_work list[] = { { configure(f, 0, 1, 1, 1), 4, 2, 3600, NAN },
                                       { configure(f, 1, 1, 1, 1), 2, 1, 0, NAN } };
    struct hg_outlook o;

    (void)state;
    hg_forecast_look(f, list, 1, (struct hg_pace){ 2, 10 }, &o);
    assert_true(o.at_most && isnan(o.device_hours.value) && o.endless == 0);
    assert_near(o.limit_hours, 8, 1e-12);
    assert_near(o.seconds.value, 2 * 3610, 1e-12);
    hg_forecast_look(f, list, 2, (struct hg_pace){ 2, 0 }, &o);
    assert_true(isnan(o.seconds.value));
    assert_int_equal(o.endless, 2);
    hg_forecast_look(f, list, 0, (struct hg_pace){ 0 }, &o);
    assert_true(isnan(o.seconds.value));
    hg_forecast_free(f);
}

static void test_a_cell_that_runs_has_only_its_rest_left(void **state)
{
    struct hg_forecast *f = hg_forecast_create();
    struct hg_forecast_work list[] = { { configure(f, 0, 1, 1, 1), 1, 1, 0, 60 } };
    struct hg_outlook o;

    (void)state;
    for (int i = 0; i < 20; i++)
        hg_forecast_measure(f, 0, 100 + i % 3);
    hg_forecast_look(f, list, 1, (struct hg_pace){ 1, 7 }, &o);
    assert_near(o.seconds.value, 41, 0.05); /* no gap before it: it has started */
    list[0].elapsed_s = 500;                /* longer than any: no negative rest */
    hg_forecast_look(f, list, 1, (struct hg_pace){ 1, 7 }, &o);
    assert_true(o.seconds.low >= 0);
    hg_forecast_free(f);
}

static void test_a_cell_that_runs_has_only_the_rest_of_its_limit_left(void **state)
{
    struct hg_forecast *f = hg_forecast_create();
    struct hg_forecast_work list[] = { { configure(f, 0, 1, 1, 1), 1, 2, 3600, 600 },
                                       { configure(f, 0, 1, 1, 1), 1, 2, 3600, NAN } };
    struct hg_outlook o;

    (void)state;
    hg_forecast_look(f, list, 2, (struct hg_pace){ 1, 0 }, &o);
    assert_near(o.limit_hours, 2 * (3000 + 3600) / 3600.0, 1e-12);
    assert_near(o.seconds.value, 3000 + 3600, 1e-12);
    list[0].elapsed_s = 4000; /* Slurm is late: the next one cannot start before now */
    hg_forecast_look(f, list, 2, (struct hg_pace){ 1, 0 }, &o);
    assert_near(o.limit_hours, 2, 1e-12);
    assert_near(o.seconds.value, 3600, 1e-12);
    hg_forecast_free(f);
}

static void test_the_time_that_is_left_shrinks_and_is_never_negative(void **state)
{
    static const struct {
        struct hg_outlook outlook;
        double passed_s;
        const char *text;
    } cases[] = {
        { { .seconds = { 600, 480, 720, true } }, 0, "10m 00s (8m 00s to 12m 00s)" },
        { { .seconds = { 600, 480, 720, true } }, 540, "60.0 s (0.00 s to 3m 00s)" },
        { { .seconds = { 600, 480, 720, true }, .at_most = true }, 0, "at most 10m 00s" },
        { { .seconds = { 600, 0, 0, false } }, 0, "10m 00s" },
        { { .seconds = HG_ESTIMATE_NONE }, 0, "not known" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_buf out = HG_BUF_INIT;

        hg_outlook_append_time(&cases[i].outlook, cases[i].passed_s, &out);
        assert_string_equal(hg_buf_str(&out), cases[i].text);
        hg_buf_done(&out);
    }
}

static void test_many_cells_are_simulated_in_blocks(void **state)
{
    static const struct {
        size_t cells, slots;
    } cases[] = { { 100000, 4 }, { 100000, 3000 }, { 50000, 100 } };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_forecast *f = hg_forecast_create();
        struct hg_forecast_work list[] = { { configure(f, 0, 1, 1, 1), cases[i].cells, 1, 0,
                                             NAN } };
        uint64_t seed = 9;
        struct hg_outlook o;

        for (int k = 0; k < 20; k++)
            hg_forecast_measure(f, 0, 100 * exp(0.05 * normal(&seed)));
        hg_forecast_look(f, list, 1, (struct hg_pace){ cases[i].slots, 1 }, &o);
        assert_near(o.device_hours.value, 100.0 * (double)cases[i].cells / 3600, 0.03);
        assert_near(o.seconds.value, 101.0 * (double)cases[i].cells / (double)cases[i].slots, 0.06);
        hg_forecast_free(f);
    }
}

static void test_the_pace_of_runs(void **state)
{
    /* two at a time, three seconds between the end of one and the start of the next in its place */
    double starts[] = { 0, 0, 13, 13, 26, 26 }, ends[] = { 10, 10, 23, 23 };
    struct hg_pace pace = hg_forecast_pace(starts, 6, ends, 4, 0);

    (void)state;
    assert_int_equal(pace.slots, 2);
    assert_near(pace.gap_s, 3, 1e-12);
    pace = hg_forecast_pace(starts, 6, ends, 4, 1);
    assert_int_equal(pace.slots, 1);
    assert_int_equal(hg_forecast_pace(starts, 0, ends, 0, 0).slots, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeats_and_requests_do_not_make_a_configuration),
        cmocka_unit_test(test_the_best_source_is_taken),
        cmocka_unit_test(test_a_key_that_follows_another_is_no_second_one),
        cmocka_unit_test(test_intervals_of_one_run_hold),
        cmocka_unit_test(test_intervals_of_a_lone_configuration_hold),
        cmocka_unit_test(test_intervals_of_sums_and_ends_hold),
        cmocka_unit_test(test_what_cells_have_in_common_does_not_cancel),
        cmocka_unit_test(test_more_runs_narrow_the_interval),
        cmocka_unit_test(test_limits_bound_what_nothing_is_known_of),
        cmocka_unit_test(test_a_cell_that_runs_has_only_its_rest_left),
        cmocka_unit_test(test_a_cell_that_runs_has_only_the_rest_of_its_limit_left),
        cmocka_unit_test(test_the_time_that_is_left_shrinks_and_is_never_negative),
        cmocka_unit_test(test_many_cells_are_simulated_in_blocks),
        cmocka_unit_test(test_the_pace_of_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
