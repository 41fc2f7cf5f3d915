/* SPDX-License-Identifier: Apache-2.0 */
/* Mixed precision: rounding to 16 bits, and the control of scaled and clipped gradients. */
#include "worker.h"

#include "backends/half.h"

/* ---- Rounding ---- */

static void test_every_16_bit_number_survives(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        float b = wk_bf16_decode((uint16_t)i), f = wk_f16_decode((uint16_t)i);

        if (!isnan(b))
            assert_int_equal(wk_bf16_encode(b), i);
        if (!isnan(f))
            assert_int_equal(wk_f16_encode(f), i);
        assert_true(!isnan(b) || isnan(wk_bf16_decode(wk_bf16_encode(b))));
        assert_true(!isnan(f) || isnan(wk_f16_decode(wk_f16_encode(f))));
    }
}

/* Neighbours meet in the middle, which goes to the even one. */
static void test_rounding_is_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 0x7c00; i++) {
        double low = wk_f16_decode((uint16_t)i), high = wk_f16_decode((uint16_t)(i + 1));
        float middle = (float)((low + (i == 0x7bff ? 65536 : high)) / 2);
        uint32_t even = i % 2 ? i + 1 : i;

        assert_int_equal(wk_f16_encode(middle), even);
        assert_int_equal(wk_f16_encode(nextafterf(middle, 0)), i);
        assert_int_equal(wk_f16_encode(nextafterf(middle, INFINITY)), i + 1);
        assert_int_equal(wk_f16_encode(-middle), even | 0x8000);
    }
    for (uint32_t i = 0; i < 0x7f80; i++) {
        float middle = wk_bits_float(i << 16 | 0x8000);

        assert_int_equal(wk_bf16_encode(middle), i % 2 ? i + 1 : i);
        assert_int_equal(wk_bf16_encode(wk_bits_float(i << 16 | 0x7fff)), i);
        assert_int_equal(wk_bf16_encode(wk_bits_float(i << 16 | 0x8001)), i + 1);
    }
}

static void test_known_numbers(void **state)
{
    static const struct {
        float x;
        uint16_t bf16, f16;
    } cases[] = {
        { 1, 0x3f80, 0x3c00 },        { -2, 0xc000, 0xc000 },       { 65504, 0x4780, 0x7bff },
        { 65520, 0x4780, 0x7c00 },    { 0.1f, 0x3dcd, 0x2e66 },     { 1e-8f, 0x322c, 0 },
        { 0x1p-24f, 0x3380, 0x0001 }, { 0x1p-14f, 0x3880, 0x0400 }, { -0.0f, 0x8000, 0x8000 },
        { INFINITY, 0x7f80, 0x7c00 }, { 3.4e38f, 0x7f80, 0x7c00 },  { 1e-40f, 0x0001, 0 },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        assert_int_equal(wk_bf16_encode(cases[i].x), cases[i].bf16);
        assert_int_equal(wk_f16_encode(cases[i].x), cases[i].f16);
    }
}

static void test_convert_goes_both_ways(void **state)
{
    static const enum wk_type types[] = { WK_BF16, WK_F16, WK_REAL };
    struct hg_err err = HG_ERR_INIT;
    struct wk_dev *dev = open_cpu(2);
    struct wk_span x = tensor_noise(dev, 1000, 1, 3), y = tensor(dev, 1000), half;
    double step[] = { 0x1p-8, 0x1p-11, 0 };

    (void)state;
    for (size_t t = 0; t < N_OF(types); t++) {
        assert_int_equal(wk_dev_alloc(dev, WK_MEM_DATA, types[t], 1000, &half, &err), 0);
        dev->backend->convert(dev, half, x);
        dev->backend->convert(dev, y, half);
        for (int i = 0; i < 1000; i++) {
            double a = (double)((wk_real *)x.data)[i], b = (double)((wk_real *)y.data)[i];

            assert_true(fabs(a - b) <= step[t] * fabs(a) + (t == 2 ? 0 : 0x1p-25));
        }
        wk_dev_free(dev, WK_MEM_DATA, &half);
    }
    drop(dev, x);
    drop(dev, y);
    dev->backend->close(dev);
}

static void test_precisions_have_names(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    enum wk_precision p = WK_FULL;

    (void)state;
    for (int i = 0; i < WK_PRECISIONS; i++) {
        assert_int_equal(wk_precision_find(wk_precision_name((enum wk_precision)i), &p, &err), 0);
        assert_int_equal(p, i);
    }
    assert_int_equal(wk_precision_find("fp8", &p, &err), -1);
    assert_string_equal(err.text, "unknown precision \"fp8\"");
}

/* ---- Control ---- */

struct control {
    struct wk_dev *dev;
    struct wk_span control, sum;
};

static wk_real part(const struct control *c, enum wk_control_part p)
{
    return ((wk_real *)c->control.data)[p];
}

static void set(struct control *c, double square, const struct wk_control *how)
{
    *(wk_real *)c->sum.data = (wk_real)square;
    c->dev->backend->control(c->dev, c->control, c->sum, how);
}

