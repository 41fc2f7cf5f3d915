/* SPDX-License-Identifier: Apache-2.0 */
#include "train/loop.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "profile/profiler.h"
#include "train/checkpoint.h"
#include "train/observe.h"

static volatile sig_atomic_t stop_signal;

void wk_train_signal(int number)
{
    stop_signal = number;
}

int wk_train_stopped(void)
{
    return stop_signal;
}

static struct wk_span loss_scale(const struct wk_train *t)
{
    return t->dev->precision == WK_MIXED_FP16
               ? wk_span_part(t->strategy->control, WK_CONTROL_LOSS_SCALE, 1)
               : WK_NONE;
}

static struct wk_pass pass_of(const struct wk_train *t, bool training)
{
    return (struct wk_pass){ .dev = t->dev,
                             .params = t->strategy->params,
                             .buffers = t->strategy->buffers,
                             .training = training,
                             .seed = (uint64_t)t->config->seed,
                             .step = (uint32_t)t->steps_done,
                             .loss_scale = loss_scale(t),
                             .hooks = &t->strategy->hooks };
}

/* ---- One step, one epoch ---- */

/* Rows of one pass of an optimizer step, and of all its passes. */
static int pass_rows(const struct wk_train *t, int pass)
{
    int rows;

    wk_sampler_batch(&t->sampler, pass, &rows);
    return rows;
}

static int step_first(const struct wk_train *t, int step)
{
    return step * (int)t->config->accumulate;
}

static int step_end(const struct wk_train *t, int step)
{
    int end = step_first(t, step + 1);

    return end < t->sampler.steps ? end : t->sampler.steps;
}

static int step_rows(const struct wk_train *t, int step)
{
    int rows = 0;

    for (int pass = step_first(t, step); pass < step_end(t, step); pass++)
        rows += pass_rows(t, pass);
    return rows;
}

/* ---- What the time goes to ---- */

static void take_lap(struct wk_train *t, struct wk_lap lap)
{
    t->step_s += lap.seconds;
    if (lap.what == WK_MARK_DATA)
        t->result->data_s += lap.seconds;
    if (lap.what == WK_MARK_STEP) {
        *HG_VEC_PUSH(&t->result->step_s) = t->step_s;
        t->step_s = 0;
    }
}

/* What has ended on a device that measures its own times. */
static void take_laps(struct wk_train *t)
{
    struct wk_lap laps[8];
    int n;

    do {
        n = t->dev->backend->times(t->dev, laps, (int)(sizeof laps / sizeof *laps));
        for (int i = 0; i < n; i++)
            take_lap(t, laps[i]);
    } while (n > 0);
}

/* The time since the last mark went to this. A device that runs asynchronously measures its own times. */
static void mark(struct wk_train *t, enum wk_mark what)
{
    double now = hg_clock_mono_s(), since = now - t->marked_s;

    t->marked_s = now;
    if (what == WK_MARK_BEGIN)
        t->step_s = 0;
    if (t->dev->backend->mark) {
        t->dev->backend->mark(t->dev, what);
        take_laps(t);
    } else if (what != WK_MARK_BEGIN) {
        take_lap(t, (struct wk_lap){ what, since });
    }
}

/* ---- A pass ---- */

/* The samples of a pass: every rank works out its own, unless one rank tells the others. */
static const int32_t *choose(struct wk_train *t, int pass, int *rows, struct hg_err *err)
{
    const struct wk_sampler *s = &t->sampler;
    const int32_t *ids = wk_sampler_batch(s, pass, rows);
    int32_t *all = t->scattered, *own;

    if (!t->strategy->ops->scatter)
        return ids;
    own = all + (size_t)s->world * (size_t)s->batch;
    for (int k = 0; k < s->world * *rows; k++)
        all[k] = wk_sampler_id(s, k / *rows, pass * s->batch + k % *rows);
    t->strategy->work.rows += *rows;
    return t->strategy->ops->scatter(t->strategy, all, *rows, own, err) == 0 ? own : NULL;
}

/* The batch of a pass; NULL with err set when ranks fail. */
static const struct wk_batch *gather(struct wk_train *t, int pass, struct hg_err *err)
{
    int rows;
    const int32_t *ids = choose(t, pass, &rows, err);
    bool tokens = t->kind->reads_tokens;

    if (!ids)
        return NULL;
    mark(t, WK_MARK_WORK);
    wk_profiler_begin(t->dev->profiler, WK_SPAN_PHASE, "data");
    if (tokens)
        wk_qa_gather(&t->qa, ids, rows, t->dev);
    else
        wk_batch_gather(&t->batch, &t->train, ids, rows, t->dev);
    wk_profiler_end(t->dev->profiler);
    mark(t, WK_MARK_DATA);
    return tokens ? &t->qa.batch.batch : &t->batch;
}

