/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/vec.h"
#include "train/safetensors.h"
#include "train/identity.h"
#include "train/parts.h"

#define SCHEMA "hpcgrid-checkpoint/3"
#define CONTROL "train.control"

/* A checkpoint that a training resumes: found and checked. */
struct wk_saved {
    struct wk_st st;
    json_t *state;
    struct wk_parts *parts; /* NULL: values and slots are in the file itself */
};

/* What a file holds in addition to the tensors. */
struct moment {
    double train_s, epoch_s;
    bool finished;
    const json_t *parts; /* NULL: none */
};

/* ---- Writing ---- */

/* All tensors of a file, in order; values by index. */
struct list {
    struct wk_st_item *items;
    size_t n, cap;
};

/* cols 0: a vector. */
static void add(struct list *l, char *name, const char *dtype, uint64_t rows, uint64_t cols)
{
    *HG_VEC_PUSH(l) = (struct wk_st_item){
        .name = name, .dtype = dtype, .n_dims = cols ? 2 : 1, .dims = { rows, cols }
    };
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

static void list_params(const struct wk_train *t, struct list *l)
{
    const struct wk_model_kind *m = t->kind;

    for (int state = 0; state <= t->optim.kind->slots; state++)
        for (int i = 0; i < m->n_params; i++)
            add(l, wk_state_name(m, state, i), WK_ST_REAL, (uint64_t)m->params[i].rows,
                (uint64_t)m->params[i].cols);
}

static void list_rest(const struct wk_train *t, struct list *l)
{
    const struct wk_model_kind *m = t->kind;
    struct series series[N_SERIES];

    for (int i = 0; i < m->n_buffers; i++)
        add(l, hg_str_printf("buffer.%s", m->buffers[i].name), WK_ST_REAL,
            (uint64_t)m->buffers[i].n, 0);
    if (t->strategy->control.n)
        add(l, hg_strdup(CONTROL), WK_ST_REAL, WK_CONTROL_N, 0);
    series_of(t->result, series);
    for (int i = 0; i < N_SERIES; i++)
        add(l, hg_strdup(series[i].name), "F64", *series[i].n, 0);
}

static void list_done(struct list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i].name);
    HG_VEC_DONE(l);
}

static json_t *encode_state(const struct wk_train *t, const struct moment *now)
{
    const struct wk_result *r = t->result;
    json_t *state, *metadata;
    struct hg_buf text = HG_BUF_INIT;

    state = json_pack(
        "{s:s, s:s, s:s, s:i, s:I, s:I, s:i, s:f, s:f, s:f, s:f, s:b, s:b, s:i, s:o, s:O*}",
        "schema", SCHEMA, "model", t->kind->name, "strategy", t->strategy->kind->name, "world",
        t->comm->world, "save", (json_int_t)t->saves + 1, "steps", (json_int_t)t->steps_done,
        "collected", t->collected, "train_s", now->train_s, "epoch_s", now->epoch_s, "data_s",
        r->data_s, "trained_samples", r->trained_samples, "diverged", (int)r->diverged, "finished",
        (int)now->finished, "resumed", r->resumed, "training", wk_identity_training(t), "parts",
        now->parts);
    hg_json_dump(state, HG_JSON_COMPACT, &text);
    metadata = json_pack("{s:s, s:s}", "format", "pt", "hpcgrid", hg_buf_str(&text));
    json_decref(state);
    hg_buf_done(&text);
    return metadata;
}

static int write_span(struct wk_st_writer *w, struct wk_dev *dev, struct wk_span s,
                      struct hg_err *err)
{
    wk_real *host = hg_alloc((s.n + 1) * sizeof *host);
    int rc = -1;

    dev->backend->download(dev, host, s);
    if (dev->backend->sync(dev, err) == 0)
        rc = wk_st_write(w, host, s.n * sizeof *host, err);
    free(host);
    return rc;
}

