/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of SQuAD: real data, bad data with its place, damaged data without harm. */
#include "test.h"

#include "base/fs.h"
#include "data/squad.h"

#define SLICES HPCGRID_SOURCE_DIR "/worker/samples/squad/"

static void assert_answers_stand_in_their_texts(const struct wk_squad *s)
{
    for (size_t i = 0; i < s->n_questions; i++) {
        const struct wk_squad_question *q = &s->questions[i];

        assert_true(q->paragraph < s->n_paragraphs);
        assert_true((size_t)q->first_answer + q->n_answers <= s->n_answers);
        for (uint32_t k = 0; k < q->n_answers; k++) {
            const struct wk_squad_answer *a = &s->answers[q->first_answer + k];
            const char *p = s->paragraphs[q->paragraph].context;

            for (uint32_t chars = a->start; chars > 0; chars--)
                for (p++; ((unsigned char)*p & 0xc0) == 0x80;)
                    p++;
            assert_memory_equal(p, a->text, a->len);
        }
    }
}

static void test_slices_are_read_whole(void **state)
{
    static const struct {
        const char *file, *version;
        bool v2;
        size_t articles, paragraphs, questions, answers;
    } cases[] = {
        { "dev-v1.1-slice.json", "1.1", false, 8, 10, 89, 285 },
        { "dev-v2.0-slice.json", "v2.0", true, 6, 6, 59, 100 },
        { "train-v1.1-slice.json", "1.1", false, 1, 26, 128, 128 },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        char path[512];
        struct hg_errs errs = HG_ERRS_INIT;
        struct wk_squad s;

        snprintf(path, sizeof path, SLICES "%s", cases[i].file);
        assert_int_equal(wk_squad_load(path, NULL, &s, &errs), 0);
        assert_string_equal(s.version, cases[i].version);
        assert_int_equal(s.v2, cases[i].v2);
        assert_int_equal(s.n_articles, cases[i].articles);
        assert_int_equal(s.n_paragraphs, cases[i].paragraphs);
        assert_int_equal(s.n_questions, cases[i].questions);
        assert_int_equal(s.n_answers, cases[i].answers);
        assert_answers_stand_in_their_texts(&s);
        wk_squad_done(&s);
        hg_errs_done(&errs);
    }
}

/* A document around questions, a paragraph, an article. "é中😀" takes 3 characters, 9 bytes. */
#define WITH_QAS(qas)                                                                                     \
    "{\"data\":[{\"paragraphs\":[{\"context\":\"\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80 cat\",\"qas\":[" qas \
    "]}]}]}"
#define QA(answers) "{\"id\":\"1\",\"question\":\"q\",\"answers\":" answers "}"

