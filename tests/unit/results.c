/* SPDX-License-Identifier: Apache-2.0 */
/* base/map, results/frame, and what results/result makes of single results. */
#include "test.h"

#include <math.h>

#include "base/map.h"
#include "results/frame.h"
#include "results/results.h"

static void test_a_map_keeps_what_was_put_first(void **state)
{
    struct hg_map m = HG_MAP_INIT;
    char key[32];

    (void)state;
    assert_int_equal(hg_map_find(&m, "a", 1), HG_MAP_NONE);
    for (size_t i = 0; i < 50000; i++) {
        int n = snprintf(key, sizeof key, "key %zu", i % 25000);

        assert_int_equal(hg_map_put(&m, key, (size_t)n, i), i % 25000);
    }
    assert_int_equal(m.n, 25000);
    assert_int_equal(hg_map_find(&m, "key 24999", 9), 24999);
    assert_int_equal(hg_map_find(&m, "key 2499", 8), 2499);
    assert_int_equal(hg_map_find(&m, "key 25000", 9), HG_MAP_NONE);
    assert_int_equal(hg_map_put(&m, "", 0, 7), 7); /* the empty key is a key */
    assert_int_equal(hg_map_find(&m, NULL, 0), 7);
    hg_map_done(&m);
}

static void test_cells_are_compared_by_value(void **state)
{
    json_t *a =
        json_loads("{\"n\": 1, \"s\": \"x\", \"l\": [1, 2], \"_note\": 1, \"z\": null}", 0, NULL);
    json_t *b = json_loads("{\"s\": \"x\", \"n\": 1.0, \"l\": [1.0, 2], \"_note\": true}", 0, NULL);
    json_t *c = json_loads("{\"s\": \"10\", \"n\": \"1\", \"time\": 5}", 0, NULL);
    const json_t *cells[] = { a, b, c };
    struct hg_frame f = { 0 };
    size_t n, s, z;

    (void)state;
    hg_frame_build(&f, cells, 3, NULL);
    n = hg_frame_find_key(&f, "n");
    s = hg_frame_find_key(&f, "s");
    z = hg_frame_find_key(&f, "z");
    assert_int_equal(hg_frame_row(&f, 0)[n], hg_frame_row(&f, 1)[n]);
    assert_int_not_equal(hg_frame_row(&f, 0)[n], hg_frame_row(&f, 2)[n]);
    assert_int_equal(hg_frame_row(&f, 0)[s], hg_frame_row(&f, 1)[s]);
    assert_int_equal(hg_frame_row(&f, 0)[hg_frame_find_key(&f, "l")],
                     hg_frame_row(&f, 1)[hg_frame_find_key(&f, "l")]);
    assert_int_equal(hg_frame_row(&f, 0)[z], 0); /* null is absence */
    assert_int_equal(hg_frame_row(&f, 1)[z], 0);
    assert_int_equal(f.keys.items[hg_frame_find_key(&f, "_note")].flags, HG_KEY_NOTE);
    assert_int_equal(f.keys.items[hg_frame_find_key(&f, "time")].flags, HG_KEY_LOOSE);
    /* absence, numbers by size, words as they appeared */
    assert_true(hg_frame_compare(&f, 0, hg_frame_row(&f, 0)[n]) < 0);
    assert_true(hg_frame_compare(&f, hg_frame_row(&f, 0)[n], hg_frame_row(&f, 2)[n]) < 0);
    assert_true(hg_frame_compare(&f, hg_frame_row(&f, 0)[s], hg_frame_row(&f, 2)[s]) < 0);
    hg_frame_done(&f);
    json_decref(a);
    json_decref(b);
    json_decref(c);
}

