/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/colour.h"
#include "base/err.h"
#include "base/fields.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/jsonlist.h"
#include "base/opt.h"
#include "base/proc.h"
#include "base/seal.h"
#include "base/text.h"

static void test_first_error_wins_and_context_goes_in_front(void **state)
{
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    assert_int_equal(hg_err_set(&err, HG_E_INPUT, "nodes must be 1..%d", 4), -1);
    hg_err_set(&err, HG_E_ENV, "second");
    hg_err_wrap(&err, "cell %s", "x");
    assert_string_equal(err.text, "cell x: nodes must be 1..4");
    assert_int_equal(err.code, HG_E_INPUT);
}

static void test_control_characters_are_shown_not_sent(void **state)
{
    struct hg_buf out = HG_BUF_INIT;
    const char text[] = "a\x1b[2J\tb\x7f\xc2\x9b é\u202e\u2028\x9b\xe9";
    const char lines[] = "a\r\nb\rc\td\x1b\0e";

    (void)state;
    hg_text_escape(text, strlen(text), &out);
    assert_string_equal(hg_buf_str(&out), "a\\x1b[2J\\x09b\\x7f\\x9b é\\u202e\\u2028\\x9b\xe9");
    hg_buf_clear(&out);
    hg_text_escape_lines(lines, sizeof lines - 1, &out);
    assert_string_equal(hg_buf_str(&out), "a\nb\nc\td\\x1b\\x00e");
    hg_buf_clear(&out);
    hg_json_dump_string(text, strlen(text), &out);
    assert_string_equal(hg_buf_str(&out),
                        "\"a\\u001b[2J\\tb\\u007f\\u009b é\\u202e\\u2028\x9b\xe9\"");
    hg_buf_done(&out);
}

/* A code point from 0x80 to 0xffff. */
static void put_utf8(uint32_t cp, char out[static 4])
{
    if (cp < 0x800)
        snprintf(out, 4, "%c%c", (int)(0xc0 | cp >> 6), (int)(0x80 | (cp & 0x3f)));
    else
        snprintf(out, 4, "%c%c%c", (int)(0xe0 | cp >> 12), (int)(0x80 | (cp >> 6 & 0x3f)),
                 (int)(0x80 | (cp & 0x3f)));
}

static void test_what_steers_a_terminal_is_known_to_the_code_point(void **state)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = { { 0x80, 0x9f },     { 0x61c, 0x61c },   { 0x200e, 0x200f }, { 0x2028, 0x202e },
                   { 0x2066, 0x2069 }, { 0xfeff, 0xfeff }, { 0xfffe, 0xffff } };
    char text[4];

    (void)state;
    for (int c = 1; c < 256; c++) /* a byte above 0x7f is no UTF-8 by itself */
        assert_int_equal(hg_text_control((char[]){ (char)c, '\0' }),
                         c < 0x20 || (c >= 0x7f && c < 0xa0));
    for (uint32_t cp = 0x80; cp <= 0xffff; cp++) {
        bool steers = false;

        for (size_t i = 0; i < N_OF(ranges); i++)
            steers = steers || (cp >= ranges[i].first && cp <= ranges[i].last);
        if (cp >= 0xd800 && cp < 0xe000) /* surrogates are no text */
            continue;
        put_utf8(cp, text);
        assert_int_equal(hg_text_control(text), steers ? strlen(text) : 0);
    }
}

static void test_escapes_end_where_the_text_ends(void **state)
{
    static const struct {
        const char *text, *want;
        size_t n;
    } cases[] = {
        { "ab\x1b", "ab", 2 },
        { "\xc3\xa9", "\xc3", 1 },
        { "\xe2\x80\xae", "\xe2", 1 },
        { "a\xe2\x80\xae", "a\xe2", 2 },
        { "ab\xe2\x80\xae", "ab\xe2", 3 },
        { "\xe2\x80\xae", "\\u202e", 3 },
        { "\xc4\x80\xc2\x80", "\xc4\x80\\x80", 4 },
    };
    struct hg_buf out = HG_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        hg_text_escape(cases[i].text, cases[i].n, &out);
        assert_string_equal(hg_buf_str(&out), cases[i].want);
        hg_buf_clear(&out);
    }
    hg_text_escape_lines("a\r\n", 2, &out); /* the newline is of the next piece */
    assert_string_equal(hg_buf_str(&out), "a\n");
    hg_buf_clear(&out);
    hg_text_escape_lines("a\r\n", 3, &out);
    assert_string_equal(hg_buf_str(&out), "a\n");
    hg_buf_clear(&out);
    hg_text_escape_lines("\r\n\rb", 4, &out);
    assert_string_equal(hg_buf_str(&out), "\n\nb");
    hg_buf_done(&out);
}