static int update(struct wk_train *t, double lr, struct hg_err *err)
{
    int rc;

    wk_profiler_begin(t->dev->profiler, WK_SPAN_PHASE, "update");
    rc = wk_strategy_update(t->strategy, lr, err);
    wk_profiler_end(t->dev->profiler);
    return rc;
}

/* Forward and backward of one batch; share is its part of the step's loss. */
static int train_pass(struct wk_train *t, const struct wk_batch *batch, double share,
                      struct hg_err *err)
{
    struct wk_pass pass = pass_of(t, true);
    struct wk_strategy *s = t->strategy;

    pass.share = s->share == 1 ? share : s->share * (share > 0 ? share : 1);
    if (t->kind->forward(t->model, &pass, batch, err) < 0)
        return -1;
    t->kind->loss(t->model, &pass, batch, t->loss);
    if (s->ops->after_loss && s->ops->after_loss(s, t->loss, err) < 0)
        return -1;
    return t->kind->backward(t->model, &pass, batch, err);
}

static void keep_loss(struct wk_train *t, int pass)
{
    t->dev->backend->convert(t->dev, wk_span_part(t->losses, (size_t)pass, 1), t->loss);
}

/* A step of several passes. */
static int train_passes(struct wk_train *t, int step, double lr, struct hg_err *err)
{
    int first = step_first(t, step), end = step_end(t, step);
    const struct wk_batch *batch;
    double rows = step_rows(t, step);

    if (wk_strategy_begin(t->strategy, true, err) < 0)
        return -1;
    for (int pass = first; pass < end; pass++) {
        t->strategy->partial = pass + 1 < end;
        batch = gather(t, pass, err);
        if (!batch || train_pass(t, batch, pass_rows(t, pass) / rows, err) < 0)
            return -1;
        keep_loss(t, pass);
    }
    return update(t, lr, err);
}

/* A step of one pass: nothing between its ops is anything else's. */
static int train_whole(struct wk_train *t, const struct wk_batch *batch, double lr,
                       struct hg_err *err)
{
    t->strategy->partial = false;
    if (wk_strategy_begin(t->strategy, true, err) < 0 || train_pass(t, batch, 0, err) < 0)
        return -1;
    return update(t, lr, err);
}

/* What a device that launches steps as a whole knows them by. */
static struct wk_step step_of(const struct wk_train *t, const struct wk_batch *batch, double lr)
{
    struct wk_step s = { .number = (uint32_t)t->steps_done,
                         .lr = lr,
                         .update = t->strategy->updates + 1,
                         .epoch = (int)t->result->epoch_s.n };

    if (!batch)
        return s;
    s.repeats = t->comm->world == 1 && strcmp(t->strategy->kind->name, "single") == 0;
    s.key[0] = (uint64_t)batch->rows;
    s.key[1] = (uint64_t)batch->packing.rows;
    s.key[2] = (uint64_t)batch->packing.longest;
    return s;
}

/* One pass, which the device may know already. */
static int train_recorded(struct wk_train *t, int pass, double lr, struct hg_err *err)
{
    const struct wk_backend *ops = t->dev->backend;
    const struct wk_batch *batch = gather(t, pass, err);
    struct wk_step s = step_of(t, batch, lr);

    if (!batch)
        return -1;
    if (!ops->step_begin || ops->step_begin(t->dev, &s)) {
        if (train_whole(t, batch, lr, err) < 0)
            return -1;
        if (ops->step_end && ops->step_end(t->dev)) {
            wk_strategy_count_step(t->strategy, -1);
            if (train_whole(t, batch, lr, err) < 0)
                return -1;
        }
    } else {
        wk_strategy_count_step(t->strategy, 1);
    }
    keep_loss(t, pass);
    return 0;
}

static int train_step(struct wk_train *t, int step, double lr, struct hg_err *err)
{
    const struct wk_backend *ops = t->dev->backend;
    int first = step_first(t, step);

    wk_comm_phase(t->comm, WK_PHASE_STEP, t->steps_done + 1);
    t->strategy->lr = lr;
    if (step_end(t, step) - first == 1) {
        if (train_recorded(t, first, lr, err) < 0)
            return -1;
    } else {
        struct wk_step s = step_of(t, NULL, lr);

        if (ops->step_begin)
            ops->step_begin(t->dev, &s);
        if (train_passes(t, step, lr, err) < 0)
            return -1;
        if (ops->step_end)
            ops->step_end(t->dev);
    }
    t->steps_done++;
    return 0;
}

