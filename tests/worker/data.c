/* SPDX-License-Identifier: Apache-2.0 */
/* Reading IDX files, right and damaged, and dealing samples out to ranks. */
#include "worker.h"

#include <unistd.h>
#include <zlib.h>

#include "base/fs.h"
#include "data/idx.h"
#include "data/sampler.h"

static char dir[] = "/tmp/hpcgrid-test-XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    unsetenv("HPCGRID_DATA");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    return hg_fs_remove_tree(dir, NULL);
}

static void path_in(char out[256], const char *name)
{
    snprintf(out, 256, "%s/%s", dir, name);
}

static void put(const char *name, const void *bytes, size_t n, bool gzip)
{
    char path[256];

    path_in(path, name);
    if (gzip) {
        gzFile f = gzopen(path, "wb");

        assert_int_equal(gzwrite(f, bytes, (unsigned)n), n);
        assert_int_equal(gzclose(f), Z_OK);
    } else {
        assert_int_equal(hg_fs_replace(path, bytes, n, 0644, NULL), 0);
    }
}

/* ---- IDX ---- */

/* Two images of 2 x 3 bytes. */
static const uint8_t good[] = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2,  0,  0,
                                0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };

static void test_idx_plain_and_gzip_read_alike(void **state)
{
    (void)state;
    for (int gzip = 0; gzip < 2; gzip++) {
        struct hg_err err = HG_ERR_INIT;
        struct wk_idx idx;
        char path[256];

        put("good", good, sizeof good, gzip);
        path_in(path, "good");
        assert_int_equal(wk_idx_load(path, 3, &idx, &err), 0);
        assert_int_equal(idx.n, 12);
        assert_int_equal(idx.dims[0], 2);
        assert_int_equal(idx.dims[2], 3);
        assert_memory_equal(idx.data, good + 16, 12);
        wk_idx_done(&idx);
    }
}