static struct control control_open(double loss_scale)
{
    struct control c = { .dev = open_cpu(1) };

    c.control = tensor(c.dev, WK_CONTROL_N);
    c.sum = tensor(c.dev, 1);
    ((wk_real *)c.control.data)[WK_CONTROL_LOSS_SCALE] = (wk_real)loss_scale;
    return c;
}

static void control_close(struct control *c)
{
    drop(c->dev, c->control);
    drop(c->dev, c->sum);
    c->dev->backend->close(c->dev);
}

static void test_long_gradients_are_clipped_and_short_ones_are_not(void **state)
{
    const struct wk_control how = { .clip_norm = 1 };
    struct control c = control_open(1);

    (void)state;
    set(&c, 16, &how);
    assert_true(fabs((double)part(&c, WK_CONTROL_SCALE) - 0.25) < 1e-6);
    set(&c, 0.25, &how);
    assert_true(part(&c, WK_CONTROL_SCALE) == 1);
    set(&c, NAN, &how);
    assert_true(isnan(part(&c, WK_CONTROL_SCALE)));
    assert_true(part(&c, WK_CONTROL_SKIP) == 0); /* fp32 shows what went wrong */
    control_close(&c);
}

static void test_the_loss_scale_leaves_no_trace_in_the_norm(void **state)
{
    const struct wk_control how = { .clip_norm = 1, .scaled = true, .grow_after = 100 };
    struct control c = control_open(1024);

    (void)state;
    set(&c, 16.0 * 1024 * 1024, &how);
    assert_true(fabs((double)part(&c, WK_CONTROL_SCALE) * 1024 - 0.25) < 1e-6);
    control_close(&c);
}

static void test_the_loss_scale_adapts(void **state)
{
    const struct wk_control how = { .scaled = true, .grow_after = 3 };
    struct control c = control_open(1024);

    (void)state;
    for (int i = 0; i < 2; i++)
        set(&c, 1, &how);
    assert_true(part(&c, WK_CONTROL_LOSS_SCALE) == 1024 && part(&c, WK_CONTROL_GOOD) == 2);
    set(&c, INFINITY, &how);
    assert_true(part(&c, WK_CONTROL_LOSS_SCALE) == 512 && part(&c, WK_CONTROL_GOOD) == 0);
    assert_true(part(&c, WK_CONTROL_SKIP) == 1 && part(&c, WK_CONTROL_SKIPPED) == 1);
    for (int i = 0; i < 3; i++)
        set(&c, 1, &how);
    assert_true(part(&c, WK_CONTROL_LOSS_SCALE) == 1024 && part(&c, WK_CONTROL_SKIP) == 0);
    assert_true(part(&c, WK_CONTROL_SCALE) ==
                1.0f / 512); /* of the pass that was, not of the next */
    for (int i = 0; i < 30; i++)
        set(&c, NAN, &how);
    assert_true(part(&c, WK_CONTROL_LOSS_SCALE) == 1 && part(&c, WK_CONTROL_SKIPPED) == 31);
    for (int i = 0; i < 300; i++)
        set(&c, 0, &how);
    assert_true(part(&c, WK_CONTROL_LOSS_SCALE) == (wk_real)WK_LOSS_SCALE_MOST);
    control_close(&c);
}

static void adamw(struct wk_dev *dev, struct wk_span s[4], struct wk_span control,
                  struct wk_span copy, long step)
{
    const struct wk_adamw how = { .lr = 0.1,
                                  .beta1 = 0.9,
                                  .beta2 = 0.99,
                                  .eps = 1e-8,
                                  .decay = 0.1,
                                  .scale = 1,
                                  .step = step,
                                  .control = control,
                                  .copy = copy };

    dev->backend->adamw(dev, s[0], s[1], s[2], s[3], &how);
}

static void test_a_skipped_update_changes_nothing_and_is_no_step(void **state)
{
    const struct wk_control how = { .scaled = true, .grow_after = 100 };
    struct hg_err err = HG_ERR_INIT;
    struct control c = control_open(8);
    struct wk_span copy, one[4], two[4];

    (void)state;
    assert_int_equal(wk_dev_alloc(c.dev, WK_MEM_DATA, WK_BF16, 50, &copy, &err), 0);
    for (int i = 0; i < 4; i++) {
        one[i] = i < 2 ? tensor_noise(c.dev, 50, (uint32_t)i, 1) : tensor(c.dev, 50);
        two[i] = i < 2 ? tensor_noise(c.dev, 50, (uint32_t)i, 1) : tensor(c.dev, 50);
    }
    c.dev->backend->scale(c.dev, one[1], 8); /* gradients of a scaled loss */
    set(&c, 1, &how);
    adamw(c.dev, one, c.control, copy, 1);
    set(&c, INFINITY, &how);
    adamw(c.dev, one, c.control, copy, 2);
    c.dev->backend->scale(c.dev, one[1], 0.5); /* the scale has halved */
    set(&c, 1, &how);
    adamw(c.dev, one, c.control, copy, 3);
    adamw(c.dev, two, WK_NONE, WK_NONE, 1);
    adamw(c.dev, two, WK_NONE, WK_NONE, 2);
    assert_memory_equal(one[0].data, two[0].data, 50 * sizeof(wk_real));
    for (int i = 0; i < 50; i++)
        assert_int_equal(((uint16_t *)copy.data)[i],
                         wk_bf16_encode((float)((wk_real *)one[0].data)[i]));
    for (int i = 0; i < 4; i++) {
        drop(c.dev, one[i]);
        drop(c.dev, two[i]);
    }
    wk_dev_free(c.dev, WK_MEM_DATA, &copy);
    control_close(&c);
}

