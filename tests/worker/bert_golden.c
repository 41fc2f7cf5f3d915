/* SPDX-License-Identifier: Apache-2.0 */
/* A small BERT against PyTorch and transformers (golden_bert.py made the numbers), packed against padded, and one number of threads
 * against another. */
#include "bert.h"

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels_draw.h"
#include "base/json.h"

#define TESTS HPCGRID_SOURCE_DIR "/tests/worker/"
#define PARAMETERS 20450
#define MAX_LENGTH 48

static const struct wk_model_size sizes = {
    .layers = 2, .hidden = 32, .heads = 2, .intermediate = 48, .vocab_size = 100, .positions = 64
};
static const int lengths[] = { 7, 40, 23 };

static struct hg_json_doc golden;
static float *arrays; /* gradients and parameters (erf, padded), gradients (packed) */

static int load_golden(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    FILE *f = fopen(TESTS "golden_bert.f32", "rb");
    size_t n = (size_t)3 * PARAMETERS;

    (void)state;
    arrays = malloc(n * sizeof *arrays);
    if (!f || fread(arrays, sizeof *arrays, n, f) != n ||
        hg_json_load(TESTS "golden_bert.json", &golden, &err) < 0)
        return -1;
    return fclose(f);
}

static int free_golden(void **state)
{
    (void)state;
    free(arrays);
    hg_json_doc_done(&golden);
    return 0;
}

/* The formula of make() in golden_bert.py. */
static void set_weights(struct bert_rig *r)
{
    for (int p = 0; p < r->kind->n_params; p++) {
        const char *name = r->kind->params[p].name;
        bool ones = strstr(name, "LayerNorm.weight");
        wk_real *w = r->params[p].value.data;

        for (size_t i = 0; i < r->params[p].value.n; i++)
            w[i] = (wk_real)(sin(0.37 * (double)(i + 1) + p) * (ones ? 0.1 : 0.15) + ones);
    }
}

static void set_batch(struct bert_rig *r, int step, int pad_to)
{
    const int32_t keys[] = { 4 + step, step, 11 + step };

    bert_batch(r, lengths, keys, 3, pad_to, (int)sizes.vocab_size);
}

static void check_list(const char *name, const wk_real *values, size_t n, double bound)
{
    const json_t *list = json_object_get(golden.root, name);
    double worst = 0, largest = 0;

    assert_int_equal(json_array_size(list), n);
    for (size_t i = 0; i < n; i++) {
        double wanted = json_number_value(json_array_get(list, i));

        worst = fmax(worst, fabs((double)values[i] - wanted));
        largest = fmax(largest, fabs(wanted));
    }
    print_message("%s: %.2g of %.2g\n", name, worst / largest, bound);
    assert_true(worst <= bound * largest);
}

/* Their gradient is zero, because they move all scores of a query or all logits of a sequence alike. Adam makes whole steps of
 * what rounding leaves of it. */
static bool only_noise(const char *name)
{
    return strstr(name, "key.bias") || strstr(name, "layer.1.output.LayerNorm.bias") ||
           strstr(name, "qa_outputs.bias");
}

/* Tensor by tensor. Where the truth is zero up to rounding, the found one must be as small. */
static void check_tensors(const struct bert_rig *r, const float *wanted, bool gradients,
                          double bound)
{
    double worst = 0;

    for (int p = 0; p < r->kind->n_params; p++) {
        const struct wk_tensor *t = &r->params[p];
        const wk_real *found = gradients ? t->gradient.data : t->value.data;
        double difference = 0, norm = 0;

        if (!gradients && only_noise(r->kind->params[p].name)) {
            wanted += t->value.n;
            continue;
        }
        for (size_t i = 0; i < t->value.n; i++, wanted++) {
            difference += ((double)found[i] - *wanted) * ((double)found[i] - *wanted);
            norm += (double)*wanted * *wanted;
        }
        if (sqrt(norm) < 1e-7)
            assert_true(sqrt(difference) < PICK(1e-12, 1e-6));
        else
            worst = fmax(worst, sqrt(difference / norm));
    }
    print_message("%s: %.2g of %.2g\n", gradients ? "gradients" : "parameters", worst, bound);
    assert_true(worst <= bound);
}

struct ten {
    wk_real losses[10];
    struct wk_span m[BERT_PARAMS_MAX], v[BERT_PARAMS_MAX];
};

static void adamw_step(struct bert_rig *r, struct ten *t, int step)
{
    const struct wk_adamw how = { .form = WK_ADAMW_TORCH,
                                  .lr = 1e-3,
                                  .beta1 = 0.9,
                                  .beta2 = 0.999,
                                  .eps = 1e-8,
                                  .decay = 0.01,
                                  .scale = 1,
                                  .step = step + 1 };

    for (int p = 0; p < r->kind->n_params; p++)
        r->dev->backend->adamw(r->dev, r->params[p].value, r->params[p].gradient, t->m[p], t->v[p],
                               &how);
}

