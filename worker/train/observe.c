/* SPDX-License-Identifier: Apache-2.0 */
#include "train/observe.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/vec.h"
#include "profile/profiler.h"
#include "profile/tfevents.h"
#include "profile/trace.h"
#include "train/training.h"

struct wk_observer {
    struct wk_profiler *profiler;
    struct wk_tfevents *events;
    struct {
        double *items; /* learning rates of steps whose losses are not known yet */
        size_t n, cap;
    } rates;
};

static const char *folder_of(const struct wk_train *t)
{
    return t->config->folder ? t->config->folder : ".";
}

/* Repetitions of one cell share a row of the HParams page. */
static void name_group(const json_t *given, char out[static 9])
{
    json_t *same = json_copy((json_t *)(uintptr_t)given);
    char *text;

    json_object_del(same, "repeat");
    text = json_dumps(same, JSON_SORT_KEYS | JSON_COMPACT);
    snprintf(out, 9, "%08x", hg_crc32c(0, text, strlen(text)));
    free(text);
    json_decref(same);
}

static int open_events(struct wk_train *t, struct wk_observer *o, struct hg_err *err)
{
    static const char *const answers[] = { "train/loss", "eval/f1", "eval/em", NULL };
    static const char *const classes[] = { "train/loss", "eval/accuracy", "eval/loss", NULL };
    double now = hg_clock_wall_s();
    char group[9];

    if (!t->config->tensorboard || t->comm->rank != 0)
        return 0;
    o->events = wk_tfevents_open(folder_of(t), now, err);
    if (!o->events)
        return -1;
    name_group(t->config->given, group);
    wk_tfevents_settings(o->events, t->config->given, t->kind->reads_tokens ? answers : classes,
                         group, now);
    return 0;
}

/* Each rank writes its own trace; the result, rank 0's, names that one. */
static char *trace_path(const struct wk_train *t)
{
    return hg_str_printf("%s/trace.%d.json.gz", folder_of(t), t->comm->rank);
}

static struct wk_schedule schedule_of(const struct wk_config *c)
{
    return (struct wk_schedule){ .skip = (long)c->trace_skip,
                                 .wait = (long)c->trace_wait,
                                 .warmup = (long)c->trace_warmup,
                                 .active = (long)c->trace_active,
                                 .repeat = (long)c->trace_repeat };
}

void wk_observe_check(const struct wk_train *t)
{
    struct wk_schedule s = schedule_of(t->config);
    long first = s.skip + s.wait + s.warmup, round = s.wait + s.warmup + s.active;
    long last = s.repeat ? s.skip + s.repeat * round : first + s.active;

    if (!t->config->trace || t->total_steps >= last)
        return;
    if (t->total_steps <= first)
        hg_warn("the trace will be empty: it begins with step %ld, the training has %ld", first + 1,
                t->total_steps);
    else
        hg_warn("the trace will not be complete: it ends with step %ld, the training has %ld", last,
                t->total_steps);
}

static int open_profiler(struct wk_train *t, struct wk_observer *o, struct hg_err *err)
{
    const struct wk_config *c = t->config;
    struct wk_schedule schedule = schedule_of(c);
    char *path;
    int rc;

    if (!c->trace)
        return 0;
    path = trace_path(t);
    rc = hg_fs_check_output(path, err);
    free(path);
    if (rc < 0)
        return hg_err_wrap(err, "trace");
    if (t->comm->rank == 0)
        wk_observe_check(t);
    o->profiler = wk_profiler_create(t->dev, t->comm, &schedule);
    return 0;
}

int wk_observe_open(struct wk_train *t, struct hg_err *err)
{
    struct wk_observer *o = t->observer = hg_alloc_zeroed(1, sizeof *o);

    return open_events(t, o, err) < 0 || open_profiler(t, o, err) < 0 ? -1 : 0;
}

void wk_observe_step(struct wk_train *t, double lr)
{
    struct wk_observer *o = t->observer;

    if (!o)
        return;
    wk_profiler_step(o->profiler, t->steps_done);
    if (o->events)
        *HG_VEC_PUSH(&o->rates) = lr;
}

void wk_observe_losses(struct wk_train *t, int n, long last)
{
    const struct wk_result *r = t->result;
    struct wk_observer *o = t->observer;
    double wall_s = hg_clock_wall_s();

    if (!o || !o->events)
        return;
    for (size_t i = r->step_s.n; i + (size_t)n > r->step_s.n && i > 0; i--)
        wall_s -= r->step_s.items[i - 1];
    for (int i = 0; i < n; i++) {
        size_t at = r->step_loss.n - (size_t)n + (size_t)i;
        long step = last - n + 1 + i;

        if (r->step_s.n >= (size_t)n)
            wall_s += r->step_s.items[r->step_s.n - (size_t)n + (size_t)i];
        wk_tfevents_scalar(o->events, "train/loss", step, wall_s, r->step_loss.items[at]);
        if ((size_t)i < o->rates.n)
            wk_tfevents_scalar(o->events, "train/lr", step, wall_s, o->rates.items[i]);
    }
    o->rates.n = 0;
    wk_tfevents_flush(o->events);
}

void wk_observe_epoch(struct wk_train *t)
{
    const struct wk_result *r = t->result;
    double epoch_s = r->epoch_s.items[r->epoch_s.n - 1], now = hg_clock_wall_s();

    if (!t->observer || !t->observer->events)
        return;
    wk_tfevents_scalar(t->observer->events, "train/epoch_loss", t->steps_done, now,
                       r->epoch_loss.items[r->epoch_loss.n - 1]);
    wk_tfevents_scalar(t->observer->events, "train/epoch_s", t->steps_done, now, epoch_s);
    wk_tfevents_flush(t->observer->events);
}

static void write_evaluation(const struct wk_train *t, struct wk_tfevents *events)
{
    const struct wk_result *r = t->result;
    double now = hg_clock_wall_s();

    if (!r->evaluated)
        return;
    wk_tfevents_scalar(events, "eval/loss", t->steps_done, now, r->eval_loss);
    if (r->answers) {
        wk_tfevents_scalar(events, "eval/em", t->steps_done, now, r->exact);
        wk_tfevents_scalar(events, "eval/f1", t->steps_done, now, r->f1);
    } else {
        wk_tfevents_scalar(events, "eval/accuracy", t->steps_done, now, r->accuracy);
    }
}

static int save_trace(struct wk_train *t, struct hg_err *err)
{
    const struct wk_profiler *p = t->observer->profiler;
    char *path;
    int rc;

    if (!wk_profiler_steps(p))
        return 0;
    snprintf(t->result->trace, sizeof t->result->trace, "trace.%d.json.gz", t->comm->rank);
    path = trace_path(t);
    rc = wk_profiler_save(p, path, err);
    t->result->profile = wk_profiler_table(p);
    free(path);
    return rc;
}

int wk_observe_close(struct wk_train *t, struct hg_err *err)
{
    struct wk_observer *o = t->observer;
    struct hg_err own = HG_ERR_INIT;
    bool failed = err->code;

    if (!o)
        return 0;
    if (o->profiler) {
        wk_profiler_step(o->profiler, t->steps_done);
        save_trace(t, &own);
    }
    if (o->events) {
        write_evaluation(t, o->events);
        wk_tfevents_end(o->events, !failed, hg_clock_wall_s());
    }
    wk_tfevents_close(o->events, &own);
    wk_profiler_free(o->profiler);
    HG_VEC_DONE(&o->rates);
    free(o);
    t->observer = NULL;
    if (own.code && !failed)
        *err = own;
    return err->code ? -1 : 0;
}
