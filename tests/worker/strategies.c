/* SPDX-License-Identifier: Apache-2.0 */
/* Every strategy against single on the same samples, against each other, and against what its definition says it sends and stores:
 * on 1, 2, 3, 4 and 8 ranks, which are threads of this process. */
#include "cells.h"
#include "team.h"

#include "train/checkpoint.h"

enum { STEPS = 20, BATCH = 24 /* of all ranks: every number of ranks divides it */ };

static const int worlds[] = { 1, 2, 3, 4, 8 };

/* A strategy and options that cut the small model in several pieces. */
static const struct how {
    const char *strategy, *options;
} hows[] = {
    { "ddp", "" },
    { "dp", "" },
    { "ddp", ", \"bucket_cap_mb\": 0.01, \"first_bucket_mb\": 0.002" },
    { "ddp", ", \"variant\": \"framework\"" },
    { "fsdp", "" },
    { "fsdp", ", \"variant\": \"framework\"" },
    { "fsdp", ", \"reshard_after_forward\": false" },
    { "fsdp", ", \"backward_prefetch\": false" },
    { "deepspeed", "" },
    { "deepspeed", ", \"reduce_bucket\": 900" },
    { "deepspeed", ", \"variant\": \"framework\", \"reduce_bucket\": 2500" },
    { "deepspeed_stage_1", ", \"reduce_bucket\": 900" },
    { "deepspeed_stage_1", ", \"variant\": \"framework\", \"reduce_bucket\": 2500" },
    { "deepspeed_stage_2", ", \"zero_reduce\": \"allreduce\"" },
    { "deepspeed_stage_3", "" },
    { "deepspeed_stage_3", ", \"variant\": \"framework\", \"persistence_threshold\": 40" },
    { "deepspeed_stage_3",
      ", \"max_live\": 3000, \"max_reuse_distance\": 4000, \"prefetch_elems\": 1000" },
    { "deepspeed_stage_3", ", \"prefetch_elems\": 0, \"zero_reduce\": \"allreduce\"" },
};

static const char bert[] =
    "\"model\": \"bert-tiny\", \"hidden\": 16, \"heads\": 2, \"layers\": 2, \"intermediate\": 32, \"vocab_size\": 200, "
    "\"positions\": 32, \"dataset\": \"synthetic\", \"seq_len\": 24, \"lr\": 1e-3, \"test_samples\": 13";
static const char rnn[] =
    "\"model\": \"rnn\", \"lr\": 0.5, \"test_samples\": 13, \"test_batch\": 3";

/* ---- One training ---- */

struct training {
    struct wk_config config;
    struct wk_result results[8];
};

static int train(struct wk_comm *comm, void *context, struct hg_err *err)
{
    struct training *t = context;

    return wk_train_all(&t->config, comm, 1, &t->results[comm->rank], err);
}

/* The next three steps, from a checkpoint and into one. */
static int train_three_steps(struct wk_comm *comm, void *context, struct hg_err *err)
{
    struct training *all = context;
    struct wk_train t;
    int rc = -1;

    if (wk_train_open(&t, &all->config, comm, 1, &all->results[comm->rank], err) == 0) {
        long total = t.total_steps;

        t.total_steps = t.steps_done + 3;
        rc = wk_train_run(&t, err);
        t.total_steps = total;
        t.collected = (int)t.steps_done; /* in the middle of an epoch */
        if (rc == 0)
            rc = wk_checkpoint_save(&t, 0, 0, err);
    }
    wk_train_close(&t);
    return rc;
}

static void configure(struct training *t, int world, const char *what, const char *strategy,
                      const char *options, int accumulate)
{
    int batch = accumulate > 1 ? 2 * BATCH : BATCH;
    char text[800];

    *t = (struct training){ 0 };
    snprintf(
        text, sizeof text,
        "{%s, \"strategy\": \"%s\", \"batch_size\": %d, \"accumulate\": %d, \"samples\": %d, \"steps\": %d%s}",
        what, strategy, batch / world / accumulate, accumulate, STEPS * batch, STEPS, options);
    cell_load(&t->config, text);
}

static void run(struct training *t, int world, const char *what, const char *strategy,
                const char *options, int accumulate)
{
    configure(t, world, what, strategy, options, accumulate);
    team_run(world, train, t);
    assert_int_equal(t->results[0].step_loss.n, STEPS);
}

static void done(struct training *t)
{
    for (int i = 0; i < 8; i++)
        wk_result_done(&t->results[i]);
    wk_config_done(&t->config);
}

static double apart(const struct training *a, const struct training *b)
{
    return losses_apart(&a->results[0], &b->results[0]);
}

