/* SPDX-License-Identifier: Apache-2.0 */
/* base/jsonpool: what json_loadb makes of a text, or nothing. */
#include "test.h"

#include <jansson.h>

#include "base/buf.h"
#include "base/jsonpool.h"

static const char *const good[] = {
    "{}",
    "[]",
    " [ ] ",
    "{\"a\":1}",
    "[1, -2, 3.5e-3, 0, -0.0, 1e10, true, false, null, \"\", \"x\"]",
    "[\"a\\n\\u00e9\\\"\", \"\xc3\xa9\", \"{\", \"]\", \"a,b\", \"\\\\\"]",
    "{\"results\": [{\"cell\": {\"n\": 1}, \"t\": 1.5}, {\"cell\": {\"n\": 1}, \"t\": 1.5},\n"
    "{\"cell\": {\"n\": 2, \"l\": [1, [2, {\"x\": []}]]}, \"t\": 2}]}",
    "{\"a\": {\"b\": {\"c\": {}}}, \"d\": {\"b\": {\"c\": {}}}}",
    "\t\r\n{\"a\" : [ 1 , 2 ] , \"b\" : \"c\" }\n",
    "9007199254740993",
    "[999999999999999999, -999999999999999999, 9223372036854775807, -9223372036854775808, -0]",
    "[0.1, 1e5, 1E+5, 1e-5, 0e0, -0.0, 1.5E+3, 123456789012345678901234.5, 1e-400, 2.2250738585072014e-308, 0.30000000000000004]",
    "\"alone\"",
};

/* Not JSON, or more than json_loadb takes. */
static const char *const bad[] = {
    "",
    " ",
    "{",
    "[",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "[1,]",
    "[,1]",
    "[1 2]",
    "{\"a\":1 \"b\":2}",
    "{\"a\":1,\"a\":1}",
    "{\"a\":{\"x\":1,\"x\":2}}",
    "{a:1}",
    "{'a':1}",
    "[1}",
    "{]",
    "[\"a]",
    "[\"a\\]",
    "[\"\n\"]",
    "[\"\xff\"]",
    "{\"\xff\":1}",
    "[nan]",
    "[NaN]",
    "[Infinity]",
    "[1e999]",
    "[01]",
    "[1.]",
    "[.5]",
    "[+1]",
    "[-]",
    "[-a]",
    "[--1]",
    "[-01]",
    "[1e]",
    "[1e+]",
    "[1.e5]",
    "[1.5.5]",
    "[1-2]",
    "[-1e999]",
    "[9223372036854775808]",
    "[0x10]",
    "[tru]",
    "[truefalse]",
    "[1]]",
    "[1] x",
    "{}{}",
    "]",
    ",",
    ":",
    "\"",
    "[\"\\u12\"]",
    "[\"\\ud800\"]",
    "[99999999999999999999999]",
};

/* With equal values shared or not: found by both. */
static json_t *parse(const char *text, size_t len)
{
    json_t *shared = hg_json_parse_shared(text, len), *fresh = hg_json_parse_fresh(text, len);

    assert_true(shared ? json_equal(shared, fresh) : !fresh);
    json_decref(fresh);
    return shared;
}

static json_t *reference(const char *text)
{
    return json_loadb(text, strlen(text), JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
}

static void test_it_reads_what_jansson_reads(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(good); i++) {
        json_t *found = parse(good[i], strlen(good[i])), *wanted = reference(good[i]);

        assert_non_null(wanted);
        assert_non_null(found);
        assert_true(json_equal(found, wanted));
        json_decref(found);
        json_decref(wanted);
    }
}

static void test_it_takes_nothing_that_jansson_refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(bad); i++) {
        assert_null(reference(bad[i]));
        assert_null(parse(bad[i], strlen(bad[i])));
    }
}

/* Every text that is cut short, and every text with one byte changed, is read as json_loadb does, or not. */
static void test_damaged_text_is_never_read_as_something_else(void **state)
{
    const char *text = good[6];
    size_t len = strlen(text);
    static const char swaps[] = "{}[],:\"\\1a \n";

    (void)state;
    for (size_t i = 0; i < len; i++)
        for (const char *c = swaps; *c; c++) {
            char *damaged = strdup(text);
            json_t *wanted, *found;

            damaged[i] = *c;
            if (c == swaps) /* cut instead */
                damaged[i] = '\0';
            wanted = reference(damaged);
            found = parse(damaged, strlen(damaged));
            if (found)
                assert_true(wanted && json_equal(found, wanted));
            else /* a name with an escape is left to jansson */
                assert_true(!wanted || strchr(damaged, '\\'));
            json_decref(wanted);
            json_decref(found);
            free(damaged);
        }
}

static void test_equal_values_are_there_once(void **state)
{
    const char *text =
        "[{\"a\": {\"x\": 1}, \"s\": \"word\"}, {\"s\": \"word\", \"a\": {\"x\": 1}}]";
    json_t *list = hg_json_parse_shared(text, strlen(text));
    const json_t *first = json_array_get(list, 0), *second = json_array_get(list, 1);

    (void)state;
    assert_ptr_equal(json_object_get(first, "a"), json_object_get(second, "a"));
    assert_ptr_equal(json_object_get(first, "s"), json_object_get(second, "s"));
    json_decref(list);
}

static void test_what_is_too_deep_or_oddly_named_is_left_to_jansson(void **state)
{
    struct hg_buf deep = HG_BUF_INIT;

    (void)state;
    for (int i = 0; i < 100; i++)
        hg_buf_puts(&deep, "[");
    for (int i = 0; i < 100; i++)
        hg_buf_puts(&deep, "]");
    assert_null(parse(deep.data, deep.len));
    assert_null(parse("{\"a\\u0062\": 1}", 14));
    assert_null(parse("[1]\0x", 5));
    hg_buf_done(&deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_reads_what_jansson_reads),
        cmocka_unit_test(test_it_takes_nothing_that_jansson_refuses),
        cmocka_unit_test(test_damaged_text_is_never_read_as_something_else),
        cmocka_unit_test(test_equal_values_are_there_once),
        cmocka_unit_test(test_what_is_too_deep_or_oddly_named_is_left_to_jansson),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
