/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "train/rate.h"
#include "train/train.h"

static volatile sig_atomic_t stop_signal;

void wk_train_signal(int number)
{
    stop_signal = number;
}

int wk_train_stopped(void)
{
    return stop_signal;
}

static int push(void *vec, double value, struct hg_err *err)
{
    struct {
        double *items;
        size_t n, cap;
    } *v = vec;
    double *slot = HG_VEC_PUSH(v);

    if (!slot)
        return hg_err_oom(err);
    *slot = value;
    return 0;
}

static struct wk_pass pass_of(const struct wk_train *t, bool training)
{
    return (struct wk_pass){ .dev = t->dev,
                             .params = t->strategy->params,
                             .buffers = t->strategy->buffers,
                             .training = training,
                             .seed = (uint64_t)t->config->seed,
                             .step = (uint32_t)t->steps_done,
                             .strategy = t->strategy };
}

static int before_step(struct wk_train *t, bool training, struct hg_err *err)
{
    const struct wk_strategy_kind *kind = t->strategy->kind;

    return kind->before_step ? kind->before_step(t->strategy, training, err) : 0;
}

/* ---- One step, one epoch ---- */

static int train_step(struct wk_train *t, int step, double lr, struct hg_err *err)
{
    struct wk_pass pass = pass_of(t, true);
    int rows;
    const int32_t *ids = wk_sampler_batch(&t->sampler, step, &rows);

    wk_batch_gather(&t->batch, &t->train, ids, rows, t->dev);
    if (before_step(t, true, err) < 0 || t->kind->forward(t->model, &pass, &t->batch, err) < 0)
        return -1;
    t->kind->loss(t->model, &pass, &t->batch, wk_span_part(t->losses, (size_t)step, 1));
    if (t->kind->backward(t->model, &pass, &t->batch, err) < 0 ||
        t->strategy->kind->update(t->strategy, lr, err) < 0)
        return -1;
    t->steps_done++;
    return 0;
}

/* Losses of the epoch's steps: from the device, averaged over the ranks, into the result. */
static int collect_losses(struct wk_train *t, int steps, struct hg_err *err)
{
    wk_real *host = malloc((size_t)steps * sizeof *host);
    double *mean = malloc((size_t)steps * sizeof *mean), sum = 0;
    int rc = -1;

    if (!host || !mean) {
        hg_err_oom(err);
        goto out;
    }
    t->dev->backend->download(t->dev, host, wk_span_part(t->losses, 0, (size_t)steps));
    for (int i = 0; i < steps; i++)
        mean[i] = (double)host[i] / t->comm->world;
    if (wk_comm_sum(t->comm, mean, (size_t)steps, err) < 0)
        goto out;
    for (int i = 0; i < steps; i++) {
        sum += mean[i];
        t->result->diverged |= !isfinite(mean[i]);
        if (push(&t->result->step_loss, mean[i], err) < 0)
            goto out;
    }
    rc = push(&t->result->epoch_loss, sum / steps, err);
out:
    free(host);
    free(mean);
    return rc;
}

static int stopped(const struct wk_train *t, struct hg_err *err)
{
    return hg_err_set(err, HG_E_ENV, "stopped by signal %d (%s) after step %ld", (int)stop_signal,
                      strsignal(stop_signal), t->steps_done);
}

/* Samples that the first steps of an epoch train, without the repetitions that fill up the ranks.
 */
static double real_samples(const struct wk_train *t, int steps)
{
    double seen = (double)steps * t->sampler.batch * t->sampler.world;

    return seen < t->sampler.n ? seen : t->sampler.n;
}

