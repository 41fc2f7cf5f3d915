/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the ops over token sequences and of a whole BERT, dropout on, against central differences; fp64 only. */
#include "bert.h"
#include "slopes.h"

#include "backends/cpu/isa.h"

static void check_gradient(double (*value)(void *), void *context, const char *name,
                           struct wk_span x, struct wk_span gradient)
{
    struct slopes s = slopes_try(value, context, x, gradient, 14);

    /* some are zero: what moves all scores of a query, or all logits of a sequence, alike */
    if (s.norm < 1e-8)
        assert_true(s.off < 1e-8);
    else if (!(s.off / s.norm < BOUND))
        fail_msg("%s: %.2g", name, s.off / s.norm);
}

/* A function of up to seven tensors: forward, then the sum of outputs times fixed weights. */
struct probe {
    struct bert_rig rig; /* for its device and packing */
    const struct wk_packing *p;
    void (*forward)(struct probe *p);
    struct wk_span in[7], d_in[7], out, saved, weights, extra;
    int cols;
    double drop;
    enum wk_gelu form;
    struct wk_attention attention;
};

static const struct wk_rng rng = { 5, WK_SITE_DROPOUT + 3, 11 };

static double probe_value(void *context)
{
    struct probe *p = context;
    const wk_real *y, *w = p->weights.data;
    double sum = 0;

    p->forward(p);
    y = p->out.data;
    for (size_t i = 0; i < p->weights.n; i++)
        sum += (double)y[i] * (double)w[i];
    return sum;
}

static void probe_open(struct probe *p, int pad_to, const size_t *sizes, int n, size_t out)
{
    static const struct wk_model_size size = {
        .layers = 1, .hidden = 8, .heads = 2, .intermediate = 12, .vocab_size = 40, .positions = 90
    };
    double drop = p->drop;

    bert_open(&p->rig, &size, true, 2, 3, 300);
    bert_batch(&p->rig, (const int[]){ 5, 70, 2 }, (const int32_t[]){ 4, 0, 1000000 }, 3, pad_to,
               40);
    p->p = &p->rig.tokens.batch.packing;
    p->drop = drop;
    for (int i = 0; i < n; i++) {
        p->in[i] = tensor_noise(p->rig.dev, sizes[i], (uint32_t)i + 1, 0.8);
        p->d_in[i] = tensor(p->rig.dev, sizes[i]);
    }
    p->out = tensor(p->rig.dev, out);
    p->weights = tensor_noise(p->rig.dev, out, 9, 1);
    p->saved = tensor(p->rig.dev, 4 * out);
    p->extra = tensor(p->rig.dev, out);
}

static void probe_close(struct probe *p)
{
    for (int i = 0; i < 7; i++) {
        drop(p->rig.dev, p->in[i]);
        drop(p->rig.dev, p->d_in[i]);
    }
    drop(p->rig.dev, p->out);
    drop(p->rig.dev, p->weights);
    drop(p->rig.dev, p->saved);
    drop(p->rig.dev, p->extra);
    bert_close(&p->rig);
}

static void check(struct probe *p, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        check_gradient(probe_value, p, names[i], p->in[i], p->d_in[i]);
}

/* ---- Embeddings ---- */

static void embed(struct probe *p)
{
    const struct wk_batch *b = &p->rig.tokens.batch;

    p->rig.dev->backend->embed_forward(p->rig.dev, p->out, b->ids, b->types, p->p, p->in[0],
                                       p->in[1], p->in[2], p->cols);
}

static void test_embeddings(void **state)
{
    struct probe p = { .forward = embed, .cols = 6 };
    const struct wk_batch *b = &p.rig.tokens.batch;

    (void)state;
    probe_open(&p, 0, (const size_t[]){ 40 * 6, 90 * 6, 2 * 6 }, 3, 77 * 6);
    p.rig.dev->backend->embed_backward(p.rig.dev, p.d_in[0], p.d_in[1], p.d_in[2], p.weights,
                                       b->ids, b->types, p.p, 0, p.cols);
    check(&p, (const char *const[]){ "words", "positions", "types", NULL });
    probe_close(&p);
}

