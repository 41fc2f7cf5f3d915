/* SPDX-License-Identifier: Apache-2.0 */
/* Values of ops: the random numbers, kernels of all instruction sets against plain formulas, and the same bits whatever
 * the number of threads. */
#include "worker.h"

#include "backends/cpu/isa.h"

static void test_philox_gives_the_published_numbers(void **state)
{
    uint32_t out[4];

    (void)state;
    wk_philox(0, 0, 0, 0, 0, out);
    assert_memory_equal(out, ((uint32_t[]){ 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 }), 16);
    wk_philox(UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, out);
    assert_memory_equal(out, ((uint32_t[]){ 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd }), 16);
}

/* ---- LSTM by the book, in double, one sample at a time ---- */

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

static void book_step(const struct wk_lstm *s, const struct wk_lstm_weights *w, const wk_real *x,
                      double *h, double *c)
{
    double z[4 * 64];

    for (int g = 0; g < 4 * s->hidden; g++) {
        z[g] = (double)((wk_real *)w->b_ih.data)[g] + (double)((wk_real *)w->b_hh.data)[g];
        for (int k = 0; k < s->in; k++)
            z[g] += (double)((wk_real *)w->w_ih.data)[g * s->in + k] * (double)x[k];
        for (int k = 0; k < s->hidden; k++)
            z[g] += (double)((wk_real *)w->w_hh.data)[g * s->hidden + k] * h[k];
    }
    for (int u = 0; u < s->hidden; u++) {
        c[u] = logistic(z[s->hidden + u]) * c[u] + logistic(z[u]) * tanh(z[2 * s->hidden + u]);
        h[u] = logistic(z[3 * s->hidden + u]) * tanh(c[u]);
    }
}

/* Largest difference of h from the book. */
static double lstm_error(struct wk_dev *dev, const struct wk_lstm *s, double scale, bool keep)
{
    size_t in = (size_t)s->in, hidden = (size_t)s->hidden, batch = (size_t)s->batch;
    struct wk_lstm_weights w = { tensor_noise(dev, 4 * hidden * in, 1, scale),
                                 tensor_noise(dev, 4 * hidden * hidden, 2, scale),
                                 tensor_noise(dev, 4 * hidden, 3, scale),
                                 tensor_noise(dev, 4 * hidden, 4, scale) };
    struct wk_span x = tensor_noise(dev, batch * (size_t)s->steps * in, 5, 2),
                   h = tensor(dev, batch * hidden);
    struct wk_span kept = keep ? tensor(dev, dev->backend->lstm_state(dev, s)) : WK_NONE;
    double worst = 0;

    dev->backend->lstm_forward(dev, s, &w, h, kept, x);
    for (int b = 0; b < s->batch; b++) {
        double book_h[64] = { 0 }, book_c[64] = { 0 };

        for (int t = 0; t < s->steps; t++)
            book_step(s, &w, (wk_real *)x.data + ((size_t)b * (size_t)s->steps + (size_t)t) * in,
                      book_h, book_c);
        for (int u = 0; u < s->hidden; u++)
            worst = fmax(worst, fabs(book_h[u] - (double)((wk_real *)h.data)[b * s->hidden + u]));
    }
    for (struct wk_span *p = &w.w_ih; p <= &w.b_hh; p++)
        drop(dev, *p);
    drop(dev, x);
    drop(dev, h);
    drop(dev, kept);
    return worst;
}

static void test_lstm_follows_its_definition_on_every_instruction_set(void **state)
{
    static const struct wk_lstm shapes[] = {
        { 1, 1, 1, 1 }, { 3, 5, 2, 7 }, { 64, 28, 28, 64 }, { 65, 3, 4, 17 }, { 150, 2, 1, 5 }
    };

    (void)state;
    for (const struct wk_kernels *const *k = wk_kernels_usable(); *k; k++) {
        struct wk_dev *dev;

        setenv("HPCGRID_ISA", (*k)->isa, 1);
        dev = open_cpu(2);
        for (size_t i = 0; i < N_OF(shapes); i++)
            for (int keep = 0; keep < 2; keep++) {
                double e = lstm_error(dev, &shapes[i], 0.3, keep);

                print_message("%s: batch %d hidden %d: %.2g\n", (*k)->isa, shapes[i].batch,
                              shapes[i].hidden, e);
                assert_true(e < PICK(1e-14, 2e-6));
            }
        /* Gates far out of the range of exp: no overflow, no NaN. */
        assert_true(lstm_error(dev, &shapes[1], 400, true) < PICK(1e-12, 1e-5));
        dev->backend->close(dev);
    }
    unsetenv("HPCGRID_ISA");
}

