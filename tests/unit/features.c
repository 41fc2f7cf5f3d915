/* SPDX-License-Identifier: Apache-2.0 */
/* Windows and labels against golden ones of Hugging Face's and Google's rules; the cache; synthetic features. */
#include "test.h"

#include <dirent.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "data/features_cache.h"
#include "data/features_stats.h"
#include "data/synthetic.h"

#define VOCAB HPCGRID_SOURCE_DIR "/worker/samples/vocab/bert-base-uncased-vocab.txt"
#define SLICES HPCGRID_SOURCE_DIR "/worker/samples/squad/"
#define GOLDEN HPCGRID_SOURCE_DIR "/tests/worker/squad/golden_features.json"
#define DEV SLICES "dev-v1.1-slice.json"

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    hg_log_set_level(HG_LOG_ERROR);
    strcpy(folder, "/tmp/hpcgrid-features-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    return hg_fs_remove_tree(folder, &err);
}

static int open_features(const char *data, const char *cache, const struct wk_feature_options *o,
                         struct wk_features *f)
{
    struct hg_errs errs = HG_ERRS_INIT;
    int rc = wk_features_open(data, VOCAB, cache, o, NULL, f, &errs);

    if (rc < 0)
        print_error("%s\n", errs.items[0].text);
    hg_errs_done(&errs);
    return rc;
}

static uint32_t crc_of_ids(const struct wk_features *f, size_t i, uint32_t length)
{
    int32_t ids[512], types[512];

    wk_feature_write(f, i, ids, types);
    for (uint32_t k = 0; k < length; k++)
        assert_int_equal(types[k], k >= wk_feature_context(f, i));
    return (uint32_t)crc32(0, (const void *)ids, length * (unsigned)sizeof *ids);
}

static void check_golden(const json_t *golden)
{
    const json_t *wanted = json_object_get(golden, "features"), *one;
    struct wk_feature_options o = WK_FEATURE_OPTIONS_INIT;
    struct wk_features f;
    char path[512];
    size_t i;

    snprintf(path, sizeof path, SLICES "%s.json",
             json_string_value(json_object_get(golden, "file")));
    o.windows = strcmp(json_string_value(json_object_get(golden, "windows")), "advance") == 0
                    ? WK_WINDOWS_ADVANCE
                    : WK_WINDOWS_OVERLAP;
    o.max_length = (uint32_t)json_integer_value(json_object_get(golden, "max_length"));
    o.stride = (uint32_t)json_integer_value(json_object_get(golden, "stride"));
    assert_int_equal(open_features(path, NULL, &o, &f), 0);
    assert_int_equal(f.n, json_array_size(wanted));
    json_array_foreach(wanted, i, one) {
        uint32_t length = wk_feature_length(&f, i);
        const json_int_t is[] = { f.items[i].question, length, f.items[i].start, f.items[i].end,
                                  crc_of_ids(&f, i, length) };

        for (size_t k = 0; k < N_OF(is); k++)
            if (is[k] != json_integer_value(json_array_get(one, k)))
                fail_msg("%s, window %zu of %s: value %zu is %lld", path, i,
                         wk_windows_names[o.windows], k, (long long)is[k]);
    }
    wk_features_done(&f);
}

static void test_windows_and_labels_are_the_golden_ones(void **state)
{
    json_t *golden = json_load_file(GOLDEN, 0, NULL);
    json_t *one;
    size_t i;

    (void)state;
    assert_int_equal(json_array_size(golden), 12);
    json_array_foreach(golden, i, one)
        check_golden(one);
    json_decref(golden);
}