static void test_the_padding_word_gets_no_gradient(void **state)
{
    struct probe p = { .forward = embed, .cols = 6 };
    const struct wk_batch *b = &p.rig.tokens.batch;

    (void)state;
    probe_open(&p, 80, (const size_t[]){ 40 * 6, 90 * 6, 2 * 6 }, 3, 240 * 6);
    p.rig.dev->backend->embed_backward(p.rig.dev, p.d_in[0], p.d_in[1], p.d_in[2], p.weights,
                                       b->ids, b->types, p.p, 0, p.cols);
    for (int k = 0; k < 6; k++)
        assert_true(((wk_real *)p.d_in[0].data)[k] == 0);
    check_gradient(probe_value, &p, "positions", p.in[1], p.d_in[1]);
    probe_close(&p);
}

/* ---- Normalisation with residual and dropout ---- */

static void norm(struct probe *p)
{
    memcpy(p->extra.data, p->in[0].data, p->extra.n * sizeof(wk_real));
    p->rig.dev->backend->norm_forward(p->rig.dev, p->out, p->saved, p->extra, p->in[1], p->in[2],
                                      p->in[3], p->p, p->cols, 1e-12, p->drop, rng);
}

static void test_norm(void **state)
{
    static const double drops[] = { 0, 0.3 };

    (void)state;
    for (size_t i = 0; i < N_OF(drops); i++)
        for (int cols = 5; cols <= 72; cols += 67) { /* beyond a vector, and less */
            size_t n = 77 * (size_t)cols;
            struct probe p = { .forward = norm, .cols = cols, .drop = drops[i] };

            probe_open(&p, 0, (const size_t[]){ n, n, (size_t)cols, (size_t)cols }, 4, n);
            norm(&p);
            p.rig.dev->backend->norm_backward(p.rig.dev, p.d_in[1], p.d_in[0], p.d_in[2], p.d_in[3],
                                              p.weights, p.extra, p.in[2], p.saved, p.p, cols,
                                              drops[i], rng);
            check(&p, (const char *const[]){ "norm x", "norm residual", "norm weight", "norm bias",
                                             NULL });
            probe_close(&p);
        }
}

static void token_dropout(struct probe *p)
{
    p->rig.dev->backend->token_dropout(p->rig.dev, p->out, p->in[0], p->p, p->cols, 0.3, rng);
}

static void test_token_dropout(void **state)
{
    struct probe p = { .forward = token_dropout, .cols = 7 };

    (void)state;
    probe_open(&p, 0, (const size_t[]){ 77 * 7 }, 1, 77 * 7);
    p.rig.dev->backend->token_dropout(p.rig.dev, p.d_in[0], p.weights, p.p, p.cols, 0.3, rng);
    check(&p, (const char *const[]){ "dropout x", NULL });
    probe_close(&p);
}

/* ---- GELU ---- */

static void gelu(struct probe *p)
{
    p->rig.dev->backend->gelu_forward(p->rig.dev, p->out, p->in[0], p->form);
}

static void test_gelu(void **state)
{
    (void)state;
    for (enum wk_gelu form = WK_GELU_ERF; form <= WK_GELU_TANH; form++) {
        struct probe p = { .forward = gelu, .form = form };

        probe_open(&p, 0, (const size_t[]){ 1001 }, 1, 1001);
        for (int i = 0; i < 1001; i++)
            ((wk_real *)p.in[0].data)[i] = (wk_real)(-8 + 0.016 * i);
        p.rig.dev->backend->gelu_backward(p.rig.dev, p.d_in[0], p.weights, p.in[0], form);
        check(&p, (const char *const[]){ "gelu x", NULL });
        probe_close(&p);
    }
}

/* ---- Attention ---- */

