/* SPDX-License-Identifier: Apache-2.0 */
/* ddp against its definition, on as many ranks as mpirun starts this program with. Each rank also works out by itself what
 * all ranks together should do: for every rank its part of the batch through the model, with statistics of that part; gradients
 * divided by N and added up; one Adadelta step in plain C. Losses must agree; what was sent must be what the formulas say. */
#include "worker.h"

#include "base/json.h"
#include "data/sampler.h"

enum { BATCH = 8, SAMPLES = 203, STEPS = 30 };

#define SEED 1
#define LR 1.0

static struct wk_comm *comm;

/* ---- The definition ---- */

struct reference {
    struct rig rig; /* single: only its model and ops are used */
    struct wk_sampler samplers[8];
    double *sum, *square, *delta; /* (parameters) */
    size_t n;
};

static void reference_open(struct reference *f, struct wk_comm *alone)
{
    rig_open(&f->rig, "single", alone, BATCH, true);
    f->n = wk_model_n(f->rig.kind);
    f->sum = calloc(f->n, sizeof *f->sum);
    f->square = calloc(f->n, sizeof *f->square);
    f->delta = calloc(f->n, sizeof *f->delta);
    for (int rank = 0; rank < comm->world; rank++)
        wk_sampler_open(&f->samplers[rank], SAMPLES, rank, comm->world, BATCH, SEED);
}

static void reference_close(struct reference *f)
{
    for (int rank = 0; rank < comm->world; rank++)
        wk_sampler_close(&f->samplers[rank]);
    free(f->sum);
    free(f->square);
    free(f->delta);
    rig_close(&f->rig);
}

/* Gradients of one rank's part, divided by N, added to the sum; its loss. */
static double reference_rank(struct reference *f, int rank, int epoch_step, uint32_t step)
{
    struct hg_err err = HG_ERR_INIT;
    struct rig *r = &f->rig;
    struct wk_pass pass = rig_pass(r, true, SEED, step);
    int rows;
    const int32_t *ids = wk_sampler_batch(&f->samplers[rank], epoch_step, &rows);
    size_t at = 0;

    wk_batch_gather(&r->batch, &r->data, ids, rows, r->dev);
    wk_strategy_begin(r->strategy, true, &err);
    assert_int_equal(r->kind->forward(r->model, &pass, &r->batch, &err), 0);
    r->kind->loss(r->model, &pass, &r->batch, r->loss);
    assert_int_equal(r->kind->backward(r->model, &pass, &r->batch, &err), 0);
    for (int p = 0; p < r->kind->n_params; p++)
        for (size_t i = 0; i < r->strategy->params[p].gradient.n; i++, at++)
            f->sum[at] +=
                (double)((wk_real *)r->strategy->params[p].gradient.data)[i] / comm->world;
    return (double)*(wk_real *)r->loss.data;
}

static void reference_update(struct reference *f)
{
    struct rig *r = &f->rig;
    size_t at = 0;

    for (int p = 0; p < r->kind->n_params; p++)
        for (size_t i = 0; i < r->strategy->params[p].value.n; i++, at++) {
            double g = f->sum[at], u;

            f->square[at] = 0.9 * f->square[at] + 0.1 * g * g;
            u = sqrt(f->delta[at] + 1e-6) / sqrt(f->square[at] + 1e-6) * g;
            f->delta[at] = 0.9 * f->delta[at] + 0.1 * u * u;
            ((wk_real *)r->strategy->params[p].value.data)[i] -= (wk_real)(LR * u);
        }
    memset(f->sum, 0, f->n * sizeof *f->sum);
}

static double reference_step(struct reference *f, int step)
{
    int steps = f->samplers[0].steps;
    double loss = 0;

    for (int rank = 0; rank < comm->world; rank++) {
        if (step % steps == 0)
            wk_sampler_epoch(&f->samplers[rank], (uint32_t)(step / steps));
        loss += reference_rank(f, rank, step % steps, (uint32_t)step) / comm->world;
    }
    reference_update(f);
    return loss;
}

/* ---- The strategy ---- */

