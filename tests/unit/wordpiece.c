/* SPDX-License-Identifier: Apache-2.0 */
/* The WordPiece tokenizer against golden ids of Hugging Face's, and its vocabulary reader against bad files. */
#include "test.h"

#include <jansson.h>
#include <zlib.h>

#include "base/fs.h"
#include "data/wordpiece.h"

#define VOCAB HPCGRID_SOURCE_DIR "/worker/samples/vocab/bert-base-uncased-vocab.txt"
#define GOLDEN HPCGRID_SOURCE_DIR "/tests/worker/squad/golden_tokens.json"

static struct wk_wordpiece *wp;

static int set_up(void **state)
{
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    wp = wk_wordpiece_load(VOCAB, &err);
    return wp ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    wk_wordpiece_free(wp);
    return 0;
}

static void encode(enum wk_wordpiece_rules rules, const char *text, size_t len, struct wk_tokens *t)
{
    struct hg_err err = HG_ERR_INIT;

    t->n = 0;
    if (wk_wordpiece_encode(wp, rules, text, len, t, &err) < 0)
        fail_msg("%s", err.text);
}

static void assert_ids(const json_t *text, const struct wk_tokens *t, const json_t *ids)
{
    bool same = t->n == json_array_size(ids);

    for (size_t i = 0; same && i < t->n; i++)
        same = t->ids[i] == (uint32_t)json_integer_value(json_array_get(ids, i));
    if (!same)
        fail_msg("other tokens: %s", json_string_value(text));
}

static void check_text(const json_t *entry, struct wk_tokens *t)
{
    const json_t *text = json_object_get(entry, "text"), *ids = json_object_get(entry, "ids");
    const json_t *offsets = json_object_get(entry, "offsets");
    const json_t *google = json_object_get(entry, "google");

    encode(WK_WORDPIECE_HF, json_string_value(text), json_string_length(text), t);
    assert_ids(text, t, ids);
    for (size_t i = 0; i < t->n; i++) {
        assert_int_equal(t->starts[i], json_integer_value(json_array_get(offsets, 2 * i)));
        assert_int_equal(t->ends[i], json_integer_value(json_array_get(offsets, 2 * i + 1)));
    }
    if (json_is_null(
            google)) /* has characters that the original takes as its Python's Unicode does */
        return;
    encode(WK_WORDPIECE_GOOGLE, json_string_value(text), json_string_length(text), t);
    assert_ids(text, t, google ? google : ids);
}

static void check_long_text(const json_t *entry, struct wk_tokens *t)
{
    const json_t *unit = json_object_get(entry, "unit");
    struct hg_buf text = HG_BUF_INIT;

    for (json_int_t i = json_integer_value(json_object_get(entry, "times")); i > 0; i--)
        hg_buf_append(&text, json_string_value(unit), json_string_length(unit));
    hg_buf_puts(&text, "a b");
    encode(WK_WORDPIECE_HF, text.data, text.len, t);
    assert_int_equal(t->n, json_integer_value(json_object_get(entry, "n")));
    assert_int_equal(crc32(0, (const void *)t->ids, (unsigned)(t->n * sizeof *t->ids)),
                     json_integer_value(json_object_get(entry, "crc")));
    hg_buf_done(&text);
}

static void test_ids_and_offsets_are_the_golden_ones(void **state)
{
    json_t *golden = json_load_file(GOLDEN, JSON_ALLOW_NUL, NULL);
    struct wk_tokens t = WK_TOKENS_INIT;
    json_t *entry;
    size_t i;

    (void)state;
    assert_true(json_array_size(golden) > 300);
    json_array_foreach(golden, i, entry) {
        if (json_object_get(entry, "text"))
            check_text(entry, &t);
        else
            check_long_text(entry, &t);
    }
    wk_tokens_done(&t);
    json_decref(golden);
}

static void test_tokens_are_appended_and_offsets_begin_anew(void **state)
{
    struct wk_tokens t = WK_TOKENS_INIT;
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    assert_int_equal(wk_wordpiece_encode(wp, WK_WORDPIECE_HF, "the cat", 7, &t, &err), 0);
    assert_int_equal(wk_wordpiece_encode(wp, WK_WORDPIECE_HF, " cat", 4, &t, &err), 0);
    assert_int_equal(t.n, 3);
    assert_string_equal(wk_wordpiece_token(wp, t.ids[2]), "cat");
    assert_int_equal(t.starts[2], 1);
    assert_int_equal(t.ends[2], 4);
    wk_tokens_done(&t);
}

