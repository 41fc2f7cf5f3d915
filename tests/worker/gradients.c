/* SPDX-License-Identifier: Apache-2.0 */
/* Every op's gradient, and the whole model's, against central differences; fp64 only. */
#include "slopes.h"

#include "backends/cpu/isa.h"

/* A scalar function of tensors: forward, then the sum of outputs times fixed weights. */
struct probe {
    struct wk_dev *dev;
    double (*value)(struct probe *p);
    struct wk_span in[4], d_in[4]; /* inputs and the gradients that the op made for them */
    struct wk_span out, weights;   /* weights: the gradient of the output */
    struct wk_span saved, state, labels, sample, running[2];
    int rows, cols, width;
    struct wk_lstm lstm;
};

static double weighted(struct wk_span out, struct wk_span weights)
{
    const wk_real *y = out.data, *w = weights.data;
    double sum = 0;

    for (size_t i = 0; i < weights.n; i++)
        sum += (double)y[i] * (double)w[i];
    return sum;
}

/* Relative distance of the gradient of one tensor from differences at some of its elements. */
static void check_tensor(double (*value)(void *), void *context, const char *name, struct wk_span x,
                         struct wk_span gradient)
{
    struct slopes s = slopes_try(value, context, x, gradient, 40);

    print_message("%-22s %.2g\n", name, s.off / s.norm);
    assert_true(s.norm > 0);
    assert_true(s.off / s.norm < BOUND);
}

static double probe_value(void *context)
{
    struct probe *p = context;

    return p->value(p);
}

static void check_probe(struct probe *p, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        check_tensor(probe_value, p, names[i], p->in[i], p->d_in[i]);
}

static void inputs(struct probe *p, int n, const size_t *sizes)
{
    for (int i = 0; i < n; i++) {
        p->in[i] = tensor_noise(p->dev, sizes[i], (uint32_t)i + 1, 0.8);
        p->d_in[i] = tensor(p->dev, sizes[i]);
    }
}

static void probe_done(struct probe *p)
{
    struct wk_span all[] = { p->out,    p->weights, p->saved,      p->state,
                             p->labels, p->sample,  p->running[0], p->running[1] };

    for (int i = 0; i < 4; i++) {
        drop(p->dev, p->in[i]);
        drop(p->dev, p->d_in[i]);
    }
    for (size_t i = 0; i < N_OF(all); i++)
        drop(p->dev, all[i]);
    p->dev->backend->close(p->dev);
}

/* ---- Ops ---- */

static double linear_value(struct probe *p)
{
    p->dev->backend->linear_forward(p->dev, p->out, p->in[0], p->in[1], p->in[2], p->rows, p->cols,
                                    p->width);
    return weighted(p->out, p->weights);
}

static void test_linear(void **state)
{
    struct probe p = {
        .dev = open_cpu(2), .value = linear_value, .rows = 7, .cols = 5, .width = 3
    };

    (void)state;
    inputs(&p, 3, (size_t[]){ 35, 15, 3 });
    p.out = tensor(p.dev, 21);
    p.weights = tensor_noise(p.dev, 21, 9, 1);
    p.dev->backend->linear_backward(p.dev, p.d_in[0], p.d_in[1], p.d_in[2], p.weights, p.in[0],
                                    p.in[1], p.rows, p.cols, p.width);
    check_probe(&p, (const char *const[]){ "linear x", "linear weight", "linear bias", NULL });
    probe_done(&p);
}

static double relu_value(struct probe *p)
{
    p->dev->backend->relu_forward(p->dev, p->out, p->in[0]);
    return weighted(p->out, p->weights);
}

static void test_relu(void **state)
{
    struct probe p = { .dev = open_cpu(1), .value = relu_value };

    (void)state;
    inputs(&p, 1, (size_t[]){ 50 });
    p.out = tensor(p.dev, 50);
    p.weights = tensor_noise(p.dev, 50, 9, 1);
    relu_value(&p);
    p.dev->backend->relu_backward(p.dev, p.d_in[0], p.weights, p.out);
    check_probe(&p, (const char *const[]){ "relu x", NULL });
    probe_done(&p);
}

static double dropout_value(struct probe *p)
{
    p->dev->backend->dropout(p->dev, p->out, p->in[0], p->sample, p->rows, p->cols, 0.3,
                             (struct wk_rng){ 5, WK_SITE_DROPOUT, 11 });
    return weighted(p->out, p->weights);
}

static void test_dropout(void **state)
{
    struct probe p = { .dev = open_cpu(2), .value = dropout_value, .rows = 5, .cols = 7 };

    (void)state;
    inputs(&p, 1, (size_t[]){ 35 });
    p.out = tensor(p.dev, 35);
    p.weights = tensor_noise(p.dev, 35, 9, 1);
    p.sample = tensor_ints(p.dev, (int32_t[]){ 4, 0, 7, 7, 1000000 }, 5);
    p.dev->backend->dropout(p.dev, p.d_in[0], p.weights, p.sample, p.rows, p.cols, 0.3,
                            (struct wk_rng){ 5, WK_SITE_DROPOUT, 11 });
    check_probe(&p, (const char *const[]){ "dropout x", NULL });
    probe_done(&p);
}

static double batchnorm_value(struct probe *p)
{
    p->dev->backend->batchnorm_forward(p->dev, p->out, p->saved, p->running[0], p->running[1],
                                       p->in[0], p->in[1], p->in[2], p->rows, p->cols);
    return weighted(p->out, p->weights);
}

