/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the cuda backend that run on the host: what is tested here needs no GPU and no CUDA. */
#include "../unit/test.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/backend.h"
#include "backends/cuda/cache.h"
#include "backends/cuda/errors.h"
#include "backends/cuda/graphs.h"
#include "backends/cuda/search.h"
#include "base/fs.h"
#include "models/models.h"
#include "strategies/sharded_plan.h"
#include "strategies/strategies.h"

/* ---- Searching ---- */

/* Times of each candidate, try by try; the first one does not count. */
struct clockwork {
    double times[4][4];
    int tries[4];
};

static double tick(void *context, int candidate, int repeats)
{
    struct clockwork *c = context;

    assert_int_equal(repeats, c->tries[candidate] ? WK_SEARCH_REPEATS : 1);
    return c->times[candidate][c->tries[candidate]++];
}

static void test_the_least_median_wins(void **state)
{
    struct clockwork c = { .times = { { 9, 5, 5, 5 },
                                      { 9, 1, 7, 7 },       /* once lucky */
                                      { 9, 4, 100, 4 },     /* once disturbed */
                                      { 1, 4.1, 6, 6 } } }; /* the first try does not count */
    double seconds = 0;

    (void)state;
    assert_true(WK_SEARCH_REPEATS >= 10);
    assert_int_equal(wk_search_best(4, tick, &c, &seconds), 2);
    assert_true(seconds == 4);
    assert_int_equal(c.tries[2], 4);
}

static void test_slow_candidates_get_no_more_tries(void **state)
{
    struct clockwork c = { .times = { { 2, 2, 2, 2 }, { 9, 2.3 }, { 2, 2.1, 1, 1 } } };

    (void)state;
    assert_int_equal(wk_search_best(3, tick, &c, NULL), 2);
    assert_int_equal(c.tries[1], 2);
    assert_int_equal(c.tries[2], 4);
}

static void test_of_equal_ones_the_likelier_is_taken(void **state)
{
    struct clockwork c = { .times = { { 3, 3, 3, 3 }, { 3, 2.98, 2.98, 2.98 } } };

    (void)state;
    assert_int_equal(wk_search_best(2, tick, &c, NULL), 0);
}

static void test_candidates_that_cannot_are_passed_over(void **state)
{
    struct clockwork c = { .times = { { -1 }, { 3, 3, 3, -1 }, { 5, 5, 5, 5 } } };
    struct clockwork none = { .times = { { -1 }, { -1 } } };

    (void)state;
    assert_int_equal(wk_search_best(3, tick, &c, NULL), 2);
    assert_int_equal(wk_search_best(2, tick, &none, NULL), -1);
    assert_int_equal(wk_search_best(0, tick, &none, NULL), -1);
}

/* ---- The file of choices ---- */

static char folder[] = "/tmp/hpcgrid-choices-XXXXXX";

static char *file_in(const char *name)
{
    return hg_fs_join(folder, name);
}

static struct wk_choice choice_of(uint8_t first)
{
    struct wk_choice c = { .variant = first % 2, .seconds = 1e-6 * first, .tflops = 2.0 * first };

    for (int i = 0; i < WK_CHOICE_BYTES; i++)
        c.algorithm[i] = (uint8_t)(first + 3 * i);
    return c;
}

static struct wk_choices *open_choices(const char *path, const char *device, const char *library)
{
    struct wk_choices *c = wk_choices_open(path, device, library);

    assert_non_null(c);
    return c;
}

static void put(struct wk_choices *c, const char *key, uint8_t first)
{
    const struct wk_choice choice = choice_of(first);

    wk_choices_put(c, key, &choice);
}

static void save(struct wk_choices *c)
{
    struct hg_err err = HG_ERR_INIT;

    if (wk_choices_save(c, &err) < 0)
        fail_msg("%s", err.text);
}

static void assert_choice(const struct wk_choices *c, const char *key, uint8_t first)
{
    const struct wk_choice *found = wk_choices_find(c, key), wanted = choice_of(first);

    assert_non_null(found);
    assert_int_equal(found->variant, wanted.variant);
    assert_memory_equal(found->algorithm, wanted.algorithm, WK_CHOICE_BYTES);
    assert_true(found->seconds == wanted.seconds && found->tflops == wanted.tflops);
}