static void test_a_capital_sigma_ends_a_word_as_google_has_it(void **state)
{
    static const char text[] = "\xce\xa3\xce\xa3"; /* two of them: the second is the last letter */
    struct wk_tokens hf = WK_TOKENS_INIT, google = WK_TOKENS_INIT;

    (void)state;
    encode(WK_WORDPIECE_HF, text, 4, &hf);
    encode(WK_WORDPIECE_GOOGLE, text, 4, &google);
    assert_string_equal(wk_wordpiece_token(wp, hf.ids[1]), "##\xcf\x83");
    assert_string_equal(wk_wordpiece_token(wp, google.ids[1]), "##\xcf\x82");
    wk_tokens_done(&hf);
    wk_tokens_done(&google);
}

/* Control characters and U+FFFD are taken out before letters become small. */
static void test_a_final_sigma_does_not_see_what_is_taken_out(void **state)
{
    static const struct {
        const char *text, *last;
    } cases[] = {
        { "a\xc2\x85\xce\xa3", "##\xcf\x82" },     { "a\xef\xbf\xbd\xce\xa3", "##\xcf\x82" },
        { "a\xce\xa3\x01", "##\xcf\x82" },         { "a\n\xce\xa3", "\xcf\x83" },
        { "a\xce\xa3\x0b\xce\xa3", "##\xcf\x82" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct wk_tokens t = WK_TOKENS_INIT;

        encode(WK_WORDPIECE_GOOGLE, cases[i].text, strlen(cases[i].text), &t);
        assert_string_equal(wk_wordpiece_token(wp, t.ids[t.n - 1]), cases[i].last);
        wk_tokens_done(&t);
    }
}

static void test_text_that_is_no_utf8_is_refused_and_adds_nothing(void **state)
{
    static const char *const texts[] = { "caf\xe9",          "ok \xc3",       "\xed\xa0\x80",
                                         "\xf4\x90\x80\x80", "a\xff b c",     "\xc0\xaf",
                                         "the \x80 cat",     "\xe2\x82 e u r" };
    struct wk_tokens t = WK_TOKENS_INIT;

    (void)state;
    for (size_t i = 0; i < N_OF(texts); i++) {
        struct hg_err err = HG_ERR_INIT;

        assert_int_equal(
            wk_wordpiece_encode(wp, WK_WORDPIECE_HF, texts[i], strlen(texts[i]), &t, &err), -1);
        assert_int_equal(err.code, HG_E_INPUT);
        assert_non_null(strstr(err.text, "not valid UTF-8 at byte"));
        assert_int_equal(t.n, 0);
    }
    wk_tokens_done(&t);
}

#define SPECIAL "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"

static void test_bad_vocabularies_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *message;
    } cases[] = {
#define CASE(text, message) { text, sizeof text - 1, message }
        CASE("", "v.txt: error: the special token [PAD] is missing among 0 lines\n"
                 "  is this the vocabulary of a BERT model (vocab.txt)?\n"),
        CASE("[PAD]\n[UNK]\n[CLS]\n[SEP]\n",
             "v.txt: error: the special token [MASK] is missing among 4 lines\n"
             "  is this the vocabulary of a BERT model (vocab.txt)?\n"),
        CASE("\xef\xbb\xbf" SPECIAL,
             "v.txt: error: the special token [PAD] is missing among 5 lines\n"
             "  is this the vocabulary of a BERT model (vocab.txt)?\n"),
        CASE(SPECIAL "a\nb\na\n", "v.txt:8:1: error: this token is already on line 6\n"),
        CASE(SPECIAL "##a\n##a", "v.txt:7:1: error: this token is already on line 6\n"),
        CASE(SPECIAL "a\n\nb\n", "v.txt:7:1: error: an empty line: every line is a token\n"),
        CASE(SPECIAL "a\n \r\nb\n", "v.txt:7:1: error: an empty line: every line is a token\n"),
        CASE(SPECIAL "caf\xe9\n", "v.txt:6:1: error: bytes that are not valid UTF-8\n"),
        CASE(SPECIAL "a\0b\n", "v.txt:6:1: error: a NUL byte: this is not a text file\n"),
#undef CASE
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_err err = HG_ERR_INIT;
        struct hg_buf out = HG_BUF_INIT;

        assert_null(wk_wordpiece_parse("v.txt", cases[i].text, cases[i].len, &err));
        assert_int_equal(err.code, HG_E_INPUT);
        hg_err_format(&err, &out);
        assert_string_equal(hg_buf_str(&out), cases[i].message);
        hg_buf_done(&out);
    }
}