static void test_dummy_labels_are_position_0_and_questions_can_be_few(void **state)
{
    struct wk_feature_options o = WK_FEATURE_OPTIONS_INIT;
    struct wk_features all, few;

    (void)state;
    assert_int_equal(open_features(DEV, NULL, &o, &all), 0);
    o.labels = WK_LABELS_DUMMY;
    o.questions = 7;
    assert_int_equal(open_features(DEV, NULL, &o, &few), 0);
    assert_int_equal(few.n_questions, 7);
    for (size_t i = 0; i < few.n; i++) {
        assert_int_equal(few.items[i].start, 0);
        assert_int_equal(few.items[i].end, 0);
        assert_int_equal(few.items[i].question, all.items[i].question);
        assert_int_equal(few.items[i].n, all.items[i].n);
    }
    wk_features_done(&all);
    wk_features_done(&few);
}

static void test_options_that_cannot_work_are_refused(void **state)
{
    static const struct {
        struct wk_feature_options o;
        const char *message;
    } cases[] = {
        { { .max_length = 7, .stride = 1 }, "max_length 7 is not within 8 to 65536" },
        { { .max_length = 65537, .stride = 1 }, "max_length 65537 is not within 8 to 65536" },
        { { .max_length = 64, .stride = 61 },
          "windows of 61 tokens that overlap by 61 never end: stride must be less" },
        { { .max_length = 64, .stride = 61, .stride_key = "doc_stride" },
          "windows of 61 tokens that overlap by 61 never end: doc_stride must be less" },
        { { .max_length = 7, .stride = 1, .length_key = "seq_len" },
          "seq_len 7 is not within 8 to 65536" },
        { { .max_length = 64, .stride = 0, .windows = WK_WINDOWS_ADVANCE },
          "windows that advance by 0 tokens never end: stride must be more" },
        { { .max_length = 64, .stride = 48 },
          "question \"56be4db0acb8001400a502f0\": its 14 tokens leave room for 47 of the text in 64, too few for "
          "windows with stride 48" },
        { { .max_length = 12, .stride = 1, .windows = WK_WINDOWS_ADVANCE },
          "question \"56be4db0acb8001400a502ec\": its 11 tokens leave room for 0 of the text in 12, too few for "
          "windows with stride 1" },
        { { .max_length = 64, .stride = 48, .length_key = "seq_len", .stride_key = "doc_stride" },
          "question \"56be4db0acb8001400a502f0\": its 14 tokens leave room for 47 of the text in 64, too few for "
          "windows with doc_stride 48" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_errs errs = HG_ERRS_INIT;
        struct wk_features f;

        assert_int_equal(wk_features_open(DEV, VOCAB, NULL, &cases[i].o, NULL, &f, &errs), -1);
        assert_int_equal(errs.items[0].code, HG_E_INPUT);
        assert_string_equal(errs.items[0].file, DEV);
        assert_string_equal(errs.items[0].text, cases[i].message);
        if (cases[i].o.length_key && cases[i].o.stride_key)
            assert_string_equal(errs.items[0].hint, "make seq_len larger or doc_stride smaller");
        hg_errs_done(&errs);
    }
}

static void note_progress(void *context, size_t done, size_t total)
{
    size_t *last = context;

    assert_true(done >= *last && done <= total);
    *last = done;
}

static void test_progress_reaches_the_end(void **state)
{
    struct wk_feature_options o = WK_FEATURE_OPTIONS_INIT;
    struct hg_errs errs = HG_ERRS_INIT;
    size_t last = 0;
    struct wk_progress progress = { note_progress, &last };
    struct wk_features f;

    (void)state;
    assert_int_equal(wk_features_open(DEV, VOCAB, NULL, &o, &progress, &f, &errs), 0);
    assert_int_equal(last, f.n_questions);
    wk_features_done(&f);
    hg_errs_done(&errs);
}

/* ---- The cache ---- */

static size_t files_in(const char *dir, char *name, size_t cap)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    size_t n = 0;

    while (d && (entry = readdir(d))) {
        if (entry->d_name[0] == '.')
            continue;
        n++;
        snprintf(name, cap, "%s/%s", dir, entry->d_name);
    }
    if (d)
        closedir(d);
    return n;
}