static double ddp_step(struct rig *r, struct wk_sampler *s, int step)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_pass pass = rig_pass(r, true, SEED, (uint32_t)step);
    double loss;
    int rows;
    const int32_t *ids;

    if (step % s->steps == 0)
        wk_sampler_epoch(s, (uint32_t)(step / s->steps));
    ids = wk_sampler_batch(s, step % s->steps, &rows);
    wk_batch_gather(&r->batch, &r->data, ids, rows, r->dev);
    assert_int_equal(wk_strategy_begin(r->strategy, true, &err), 0);
    assert_int_equal(r->kind->forward(r->model, &pass, &r->batch, &err), 0);
    r->kind->loss(r->model, &pass, &r->batch, r->loss);
    assert_int_equal(r->kind->backward(r->model, &pass, &r->batch, &err), 0);
    assert_int_equal(wk_strategy_update(r->strategy, LR, &err), 0);
    loss = (double)*(wk_real *)r->loss.data / comm->world;
    assert_int_equal(wk_comm_sum(comm, &loss, 1, &err), 0);
    return loss;
}

static void test_losses_are_those_of_the_definition(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_comm *alone = wk_comm_self.open(&err);
    struct reference f = { 0 };
    struct wk_sampler s;
    struct rig r;
    double worst = 0;

    (void)state;
    reference_open(&f, alone);
    rig_open(&r, "ddp", comm, BATCH, true);
    wk_sampler_open(&s, SAMPLES, comm->rank, comm->world, BATCH, SEED);
    for (int step = 0; step < STEPS; step++) {
        double found = ddp_step(&r, &s, step), wanted = reference_step(&f, step);

        worst = fmax(worst, fabs(found - wanted) / wanted);
    }
    if (comm->rank == 0)
        print_message("%d ranks, %d steps: %.2g\n", comm->world, STEPS, worst);
    assert_true(worst < PICK(1e-12, 1e-5));
    wk_sampler_close(&s);
    rig_close(&r);
    reference_close(&f);
    wk_comm_close(alone);
}

/* ---- What was sent and stored ---- */

static void test_bytes_are_those_of_the_formulas(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_expected expected;
    struct wk_sampler s;
    struct rig r;
    const double model = 26602 * sizeof(wk_real), stats = 128 * sizeof(wk_real);
    const double others = (comm->world - 1.0) / comm->world;
    const struct wk_comm_count *reduce = &comm->counts[WK_PLANE_TRAIN][WK_COLL_ALL_REDUCE];
    const struct wk_comm_count *cast = &comm->counts[WK_PLANE_TRAIN][WK_COLL_BROADCAST];

    (void)state;
    memset(comm->counts, 0, sizeof comm->counts);
    rig_open(&r, "ddp", comm, BATCH, true);
    wk_sampler_open(&s, SAMPLES, comm->rank, comm->world, BATCH, SEED);
    for (int step = 0; step < 5; step++)
        ddp_step(&r, &s, step);
    assert_int_equal(wk_strategy_begin(r.strategy, false, &err), 0);
    wk_strategy_expect(r.strategy, &expected);
    assert_int_equal(reduce->calls, 5); /* one bucket: the model is smaller than 1 MiB */
    assert_true(reduce->payload_bytes == 5 * model);
    assert_true(fabs(reduce->ring_bytes - 5 * 2 * others * model) < 1e-6);
    assert_true(fabs(reduce->ring_bytes - expected.ring_bytes[WK_COLL_ALL_REDUCE]) < 1e-6);
    assert_int_equal(cast->calls,
                     2 + 6); /* parameters and buffers at the start; buffers before each forward */
    assert_true(cast->payload_bytes == model + 7 * stats);
    assert_true(cast->ring_bytes == expected.ring_bytes[WK_COLL_BROADCAST]);
    assert_true(r.dev->peak_bytes[WK_MEM_PARAMETERS] == model + stats);
    for (int i = 0; i < WK_MEM_CLASSES; i++)
        if (expected.mem_bytes[i] >= 0)
            assert_true((double)r.dev->peak_bytes[i] == expected.mem_bytes[i]);
    wk_sampler_close(&s);
    rig_close(&r);
}