static void test_choices_are_found_again(void **state)
{
    char *path = file_in("deep/er/again.json");
    struct wk_choices *c = open_choices(path, "NVIDIA X", "13.1.0");

    (void)state;
    assert_null(wk_choices_find(c, "a"));
    put(c, "a", 200);
    put(c, "b", 7);
    assert_choice(c, "a", 200);
    save(c);
    wk_choices_free(c);
    c = open_choices(path, "NVIDIA X", "13.1.0");
    assert_choice(c, "a", 200);
    assert_choice(c, "b", 7);
    wk_choices_free(c);
    free(path);
}

static void test_another_device_or_library_has_its_own_choices(void **state)
{
    char *path = file_in("other.json");
    struct wk_choices *c = open_choices(path, "NVIDIA X", "13.1.0");

    (void)state;
    put(c, "a", 1);
    save(c);
    wk_choices_free(c);
    c = open_choices(path, "NVIDIA Y", "13.1.0");
    assert_null(wk_choices_find(c, "a"));
    wk_choices_free(c);
    c = open_choices(path, "NVIDIA X", "13.2.0");
    assert_null(wk_choices_find(c, "a"));
    wk_choices_free(c);
    free(path);
}

static void test_what_another_process_wrote_first_stays(void **state)
{
    char *path = file_in("two.json");
    struct wk_choices *one = open_choices(path, "X", "1"), *two = open_choices(path, "X", "1");

    (void)state;
    put(one, "both", 1);
    put(one, "first", 2);
    put(two, "both", 9);
    put(two, "second", 3);
    save(one);
    save(two);
    wk_choices_free(one);
    wk_choices_free(two);
    one = open_choices(path, "X", "1");
    assert_choice(one, "both", 1);
    assert_choice(one, "first", 2);
    assert_choice(one, "second", 3);
    wk_choices_free(one);
    free(path);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

#define HEAD \
    "{\"schema\": \"hpcgrid-algorithms/2\", \"device\": \"X\", \"library\": \"1\", \"choices\": "

static void test_a_damaged_file_counts_as_none_and_is_replaced(void **state)
{
    static const char *const texts[] = {
        "",
        "{\"schema\": ",
        "[]",
        "{}",
        HEAD "{\"a\": {}}}",
        HEAD "{\"a\": {\"variant\": 0, \"algorithm\": \"00\", \"seconds\": 1, \"tflops\": 1}}}",
        HEAD "{\"a\": {\"variant\": -1, \"algorithm\": \"",
        HEAD "7}",
        HEAD "[1, 2]}",
    };
    char *path = file_in("damaged.json");

    (void)state;
    for (size_t i = 0; i < N_OF(texts); i++) {
        struct wk_choices *c;

        write_file(path, texts[i]);
        c = open_choices(path, "X", "1");
        assert_null(wk_choices_find(c, "a"));
        put(c, "a", 5);
        save(c);
        wk_choices_free(c);
        c = open_choices(path, "X", "1");
        assert_choice(c, "a", 5);
        wk_choices_free(c);
    }
    free(path);
}

static void test_nothing_is_written_without_news_or_a_path(void **state)
{
    char *path = file_in("quiet.json");
    struct wk_choices *c = open_choices(path, "X", "1"), *nowhere = open_choices(NULL, "X", "1");

    (void)state;
    save(c);
    assert_false(hg_fs_exists(path));
    put(nowhere, "a", 3);
    save(nowhere);
    assert_choice(nowhere, "a", 3);
    wk_choices_free(c);
    wk_choices_free(nowhere);
    free(path);
}

static void test_a_folder_that_cannot_be_is_an_error(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    char *file = file_in("file"), *path = file_in("file/below.json");
    struct wk_choices *c = open_choices(path, "X", "1");

    (void)state;
    write_file(file, "");
    put(c, "a", 1);
    assert_int_equal(wk_choices_save(c, &err), -1);
    assert_non_null(strstr(err.text, "file"));
    wk_choices_free(c);
    free(file);
    free(path);
}

static void test_the_file_is_named_by_device_and_library(void **state)
{
    static const struct {
        const char *own, *xdg, *home, *wanted;
    } cases[] = {
        { "/c", "/x", "/h", "/c/algorithms-nvidia-h200-13.1.0.json" },
        { "", "/x", "/h", "/x/hpcgrid/algorithms-nvidia-h200-13.1.0.json" },
        { NULL, NULL, "/h", "/h/.cache/hpcgrid/algorithms-nvidia-h200-13.1.0.json" },
        { NULL, NULL, NULL, NULL },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        const char *names[] = { "HPCGRID_CACHE", "XDG_CACHE_HOME", "HOME" };
        const char *values[] = { cases[i].own, cases[i].xdg, cases[i].home };
        char *path;

        for (int k = 0; k < 3; k++) {
            unsetenv(names[k]);
            if (values[k])
                setenv(names[k], values[k], 1);
        }
        path = wk_choices_path("NVIDIA H200", "13.1.0");
        if (cases[i].wanted)
            assert_string_equal(path, cases[i].wanted);
        else
            assert_null(path);
        free(path);
    }
}

/* ---- Memory ---- */

/* A driver with so many bytes. */
struct driver {
    size_t left;
    int gets, releases;
};

static void *driver_get(void *context, size_t bytes)
{
    struct driver *d = context;
    size_t *block;

    d->gets++;
    if (bytes > d->left)
        return NULL;
    block = malloc(sizeof *block + bytes);
    assert_non_null(block);
    *block = bytes;
    d->left -= bytes;
    return block + 1;
}

static void driver_release(void *context, void *data)
{
    struct driver *d = context;
    size_t *block = (size_t *)data - 1;

    d->releases++;
    d->left += *block;
    free(block);
}

static struct wk_cache cache_of(struct driver *d)
{
    return (struct wk_cache){ .get = driver_get, .release = driver_release, .context = d };
}

static void test_memory_is_used_again(void **state)
{
    struct driver d = { .left = 1 << 20 };
    struct wk_cache c = cache_of(&d);
    void *a = wk_cache_take(&c, 10000), *b;

    (void)state;
    assert_int_equal(wk_cache_size(&c, a), 10240);
    wk_cache_give(&c, a);
    b = wk_cache_take(&c, 9900); /* a little smaller: the same block */
    assert_ptr_equal(a, b);
    assert_int_equal(d.gets, 1);
    assert_int_equal(c.used_bytes, 10240);
    wk_cache_give(&c, b);
    b = wk_cache_take(&c, 5000); /* much smaller: that would be a waste */
    assert_ptr_not_equal(a, b);
    assert_int_equal(c.held_bytes, 10240 + 5120);
    assert_int_equal(c.hits, 1);
    assert_int_equal(c.misses, 2);
    wk_cache_done(&c);
    assert_int_equal(d.left, 1 << 20);
}

static void test_the_block_that_fits_best_is_taken(void **state)
{
    struct driver d = { .left = 1 << 20 };
    struct wk_cache c = cache_of(&d);
    void *large = wk_cache_take(&c, 11264), *small = wk_cache_take(&c, 10240);

    (void)state;
    wk_cache_give(&c, large);
    wk_cache_give(&c, small);
    assert_ptr_equal(wk_cache_take(&c, 10240), small);
    assert_ptr_equal(wk_cache_take(&c, 10240), large);
    wk_cache_done(&c);
}

static void test_free_blocks_go_back_before_memory_is_out(void **state)
{
    struct driver d = { .left = 8192 };
    struct wk_cache c = cache_of(&d);
    void *a = wk_cache_take(&c, 4096), *b = wk_cache_take(&c, 4096);

    (void)state;
    wk_cache_give(&c, a);
    assert_null(wk_cache_take(&c, 8192)); /* b is in use */
    assert_int_equal(d.left, 4096);       /* a went back all the same */
    wk_cache_give(&c, b);
    assert_non_null(wk_cache_take(&c, 8192));
    assert_int_equal(c.held_bytes, 8192);
    wk_cache_done(&c);
    assert_int_equal(d.left, 8192);
}

static void test_giving_back_twice_or_nothing_is_harmless(void **state)
{
    struct driver d = { .left = 8192 };
    struct wk_cache c = cache_of(&d);
    void *a = wk_cache_take(&c, 0);

    (void)state;
    assert_int_equal(wk_cache_size(&c, a), 512);
    wk_cache_give(&c, a);
    wk_cache_give(&c, a);
    wk_cache_give(&c, NULL);
    wk_cache_give(&c, &d);
    assert_int_equal(c.used_bytes, 0);
    wk_cache_done(&c);
    assert_int_equal(d.releases, 1);
}

/* ---- Graphs ---- */

static int destroyed;

static void count_destroyed(void *graph)
{
    (void)graph;
    destroyed++;
}

static struct wk_graph_entry *graph(struct wk_graphs *g, uint64_t tokens)
{
    return wk_graphs_get(g, (const uint64_t[WK_GRAPH_KEY]){ tokens, 8, 384, 1 });
}

static void make_ready(struct wk_graphs *g, uint64_t tokens)
{
    struct wk_graph_entry *e = graph(g, tokens);

    e->state = WK_GRAPH_READY;
    e->graph = g;
}

static void test_graphs_are_known_by_their_whole_key(void **state)
{
    struct wk_graphs g = { .destroy = count_destroyed };

    (void)state;
    assert_int_equal(graph(&g, 1024)->state, WK_GRAPH_NEW);
    make_ready(&g, 1024);
    assert_int_equal(graph(&g, 1024)->state, WK_GRAPH_READY);
    assert_int_equal(graph(&g, 1088)->state, WK_GRAPH_NEW);
    assert_int_equal(wk_graphs_get(&g, (const uint64_t[]){ 1024, 8, 384, 2 })->state, WK_GRAPH_NEW);
    assert_int_equal(g.n, 3);
    wk_graphs_done(&g);
}

static void test_the_graph_unused_for_longest_makes_room(void **state)
{
    struct wk_graphs g = { .destroy = count_destroyed };

    (void)state;
    destroyed = 0;
    for (uint64_t i = 0; i < WK_GRAPHS_MOST; i++)
        make_ready(&g, i);
    graph(&g, 0); /* used again: now 1 is the oldest */
    assert_int_equal(graph(&g, 1000)->state, WK_GRAPH_NEW);
    assert_int_equal(destroyed, 1);
    assert_int_equal(graph(&g, 0)->state, WK_GRAPH_READY);
    assert_int_equal(graph(&g, 1)->state, WK_GRAPH_NEW);
    assert_int_equal(g.n, WK_GRAPHS_MOST);
    wk_graphs_done(&g);
    assert_int_equal(destroyed, WK_GRAPHS_MOST);
    assert_int_equal(g.dropped, WK_GRAPHS_MOST);
}

static void test_cleared_graphs_are_made_anew_and_refused_ones_are_not(void **state)
{
    struct wk_graphs g = { .destroy = count_destroyed };

    (void)state;
    destroyed = 0;
    make_ready(&g, 1);
    graph(&g, 2)->state = WK_GRAPH_REFUSED;
    wk_graphs_clear(&g);
    assert_int_equal(destroyed, 1);
    assert_int_equal(graph(&g, 1)->state, WK_GRAPH_NEW);
    assert_int_equal(graph(&g, 2)->state, WK_GRAPH_REFUSED);
    wk_graphs_done(&g);
}

/* ---- What goes wrong ---- */

/* What CUDA returned, and the message and hint that it becomes; of the hint a part, "" if there is none. */
struct explained {
    struct wk_cuda_trouble trouble;
    enum hg_err_code code;
    const char *text, *hint;
};

static void check_explained(const struct explained *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct hg_err err = HG_ERR_INIT;

        assert_int_equal(wk_cuda_explain(&cases[i].trouble, &err), -1);
        assert_int_equal(err.code, cases[i].code);
        assert_string_equal(err.text, cases[i].text);
        if (*cases[i].hint)
            assert_non_null(strstr(err.hint, cases[i].hint));
        else
            assert_string_equal(err.hint, "");
    }
}