static void assert_same(const struct wk_features *a, const struct wk_features *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->n_context, b->n_context);
    assert_memory_equal(a->items, b->items, a->n * sizeof *a->items);
    assert_memory_equal(a->questions, b->questions, a->n_questions * sizeof *a->questions);
    assert_memory_equal(a->question_ids, b->question_ids, a->n_question_ids * 4);
    assert_memory_equal(a->context_ids, b->context_ids, a->n_context * 4);
    assert_memory_equal(a->starts, b->starts, a->n_context * 4);
    assert_memory_equal(a->ends, b->ends, a->n_context * 4);
}

static void test_the_cache_gives_the_same_and_knows_its_inputs(void **state)
{
    struct wk_feature_options o = WK_FEATURE_OPTIONS_INIT;
    struct wk_features made, again, other;
    char dir[128], name[512];

    (void)state;
    snprintf(dir, sizeof dir, "%s/one/deep", folder);
    assert_int_equal(open_features(DEV, dir, &o, &made), 0);
    assert_false(made.cached);
    assert_int_equal(open_features(DEV, dir, &o, &again), 0);
    assert_true(again.cached);
    assert_same(&made, &again);
    o.stride = 64;
    assert_int_equal(open_features(DEV, dir, &o, &other), 0);
    assert_false(other.cached);
    wk_features_done(&other);
    assert_int_equal(open_features(SLICES "train-v1.1-slice.json", dir, &o, &other), 0);
    assert_false(other.cached);
    wk_features_done(&other);
    assert_int_equal(files_in(dir, name, sizeof name), 3);
    wk_features_done(&made);
    wk_features_done(&again);
}

/* Write the cached file with a change: cut to len, or one byte other. */
static void damage(const char *name, const struct hg_buf *sound, size_t len, size_t at)
{
    struct hg_err err = HG_ERR_INIT;
    char kept = sound->data[at];

    sound->data[at] ^= len == sound->len ? 0x10 : 0;
    assert_int_equal(hg_fs_replace(name, sound->data, len, 0644, &err), 0);
    sound->data[at] = kept;
}

static void test_a_damaged_cache_is_made_anew(void **state)
{
    struct wk_feature_options o = { .max_length = 384, .stride = 128, .questions = 5 };
    struct hg_buf sound = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct wk_features made, again;
    char dir[128], name[512];

    (void)state;
    snprintf(dir, sizeof dir, "%s/two", folder);
    assert_int_equal(open_features(DEV, dir, &o, &made), 0);
    assert_int_equal(files_in(dir, name, sizeof name), 1);
    assert_int_equal(hg_fs_read(name, 1 << 30, &sound, &err), 0);
    for (size_t i = 0; i < sound.len; i += i < 104 ? 7 : 997) {
        for (int cut = 0; cut < 2; cut++) {
            damage(name, &sound, cut ? i : sound.len, i);
            assert_int_equal(open_features(DEV, dir, &o, &again), 0);
            assert_false(again.cached);
            assert_same(&made, &again);
            wk_features_done(&again);
        }
    }
    assert_int_equal(open_features(DEV, dir, &o, &again), 0);
    assert_true(again.cached); /* the last damage was repaired, too */
    wk_features_done(&again);
    wk_features_done(&made);
    hg_buf_done(&sound);
}

static void test_a_cache_that_cannot_be_written_does_not_stop_anything(void **state)
{
    struct wk_feature_options o = { .max_length = 384, .stride = 128, .questions = 5 };
    struct wk_features f;

    (void)state;
    assert_int_equal(open_features(DEV, "/proc/no/such", &o, &f), 0);
    assert_false(f.cached);
    wk_features_done(&f);
}

/* Many ranks start at once with an empty folder, some of them again and again with damage in between. */
static int one_rank(const char *dir, const struct wk_feature_options *o,
                    const struct wk_features *wanted)
{
    for (int round = 0; round < 5; round++) {
        struct wk_features f;

        if (open_features(DEV, dir, o, &f) < 0 || f.n != wanted->n ||
            memcmp(f.items, wanted->items, f.n * sizeof *f.items) != 0)
            return 1;
        wk_features_done(&f);
    }
    return 0;
}