/* ---- After steps ---- */

/* Wait for the device; all its steps have ended then. */
static int sync_steps(struct wk_train *t, struct hg_err *err)
{
    if (t->dev->backend->sync(t->dev, err) < 0)
        return -1;
    if (t->dev->backend->mark)
        take_laps(t);
    return 0;
}

/* Losses of the epoch's steps up to this one that are not there yet: from the device, averaged over the ranks, into the result. */
static int collect_losses(struct wk_train *t, int steps, struct hg_err *err)
{
    int n = steps - t->collected;
    wk_real *host = hg_alloc((size_t)t->sampler.steps * sizeof *host);
    double *mean = hg_alloc_zeroed((size_t)n + 1, sizeof *mean);
    int rc = -1;

    t->dev->backend->download(t->dev, host,
                              wk_span_part(t->losses, 0, (size_t)step_end(t, steps - 1)));
    for (int i = 0; i < n; i++) {
        int step = t->collected + i, rows = step_rows(t, step);

        for (int pass = step_first(t, step); pass < step_end(t, step); pass++)
            mean[i] += (double)host[pass] * pass_rows(t, pass) / rows / t->comm->world;
    }
    if (wk_comm_sum(t->comm, mean, (size_t)n, err) < 0)
        goto out;
    for (int i = 0; i < n; i++) {
        t->result->diverged |= !isfinite(mean[i]);
        *HG_VEC_PUSH(&t->result->step_loss) = mean[i];
    }
    wk_observe_losses(t, n, t->steps_done - 1);
    t->collected = steps;
    rc = 0;
out:
    free(host);
    free(mean);
    return rc;
}

/* The mean of the last steps' losses. */
static int finish_losses(struct wk_train *t, int steps, struct hg_err *err)
{
    const double *last;
    double sum = 0;

    if (collect_losses(t, steps, err) < 0)
        return -1;
    last = t->result->step_loss.items + t->result->step_loss.n - steps;
    for (int i = 0; i < steps; i++)
        sum += last[i];
    t->collected = 0;
    *HG_VEC_PUSH(&t->result->epoch_loss) = sum / steps;
    return 0;
}

/* ---- Stopping ---- */

#define AGREE_S 0.5 /* what a stop may cost; a sum before every step would keep all hosts in step */

/* Did a rank get a signal to stop? Ranks that keep a checkpoint agree on the step, so many steps after the last time that about AGREE_S
 * has passed: the same number on all ranks, as it is made of sums. They always ask after a checkpoint, and in the evaluation. */
static int must_stop(struct wk_train *t, bool *stop, struct hg_err *err)
{
    double now_s = hg_clock_mono_s(), sums[2] = { stop_signal ? 1 : 0, now_s - t->agree.at_s };
    double ratio;

    *stop = stop_signal;
    if (!t->checkpoint || t->comm->world == 1)
        return 0;
    *stop = false;
    if (t->steps_done < t->agree.next && t->steps_done < t->total_steps)
        return 0;
    if (wk_comm_sum(t->comm, sums, 2, err) < 0)
        return -1;
    ratio = AGREE_S * t->comm->world / (sums[1] + 1e-9);
    t->agree.steps = (long)((double)t->agree.steps * (ratio < 2 ? ratio : 2));
    if (t->agree.steps < 1)
        t->agree.steps = 1;
    t->agree.next = t->steps_done + t->agree.steps;
    t->agree.at_s = now_s;
    *stop = sums[0] > 0;
    return 0;
}

static int check_divergence(const struct wk_train *t, struct hg_err *err)
{
    if (!t->config->stop_on_nan || !t->result->diverged)
        return 0;
    hg_err_set(err, HG_E_INPUT, "the loss became NaN or infinite within the first %ld steps",
               t->steps_done);
    return hg_err_hint(err, "a smaller lr, warmup or clip_norm may help");
}

static int save_checkpoint(struct wk_train *t, int steps, double start, double epoch_start,
                           struct hg_err *err)
{
    double now = hg_clock_mono_s();

    if (sync_steps(t, err) < 0)
        return -1;
    if (steps > 0 && collect_losses(t, steps, err) < 0)
        return -1;
    if (check_divergence(t, err) < 0) /* the last good one stays */
        return -1;
    t->agree.next = t->steps_done;
    return wk_checkpoint_save(t, t->before_s + now - start, t->epoch_before_s + now - epoch_start,
                              err);
}