static void test_lines_may_end_as_on_windows_and_the_last_one_not_at_all(void **state)
{
    static const char text[] = "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\nab\r\n##c";
    struct hg_err err = HG_ERR_INIT;
    struct wk_wordpiece *small = wk_wordpiece_parse("v.txt", text, sizeof text - 1, &err);
    struct wk_tokens t = WK_TOKENS_INIT;

    (void)state;
    assert_non_null(small);
    assert_int_equal(wk_wordpiece_size(small), 7);
    assert_int_equal(wk_wordpiece_encode(small, WK_WORDPIECE_HF, "ABc abx", 7, &t, &err), 0);
    assert_int_equal(t.n, 3);
    assert_int_equal(t.ids[0], 5);
    assert_int_equal(t.ids[1], 6);
    assert_int_equal(t.ids[2], wk_wordpiece_special(small)->unk);
    assert_int_equal(wk_wordpiece_check_size(small, 7, &err), 0);
    assert_int_equal(wk_wordpiece_check_size(small, 30522, &err), -1);
    assert_string_equal(err.text, "the vocabulary has 7 tokens, the model's embedding 30522 rows");
    assert_null(wk_wordpiece_token(small, 7));
    wk_tokens_done(&t);
    wk_wordpiece_free(small);
}

/* Every vocabulary that is read, however odd, must encode without harm. */
static void try_vocabulary(const char *text, size_t len)
{
    static const char sample[] = "unaffable ##x [SEP] d\xc3\xa9j\xc3\xa0 vu \xe4\xb8\xad";
    struct wk_tokens t = WK_TOKENS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct wk_wordpiece *made = wk_wordpiece_parse("v", text, len, &err);

    if (!made) {
        assert_int_equal(err.code, HG_E_INPUT);
        return;
    }
    assert_int_equal(
        wk_wordpiece_encode(made, WK_WORDPIECE_HF, sample, sizeof sample - 1, &t, &err), 0);
    for (size_t i = 0; i < t.n; i++)
        assert_true(t.ids[i] < wk_wordpiece_size(made) && t.starts[i] < t.ends[i]);
    wk_tokens_done(&t);
    wk_wordpiece_free(made);
}

static void test_cut_and_changed_vocabularies_do_no_harm(void **state)
{
    static const char text[] =
        SPECIAL "un\n##aff\n##able\n#\n##\nd\n##\xc3\xa9\n\xe4\xb8\xad\nvu\n";
    char changed[sizeof text];
    uint32_t random = 1;

    (void)state;
    for (size_t len = 0; len < sizeof text; len++)
        try_vocabulary(text, len);
    for (int i = 0; i < 3000; i++) {
        memcpy(changed, text, sizeof text);
        for (int k = 0; k < 2; k++) {
            random = random * 1664525 + 1013904223;
            changed[(random >> 8) % (sizeof text - 1)] = (char)(random >> 3);
        }
        try_vocabulary(changed, sizeof text - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_and_offsets_are_the_golden_ones),
        cmocka_unit_test(test_tokens_are_appended_and_offsets_begin_anew),
        cmocka_unit_test(test_a_capital_sigma_ends_a_word_as_google_has_it),
        cmocka_unit_test(test_a_final_sigma_does_not_see_what_is_taken_out),
        cmocka_unit_test(test_text_that_is_no_utf8_is_refused_and_adds_nothing),
        cmocka_unit_test(test_bad_vocabularies_are_refused_with_their_place),
        cmocka_unit_test(test_lines_may_end_as_on_windows_and_the_last_one_not_at_all),
        cmocka_unit_test(test_cut_and_changed_vocabularies_do_no_harm),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
