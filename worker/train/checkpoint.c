/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/vec.h"
#include "models/safetensors.h"
#include "models/weights.h"

#define SCHEMA "hpcgrid-checkpoint/1"
#define SUFFIX ".safetensors"

/* ---- Which training it is ---- */

/* Members of a cell that do not change what is trained. */
static bool is_outside(const char *key)
{
    static const char *const keys[] = {
        "checkpoint",    "checkpoint_every", "cache",       "data", "vocab",
        "cpus_per_task", "predictions",      "time",        "mem",  "sbatch",
        "eval",          "test_batch",       "test_samples"
    };

    if (key[0] == '_')
        return true;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

/* Members that say how the work is shared out, not what is learned: another number of ranks or another strategy may go on. */
static bool is_sharing(const char *key)
{
    static const char *const keys[] = { "strategy",      "batch_size",     "accumulate", "site",
                                        "hardware",      "nodes",          "container",  "modules",
                                        "gpus_per_node", "tasks_per_node", "repeat",     "balance",
                                        "cpus_per_gpu",  "comm_timeout" };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return wk_strategy_is_option(key) && strcmp(key, "bf16_gradients") != 0 &&
           strcmp(key, "sync_batchnorm") != 0;
}

/* What is learned, canonical: two trainings with the same have the same losses, but for rounding. A new reference. */
static json_t *training_of(const struct wk_train *t)
{
    json_t *o = json_object(), *value;
    const char *key;

    json_object_foreach(t->config->given, key, value) if (!is_outside(key) && !is_sharing(key))
        json_object_set_new(o, key, json_deep_copy(value));
    json_object_set_new(o, "dataset_hash", json_string(t->result->dataset_hash));
    json_object_set_new(o, "precision", json_string(t->config->precision));
    json_object_set_new(
        o, "global_batch",
        json_integer(t->config->batch_size * t->config->accumulate * t->comm->world));
    if (t->kind->n_buffers && !t->config->sync_batchnorm) /* statistics of a rank's batch */
        json_object_set_new(o, "batch_size", json_integer(t->config->batch_size));
    return o;
}

/* All that a file in a folder is for: no two cells share one. A new reference. */
static json_t *identity_of(const struct wk_train *t)
{
    json_t *o = json_object(), *value;
    const char *key;

    json_object_foreach(t->config->given, key, value) if (!is_outside(key))
        json_object_set_new(o, key, json_deep_copy(value));
    json_object_set_new(o, "dataset_hash", json_string(t->result->dataset_hash));
    json_object_set_new(o, "world", json_integer(t->comm->world));
    json_object_set_new(o, "precision", json_string(t->config->precision));
    return o;
}

static char *identity_text(const struct wk_train *t)
{
    json_t *o = identity_of(t);
    struct hg_buf text = HG_BUF_INIT;

    hg_json_dump(o, HG_JSON_COMPACT | HG_JSON_SORT, &text);
    json_decref(o);
    return hg_buf_detach(&text);
}

/* A folder keeps a file for every training that is told to use it. */
static char *choose_file(const struct wk_train *t)
{
    const char *path = t->config->checkpoint;
    size_t n = strlen(path), suffix = strlen(SUFFIX);
    char hash[33], *text;

    if (n > suffix && strcmp(path + n - suffix, SUFFIX) == 0)
        return strdup(path);
    text = identity_text(t);
    if (!text)
        return NULL;
    hg_hash128_hex(text, strlen(text), hash);
    free(text);
    return hg_str_printf("%s/%s-%.12s" SUFFIX, path, t->config->model, hash);
}

/* Name one member in which two trainings differ. */
static int other_training(const char *path, const json_t *theirs, const json_t *ours,
                          struct hg_err *err)
{
    struct hg_buf a = HG_BUF_INIT, b = HG_BUF_INIT;
    const char *key;
    json_t *value;
    json_t *all = json_copy((json_t *)(uintptr_t)theirs);

    json_object_update_missing(all, (json_t *)(uintptr_t)ours);
    json_object_foreach(all, key, value)
    {
        json_t *x = json_object_get(theirs, key), *y = json_object_get(ours, key);

        if (x && y && hg_json_equal(x, y))
            continue;
        if (x)
            hg_json_dump(x, HG_JSON_COMPACT, &a);
        if (y)
            hg_json_dump(y, HG_JSON_COMPACT, &b);
        hg_err_set(err, HG_E_INPUT,
                   "the checkpoint is of another training: %s is %s there and %s here", key,
                   x ? hg_buf_str(&a) : "absent", y ? hg_buf_str(&b) : "absent");
        break;
    }
    if (err && !err->code)
        hg_err_set(err, HG_E_INPUT, "the checkpoint is of another training");
    hg_err_at(err, path, "");
    hg_err_hint(err, "remove it to begin anew, or name another \"checkpoint\"");
    json_decref(all);
    hg_buf_done(&a);
    hg_buf_done(&b);
    return -1;
}

/* ---- Writing ---- */

/* All tensors of a file, in order; values by index. */
struct list {
    struct wk_st_item *items;
    size_t n, cap;
};

static int add(struct list *l, char *name, const char *dtype, uint64_t rows, uint64_t cols)
{
    struct wk_st_item *item = name ? HG_VEC_PUSH(l) : NULL;

    if (!item) {
        free(name);
        return -1;
    }
    *item = (struct wk_st_item){
        .name = name, .dtype = dtype, .n_dims = cols > 1 ? 2 : 1, .dims = { rows, cols }
    };
    return 0;
}

/* Numbers over time that the result needs whole. */
struct series {
    const char *name;
    double **items;
    size_t *n;
    void *vec;
};
#define N_SERIES 4

static void series_of(struct wk_result *r, struct series out[N_SERIES])
{
    out[0] =
        (struct series){ "train.step_loss", &r->step_loss.items, &r->step_loss.n, &r->step_loss };
    out[1] = (struct series){ "train.epoch_loss", &r->epoch_loss.items, &r->epoch_loss.n,
                              &r->epoch_loss };
    out[2] = (struct series){ "train.step_s", &r->step_s.items, &r->step_s.n, &r->step_s };
    out[3] = (struct series){ "train.epoch_s", &r->epoch_s.items, &r->epoch_s.n, &r->epoch_s };
}

static int list_tensors(const struct wk_train *t, struct list *l)
{
    const struct wk_model_kind *m = t->kind;
    struct series series[N_SERIES];

    for (int i = 0; i < m->n_params; i++)
        if (add(l, strdup(m->params[i].name), WK_ST_REAL, (uint64_t)m->params[i].rows,
                (uint64_t)m->params[i].cols) < 0)
            return -1;
    for (int k = 0; k < t->optim.kind->slots; k++)
        for (int i = 0; i < m->n_params; i++)
            if (add(l, hg_str_printf("optimizer.%d.%s", k, m->params[i].name), WK_ST_REAL,
                    (uint64_t)m->params[i].rows, (uint64_t)m->params[i].cols) < 0)
                return -1;
    for (int i = 0; i < m->n_buffers; i++)
        if (add(l, hg_str_printf("buffer.%s", m->buffers[i].name), WK_ST_REAL,
                (uint64_t)m->buffers[i].n, 1) < 0)
            return -1;
    series_of(t->result, series);
    for (int i = 0; i < N_SERIES; i++)
        if (add(l, strdup(series[i].name), "F64", *series[i].n, 1) < 0)
            return -1;
    return 0;
}

static void list_done(struct list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i].name);
    HG_VEC_DONE(l);
}