/* Small caps cut the model in pieces that are sent in order; the sums are the same. */
static void test_buckets_change_no_loss(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    double losses[2][6];

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct wk_strategy_options caps = { .bucket_mib = 0.02,
                                            .first_bucket_mib = 0.005 }; /* MiB */
        struct wk_sampler s;
        struct rig r;

        rig_open(&r, "ddp", comm, BATCH, true);
        if (k == 1) {
            wk_strategy_close(r.strategy);
            r.strategy = wk_strategy_open(wk_strategy_get("ddp", comm->world, &err), r.dev, comm,
                                          r.kind, &r.optim, &caps, SEED, &err);
            assert_non_null(r.strategy);
            assert_int_equal(wk_strategy_start(r.strategy, &err), 0);
        }
        memset(comm->counts, 0, sizeof comm->counts);
        wk_sampler_open(&s, SAMPLES, comm->rank, comm->world, BATCH, SEED);
        for (int step = 0; step < 6; step++)
            losses[k][step] = ddp_step(&r, &s, step);
        /* One bucket in the first step. Then fc2 and fc1 (9,640 B in fp32) fill the first; w_hh the second; w_ih is the rest. */
        assert_int_equal(comm->counts[WK_PLANE_TRAIN][WK_COLL_ALL_REDUCE].calls,
                         k == 0 ? 6 : 1 + 5 * 3);
        assert_true(comm->counts[WK_PLANE_TRAIN][WK_COLL_ALL_REDUCE].payload_bytes ==
                    6 * 26602 * sizeof(wk_real));
        wk_sampler_close(&s);
        rig_close(&r);
    }
    for (int step = 0; step < 6; step++)
        assert_true(fabs(losses[0][step] - losses[1][step]) < PICK(1e-12, 1e-5));
}

/* Whatever a rank starts from, rank 0 decides. */
static void test_all_ranks_start_from_rank_0(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_strategy_options caps = { .bucket_mib = 25, .first_bucket_mib = 1 };
    struct rig r;
    wk_real *all = calloc((size_t)comm->world, sizeof *all);

    (void)state;
    rig_open(&r, "ddp", comm, BATCH, true);
    wk_strategy_close(r.strategy);
    r.strategy = wk_strategy_open(wk_strategy_get("ddp", comm->world, &err), r.dev, comm, r.kind,
                                  &r.optim, &caps, 100 + (uint64_t)comm->rank, &err);
    assert_non_null(r.strategy);
    assert_int_equal(wk_strategy_start(r.strategy, &err), 0);
    all[comm->rank] = ((wk_real *)r.strategy->params[0].value.data)[5];
    assert_int_equal(wk_comm_gather(comm, all, sizeof *all, &err), 0);
    for (int rank = 1; rank < comm->world; rank++)
        assert_true(all[rank] == all[0]);
    free(all);
    rig_close(&r);
}

/* ---- PyTorch's DistributedDataParallel: golden_ddp.py made the numbers ---- */

/* The formula of set_weights in golden_rnn.py; other ranks than 0 start elsewhere, which must not show. */
static void set_golden_weights(struct rig *r)
{
    struct hg_err err = HG_ERR_INIT;

    for (int p = 0; p < r->kind->n_params; p++) {
        bool ones = strcmp(r->kind->params[p].name, "batchnorm.weight") == 0;
        wk_real *w = r->strategy->masters[p].data;

        for (size_t i = 0; i < r->strategy->masters[p].n; i++)
            w[i] = (wk_real)(sin(0.37 * (double)(i + 1) + p) * (ones ? 0.1 : 0.15) + ones +
                             comm->rank);
    }
    assert_int_equal(r->strategy->ops->start(r->strategy, &err), 0);
}

/* Bytes of the buckets of one step, as PyTorch counts them in fp64. */
static void check_buckets(const json_t *wanted, long step)
{
    size_t n = 0;

    for (size_t i = 0; i < comm->records.n; i++) {
        const struct wk_comm_record *r = &comm->records.items[i];

        if (r->step != step || r->coll != WK_COLL_ALL_REDUCE || r->plane != WK_PLANE_TRAIN)
            continue;
        assert_int_equal(r->n * sizeof(double), json_integer_value(json_array_get(wanted, n)));
        n++;
    }
    assert_int_equal(n, json_array_size(wanted));
}

