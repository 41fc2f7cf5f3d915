/* SPDX-License-Identifier: Apache-2.0 */
/* Scores and answers against golden ones of the official scripts' rules and Hugging Face's post-processing. */
#include "test.h"

#include <math.h>
#include <unistd.h>

#include "base/json.h"
#include "data/answers.h"
#include "data/features_cache.h"
#include "data/squad_eval.h"

#define VOCAB HPCGRID_SOURCE_DIR "/worker/samples/vocab/bert-base-uncased-vocab.txt"
#define SLICES HPCGRID_SOURCE_DIR "/worker/samples/squad/"
#define GOLDENS HPCGRID_SOURCE_DIR "/tests/worker/squad/"

static json_t *scores, *answers;

static int set_up(void **state)
{
    (void)state;
    scores = json_load_file(GOLDENS "golden_scores.json", 0, NULL);
    answers = json_load_file(GOLDENS "golden_answers.json", 0, NULL);
    return scores && answers ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    json_decref(scores);
    json_decref(answers);
    return 0;
}

static void load(const json_t *entry, struct wk_squad *s, char path[512])
{
    struct hg_errs errs = HG_ERRS_INIT;

    snprintf(path, 512, SLICES "%s.json", json_string_value(json_object_get(entry, "file")));
    assert_int_equal(wk_squad_load(path, NULL, s, &errs), 0);
    hg_errs_done(&errs);
}

static void test_answers_are_compared_in_the_golden_normal_form(void **state)
{
    const json_t *pairs = json_object_get(json_array_get(scores, 0), "normalized"), *pair;
    size_t i;

    (void)state;
    assert_true(json_array_size(pairs) > 20);
    json_array_foreach(pairs, i, pair) {
        const json_t *text = json_array_get(pair, 0), *wanted = json_array_get(pair, 1);
        struct hg_buf out = HG_BUF_INIT;

        wk_squad_normalize(json_string_value(text), json_string_length(text), &out);
        assert_string_equal(hg_buf_str(&out), json_string_value(wanted));
        hg_buf_done(&out);
    }
}

static void test_scores_are_the_golden_ones(void **state)
{
    (void)state;
    for (size_t i = 1; i < json_array_size(scores); i++) {
        const json_t *entry = json_array_get(scores, i);
        struct hg_errs errs = HG_ERRS_INIT;
        struct wk_squad_predictions p;
        struct wk_squad_score score;
        struct wk_squad s;
        char path[512], file[] = "/tmp/hpcgrid-predictions-XXXXXX";
        int fd = mkstemp(file);

        assert_true(fd >= 0);
        assert_int_equal(json_dumpfd(json_object_get(entry, "predictions"), fd, 0), 0);
        close(fd);
        load(entry, &s, path);
        assert_int_equal(wk_squad_predictions_load(file, &s, &p, &errs), 0);
        assert_int_equal(p.foreign, 1);
        wk_squad_score(&s, p.texts, &score);
        assert_int_equal(score.all.n, json_integer_value(json_object_get(entry, "n")));
        assert_true(fabs(score.all.exact - json_number_value(json_object_get(entry, "em"))) <
                    1e-12);
        assert_true(fabs(score.all.f1 - json_number_value(json_object_get(entry, "f1"))) < 1e-12);
        assert_true(score.missing > 0);
        if (s.v2)
            assert_int_equal(score.has_answer.n + score.no_answer.n, score.all.n);
        wk_squad_predictions_done(&p);
        wk_squad_done(&s);
        hg_errs_done(&errs);
        unlink(file);
    }
}

/* An object as a file; the caller unlinks it. */
static void write_object(const json_t *object, char path[static 64])
{
    int fd;

    snprintf(path, 64, "/tmp/hpcgrid-squad-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(json_dumpfd(object, fd, 0), 0);
    close(fd);
}

static bool is_golden(const json_t *golden, const char *name, double is)
{
    return fabs(json_number_value(json_object_get(golden, name)) - is) < 1e-12;
}

static void test_thresholds_of_no_answer_are_the_golden_ones(void **state)
{
    const json_t *entry = json_array_get(scores, 2), *golden = json_object_get(entry, "na");
    const double threshold = json_number_value(json_object_get(golden, "threshold"));
    char path[512], texts[64], numbers[64];
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct wk_squad_predictions p;
    struct wk_squad_score score;
    struct wk_squad_best best;
    struct wk_squad_na na;
    struct wk_squad s;

    (void)state;
    load(entry, &s, path);
    write_object(json_object_get(entry, "predictions"), texts);
    write_object(json_object_get(golden, "numbers"), numbers);
    assert_int_equal(wk_squad_predictions_load(texts, &s, &p, &errs), 0);
    assert_int_equal(wk_squad_na_load(numbers, &s, &na, &errs), 0);
    assert_int_equal(na.foreign, 1);
    assert_int_equal(wk_squad_score_na(&s, p.texts, &na, threshold, &score, &best, &err), 0);
    assert_int_equal(score.all.n, json_integer_value(json_object_get(golden, "n")));
    assert_true(is_golden(golden, "em", score.all.exact));
    assert_true(is_golden(golden, "f1", score.all.f1));
    assert_true(is_golden(golden, "best_em", best.exact));
    assert_true(is_golden(golden, "best_em_threshold", best.exact_threshold));
    assert_true(is_golden(golden, "best_f1", best.f1));
    assert_true(is_golden(golden, "best_f1_threshold", best.f1_threshold));
    /* without a threshold that anything is above, the scores are those of the answers */
    assert_int_equal(wk_squad_score_na(&s, p.texts, &na, 9, &score, &best, &err), 0);
    assert_true(is_golden(entry, "em", score.all.exact));
    assert_true(is_golden(entry, "f1", score.all.f1));
    wk_squad_na_done(&na);
    wk_squad_predictions_done(&p);
    wk_squad_done(&s);
    unlink(texts);
    unlink(numbers);
}

static void test_bad_predictions_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "[]", "expected an object of question ids and texts, found a list" },
        { "{\"a\":\"b\"", "the file ends in the middle of a value near end of file" },
        { "{\"a/b\":1}", "expected a string, found an integer" },
        { "{\"a\":\"b\",\"a\":\"c\"}", NULL },
    };
    struct wk_squad none = { 0 };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        char file[] = "/tmp/hpcgrid-predictions-XXXXXX";
        struct hg_errs errs = HG_ERRS_INIT;
        struct wk_squad_predictions p;
        int fd = mkstemp(file);

        assert_true(write(fd, cases[i].text, strlen(cases[i].text)) > 0);
        close(fd);
        assert_int_equal(wk_squad_predictions_load(file, &none, &p, &errs), -1);
        assert_int_equal(errs.items[0].code, HG_E_INPUT);
        assert_string_equal(errs.items[0].file, file);
        if (cases[i].message)
            assert_string_equal(errs.items[0].text, cases[i].message);
        if (i == 2)
            assert_string_equal(errs.items[0].pointer, "/a~1b");
        wk_squad_predictions_done(&p);
        hg_errs_done(&errs);
        unlink(file);
    }
}