static json_t *encode_state(const struct wk_train *t, double train_s, double epoch_s, bool finished)
{
    const struct wk_result *r = t->result;
    json_t *identity = training_of(t), *state, *metadata;
    struct hg_buf text = HG_BUF_INIT;

    state = json_pack("{s:s, s:s, s:I, s:i, s:f, s:f, s:f, s:b, s:b, s:i, s:o}", "schema", SCHEMA,
                      "model", t->kind->name, "steps", (json_int_t)t->steps_done, "collected",
                      t->collected, "train_s", train_s, "epoch_s", epoch_s, "trained_samples",
                      r->trained_samples, "diverged", (int)r->diverged, "finished", (int)finished,
                      "resumed", r->resumed, "training", identity);
    hg_json_dump(state, HG_JSON_COMPACT, &text);
    metadata = json_pack("{s:s, s:s}", "format", "pt", "hpcgrid", hg_buf_str(&text));
    json_decref(state);
    hg_buf_done(&text);
    return metadata;
}

static int write_span(struct wk_st_writer *w, struct wk_dev *dev, struct wk_span s,
                      struct hg_err *err)
{
    wk_real *host = malloc((s.n + 1) * sizeof *host);
    int rc = -1;

    if (!host)
        return hg_err_oom(err);
    dev->backend->download(dev, host, s);
    if (dev->backend->sync(dev, err) == 0)
        rc = wk_st_write(w, host, s.n * sizeof *host, err);
    free(host);
    return rc;
}