static void test_batchnorm(void **state)
{
    struct probe p = { .dev = open_cpu(1), .value = batchnorm_value, .rows = 6, .cols = 5 };

    (void)state;
    inputs(&p, 3, (size_t[]){ 30, 5, 5 });
    p.out = tensor(p.dev, 30);
    p.saved = tensor(p.dev, 10);
    p.running[0] = tensor(p.dev, 5);
    p.running[1] = tensor(p.dev, 5);
    p.weights = tensor_noise(p.dev, 30, 9, 1);
    batchnorm_value(&p);
    p.dev->backend->batchnorm_backward(p.dev, p.d_in[0], p.d_in[1], p.d_in[2], p.weights, p.in[0],
                                       p.in[1], p.saved, p.rows, p.cols);
    check_probe(&p,
                (const char *const[]){ "batchnorm x", "batchnorm weight", "batchnorm bias", NULL });
    probe_done(&p);
}

static double nll_value(struct probe *p)
{
    struct wk_span scratch = tensor(p->dev, p->in[0].n);
    double loss;

    p->dev->backend->nll(p->dev, p->out, scratch, p->in[0], p->labels, p->rows, p->cols, 1,
                         WK_NONE);
    loss = (double)*(wk_real *)p->out.data;
    drop(p->dev, scratch);
    return loss;
}

static void test_nll(void **state)
{
    struct probe p = { .dev = open_cpu(1), .value = nll_value, .rows = 4, .cols = 6 };

    (void)state;
    inputs(&p, 1, (size_t[]){ 24 });
    p.out = tensor(p.dev, 1);
    p.labels = tensor_ints(p.dev, (int32_t[]){ 0, 5, 2, 2 }, 4);
    p.dev->backend->nll(p.dev, p.out, p.d_in[0], p.in[0], p.labels, p.rows, p.cols, 1, WK_NONE);
    check_probe(&p, (const char *const[]){ "nll logits", NULL });
    probe_done(&p);
}

static struct wk_lstm_weights lstm_weights(struct wk_span s[4])
{
    return (struct wk_lstm_weights){ s[0], s[1], s[2], s[3] };
}

static double lstm_value(struct probe *p)
{
    struct wk_lstm_weights w = lstm_weights(p->in);

    p->dev->backend->lstm_forward(p->dev, &p->lstm, &w, p->out, WK_NONE, p->saved);
    return weighted(p->out, p->weights);
}

/* Sizes that fill neither a vector nor a tile, exactly fill them, and go beyond. */
static void test_lstm(void **state)
{
    static const struct wk_lstm shapes[] = { { 1, 1, 1, 1 },   { 5, 4, 3, 9 },  { 7, 3, 2, 8 },
                                             { 13, 2, 7, 33 }, { 70, 2, 1, 3 }, { 6, 5, 6, 64 } };

    (void)state;
    for (size_t i = 0; i < N_OF(shapes); i++) {
        const struct wk_lstm s = shapes[i];
        size_t in = (size_t)s.in, hidden = (size_t)s.hidden, batch = (size_t)s.batch;
        struct probe p = { .dev = open_cpu(2), .value = lstm_value, .lstm = s };
        struct wk_lstm_weights w, d_w;

        inputs(&p, 4, (size_t[]){ 4 * hidden * in, 4 * hidden * hidden, 4 * hidden, 4 * hidden });
        p.saved = tensor_noise(p.dev, batch * (size_t)s.steps * in, 8, 1);
        p.out = tensor(p.dev, batch * hidden);
        p.weights = tensor_noise(p.dev, batch * hidden, 9, 1);
        p.state = tensor(p.dev, p.dev->backend->lstm_state(p.dev, &s));
        w = lstm_weights(p.in);
        d_w = lstm_weights(p.d_in);
        p.dev->backend->lstm_forward(p.dev, &s, &w, p.out, p.state, p.saved);
        p.dev->backend->lstm_backward(p.dev, &s, &w, &d_w, p.state, p.saved, p.weights);
        print_message("batch %d, steps %d, in %d, hidden %d\n", s.batch, s.steps, s.in, s.hidden);
        if (s.steps == 1) { /* no step before: the recurrent weights have no part in it */
            check_tensor(probe_value, &p, "lstm w_ih", p.in[0], p.d_in[0]);
            assert_true(((wk_real *)p.d_in[1].data)[0] == 0);
        } else {
            check_probe(&p, (const char *const[]){ "lstm w_ih", "lstm w_hh", "lstm b_ih",
                                                   "lstm b_hh", NULL });
        }
        probe_done(&p);
    }
}

/* ---- The model, dropout on ---- */

struct model_probe {
    struct rig rig;
    struct wk_pass pass;
};

static double model_value(void *context)
{
    struct model_probe *m = context;

    return rig_forward(&m->rig, &m->pass, 40, 12);
}

static void test_rnn_with_dropout(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_comm *comm = wk_comm_self.open(&err);
    struct model_probe m;

    (void)state;
    rig_open(&m.rig, "single", comm, 16, true);
    m.pass = rig_pass(&m.rig, true, 3, 77);
    wk_strategy_begin(m.rig.strategy, true, &err);
    model_value(&m);
    assert_int_equal(m.rig.kind->backward(m.rig.model, &m.pass, &m.rig.batch, &err), 0);
    for (int p = 0; p < m.rig.kind->n_params; p++)
        check_tensor(model_value, &m, m.rig.kind->params[p].name, m.rig.strategy->params[p].value,
                     m.rig.strategy->params[p].gradient);
    rig_close(&m.rig);
    wk_comm_close(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_relu),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_batchnorm),
        cmocka_unit_test(test_nll),
        cmocka_unit_test(test_lstm),
        cmocka_unit_test(test_rnn_with_dropout),
    };
    int failed = 0;

    for (const struct wk_kernels *const *k = wk_kernels_usable(); *k; k++) {
        print_message("---- kernels %s\n", (*k)->isa);
        setenv("HPCGRID_ISA", (*k)->isa, 1);
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