static void test_bad_data_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "", "f:1:1: error: the file ends in the middle of a value near end of file\n" },
        { "[]", "f:1:1: error: expected an object, found a list\n" },
        { "{}", "f:1:1: error: \"data\" is missing\n" },
        { "{\"data\":{}}", "f:1:9: error: /data: expected a list, found an object\n" },
        { "{\"data\":[]}", "f:1:9: error: /data: it has no questions\n" },
        { "{\"version\":2,\"data\":[]}",
          "f:1:12: error: /version: expected a string such as \"1.1\" or \"v2.0\"\n" },
        { "{\"data\":[1]}", "f:1:10: error: /data/0: expected an object, found an integer\n" },
        { "{\"data\":[{}]}", "f:1:10: error: /data/0: \"paragraphs\" is missing\n" },
        { "{\"data\":[{\"paragraphs\":[{\"qas\":[]}]}]}",
          "f:1:25: error: /data/0/paragraphs/0: \"context\" is missing\n" },
        { "{\"data\":[{\"paragraphs\":[{\"context\":1,\"qas\":[]}]}]}",
          "f:1:36: error: /data/0/paragraphs/0/context: expected a string, found an integer\n" },
        { WITH_QAS("{\"question\":\"q\",\"answers\":[]}"),
          "f:1:59: error: /data/0/paragraphs/0/qas/0: \"id\" is missing\n" },
        { WITH_QAS("{\"id\":\"\",\"question\":\"q\",\"answers\":[]}"),
          "f:1:65: error: /data/0/paragraphs/0/qas/0/id: the id is empty\n" },
        { WITH_QAS(QA("[]")),
          "f:1:59: error: /data/0/paragraphs/0/qas/0: the question has no answer (in version "
          "1.1 each has one)\n" },
        { WITH_QAS(QA("3")),
          "f:1:94: error: /data/0/paragraphs/0/qas/0/answers: expected a list, found an integer\n" },
        { WITH_QAS(QA("[{\"text\":\"cat\"}]")),
          "f:1:95: error: /data/0/paragraphs/0/qas/0/answers/0: \"answer_start\" is missing\n" },
        { WITH_QAS(QA("[{\"text\":\"cat\",\"answer_start\":4.0}]")),
          "f:1:124: error: /data/0/paragraphs/0/qas/0/answers/0/answer_start: expected an integer, found a number\n" },
        { WITH_QAS(QA("[{\"text\":\"\",\"answer_start\":4}]")),
          "f:1:95: error: /data/0/paragraphs/0/qas/0/answers/0: the answer is empty\n" },
        { WITH_QAS(QA("[{\"text\":\"cat\",\"answer_start\":5}]")),
          "f:1:124: error: /data/0/paragraphs/0/qas/0/answers/0/answer_start: the answer's 3 characters begin at 5 of a text of 7\n" },
        { WITH_QAS(QA("[{\"text\":\"cat\",\"answer_start\":-1}]")),
          "f:1:124: error: /data/0/paragraphs/0/qas/0/answers/0/answer_start: the answer's 3 characters begin at -1 of a text of 7\n" },
        { WITH_QAS(QA("[{\"text\":\"cat\",\"answer_start\":9223372036854775807}]")), NULL },
        { WITH_QAS(QA("[{\"text\":\"cat\",\"answer_start\":9223372036854775808}]")), NULL },
        { WITH_QAS(QA("[{\"text\":\"dog\",\"answer_start\":4}]")),
          "f:1:124: error: /data/0/paragraphs/0/qas/0/answers/0/answer_start: the text has \"cat\" at 4, not "
          "\"dog\"\n" },
        { WITH_QAS(QA("[{\"text\":\"cat\",\"answer_start\":4}]") "," QA(
              "[{\"text\":\"cat\",\"answer_start\":4}]")),
          "f:1:135: error: /data/0/paragraphs/0/qas/1/id: a second question with the id \"1\"\n" },
        { WITH_QAS(
              "{\"id\":\"1\",\"question\":\"q\",\"is_impossible\":true,\"answers\":[{\"text\":\"cat\",\"answer_start\":4}]}"),
          "f:1:59: error: /data/0/paragraphs/0/qas/0: is_impossible is true, but the question has answers\n" },
        { WITH_QAS("{\"id\":\"1\",\"question\":\"q\",\"is_impossible\":false,\"answers\":[]}"),
          "f:1:59: error: /data/0/paragraphs/0/qas/0: the question has no answer, but is_impossible is false\n" },
        { WITH_QAS("{\"id\":\"1\",\"question\":\"q\",\"is_impossible\":0,\"answers\":[]}"),
          "f:1:100: error: /data/0/paragraphs/0/qas/0/is_impossible: expected true or false, found an integer\n" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_errs errs = HG_ERRS_INIT;
        struct hg_buf out = HG_BUF_INIT;
        struct wk_squad s;

        assert_int_equal(wk_squad_parse("f", cases[i].text, strlen(cases[i].text), NULL, &s, &errs),
                         -1);
        assert_int_equal(errs.items[0].code, HG_E_INPUT);
        hg_errs_format(&errs, &out);
        if (cases[i].message)
            assert_string_equal(hg_buf_str(&out), cases[i].message);
        assert_null(s.questions);
        hg_buf_done(&out);
        hg_errs_done(&errs);
    }
}

static void test_every_problem_is_reported_up_to_a_limit(void **state)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_errs errs = HG_ERRS_INIT;
    struct wk_squad s;

    (void)state;
    hg_buf_puts(&text, "{\"data\":[{\"paragraphs\":[{\"context\":\"cat\",\"qas\":[");
    for (int i = 0; i < 20000; i++)
        hg_buf_printf(
            &text,
            "%s{\"id\":\"%d\",\"question\":\"q\",\"answers\":[{\"text\":\"dog\",\"answer_start\":0}]}",
            i ? "," : "", i);
    hg_buf_puts(&text, "]}]}]}");
    assert_int_equal(wk_squad_parse("f", text.data, text.len, NULL, &s, &errs), -1);
    assert_int_equal(errs.n, HG_ERRS_MAX);
    assert_string_equal(errs.items[1].pointer, "/data/0/paragraphs/0/qas/1/answers/0/answer_start");
    hg_errs_done(&errs);
    hg_buf_done(&text);
}