/* Values that are no numbers do not replace a good checkpoint where the training is to end of them. The loss shows them a step later. */
static int check_finite(const struct wk_train *t, int param, const wk_real *host,
                        struct hg_err *err)
{
    size_t n = wk_param_n(&t->kind->params[param]);

    for (size_t i = 0; i < n; i++)
        if (!isfinite(host[i])) {
            t->result->diverged = true;
            return hg_err_set(err, HG_E_INPUT, "parameter %s became no number",
                              t->kind->params[param].name);
        }
    return 0;
}

static int write_param(const struct wk_train *t, int state, int param, const wk_real *host,
                       struct wk_st_writer *w, struct hg_err *err)
{
    if (state == WK_STATE_VALUE && t->config->stop_on_nan && check_finite(t, param, host, err) < 0)
        return -1;
    return wk_st_write(w, host, wk_param_n(&t->kind->params[param]) * sizeof *host, err);
}

/* Every rank gives what it has of each parameter; only rank 0 has a writer. After a failure to write it goes on taking part. */
static int write_state(const struct wk_train *t, int state, struct wk_st_writer *w,
                       struct hg_err *err)
{
    int rc = 0;

    for (int i = 0; i < t->kind->n_params; i++) {
        wk_real *host = malloc(wk_param_n(&t->kind->params[i]) * sizeof *host);

        if (!host)
            return hg_err_oom(err);
        if (wk_strategy_fetch(t->strategy, state, i, host, err) < 0 ||
            (w && rc == 0 && write_param(t, state, i, host, w, err) < 0))
            rc = -1;
        free(host);
    }
    return rc;
}

static int write_values(const struct wk_train *t, struct wk_st_writer *w, struct hg_err *err)
{
    const struct wk_strategy *s = t->strategy;
    struct series series[N_SERIES];
    int rc = 0;

    for (int state = 0; state <= t->optim.kind->slots; state++)
        if (write_state(t, state, w, err) < 0)
            rc = -1;
    if (rc < 0 || !w)
        return rc;
    for (int i = 0; i < t->kind->n_buffers; i++)
        if (write_span(w, t->dev, s->buffers[i], err) < 0)
            return -1;
    series_of(t->result, series);
    for (int i = 0; i < N_SERIES; i++)
        if (*series[i].n &&
            wk_st_write(w, *series[i].items, *series[i].n * sizeof(double), err) < 0)
            return -1;
    return 0;
}

static int write_file(const struct wk_train *t, double train_s, double epoch_s, bool finished,
                      struct hg_err *err)
{
    struct list list = { 0 };
    json_t *metadata = encode_state(t, train_s, epoch_s, finished);
    struct wk_st_writer *w = NULL;
    int rc = -1;

    if (!metadata || list_tensors(t, &list) < 0)
        hg_err_oom(err);
    else if (t->comm->rank == 0)
        w = wk_st_create(t->checkpoint, list.items, list.n, metadata, err);
    if (write_values(t, w, err) < 0 || (t->comm->rank == 0 && !w))
        goto out;
    rc = w ? wk_st_commit(w, err) : 0;
    w = NULL;
out:
    wk_st_abort(w);
    list_done(&list);
    json_decref(metadata);
    return rc;
}