static void test_idx_damage_is_named(void **state)
{
    static const struct {
        const char *what;
        int at; /* byte that is changed; -1: none */
        uint8_t to;
        size_t n; /* bytes written */
        int dims;
        const char *says;
    } cases[] = {
        { "empty", -1, 0, 0, 3, "the file ends after 0 bytes, inside its header of 16" },
        { "in the magic", -1, 0, 3, 3, "the file ends after 3 bytes, inside its header of 16" },
        { "in the header", -1, 0, 9, 3, "the file ends after 9 bytes, inside its header of 16" },
        { "type", 2, 13, sizeof good, 3,
          "magic number 3331 (0x00000d03) where 2051 is expected: not an IDX file of bytes with 3 dimensions" },
        { "labels as images", 3, 1, sizeof good, 3,
          "magic number 2049 (0x00000801) where 2051 is expected: not an IDX file of bytes with 3 dimensions" },
        { "images as labels", -1, 0, sizeof good, 1,
          "magic number 2051 (0x00000803) where 2049 is expected: not an IDX file of bytes with 1 dimension" },
        { "short by one", -1, 0, sizeof good - 1, 3,
          "cut short: the header announces 12 values, the file has 11" },
        { "no values", -1, 0, 16, 3, "cut short: the header announces 12 values, the file has 0" },
        { "too many promised", 7, 3, sizeof good, 3,
          "cut short: the header announces 18 values, the file has 12" },
        { "too few promised", 7, 1, sizeof good, 3, "data after the last of 6 values" },
        { "a size of 0", 11, 0, sizeof good, 3, "dimension 1 is 0" },
        { "absurd sizes", 8, 255, sizeof good, 3,
          "dimension 1 is 4278190082: more than 4294967296 bytes in all, the header is damaged" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++)
        for (int gzip = 0; gzip < 2; gzip++) {
            struct hg_err err = HG_ERR_INIT;
            struct wk_idx idx = { 0 };
            uint8_t bytes[sizeof good];
            char path[256];

            memcpy(bytes, good, sizeof good);
            if (cases[i].at >= 0)
                bytes[cases[i].at] = cases[i].to;
            put("bad", bytes, cases[i].n, gzip);
            path_in(path, "bad");
            if (wk_idx_load(path, cases[i].dims, &idx, &err) == 0)
                fail_msg("%s: accepted", cases[i].what);
            assert_int_equal(err.code, HG_E_INPUT);
            assert_string_equal(err.text, cases[i].says);
            assert_string_equal(err.file, path);
            assert_null(idx.data);
        }
}

static void test_damaged_gzip_is_named(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_buf file = HG_BUF_INIT;
    struct wk_idx idx = { 0 };
    char path[256];

    (void)state;
    put("whole", good, sizeof good, true);
    path_in(path, "whole");
    assert_int_equal(hg_fs_read(path, 1000, &file, &err), 0);
    put("part", file.data, file.len - 9, false);
    path_in(path, "part");
    assert_int_equal(wk_idx_load(path, 3, &idx, &err), -1);
    assert_int_equal(err.code, HG_E_INPUT);
    assert_non_null(strstr(err.text, "damaged gzip data"));

    err = (struct hg_err)HG_ERR_INIT;
    file.data[file.len - 6] ^= 1; /* the checksum */
    put("sum", file.data, file.len, false);
    path_in(path, "sum");
    assert_int_equal(wk_idx_load(path, 3, &idx, &err), -1);
    assert_non_null(strstr(err.text, "damaged gzip data"));
    hg_buf_done(&file);
}

static void test_missing_file_says_so(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_idx idx = { 0 };

    (void)state;
    assert_int_equal(wk_idx_load("/nowhere/at/all", 3, &idx, &err), -1);
    assert_string_equal(err.text, "cannot read /nowhere/at/all: No such file or directory");
    assert_int_equal(err.code, HG_E_INPUT);
}

/* ---- MNIST ---- */

static void put_images(const char *name, uint32_t n, uint32_t side)
{
    uint8_t bytes[16 + 4 * 28 * 28] = {
        0, 0, 8, 3, 0, 0, 0, (uint8_t)n, 0, 0, 0, (uint8_t)side, 0, 0, 0, (uint8_t)side
    };

    put(name, bytes, 16 + n * side * side, true);
}

static void put_labels(const char *name, uint32_t n, uint8_t label)
{
    uint8_t bytes[8 + 8] = { 0, 0, 8, 1, 0, 0, 0, (uint8_t)n };

    memset(bytes + 8, label, n);
    put(name, bytes, 8 + n, true);
}

static void put_mnist(void)
{
    put_images("train-images-idx3-ubyte.gz", 4, 28);
    put_labels("train-labels-idx1-ubyte.gz", 4, 9);
    put_images("t10k-images-idx3-ubyte.gz", 2, 28);
    put_labels("t10k-labels-idx1-ubyte.gz", 2, 0);
}

static void expect_mnist(const struct wk_dataset_options *options, const char *text,
                         const char *hint)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_dataset *set = wk_dataset_open(options, &err);

    if (!text) {
        if (!set)
            fail_msg("%s", err.text);
        wk_dataset_free(set);
        return;
    }
    assert_null(set);
    assert_int_equal(err.code, HG_E_INPUT);
    if (!strstr(err.text, text) || !strstr(err.hint, hint))
        fail_msg("%s\n%s", err.text, err.hint);
}

static void test_mnist_files_must_belong_together(void **state)
{
    struct wk_dataset_options options = { .name = "mnist", .data = dir };
    char path[256];

    (void)state;
    put_mnist();
    expect_mnist(&options, NULL, NULL);
    put_labels("train-labels-idx1-ubyte.gz", 3, 9);
    expect_mnist(&options, "3 labels for 4 images: the files do not belong together", "");
    put_labels("train-labels-idx1-ubyte.gz", 4, 10);
    expect_mnist(&options, "label 0 is 10, expected 0 to 9", "");
    put_mnist();
    put_images("t10k-images-idx3-ubyte.gz", 2, 27);
    expect_mnist(&options, "images of 27 x 27, expected 28 x 28", "");
    path_in(path, "t10k-images-idx3-ubyte.gz");
    unlink(path);
    expect_mnist(&options, "no file", "MNIST is four files");
    put_mnist();
    options.samples = 5;
    expect_mnist(&options, "5 samples requested, the file has 4", "");
    options.samples = 3;
    expect_mnist(&options, NULL, NULL);
}