static void train_ten(struct bert_rig *r, const char *logits, const float *gradients, int pad_to,
                      struct ten *t)
{
    for (int p = 0; p < r->kind->n_params; p++) {
        t->m[p] = tensor(r->dev, r->params[p].value.n);
        t->v[p] = tensor(r->dev, r->params[p].value.n);
    }
    for (int step = 0; step < 10; step++) {
        set_batch(r, step, pad_to);
        t->losses[step] = (wk_real)bert_loss_of(r);
        if (step == 0 && logits)
            check_list(logits, r->kind->outputs(r->model).data, 3 * MAX_LENGTH * 2,
                       PICK(1e-13, 1e-5));
        bert_backward_of(r);
        if (step == 0 && gradients) /* golden gradients are kept in fp32 */
            check_tensors(r, gradients, true, PICK(1e-7, 1e-4));
        adamw_step(r, t, step);
    }
    for (int p = 0; p < r->kind->n_params; p++) {
        drop(r->dev, t->m[p]);
        drop(r->dev, t->v[p]);
    }
}

static void test_ten_adamw_steps_follow_pytorch(void **state)
{
    struct bert_rig r;
    struct ten t;

    (void)state;
    bert_open(&r, &sizes, false, 2, 3, 3 * MAX_LENGTH);
    set_weights(&r);
    train_ten(&r, "logits_erf", arrays, MAX_LENGTH, &t);
    check_list("losses_erf", t.losses, 10, PICK(1e-12, 1e-5));
    check_tensors(&r, arrays + PARAMETERS, false, PICK(1e-7, 1e-3));
    bert_close(&r);
}

static void test_the_tanh_form_follows_pytorch(void **state)
{
    struct wk_model_size size = sizes;
    struct bert_rig r;
    struct ten t;

    (void)state;
    size.gelu = WK_GELU_TANH;
    bert_open(&r, &size, false, 1, 3, 3 * MAX_LENGTH);
    set_weights(&r);
    train_ten(&r, "logits_tanh", NULL, MAX_LENGTH, &t);
    check_list("losses_tanh", t.losses, 10, PICK(1e-12, 1e-5));
    bert_close(&r);
}

static void test_packed_sequences_follow_pytorch_without_padding(void **state)
{
    struct bert_rig r;
    struct ten t;

    (void)state;
    bert_open(&r, &sizes, false, 2, 3, 70);
    set_weights(&r);
    train_ten(&r, NULL, arrays + 2 * PARAMETERS, 0, &t);
    check_list("losses_packed", t.losses, 10, PICK(1e-12, 1e-5));
    bert_close(&r);
}

/* Real tokens have the same logits, dropout on: neither attention nor randomness knows of padding. */
static void test_packing_does_not_show_in_logits(void **state)
{
    struct bert_rig packed, padded;
    const wk_real *a, *b;
    double worst = 0;
    int row = 0;

    (void)state;
    bert_open(&packed, &sizes, true, 1, 3, 70);
    bert_open(&padded, &sizes, true, 1, 3, 3 * 64);
    set_weights(&packed);
    set_weights(&padded);
    set_batch(&packed, 0, 0);
    set_batch(&padded, 0, 64);
    bert_loss_of(&packed);
    bert_loss_of(&padded);
    a = packed.kind->outputs(packed.model).data;
    b = padded.kind->outputs(padded.model).data;
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < 2 * lengths[s]; i++)
            worst = fmax(worst, fabs((double)(a[2 * row + i] - b[2 * 64 * s + i]))),
            row += i == 2 * lengths[s] - 1 ? lengths[s] : 0;
    print_message("packed and padded differ by %.2g\n", worst);
    assert_true(worst < PICK(1e-13, 1e-5));
    bert_close(&packed);
    bert_close(&padded);
}

/* A sequence's numbers do not depend on what else is in its batch. */
static void test_company_does_not_show_in_logits(void **state)
{
    struct bert_rig r;
    wk_real alone[2 * 23];
    const wk_real *all;
    double worst = 0;

    (void)state;
    bert_open(&r, &sizes, true, 1, 3, 70);
    set_weights(&r);
    bert_batch(&r, lengths + 2, (const int32_t[]){ 11 }, 1, 0, (int)sizes.vocab_size);
    bert_loss_of(&r);
    memcpy(alone, r.kind->outputs(r.model).data, sizeof alone);
    set_batch(&r, 0, 0);
    bert_loss_of(&r);
    all = r.kind->outputs(r.model).data;
    for (int i = 0; i < 2 * 23; i++)
        worst = fmax(worst, fabs((double)(alone[i] - all[2 * 47 + i])));
    assert_true(worst < PICK(1e-13, 1e-5));
    bert_close(&r);
}