/* The error that ends a training before its time. */
static int stopped(struct wk_train *t, struct hg_err *err)
{
    if (!t->checkpoint)
        return hg_err_set(err, HG_E_ENV, "stopped by signal %d (%s) after step %ld",
                          (int)stop_signal, strsignal(stop_signal), t->steps_done);
    t->result->stopped_with_checkpoint = true;
    hg_err_set(err, HG_E_ENV, "stopped by a signal after step %ld, with a checkpoint in %s",
               t->steps_done, t->checkpoint);
    return hg_err_hint(err, "run it again to resume");
}

/* Samples that the first steps of an epoch train, without the repetitions that fill up the ranks.
 */
static double real_samples(const struct wk_train *t, int steps)
{
    double seen = (double)step_end(t, steps - 1) * t->sampler.batch * t->sampler.world;

    return seen < t->sampler.n ? seen : t->sampler.n;
}

/* The rate grows from 0 to lr over the first `warm` steps. After them linear falls to 0, step is PyTorch's StepLR with a step of one
 * epoch, constant keeps lr. */
static double rate_of(const struct wk_train *t, long long epoch)
{
    const struct wk_config *c = t->config;
    long warm = (long)ceil(c->warmup * (double)t->total_steps);
    bool linear = strcmp(c->schedule, "linear") == 0;
    double lr = strcmp(c->schedule, "step") == 0 ? c->lr * pow(c->gamma, (double)epoch) : c->lr;
    double left = (double)(t->total_steps - t->steps_done) /
                  (double)(t->total_steps > warm ? t->total_steps - warm : 1);

    if (t->steps_done < warm)
        return lr * (double)t->steps_done / (double)warm;
    return linear ? lr * (left > 0 ? left : 0) : lr;
}

#define LOOK_EVERY 50 /* steps after which losses are read from the device to check for NaN */

static bool must_look(const struct wk_train *t)
{
    return t->config->stop_on_nan && t->steps_done % LOOK_EVERY == 0;
}

static bool must_save(const struct wk_train *t)
{
    long every = (long)t->config->checkpoint_every;

    return t->checkpoint && every && t->steps_done % every == 0;
}

/* Steps from `step` of an epoch that has so many. */
static int run_steps(struct wk_train *t, long long epoch, int step, int steps, double start,
                     struct hg_err *err)
{
    double epoch_start = hg_clock_mono_s();
    bool stop;

    mark(t, WK_MARK_BEGIN);
    for (; step < steps; step++) {
        if (must_stop(t, &stop, err) < 0)
            return -1;
        if (stop) {
            if (t->checkpoint && save_checkpoint(t, step, start, epoch_start, err) < 0)
                return -1;
            return stopped(t, err);
        }
        wk_observe_step(t, rate_of(t, epoch));
        if (train_step(t, step, rate_of(t, epoch), err) < 0)
            return hg_err_wrap(err, "epoch %lld, step %d", epoch + 1, step + 1);
        mark(t, WK_MARK_STEP);
        if (must_look(t) && (collect_losses(t, step + 1, err) < 0 || check_divergence(t, err) < 0))
            return -1;
        if (must_save(t) && step + 1 < steps &&
            save_checkpoint(t, step + 1, start, epoch_start, err) < 0)
            return -1;
    }
    if (sync_steps(t, err) < 0)
        return -1;
    *HG_VEC_PUSH(&t->result->epoch_s) = t->epoch_before_s + hg_clock_mono_s() - epoch_start;
    t->epoch_before_s = 0;
    return finish_losses(t, steps, err);
}

/* Sequences of different lengths: no rank has to wait for the one with the longest. */
static void balance(struct wk_train *t)
{
    const struct wk_features *f = &t->qa.train;
    int32_t *lengths;

    if (!t->kind->reads_tokens || !t->config->balance || t->qa.pad_to || t->comm->world == 1)
        return;
    lengths = hg_alloc(f->n * sizeof *lengths);
    for (size_t i = 0; i < f->n; i++)
        lengths[i] = (int32_t)wk_feature_length(f, i);
    wk_sampler_balance(&t->sampler, lengths);
    free(lengths);
}