/* ---- One thread or many ---- */

static void run_step(struct rig *r)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_pass pass = rig_pass(r, true, 1, 0);

    wk_strategy_begin(r->strategy, true, &err);
    rig_forward(r, &pass, 0, 61);
    assert_int_equal(r->kind->backward(r->model, &pass, &r->batch, &err), 0);
    assert_int_equal(wk_strategy_update(r->strategy, 1, &err), 0);
    assert_int_equal(r->dev->backend->sync(r->dev, &err), 0);
}

static void test_a_step_gives_the_same_bits_on_any_number_of_threads(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_comm *comm = wk_comm_self.open(&err);
    struct rig one, many;

    (void)state;
    rig_open(&one, "single", comm, 64, true);
    run_step(&one);
    for (int threads = 1; threads <= 5; threads++) {
        rig_open(&many, "single", comm, 64, true);
        many.dev->threads = threads;
        run_step(&many);
        for (int p = 0; p < one.kind->n_params; p++)
            assert_memory_equal(one.strategy->params[p].value.data,
                                many.strategy->params[p].value.data,
                                one.strategy->params[p].value.n * sizeof(wk_real));
        rig_close(&many);
    }
    rig_close(&one);
    wk_comm_close(comm);
}

/* ---- Small ones ---- */

static void test_dropout_keeps_the_right_part(void **state)
{
    enum { ROWS = 200, COLS = 63 };
    struct wk_dev *dev = open_cpu(2);
    struct wk_span x = tensor(dev, ROWS * COLS), y = tensor(dev, ROWS * COLS), sample;
    int32_t ids[ROWS];
    int dropped = 0;

    (void)state;
    for (int i = 0; i < ROWS; i++)
        ids[i] = i;
    sample = tensor_ints(dev, ids, ROWS);
    dev->backend->fill(dev, x, 3);
    dev->backend->dropout(dev, y, x, sample, ROWS, COLS, 0.25,
                          (struct wk_rng){ 1, WK_SITE_DROPOUT, 0 });
    for (size_t i = 0; i < y.n; i++) {
        wk_real v = ((wk_real *)y.data)[i];

        dropped += v == 0;
        assert_true(v == 0 || fabs((double)v - 4) < 1e-6);
    }
    /* 12600 tries: three standard deviations are 146. */
    assert_true(dropped >= 3150 - 146 && dropped <= 3150 + 146);
    drop(dev, x);
    drop(dev, y);
    drop(dev, sample);
    dev->backend->close(dev);
}

static void test_batches_are_normalised_rows_of_the_data(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_comm *comm = wk_comm_self.open(&err);
    struct rig r;
    const int32_t ids[] = { 3999, 0, 17, 17 };

    (void)state;
    rig_open(&r, "single", comm, 8, true);
    wk_batch_gather(&r.batch, &r.data, ids, 4, r.dev);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(((int32_t *)r.batch.labels.data)[i], r.set->train.labels[ids[i]]);
        for (int k = 0; k < 784; k++) {
            double wanted = (r.set->train.values[ids[i] * 784 + k] / 255.0 - 0.1307) / 0.3081;

            assert_true(fabs((double)((wk_real *)r.batch.x.data)[i * 784 + k] - wanted) <
                        PICK(1e-13, 1e-6));
        }
    }
    rig_close(&r);
    wk_comm_close(comm);
}