static void test_words_are_quoted_where_a_shell_needs_it(void **state)
{
    static const struct {
        const char *word, *want;
    } cases[] = {
        { "", "''" },
        { "a-z_0.9/,=:+@%Z", "a-z_0.9/,=:+@%Z" },
        { "a b", "'a b'" },
        { "$HOME", "'$HOME'" },
        { "it's", "'it'\\''s'" },
        { "a~", "'a~'" },
    };
    struct hg_buf out = HG_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        hg_text_quote_if_needed(cases[i].word, &out);
        assert_string_equal(hg_buf_str(&out), cases[i].want);
        hg_buf_clear(&out);
    }
    hg_buf_done(&out);
}

static void test_numbers_are_written_as_javascript_writes_them(void **state)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        { 0, "0" },
        { -0.0, "0" },
        { 1, "1" },
        { 1.5, "1.5" },
        { 0.1, "0.1" },
        { 3e-5, "0.00003" },
        { 1e-7, "1e-7" },
        { 1.25e-7, "1.25e-7" },
        { 1e21, "1e+21" },
        { 1e20, "100000000000000000000" },
        { -12.75, "-12.75" },
        { 5e-324, "5e-324" },
        { 1.7976931348623157e308, "1.7976931348623157e+308" },
        { 0.000001, "0.000001" },
        { 123456789012345680.0, "123456789012345680" },
        { 1e15, "1000000000000000" },
        { 0.1 + 0.2, "0.30000000000000004" },
        { 999999999.999999, "999999999.999999" },
        { 9999999999.999998, "9999999999.999998" },
        { 89.900001000000003, "89.900001" },
        { 89.90000100000002, "89.90000100000002" }, /* the next double */
    };
    char out[32];

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        assert_int_equal(hg_text_number_format(cases[i].v, out), strlen(cases[i].text));
        assert_string_equal(out, cases[i].text);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Of a number as text, without zeros at its ends. */
static size_t count_digits(const char *text)
{
    size_t n = 0, zeros = 0;

    for (; *text && *text != 'e'; text++) {
        zeros = *text == '0' ? zeros + (n > 0) : *text >= '1' && *text <= '9' ? 0 : zeros;
        n += (*text >= '1' && *text <= '9') || (*text == '0' && n > 0);
    }
    return n - zeros;
}

/* By the definition: the fewest digits of printf that strtod reads as the same number. */
static void test_numbers_have_the_fewest_digits(void **state)
{
    uint64_t seed = 42;

    (void)state;
    for (int i = 0; i < 60000; i++) {
        uint64_t bits = next_random(&seed);
        char out[32], wanted[40], again[40];
        double v;
        int digits = 0;

        memcpy(&v, &bits, sizeof v);
        if (i % 3 == 1) /* times */
            v = (double)(bits % 1000000007) / 1e6;
        else if (i % 3 == 2)
            v = 1e5 / (double)(1 + bits % 100003);
        if (!isfinite(v))
            continue;
        do
            snprintf(wanted, sizeof wanted, "%.*e", digits, v);
        while (strtod(wanted, NULL) != v && ++digits);
        hg_text_number_format(v, out);
        snprintf(again, sizeof again, "%.*e", digits, strtod(out, NULL));
        assert_true(strtod(out, NULL) == v);
        assert_string_equal(again, wanted);
        assert_true(count_digits(out) <= (size_t)digits + 1);
    }
}

static void test_wall_times_that_can_be_read_two_ways_are_refused(void **state)
{
    static const struct {
        const char *text;
        double seconds; /* 0: refused */
    } cases[] = {
        { "01:00:00", 3600 },
        { "2-00:00:30", 172830 },
        { "90m", 5400 },
        { "1.5h", 5400 },
        { "30s", 30 },
        { "2d", 172800 },
        { "01:30", 0 },
        { "90", 0 },
        { "", 0 },
        { "1:61:00", 0 },
        { "-5m", 0 },
        { "00:00:00", 0 },
        { "1w", 0 },
        { "infm", 0 },
        { "1-30:00:00", 0 },
        { "0x10m", 0 },
        { "99999999999999999999d", 0 },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_err err = HG_ERR_INIT;
        double seconds = 0;

        hg_text_duration_parse(cases[i].text, &seconds, &err);
        assert_true(seconds == cases[i].seconds);
        assert_int_equal(err.code, cases[i].seconds ? HG_E_NONE : HG_E_INPUT);
    }
}