static void test_data_is_looked_for_in_order(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_dataset_options options = { .name = "mnist" };
    struct wk_dataset *set = wk_dataset_open(&options, &err);
    char other[300], old[300];

    (void)state;
    assert_non_null(set); /* what ships */
    assert_string_equal(set->name, "mnist-slice");
    assert_int_equal(set->train.n, 4000);
    assert_int_equal(set->test.n, 1000);
    wk_dataset_free(set);
    setenv("HPCGRID_DATA", dir, 1);
    expect_mnist(&options, "/mnist, where HPCGRID_DATA expects the data set",
                 "put the four MNIST files there");
    snprintf(other, sizeof other, "%s/mnist", dir);
    snprintf(old, sizeof old, "%s", dir);
    put_mnist();
    assert_int_equal(symlink(old, other), 0);
    set = wk_dataset_open(&options, &err);
    assert_non_null(set);
    assert_string_equal(set->name, "mnist-other");
    wk_dataset_free(set);
    options.name = "mnist-slice"; /* asked by name: never what HPCGRID_DATA has */
    set = wk_dataset_open(&options, &err);
    assert_non_null(set);
    assert_int_equal(set->train.n, 4000);
    wk_dataset_free(set);
    unsetenv("HPCGRID_DATA");
    options.data = "/nowhere/at/all";
    expect_mnist(&options, "no folder /nowhere/at/all, where \"data\" expects the data set",
                 "leave \"data\" out");
    options = (struct wk_dataset_options){ .name = "mnits" };
    expect_mnist(&options, "unknown dataset \"mnits\"", "did you mean \"mnist\"?");
}

static void test_the_hash_is_that_of_the_samples_used(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_dataset_options options = { .name = "mnist-slice" };
    struct wk_dataset *all = wk_dataset_open(&options, &err),
                      *again = wk_dataset_open(&options, &err), *fewer;

    (void)state;
    options.samples = 3999;
    fewer = wk_dataset_open(&options, &err);
    assert_string_equal(all->hash, again->hash);
    assert_string_not_equal(all->hash, fewer->hash);
    assert_int_equal(strlen(all->hash), 32);
    wk_dataset_free(all);
    wk_dataset_free(again);
    wk_dataset_free(fewer);
}

/* ---- Sampler ---- */