/* Gradients after a step with dropout. */
static void gradients_of(int threads, double *loss, wk_real *out)
{
    struct bert_rig r;

    bert_open(&r, &sizes, true, threads, 3, 70);
    set_weights(&r);
    set_batch(&r, 0, 0);
    *loss = bert_loss_of(&r);
    bert_backward_of(&r);
    for (int p = 0; p < r.kind->n_params; p++) {
        memcpy(out, r.params[p].gradient.data, r.params[p].gradient.n * sizeof *out);
        out += r.params[p].gradient.n;
    }
    bert_close(&r);
}

static void test_threads_do_not_show(void **state)
{
    wk_real *first = malloc(PARAMETERS * sizeof *first),
            *other = malloc(PARAMETERS * sizeof *first);
    double loss, again;

    (void)state;
    assert_non_null(first);
    assert_non_null(other);
    gradients_of(1, &loss, first);
    gradients_of(1, &again, other);
    assert_true(loss == again);
    assert_memory_equal(first, other, PARAMETERS * sizeof *first);
    for (int threads = 2; threads <= 5; threads++) {
        gradients_of(threads, &again, other);
        assert_true(fabs(loss - again) <= 1e-6 * loss);
        assert_true(distance(other, first, PARAMETERS) < PICK(1e-14, 1e-6));
    }
    free(first);
    free(other);
}

/* 6.4 standard deviations and beyond, and the branch at zero. */
static void test_gelu_is_pytorchs(void **state)
{
    const json_t *list = json_object_get(golden.root, "gelu"), *entry;
    struct wk_dev *dev = open_cpu(1);
    struct wk_span x = tensor(dev, 1), y = tensor(dev, 1);
    size_t i;

    (void)state;
    json_array_foreach(list, i, entry) {
        for (int form = 0; form < 2; form++) {
            double wanted = json_number_value(json_array_get(entry, (size_t)form + 1));

            *(wk_real *)x.data = (wk_real)json_number_value(json_array_get(entry, 0));
            dev->backend->gelu_forward(dev, y, x, form ? WK_GELU_TANH : WK_GELU_ERF);
            if (fabs((double)*(wk_real *)y.data - wanted) >
                PICK(1e-15, 2e-7) + PICK(1e-14, 1e-6) * fabs(wanted))
                fail_msg("gelu %d at %g: %.17g, not %.17g", form, (double)*(wk_real *)x.data,
                         (double)*(wk_real *)y.data, wanted);
        }
    }
    drop(dev, x);
    drop(dev, y);
    dev->backend->close(dev);
}

static void test_sizes_are_the_published_ones(void **state)
{
    static const struct {
        const char *name;
        size_t parameters;
        int tensors;
    } cases[] = { { "bert-base", 108893186, 199 }, { "bert-large", 334094338, 391 } };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_err err = HG_ERR_INIT;
        const struct wk_model_kind *kind = wk_model_get(cases[i].name, &err);

        assert_non_null(kind);
        assert_int_equal(wk_model_n(kind), cases[i].parameters);
        assert_int_equal(kind->n_params, cases[i].tensors);
        wk_model_free(kind);
    }
}

static void test_initial_weights_are_normal_with_deviation_0_02(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    const struct wk_model_kind *kind = wk_model_get("bert-tiny", &err);
    const struct wk_param *words = &kind->params[0];
    size_t n = wk_param_n(words), beyond = 0;
    wk_real *w = malloc(n * sizeof *w);
    double sum = 0, square = 0;

    (void)state;
    assert_non_null(w);
    wk_param_init(words, 0, 1, w);
    for (int k = 0; k < words->cols; k++)
        assert_true(w[k] == 0); /* [PAD] */
    for (size_t i = (size_t)words->cols; i < n; i++) {
        sum += (double)w[i];
        square += (double)w[i] * (double)w[i];
        beyond += fabs((double)w[i]) > 0.04;
    }
    n -= (size_t)words->cols;
    assert_true(fabs(sum / (double)n) < 5e-5);
    assert_true(fabs(sqrt(square / (double)n) - 0.02) < 5e-5);
    assert_true(fabs((double)beyond / (double)n - 0.0455) < 0.001);
    free(w);
    wk_model_free(kind);
}