static int write_param(const struct wk_train *t, int state, int param, const wk_real *host,
                       struct wk_st_writer *w, struct hg_err *err)
{
    size_t n = wk_param_n(&t->kind->params[param]);

    if (wk_state_check(t, state, param, host, n, err) < 0)
        return -1;
    return wk_st_write(w, host, n * sizeof *host, err);
}

/* Every rank gives what it has of each parameter; only rank 0 has a writer. After a failure to write it still takes part. */
static int write_params(const struct wk_train *t, struct wk_st_writer *w, struct hg_err *err)
{
    int rc = 0;

    for (int state = 0; state <= t->optim.kind->slots; state++)
        for (int i = 0; i < t->kind->n_params; i++) {
            wk_real *host = hg_alloc(wk_param_n(&t->kind->params[i]) * sizeof *host);

            if (wk_strategy_fetch(t->strategy, state, i, host, err) < 0 ||
                (w && rc == 0 && write_param(t, state, i, host, w, err) < 0))
                rc = -1;
            free(host);
        }
    return rc;
}

static int write_rest(const struct wk_train *t, struct wk_st_writer *w, struct hg_err *err)
{
    const struct wk_strategy *s = t->strategy;
    struct series series[N_SERIES];

    for (int i = 0; i < t->kind->n_buffers; i++)
        if (write_span(w, t->dev, s->buffers[i], err) < 0)
            return -1;
    if (s->control.n && write_span(w, t->dev, s->control, err) < 0)
        return -1;
    series_of(t->result, series);
    for (int i = 0; i < N_SERIES; i++)
        if (*series[i].n &&
            wk_st_write(w, *series[i].items, *series[i].n * sizeof(double), err) < 0)
            return -1;
    return 0;
}

/* Rank 0 writes; the others give what they have of the parameters, unless those are in parts. */
static int write_file(const struct wk_train *t, const struct moment *now, struct hg_err *err)
{
    bool first = t->comm->rank == 0, params = !now->parts;
    struct list list = { 0 };
    json_t *metadata = first ? encode_state(t, now) : NULL;
    struct wk_st_writer *w = NULL;
    int rc = -1;

    if (first && params)
        list_params(t, &list);
    if (first) {
        list_rest(t, &list);
        w = wk_st_create(t->checkpoint, list.items, list.n, metadata, err);
    }
    if (params && write_params(t, w, err) < 0)
        goto out;
    if (first && (!w || write_rest(t, w, err) < 0))
        goto out;
    rc = w ? wk_st_commit(w, NULL, err) : 0;
    w = NULL;
out:
    wk_st_abort(w);
    list_done(&list);
    json_decref(metadata);
    return rc;
}

/* The ranks' parts first: the file that names them is written when all of them are on disk. */
static int save(struct wk_train *t, struct moment *now, struct hg_err *err)
{
    long number = t->saves + 1;
    json_t *parts = NULL;
    int rc = 0;

    if (t->config->checkpoint_shards)
        rc = wk_comm_agree(t->comm, wk_parts_save(t, number, &parts, err), err);
    now->parts = parts;
    if (rc == 0)
        rc = wk_comm_agree(t->comm, write_file(t, now, err), err);
    if (rc == 0)
        t->saves = number;
    if (t->comm->rank == 0) /* those of before; or, after a failure, the new ones */
        wk_parts_tidy(t->checkpoint, t->saves);
    json_decref(parts);
    return rc < 0 ? hg_err_wrap(err, "checkpoint after step %ld", t->steps_done) : 0;
}

int wk_checkpoint_save(struct wk_train *t, double train_s, double epoch_s, struct hg_err *err)
{
    struct moment now = { .train_s = train_s, .epoch_s = epoch_s };

    return save(t, &now, err);
}

int wk_checkpoint_finish(struct wk_train *t, struct hg_err *err)
{
    struct moment now = { .train_s = t->result->train_s, .finished = true };

    return t->checkpoint ? save(t, &now, err) : 0;
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
    host = hg_alloc((n + 1) * sizeof *host);
    if (wk_st_read_any(st, t, host, err) == 0)
        return host;
    free(host);
    return NULL;
}