static void test_a_missing_or_old_driver_is_said_with_the_one_needed(void **state)
{
    static const struct explained cases[] = {
        { { .code = 35, .runtime = 13000 },
          HG_E_ENV,
          "no NVIDIA driver is loaded on this machine",
          "580" },
        { { .code = 100, .runtime = 13000 },
          HG_E_ENV,
          "no NVIDIA driver is loaded on this machine",
          "580" },
        { { .code = 35, .runtime = 13000, .driver = 12020 },
          HG_E_ENV,
          "the NVIDIA driver is too old: it supports CUDA 12.2, this program needs CUDA 13.0",
          "driver 580 or newer is needed; or build hpcgrid-worker with CUDA 12.2" },
        { { .code = 35, .runtime = 13000, .driver = 12000 },
          HG_E_ENV,
          "the NVIDIA driver is too old: it supports CUDA 12.0, this program needs CUDA 13.0",
          "with CUDA 12.2" },
        { { .code = 35, .runtime = 13000, .driver = 12060 },
          HG_E_ENV,
          "the NVIDIA driver is too old: it supports CUDA 12.6, this program needs CUDA 13.0",
          "with CUDA 12.6" },
        { { .code = 35, .runtime = 12080, .driver = 11040 },
          HG_E_ENV,
          "the NVIDIA driver is too old: it supports CUDA 11.4, this program needs CUDA 12.8",
          "driver 525 or newer is needed" },
        { { .code = 803, .driver = 13000 },
          HG_E_ENV,
          "the NVIDIA driver and its library differ in version",
          "reboot" },
    };

    (void)state;
    check_explained(cases, N_OF(cases));
}

