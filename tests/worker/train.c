/* SPDX-License-Identifier: Apache-2.0 */
/* The training loop from inside. */
#include "cells.h"

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

/* `hpcgrid check` lets a matrix through by these tables: the worker must be able to do what they call built. */
static void test_the_tables_say_what_is_built(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    const struct {
        const char *parameter, *word;
        bool built;
    } words[] = {
#define HG_WORKER_WORD(parameter_, word_, built_) { #parameter_, word_, built_ },
#include "base/worker_words.def"
#undef HG_WORKER_WORD
    };
    int models = 0;

    (void)state;
    for (size_t i = 0; i < N_OF(words); i++) {
        const char *name = words[i].word;
        const struct wk_model_kind *model = NULL;
        bool has = false;

        err = (struct hg_err)HG_ERR_INIT;
        if (strcmp(words[i].parameter, "model") == 0)
            has = (model = wk_model_get(name, &err)), models += has;
        else if (strcmp(words[i].parameter, "dataset") == 0)
            has = wk_qa_known(name) || wk_dataset_known(name, &err);
        else if (strcmp(words[i].parameter, "backend") == 0)
            has = wk_backend_get(name, &err) || err.code == HG_E_ENV; /* not in this build */
        else if (strcmp(words[i].parameter, "optimizer") == 0)
            has = wk_optim_get(name, &err);
        else
            continue;
        wk_model_free(model);
        if (has != words[i].built)
            fail_msg("%s %s: %d in the table, %d in the worker", words[i].parameter, name,
                     words[i].built, has);
    }
    for (const struct wk_model_entry *m = wk_models; m->name; m++)
        models--;
    assert_int_equal(models, 0); /* none is missing in the table */
    for (const struct wk_strategy_limits *s = wk_strategy_limits; s->name; s++)
        assert_int_equal(wk_strategy_get(s->name, 1, &err) != NULL, s->built);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_tables_say_what_is_built),
        cmocka_unit_test(test_a_loss_that_is_no_number_is_null_and_diverged),
        cmocka_unit_test(test_the_rate_falls_by_gamma_each_epoch),
    };

    return cmocka_run_group_tests(tests, cell_make_file, cell_remove_file);
}
