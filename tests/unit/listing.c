/* SPDX-License-Identifier: Apache-2.0 */
/* typeset/style, analysis/listing and render/listings: how numbers and plain tables are written. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "render/listings.h"
#include "typeset/sheet.h"

static void test_times_are_written_as_the_shell_does(void **state)
{
    static const struct {
        double s;
        int decimals;
        const char *plain, *duration;
    } cases[] = {
        { 186.619, 3, "186.619", "3m6.619s" },
        { 57.222, 3, "57.222", "0m57.222s" },
        { 59.996, 2, "60.00", "1m0.00s" },
        { 779.3411, 1, "779.3", "12m59.3s" },
        { 0, 0, "0", "0m0s" },
        { 7200, 0, "7200", "120m0s" },
        { -61.5, 1, "-61.5", "-1m1.5s" },
        { -0.001, 1, "-0.0", "0m0.0s" },
        { NAN, 2, "–", "–" },
        { INFINITY, 2, "∞", "∞" },
    };
    const struct hg_style plain = HG_STYLE_INIT, both = { .comma = true, .durations = true };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hg_buf text = HG_BUF_INIT;
        char *comma = strdup(cases[i].duration);

        if (strchr(comma, '.'))
            *strchr(comma, '.') = ',';
        hg_seconds_append(&plain, cases[i].s, cases[i].decimals, &text);
        assert_string_equal(hg_buf_str(&text), cases[i].plain);
        hg_buf_clear(&text);
        hg_seconds_append(&both, cases[i].s, cases[i].decimals, &text);
        assert_string_equal(hg_buf_str(&text), comma);
        hg_buf_done(&text);
        free(comma);
    }
}

static void test_exact_times_keep_their_digits(void **state)
{
    const struct hg_style style = { .durations = true };
    struct hg_buf text = HG_BUF_INIT;

    (void)state;
    hg_seconds_append_exact(&style, 186.619, &text);
    hg_buf_puts(&text, " ");
    hg_seconds_append_exact(&style, 60, &text);
    hg_buf_puts(&text, " ");
    hg_seconds_append_exact(&style, 61.123456, &text);
    assert_string_equal(hg_buf_str(&text), "3m6.619s 1m0s 1m1.123456s");
    hg_buf_done(&text);
}

static void test_words_make_a_style(void **state)
{
    static const struct {
        const char *words;
        bool ok, comma, durations;
    } cases[] = {
        { "comma", true, true, false },
        { "durations", true, false, true },
        { "comma,durations", true, true, true },
        { "comma,point", true, false, false },
        { "seconds", true, false, false },
        { "komma", false, false, false },
        { "", true, false, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hg_style style;
        struct hg_err err = HG_ERR_INIT;
        int rc = hg_style_parse(cases[i].words, &style, &err);

        assert_int_equal(rc, cases[i].ok ? 0 : -1);
        if (!cases[i].ok) {
            assert_int_equal(err.code, HG_E_USAGE);
            assert_non_null(strstr(err.hint, "did you mean \"comma\"?"));
            continue;
        }
        assert_int_equal(style.comma, cases[i].comma);
        assert_int_equal(style.durations, cases[i].durations);
    }
}

static void fill(struct hg_listings *list)
{
    struct hg_listing *l = hg_listing_add(list, "best", "best strategy");

    hg_listing_column(l, "case", "case", true);
    hg_listing_column(l, "train_s", "train_s", false);
    hg_listing_column(l, "limit", "limit", false);
    hg_listing_text(l, "=1+1|<b>");
    hg_listing_seconds(l, 61.25, 1);
    hg_listing_number(l, 3.75, 1);
    hg_listing_text(l, "ddp");
    hg_listing_none(l);
    hg_listing_number(l, NAN, 1);
    hg_listing_note(l, "one note");
}

static void test_one_listing_in_every_form(void **state)
{
    const struct hg_style plain = HG_STYLE_INIT, both = { .comma = true, .durations = true };
    struct hg_listings list = { 0 };
    struct hg_buf text = HG_BUF_INIT;
    json_t *json;

    (void)state;
    fill(&list);
    hg_listing_write_text(&list.items[0], &plain, 80, &text);
    assert_string_equal(hg_buf_str(&text), "best strategy\n"
                                           "case      train_s  limit\n"
                                           "────────────────────────\n"
                                           "=1+1|<b>     61.3    3.8\n"
                                           "ddp                    –\n"
                                           "one note\n");
    hg_buf_clear(&text);
    hg_listing_write_text(&list.items[0], &both, 18, &text);
    assert_string_equal(hg_buf_str(&text), "best strategy\n"
                                           "case      train_s\n"
                                           "─────────────────\n"
                                           "=1+1|<b>   1m1,3s\n"
                                           "ddp\n"
                                           "\n"
                                           "best strategy,\n"
                                           "  continued\n"
                                           "case      limit\n"
                                           "───────────────\n"
                                           "=1+1|<b>    3,8\n"
                                           "ddp           –\n"
                                           "one note\n");
    hg_buf_clear(&text);
    hg_listing_write_md(&list.items[0], &plain, &text);
    assert_string_equal(hg_buf_str(&text), "**best strategy**\n\n"
                                           "| case | train_s | limit |\n"
                                           "| --- | ---: | ---: |\n"
                                           "| =1+1\\|&lt;b> | 61.3 | 3.8 |\n"
                                           "| ddp | | – |\n"
                                           "\none note\n");
    hg_buf_clear(&text);
    json = hg_listing_encode(&list.items[0]);
    hg_json_dump(json, HG_JSON_COMPACT, &text);
    assert_string_equal(hg_buf_str(&text),
                        "{\"name\":\"best\",\"title\":\"best strategy\",\"rows\":["
                        "{\"case\":\"=1+1|<b>\",\"train_s\":61.25,\"limit\":3.75},"
                        "{\"case\":\"ddp\",\"train_s\":null,\"limit\":null}],"
                        "\"notes\":[\"one note\"]}");
    json_decref(json);
    hg_buf_done(&text);
    hg_listings_done(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_are_written_as_the_shell_does),
        cmocka_unit_test(test_exact_times_keep_their_digits),
        cmocka_unit_test(test_words_make_a_style),
        cmocka_unit_test(test_one_listing_in_every_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