static void test_durations_have_two_units_and_a_bound(void **state)
{
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {
        { 0.417, "0.42 s" },
        { 41.3, "41.3 s" },
        { 187, "3m 07s" },
        { 7500, "2h 05m" },
        { 273600, "3d 04h" },
        { 2.8e28, "over 11574d 01h" },
        { INFINITY, "over 11574d 01h" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        char text[32];

        hg_text_duration_format(cases[i].seconds, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_amounts_of_memory_are_whole_bytes_that_a_file_can_have(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes; /* 0: refused */
    } cases[] = {
        { "64G", (uint64_t)64 << 30 },
        { "1.5k", 1536 },
        { "8388607T", (uint64_t)8388607 << 40 },
        { "8388608T", 0 },
        { "1000000000T", 0 },
        { "0K", 0 },
        { "0.0001K", 0 },
        { "64", 0 },
        { "64GB", 0 },
        { "0x10G", 0 },
        { "-1G", 0 },
        { "1.2.3G", 0 },
        { "", 0 },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_err err = HG_ERR_INIT;
        uint64_t bytes = 0;

        hg_text_size_parse(cases[i].text, &bytes, &err);
        assert_int_equal(bytes, cases[i].bytes);
        assert_int_equal(err.code, cases[i].bytes ? HG_E_NONE : HG_E_INPUT);
    }
}

static void test_nearest_word_is_found_and_far_ones_are_not(void **state)
{
    static const char *const known[] = { "single", "dp", "ddp", "fsdp", "deepspeed" };

    (void)state;
    assert_string_equal(hg_text_nearest("dpp", known, 5), "ddp");
    assert_string_equal(hg_text_nearest("deepsped", known, 5), "deepspeed");
    assert_null(hg_text_nearest("horovod", known, 5));
}

static void test_any_bytes_become_a_json_string(void **state)
{
    static const char *const cases[][2] = {
        { "", "" },
        { "na\xc3\xafve \xf0\x9f\x9a\x80", "na\xc3\xafve \xf0\x9f\x9a\x80" },
        { "caf\xe9!", "caf\xef\xbf\xbd!" },                         /* Latin-1 */
        { "\xe2\x80", "\xef\xbf\xbd\xef\xbf\xbd" },                 /* cut */
        { "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },                 /* overlong */
        { "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* a surrogate */
        { "\xf8\x80", "\xef\xbf\xbd\xef\xbf\xbd" },
        { "\xef\xbf\xbd", "\xef\xbf\xbd" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        json_t *value = hg_json_text(cases[i][0]);

        assert_string_equal(json_string_value(value), cases[i][1]);
        json_decref(value);
    }
}

static void assert_is_cut(const struct hg_err *err)
{
    json_t *value = json_string(err->text); /* NULL if it is no UTF-8 */

    assert_non_null(value);
    assert_string_equal(err->text + strlen(err->text) - 3, "...");
    json_decref(value);
}

static void test_long_messages_are_cut_between_characters(void **state)
{
    char text[2048];
    size_t n = 0;

    (void)state;
    while (n < sizeof text - 4)
        n += (size_t)sprintf(text + n, "\xe2\x82\xac");
    for (int shift = 0; shift < 3; shift++) {
        struct hg_err set = HG_ERR_INIT, wrapped = HG_ERR_INIT;

        hg_err_set(&set, HG_E_INPUT, "%.*s%s", shift, "ab", text);
        assert_is_cut(&set);
        hg_err_set(&wrapped, HG_E_INPUT, "%.1000s", text);
        hg_err_wrap(&wrapped, "%.*s%.60s", shift, "ab", text);
        assert_is_cut(&wrapped);
    }
}

static void test_json_errors_name_line_and_column(void **state)
{
    static const char text[] = "{\n  \"a\": [1, {\"b/c\": true}],\n  \"d\": 2\n}";
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    assert_int_equal(hg_json_parse("x.json", text, strlen(text), &doc, &err), 0);
    hg_json_error(&doc, "/a/1/b~1c", &errs, "wrong");
    hg_json_error_key(&doc, "/d", &errs, "wrong");
    assert_int_equal(errs.items[0].line, 2);
    assert_int_equal(errs.items[0].column, 20);
    assert_int_equal(errs.items[1].line, 3);
    assert_int_equal(errs.items[1].column, 3);
    hg_errs_done(&errs);
    hg_json_doc_done(&doc);
}

static int keep_item(void *list, json_t *item)
{
    return json_array_append(list, item);
}

/* The reader of single items, beside jansson's reading of the whole. */
static void compare_readers(const char *text)
{
    const int flags = JSON_REJECT_DUPLICATES;
    json_t *whole = json_loads(text, flags, NULL), *rest = json_object(), *items = json_array();
    FILE *file = fmemopen((char *)text, strlen(text), "r");
    int rc = hg_json_each_item(file, "items", rest, keep_item, items);

    fclose(file);
    if (rc == 0) {
        struct hg_buf one = HG_BUF_INIT, other = HG_BUF_INIT;

        assert_non_null(whole);
        hg_json_dump(json_object_get(whole, "items"), HG_JSON_COMPACT, &one);
        hg_json_dump(items, HG_JSON_COMPACT, &other);
        assert_string_equal(hg_buf_str(&one), hg_buf_str(&other));
        json_object_del(whole, "items");
        assert_true(json_equal(whole, rest));
        hg_buf_done(&one);
        hg_buf_done(&other);
    } else if (whole) {
        fail_msg("refused: %.200s", text);
    }
    json_decref(whole);
    json_decref(rest);
    json_decref(items);
}

static void test_items_are_read_as_jansson_reads_the_whole(void **state)
{
    static const char *const items[] = {
        "",
        "{}",
        "[]",
        "1,1,1.0,1e0,true,true",
        "\"a\",\"a\",\"\\u0061\",\"a\\\\\",\"\\\"\"",
        "{\"b\": 1, \"a\": [{\"b\": 1}, [ ], {\"b\": {\"b\": null}}]}, {\"a\": 1, \"b\": 1}",
        "\t{ \"\" :\r\n-0.5 } ",
        "0,-0,-0.0,0.1,-7.25,0.00001,100.14285714285714,123456789012345.5,999999999999999",
        "1234567890123456,-9007199254740993,0.12345678901234567890123,9007199254740993.0",
        "\"\x7f~ \"",
        "\"a string that is too long to be remembered by the reader, twice\"",
        "{\"a\\u00e9\": \"\xc3\xa9\"}",
        /* refused */
        ",",
        "1,",
        "1 2",
        "{",
        "}",
        "[1",
        "1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "{\"a\": 1, \"a\": 1}",
        "{\"a\": 1, \"\\u0061\": 2}",
        "{\"a\\u0000\": 1}",
        "\"\\u0000\"",
        "nul",
        "truefalse",
        "tru\"e\"",
        "01",
        "00.1",
        "1.",
        ".5",
        "-.5",
        "1.5.2",
        "1-2",
        "12345678901234567890",
        "1e999",
        "NaN",
        "-",
        "'a'",
        "\"a\"\"b\"",
        "\"a",
        "\"a\\\"",
        "\"\n\"",
        "\"\xff\"",
        "\xef\xbb\xbf"
        "1",
        "1: 2",
        "[1}",
        "{\"a\": 1]",
        "/**/1",
    };
    char text[8192];

    (void)state;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        snprintf(text, sizeof text, "{\"n\": 1, \"items\": [%s], \"more\": {\"n\": 1}}\n",
                 items[i]);
        compare_readers(text);
        snprintf(text, sizeof text, "{\"items\": [1, %s]} 1", items[i]); /* text behind it */
        compare_readers(text);
        snprintf(text, sizeof text, "{\"items\": [], \"items\": [%s]}", items[i]);
        compare_readers(text);
    }
    for (int levels = JSON_PARSER_MAX_DEPTH - 1; levels <= JSON_PARSER_MAX_DEPTH + 1; levels++) {
        char lists[2 * JSON_PARSER_MAX_DEPTH + 1] = "";
        size_t n = (size_t)levels - 2; /* the items are in a list in an object */

        memset(lists, '[', n);
        memset(lists + n, ']', n);
        snprintf(text, sizeof text, "{\"items\": [%s]}", lists);
        compare_readers(text);
    }
}

/* It is read in pieces: each of these ends in another word of the list. */
static void test_long_lists_are_read_as_jansson_reads_them(void **state)
{
    (void)state;
    for (int indent = 0; indent < 24; indent++) {
        struct hg_buf text = HG_BUF_INIT;

        hg_buf_printf(&text, "%*s{\"items\": [0", indent, "");
        while (text.len < 200000)
            hg_buf_puts(&text, ", -1.25,{\"name\":true}, \"a \\\"\"");
        hg_buf_puts(&text, "]}");
        compare_readers(hg_buf_str(&text));
        hg_buf_done(&text);
    }
}

static void test_json_that_two_programs_could_read_differently_is_refused(void **state)
{
    static const char *const texts[] = {
        "{\"a\":1,\"a\":2}", "[1,2",       "{} x", "[NaN]", "[1e999]",
        "\"\\u0000\"",       "[\"\xff\"]", "",     "[1,]",
    };

    (void)state;
    for (size_t i = 0; i < N_OF(texts); i++) {
        struct hg_json_doc doc = HG_JSON_DOC_INIT;
        struct hg_err err = HG_ERR_INIT;

        assert_int_equal(hg_json_parse("x", texts[i], strlen(texts[i]), &doc, &err), -1);
        assert_int_equal(err.code, HG_E_INPUT);
        assert_true(err.line >= 1);
    }
}

static void say_farewell(void)
{
    char *text = hg_str_printf("%.*s", 100000, "the last words need memory");

    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        abort();
}

static void test_out_of_memory_ends_the_process_with_code_4(void **state)
{
    char words[64] = "", said[256] = "";
    int out[2], err[2], status;
    pid_t child;

    (void)state;
    assert_int_equal(pipe(out) + pipe(err), 0);
    child = fork();
    if (child == 0) {
        struct rlimit all = { 300 << 20, 300 << 20 };

        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        hg_alloc_at_end(say_farewell, 1 << 20);
        setrlimit(RLIMIT_AS, &all);
        for (;;) /* the last pages, too */
            if (!json_stringn_nocheck("0123456789", 10) || !hg_alloc(64))
                _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 4);
    assert_true(read(out[0], words, sizeof words - 1) > 0);
    assert_string_equal(words, "the last words need memory");
    assert_true(read(err[0], said, sizeof said - 1) > 0);
    assert_non_null(strstr(said, ": error: out of memory\n"));
    for (int i = 0; i < 2; i++) {
        close(out[i]);
        close(err[i]);
    }
}

static void test_canonical_json_is_rfc_8785(void **state)
{
    /* the sorting example of RFC 8785 section 3.2.3, and number and string forms of 3.2.2 */
    static const char in[] =
        "{\"\\u20ac\":1.0,\"\\r\":2,\"\\ufb33\":3,\"1\":4,\"\\ud83d\\ude00\":5,\"\\u0080\":6,"
        "\"\\u00f6\":[1e30,4.50,2e-3,\"\\u000f\\n/\"]}";
    static const char want[] =
        "{\"\\r\":2,\"1\":4,\"\xc2\x80\":6,\"\xc3\xb6\":[1e+30,4.5,0.002,\"\\u000f\\n/\"],"
        "\"\xe2\x82\xac\":1,\"\xf0\x9f\x98\x80\":5,\"\xef\xac\xb3\":3}";
    struct hg_buf out = HG_BUF_INIT;
    json_t *value = json_loads(in, 0, NULL);

    (void)state;
    hg_json_dump(value, HG_JSON_SORT, &out);
    assert_string_equal(hg_buf_str(&out), want);
    hg_buf_done(&out);
    json_decref(value);
}

static void test_large_numbers_read_back(void **state)
{
    static const double cases[] = {
        1e18, 0x1p63, -0x1p63, 1e19, -3.5e20, 1e21, 1.7976931348623157e308
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        json_t *value = json_real(cases[i]), *again;
        struct hg_buf out = HG_BUF_INIT;

        hg_json_dump(value, HG_JSON_COMPACT, &out);
        again = json_loadb(out.data, out.len, JSON_DECODE_ANY, NULL);
        assert_true(json_number_value(again) == cases[i]);
        json_decref(again);
        json_decref(value);
        hg_buf_done(&out);
    }
}

static void test_long_lists_fill_their_lines(void **state)
{
    struct hg_buf out = HG_BUF_INIT;
    json_t *list = json_array(), *again;
    size_t lines = 0;

    (void)state;
    for (int i = 0; i < 100; i++)
        json_array_append_new(list, json_integer(1000 + i));
    hg_json_dump(list, HG_JSON_INDENT, &out);
    for (const char *p = hg_buf_str(&out); p && *p;
         p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
        assert_true(strcspn(p, "\n") <= 100);
        lines++;
    }
    assert_int_equal(lines, 7);
    again = json_loads(hg_buf_str(&out), 0, NULL);
    assert_true(json_equal(list, again));
    json_decref(list);
    json_decref(again);
    hg_buf_done(&out);
}

struct sample {
    long long nodes, seed;
    double lr;
    char *name;
    bool on;
    char **words;
};

static const struct hg_field sample_fields[] = {
    { "nodes", HG_J_INT, offsetof(struct sample, nodes), HG_J_REQUIRED, .min = 1, .max = 16,
      .doc = "how many" },
    { "seed", HG_J_INT, offsetof(struct sample, seed), .max = 9007199254740991.0, .doc = "seed" },
    { "lr", HG_J_REAL, offsetof(struct sample, lr), .doc = "rate" },
    { "name", HG_J_STRING, offsetof(struct sample, name), .doc = "name" },
    { "on", HG_J_BOOL, offsetof(struct sample, on), .doc = "switch" },
    { "words", HG_J_STRINGS, offsetof(struct sample, words), .doc = "words" },
    { 0 },
};

static void test_field_tables_report_every_problem(void **state)
{
    static const char text[] =
        "{\"nodes\": 17, \"lr\": \"x\", \"nmae\": 1, \"on\": 1, \"words\": [1], "
        "\"seed\": 9007199254740992}";
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_buf out = HG_BUF_INIT;
    struct sample s = { 0 };

    (void)state;
    assert_int_equal(hg_json_parse("s.json", text, strlen(text), &doc, NULL), 0);
    assert_int_equal(hg_json_decode(&doc, doc.root, "", sample_fields, false, &s, &errs), -1);
    hg_errs_format(&errs, &out);
    assert_string_equal(hg_buf_str(&out),
                        "s.json:1:11: error: /nodes: 17 is out of range; 1 to 16\n"
                        "s.json:1:21: error: /lr: expected a number, found a string\n"
                        "s.json:1:26: error: /nmae: unknown member \"nmae\"\n"
                        "  known: nodes, seed, lr, name, on, words — did you mean \"name\"?\n"
                        "s.json:1:43: error: /on: expected true or false, found an integer\n"
                        "s.json:1:56: error: /words/0: expected a string, found an integer\n"
                        "s.json:1:68: error: /seed: 9007199254740992 is out of range; 0 to "
                        "9007199254740991\n");
    hg_buf_done(&out);
    hg_errs_done(&errs);
    hg_json_release(sample_fields, &s);
    hg_json_doc_done(&doc);
}

static void test_replace_leaves_no_temporary_file(void **state)
{
    char dir[] = "/tmp/hg-test-XXXXXX";
    struct hg_buf text = HG_BUF_INIT;
    char *path;

    (void)state;
    assert_non_null(mkdtemp(dir));
    path = hg_fs_join(dir, "a/b");
    assert_int_equal(hg_fs_replace(path, "x", 1, 0600, NULL), -1); /* no such folder */
    free(path);
    path = hg_fs_join(dir, "f");
    assert_int_equal(hg_fs_replace(path, "one", 3, 0600, NULL), 0);
    assert_int_equal(hg_fs_replace(path, "two", 3, 0600, NULL), 0);
    assert_int_equal(hg_fs_read(path, 10, &text, NULL), 0);
    assert_string_equal(hg_buf_str(&text), "two");
    hg_buf_done(&text);
    unlink(path);
    free(path);
    assert_int_equal(rmdir(dir), 0); /* fails if anything else was left */
}

/* A device put in the place of /dev/null would break the machine; a pipe is as little a file as it is. */
static void test_replace_writes_into_pipes_and_behind_links(void **state)
{
    char dir[] = "/tmp/hg-test-XXXXXX", got[8] = "";
    char *pipe_path, *file, *link;
    struct hg_buf text = HG_BUF_INIT;
    struct stat st;
    int fd;

    (void)state;
    assert_non_null(mkdtemp(dir));
    pipe_path = hg_fs_join(dir, "pipe");
    file = hg_fs_join(dir, "file");
    link = hg_fs_join(dir, "link");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    fd = open(pipe_path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(hg_fs_check_output(pipe_path, NULL), 0);
    assert_int_equal(hg_fs_replace(pipe_path, "one", 3, 0600, NULL), 0);
    assert_int_equal(read(fd, got, sizeof got - 1), 3);
    assert_string_equal(got, "one");
    assert_int_equal(lstat(pipe_path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    close(fd);
    assert_int_equal(hg_fs_replace(file, "old", 3, 0600, NULL), 0);
    assert_int_equal(symlink("file", link), 0);
    assert_int_equal(hg_fs_replace(link, "new", 3, 0600, NULL), 0);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(hg_fs_read(file, 10, &text, NULL), 0);
    assert_string_equal(hg_buf_str(&text), "new");
    assert_int_equal(unlink(pipe_path) | unlink(link) | unlink(file), 0);
    assert_int_equal(rmdir(dir), 0); /* fails if anything else was left */
    hg_buf_done(&text);
    free(pipe_path);
    free(file);
    free(link);
}

static void test_options_mix_with_operands(void **state)
{
    bool json = false;
    const char *name = NULL;
    long n = 1;
    const struct hg_opt opts[] = {
        { HG_OPT_FLAG, 'j', "json", &json, NULL, "print JSON", 0, 0 },
        { HG_OPT_STRING, 'o', "name", &name, "NAME", "a name", 0, 0 },
        { HG_OPT_INT, 'n', "count", &n, "N", "how many", 1, 9 },
        { 0 },
    };
    char words[][16] = { "a", "-jn3", "--name=x", "--", "-b" };
    char *argv[] = { words[0], words[1], words[2], words[3], words[4], NULL };
    char bad[] = "--cuont=3";
    char *bad_argv[] = { bad, NULL };
    struct hg_err err = HG_ERR_INIT;
    int argc = 5;

    (void)state;
    assert_int_equal(hg_opt_parse(opts, &argc, argv, NULL), 0);
    assert_int_equal(argc, 2);
    assert_string_equal(argv[1], "-b");
    assert_true(json && n == 3 && strcmp(name, "x") == 0);
    argc = 1;
    assert_int_equal(hg_opt_parse(opts, &argc, bad_argv, &err), -1);
    assert_string_equal(err.hint, "did you mean --count?");
}

static void test_cpus_are_those_this_process_may_use(void **state)
{
    const int here = sched_getcpu();
    cpu_set_t all, one;

    (void)state;
    if (sched_getaffinity(0, sizeof all, &all) < 0)
        skip(); /* more CPUs than a cpu_set_t holds */
    assert_int_equal(hg_proc_cpus(), CPU_COUNT(&all));
    CPU_ZERO(&one);
    CPU_SET(here, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(hg_proc_cpus(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

static void test_a_program_that_does_not_end_is_killed(void **state)
{
    static const char *const sleeper[] = { "sleep", "60", NULL };
    static const char *const echo[] = { "sh", "-c", "echo out; echo err >&2; exit 3", NULL };
    static const char *const silent[] = { "sh", "-c", "exec >&- 2>&- sleep 60", NULL };
    static const char *const absent[] = { "/no/such/program", NULL };
    struct hg_buf out = HG_BUF_INIT, errout = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    int status;
    char text[64];

    (void)state;
    assert_int_equal(hg_proc_capture(sleeper, 0.1, NULL, NULL, &status, &err), -1);
    assert_int_equal(hg_proc_capture(silent, 0.1, NULL, NULL, &status, &err), -1);
    assert_int_equal(hg_proc_capture(echo, 10, &out, &errout, &status, NULL), 0);
    assert_string_equal(hg_buf_str(&out), "out\n");
    assert_string_equal(hg_buf_str(&errout), "err\n");
    hg_proc_status_format(status, text);
    assert_string_equal(text, "exit code 3");
    err = (struct hg_err)HG_ERR_INIT;
    assert_int_equal(hg_proc_capture(absent, 10, NULL, NULL, &status, &err), -1);
    assert_int_equal(err.code, HG_E_NOTFOUND);
    hg_buf_done(&out);
    hg_buf_done(&errout);
}

static bool says_enough(const struct hg_buf *errout, void *context)
{
    (*(int *)context)++;
    return strstr(hg_buf_str(errout), "enough") != NULL;
}

static void test_a_program_that_is_watched_ends_with_all_that_it_started(void **state)
{
    static const char *const parent[] = { "sh", "-c", "sleep 60 & echo enough >&2; sleep 60",
                                          NULL };
    static const char *const left[] = { "sh", "-c", "exec 3<&0; cat <&3 & exit 3", NULL };
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;
    struct hg_proc_watching watch = { .limit_s = 60, .enough = says_enough };
    struct hg_buf errout = HG_BUF_INIT;
    int asked = 0, status = 0, until[2];

    (void)state;
    watch.context = &asked;
    spec.argv = parent;
    spec.new_session = true;
    assert_int_equal(hg_proc_watch(&spec, &watch, NULL, &errout, &status, NULL), 0);
    assert_string_equal(hg_buf_str(&errout), "enough\n");
    assert_true(asked > 0);
    assert_true(watch.alone);
    assert_false(watch.late);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

    watch = (struct hg_proc_watching){ .limit_s = 0.3 };
    spec.argv = left;
    assert_int_equal(pipe2(until, O_CLOEXEC), 0); /* what is left lives until it is closed */
    spec.in = until[0];
    assert_int_equal(hg_proc_watch(&spec, &watch, NULL, NULL, &status, NULL), 0);
    assert_false(watch.late); /* it has ended; what it left behind holds its streams */
    assert_false(watch.alone);
    assert_int_equal(WEXITSTATUS(status), 3);
    close(until[0]);
    close(until[1]);
    hg_buf_done(&errout);
}

static void test_crc32c_has_its_check_value(void **state)
{
    (void)state;
    assert_int_equal(hg_crc32c(0, "123456789", 9), 0xe3069283u);
    assert_int_equal(hg_crc32c(hg_crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
}

/* Ends of a block are where padding goes wrong. */
static void test_sha1_is_that_of_the_standard(void **state)
{
    static const struct {
        const char *text, *hex;
    } cases[] = {
        { "", "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
        { "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
        { "0123456701234567012345670123456701234567012345670123456701234567",
          "e0c094e867ef46c350ef54a7f59dd60bed92ae83" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        size_t n = strlen(cases[i].text), first = n / 3;
        unsigned char out[20];
        char hex[41] = "";
        struct hg_sha1 s;

        hg_sha1_begin(&s);
        hg_sha1_add(&s, cases[i].text, first);
        hg_sha1_add(&s, cases[i].text + first, n - first);
        hg_sha1_end(&s, out);
        for (int k = 0; k < 20; k++)
            sprintf(hex + (ptrdiff_t)(2 * k), "%02x", out[k]);
        assert_string_equal(hex, cases[i].hex);
    }
}

static void test_a_changed_byte_breaks_the_seal(void **state)
{
    json_t *object = json_pack("{s:f, s:{s:[i,i]}}", "wall_s", 1.5, "cell", "n", 1, 2);

    (void)state;
    for (unsigned flags = HG_JSON_COMPACT; flags <= HG_JSON_INDENT; flags += HG_JSON_INDENT) {
        struct hg_buf text = HG_BUF_INIT;
        json_t *again;

        hg_buf_puts(&text, "before\n"); /* is no part of it */
        hg_seal_dump(object, flags, &text);
        memmove(text.data, text.data + 7, text.len -= 7);
        assert_int_equal(text.data[text.len - 1], '\n');
        assert_true(hg_seal_holds(text.data, text.len - 1));
        again = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
        assert_int_equal(strlen(json_string_value(json_object_get(again, "crc"))), 8);
        json_object_del(again, "crc");
        assert_true(json_equal(object, again));
        json_decref(again);
        for (size_t i = 0; i + 1 < text.len; i++) {
            text.data[i] ^= 1;
            assert_false(hg_seal_holds(text.data, text.len - 1));
            text.data[i] ^= 1;
            assert_false(hg_seal_holds(text.data, i));
        }
        hg_buf_done(&text);
    }
    json_decref(object);
}

static void test_the_first_label_of_a_message_is_coloured(void **state)
{
    static const char *const cases[][2] = {
        { "x: error: a warning: b", "x: \033[31merror:\033[m a warning: b" },
        { "x: warning: curl: error: b", "x: \033[33mwarning:\033[m curl: error: b" },
        { "no error", "no error" },
    };

    (void)state;
    assert_true(hg_colour_set("always"));
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_buf out = HG_BUF_INIT;

        hg_colour_append_message(STDERR_FILENO, cases[i][0], strlen(cases[i][0]), &out);
        assert_string_equal(hg_buf_str(&out), cases[i][1]);
        hg_buf_done(&out);
    }
    assert_true(hg_colour_set("auto"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_error_wins_and_context_goes_in_front),
        cmocka_unit_test(test_control_characters_are_shown_not_sent),
        cmocka_unit_test(test_what_steers_a_terminal_is_known_to_the_code_point),
        cmocka_unit_test(test_escapes_end_where_the_text_ends),
        cmocka_unit_test(test_words_are_quoted_where_a_shell_needs_it),
        cmocka_unit_test(test_numbers_are_written_as_javascript_writes_them),
        cmocka_unit_test(test_numbers_have_the_fewest_digits),
        cmocka_unit_test(test_wall_times_that_can_be_read_two_ways_are_refused),
        cmocka_unit_test(test_durations_have_two_units_and_a_bound),
        cmocka_unit_test(test_amounts_of_memory_are_whole_bytes_that_a_file_can_have),
        cmocka_unit_test(test_any_bytes_become_a_json_string),
        cmocka_unit_test(test_long_messages_are_cut_between_characters),
        cmocka_unit_test(test_nearest_word_is_found_and_far_ones_are_not),
        cmocka_unit_test(test_json_errors_name_line_and_column),
        cmocka_unit_test(test_json_that_two_programs_could_read_differently_is_refused),
        cmocka_unit_test(test_items_are_read_as_jansson_reads_the_whole),
        cmocka_unit_test(test_long_lists_are_read_as_jansson_reads_them),
        cmocka_unit_test(test_out_of_memory_ends_the_process_with_code_4),
        cmocka_unit_test(test_canonical_json_is_rfc_8785),
        cmocka_unit_test(test_large_numbers_read_back),
        cmocka_unit_test(test_long_lists_fill_their_lines),
        cmocka_unit_test(test_field_tables_report_every_problem),
        cmocka_unit_test(test_replace_leaves_no_temporary_file),
        cmocka_unit_test(test_replace_writes_into_pipes_and_behind_links),
        cmocka_unit_test(test_options_mix_with_operands),
        cmocka_unit_test(test_cpus_are_those_this_process_may_use),
        cmocka_unit_test(test_a_program_that_does_not_end_is_killed),
        cmocka_unit_test(test_a_program_that_is_watched_ends_with_all_that_it_started),
        cmocka_unit_test(test_crc32c_has_its_check_value),
        cmocka_unit_test(test_sha1_is_that_of_the_standard),
        cmocka_unit_test(test_a_changed_byte_breaks_the_seal),
        cmocka_unit_test(test_the_first_label_of_a_message_is_coloured),
    };

    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
