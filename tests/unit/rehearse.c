/* SPDX-License-Identifier: Apache-2.0 */
/* What a rehearsal makes of cells, sbatch options and sites. */
#include "test.h"

#include <jansson.h>
#include <unistd.h>

#include "base/json.h"
#include "matrix/cell.h"
#include "matrix/rehearse.h"
#include "plan/rehearse.h"

static json_t *rehearsal(bool shrink)
{
    return json_pack("{s:b, s:[]}", "shrink", shrink, "missing");
}

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    assert_non_null(json);
    return json;
}

static void assert_json(const json_t *found, const char *expected)
{
    json_t *wanted = parse(expected);
    char *text = json_dumps(found, JSON_SORT_KEYS | JSON_ENCODE_ANY);
    char *other = json_dumps(wanted, JSON_SORT_KEYS | JSON_ENCODE_ANY);

    assert_string_equal(text, other);
    free(text);
    free(other);
    json_decref(wanted);
}

static void test_a_cell_keeps_its_shape_and_becomes_tiny(void **state)
{
    static const struct {
        bool shrink;
        const char *cell, *tiny, *missing;
    } cases[] = {
        { true, "{\"model\": \"rnn\", \"epochs\": 14, \"batch_size\": 64, \"backend\": \"cuda\"}",
          "{\"model\": \"rnn\", \"epochs\": 1, \"batch_size\": 2, \"backend\": \"cpu\", \"steps\": 2,"
          " \"samples\": 4, \"test_samples\": 8, \"test_batch\": 8, \"dataset\": \"mnist-slice\"}",
          "[\"dataset mnist (mnist-slice instead)\"]" },
        { true,
          "{\"model\": \"bert-base\", \"strategy\": \"ddp\", \"nodes\": 2, \"tasks_per_node\": 2,"
          " \"dataset\": \"squad-v2.0\", \"null_threshold\": 1, \"seq_len\": 384, \"batch_size\": 1,"
          " \"precision\": \"tf32\", \"data\": \"/d\", \"checkpoint\": \"run/c.safetensors\","
          " \"bucket_cap_mb\": 5, \"layers\": 1}",
          "{\"model\": \"bert-base\", \"strategy\": \"ddp\", \"nodes\": 2, \"tasks_per_node\": 2,"
          " \"dataset\": \"squad-slice\", \"seq_len\": 128, \"doc_stride\": 32, \"batch_size\": 1,"
          " \"precision\": \"fp32\", \"checkpoint\": \"/at/c.safetensors\", \"bucket_cap_mb\": 5,"
          " \"layers\": 1, \"hidden\": 32, \"heads\": 2, \"intermediate\": 64, \"backend\": \"cpu\","
          " \"steps\": 2, \"samples\": 8, \"test_samples\": 8, \"test_batch\": 8}",
          "[\"precision tf32 (fp32 instead)\", \"data /d\","
          " \"dataset squad-v2.0 (squad-slice instead)\","
          " \"checkpoint run/c.safetensors (in the attempt's folder instead)\"]" },
        { true, /* more devices than the slice has questions for */
          "{\"model\": \"bert-large\", \"strategy\": \"dp\", \"gpus_per_node\": 16, \"trace\": true,"
          " \"trace_wait\": 9, \"accumulate\": 8, \"predictions\": \"p.json\", \"seq_len\": 64}",
          "{\"model\": \"bert-large\", \"strategy\": \"dp\", \"gpus_per_node\": 16, \"trace\": true,"
          " \"trace_skip\": 0, \"trace_wait\": 0, \"trace_warmup\": 0, \"trace_active\": 1,"
          " \"trace_repeat\": 1, \"accumulate\": 2, \"seq_len\": 64, \"dataset\": \"synthetic\","
          " \"vocab_size\": 1000, \"layers\": 2, \"hidden\": 32, \"heads\": 2, \"intermediate\": 64,"
          " \"backend\": \"cpu\", \"batch_size\": 2, \"steps\": 2, \"samples\": 128,"
          " \"test_samples\": 8, \"test_batch\": 8}",
          "[\"dataset squad-v1.1 (synthetic instead)\"]" },
        { false, "{\"model\": \"bert-base\", \"epochs\": 15, \"predictions\": \"a/p.json\"}",
          "{\"model\": \"bert-base\", \"epochs\": 15, \"predictions\": \"/at/p.json\","
          " \"backend\": \"cpu\"}",
          "[\"predictions a/p.json (in the attempt's folder instead)\"]" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        json_t *r = rehearsal(cases[i].shrink), *cell = parse(cases[i].cell);
        json_t *tiny = hg_rehearse_cell(r, cell, "/at");

        assert_json(tiny, cases[i].tiny);
        assert_json(cell, cases[i].cell);
        assert_json(json_object_get(r, "missing"), cases[i].missing);
        json_decref(tiny);
        json_decref(hg_rehearse_cell(r, cell, "/at")); /* what is missing is said once */
        assert_json(json_object_get(r, "missing"), cases[i].missing);
        json_decref(cell);
        json_decref(r);
    }
}

static void test_sbatch_options_of_the_cluster_are_set_aside(void **state)
{
    static const char *const typed[] = { "-x",          "n[1-3]", "--exclusive", "--mail-type=END",
                                         "--begin=now", "--hold", "--wckey=w" };
    struct hg_words options = HG_WORDS_INIT, lost = HG_WORDS_INIT;

    (void)state;
    for (size_t i = 0; i < N_OF(typed); i++)
        hg_words_push(&options, typed[i]);
    hg_rehearse_options(&options, &lost);
    assert_int_equal(options.n, 3);
    assert_string_equal(options.items[0], "--exclusive");
    assert_string_equal(options.items[1], "--mail-type=END");
    assert_string_equal(options.items[2], "--wckey=w");
    assert_int_equal(lost.n, 3);
    assert_string_equal(lost.items[0], "--exclude=n[1-3]");
    assert_string_equal(lost.items[1], "--begin=now");
    assert_string_equal(lost.items[2], "--hold");
    hg_words_done(&options);
    hg_words_done(&lost);
}

static void test_more_ranks_than_memory_or_nodes_than_a_box_are_refused(void **state)
{
    char why[160];

    (void)state;
    hg_rehearse_why(&(struct hg_shape){ .nodes = 1, .tasks_per_node = 1 }, why);
    assert_string_equal(why, "");
    hg_rehearse_why(&(struct hg_shape){ .nodes = 257, .tasks_per_node = 1 }, why);
    assert_non_null(strstr(why, "on 256 nodes, the cell has 257 on 257"));
    hg_rehearse_why(&(struct hg_shape){ .nodes = 100, .tasks_per_node = 1000000 }, why);
    assert_non_null(strstr(why, "the cell has 100000000 on 100"));
}

static int visit_id(const struct hg_cell *cell, void *context)
{
    json_array_append_new(context, json_string(cell->id));
    return 0;
}

static void note_id(json_t *list, const struct hg_matrix *m)
{
    struct hg_errs errs = HG_ERRS_INIT;

    assert_int_equal(hg_cells_walk(m, 0, visit_id, list, NULL, &errs), 0);
    hg_errs_done(&errs);
}

static void test_a_rehearsed_matrix_keeps_its_ids_and_names_what_is_missing(void **state)
{
    static const char text[] =
        "{\"hpcgrid\": 1, \"name\": \"far\", \"site\": {\"name\": \"mare\", \"launcher\": \"mpirun -x A\","
        " \"modules\": [\"cuda/12\", \"nccl\"], \"reservation\": \"class\", \"licenses\": \"gold:1\","
        " \"transport\": \"rest\", \"rest\": {\"url\": \"http://h:1\"}, \"default\": \"h100\","
        " \"container\": [\"apptainer\", \"exec\", \"{{container}}\"], \"account\": \"a\","
        " \"env\": {\"A\": \"1\", \"MASTER_ADDR\": \"{{head}}i\"},"
        " \"hardware\": {\"h100\": {\"gpus_per_node\": 4, \"backend\": \"cuda\"}}},"
        " \"workload\": {\"program\": \"hpcgrid-worker\", \"cwd\": \"/no/such/folder\"},"
        " \"derive\": {\"backend\": \"$hw.backend\"}, \"axes\": {\"lr\": [0.1, 0.2]}}";
    char path[] = "/tmp/hg-rehearse-XXXXXX";
    json_t *before = json_array(), *after = json_array();
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_matrix *m;
    int fd = mkstemp(path);

    (void)state;
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    m = hg_matrix_load(path, NULL, &errs);
    unlink(path);
    assert_non_null(m);
    note_id(before, m);
    hg_matrix_rehearse(m, true);
    note_id(after, m);
    assert_true(json_equal(before, after));
    assert_string_equal(m->name, "far-box");
    assert_string_equal(m->site->name, "mare");
    assert_string_equal(m->site->launcher, "srun --mpi=pmix");
    assert_null(m->site->modules);
    assert_null(m->site->rest.url);
    assert_json(json_object_get(m->site->rehearsal, "missing"),
                "[\"reservation class\", \"licenses gold:1\","
                " \"container apptainer exec {{container}}\", \"modules cuda/12 nccl\","
                " \"launcher mpirun -x A\", \"env MASTER_ADDR={{head}}i\","
                " \"cwd /no/such/folder (the matrix's folder instead)\"]");
    json_object_del(m->site->json, "hardware");
    assert_json(m->site->json, "{\"name\": \"mare\", \"default\": \"h100\", \"account\": \"a\","
                               " \"licenses\": \"core:%\", \"env\": {\"A\": \"1\"}}");
    hg_matrix_free(m);
    json_decref(before);
    json_decref(after);
    hg_errs_done(&errs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cell_keeps_its_shape_and_becomes_tiny),
        cmocka_unit_test(test_sbatch_options_of_the_cluster_are_set_aside),
        cmocka_unit_test(test_more_ranks_than_memory_or_nodes_than_a_box_are_refused),
        cmocka_unit_test(test_a_rehearsed_matrix_keeps_its_ids_and_names_what_is_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