static void test_numbers_are_found_by_dotted_paths(void **state)
{
    json_t *entry = json_loads("{\"train_s\": 2, \"eval\": {\"f1\": 88.5, \"a.b\": 1}, \"x.y\": 3,"
                               " \"epoch_s\": [3, 1, 2], \"bad_s\": [1, \"2\"], \"none_s\": [],"
                               " \"text\": \"5\", \"null_s\": null}",
                               0, NULL);
    static const char *const paths[] = { "train_s", "eval.f1",    "eval.a.b",  "x.y",
                                         "epoch_s", "bad_s",      "none_s",    "text",
                                         "null_s",  "eval",       "eval.f1.x", "absent",
                                         "a.b",     "absent.none" };
    struct hg_store store = { 0 };
    const struct hg_result result = { .entry = entry },
                           packed = { .pack = hg_pack_make(&store, entry) };

    (void)state;
    assert_true(hg_result_number(&result, "train_s") == 2);
    assert_true(hg_result_number(&result, "eval.f1") == 88.5);
    assert_true(hg_result_number(&result, "eval.a.b") == 1);
    assert_true(hg_result_number(&result, "x.y") == 3);
    assert_true(hg_result_number(&result, "epoch_s") == 2); /* the median of a list */
    assert_true(isnan(hg_result_number(&result, "bad_s")));
    assert_true(isnan(hg_result_number(&result, "none_s")));
    assert_true(isnan(hg_result_number(&result, "text")));
    assert_true(isnan(hg_result_number(&result, "null_s")));
    assert_true(isnan(hg_result_number(&result, "eval")));
    assert_true(isnan(hg_result_number(&result, "eval.f1.x")));
    for (size_t i = 0; i < N_OF(paths); i++) { /* packed it says the same */
        double a = hg_result_number(&result, paths[i]), b = hg_result_number(&packed, paths[i]);

        assert_true(a == b || (isnan(a) && isnan(b)));
    }
    free(packed.pack.scalars);
    hg_store_done(&store);
    json_decref(entry);
}

static void test_metrics_are_told_apart_by_their_names(void **state)
{
    static const struct {
        const char *name;
        bool time, rate;
    } cases[] = {
        { "train_s", true, false },       { "step_s.median", true, false },
        { "samples_per_s", false, true }, { "samples_per_s.p95", false, true },
        { "final_loss", false, false },   { "eval.f1", false, false },
        { "_s", false, false },           { "energy_j", false, false },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        assert_int_equal(hg_metric_is_time(cases[i].name), cases[i].time);
        assert_int_equal(hg_metric_is_rate(cases[i].name), cases[i].rate);
    }
}

static void test_devices_are_gpus_or_cores(void **state)
{
    static const struct {
        const char *cell;
        double devices;
        bool on_cores;
    } cases[] = {
        { "{\"nodes\": 2, \"gpus_per_node\": 4}", 8, false },
        { "{\"nodes\": 2, \"gpus_per_node\": 4, \"tasks_per_node\": 1}", 8, false },
        { "{\"nodes\": 2, \"gpus_per_node\": 0, \"tasks_per_node\": 3, \"cpus_per_task\": 4}", 24,
          true },
        { "{\"nodes\": 2, \"gpus_per_node\": 0}", 2, true },
        { "{\"tasks_per_node\": 3}", 3, true },
        { "{\"nodes\": 5}", 5, false },
        { "{\"gpus_per_node\": 2}", 2, false },
        { "{\"strategy\": \"ddp\"}", NAN, false },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_json_doc doc = HG_JSON_DOC_INIT;
        struct hg_results set = HG_RESULTS_INIT;
        struct hg_errs errs = HG_ERRS_INIT;
        char text[512];
        int n = snprintf(text, sizeof text,
                         "{\"schema\": \"hpcgrid-results/1\", \"results\": [{\"cell\": %s}]}",
                         cases[i].cell);

        assert_int_equal(hg_json_parse("x", text, (size_t)n, &doc, NULL), 0);
        assert_int_equal(hg_results_decode(&doc, 0, &set, &errs), 0);
        if (isnan(cases[i].devices))
            assert_true(isnan(set.items[0].devices));
        else
            assert_true(set.items[0].devices == cases[i].devices);
        assert_int_equal(set.items[0].on_cores, cases[i].on_cores);
        hg_results_done(&set);
        hg_errs_done(&errs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_map_keeps_what_was_put_first),
        cmocka_unit_test(test_cells_are_compared_by_value),
        cmocka_unit_test(test_numbers_are_found_by_dotted_paths),
        cmocka_unit_test(test_metrics_are_told_apart_by_their_names),
        cmocka_unit_test(test_devices_are_gpus_or_cores),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
