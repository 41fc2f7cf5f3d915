/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/json.h"
#include "base/pattern.h"
#include "plan/template.h"

static json_t *parse(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);

    assert_non_null(value);
    return value;
}

/* Render a list of words and join them with "|". */
static char *joined(const char *list, const char *cell)
{
    struct hg_template_vars vars = {
        .cell = parse(cell), .dir = "/run/a", .head = "n1", .id = "c-1"
    };
    struct hg_words words = HG_WORDS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_buf out = HG_BUF_INIT;
    json_t *words_json = parse(list);

    assert_int_equal(hg_template_words(words_json, &vars, &words, &err), 0);
    for (size_t i = 0; i < words.n; i++)
        hg_buf_printf(&out, "%s%s", i ? "|" : "", words.items[i]);
    if (words.n)
        assert_null(words.items[words.n]);
    hg_words_done(&words);
    json_decref(words_json);
    json_decref((json_t *)vars.cell);
    return out.data ? hg_buf_detach(&out) : strdup("");
}

static void test_words(void **state)
{
    static const char cell[] =
        "{\"nodes\":2,\"lr\":0.00003,\"name\":\"a b\",\"wrap\":[\"layer\",1],"
        "\"on\":true,\"off\":false,\"none\":null,\"_note\":5,\"time\":60,\"repeat\":1}";
    static const struct {
        const char *list, *want;
    } cases[] = {
        { "[]", "" },
        { "[\"a\",\"{{nodes}}\"]", "a|2" },
        { "[\"--n={{nodes}}x{{ nodes }}\"]", "--n=2x2" },
        { "[\"{{lr}}\",\"{{on}}\",\"{{wrap}}\",\"{{name}}\"]", "0.00003|true|[\"layer\",1]|a b" },
        { "[\"a\",\"{{absent}}\",\"b\"]", "a|b" },
        { "[\"a\",\"{{none}}\",\"b\"]", "a|b" },
        { "[\"a\",[\"--wrap\",\"{{absent}}\"],\"b\"]", "a|b" },
        { "[\"a\",[\"--name\",\"{{name}}\"],\"b\"]", "a|--name|a b|b" },
        { "[\"{{dir}}/x\",\"{{head}}:1\"]", "/run/a/x|n1:1" },
        { "[\"p\",\"{{args}}\",\"q\"]",
          "p|--lr=0.00003|--name=a b|--wrap=[\"layer\",1]|--on=true|--off=false|q" },
        { "[\"a\",\"{{wrap...}}\",\"{{on?--on}}\",\"{{ off? --off }}\",\"b\"]",
          "a|layer|1|--on|b" },
        { "[[\"--wrap\",\"{{ wrap... }}\"],[\"--x\",\"{{none...}}\"],[\"-y\",\"{{off?-z}}\"]]",
          "--wrap|layer|1" },
        { "[\"+{{on?trainer.amp=}}{{on}}\",\"{{on?}}\",\"{{wrap..}}\"]", "+trainer.amp=true|" },
        { "[\"{{\",\"}}\",\"{{}}\",\"{{a b}}\",\"{{1}}\",\"{a}\",\"{{{nodes}}}\"]",
          "{{|}}|{{}}|{{a b}}|{{1}}|{a}|{2}" },
        { "[\"{{cell}}\",\"{{result}}\",\"{{id}}\"]", "/run/a/cell.json|/run/a/workload.json|c-1" },
        { "[\"{{_note}}\"]", "" },
        { "[\"$(x) `y` 'z'\"]", "$(x) `y` 'z'" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        char *got = joined(cases[i].list, cell);

        assert_string_equal(got, cases[i].want);
        free(got);
    }
}

static void test_a_line_of_a_file_that_names_an_absent_member_is_left_out(void **state)
{
    struct hg_template_vars vars = { .cell = parse("{\"a\":1}"), .dir = "/d", .head = "h" };
    struct hg_buf out = HG_BUF_INIT;

    (void)state;
    hg_template_lines("x {{a}}\ny {{b}}\n\nall: {{args}}\nend", &vars, &out);
    assert_string_equal(hg_buf_str(&out), "x 1\n\nall: --a=1\nend");
    hg_buf_done(&out);
    json_decref((json_t *)vars.cell);
}

/* Byte for byte: whatever a matrix may hold reaches the word unchanged. */
static void test_hostile_values_come_out_as_they_went_in(void **state)
{
    static const char *const parts[] = {
        "'",
        "\"",
        "\\",
        "$(touch x)",
        "`x`",
        "\n",
        "{{a}}",
        "{{",
        "}}",
        ";",
        "|",
        "&&",
        "%s%n",
        "-",
        "../",
        "\t",
        "\xe2\x88\x92",
        "=cmd",
        "\r",
        "*",
        "$A",
        "#",
        "\x01",
        "\x7f",
        " ",
        "\xf0\x9f\x98\x80",
    };
    uint64_t seed = 1;

    (void)state;
    for (int round = 0; round < 10000; round++) {
        struct hg_template_vars vars = { .cell = json_object(), .dir = "", .head = "" };
        struct hg_words words = HG_WORDS_INIT;
        struct hg_err err = HG_ERR_INIT;
        struct hg_buf value = HG_BUF_INIT;
        json_t *list = json_pack("[s, s, s]", "{{v}}", "<{{v}}>", "{{args}}");
        char *want;

        for (int i = 0; i < 1 + round % 12; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            hg_buf_puts(&value, parts[(seed >> 33) % N_OF(parts)]);
        }
        json_object_set_new((json_t *)vars.cell, "v", json_string(hg_buf_str(&value)));
        assert_int_equal(hg_template_words(list, &vars, &words, &err), 0);
        assert_int_equal(words.n, 3);
        assert_string_equal(words.items[0], hg_buf_str(&value));
        want = hg_str_printf("<%s>", hg_buf_str(&value));
        assert_string_equal(words.items[1], want);
        free(want);
        want = hg_str_printf("--v=%s", hg_buf_str(&value));
        assert_string_equal(words.items[2], want);
        free(want);
        hg_words_done(&words);
        hg_buf_done(&value);
        json_decref(list);
        json_decref((json_t *)vars.cell);
    }
}

static void test_patterns_find_the_last_number(void **state)
{
    static const struct {
        const char *pattern, *text, *want;
    } cases[] = {
        { "loss=([0-9.]+)", "loss=1.5\nloss=0.25\nend\n", "0.25" },
        { "loss=([0-9.]+)", "loss=1.5 loss=0.25", "0.25" },
        { "loss=([\\d.]+)", "loss=3.5\r loss=2.5\r", "2.5" },
        { "t: (\\d+) s", "t: 12 s\nt: x s\n", "12" },
        { "^(\\d+)$", "a\n17\nb3\n", "17" },
        { "(-?[0-9.]+(e-?[0-9]+)?)", "1e-05", "1e-05" },
        { "[[:space:]]([0-9]+)", "x 4", "4" },
        { "([0-9]+) samples\\.", "9 samples.\n7 samples!\n", "9" },
        { "x([0-9]+)", "none", NULL },
        { "x(a)|y", "xa y", "a" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_err err = HG_ERR_INIT;
        struct hg_pattern *p = hg_pattern_compile(cases[i].pattern, &err);
        const char *group;
        size_t n;

        assert_non_null(p);
        assert_int_equal(hg_pattern_last(p, cases[i].text, strlen(cases[i].text), &group, &n),
                         cases[i].want != NULL);
        if (cases[i].want) {
            assert_int_equal(n, strlen(cases[i].want));
            assert_memory_equal(group, cases[i].want, n);
        }
        hg_pattern_free(p);
    }
}

static void test_patterns_that_mean_something_else_are_refused(void **state)
{
    static const struct {
        const char *pattern, *why;
    } cases[] = {
        { "loss=[0-9.]+", "has no group" },
        { "(?:loss=)([0-9]+)", "\"(?\" is not supported" },
        { "loss=(.+?) ", "lazy quantifiers (\"+?\")" },
        { "loss=(.*", "not a regular expression" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_err err = HG_ERR_INIT;

        assert_null(hg_pattern_compile(cases[i].pattern, &err));
        assert_int_equal(err.code, HG_E_INPUT);
        assert_non_null(strstr(err.text, cases[i].why));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_a_line_of_a_file_that_names_an_absent_member_is_left_out),
        cmocka_unit_test(test_hostile_values_come_out_as_they_went_in),
        cmocka_unit_test(test_patterns_find_the_last_number),
        cmocka_unit_test(test_patterns_that_mean_something_else_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