static void test_scores_count_right_answers(void **state)
{
    struct wk_dev *dev = open_cpu(1);
    struct wk_span z = tensor(dev, 6), out = tensor(dev, 2),
                   labels = tensor_ints(dev, (int32_t[]){ 2, 0 }, 2);

    (void)state;
    memcpy(z.data, ((wk_real[]){ 0, 1, 5, 1000, 2000, 0 }), 6 * sizeof(wk_real));
    dev->backend->nll_score(dev, out, z, labels, 2, 3);
    assert_true(fabs((double)((wk_real *)out.data)[0] - (log(exp(-5) + exp(-4) + 1) + 1000)) <
                PICK(1e-9, 1e-3));
    assert_true(((wk_real *)out.data)[1] == 1);
    drop(dev, z);
    drop(dev, out);
    drop(dev, labels);
    dev->backend->close(dev);
}

static void test_adadelta_is_its_formula(void **state)
{
    enum { N = 37 };
    struct wk_dev *dev = open_cpu(3);
    struct wk_span v = tensor_noise(dev, N, 1, 1), g = tensor_noise(dev, N, 2, 1),
                   s = tensor(dev, N), d = tensor(dev, N);
    const struct wk_adadelta how = { .lr = 0.5, .rho = 0.9, .eps = 1e-6, .scale = 1 };
    double value[N], square[N] = { 0 }, delta[N] = { 0 };

    (void)state;
    for (int i = 0; i < N; i++)
        value[i] = (double)((wk_real *)v.data)[i];
    for (int step = 0; step < 5; step++) {
        dev->backend->adadelta(dev, v, g, s, d, &how);
        for (int i = 0; i < N; i++) {
            double gi = (double)((wk_real *)g.data)[i], u;

            square[i] = 0.9 * square[i] + 0.1 * gi * gi;
            u = sqrt(delta[i] + 1e-6) / sqrt(square[i] + 1e-6) * gi;
            delta[i] = 0.9 * delta[i] + 0.1 * u * u;
            value[i] -= 0.5 * u;
        }
    }
    for (int i = 0; i < N; i++)
        assert_true(fabs(value[i] - (double)((wk_real *)v.data)[i]) < PICK(1e-14, 1e-6));
    drop(dev, v);
    drop(dev, g);
    drop(dev, s);
    drop(dev, d);
    dev->backend->close(dev);
}

static void test_a_fresh_device_overwrites_gradients_of_weights_and_adds_those_of_biases(
    void **state)
{
    enum { ROWS = 5, IN = 7, OUT = 3 };
    struct wk_dev *dev = open_cpu(1);
    struct wk_span x = tensor_noise(dev, ROWS * IN, 1, 1),
                   d_y = tensor_noise(dev, ROWS * OUT, 2, 1);
    struct wk_span d_w = tensor_noise(dev, IN * OUT, 3, 1), cleared = tensor(dev, IN * OUT);
    struct wk_span d_b = tensor_noise(dev, OUT, 4, 1), same = tensor_noise(dev, OUT, 4, 1);

    (void)state;
    *(wk_real *)d_w.data = NAN; /* whatever an earlier step left */
    dev->fresh = true;
    dev->backend->linear_backward(dev, WK_NONE, d_w, d_b, d_y, x, WK_NONE, ROWS, IN, OUT);
    dev->fresh = false;
    dev->backend->linear_backward(dev, WK_NONE, cleared, same, d_y, x, WK_NONE, ROWS, IN, OUT);
    assert_memory_equal(d_w.data, cleared.data, IN * OUT * sizeof(wk_real));
    assert_memory_equal(d_b.data, same.data, OUT * sizeof(wk_real));
    drop(dev, x);
    drop(dev, d_y);
    drop(dev, d_w);
    drop(dev, cleared);
    drop(dev, d_b);
    drop(dev, same);
    dev->backend->close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox_gives_the_published_numbers),
        cmocka_unit_test(test_lstm_follows_its_definition_on_every_instruction_set),
        cmocka_unit_test(test_a_step_gives_the_same_bits_on_any_number_of_threads),
        cmocka_unit_test(test_dropout_keeps_the_right_part),
        cmocka_unit_test(test_batches_are_normalised_rows_of_the_data),
        cmocka_unit_test(test_scores_count_right_answers),
        cmocka_unit_test(test_adadelta_is_its_formula),
        cmocka_unit_test(
            test_a_fresh_device_overwrites_gradients_of_weights_and_adds_those_of_biases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