static void test_bad_answers_are_skipped_when_asked(void **state)
{
    static const char text[] = WITH_QAS(QA(
        "[{\"text\":\"dog\",\"answer_start\":4},{\"text\":\"cat\",\"answer_start\":4}]") ","
                                                                                         "{\"id\":\"2\",\"question\":\"q\",\"answers\":[{\"text\":\"cat\",\"answer_start\":5}]}");
    const struct wk_squad_options skip = { .skip_bad_answers = true };
    struct hg_errs errs = HG_ERRS_INIT;
    struct wk_squad s;

    (void)state;
    assert_int_equal(wk_squad_parse("f", text, sizeof text - 1, &skip, &s, &errs), 0);
    assert_int_equal(s.n_questions, 1);
    assert_int_equal(s.n_answers, 1);
    assert_string_equal(s.answers[0].text, "cat");
    assert_int_equal(s.answers[0].start, 4);
    assert_int_equal(s.answers[0].end, 7);
    assert_int_equal(s.dropped_answers, 2);
    assert_int_equal(s.dropped_questions, 1);
    wk_squad_done(&s);
    hg_errs_done(&errs);
}

static void test_scoring_needs_ids_and_answers_only(void **state)
{
    static const char text[] =
        "{\"data\":[{\"paragraphs\":[{\"qas\":[{\"id\":\"1\",\"answers\":[{\"text\":\"cat\"}]},{\"id\":\"2\",\"answers\":[]}]}]}]}";
    const struct wk_squad_options lenient = { .answers_only = true };
    struct hg_errs errs = HG_ERRS_INIT;
    struct wk_squad s;

    (void)state;
    assert_int_equal(wk_squad_parse("f", text, sizeof text - 1, &lenient, &s, &errs), 0);
    assert_int_equal(s.n_questions, 2);
    assert_true(s.v2);
    wk_squad_done(&s);
    hg_errs_done(&errs);
}

/* ---- Damage ---- */

static const char sound[] = WITH_QAS(QA(
    "[{\"text\":\"\xe4\xb8\xad\xf0\x9f\x98\x80\",\"answer_start\":1},{\"text\":\"cat\",\"answer_start\":4}]") ","
                                                                                                              "{\"id\":\"2\",\"question\":\"\\u00e9?\",\"is_impossible\":true,\"plausible_answers\":[],\"answers\":[]}");

/* What is read must be sound; what is not must say why. Returns whether it was read. */
static bool try_text(const char *text, size_t len)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct wk_squad s;
    bool read = wk_squad_parse("f", text, len, NULL, &s, &errs) == 0;

    assert_int_equal(errs.n == 0, read);
    if (read)
        assert_answers_stand_in_their_texts(&s);
    wk_squad_done(&s);
    hg_errs_done(&errs);
    return read;
}

static void test_a_file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    assert_true(try_text(sound, sizeof sound - 1));
    for (size_t len = 0; len < sizeof sound - 1; len++)
        assert_false(try_text(sound, len));
}

static void test_changed_bytes_do_no_harm(void **state)
{
    char changed[sizeof sound];
    uint32_t random = 1;
    int good = 0;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        memcpy(changed, sound, sizeof sound);
        for (int k = i % 3; k >= 0; k--) {
            random = random * 1664525 + 1013904223;
            changed[(random >> 8) % (sizeof sound - 1)] =
                k ? (char)(random >> 3) : "\"[]{},:0192\\"[(random >> 4) % 12];
        }
        good += try_text(changed, sizeof sound - 1);
    }
    assert_true(good > 100 && good < 19000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices_are_read_whole),
        cmocka_unit_test(test_bad_data_is_refused_with_its_place),
        cmocka_unit_test(test_every_problem_is_reported_up_to_a_limit),
        cmocka_unit_test(test_bad_answers_are_skipped_when_asked),
        cmocka_unit_test(test_scoring_needs_ids_and_answers_only),
        cmocka_unit_test(test_a_file_cut_anywhere_is_refused),
        cmocka_unit_test(test_changed_bytes_do_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