/* ---- Training ---- */

static void train_rnn(enum wk_precision precision, double losses[8])
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_comm *comm = wk_comm_self.open(&err);
    struct rig r;

    rig_open_in(&r, precision, "single", comm, 32, true);
    for (uint32_t step = 0; step < 8; step++) {
        struct wk_pass pass = rig_pass(&r, true, 1, step);

        if (precision == WK_MIXED_FP16)
            pass.loss_scale = wk_span_part(r.strategy->control, WK_CONTROL_LOSS_SCALE, 1);
        assert_int_equal(wk_strategy_begin(r.strategy, true, &err), 0);
        losses[step] = rig_forward(&r, &pass, 32 * (int)step, 32);
        assert_int_equal(r.kind->backward(r.model, &pass, &r.batch, &err), 0);
        assert_int_equal(wk_strategy_update(r.strategy, 1, &err), 0);
    }
    rig_close(&r);
    wk_comm_close(comm);
}

static void test_mixed_precision_follows_the_full_one(void **state)
{
    double full[8], mixed[8];

    (void)state;
    train_rnn(WK_FULL, full);
    for (int p = WK_MIXED_BF16; p <= WK_MIXED_FP16; p++) {
        train_rnn((enum wk_precision)p, mixed);
        for (int i = 0; i < 8; i++) {
            print_message("%s step %d: %.5f, in full %.5f\n",
                          wk_precision_name((enum wk_precision)p), i, mixed[i], full[i]);
            assert_true(fabs(mixed[i] - full[i]) < (p == WK_MIXED_FP16 ? 3e-3 : 3e-2));
            assert_true(mixed[i] != full[i]);
        }
    }
}

static void test_masters_copies_and_their_memory(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_comm *comm = wk_comm_self.open(&err);
    struct wk_expected expected;
    struct rig r;

    (void)state;
    rig_open_in(&r, WK_MIXED_BF16, "single", comm, 4, true);
    for (int p = 0; p < r.kind->n_params; p++) {
        struct wk_span master = r.strategy->masters[p], copy = r.strategy->params[p].value;

        assert_int_equal(master.type, WK_REAL);
        assert_int_equal(copy.type, WK_BF16);
        assert_int_equal(r.strategy->params[p].gradient.type, WK_REAL);
        for (size_t i = 0; i < master.n; i++)
            assert_int_equal(((uint16_t *)copy.data)[i],
                             wk_bf16_encode((float)((wk_real *)master.data)[i]));
    }
    wk_strategy_expect(r.strategy, &expected);
    for (int m = 0; m < WK_MEM_CLASSES; m++)
        if (expected.mem_bytes[m] >= 0)
            assert_true(expected.mem_bytes[m] == (double)r.dev->peak_bytes[m]);
    assert_int_equal(wk_model_room(r.kind, 1), 26602);
    assert_true(expected.mem_bytes[WK_MEM_PARAMETERS] ==
                (double)wk_model_room(r.kind, wk_dev_grain(r.dev)) * 2 +
                    128 * (double)sizeof(wk_real));
    rig_close(&r);
    wk_comm_close(comm);
}

static void test_the_cpu_has_no_tf32(void **state)
{
    const struct wk_dev_options options = { .threads = 1, .precision = WK_TF32 };
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    assert_null(wk_backend_get("cpu", &err)->open(&options, &err));
    assert_int_equal(err.code, HG_E_ENV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_16_bit_number_survives),
        cmocka_unit_test(test_rounding_is_to_nearest_even),
        cmocka_unit_test(test_known_numbers),
        cmocka_unit_test(test_convert_goes_both_ways),
        cmocka_unit_test(test_precisions_have_names),
        cmocka_unit_test(test_long_gradients_are_clipped_and_short_ones_are_not),
        cmocka_unit_test(test_the_loss_scale_leaves_no_trace_in_the_norm),
        cmocka_unit_test(test_the_loss_scale_adapts),
        cmocka_unit_test(test_a_skipped_update_changes_nothing_and_is_no_step),
        cmocka_unit_test(test_mixed_precision_follows_the_full_one),
        cmocka_unit_test(test_masters_copies_and_their_memory),
        cmocka_unit_test(test_the_cpu_has_no_tf32),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
