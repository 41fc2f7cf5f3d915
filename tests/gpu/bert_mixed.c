/* SPDX-License-Identifier: Apache-2.0 */
/* A small BERT with dropout, trained in every precision on the emulated GPU: masters, copies, loss scale and the kernels together. The
 * losses of bf16, fp16 and tf32 follow those of fp32, and every precision gives the same bits twice, with threads in another order. */
#include "../worker/bert.h"
#include "backends/cuda/gemm.h"

void emu_seed(uint64_t seed);

enum { STEPS = 3, ROWS = 3, TOKENS = 70 };

static const struct wk_model_size sizes = {
    .layers = 1, .hidden = 64, .heads = 2, .intermediate = 96, .vocab_size = 100, .positions = 64
};
static const int lengths[ROWS] = { 7, 40, 23 };

struct training {
    struct bert_rig r; /* dev, kind, model, tokens, pass, loss; params are the strategy's */
    struct wk_comm *comm;
    struct wk_optim optim;
    struct wk_strategy *strategy;
    size_t reserved_bytes; /* of workspace, as a training would: here every op takes its own */
};

static void open_training(struct training *t, enum wk_precision precision)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_model_options options = { .batch_rows = ROWS, .dropout = true };
    struct wk_strategy_options none = { 0 };
    struct wk_calls calls = { 0 };
    struct bert_rig *r = &t->r;

    *t = (struct training){ .comm = wk_comm_self.open(&err) };
    r->dev = open_cpu_in(precision, 1);
    options.batch_tokens = wk_dev_rows(r->dev, TOKENS);
    options.longest = wk_dev_rows(r->dev, 40);
    r->kind = options.kind = wk_model_make("bert-tiny", &sizes, &err);
    t->optim = (struct wk_optim){ .kind = wk_optim_get("adamw", &err),
                                  .beta1 = 0.9,
                                  .beta2 = 0.999,
                                  .eps = 1e-6,
                                  .weight_decay = 0.01,
                                  .clip_norm = 1 };
    if (!r->kind || wk_token_batch_open(&r->tokens, ROWS, TOKENS, r->dev, &err) < 0 ||
        !(r->model = r->kind->open(r->dev, &options, &err)) ||
        !(t->strategy = wk_strategy_open(wk_strategy_get("single", 1, &err), r->dev, t->comm,
                                         r->kind, &t->optim, &none, 5, &err)) ||
        wk_strategy_start(t->strategy, &err) < 0)
        fail_msg("%s", err.text);
    calls.squares = wk_model_n(r->kind);
    r->kind->calls(&options, &calls);
    t->reserved_bytes = r->dev->backend->workspace(r->dev, &calls) - WK_GEMM_WORKSPACE;
    r->loss = tensor(r->dev, 1);
    r->pass = (struct wk_pass){ .dev = r->dev,
                                .params = t->strategy->params,
                                .training = true,
                                .seed = 7,
                                .hooks = &t->strategy->hooks };
    if (precision == WK_MIXED_FP16)
        r->pass.loss_scale = wk_span_part(t->strategy->control, WK_CONTROL_LOSS_SCALE, 1);
}

static void close_training(struct training *t)
{
    struct bert_rig *r = &t->r;

    wk_strategy_close(t->strategy);
    drop(r->dev, r->loss);
    r->kind->close(r->model);
    wk_token_batch_close(&r->tokens, r->dev);
    wk_model_free(r->kind);
    r->dev->backend->close(r->dev);
    wk_comm_close(t->comm);
}

/* losses, and the trained values of the last parameter but two (a layer's norm) to compare bits. */
static void train(enum wk_precision precision, double losses[STEPS], wk_real values[64])
{
    struct hg_err err = HG_ERR_INIT;
    struct training t;

    open_training(&t, precision);
    for (int step = 0; step < STEPS; step++) {
        const int32_t keys[ROWS] = { 4 + step, step, 11 + step };

        t.r.pass.step = (uint32_t)step;
        bert_batch(&t.r, lengths, keys, ROWS, 0, (int)sizes.vocab_size);
        assert_int_equal(wk_strategy_begin(t.strategy, true, &err), 0);
        losses[step] = bert_loss_of(&t.r);
        if (t.r.kind->backward(t.r.model, &t.r.pass, &t.r.tokens.batch, &err) < 0 ||
            wk_strategy_update(t.strategy, 1e-3, &err) < 0 ||
            t.r.dev->backend->sync(t.r.dev, &err) < 0)
            fail_msg("%s", err.text);
    }
    memcpy(values, t.strategy->masters[t.r.kind->n_params - 3].data, 64 * sizeof *values);
    assert_true(((wk_real *)t.strategy->control.data)[WK_CONTROL_SKIPPED] == 0);
    assert_true(t.r.dev->peak_bytes[WK_MEM_WORKSPACE] >= 1);
    assert_true(t.r.dev->peak_bytes[WK_MEM_WORKSPACE] <= t.reserved_bytes);
    close_training(&t);
}

static void test_all_precisions_follow_fp32(void **state)
{
    static const double bounds[WK_PRECISIONS] = { 0, 2e-3, 2e-2, 3e-3 };
    double full[STEPS], losses[STEPS];
    wk_real values[64], full_values[64];

    (void)state;
    emu_seed(1);
    train(WK_FULL, full, full_values);
    for (int p = WK_TF32; p < WK_PRECISIONS; p++) {
        train((enum wk_precision)p, losses, values);
        for (int i = 0; i < STEPS; i++) {
            print_message("%s step %d: %.9f, in fp32 %.9f\n",
                          wk_precision_name((enum wk_precision)p), i, losses[i], full[i]);
            assert_true(fabs(losses[i] - full[i]) < bounds[p]);
        }
        /* it was another precision; losses can be the same bits in tf32 */
        assert_memory_not_equal(values, full_values, sizeof values);
    }
}

static void test_every_precision_gives_the_same_bits_twice(void **state)
{
    double losses[STEPS], again[STEPS];
    wk_real values[64], others[64];

    (void)state;
    for (int p = WK_FULL; p < WK_PRECISIONS; p++) {
        emu_seed(2);
        train((enum wk_precision)p, losses, values);
        emu_seed(3);
        train((enum wk_precision)p, again, others);
        assert_memory_equal(losses, again, sizeof losses);
        assert_memory_equal(values, others, sizeof values);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_precisions_follow_fp32),
        cmocka_unit_test(test_every_precision_gives_the_same_bits_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