static void test_ranks_that_start_at_once_share_the_cache(void **state)
{
    struct wk_feature_options o = WK_FEATURE_OPTIONS_INIT;
    struct wk_features wanted;
    char dir[128], name[512];
    pid_t ranks[8];

    (void)state;
    snprintf(dir, sizeof dir, "%s/three", folder);
    assert_int_equal(open_features(DEV, NULL, &o, &wanted), 0);
    for (size_t i = 0; i < N_OF(ranks); i++) {
        ranks[i] = fork();
        assert_true(ranks[i] >= 0);
        if (ranks[i] == 0)
            _exit(one_rank(dir, &o, &wanted));
    }
    for (size_t i = 0; i < N_OF(ranks); i++) {
        int status;

        assert_int_equal(waitpid(ranks[i], &status, 0), ranks[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(files_in(dir, name, sizeof name), 1);
    wk_features_done(&wanted);
}

/* ---- Statistics and synthetic features ---- */

static void test_synthetic_lengths_follow_their_distribution(void **state)
{
    static const struct {
        enum wk_lengths lengths;
        double mean, sd; /* asked */
        double is_mean, is_sd;
    } cases[] = {
        { WK_LENGTHS_FIXED, 176, 60, 384, 0 },      { WK_LENGTHS_UNIFORM, 176, 60, 200, 106.8 },
        { WK_LENGTHS_NORMAL, 180, 40, 180, 40 },    { WK_LENGTHS_LOGNORMAL, 150, 50, 150, 50 },
        { WK_LENGTHS_SQUAD, 176, 60, 175.8, 64.9 },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct wk_synthetic_options o = WK_SYNTHETIC_OPTIONS_INIT;
        struct hg_err err = HG_ERR_INIT;
        double sum = 0, squares = 0;
        struct wk_features f;

        o.n = 20000;
        o.lengths = cases[i].lengths;
        o.mean = cases[i].mean;
        o.sd = cases[i].sd;
        assert_int_equal(wk_synthetic_build(&o, &f, &err), 0);
        for (size_t k = 0; k < f.n; k++) {
            double length = wk_feature_length(&f, k);

            assert_true(length >= 16 && length <= 384);
            sum += length;
            squares += length * length;
        }
        sum /= (double)f.n;
        assert_true(fabs(sum - cases[i].is_mean) < 2);
        assert_true(fabs(sqrt(squares / (double)f.n - sum * sum) - cases[i].is_sd) < 2);
        wk_features_done(&f);
    }
}

static void test_synthetic_features_are_sound_and_depend_on_seed_and_number_only(void **state)
{
    struct wk_synthetic_options o = WK_SYNTHETIC_OPTIONS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct wk_features few, many, other;
    int32_t ids[384], types[384], more[384];
    size_t differ = 0;

    (void)state;
    o.n = 100;
    assert_int_equal(wk_synthetic_build(&o, &few, &err), 0);
    o.n = 1000;
    assert_int_equal(wk_synthetic_build(&o, &many, &err), 0);
    o.seed = 2;
    assert_int_equal(wk_synthetic_build(&o, &other, &err), 0);
    for (size_t i = 0; i < few.n; i++) {
        uint32_t n = wk_feature_length(&few, i);

        assert_int_equal(n, wk_feature_length(&many, i));
        wk_feature_write(&few, i, ids, types);
        wk_feature_write(&many, i, more, types);
        assert_memory_equal(ids, more, n * sizeof *ids);
        assert_true(few.items[i].start >= wk_feature_context(&few, i));
        assert_true(few.items[i].end >= few.items[i].start && few.items[i].end < n - 1);
        for (uint32_t k = 1; k + 1 < n; k++)
            assert_true(ids[k] == 102 ? k + 1 == wk_feature_context(&few, i)
                                      : ids[k] > 0 && ids[k] < 30522);
        differ += wk_feature_length(&other, i) != n;
    }
    assert_true(differ > 80);
    wk_features_done(&few);
    wk_features_done(&many);
    wk_features_done(&other);
}

static void test_synthetic_options_that_cannot_work_are_refused(void **state)
{
    static const struct wk_synthetic_options cases[] = {
        { .n = 0, .min_length = 16, .max_length = 384, .mean = 1, .vocab_size = 100 },
        { .n = 1, .min_length = 7, .max_length = 384, .mean = 1, .vocab_size = 100 },
        { .n = 1, .min_length = 16, .max_length = 15, .mean = 1, .vocab_size = 100 },
        { .n = 1, .min_length = 16, .max_length = 384, .mean = 0, .vocab_size = 100 },
        { .n = 1, .min_length = 16, .max_length = 384, .mean = 1, .sd = -1, .vocab_size = 100 },
        { .n = 1, .min_length = 16, .max_length = 384, .mean = NAN, .vocab_size = 100 },
        { .n = 1, .min_length = 16, .max_length = 384, .mean = 1, .vocab_size = 15 },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_err err = HG_ERR_INIT;
        struct wk_features f;

        assert_int_equal(wk_synthetic_build(&cases[i], &f, &err), -1);
        assert_int_equal(err.code, HG_E_INPUT);
    }
}

static void test_statistics_of_known_lengths(void **state)
{
    struct wk_feature items[4] = {
        { 0, 0, 1, 0, 0 }, { 0, 0, 3, 3, 3 }, { 0, 0, 5, 0, 0 }, { 1, 0, 12, 0, 0 }
    };
    struct wk_feature_question questions[2] = { { 0, 1 }, { 0, 5 } };
    struct wk_features f = {
        .max_length = 20, .n = 4, .n_questions = 2, .items = items, .questions = questions
    };
    struct wk_feature_stats s; /* lengths 5, 7, 9, 20 */

    (void)state;
    wk_features_stats(&f, &s);
    assert_int_equal(s.features.n, 4);
    assert_true(fabs(s.features.mean - (10.25)) < 1e-12);
    assert_true(fabs(s.features.median - (8)) < 1e-12);
    assert_true(fabs(s.features.p90 - (9 + 0.7 * 11)) < 1e-12);
    assert_int_equal(s.features.min, 5);
    assert_int_equal(s.features.max, 20);
    assert_int_equal(s.labelled, 1);
    assert_true(fabs(s.questions.mean - (3)) < 1e-12);
    assert_true(fabs(s.windows.mean - (5.25)) < 1e-12);
    assert_true(fabs(s.fill - (10.25 / 20)) < 1e-12);
    assert_true(fabs(s.square_fill - ((25 + 49 + 81 + 400) / 4.0 / 400)) < 1e-12);
    f.n = f.n_questions = 0;
    wk_features_stats(&f, &s);
    assert_true(fabs(s.fill - (0)) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_and_labels_are_the_golden_ones),
        cmocka_unit_test(test_dummy_labels_are_position_0_and_questions_can_be_few),
        cmocka_unit_test(test_options_that_cannot_work_are_refused),
        cmocka_unit_test(test_progress_reaches_the_end),
        cmocka_unit_test(test_the_cache_gives_the_same_and_knows_its_inputs),
        cmocka_unit_test(test_a_damaged_cache_is_made_anew),
        cmocka_unit_test(test_a_cache_that_cannot_be_written_does_not_stop_anything),
        cmocka_unit_test(test_ranks_that_start_at_once_share_the_cache),
        cmocka_unit_test(test_synthetic_lengths_follow_their_distribution),
        cmocka_unit_test(test_synthetic_features_are_sound_and_depend_on_seed_and_number_only),
        cmocka_unit_test(test_synthetic_options_that_cannot_work_are_refused),
        cmocka_unit_test(test_statistics_of_known_lengths),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