static void test_a_device_that_cannot_be_opened_is_said_with_what_helps(void **state)
{
    static const struct explained cases[] = {
        { { .code = 100, .runtime = 13000, .driver = 13000 },
          HG_E_ENV,
          "the NVIDIA driver shows no GPU to this process",
          "gpus_per_node" },
        { { .code = 46, .driver = 13000, .device = "NVIDIA X" },
          HG_E_ENV,
          "NVIDIA X is busy, or in exclusive mode with another process on it",
          "nvidia-smi" },
        { { .code = 209,
            .driver = 13000,
            .device = "NVIDIA X",
            .capability = 75,
            .architectures = "sm_80" },
          HG_E_ENV,
          "this program has no kernels for NVIDIA X (compute capability 7.5)",
          "CMAKE_CUDA_ARCHITECTURES=75" },
        { { .code = 222,
            .driver = 13000,
            .device = "NVIDIA X",
            .capability = 90,
            .architectures = "sm_80" },
          HG_E_ENV,
          "this program has no kernels for NVIDIA X (compute capability 9.0)",
          "CMAKE_CUDA_ARCHITECTURES=90" },
        { { .code = 2, .driver = 13000, .device = "NVIDIA X" },
          HG_E_ENV,
          "no memory on NVIDIA X for opening the device",
          "nvidia-smi" },
        { { .code = 802, .driver = 13000 },
          HG_E_ENV,
          "the machine's GPUs are not ready",
          "fabricmanager" },
        { { .code = 999, .driver = 13000, .name = "unknown error" },
          HG_E_ENV,
          "opening the device: CUDA error 999 (unknown error) on the GPU",
          "" },
    };

    (void)state;
    check_explained(cases, N_OF(cases));
}

