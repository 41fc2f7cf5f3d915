/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the worker's tests: a device, host tensors, and one model placed for training. */
#ifndef HG_TESTS_WORKER_WORKER_H
#define HG_TESTS_WORKER_WORKER_H

#include <math.h>

#include "../unit/test.h"
#include "data/dataset.h"
#include "comm/transports.h"
#include "strategies/strategy.h"

#ifdef WK_REAL_F64
#define PICK(f64, f32) (f64)
#else
#define PICK(f64, f32) (f32)
#endif

/* The cpu backend, or another one that computes in host memory: the same tests then are its own. */
#ifdef WK_TEST_BACKEND
#define ISAS_MAX 1 /* instruction sets that are tried */
#else
#define ISAS_MAX 8
#define WK_TEST_BACKEND wk_backend_cpu
#endif
extern const struct wk_backend WK_TEST_BACKEND;

static inline struct wk_dev *open_cpu_in(enum wk_precision precision, int threads)
{
    const struct wk_dev_options options = { .threads = threads, .precision = precision };
    struct hg_err err = HG_ERR_INIT;
    struct wk_dev *dev = WK_TEST_BACKEND.open(&options, &err);

    if (!dev)
        fail_msg("%s", err.text);
    return dev;
}

static inline struct wk_dev *open_cpu(int threads)
{
    return open_cpu_in(WK_FULL, threads);
}

/* Numbers in (-1, 1) that look random and are the same everywhere. */
static inline wk_real noise(uint32_t what, size_t i)
{
    uint32_t bits[4];

    wk_philox(12345, (uint32_t)i, what, 0, 0, bits);
    return (wk_real)(2 * wk_rng_unit(bits[0]) - 1);
}

static inline struct wk_span tensor(struct wk_dev *dev, size_t n)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_span s;

    if (wk_dev_alloc(dev, WK_MEM_ACTIVATIONS, WK_REAL, n, &s, &err) < 0)
        fail_msg("%s", err.text);
    return s;
}

static inline struct wk_span tensor_noise(struct wk_dev *dev, size_t n, uint32_t what, double scale)
{
    struct wk_span s = tensor(dev, n);

    for (size_t i = 0; i < n; i++)
        ((wk_real *)s.data)[i] = (wk_real)scale * noise(what, i);
    return s;
}

static inline struct wk_span tensor_ints(struct wk_dev *dev, const int32_t *values, size_t n)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_span s;

    if (wk_dev_alloc(dev, WK_MEM_ACTIVATIONS, WK_I32, n, &s, &err) < 0)
        fail_msg("%s", err.text);
    dev->backend->upload(dev, s, values);
    return s;
}

static inline void drop(struct wk_dev *dev, struct wk_span s)
{
    wk_dev_free(dev, WK_MEM_ACTIVATIONS, &s);
}

/* |a - b| / |b| over all elements. */
static inline double distance(const wk_real *a, const wk_real *b, size_t n)
{
    double difference = 0, norm = 0;

    for (size_t i = 0; i < n; i++) {
        difference += (double)(a[i] - b[i]) * (double)(a[i] - b[i]);
        norm += (double)b[i] * (double)b[i];
    }
    return norm > 0 ? sqrt(difference / norm) : sqrt(difference);
}

/* The RNN on the shipped images, alone. */
struct rig {
    struct wk_dev *dev;
    struct wk_comm *comm;
    struct wk_dataset *set;
    const struct wk_model_kind *kind;
    struct wk_model *model;
    struct wk_optim optim;
    struct wk_strategy *strategy;
    struct wk_resident data;
    struct wk_batch batch;
    struct wk_span loss;
};

static inline void rig_open_in(struct rig *r, enum wk_precision precision, const char *strategy,
                               struct wk_comm *comm, int rows, bool dropout)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_dataset_options data = { .name = "mnist-slice" };
    struct wk_model_options options = { .batch_rows = rows, .eval_rows = rows, .dropout = dropout };
    struct wk_strategy_options buckets = { .bucket_mib = 25, .first_bucket_mib = 1 };
    const struct wk_strategy_kind *kind;

    *r = (struct rig){ .comm = comm };
    r->dev = open_cpu_in(precision, 1);
    r->set = wk_dataset_open(&data, &err);
    r->kind = wk_model_get("rnn", &err);
    r->optim = (struct wk_optim){ .kind = wk_optim_get("adadelta", &err), .rho = 0.9, .eps = 1e-6 };
    kind = wk_strategy_get(strategy, comm->world, &err);
    if (!r->set || !kind || wk_resident_open(&r->data, r->set, &r->set->train, r->dev, &err) < 0 ||
        wk_batch_open(&r->batch, rows, r->set->width, r->dev, &err) < 0 ||
        !(r->model = r->kind->open(r->dev, &options, &err)) ||
        !(r->strategy =
              wk_strategy_open(kind, r->dev, comm, r->kind, &r->optim, &buckets, 1, &err)))
        fail_msg("%s", err.text);
    r->loss = tensor(r->dev, 1);
}

static inline void rig_open(struct rig *r, const char *strategy, struct wk_comm *comm, int rows,
                            bool dropout)
{
    rig_open_in(r, WK_FULL, strategy, comm, rows, dropout);
}

static inline void rig_close(struct rig *r)
{
    wk_strategy_close(r->strategy);
    r->kind->close(r->model);
    wk_batch_close(&r->batch, r->dev);
    wk_resident_close(&r->data, r->dev);
    drop(r->dev, r->loss);
    wk_dataset_free(r->set);
    r->dev->backend->close(r->dev);
}

/* Gather rows `first` to `first + rows`, and go forward; with `training` also the loss. */
static inline double rig_forward(struct rig *r, struct wk_pass *pass, int first, int rows)
{
    struct hg_err err = HG_ERR_INIT;
    int32_t ids[256];

    for (int i = 0; i < rows; i++)
        ids[i] = first + i;
    wk_batch_gather(&r->batch, &r->data, ids, rows, r->dev);
    if (r->kind->forward(r->model, pass, &r->batch, &err) < 0)
        fail_msg("%s", err.text);
    if (pass->training)
        r->kind->loss(r->model, pass, &r->batch, r->loss);
    return (double)*(wk_real *)r->loss.data;
}

static inline struct wk_pass rig_pass(struct rig *r, bool training, uint64_t seed, uint32_t step)
{
    return (struct wk_pass){ .dev = r->dev,
                             .params = r->strategy->params,
                             .buffers = r->strategy->buffers,
                             .training = training,
                             .seed = seed,
                             .step = step,
                             .strategy = r->strategy };
}

#endif
