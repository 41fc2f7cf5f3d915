/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "matrix/expr.h"

static void test_the_scan_finds_the_members_that_are_read(void **state)
{
    static const struct {
        const char *text;
        const char *names; /* "a b", those not certain in brackets */
        bool all, hw;
    } cases[] = {
        { ".a", "a", false, false },
        { ".a + .b * 2", "a b", false, false },
        { ".a.b.c == 1", "a", false, false },
        { ".a == \".b\"", "a", false, false },
        { "\"\\(.a)x\\(.b + \"\\(.c)\")\"", "a b c", false, false },
        { "$hw.gpus_per_node + .a", "a", false, true },
        { "{a100: 2, t4: .b}[.hardware]", "b hardware", false, false },
        { "{nodes, x: 1} == {nodes: .n}", "nodes n", false, false },
        { "[._gpus, $hw.gpus_per_node] | min", "_gpus", false, true },
        { "(.a / .b | floor) + .c", "a b (c)", false, false },
        { ".s | startswith(\"deep\")", "s", false, false },
        { "if .a then .b elif .c then 1 else .d end", "a b c d", false, false },
        { ".a # .b\n + .c", "a c", false, false },
        { ".a | .5 + 1.e3", "a", false, false },
        { ".", "", true, false },
        { "..", "", true, false },
        { ".[\"a\"]", "", true, false },
        { ".\"a\"", "", true, false },
        { "length > 2", "", true, false },
        { "keys | length", "", true, false },
        { ".a as $x | $x", "a", true, false },
        { ".a |= 3", "a", true, false },
        { "has(\"a\")", "", true, false },
        { "select(.a == 1) | .b", "a (b)", true, false },
        { "@json", "", true, false },
        { ".env == 1 and .now == 2 and .input", "env now input", false, false },
        { "{now: 1}.now", "", false, false },
    };
    struct hg_exprs *x = hg_exprs_create();

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_buf names = HG_BUF_INIT;
        int n = hg_exprs_add(x, cases[i].text, "x", NULL);
        const struct hg_expr_uses *u;

        assert_true(n >= 0);
        u = hg_exprs_uses(x, n);
        for (size_t k = 0; k < u->n; k++)
            hg_buf_printf(&names, u->certain[k] ? "%s%s" : "%s(%s)", k ? " " : "", u->names[k]);
        assert_string_equal(hg_buf_str(&names), cases[i].names);
        assert_int_equal(u->all, cases[i].all);
        assert_int_equal(u->hw, cases[i].hw);
        hg_buf_done(&names);
    }
    hg_exprs_free(x);
}

static void test_what_differs_from_run_to_run_is_refused(void **state)
{
    static const char *const texts[] = {
        "now",
        "env.HOME",
        "$ENV.HOME",
        "input",
        "[inputs]",
        "debug",
        ".a | halt",
        "\"\\(now)\"",
        "input_filename",
        "0 | localtime",
        "stderr",
        "{a: [now]}",
        "import \"a\" as a; 1",
    };
    struct hg_exprs *x = hg_exprs_create();

    (void)state;
    for (size_t i = 0; i < N_OF(texts); i++) {
        struct hg_err err = HG_ERR_INIT;

        assert_int_equal(hg_exprs_add(x, texts[i], "x", &err), -1);
        assert_int_equal(err.code, HG_E_INPUT);
    }
    hg_exprs_free(x);
}

/* JSON of what an expression gives over a cell; "none", or "error: ...". */
static void evaluate(const char *text, const char *cell, struct hg_buf *out)
{
    struct hg_exprs *x = hg_exprs_create();
    struct hg_err err = HG_ERR_INIT;
    char shown[64];
    int bad, rc;
    jv v;

    assert_int_equal(hg_exprs_add(x, "0", "x", NULL), 0); /* a neighbour */
    assert_int_equal(hg_exprs_add(x, text, "x", &err), 1);
    if (hg_exprs_compile(x, &bad, &err) < 0) {
        hg_buf_printf(out, "bad %d", bad);
        hg_exprs_free(x);
        return;
    }
    rc = hg_exprs_eval(x, 1, jv_parse(cell), jv_parse("{\"g\":7}"), &v, &err);
    if (rc > 0)
        hg_expr_show(v, shown);
    hg_buf_printf(out, "%s", rc > 0 ? shown : rc == 0 ? "none" : err.text);
    hg_exprs_free(x);
}