static void test_a_device_that_fails_later_is_named_with_the_op(void **state)
{
    static const struct explained cases[] = {
        { { .code = 214,
            .driver = 13000,
            .device = "NVIDIA X",
            .pci = "0000:65:00.0",
            .what = "sync" },
          HG_E_ENV,
          "NVIDIA X (0000:65:00.0) has failed: an uncorrectable ECC error",
          "Xid" },
        { { .code = 46,
            .driver = 13000,
            .device = "NVIDIA X",
            .pci = "0000:65:00.0",
            .what = "sync" },
          HG_E_ENV,
          "NVIDIA X (0000:65:00.0) no longer responds, noticed by sync",
          "Xid" },
        { { .code = 700,
            .driver = 13000,
            .device = "NVIDIA X",
            .what = "adamw",
            .name = "an illegal memory access" },
          HG_E_BUG,
          "a kernel failed on NVIDIA X, noticed by adamw: an illegal memory access",
          "CUDA_LAUNCH_BLOCKING=1" },
    };

    (void)state;
    check_explained(cases, N_OF(cases));
}

static void test_precisions_are_refused_where_the_device_has_none(void **state)
{
    static const struct {
        enum wk_precision precision;
        int capability;
        const char *text; /* NULL: it can */
    } cases[] = {
        { WK_FULL, 75, NULL },
        { WK_MIXED_FP16, 75, NULL },
        { WK_MIXED_BF16, 80, NULL },
        { WK_TF32, 120, NULL },
        { WK_MIXED_BF16, 75,
          "T4 (compute capability 7.5) cannot compute in bf16, which needs 8.0" },
        { WK_TF32, 75, "T4 (compute capability 7.5) cannot compute in tf32, which needs 8.0" },
        { WK_FULL, 70, "T4 (compute capability 7.0) cannot compute in fp32, which needs 7.5" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_err err = HG_ERR_INIT;

        assert_int_equal(wk_cuda_can((int)cases[i].precision, cases[i].capability, "T4", &err),
                         !cases[i].text);
        if (cases[i].text)
            assert_string_equal(err.text, cases[i].text);
    }
}

/* ---- Places in memory ---- */

static void hold_aligned(const struct wk_strategy_shape *shape)
{
    struct wk_sharded_plan plan;
    const struct wk_shards *s = &plan.shards;

    wk_sharded_plan(&plan, shape);
    for (int i = 0; i < shape->model->n_params; i++)
        assert_int_equal((s->groups[s->places[i].group].at + s->places[i].at) % WK_GRAIN, 0);
    for (int i = 0; i < s->n_pieces; i++) {
        assert_int_equal(s->pieces[i].shard_at % WK_GRAIN, 0);
        assert_int_equal(s->pieces[i].at % WK_GRAIN, 0);
        assert_int_equal(s->pieces[i].padded % (WK_GRAIN * (size_t)shape->world), 0);
    }
    assert_true(s->padded >= wk_model_n(shape->model));
    assert_int_equal(plan.value_slot % WK_GRAIN, 0);
    assert_int_equal(plan.gradient_slot % WK_GRAIN, 0);
    assert_int_equal(plan.stage % WK_GRAIN, 0);
    wk_sharded_plan_done(&plan);
}

static void test_every_parameter_and_shard_of_every_preset_is_aligned(void **state)
{
    static const char *const names[] = { "fsdp", "deepspeed_stage_1", "deepspeed",
                                         "deepspeed_stage_3" };

    (void)state;
    for (const struct wk_model_entry *m = wk_models; m->name; m++) {
        const struct wk_model_kind *model = wk_model_get(m->name, NULL);

        for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
            struct wk_strategy_options options = wk_strategy_defaults(names[i / 2], i % 2);
            struct wk_strategy_shape shape = { .kind = wk_strategy_get(names[i / 2], 1, NULL),
                                               .model = model,
                                               .options = &options,
                                               .grain = WK_GRAIN };

            for (shape.world = 1; shape.world <= 9; shape.world++)
                hold_aligned(&shape);
        }
        wk_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_least_median_wins),
        cmocka_unit_test(test_slow_candidates_get_no_more_tries),
        cmocka_unit_test(test_of_equal_ones_the_likelier_is_taken),
        cmocka_unit_test(test_candidates_that_cannot_are_passed_over),
        cmocka_unit_test(test_choices_are_found_again),
        cmocka_unit_test(test_another_device_or_library_has_its_own_choices),
        cmocka_unit_test(test_what_another_process_wrote_first_stays),
        cmocka_unit_test(test_a_damaged_file_counts_as_none_and_is_replaced),
        cmocka_unit_test(test_nothing_is_written_without_news_or_a_path),
        cmocka_unit_test(test_a_folder_that_cannot_be_is_an_error),
        cmocka_unit_test(test_the_file_is_named_by_device_and_library),
        cmocka_unit_test(test_memory_is_used_again),
        cmocka_unit_test(test_the_block_that_fits_best_is_taken),
        cmocka_unit_test(test_free_blocks_go_back_before_memory_is_out),
        cmocka_unit_test(test_giving_back_twice_or_nothing_is_harmless),
        cmocka_unit_test(test_graphs_are_known_by_their_whole_key),
        cmocka_unit_test(test_the_graph_unused_for_longest_makes_room),
        cmocka_unit_test(test_cleared_graphs_are_made_anew_and_refused_ones_are_not),
        cmocka_unit_test(test_a_missing_or_old_driver_is_said_with_the_one_needed),
        cmocka_unit_test(test_a_device_that_cannot_be_opened_is_said_with_what_helps),
        cmocka_unit_test(test_a_device_that_fails_later_is_named_with_the_op),
        cmocka_unit_test(test_precisions_are_refused_where_the_device_has_none),
        cmocka_unit_test(test_every_parameter_and_shard_of_every_preset_is_aligned),
    };
    int failed;

    if (!mkdtemp(folder))
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    hg_fs_remove_tree(folder, NULL);
    return failed;
}
