/* SPDX-License-Identifier: Apache-2.0 */
/* The training loop from inside. */
#include "cells.h"
#include "data/synthetic.h"

static void test_a_loss_that_is_no_number_is_null_and_diverged(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_comm *comm = wk_comm_self.open(&err);
    struct wk_config config;
    struct wk_result result = { 0 };
    struct wk_train t;
    json_t *o;

    (void)state;
    cell_load(&config, "{\"samples\": 128, \"epochs\": 2, \"eval\": false}");
    assert_int_equal(wk_train_open(&t, &config, comm, 1, &result, &err), 0);
    ((wk_real *)t.strategy->params[0].value.data)[0] = (wk_real)NAN;
    assert_int_equal(wk_train_run(&t, &err), 0);
    assert_int_equal(wk_train_account(&t, &err), 0);
    o = wk_result_encode(&result);
    assert_true(json_is_true(json_object_get(o, "diverged")));
    assert_true(json_is_null(json_object_get(o, "final_loss")));
    assert_true(
        json_is_null(json_array_get(json_object_get(json_object_get(o, "loss"), "loss"), 0)));
    assert_string_equal(json_string_value(json_object_get(o, "status")), "ok");
    json_decref(o);
    wk_train_close(&t);
    wk_result_done(&result);
    wk_config_done(&config);
    wk_comm_close(comm);
}

/* The rate of an epoch shows in how far its steps go: with gamma 0 the second epoch moves nothing. */
static void test_the_rate_falls_by_gamma_each_epoch(void **state)
{
    static const struct {
        const char *gamma;
        bool moves;
    } cases[] = { { "0", false }, { "0.5", true } };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_err err = HG_ERR_INIT;
        struct wk_comm *comm = wk_comm_self.open(&err);
        struct wk_config config;
        struct wk_result result = { 0 };
        struct wk_train t;
        char text[128];
        double first, second;

        snprintf(
            text, sizeof text,
            "{\"samples\": 64, \"epochs\": 3, \"eval\": false, \"dropout\": false, \"lr\": 1, \"gamma\": %s}",
            cases[i].gamma);
        cell_load(&config, text);
        assert_int_equal(wk_train_open(&t, &config, comm, 1, &result, &err), 0);
        assert_int_equal(wk_train_run(&t, &err), 0);
        first = result.epoch_loss.items[1];
        second = result.epoch_loss.items[2];
        /* One batch of the same samples an epoch: equal losses up to the order of sums. */
        assert_int_equal(fabs(first - second) > 1e-4, cases[i].moves);
        wk_train_close(&t);
        wk_result_done(&result);
        wk_config_done(&config);
        wk_comm_close(comm);
    }
}

/* `hpcgrid check` lets a matrix through by these tables: the worker must have all that they name. */
static bool worker_has(const char *parameter, const char *name)
{
    struct hg_err err = HG_ERR_INIT;
    enum wk_precision precision;
    const struct wk_model_kind *model;

    if (strcmp(parameter, "model") == 0) {
        model = wk_model_get(name, &err);
        wk_model_free(model);
        return model;
    }
    if (strcmp(parameter, "dataset") == 0)
        return wk_qa_known(name) || wk_dataset_known(name, &err);
    if (strcmp(parameter, "backend") == 0)
        return wk_backend_get(name, &err) || err.code == HG_E_ENV; /* not in this build */
    if (strcmp(parameter, "optimizer") == 0)
        return wk_optim_get(name, &err);
    if (strcmp(parameter, "precision") == 0)
        return wk_precision_find(name, &precision, &err) == 0;
    if (strcmp(parameter, "windows") == 0)
        return wk_feature_word(wk_windows_names, name, parameter, &err) >= 0;
    if (strcmp(parameter, "labels") == 0)
        return wk_feature_word(wk_labels_names, name, parameter, &err) >= 0;
    if (strcmp(parameter, "lengths") == 0)
        return wk_feature_word(wk_lengths_names, name, parameter, &err) >= 0;
    return true; /* the worker's own check is by this table */
}

static void test_the_worker_has_what_the_tables_name(void **state)
{
    const struct {
        const char *parameter, *word;
    } words[] = {
#define HG_WORKER_WORD(parameter_, word_) { #parameter_, word_ },
#include "contract/worker_words.def"
#undef HG_WORKER_WORD
    };
    struct hg_err err = HG_ERR_INIT;
    int models = 0;

    (void)state;
    for (size_t i = 0; i < N_OF(words); i++) {
        models += strcmp(words[i].parameter, "model") == 0;
        if (!worker_has(words[i].parameter, words[i].word))
            fail_msg("%s %s: in the table, not in the worker", words[i].parameter, words[i].word);
    }
    for (const struct wk_model_entry *m = wk_models; m->name; m++)
        models--;
    assert_int_equal(models, 0); /* none is missing in the table */
    for (const struct wk_strategy_limits *s = wk_strategy_limits; s->name; s++)
        assert_string_equal(wk_strategy_get(s->name, 1, &err)->name, s->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_worker_has_what_the_tables_name),
        cmocka_unit_test(test_a_loss_that_is_no_number_is_null_and_diverged),
        cmocka_unit_test(test_the_rate_falls_by_gamma_each_epoch),
    };

    return cmocka_run_group_tests(tests, cell_make_file, cell_remove_file);
}