static void test_every_epoch_is_a_permutation_of_its_own(void **state)
{
    struct wk_sampler s;
    int32_t first[1000];
    int seen[1000] = { 0 }, same = 0;

    (void)state;
    wk_sampler_open(&s, 1000, 0, 1, 64, 1);
    assert_int_equal(s.steps, 16);
    wk_sampler_epoch(&s, 0);
    memcpy(first, s.order, sizeof first);
    wk_sampler_epoch(&s, 1);
    for (int i = 0; i < 1000; i++) {
        seen[s.order[i]]++;
        same += s.order[i] == first[i];
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(seen[i], 1);
    assert_true(same <= 8); /* 1 is expected */
    wk_sampler_epoch(&s, 0);
    assert_memory_equal(first, s.order, sizeof first);
    wk_sampler_close(&s);
}

/* What torch.utils.data.DistributedSampler (drop_last=False) gives all ranks together, by its rule: the permutation of n, padded by its own
 * beginning to a multiple of `world`, over and over where that is longer than it. Returns how many. */
static int padded(const int32_t *permutation, int n, int world, int32_t *out)
{
    int total = (n + world - 1) / world * world, made = n;

    memcpy(out, permutation, (size_t)n * sizeof *out);
    while (made < total) {
        int more = total - made < n ? total - made : n;

        memcpy(out + made, permutation, (size_t)more * sizeof *out);
        made += more;
    }
    return total;
}

enum { UNEVEN_MOST = 103, UNEVEN_BATCH = 5 };

static void hold_to_the_distributed_sampler(int n, int world, bool balanced)
{
    struct wk_sampler alone, ranks[6];
    int32_t all[UNEVEN_MOST + 6], lengths[UNEVEN_MOST];
    int total;

    for (int i = 0; i < n; i++)
        lengths[i] = 1 + i * 37 % 101;
    wk_sampler_open(&alone, n, 0, 1, n, 1);
    wk_sampler_epoch(&alone, 3);
    total = padded(alone.order, n, world, all);
    for (int r = 0; r < world; r++) {
        wk_sampler_open(&ranks[r], n, r, world, UNEVEN_BATCH, 1);
        wk_sampler_epoch(&ranks[r], 3);
        if (balanced)
            wk_sampler_balance(&ranks[r], lengths);
        assert_int_equal(ranks[r].per_rank, total / world);
    }
    for (int step = 0, first = 0; step < ranks[0].steps; step++) {
        int left[UNEVEN_MOST] = { 0 }, rows = 0;

        for (int r = 0; r < world; r++) {
            const int32_t *ids = wk_sampler_batch(&ranks[r], step, &rows);

            for (int i = 0; i < rows; i++) {
                left[ids[i]]++;
                left[all[first + i * world + r]]--;
                assert_true(balanced || ids[i] == all[first + i * world + r]);
                assert_int_equal(ids[i], wk_sampler_id(&ranks[0], r, step * UNEVEN_BATCH + i));
            }
        }
        first += rows * world;
        assert_true(step + 1 < ranks[0].steps || first == total);
        for (int i = 0; i < n; i++)
            assert_int_equal(left[i], 0);
    }
    for (int r = 0; r < world; r++)
        wk_sampler_close(&ranks[r]);
    wk_sampler_close(&alone);
}

/* Balanced, a rank may get another sample of the step, but the step trains the same ones: also the last, which repeats some. */
static void test_steps_train_what_a_distributed_sampler_gives(void **state)
{
    static const int sizes[] = { 1, 2, 7, 60, 61, 100, UNEVEN_MOST };

    (void)state;
    for (int world = 1; world <= 6; world++)
        for (size_t i = 0; i < N_OF(sizes); i++)
            for (int balanced = 0; balanced < 2; balanced++)
                hold_to_the_distributed_sampler(sizes[i], world, balanced);
}

/* The same samples in every step, as many for each rank, and nobody has much more to read than the others. */
static void test_sequences_are_dealt_out_evenly(void **state)
{
    enum { N = 1000, BATCH = 16, WORLD = 4 };
    int32_t lengths[N];
    double worst[2] = { 0 };

    (void)state;
    for (int i = 0; i < N; i++)
        lengths[i] = 20 + (int32_t)(364 * fabs((double)noise(1, (size_t)i)));
    for (int balanced = 0; balanced < 2; balanced++) {
        struct wk_sampler ranks[WORLD];
        bool seen[N] = { false };

        for (int r = 0; r < WORLD; r++) {
            wk_sampler_open(&ranks[r], N, r, WORLD, BATCH, 1);
            wk_sampler_epoch(&ranks[r], 0);
            if (balanced)
                wk_sampler_balance(&ranks[r], lengths);
        }
        for (int step = 0; step + 1 < ranks[0].steps; step++) {
            double most = 0, all = 0;

            for (int r = 0; r < WORLD; r++) {
                int rows, sum = 0;
                const int32_t *ids = wk_sampler_batch(&ranks[r], step, &rows);

                assert_int_equal(rows, BATCH);
                for (int i = 0; i < rows; i++) {
                    assert_false(seen[ids[i]]);
                    seen[ids[i]] = true;
                    sum += lengths[ids[i]];
                    assert_int_equal(ids[i], wk_sampler_id(&ranks[0], r, step * BATCH + i));
                }
                most = fmax(most, sum);
                all += sum;
            }
            worst[balanced] = fmax(worst[balanced], most * WORLD / all);
            for (int i = 0; i < BATCH * WORLD;
                 i++) /* whose order was not changed: the step's samples */
                assert_true(seen[wk_sampler_id(&ranks[0], i % WORLD, step * BATCH + i / WORLD)]);
        }
        for (int r = 0; r < WORLD; r++)
            wk_sampler_close(&ranks[r]);
    }
    assert_true(worst[0] > 1.1);
    assert_true(worst[1] < 1.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idx_plain_and_gzip_read_alike),
        cmocka_unit_test(test_idx_damage_is_named),
        cmocka_unit_test(test_damaged_gzip_is_named),
        cmocka_unit_test(test_missing_file_says_so),
        cmocka_unit_test(test_mnist_files_must_belong_together),
        cmocka_unit_test(test_data_is_looked_for_in_order),
        cmocka_unit_test(test_the_hash_is_that_of_the_samples_used),
        cmocka_unit_test(test_every_epoch_is_a_permutation_of_its_own),
        cmocka_unit_test(test_steps_train_what_a_distributed_sampler_gives),
        cmocka_unit_test(test_sequences_are_dealt_out_evenly),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