/* Element k of a row of 30 columns draws as element 32 position + k of its sequence: rows begin at whole counters. */
static void test_dropout_draws_the_numbers_of_its_elements(void **state)
{
    enum { COLS = 30, ROWS = 70 };
    const struct wk_rng rng = { 7, WK_SITE_DROPOUT + 5, 9 };
    struct bert_rig r;
    struct wk_span x, y;
    const wk_real *out;
    int row = 0;

    (void)state;
    bert_open(&r, &sizes, true, 2, 3, ROWS);
    set_batch(&r, 0, 0);
    x = tensor(r.dev, (size_t)wk_dev_rows(r.dev, ROWS) * COLS);
    y = tensor(r.dev, x.n);
    r.dev->backend->fill(r.dev, x, 1);
    r.dev->backend->token_dropout(r.dev, y, x, &r.tokens.batch.packing, COLS, 0.3, rng);
    out = y.data;
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < lengths[s]; i++, row++)
            for (uint32_t k = 0; k < COLS; k++) {
                uint32_t bits[4], element = 32 * (uint32_t)i + k, half;

                wk_philox(rng.seed, element / 8, rng.site, (uint32_t)r.tokens.sample[s], rng.step,
                          bits);
                half = bits[element % 8 / 2] >> (element % 2 * 16) & 0xffff;
                assert_true(out[row * COLS + (int)k] == (half < 19661 ? 0 : (wk_real)(1 / 0.7)));
            }
    drop(r.dev, x);
    drop(r.dev, y);
    bert_close(&r);
}

/* Box and Muller by the C library, from the words that wk_draw documents. */
static double drawn_alone(uint64_t seed, uint32_t site, size_t i)
{
    uint32_t bits[4];
    double radius, angle;

    wk_philox(seed, (uint32_t)(i / 4), site, 0, 0, bits);
    radius = sqrt(-2 * log(wk_rng_unit(bits[i % 4 / 2 * 2])));
    angle = 2 * M_PI * wk_rng_unit(bits[i % 4 / 2 * 2 + 1]);
    return radius * (i % 2 ? sin(angle) : cos(angle));
}

static void test_normal_numbers_are_box_mullers_on_every_machine(void **state)
{
    enum { N = 100 * WK_DRAW_GROUP, FIRST = 1 << 20 };
    static double all[N + 5], group[WK_DRAW_GROUP];
    wk_draw_group *const groups[] = {
#ifdef __x86_64__
        wk_draw_group_avx512, wk_draw_group_avx2,
#endif
        wk_draw_group_base
    };
    size_t usable = 0;

    (void)state;
    while (wk_kernels_usable()[usable])
        usable++;
    wk_draw(77, WK_SITE_INIT + 3, FIRST, WK_DRAW_NORMAL, all, N + 5);
    for (size_t i = 0; i < N + 5; i++)
        assert_true(fabs(all[i] - drawn_alone(77, WK_SITE_INIT + 3, FIRST + i)) <=
                    1e-14 * fabs(all[i]) + 1e-15);
    for (size_t k = N_OF(groups) - usable; k < N_OF(groups); k++)
        for (size_t i = 0; i < N; i += WK_DRAW_GROUP) {
            groups[k](77, WK_SITE_INIT + 3, (uint32_t)((FIRST + i) / 4), WK_DRAW_NORMAL, group);
            assert_memory_equal(group, all + i, sizeof group);
        }
}

static void test_uniform_numbers_are_the_words(void **state)
{
    double all[100];

    (void)state;
    wk_draw(1, WK_SITE_INIT, 64, WK_DRAW_UNIFORM, all, 100);
    for (size_t i = 0; i < 100; i++) {
        uint32_t bits[4];

        wk_philox(1, (uint32_t)((64 + i) / 4), WK_SITE_INIT, 0, 0, bits);
        assert_true(all[i] == 2 * wk_rng_unit(bits[i % 4]) - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ten_adamw_steps_follow_pytorch),
        cmocka_unit_test(test_the_tanh_form_follows_pytorch),
        cmocka_unit_test(test_packed_sequences_follow_pytorch_without_padding),
        cmocka_unit_test(test_packing_does_not_show_in_logits),
        cmocka_unit_test(test_company_does_not_show_in_logits),
        cmocka_unit_test(test_threads_do_not_show),
        cmocka_unit_test(test_gelu_is_pytorchs),
        cmocka_unit_test(test_sizes_are_the_published_ones),
        cmocka_unit_test(test_initial_weights_are_normal_with_deviation_0_02),
        cmocka_unit_test(test_dropout_draws_the_numbers_of_its_elements),
        cmocka_unit_test(test_normal_numbers_are_box_mullers_on_every_machine),
        cmocka_unit_test(test_uniform_numbers_are_the_words),
    };
    int failed = 0;

    for (int i = 0; i < ISAS_MAX && wk_kernels_usable()[i]; i++) {
        const char *isa = wk_kernels_usable()[i]->isa;

        print_message("---- kernels %s\n", isa);
        setenv("HPCGRID_ISA", isa, 1);
        failed += cmocka_run_group_tests(tests, load_golden, free_golden);
    }
    return failed;
}