static void attention(struct probe *p)
{
    struct wk_qkv in = { p->in[0], p->in[1], p->in[2] };

    p->rig.dev->backend->attention_forward(p->rig.dev, &p->attention, p->p, p->out, p->saved,
                                           WK_NONE, &in);
}

static void test_attention(void **state)
{
    static const int pads[] = { 0, 90 };
    static const double drops[] = { 0, 0.2 };

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct probe p = { .forward = attention,
                           .attention = {
                               .heads = 3, .size = 5, .drop = drops[i / 2], .rng = rng } };
        size_t n = (pads[i % 2] ? 270 : 77) * (size_t)15;
        struct wk_qkv in, d_in;

        probe_open(&p, pads[i % 2], (const size_t[]){ n, n, n }, 3, n);
        in = (struct wk_qkv){ p.in[0], p.in[1], p.in[2] };
        d_in = (struct wk_qkv){ p.d_in[0], p.d_in[1], p.d_in[2] };
        attention(&p);
        p.rig.dev->backend->attention_backward(p.rig.dev, &p.attention, p.p, &d_in, p.weights,
                                               p.out, p.saved, WK_NONE, &in);
        check(&p, (const char *const[]){ "attention q", "attention k", "attention v", NULL });
        probe_close(&p);
    }
}

/* ---- Loss ---- */

static void span_loss(struct probe *p)
{
    const struct wk_batch *b = &p->rig.tokens.batch;

    p->rig.dev->backend->span_loss(p->rig.dev, p->out, WK_NONE, p->in[0], p->p, b->starts, b->ends,
                                   1, WK_NONE);
}

static void test_span_loss(void **state)
{
    struct probe p = { .forward = span_loss };
    const struct wk_batch *b = &p.rig.tokens.batch;

    (void)state;
    probe_open(&p, 80, (const size_t[]){ 480 }, 1, 1);
    p.rig.dev->backend->span_loss(p.rig.dev, p.out, p.d_in[0], p.in[0], p.p, b->starts, b->ends,
                                  (double)*(wk_real *)p.weights.data, WK_NONE);
    check(&p, (const char *const[]){ "logits", NULL });
    probe_close(&p);
}

/* ---- The model ---- */

static double model_value(void *context)
{
    return bert_loss_of(context);
}

static void test_bert_with_dropout(void **state)
{
    static const int pads[] = { 0, 75 };

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const struct wk_model_size size = { .layers = 2,
                                            .hidden = 12,
                                            .heads = 3,
                                            .intermediate = 10,
                                            .vocab_size = 40,
                                            .positions = 80,
                                            .gelu = i / 2 ? WK_GELU_TANH : WK_GELU_ERF };
        struct bert_rig r;

        bert_open(&r, &size, true, 1, 3, 300);
        bert_set_noise(&r);
        bert_batch(&r, (const int[]){ 5, 70, 2 }, (const int32_t[]){ 4, 0, 1000000 }, 3,
                   pads[i % 2], 40);
        bert_loss_of(&r);
        bert_backward_of(&r);
        for (int k = 0; k < r.kind->n_params; k++)
            if (k != 0 || !pads[i % 2]) /* [PAD] has no gradient on purpose */
                check_gradient(model_value, &r, r.kind->params[k].name, r.params[k].value,
                               r.params[k].gradient);
        bert_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embeddings), cmocka_unit_test(test_the_padding_word_gets_no_gradient),
        cmocka_unit_test(test_norm),       cmocka_unit_test(test_token_dropout),
        cmocka_unit_test(test_gelu),       cmocka_unit_test(test_attention),
        cmocka_unit_test(test_span_loss),  cmocka_unit_test(test_bert_with_dropout),
    };
    int failed = 0;

    for (const struct wk_kernels *const *k = wk_kernels_usable(); *k; k++) {
        print_message("---- kernels %s\n", (*k)->isa);
        setenv("HPCGRID_ISA", (*k)->isa, 1);
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