static int run_epoch(struct wk_train *t, long long epoch, int steps, struct hg_err *err)
{
    double lr = wk_rate_step(t->config->lr, t->config->gamma, epoch);
    double start = hg_clock_mono_s(), before = start, now;

    wk_sampler_epoch(&t->sampler, (uint32_t)epoch);
    for (int step = 0; step < steps; step++) {
        if (stop_signal)
            return stopped(t, err);
        if (train_step(t, step, lr, err) < 0)
            return hg_err_wrap(err, "epoch %lld, step %d", epoch + 1, step + 1);
        now = hg_clock_mono_s();
        if (push(&t->result->step_s, now - before, err) < 0)
            return -1;
        before = now;
    }
    if (t->dev->backend->sync(t->dev, err) < 0)
        return -1;
    t->result->trained_samples += real_samples(t, steps);
    if (push(&t->result->epoch_s, hg_clock_mono_s() - start, err) < 0)
        return -1;
    return collect_losses(t, steps, err);
}

static void say_epoch(const struct wk_train *t, long long epoch)
{
    const struct wk_result *r = t->result;

    if (t->comm->rank == 0)
        hg_info("epoch %lld of %lld: loss %.4f, %.2f s", epoch + 1, t->config->epochs,
                r->epoch_loss.items[r->epoch_loss.n - 1], r->epoch_s.items[r->epoch_s.n - 1]);
}

int wk_train_run(struct wk_train *t, struct hg_err *err)
{
    double start;

    wk_comm_barrier(t->comm);
    start = hg_clock_mono_s();
    t->result->init_s = start - t->result->start_mono_s;
    for (long long epoch = 0; epoch < t->config->epochs; epoch++) {
        long left = t->config->steps ? (long)t->config->steps - t->steps_done : t->sampler.steps;

        if (left <= 0)
            break;
        if (run_epoch(t, epoch, left < t->sampler.steps ? (int)left : t->sampler.steps, err) < 0)
            return -1;
        say_epoch(t, epoch);
    }
    wk_comm_barrier(t->comm);
    t->result->train_s = hg_clock_mono_s() - start;
    return 0;
}

/* ---- Evaluation ---- */

static int score_batch(struct wk_train *t, const int32_t *ids, int rows, struct wk_span out,
                       double sums[2], struct hg_err *err)
{
    struct wk_pass pass = pass_of(t, false);
    wk_real host[2];

    wk_batch_gather(&t->eval_batch, &t->test, ids, rows, t->dev);
    if (t->kind->forward(t->model, &pass, &t->eval_batch, err) < 0)
        return -1;
    t->kind->score(t->model, &pass, &t->eval_batch, out);
    t->dev->backend->download(t->dev, host, out);
    sums[0] += (double)host[0];
    sums[1] += (double)host[1];
    return t->dev->backend->sync(t->dev, err);
}

int wk_train_eval(struct wk_train *t, struct hg_err *err)
{
    int room = (int)(t->eval_batch.sample.n), rc = -1;
    int32_t *ids = malloc((size_t)room * sizeof *ids);
    struct wk_span out = WK_NONE;
    double sums[2] = { 0 }, start = hg_clock_mono_s();

    if (!ids) {
        hg_err_oom(err);
        goto out;
    }
    if (wk_dev_alloc(t->dev, WK_MEM_ACTIVATIONS, WK_REAL, 2, &out, err) < 0 ||
        before_step(t, false, err) < 0)
        goto out;
    for (int at = t->comm->rank; at < t->test.n;) {
        int rows = 0;

        for (; rows < room && at < t->test.n; at += t->comm->world)
            ids[rows++] = at;
        if (score_batch(t, ids, rows, out, sums, err) < 0)
            goto out;
    }
    if (wk_comm_sum(t->comm, sums, 2, err) < 0)
        goto out;
    t->evals_done++;
    t->result->evaluated = true;
    t->result->eval_loss = sums[0] / t->test.n;
    t->result->accuracy = sums[1] / t->test.n;
    t->result->eval_s = hg_clock_mono_s() - start;
    rc = 0;
out:
    wk_dev_free(t->dev, WK_MEM_ACTIVATIONS, &out);
    free(ids);
    return rc;
}
