/* SPDX-License-Identifier: Apache-2.0 */
#include "train/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "strategies/strategy.h"

#define NAME_BYTES 128

static const char *after_prefix(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);

    return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

/* "...LayerNorm.weight" as "...LayerNorm.gamma"; false if the name is of nothing like that. */
static bool old_name(const char *name, char out[NAME_BYTES])
{
    const char *at = strstr(name, "LayerNorm.");
    bool weight = at && strcmp(at, "LayerNorm.weight") == 0;

    if (!at)
        return false;
    snprintf(out, NAME_BYTES, "%.*sLayerNorm.%s", (int)(at - name), name,
             weight ? "gamma" : "beta");
    return true;
}

const struct wk_st_tensor *wk_weights_find(const struct wk_st *st, const struct wk_param *p)
{
    const char *names[2] = { p->name, after_prefix(p->name, "bert.") };
    char old[NAME_BYTES];

    for (int i = 0; i < 2; i++) {
        const struct wk_st_tensor *t = names[i] ? wk_st_find(st, names[i]) : NULL;

        if (!t && names[i] && old_name(names[i], old))
            t = wk_st_find(st, old);
        if (t)
            return t;
    }
    return NULL;
}

bool wk_weights_fits(const struct wk_st_tensor *t, const struct wk_param *p)
{
    if (t->n_dims < 1 || t->dims[0] != (uint64_t)p->rows)
        return false;
    /* earlier versions saved a matrix of one column as a vector */
    return t->n_dims == 1 ? p->cols <= 1 : t->n_dims == 2 && t->dims[1] == (uint64_t)p->cols;
}

bool wk_weights_may_lack(const struct wk_param *p)
{
    return after_prefix(p->name, "qa_outputs.");
}

bool wk_weights_may_ignore(const char *name)
{
    static const char *const prefixes[] = {
        "cls.",   "bert.pooler.", "pooler.",     "optimizer.",
        "train.", "buffer.",      "classifier.", WK_ST_CHECKSUMS
    };

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (after_prefix(name, prefixes[i]))
            return true;
    return strstr(name, "embeddings.position_ids") || strstr(name, "embeddings.token_type_ids");
}

static int upload(const struct wk_st *st, const struct wk_st_tensor *t, struct wk_strategy *s,
                  int index, struct hg_err *err)
{
    wk_real *host = hg_alloc((size_t)t->n * sizeof *host);
    int rc = -1;

    if (wk_st_read(st, t, host, err) == 0)
        rc = wk_strategy_store(s, WK_STATE_VALUE, index, host, err);
    free(host);
    return rc;
}

/* Every tensor is a parameter or may be ignored. */
static int check_rest(const struct wk_st *st, const struct wk_model_kind *model, struct hg_err *err)
{
    const struct wk_st_tensor **used = hg_alloc_zeroed((size_t)model->n_params, sizeof *used);

    for (int i = 0; i < model->n_params; i++)
        used[i] = wk_weights_find(st, &model->params[i]);
    for (size_t k = 0; k < st->n; k++) {
        bool known = wk_weights_may_ignore(st->tensors[k].name);

        for (int i = 0; !known && i < model->n_params; i++)
            known = used[i] == &st->tensors[k];
        if (!known) {
            free(used);
            hg_err_set(err, HG_E_INPUT, "model %s has no parameter for tensor %s", model->name,
                       st->tensors[k].name);
            hg_err_at(err, st->path, "");
            return hg_err_hint(err, "`hpcgrid-worker inspect %s` shows what the file holds",
                               st->path);
        }
    }
    free(used);
    return 0;
}

static int check_param(const struct wk_st *st, const struct wk_model_kind *model,
                       const struct wk_param *p, struct hg_err *err)
{
    const struct wk_st_tensor *t = wk_weights_find(st, p);
    const struct wk_st_tensor wanted = { .n_dims = p->cols ? 2 : 1,
                                         .dims = { (uint64_t)p->rows, (uint64_t)p->cols } };
    char shape[128], want[128];

    if (t && !wk_weights_fits(t, p)) {
        wk_st_shape_format(t, shape);
        wk_st_shape_format(&wanted, want);
        hg_err_set(err, HG_E_INPUT, "tensor %s has shape %s, model %s needs %s", t->name, shape,
                   model->name, want);
        return hg_err_at(err, st->path, "");
    }
    if (t || wk_weights_may_lack(p))
        return 0;
    hg_err_set(err, HG_E_INPUT, "no tensor %s, which model %s needs", p->name, model->name);
    hg_err_at(err, st->path, "");
    return hg_err_hint(err, "`hpcgrid-worker inspect %s` shows what the file holds", st->path);
}

static int check_all(const struct wk_st *st, const struct wk_model_kind *model, struct hg_err *err)
{
    for (int i = 0; i < model->n_params; i++)
        if (check_param(st, model, &model->params[i], err) < 0)
            return -1;
    return check_rest(st, model, err);
}

static int load_all(const struct wk_st *st, struct wk_strategy *s, struct hg_err *err)
{
    for (int i = 0; i < s->model->n_params; i++) {
        const struct wk_param *p = &s->model->params[i];
        const struct wk_st_tensor *t = wk_weights_find(st, p);

        if (t && upload(st, t, s, i, err) < 0)
            return -1;
        if (!t && s->comm->rank == 0)
            hg_info("%s: no %s; it starts from its initial values", st->path, p->name);
    }
    return 0;
}

int wk_weights_in_parts(const struct wk_st *st)
{
    const char *text = wk_st_metadata(st, "hpcgrid");
    json_t *state = text ? json_loads(text, 0, NULL) : NULL;
    int n = (int)json_integer_value(json_object_get(json_object_get(state, "parts"), "world"));

    json_decref(state);
    return n;
}

static int no_whole(const struct wk_st *st, struct hg_err *err)
{
    hg_err_set(err, HG_E_INPUT,
               "the values of this checkpoint are in %d other files, cut for %d ranks",
               wk_weights_in_parts(st), wk_weights_in_parts(st));
    hg_err_at(err, st->path, "");
    return hg_err_hint(err, "resume it with checkpoint_shards false: the next checkpoint is whole");
}

int wk_weights_check(const char *path, const struct wk_model_kind *model, struct hg_err *err)
{
    struct wk_st st;
    int rc;

    if (wk_st_open(path, &st, err) < 0)
        return -1;
    rc = wk_weights_in_parts(&st) ? no_whole(&st, err) : check_all(&st, model, err);
    wk_st_close(&st);
    return rc;
}

int wk_weights_load(const char *path, struct wk_strategy *s, struct hg_err *err)
{
    struct wk_st st;
    int rc;

    if (wk_st_open(path, &st, err) < 0)
        return -1;
    rc = wk_weights_in_parts(&st) ? no_whole(&st, err) : wk_st_verify(&st, false, err);
    if (rc == 0 && (rc = check_all(&st, s->model, err)) == 0)
        rc = load_all(&st, s, err);
    wk_st_close(&st);
    return rc;
}