/* From the file or from parts: what this rank keeps of a parameter. */
static int read_param(struct wk_train *t, int state, int param, struct hg_err *err)
{
    const struct wk_saved *saved = t->saved;
    size_t first, n, whole = wk_param_n(&t->kind->params[param]);
    char *name = wk_state_name(t->kind, state, param);
    wk_real *host = NULL;
    int rc = -1;

    wk_strategy_own(t->strategy, param, &first, &n);
    if (saved->parts) {
        host = hg_alloc((n + 1) * sizeof *host);
        if (wk_parts_read(saved->parts, state, param, first, n, host, err) == 0)
            rc = wk_strategy_store_own(t->strategy, state, param, host, err);
    } else {
        host = read_tensor(&saved->st, name, whole, err);
        rc = host ? wk_strategy_store(t->strategy, state, param, host, err) : -1;
    }
    free(name);
    free(host);
    return rc;
}

static int read_span(struct wk_train *t, const char *name, struct wk_span to, struct hg_err *err)
{
    wk_real *host = read_tensor(&t->saved->st, name, to.n, err);

    if (!host)
        return -1;
    t->dev->backend->upload(t->dev, to, host);
    free(host);
    return t->dev->backend->sync(t->dev, err);
}

static int read_values(struct wk_train *t, struct hg_err *err)
{
    struct wk_strategy *s = t->strategy;
    char name[160];

    for (int state = 0; state <= t->optim.kind->slots; state++)
        for (int i = 0; i < t->kind->n_params; i++)
            if (read_param(t, state, i, err) < 0)
                return -1;
    for (int i = 0; i < t->kind->n_buffers; i++) {
        snprintf(name, sizeof name, "buffer.%s", t->kind->buffers[i].name);
        if (read_span(t, name, s->buffers[i], err) < 0)
            return -1;
    }
    if (s->control.n && read_span(t, CONTROL, s->control, err) < 0)
        return -1;
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
        for (uint64_t k = 0; k < from->n; k++)
            memcpy(HG_VEC_PUSH(v), from->data + 8 * k, sizeof *v->items);
    }
    return 0;
}

int wk_checkpoint_restore(struct wk_train *t, struct hg_err *err)
{
    const struct wk_st *st = t->saved ? &t->saved->st : NULL;
    const json_t *state = t->saved ? t->saved->state : NULL;
    struct wk_result *r = t->result;

    if (!st)
        return 0;
    if (read_values(t, err) < 0 || read_series(t, st, err) < 0)
        return -1;
    t->steps_done = (long)json_integer_value(json_object_get(state, "steps"));
    t->strategy->updates = t->steps_done;
    t->collected = (int)json_integer_value(json_object_get(state, "collected"));
    t->before_s = json_number_value(json_object_get(state, "train_s"));
    t->epoch_before_s = json_number_value(json_object_get(state, "epoch_s"));
    r->data_s = json_number_value(json_object_get(state, "data_s"));
    r->trained_samples = json_number_value(json_object_get(state, "trained_samples"));
    r->diverged = json_is_true(json_object_get(state, "diverged"));
    r->resumed = (int)json_integer_value(json_object_get(state, "resumed")) + 1;
    r->resumed_step = t->steps_done;
    if (t->steps_done >= 0 && t->steps_done <= t->total_steps && t->collected >= 0 &&
        t->collected <= t->epoch_steps && (size_t)t->collected <= r->step_loss.n) {
        if (t->steps_done && t->comm->rank == 0)
            hg_info("resuming after step %ld of %ld, from %s", t->steps_done, t->total_steps,
                    t->checkpoint);
        return 0;
    }
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
    if (schema)
        hg_err_set(err, HG_E_INPUT,
                   "a checkpoint of another version: its schema is %s, not " SCHEMA, schema);
    else
        hg_err_set(err, HG_E_INPUT, "not a checkpoint of hpcgrid-worker (it has no schema)");
    json_decref(state);
    hg_err_at(err, st->path, "");
    hg_err_hint(err, "to start from its weights, name it as \"init\"");
    return NULL;
}