static int run_epoch(struct wk_train *t, long long epoch, double start, struct hg_err *err)
{
    long done = (long)epoch * t->epoch_steps, left = t->total_steps - done;
    int steps = (int)(left < t->epoch_steps ? left : t->epoch_steps);

    wk_sampler_epoch(&t->sampler, (uint32_t)epoch);
    balance(t);
    if (run_steps(t, epoch, (int)(t->steps_done - done), steps, start, err) < 0)
        return -1;
    t->result->trained_samples += real_samples(t, steps);
    if (check_divergence(t, err) < 0)
        return -1;
    if (!t->checkpoint || t->steps_done == t->total_steps)
        return 0;
    return save_checkpoint(t, 0, start, hg_clock_mono_s(), err);
}

static void say_epoch(const struct wk_train *t, long long epoch)
{
    const struct wk_result *r = t->result;

    if (t->comm->rank == 0)
        hg_info("epoch %lld of %lld: loss %.4f, %.2f s", epoch + 1, r->epochs,
                fabs(r->epoch_loss.items[r->epoch_loss.n - 1]), /* NaN has a sign */
                r->epoch_s.items[r->epoch_s.n - 1]);
}

/* Training begins and ends with a barrier, which the ranks leave one after the other: its time is off by as much as one takes, and by
 * what reading the clock takes. */
static double measure_noise(struct wk_comm *comm)
{
    enum { TIMES = 5 };
    double start = hg_clock_mono_s();

    for (int i = 0; i < TIMES; i++)
        wk_comm_barrier(comm);
    return (hg_clock_mono_s() - start) / TIMES;
}

int wk_train_run(struct wk_train *t, struct hg_err *err)
{
    double start;

    wk_comm_barrier(t->comm);
    t->result->noise_s = measure_noise(t->comm);
    start = hg_clock_mono_s();
    t->result->init_s = start - t->result->start_mono_s;
    while (t->steps_done < t->total_steps) {
        long long epoch = t->steps_done / t->epoch_steps;

        if (run_epoch(t, epoch, start, err) < 0)
            return -1;
        wk_observe_epoch(t);
        say_epoch(t, epoch);
    }
    wk_comm_barrier(t->comm);
    t->result->train_s = t->before_s + hg_clock_mono_s() - start;
    return 0;
}

/* ---- Evaluation ---- */

/* Before each pass. What is trained is in the checkpoint, where one is kept. */
static int go_on(void *context, struct hg_err *err)
{
    struct wk_train *t = context;
    bool stop;

    if (must_stop(t, &stop, err) < 0)
        return -1;
    return stop ? stopped(t, err) : 0;
}

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

static int eval_answers(struct wk_train *t, struct hg_err *err)
{
    struct wk_pass pass = pass_of(t, false);
    struct wk_qa_score score;
    double start = hg_clock_mono_s();

    if (wk_strategy_begin(t->strategy, false, err) < 0 ||
        wk_qa_eval(&t->qa, t->model, &pass, t->strategy, go_on, t, &score, err) < 0)
        return -1;
    t->result->evaluated = true;
    t->result->eval_loss = score.loss;
    t->result->accuracy = -1;
    t->result->answers = t->qa.scored;
    t->result->exact = score.exact;
    t->result->f1 = score.f1;
    t->result->questions = score.questions;
    t->result->eval_s = hg_clock_mono_s() - start;
    return 0;
}

static int eval_rows(struct wk_train *t, struct hg_err *err)
{
    int room = (int)(t->eval_batch.sample.n), rc = -1;
    int most = (t->test.n + t->comm->world - 1) / t->comm->world;
    int passes = (most + room - 1) / room;
    int32_t *ids = hg_alloc((size_t)room * sizeof *ids);
    struct wk_span out = WK_NONE;
    double sums[2] = { 0 }, start = hg_clock_mono_s();

    if (wk_dev_alloc(t->dev, WK_MEM_ACTIVATIONS, WK_REAL, 2, &out, err) < 0 ||
        wk_strategy_begin(t->strategy, false, err) < 0)
        goto out;
    /* every rank takes part in as many passes as the one with the most samples */
    for (int pass = 0, at = t->comm->rank; pass < passes; pass++) {
        int rows = 0;

        if (go_on(t, err) < 0)
            goto out;
        for (; rows < room && at < t->test.n; at += t->comm->world)
            ids[rows++] = at;
        if ((rows ? score_batch(t, ids, rows, out, sums, err)
                  : wk_strategy_idle_pass(t->strategy, err)) < 0)
            goto out;
    }
    if (wk_comm_sum(t->comm, sums, 2, err) < 0)
        goto out;
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

int wk_train_eval(struct wk_train *t, struct hg_err *err)
{
    wk_comm_phase(t->comm, WK_PHASE_EVAL, t->steps_done);
    return t->kind->reads_tokens ? eval_answers(t, err) : eval_rows(t, err);
}