/* Rank 0 writes, all hear how it went. */
static int save(const struct wk_train *t, double train_s, double epoch_s, bool finished,
                struct hg_err *err)
{
    double failed = 0;

    if (write_file(t, train_s, epoch_s, finished, err) < 0)
        failed = 1;
    if (wk_comm_sum(t->comm, &failed, 1, err) < 0)
        return -1;
    if (failed > 0 && err->code == HG_E_NONE)
        return hg_err_set(err, HG_E_ENV, "another rank could not write the checkpoint");
    if (failed > 0)
        return hg_err_wrap(err, "checkpoint after step %ld", t->steps_done);
    return 0;
}

int wk_checkpoint_save(struct wk_train *t, double train_s, double epoch_s, struct hg_err *err)
{
    return save(t, train_s, epoch_s, false, err);
}

int wk_checkpoint_finish(struct wk_train *t, struct hg_err *err)
{
    return t->checkpoint ? save(t, t->result->train_s, 0, true, err) : 0;
}

/* ---- Reading ---- */

/* n values, yours; NULL on failure. */
static wk_real *read_tensor(const struct wk_st *st, const char *name, size_t n, struct hg_err *err)
{
    const struct wk_st_tensor *t = wk_st_find(st, name);
    wk_real *host;

    if (!t || t->n != n || strcmp(t->dtype, WK_ST_REAL) != 0) {
        hg_err_set(err, HG_E_INPUT, "the checkpoint is damaged: no tensor %s of %zu values", name,
                   n);
        hg_err_at(err, st->path, "");
        return NULL;
    }
    host = malloc((n + 1) * sizeof *host);
    if (!host)
        hg_err_oom(err);
    else if (wk_st_read_any(st, t, host, err) == 0)
        return host;
    free(host);
    return NULL;
}

static int read_param(struct wk_train *t, const struct wk_st *st, int state, int param,
                      struct hg_err *err)
{
    const struct wk_param *p = &t->kind->params[param];
    char name[160];
    wk_real *host;
    int rc;

    if (state == WK_STATE_VALUE)
        snprintf(name, sizeof name, "%s", p->name);
    else
        snprintf(name, sizeof name, "optimizer.%d.%s", state - WK_STATE_SLOT, p->name);
    host = read_tensor(st, name, wk_param_n(p), err);
    rc = host ? wk_strategy_store(t->strategy, state, param, host, err) : -1;
    free(host);
    return rc;
}

static int read_values(struct wk_train *t, const struct wk_st *st, struct hg_err *err)
{
    struct wk_strategy *s = t->strategy;
    char name[160];

    for (int state = 0; state <= t->optim.kind->slots; state++)
        for (int i = 0; i < t->kind->n_params; i++)
            if (read_param(t, st, state, i, err) < 0)
                return -1;
    for (int i = 0; i < t->kind->n_buffers; i++) {
        wk_real *host;

        snprintf(name, sizeof name, "buffer.%s", t->kind->buffers[i].name);
        host = read_tensor(st, name, (size_t)t->kind->buffers[i].n, err);
        if (!host)
            return -1;
        t->dev->backend->upload(t->dev, s->buffers[i], host);
        free(host);
    }
    return wk_strategy_round(s, err);
}

static int read_series(struct wk_train *t, const struct wk_st *st, struct hg_err *err)
{
    struct series series[N_SERIES];

    series_of(t->result, series);
    for (int i = 0; i < N_SERIES; i++) {
        const struct wk_st_tensor *from = wk_st_find(st, series[i].name);
        struct {
            double *items;
            size_t n, cap;
        } *v = series[i].vec;

        if (!from || strcmp(from->dtype, "F64") != 0) {
            hg_err_set(err, HG_E_INPUT, "the checkpoint is damaged: no tensor %s", series[i].name);
            return hg_err_at(err, st->path, "");
        }
        for (uint64_t k = 0; k < from->n; k++) {
            double *slot = HG_VEC_PUSH(v);

            if (!slot)
                return hg_err_oom(err);
            memcpy(slot, from->data + 8 * k, sizeof *slot);
        }
    }
    return 0;
}

static int restore(struct wk_train *t, const struct wk_st *st, const json_t *state,
                   struct hg_err *err)
{
    struct wk_result *r = t->result;

