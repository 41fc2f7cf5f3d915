/* SPDX-License-Identifier: Apache-2.0 */
/* Which cells are the same training, and which have a checkpoint's file of a folder in common: what is in force counts, not what was
 * written out. */
#include "cells.h"
#include "train/identity.h"

#define BERT                                                                                       \
    "\"model\": \"bert-tiny\", \"hidden\": 16, \"layers\": 2, \"heads\": 2, \"vocab_size\": 300, " \
    "\"dataset\": \"synthetic\", \"samples\": 24, \"test_samples\": 4, \"seq_len\": 48"
#define RNN "\"samples\": 128, \"test_samples\": 64"
#define SQUAD                                                                                  \
    "\"model\": \"bert-tiny\", \"hidden\": 16, \"dataset\": \"squad-slice\", \"samples\": 4, " \
    "\"test_samples\": 2, \"seq_len\": 96, \"doc_stride\": 32"
#define DATA HPCGRID_SOURCE_DIR "/worker/samples/"

static char folder[] = "/tmp/hpcgrid-test-XXXXXX";

struct identity {
    char *file;
    json_t *training;
};

static void identity_done(struct identity *id)
{
    free(id->file);
    json_decref(id->training);
}

/* The cell with a checkpoint in the folder, or at this place in it. */
static const char *place = "";

static void load(struct wk_config *c, const char *cell, struct hg_errs *errs)
{
    char text[2048];

    snprintf(text, sizeof text, "{%s, \"checkpoint\": \"%s%s\"}", cell, folder, place);
    assert_int_equal(hg_fs_replace(cell_path, text, strlen(text), 0600, NULL), 0);
    wk_config_load(cell_path, c, errs);
}

/* False when the cell is refused. */
static bool identify(const char *cell, struct identity *id)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_errs errs = HG_ERRS_INIT;
    struct wk_comm *comm = wk_comm_self.open(&err);
    struct wk_config config;
    struct wk_result result = { 0 };
    struct wk_train t = { 0 };
    bool taken;

    load(&config, cell, &errs);
    taken = errs.n == 0;
    if (taken && wk_train_open(&t, &config, comm, 1, &result, &err) < 0)
        fail_msg("%s: %s", cell, err.text);
    if (taken)
        *id = (struct identity){ strdup(t.checkpoint), wk_identity_training(&t) };
    wk_train_close(&t);
    wk_result_done(&result);
    wk_config_done(&config);
    wk_comm_close(comm);
    hg_errs_done(&errs);
    return taken;
}

static void must_identify(const char *cell, struct identity *id)
{
    if (!identify(cell, id))
        fail_msg("%s is refused", cell);
}

/* Every parameter of a cell written out with the value that it has anyway. Returns how many there are. */
static int write_out_each(const char *cell)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct identity plain, written;
    struct wk_config config;
    json_t *all, *value;
    const char *key;
    int n = 0;

    must_identify(cell, &plain);
    load(&config, cell, &errs);
    all = wk_config_encode(&config);
    json_object_foreach(all, key, value) {
        struct hg_buf text = HG_BUF_INIT;

        hg_buf_printf(&text, "%s, \"%s\": ", cell, key);
        hg_json_dump(value, HG_JSON_COMPACT, &text);
        if (!json_object_get(config.given, key) && identify(hg_buf_str(&text), &written)) {
            if (!hg_json_equal(plain.training, written.training))
                fail_msg("%s: another training", hg_buf_str(&text));
            if (strcmp(plain.file, written.file) != 0)
                fail_msg("%s: another file", hg_buf_str(&text));
            identity_done(&written);
            n++;
        }
        hg_buf_done(&text);
    }
    json_decref(all);
    identity_done(&plain);
    wk_config_done(&config);
    return n;
}

static void test_a_default_that_is_written_out_changes_nothing(void **state)
{
    static const struct {
        const char *cell;
        int least; /* parameters that can be written out */
    } cases[] = {
        { RNN, 30 },
        { RNN ", \"strategy\": \"ddp\", \"variant\": \"framework\"", 35 },
        { BERT, 35 },
        { BERT ", \"strategy\": \"ddp\"", 40 },
        { BERT ", \"strategy\": \"fsdp\", \"variant\": \"framework\"", 40 },
        { BERT ", \"strategy\": \"deepspeed\"", 40 },
        { BERT ", \"strategy\": \"deepspeed_stage_3\", \"variant\": \"framework\"", 40 },
        { BERT ", \"strategy\": \"dp\"", 35 },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        int n = write_out_each(cases[i].cell);

        print_message("%s: %d\n", cases[i].cell, n);
        assert_true(n >= cases[i].least);
    }
}

