/* SPDX-License-Identifier: Apache-2.0 */
/* The RNN against PyTorch: golden_rnn.py made the numbers. */
#include "worker.h"

#include "backends/cpu/isa.h"
#include "base/json.h"

#define TESTS HPCGRID_SOURCE_DIR "/tests/worker/"

struct golden {
    struct hg_json_doc doc;
    float *gradients, *gradients_dropout, *params;
    size_t n; /* of each */
    int rows;
    uint64_t seed;
};

static struct golden golden;

static int load_golden(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    FILE *f = fopen(TESTS "golden_rnn.f32", "rb");

    (void)state;
    golden.n = 26602;
    golden.gradients = malloc(3 * golden.n * sizeof *golden.gradients);
    if (!f || fread(golden.gradients, sizeof(float), 3 * golden.n, f) != 3 * golden.n ||
        hg_json_load(TESTS "golden_rnn.json", &golden.doc, &err) < 0)
        return -1;
    fclose(f);
    golden.gradients_dropout = golden.gradients + golden.n;
    golden.params = golden.gradients + 2 * golden.n;
    golden.rows = (int)json_integer_value(json_object_get(golden.doc.root, "rows"));
    golden.seed = (uint64_t)json_integer_value(json_object_get(golden.doc.root, "seed"));
    return 0;
}

static int free_golden(void **state)
{
    (void)state;
    free(golden.gradients);
    hg_json_doc_done(&golden.doc);
    return 0;
}

/* The formula of set_weights in golden_rnn.py. */
static void set_weights(struct rig *r)
{
    for (int p = 0; p < r->kind->n_params; p++) {
        bool ones = strcmp(r->kind->params[p].name, "batchnorm.weight") == 0;
        wk_real *w = r->strategy->params[p].value.data;

        for (size_t i = 0; i < r->strategy->params[p].value.n; i++)
            w[i] = (wk_real)(sin(0.37 * (double)(i + 1) + p) * (ones ? 0.1 : 0.15) + ones);
    }
}

/* Compare a list of the golden file with values, relative to the largest. */
static void check_list(const char *name, const wk_real *values, size_t n, double bound)
{
    const json_t *list = json_object_get(golden.doc.root, name);
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

/* Every tensor on its own, so that a small one cannot hide behind a large one. */
static void check_tensors(const struct rig *r, const float *wanted, bool gradients, double bound)
{
    double worst = 0;

    for (int p = 0; p < r->kind->n_params; p++) {
        const struct wk_tensor *t = &r->strategy->params[p];
        const wk_real *found = gradients ? t->gradient.data : t->value.data;
        double difference = 0, norm = 0;

        for (size_t i = 0; i < t->value.n; i++, wanted++) {
            difference += ((double)found[i] - *wanted) * ((double)found[i] - *wanted);
            norm += (double)*wanted * *wanted;
        }
        assert_true(norm > 0);
        worst = fmax(worst, sqrt(difference / norm));
    }
    print_message("%s: %.2g of %.2g\n", gradients ? "gradients" : "parameters", worst, bound);
    assert_true(worst <= bound);
}

/* Ten steps; losses to out (10). */
static void train_ten(struct rig *r, bool dropout, wk_real *out)
{
    struct hg_err err = HG_ERR_INIT;

    for (int step = 0; step < 10; step++) {
        struct wk_pass pass = rig_pass(r, true, golden.seed, (uint32_t)step);

        wk_strategy_begin(r->strategy, true, &err);
        out[step] = (wk_real)rig_forward(r, &pass, step * golden.rows, golden.rows);
        if (step == 0 && !dropout)
            check_list("logits", r->kind->outputs(r->model).data, 10 * (size_t)golden.rows,
                       PICK(1e-13, 1e-5));
        assert_int_equal(r->kind->backward(r->model, &pass, &r->batch, &err), 0);
        if (step == 0) /* golden gradients are kept in fp32 */
            check_tensors(r, dropout ? golden.gradients_dropout : golden.gradients, true,
                          PICK(1e-7, 1e-4));
        assert_int_equal(wk_strategy_update(r->strategy, 1.0, &err), 0);
    }
}

static void test_ten_adadelta_steps_follow_pytorch(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_comm *comm = wk_comm_self.open(&err);
    struct rig r;
    wk_real losses[10];

    (void)state;
    rig_open(&r, "single", comm, golden.rows, false);
    set_weights(&r);
    train_ten(&r, false, losses);
    check_list("losses", losses, 10, PICK(1e-12, 1e-5));
    check_tensors(&r, golden.params, false, PICK(1e-7, 1e-4));
    check_list("running_mean", r.strategy->buffers[0].data, 64, PICK(1e-12, 1e-5));
    check_list("running_var", r.strategy->buffers[1].data, 64, PICK(1e-12, 1e-5));
    rig_close(&r);
    wk_comm_close(comm);
}

static void test_evaluation_uses_running_statistics(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_comm *comm = wk_comm_self.open(&err);
    struct rig r;
    struct wk_pass pass;
    struct wk_span out;
    wk_real losses[10], *sums;

    (void)state;
    rig_open(&r, "single", comm, golden.rows, false);
    set_weights(&r);
    train_ten(&r, false, losses);
    wk_resident_close(&r.data, r.dev);
    assert_int_equal(wk_resident_open(&r.data, r.set, &r.set->test, r.dev, &err), 0);
    pass = rig_pass(&r, false, golden.seed, 10);
    rig_forward(&r, &pass, 0, golden.rows);
    check_list("eval_logits", r.kind->outputs(r.model).data, 10 * (size_t)golden.rows,
               PICK(1e-12, 1e-4));
    out = tensor(r.dev, 2);
    r.kind->score(r.model, &pass, &r.batch, out);
    sums = out.data;
    assert_true(fabs((double)sums[0] - json_number_value(json_object_get(
                                           golden.doc.root, "eval_loss"))) < PICK(1e-10, 1e-3));
    drop(r.dev, out);
    rig_close(&r);
    wk_comm_close(comm);
}

static void test_dropout_masks_are_those_of_the_counters(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_comm *comm = wk_comm_self.open(&err);
    struct rig r;
    wk_real losses[10];

    (void)state;
    rig_open(&r, "single", comm, golden.rows, true);
    set_weights(&r);
    train_ten(&r, true, losses);
    check_list("losses_dropout", losses, 10, PICK(1e-12, 2e-5));
    rig_close(&r);
    wk_comm_close(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ten_adadelta_steps_follow_pytorch),
        cmocka_unit_test(test_evaluation_uses_running_statistics),
        cmocka_unit_test(test_dropout_masks_are_those_of_the_counters),
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