    if (read_values(t, st, err) < 0 || read_series(t, st, err) < 0)
        return -1;
    t->steps_done = (long)json_integer_value(json_object_get(state, "steps"));
    t->strategy->updates = t->steps_done;
    t->collected = (int)json_integer_value(json_object_get(state, "collected"));
    t->before_s = json_number_value(json_object_get(state, "train_s"));
    t->epoch_before_s = json_number_value(json_object_get(state, "epoch_s"));
    r->trained_samples = json_number_value(json_object_get(state, "trained_samples"));
    r->diverged = json_is_true(json_object_get(state, "diverged"));
    r->resumed = (int)json_integer_value(json_object_get(state, "resumed")) + 1;
    r->resumed_step = t->steps_done;
    if (t->steps_done >= 0 && t->steps_done <= t->total_steps && t->collected >= 0 &&
        t->collected <= t->epoch_steps && (size_t)t->collected <= r->step_loss.n)
        return 0;
    hg_err_set(err, HG_E_INPUT, "the checkpoint is damaged: %ld steps of %ld", t->steps_done,
               t->total_steps);
    return hg_err_at(err, st->path, "");
}

/* The state that the file says it is of; NULL with err set. */
static json_t *read_state(const struct wk_st *st, struct hg_err *err)
{
    const char *text = wk_st_metadata(st, "hpcgrid"), *schema;
    json_t *state = text ? json_loads(text, 0, NULL) : NULL;

    schema = json_string_value(json_object_get(state, "schema"));
    if (schema && strcmp(schema, SCHEMA) == 0)
        return state;
    json_decref(state);
    hg_err_set(err, HG_E_INPUT, "no checkpoint of hpcgrid-worker (schema %s)",
               schema ? schema : "absent");
    hg_err_at(err, st->path, "");
    hg_err_hint(err, "to start from its weights, name it as \"init\"");
    return NULL;
}

static int resume(struct wk_train *t, struct hg_err *err)
{
    struct wk_st st;
    json_t *state = NULL, *ours = training_of(t), *theirs;
    int rc = -1;

    if (wk_st_open(t->checkpoint, &st, err) < 0) {
        json_decref(ours);
        return -1;
    }
    state = read_state(&st, err);
    theirs = json_object_get(state, "training");
    if (!state)
        goto out;
    if (!hg_json_equal(theirs, ours))
        rc = other_training(t->checkpoint, theirs, ours, err);
    else if (json_is_true(json_object_get(state, "finished")))
        rc = 0; /* begin anew: a measurement is not a copy of another */
    else
        rc = restore(t, &st, state, err);
    if (rc == 0 && t->steps_done && t->comm->rank == 0)
        hg_info("going on after step %ld of %ld, from %s", t->steps_done, t->total_steps,
                t->checkpoint);
out:
    json_decref(state);
    json_decref(ours);
    wk_st_close(&st);
    return rc;
}

static int make_folder(const char *path, struct hg_err *err)
{
    char *folder = hg_fs_dirname(path);
    int rc = folder ? hg_fs_mkdirs(folder, 0755, err) : hg_err_oom(err);

    free(folder);
    return rc;
}

int wk_checkpoint_open(struct wk_train *t, struct hg_err *err)
{
    double found;

    if (!t->config->checkpoint)
        return 0;
    t->checkpoint = choose_file(t);
    if (!t->checkpoint)
        return hg_err_oom(err);
    if (make_folder(t->checkpoint, err) < 0)
        return -1;
    if (t->comm->rank == 0)
        wk_st_tidy(t->checkpoint);
    found = hg_fs_exists(t->checkpoint) ? 1 : 0;
    if (wk_comm_sum(t->comm, &found, 1, err) < 0)
        return -1;
    if (found > 0 && found < t->comm->world) {
        hg_err_set(err, HG_E_ENV, "%.0f of %d ranks see the checkpoint %s", found, t->comm->world,
                   t->checkpoint);
        return hg_err_hint(err, "keep checkpoints in a folder that all nodes share");
    }
    return found > 0 ? resume(t, err) : 0;
}