static void saved_free(struct wk_saved *saved)
{
    if (!saved)
        return;
    wk_parts_close(saved->parts);
    wk_st_close(&saved->st);
    json_decref(saved->state);
    free(saved);
}

/* Rank 0 holds the file's bytes against its checksums, all ranks together those of the parts. */
static int check_bytes(struct wk_train *t, struct wk_saved *saved, struct hg_err *err)
{
    const json_t *parts = json_object_get(saved->state, "parts");

    if (t->comm->rank == 0 && wk_st_verify(&saved->st, true, err) < 0)
        return hg_err_hint(err, "remove it to start over, or name another \"checkpoint\"");
    if (!parts)
        return 0;
    saved->parts = wk_parts_open(t, saved->state, err);
    return saved->parts ? 0 : -1;
}

/* Open the file that is there; t->saved stays NULL if it is not to be gone on from. */
static int look(struct wk_train *t, struct hg_err *err)
{
    struct wk_saved *saved = hg_alloc_zeroed(1, sizeof *saved);
    json_t *ours = wk_identity_training(t), *theirs;
    int rc = -1;

    if (wk_st_open(t->checkpoint, &saved->st, err) < 0)
        goto out;
    saved->state = read_state(&saved->st, err);
    if (!saved->state)
        goto out;
    theirs = json_object_get(saved->state, "training");
    t->saves = (long)json_integer_value(json_object_get(saved->state, "save"));
    if (!hg_json_equal(theirs, ours)) {
        wk_identity_differ(t, theirs, ours, err);
        goto out;
    }
    rc = 0;
    if (json_is_true(json_object_get(saved->state, "finished")))
        goto out; /* start over: a measurement is not a copy of another */
    rc = check_bytes(t, saved, err);
    if (rc < 0)
        goto out;
    t->saved = saved;
    saved = NULL;
out:
    json_decref(ours);
    saved_free(saved);
    return rc;
}

/* A problem shows before the first epoch, not after it. */
static int make_folder(const char *path, struct hg_err *err)
{
    char *folder = hg_fs_dirname(path);
    int rc = hg_fs_mkdirs(folder, 0755, err);

    if (rc == 0 && access(folder, W_OK | X_OK) < 0)
        rc = hg_err_sys(err, "cannot write checkpoints to folder %s", folder);
    free(folder);
    return rc;
}

/* Do all ranks see it, or none? */
static int is_there(struct wk_train *t, bool *there, struct hg_err *err)
{
    double found = hg_fs_exists(t->checkpoint) ? 1 : 0;

    if (wk_comm_sum(t->comm, &found, 1, err) < 0)
        return -1;
    *there = found > 0;
    if (found == 0 || found == t->comm->world)
        return 0;
    hg_err_set(err, HG_E_ENV, "%.0f of %d ranks see the checkpoint %s", found, t->comm->world,
               t->checkpoint);
    return hg_err_hint(err, "keep checkpoints in a folder that all nodes share");
}

int wk_checkpoint_find(struct wk_train *t, struct hg_err *err)
{
    bool there;
    int rc;

    if (!t->config->checkpoint)
        return 0;
    t->checkpoint = wk_identity_file(t);
    if (make_folder(t->checkpoint, err) < 0)
        return -1;
    if (is_there(t, &there, err) < 0)
        return -1;
    rc = there ? look(t, err) : 0;
    if (rc == 0 && t->comm->rank == 0)
        wk_parts_tidy(t->checkpoint, t->saves);
    return wk_comm_agree(t->comm, rc, err);
}

void wk_checkpoint_close(struct wk_train *t)
{
    saved_free(t->saved);
    free(t->checkpoint);
}
