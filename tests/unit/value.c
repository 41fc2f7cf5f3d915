/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <math.h>

#include "base/json.h"
#include "matrix/seen.h"
#include "matrix/value.h"

static hg_value value_of(struct hg_pool *pool, const char *text)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
    hg_value v;

    assert_non_null(json);
    v = hg_pool_add(pool, json);
    json_decref(json);
    return v;
}

static void test_equal_values_have_equal_bits(void **state)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } cases[] = {
        { "1", "1.0", true },
        { "0", "-0.0", true },
        { "1", "true", false },
        { "1", "\"1\"", false },
        { "\"a\"", "\"\\u0061\"", true },
        { "[1, 2]", "[1.0,2]", true },
        { "[1, 2]", "[2, 1]", false },
        { "{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true },
        { "null", "false", false },
        { "1e300", "1e301", false },
    };
    struct hg_pool *pool = hg_pool_create();

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++)
        assert_true((value_of(pool, cases[i].a) == value_of(pool, cases[i].b)) == cases[i].equal);
    assert_true(hg_value_is_absent(value_of(pool, "null")));
    hg_pool_free(pool);
}

static void test_texts_are_canonical(void **state)
{
    static const struct {
        const char *json, *text;
    } cases[] = {
        { "1.0", "1" },
        { "-17", "-17" },
        { "0.1", "0.1" },
        { "1e21", "1e+21" },
        { "9007199254740991", "9007199254740991" },
        { "-999999999999999", "-999999999999999" },
        { "\"a/b\"", "\"a/b\"" },
        { "{\"b\":[1.50,true],\"a\":null}", "{\"a\":null,\"b\":[1.5,true]}" },
    };
    struct hg_pool *pool = hg_pool_create();
    char scratch[32];
    size_t len;

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        const char *text = hg_pool_text(pool, value_of(pool, cases[i].json), scratch, &len);

        assert_int_equal(len, strlen(cases[i].text));
        assert_memory_equal(text, cases[i].text, len);
    }
    hg_pool_free(pool);
}

static void test_a_pool_finds_thousands_of_strings_again(void **state)
{
    struct hg_pool *pool = hg_pool_create();
    hg_value first[5000], again;
    char text[16];

    (void)state;
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "s%d", i);
        first[i] = hg_pool_add_string(pool, text);
    }
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "s%d", i);
        again = hg_pool_add_string(pool, text);
        assert_true(again == first[i]);
        assert_string_equal(hg_pool_string(pool, again), text);
    }
    hg_pool_free(pool);
}

static void test_rounding_keeps_15_digits_and_whole_numbers(void **state)
{
    (void)state;
    assert_true(hg_value_round(0.1 + 0.2) == 0.3);
    assert_true(hg_value_round(1.1 * 3) == 3.3);
    assert_true(hg_value_round(9007199254740991.0) == 9007199254740991.0);
    assert_true(hg_value_round(-2.0) == -2.0);
    assert_true(hg_value_round(1.0 / 3) == 0.333333333333333);
}

static void test_fingerprints_with_one_visible_part_are_told_apart(void **state)
{
    struct hg_seen s = { 0 };

    (void)state;
    assert_int_equal(hg_seen_add(&s, 0x123456789abc0010), HG_SEEN_NEW);
    assert_int_equal(hg_seen_add(&s, 0x123456789abc0010), HG_SEEN_AGAIN);
    assert_int_equal(hg_seen_add(&s, 0x123456789abc0020), HG_SEEN_CLASH);
    assert_int_equal(hg_seen_add(&s, 0x123456789abd0010), HG_SEEN_NEW);
    assert_int_equal(hg_seen_add(&s, 0), HG_SEEN_NEW);
    assert_int_equal(hg_seen_add(&s, 0), HG_SEEN_AGAIN);
    assert_true(hg_seen_has(&s, 0x123456789abc0010));
    assert_false(hg_seen_has(&s, 0x123456789abc0020));
    assert_true(hg_seen_mark(&s, 0x123456789abc0010));
    assert_false(hg_seen_mark(&s, 0x123456789abc0010));
    assert_int_equal(hg_seen_add(&s, 0x123456789abc0010), HG_SEEN_AGAIN);
    hg_seen_done(&s);
}

static void test_a_set_grows_and_loses_nothing(void **state)
{
    struct hg_seen s = { 0 };
    uint64_t x = 1;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        assert_int_equal(hg_seen_add(&s, x), HG_SEEN_NEW);
    }
    x = 1;
    for (int i = 0; i < 100000; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        assert_true(hg_seen_has(&s, x));
    }
    assert_int_equal(s.n, 100000);
    hg_seen_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_values_have_equal_bits),
        cmocka_unit_test(test_texts_are_canonical),
        cmocka_unit_test(test_a_pool_finds_thousands_of_strings_again),
        cmocka_unit_test(test_rounding_keeps_15_digits_and_whole_numbers),
        cmocka_unit_test(test_fingerprints_with_one_visible_part_are_told_apart),
        cmocka_unit_test(test_a_set_grows_and_loses_nothing),
    };

    return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