static void follow_pytorch(const json_t *golden, const json_t *c)
{
    struct hg_err err = HG_ERR_INIT;
    int rows = (int)json_integer_value(json_object_get(golden, "rows"));
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(golden, "seed"));
    const json_t *losses = json_object_get(c, "losses"), *value;
    /* fp64 has twice the bytes of fp32: a cap holds as many elements in both */
    double cap = json_number_value(json_object_get(c, "cap_mib")) * PICK(1, 0.5);
    struct wk_strategy_options caps = { .bucket_mib = cap, .first_bucket_mib = cap };
    size_t step;
    struct rig r;

    rig_open(&r, "ddp", comm, rows, true);
    wk_strategy_close(r.strategy);
    r.strategy = wk_strategy_open(wk_strategy_get("ddp", comm->world, &err), r.dev, comm, r.kind,
                                  &r.optim, &caps, SEED, &err);
    assert_non_null(r.strategy);
    assert_int_equal(wk_strategy_start(r.strategy, &err), 0);
    set_golden_weights(&r);
    comm->records.n = 0;
    json_array_foreach(losses, step, value) {
        struct wk_pass pass = rig_pass(&r, true, seed, (uint32_t)step);
        double loss;

        assert_int_equal(wk_strategy_begin(r.strategy, true, &err), 0);
        loss = rig_forward(&r, &pass, ((int)step * comm->world + comm->rank) * rows, rows) /
               comm->world;
        assert_int_equal(r.kind->backward(r.model, &pass, &r.batch, &err), 0);
        assert_int_equal(wk_strategy_update(r.strategy, 1.0, &err), 0);
        assert_int_equal(wk_comm_sum(comm, &loss, 1, &err), 0);
        assert_true(fabs(loss / json_number_value(value) - 1) < PICK(1e-12, 1e-5));
        check_buckets(json_object_get(c, step ? "rebuilt_bytes" : "first_bytes"), (long)step);
    }
    rig_close(&r);
}

static void test_losses_and_buckets_are_pytorchs(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    const json_t *c;
    size_t i;
    int found = 0;

    (void)state;
    assert_int_equal(hg_json_load(HPCGRID_SOURCE_DIR "/tests/worker/golden_ddp.json", &doc, &err),
                     0);
    comm->recording = true;
    json_array_foreach(json_object_get(doc.root, "cases"), i, c) {
        if (json_integer_value(json_object_get(c, "world")) != comm->world)
            continue;
        follow_pytorch(doc.root, c);
        found++;
    }
    comm->recording = false;
    assert_int_equal(found, comm->world < 4 ? 2 : 0);
    hg_json_doc_done(&doc);
}

/* From a run of PyTorch's DDP with BERT-base in fp32: 13 buckets from the second step on. */
static void test_bert_base_has_pytorchs_buckets(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    const struct wk_strategy_options options = wk_strategy_defaults("ddp", false);
    const struct wk_optim optim = { .kind = wk_optim_get("adamw", &err) };
    const struct wk_model_kind *bert = wk_model_get("bert-base", &err);
    const struct wk_strategy_shape shape = {
        .model = bert, .optim = &optim, .options = &options, .world = 4
    };
    const struct wk_work work = { .starts = 1, .steps = 3, .passes = 3 };
    struct wk_expected e = { .calls = { 0 } };

    (void)state;
    wk_strategy_get("ddp", 4, &err)->ops->expect(&shape, &work, &e);
    if (sizeof(wk_real) == 4) {
        assert_true(e.calls[WK_COLL_ALL_REDUCE] == 1 + 2 * 13);
        assert_true(e.payload_bytes[WK_COLL_ALL_REDUCE] == 3 * 435572744.0);
        assert_true(e.ring_bytes[WK_COLL_ALL_REDUCE] == 3 * 653359116.0);
    }
    wk_model_free(bert);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses_are_those_of_the_definition),
        cmocka_unit_test(test_bytes_are_those_of_the_formulas),
        cmocka_unit_test(test_buckets_change_no_loss),
        cmocka_unit_test(test_all_ranks_start_from_rank_0),
        cmocka_unit_test(test_losses_and_buckets_are_pytorchs),
        cmocka_unit_test(test_bert_base_has_pytorchs_buckets),
    };
    struct hg_err err = HG_ERR_INIT;
    int failed;

    comm = wk_comm_open(&err);
    if (!comm) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed)
        comm->kind->abort(comm, 1);
    wk_comm_close(comm);
    return failed;
}