/* What every rank sent and stored is what the definition says, to the byte. */
static void hold(const struct training *t, int world, const struct how *how)
{
    for (int rank = 0; rank < world; rank++) {
        const struct wk_result *r = &t->results[rank];
        const struct wk_expected *e = &r->expected;

        for (int c = 0; c < WK_COLLS; c++) {
            const struct wk_comm_count *found = &r->counts[WK_PLANE_TRAIN][c];

            if ((double)found->calls != e->calls[c] ||
                (double)found->payload_bytes != e->payload_bytes[c] ||
                fabs(found->ring_bytes - e->ring_bytes[c]) > 1e-6 * (1 + e->ring_bytes[c]))
                fail_msg("%s%s, rank %d of %d: %s %g calls, %g bytes; expected %g, %g",
                         how->strategy, how->options, rank, world, wk_coll_names[c],
                         (double)found->calls, (double)found->payload_bytes, e->calls[c],
                         e->payload_bytes[c]);
        }
        for (int m = 0; m < WK_MEM_CLASSES; m++)
            if (e->mem_bytes[m] >= 0 && (double)r->ranks[rank].mem_bytes[m] != e->mem_bytes[m])
                fail_msg("%s%s, rank %d of %d: %s %g bytes, expected %g", how->strategy,
                         how->options, rank, world, wk_mem_names[m],
                         (double)r->ranks[rank].mem_bytes[m], e->mem_bytes[m]);
    }
}

/* ---- Losses ---- */

/* Must it give ddp's bits? dp divides the loss by N, the others the gradients: the same only where N is a power of two. Of several passes, ddp
 * and stage 1 add up each rank's gradients and send the sum; the others send those of every pass. */
static bool is_exact(const struct how *how, int world, int accumulate)
{
    if (accumulate > 1)
        return strcmp(how->strategy, "ddp") == 0 || strcmp(how->strategy, "deepspeed_stage_1") == 0;
    return strcmp(how->strategy, "dp") != 0 || (world & (world - 1)) == 0;
}

static void follow_single(const int *all, size_t n_all, const char *more, int accumulate, bool bits)
{
    struct training single, first, other;
    double worst = 0;

    run(&single, 1, bert, "single", more, accumulate);
    for (size_t n = 0; n < n_all; n++)
        for (size_t i = 0; i < N_OF(hows); i++) {
            char options[300];

            snprintf(options, sizeof options, "%s%s", hows[i].options, more);
            run(i ? &other : &first, all[n], bert, hows[i].strategy, options, accumulate);
            hold(i ? &other : &first, all[n], &hows[i]);
            worst = fmax(worst, apart(i ? &other : &first, &single));
            if (i && bits && is_exact(&hows[i], all[n], accumulate) && apart(&other, &first) > 0)
                fail_msg("%s%s on %d ranks is not ddp bit by bit: %g", hows[i].strategy,
                         hows[i].options, all[n], apart(&other, &first));
            if (i)
                done(&other);
            if (i + 1 == N_OF(hows))
                done(&first);
        }
    print_message("worst of %zu trainings: %.2g\n", n_all * N_OF(hows), worst);
    assert_true(worst < PICK(1e-12, 1e-5));
    done(&single);
}

static void test_every_strategy_follows_single_and_equals_the_others(void **state)
{
    (void)state;
    follow_single(worlds, N_OF(worlds), "", 1, true);
}

static void test_clipped_gradients_follow_single(void **state)
{
    (void)state;
    follow_single((const int[]){ 1, 3 }, 2, ", \"clip_norm\": 0.5, \"decay\": \"weights\"", 1,
                  false);
}

static void test_accumulated_gradients_follow_single(void **state)
{
    (void)state;
    follow_single((const int[]){ 2 }, 1, "", 2, true);
}

/* Statistics of BatchNorm are a rank's own: N ranks train another model than one, all strategies the same one. */
static void test_the_rnn_is_the_same_in_every_strategy(void **state)
{
    (void)state;
    for (size_t n = 0; n < N_OF(worlds); n++) {
        struct training first, other;

        run(&first, worlds[n], rnn, "ddp", "", 1);
        for (size_t i = 0; i < N_OF(hows); i++) {
            run(&other, worlds[n], rnn, hows[i].strategy, hows[i].options, 1);
            hold(&other, worlds[n], &hows[i]);
            if (is_exact(&hows[i], worlds[n], 1) && apart(&other, &first) > 0)
                fail_msg("%s%s on %d ranks is not ddp bit by bit: %g", hows[i].strategy,
                         hows[i].options, worlds[n], apart(&other, &first));
            done(&other);
        }
        if (worlds[n] > 1) {
            run(&other, 1, rnn, "single", "", 1);
            assert_true(apart(&first, &other) > 1e-3);
            done(&other);
        }
        done(&first);
    }
}