static void test_what_is_learned_makes_a_training_and_the_whole_cell_its_file(void **state)
{
    static const struct {
        const char *a, *b;
        bool training, file; /* is it the same? */
    } cases[] = {
        { RNN, RNN ", \"epochs\": 1, \"steps\": 2", true, true },
        { RNN, RNN ", \"steps\": 7, \"epochs\": 1", true, true },
        { RNN, "\"samples\": 128, \"test_samples\": 64, \"dataset\": \"mnist-slice\"", true, true },
        { "\"eval\": true", "\"samples\": 4000, \"test_samples\": 1000", true, true },
        { RNN, RNN ", \"_note\": 1, \"time\": \"1:00:00\", \"mem\": \"4G\"", true, true },
        { RNN, "\"samples\": 128, \"test_samples\": 63", true, false },
        { RNN, RNN ", \"eval\": false", true, false },
        { RNN, RNN ", \"test_batch\": 9, \"checkpoint_every\": 2", true, false },
        { RNN, RNN ", \"cpus_per_task\": 1", true, false },
        { RNN, RNN ", \"repeat\": 2", true, false },
        { RNN, RNN ", \"trace\": true, \"trace_skip\": 1", true, false },
        { RNN, RNN ", \"stop_on_nan\": true, \"tensorboard\": true", true, false },
        { RNN, RNN ", \"strategy\": \"ddp\"", true, false },
        { RNN, RNN ", \"seed\": 2", false, false },
        { RNN, RNN ", \"lr\": 0.2", false, false },
        { RNN, RNN ", \"epochs\": 2", false, false },
        { RNN, RNN ", \"steps\": 1", false, false },
        { RNN, "\"samples\": 127, \"test_samples\": 64", false, false },
        { RNN, RNN ", \"dropout\": false", false, false },
        /* a rank's batch shows in batch statistics; without these only the step's counts */
        { RNN, RNN ", \"batch_size\": 32, \"accumulate\": 2", false, false },
        { BERT, BERT ", \"batch_size\": 4, \"accumulate\": 2", true, false },
        { BERT, BERT ", \"batch_size\": 4", false, false },
        { BERT, BERT ", \"intermediate\": 64, \"positions\": 512", true, true },
        { BERT, BERT ", \"positions\": 64", false, false },
        { BERT, BERT ", \"gelu\": \"tanh\"", false, false },
        { BERT, BERT ", \"padding\": \"max_length\"", false, false },
        { BERT, BERT ", \"cache\": \"/tmp\"", true, true },
        { BERT ", \"strategy\": \"fsdp\"",
          BERT ", \"strategy\": \"fsdp\", \"fsdp_wrap\": \"model\"", true, false },
        { BERT ", \"strategy\": \"ddp\"", BERT ", \"strategy\": \"ddp\", \"bf16_gradients\": true",
          false, false },
        { RNN ", \"strategy\": \"ddp\"", RNN ", \"strategy\": \"ddp\", \"sync_batchnorm\": true",
          false, false },
        { BERT ", \"strategy\": \"ddp\"", BERT ", \"strategy\": \"ddp\", \"comm_timeout\": 9", true,
          false },
        { BERT ", \"strategy\": \"ddp\"", BERT ", \"strategy\": \"ddp\", \"balance\": false", true,
          false },
        { RNN, RNN ", \"data\": \"" DATA "mnist\"", true, true },
        { RNN, RNN ", \"sbatch\": [\"--exclusive\"]", true, true },
        { RNN, RNN ", \"tasks_per_node\": 1", true, true },
        { BERT ", \"strategy\": \"dp\"", BERT ", \"strategy\": \"dp\", \"dp_devices\": 1", true,
          true },
        { SQUAD, SQUAD ", \"vocab\": \"" DATA "vocab/bert-base-uncased-vocab.txt\"", true, true },
        { SQUAD, SQUAD ", \"predictions\": \"/tmp/answers.json\"", true, true },
        { "\"model\": \"bert-mini\", \"dataset\": \"synthetic\", \"samples\": 8, \"seq_len\": 8",
          "\"model\": \"bert-tiny\", \"dataset\": \"synthetic\", \"samples\": 8, \"seq_len\": 8, "
          "\"layers\": 4, \"hidden\": 256",
          true, false },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct identity a, b;

        must_identify(cases[i].a, &a);
        must_identify(cases[i].b, &b);
        if (hg_json_equal(a.training, b.training) != cases[i].training ||
            (strcmp(a.file, b.file) == 0) != cases[i].file)
            fail_msg("%s, %s", cases[i].a, cases[i].b);
        identity_done(&a);
        identity_done(&b);
    }
}

static void test_where_its_checkpoint_lies_is_no_part_of_a_training(void **state)
{
    struct identity a, b;

    (void)state;
    must_identify(RNN, &a);
    place = "/elsewhere";
    must_identify(RNN, &b);
    place = "";
    assert_true(hg_json_equal(a.training, b.training));
    assert_string_not_equal(a.file, b.file);
    assert_string_equal(strrchr(a.file, '/'), strrchr(b.file, '/'));
    identity_done(&a);
    identity_done(&b);
}

static int make(void **state)
{
    unsetenv("HPCGRID_DATA");
    return mkdtemp(folder) ? cell_make_file(state) : -1;
}

static int clean(void **state)
{
    return hg_fs_remove_tree(folder, NULL) < 0 ? -1 : cell_remove_file(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_default_that_is_written_out_changes_nothing),
        cmocka_unit_test(test_where_its_checkpoint_lies_is_no_part_of_a_training),
        cmocka_unit_test(test_what_is_learned_makes_a_training_and_the_whole_cell_its_file),
    };

    return cmocka_run_group_tests(tests, make, clean);
}
