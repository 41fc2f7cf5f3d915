/* SPDX-License-Identifier: Apache-2.0 */
#include "typeset/style.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "render/latex_width.h"

static void test_a_half_is_rounded_as_it_is_written(void **state)
{
    static const struct {
        double v;
        int decimals;
        const char *number, *duration;
    } cases[] = {
        { 59.425, 2, "59.43", "0m59.43s" }, /* its double is below */
        { -59.425, 2, "-59.43", "-0m59.43s" },
        { 1.005, 2, "1.01", "0m1.01s" },
        { 0.125, 2, "0.13", "0m0.13s" },
        { 2.5, 0, "3", "0m3s" },
        { 101.687 / 2, 3, "50.844", "0m50.844s" },
        { 59.4249999, 2, "59.42", "0m59.42s" },
        { 59.996, 2, "60.00", "1m0.00s" },
        { 186.619, 3, "186.619", "3m6.619s" },
        { 1e15 + 1, 0, "1000000000000001", "1000000000000001" },
        { 0, 2, "0.00", "0m0.00s" },
    };
    static const struct hg_style plain = HG_STYLE_INIT, durations = { .durations = true };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hg_buf text = HG_BUF_INIT;

        hg_number_append(&plain, cases[i].v, cases[i].decimals, &text);
        assert_string_equal(hg_buf_str(&text), cases[i].number);
        hg_buf_clear(&text);
        hg_seconds_append(&plain, cases[i].v, cases[i].decimals, &text);
        assert_string_equal(hg_buf_str(&text), cases[i].number);
        hg_buf_clear(&text);
        hg_seconds_append(&durations, cases[i].v, cases[i].decimals, &text);
        assert_string_equal(hg_buf_str(&text), cases[i].duration);
        hg_buf_done(&text);
    }
}

/* Every half with three decimals, as a hand rounds it. */
static void test_every_half_goes_up(void **state)
{
    static const struct hg_style plain = HG_STYLE_INIT;

    (void)state;
    for (int n = 5; n < 200000; n += 10) {
        double v = n / 1000.0;
        struct hg_buf text = HG_BUF_INIT;
        char expected[32];

        snprintf(expected, sizeof expected, "%d.%02d", (n + 5) / 1000, (n + 5) / 10 % 100);
        hg_number_append(&plain, v, 2, &text);
        assert_string_equal(hg_buf_str(&text), expected);
        hg_buf_done(&text);
    }
}

static void test_words_give_decimals(void **state)
{
    struct hg_style style;
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    assert_int_equal(hg_style_parse("durations,decimals=3,speedup=0", &style, &err), 0);
    assert_true(style.durations && style.decimals == 4 && style.speedup_decimals == 1);
    assert_int_equal(hg_style_parse("comma", &style, &err), 0);
    assert_true(style.decimals == 0 && style.speedup_decimals == 0);
    for (const char *const *word = (const char *const[]){ "decimals=", "decimals=10", "speedup=x",
                                                          "digits=3", "=3", NULL };
         *word; word++) {
        err = (struct hg_err)HG_ERR_INIT;
        assert_int_equal(hg_style_parse(*word, &style, &err), -1);
        assert_int_equal(err.code, HG_E_USAGE);
    }
}

/* Widths that TeX gives (\\settowidth at 10 pt). */
static void test_text_in_latex_is_as_wide_as_tex_makes_it(void **state)
{
    struct hg_buf out = HG_BUF_INIT;

    (void)state;
    assert_float_equal(hg_latex_width("0123456789"), 50, 0.1);
    assert_float_equal(hg_latex_width("deepspeed"), 43.9, 0.2);
    assert_float_equal(hg_latex_width("ABC xyz"), 7.5 + 7.08 + 7.22 + 3.33 + 5.28 + 5.28 + 4.44,
                       0.1);
    assert_float_equal(hg_latex_stack("deepspeed_stage_3", 50, 'c', &out), 43.9, 0.2);
    assert_string_equal(hg_buf_str(&out), "\\shortstack[c]{deepspeed\\\\\\_stage\\_3}");
    hg_buf_clear(&out);
    assert_float_equal(hg_latex_stack("ddp", 50, 'c', &out), 16.7, 0.1);
    assert_string_equal(hg_buf_str(&out), "ddp");
    hg_buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_half_is_rounded_as_it_is_written),
        cmocka_unit_test(test_every_half_goes_up),
        cmocka_unit_test(test_words_give_decimals),
        cmocka_unit_test(test_text_in_latex_is_as_wide_as_tex_makes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