/* Statistics over all ranks' rows make it the same model again. */
static void test_shared_statistics_follow_single(void **state)
{
    struct training single, t;
    double worst = 0;

    (void)state;
    run(&single, 1, rnn, "single", "", 1);
    for (size_t n = 0; n < N_OF(worlds); n++)
        for (size_t i = 0; i < N_OF(hows); i++) {
            char options[300];

            if (strcmp(hows[i].strategy, "dp") == 0)
                continue; /* has no such option */
            snprintf(options, sizeof options, "%s, \"sync_batchnorm\": true", hows[i].options);
            run(&t, worlds[n], rnn, hows[i].strategy, options, 1);
            hold(&t, worlds[n], &hows[i]);
            worst = fmax(worst, apart(&t, &single));
            done(&t);
        }
    print_message("worst: %.2g\n", worst);
    assert_true(worst < PICK(1e-12, 1e-5));
    done(&single);
}

/* What is gathered are 16-bit copies, what is updated are whole values: still the same bits everywhere. */
static void test_mixed_precision_is_the_same_in_every_strategy(void **state)
{
    static const char *const precisions[] = { "bf16", "fp16" };

    (void)state;
    if (sizeof(wk_real) == sizeof(double))
        return; /* copies of doubles prove nothing more */
    for (size_t k = 0; k < N_OF(precisions); k++)
        for (int world = 2; world <= 3; world++) {
            struct training first, other;
            char options[300];

            for (size_t i = 0; i < N_OF(hows); i++) {
                snprintf(options, sizeof options, "%s, \"precision\": \"%s\"", hows[i].options,
                         precisions[k]);
                run(i ? &other : &first, world, bert, hows[i].strategy, options, 1);
                hold(i ? &other : &first, world, &hows[i]);
                /* halving a loss in fp16 rounds what is tiny: dp only has to be near */
                if (i && strcmp(hows[i].strategy, "dp") == 0)
                    assert_true(apart(&other, &first) < 1e-4);
                else if (i && apart(&other, &first) > 0)
                    fail_msg("%s%s on %d ranks in %s is not ddp bit by bit: %g", hows[i].strategy,
                             hows[i].options, world, precisions[k], apart(&other, &first));
                if (i)
                    done(&other);
            }
            done(&first);
        }
}

/* Rounded gradients go their own way, but not far. */
static void test_bf16_gradients_stay_near(void **state)
{
    const struct how how = { "ddp", ", \"bf16_gradients\": true" };

    (void)state;
    for (size_t n = 0; n < N_OF(worlds); n++) {
        struct training exact, rounded;

        run(&exact, worlds[n], bert, "ddp", "", 1);
        run(&rounded, worlds[n], bert, how.strategy, how.options, 1);
        hold(&rounded, worlds[n], &how);
        assert_true(apart(&rounded, &exact) > 0);
        assert_true(apart(&rounded, &exact) < 1e-2);
        done(&rounded);
        done(&exact);
    }
}

/* A checkpoint is whole parameters: another number of ranks and another strategy go on from it. */
static void test_checkpoints_load_on_other_ranks_in_other_strategies(void **state)
{
    static const struct {
        int world;
        const struct how how;
    } stages[] = {
        { 3, { "fsdp", "" } },
        { 8, { "deepspeed_stage_3", "" } },
        { 1, { "single", "" } },
        { 2, { "deepspeed", ", \"variant\": \"framework\", \"reduce_bucket\": 2500" } },
        { 4, { "dp", "" } },
        { 4, { "deepspeed_stage_1", ", \"reduce_bucket\": 900" } },
    };
    struct training whole, t;
    char file[64], options[300];

    (void)state;
    snprintf(file, sizeof file, "%s.safetensors", cell_path);
    remove(file);
    run(&whole, 1, bert, "single", ", \"schedule\": \"constant\"", 1);
    for (size_t i = 0; i < N_OF(stages); i++) {
        snprintf(options, sizeof options, "%s, \"schedule\": \"constant\", \"checkpoint\": \"%s\"",
                 stages[i].how.options, file);
        configure(&t, stages[i].world, bert, stages[i].how.strategy, options, 1);
        team_run(stages[i].world, train_three_steps, &t);
        for (int step = 0; step < 3 * ((int)i + 1); step++)
            assert_true(
                fabs(t.results[0].step_loss.items[step] / whole.results[0].step_loss.items[step] -
                     1) < PICK(1e-12, 1e-5));
        assert_int_equal(t.results[0].step_loss.n, 3 * (i + 1));
        done(&t);
    }
    remove(file);
    done(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_strategy_follows_single_and_equals_the_others),
        cmocka_unit_test(test_clipped_gradients_follow_single),
        cmocka_unit_test(test_accumulated_gradients_follow_single),
        cmocka_unit_test(test_the_rnn_is_the_same_in_every_strategy),
        cmocka_unit_test(test_shared_statistics_follow_single),
        cmocka_unit_test(test_mixed_precision_is_the_same_in_every_strategy),
        cmocka_unit_test(test_bf16_gradients_stay_near),
        cmocka_unit_test(test_checkpoints_load_on_other_ranks_in_other_strategies),
    };

    setenv("HPCGRID_LOG", "warn", 1);
    return cmocka_run_group_tests(tests, cell_make_file, cell_remove_file);
}