static void test_expressions_give_what_jq_gives(void **state)
{
    static const struct {
        const char *text, *cell, *want;
    } cases[] = {
        { ".a + 1", "{\"a\":2}", "3" },
        { ".a + $hw.g", "{\"a\":2}", "9" },
        { ".b", "{}", "null" },
        { "empty", "{}", "none" },
        { ".a / 0", "{\"a\":1}",
          "number (1) and number (0) cannot be divided because the divisor is zero" },
        { "error(\"no\")", "{}", "no" },
        { "def f: 3; f + .a", "{\"a\":2}", "5" },
        { ".a >", "{}", "bad 1" },
        { "1) | (2", "{}", "bad 1" },
        { "\"open", "{}", "bad 1" },
        { "1 # comment", "{}", "1" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_buf out = HG_BUF_INIT;

        evaluate(cases[i].text, cases[i].cell, &out);
        assert_string_equal(hg_buf_str(&out), cases[i].want);
        hg_buf_done(&out);
    }
}

/* libjq 1.6 cannot end a program in the middle, so its state is left alone: in a child, for what finds lost memory. */
static void test_an_expression_that_gives_two_values_is_refused(void **state)
{
    struct hg_buf out = HG_BUF_INIT;
    int status;
    pid_t pid;

    (void)state;
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        evaluate("1, 2", "{}", &out);
        _exit(strcmp(hg_buf_str(&out), "the expression gives more than one value") != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_a_home_jq_file_changes_nothing(void **state)
{
    char home[] = "/tmp/hg-home-XXXXXX", path[64];
    struct hg_buf out = HG_BUF_INIT;
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(home));
    snprintf(path, sizeof path, "%s/.jq", home);
    f = fopen(path, "w");
    fputs("def floor: 42;", f);
    fclose(f);
    setenv("HOME", home, 1);
    evaluate("1.5 | floor", "{}", &out);
    assert_string_equal(hg_buf_str(&out), "1");
    assert_string_equal(getenv("HOME"), home);
    hg_buf_done(&out);
    unlink(path);
    rmdir(home);
}

static void test_an_expression_that_does_not_end_ends_the_process_with_its_place(void **state)
{
    struct hg_buf out = HG_BUF_INIT;
    int pipes[2], status;
    char text[256] = "";
    size_t len = 0;
    ssize_t n;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct hg_exprs *x = hg_exprs_create();
        int bad;
        jv v;

        dup2(pipes[1], STDERR_FILENO);
        hg_exprs_add(x, "def f: f; f", "m.json:3:4: error: /exclude/0", NULL);
        hg_exprs_compile(x, &bad, NULL);
        hg_exprs_eval(x, 0, jv_object(), jv_null(), &v, NULL);
        _exit(0);
    }
    close(pipes[1]);
    while ((n = read(pipes[0], text + len, sizeof text - 1 - len)) > 0) /* it comes in pieces */
        len += (size_t)n;
    close(pipes[0]);
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    assert_string_equal(
        text, "m.json:3:4: error: /exclude/0: the expression does not end; stopped after 1 s\n");
    hg_buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_expression_that_does_not_end_ends_the_process_with_its_place),
        cmocka_unit_test(test_the_scan_finds_the_members_that_are_read),
        cmocka_unit_test(test_what_differs_from_run_to_run_is_refused),
        cmocka_unit_test(test_expressions_give_what_jq_gives),
        cmocka_unit_test(test_an_expression_that_gives_two_values_is_refused),
        cmocka_unit_test(test_a_home_jq_file_changes_nothing),
    };

    return cmocka_run_group_tests_name("expr", tests, NULL, NULL);
}