/* The number that tests/worker/squad/make_goldens.py makes for the same place. */
static float logit(size_t feature, size_t position, int which)
{
    uint32_t x = (uint32_t)feature * 2654435761u + (uint32_t)position * 40503u +
                 (uint32_t)which * 974711u + 12345u;

    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return (float)((x >> 8) % 512) / 16 - 16;
}

static void add_all(struct wk_answers *a, const struct wk_features *f, bool padded, float shift,
                    bool backwards)
{
    for (size_t k = 0; k < f->n; k++) {
        size_t i = backwards ? f->n - 1 - k : k,
               n = padded ? f->max_length : wk_feature_length(f, i);
        float starts[128], ends[128];

        for (size_t p = 0; p < n; p++) {
            starts[p] = logit(i, p, 1) + (p == 0 ? shift : 0);
            ends[p] = logit(i, p, 2) + (p == 0 ? shift : 0);
        }
        wk_answers_add(a, i, starts, ends, n);
    }
}

static void test_the_best_spans_are_the_golden_answers(void **state)
{
    const struct wk_answer_options how = WK_ANSWER_OPTIONS_INIT;
    const struct wk_feature_options o = { .max_length = 128, .stride = 32 };

    (void)state;
    for (size_t i = 0; i < 2 * json_array_size(answers); i++) {
        const json_t *entry = json_array_get(answers, i / 2);
        struct hg_errs errs = HG_ERRS_INIT;
        struct hg_err err = HG_ERR_INIT;
        struct wk_features f;
        struct wk_answers *a;
        struct wk_squad s;
        char path[512];

        load(entry, &s, path);
        assert_int_equal(wk_features_open(path, VOCAB, NULL, &o, NULL, &f, &errs), 0);
        a = wk_answers_create(&s, &f, &how, &err);
        assert_non_null(a);
        add_all(a, &f, json_is_true(json_object_get(entry, "padded")),
                (float)json_number_value(json_object_get(entry, "shift")), i % 2);
        for (size_t q = 0; q < s.n_questions; q++)
            assert_string_equal(wk_answers_get(a, q), json_string_value(json_array_get(
                                                          json_object_get(entry, "answers"), q)));
        wk_answers_free(a);
        wk_features_done(&f);
        wk_squad_done(&s);
        hg_errs_done(&errs);
    }
}

static void test_nan_logits_and_windows_without_a_span_give_empty(void **state)
{
    const struct wk_answer_options how = WK_ANSWER_OPTIONS_INIT;
    const struct wk_feature_options o = { .max_length = 384, .stride = 128, .questions = 2 };
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    float nan[384], zero[384] = { 0 };
    struct wk_features f;
    struct wk_answers *a;
    struct wk_squad s;

    (void)state;
    for (size_t i = 0; i < N_OF(nan); i++)
        nan[i] = NAN;
    assert_int_equal(wk_squad_load(SLICES "dev-v1.1-slice.json", NULL, &s, &errs), 0);
    assert_int_equal(
        wk_features_open(SLICES "dev-v1.1-slice.json", VOCAB, NULL, &o, NULL, &f, &errs), 0);
    a = wk_answers_create(&s, &f, &how, &err);
    assert_null(wk_answers_get(a, 0)); /* nothing was added */
    wk_answers_add(a, 0, nan, zero, wk_feature_length(&f, 0));
    assert_string_equal(wk_answers_get(a, 0), "empty");
    wk_answers_free(a);
    wk_features_done(&f);
    wk_squad_done(&s);
    hg_errs_done(&errs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_are_compared_in_the_golden_normal_form),
        cmocka_unit_test(test_scores_are_the_golden_ones),
        cmocka_unit_test(test_thresholds_of_no_answer_are_the_golden_ones),
        cmocka_unit_test(test_bad_predictions_are_refused_with_their_place),
        cmocka_unit_test(test_the_best_spans_are_the_golden_answers),
        cmocka_unit_test(test_nan_logits_and_windows_without_a_span_give_empty),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
